package dedups

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/ring"
	"github.com/bloomjoin/bloomjoin/storage"
)

// State is what runs over a growing input keep in a file: the ring, how much of each input is
// done, and how long the output was then. The file is replaced whole, after the output is
// durable; so a run that was killed is repeated from the last commit, with the same output.
type State struct {
	Options string   `json:"options"` // those that the output depends on, in words
	Classes []string `json:"classes"` // of the key columns; none: no input was read so far
	Inputs  []Done   `json:"inputs"`
	Output  string   `json:"output"`
	Length  int64    `json:"length"` // of the output, in bytes
	Tail    uint64   `json:"tail"`   // checksum of its end, see Tail

	store storage.Storage
	name  string
	last  []byte // end of the file as it was read or written last; nil: there is none
}

// Done is how much of an input is done.
type Done struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"` // bytes
	Line   int    `json:"line,omitempty"`
	Head   uint64 `json:"head"` // checksums of its start and of what is before the offset
	Tail   uint64 `json:"tail"`
	Whole  string `json:"whole,omitempty"` // of a table: its fingerprint
}

// LoadState reads a state; most is as of [ring.Decode]. The ring is nil if there is no such file.
func LoadState(ctx context.Context, store storage.Storage, name string, most uint64) (_ *State, _ *ring.Ring, err error) {
	s := &State{store: store, name: name}
	in, err := store.Open(ctx, storage.Object{Name: name})
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	defer faults.Join(&err, in.Close)
	size := in.Object().Size
	r, with, err := ring.Decode(bufio.NewReaderSize(io.NewSectionReader(in, 0, size), 1<<20), name, size, most)
	if err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(with))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil || s.Options == "" {
		e := faults.Of(cause.State, faults.Mismatch(fault.At{File: name}, "kind of state", "that of a run of the command", "another"))
		return nil, nil, e.WithHint("name the file that {State} has written")
	}
	if s.Length < 0 || slices.ContainsFunc(s.Inputs, func(d Done) bool { return d.Offset < 0 }) {
		return nil, nil, faults.Corrupt(fault.At{File: name}, "a state with a negative length")
	}
	s.last, err = lastOf(in)
	return s, r, err
}

// Commit replaces the file. The output must be durable up to its Length.
func (s *State) Commit(ctx context.Context, r *ring.Ring) error {
	if err := s.unchanged(ctx); err != nil {
		return err
	}
	with, err := json.Marshal(s)
	if err != nil {
		return err
	}
	w, err := s.store.Create(ctx, s.name, storage.CreateOptions{Private: true})
	if err != nil {
		return err
	}
	defer func() { _ = w.Abort() }() // nothing after Commit
	out := bufio.NewWriterSize(w, 1<<20)
	if err := r.Encode(out, with); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if err := w.Commit(s.last != nil); errors.Is(err, fs.ErrExist) {
		return s.changed()
	} else if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.last, err = s.stored(ctx)
	return err
}

// stored returns the last checksum of the file; nil: there is none.
func (s *State) stored(ctx context.Context) (last []byte, err error) {
	in, err := s.store.Open(ctx, storage.Object{Name: s.name})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	last, err = lastOf(in)
	return last, errors.Join(err, in.Close())
}

func lastOf(in storage.Reader) ([]byte, error) {
	last := make([]byte, 8)
	return last, readAt(in, last, max(in.Object().Size-int64(len(last)), 0))
}

// unchanged returns an error if another run has replaced the file.
func (s *State) unchanged(ctx context.Context) error {
	last, err := s.stored(ctx)
	if err == nil && !bytes.Equal(last, s.last) {
		return s.changed()
	}
	return err
}

func (s *State) changed() error {
	return fmt.Errorf("%s: another run has changed the state meanwhile (run one at a time): %w", s.name, storage.ErrChanged)
}

// Agree returns an error if the state was made with other options.
func (s *State) Agree(options string) error {
	if s.Options == options {
		return nil
	}
	e := faults.Of(cause.State, faults.Mismatch(fault.At{File: s.name}, "options of the state", s.Options, options))
	if strings.Contains(options, ",unicode-") {
		return e.WithHint("give the same options, or another {State}; where an earlier version wrote it, append ,ascii-only to {Normalize}")
	}
	return e.WithHint("give the same options, or another {State}")
}

// Digest identifies what was committed last; it is empty if nothing was.
func (s *State) Digest() string { return hex.EncodeToString(s.last) }

// Find returns what is done of an input; nil: nothing.
func (s *State) Find(name string) *Done {
	for i := range s.Inputs {
		if s.Inputs[i].Name == name {
			return &s.Inputs[i]
		}
	}
	return nil
}

// Read records that a text was read up to an offset and a line.
func (s *State) Read(name string, in io.ReaderAt, offset int64, line int) error {
	d := s.Find(name)
	if d == nil {
		s.Inputs = append(s.Inputs, Done{Name: name})
		d = &s.Inputs[len(s.Inputs)-1]
	}
	d.Offset, d.Line = offset, line
	var err error
	d.Head, d.Tail, err = ends(in, offset)
	return err
}

// Check returns an error if a text does not begin with what was read of it.
func (d *Done) Check(name string, in io.ReaderAt, size int64) error {
	at := fault.At{File: name}
	const hint = "inputs may grow, not change: give a rotated log another name"
	if size < d.Offset {
		return faults.Of(cause.State, faults.Mismatch(at, "size of an input that is in part done", fmt.Sprintf("%d bytes or more", d.Offset), size)).WithHint(hint)
	}
	head, tail, err := ends(in, d.Offset)
	if err != nil {
		return err
	}
	if head != d.Head || tail != d.Tail {
		return faults.Of(cause.State, faults.Mismatch(at, "checksums of an input that is in part done", fmt.Sprintf("%016x %016x", d.Head, d.Tail), fmt.Sprintf("%016x %016x", head, tail))).WithHint(hint)
	}
	if d.Offset == 0 || d.Offset == size {
		return nil
	}
	var b [2]byte
	if _, err := in.ReadAt(b[:], d.Offset-1); err != nil {
		return err
	}
	if b[0] != '\n' && b[0] != '\r' && b[1] != '\n' && b[1] != '\r' {
		at.Line = d.Line
		return faults.Corrupt(at, "a line that was not complete when it was read").WithHint("let the program that writes the input append whole lines")
	}
	return nil
}

// LastLine returns where the last whole line of a text ends: the rest may not be written yet. The
// first from bytes were read before.
func LastLine(in io.ReaderAt, from, size int64) (int64, error) {
	b := make([]byte, endBytes)
	last, crs := from, 0 // the end of the last CR, and how many there are
	for end := size; end > from; {
		n := min(end-from, endBytes)
		if err := readAt(in, b[:n], end-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		if i := bytes.LastIndexByte(b[:n], '\r'); i >= 0 && crs == 0 {
			last = end - n + int64(i) + 1
		}
		crs += bytes.Count(b[:n], []byte{'\r'})
		end -= n
	}
	if from == 0 && crs == 1 && last == size { // an LF may come
		return 0, nil
	}
	if from > 0 { // lines end as those before do
		if err := readAt(in, b[:1], from-1); err != nil || b[0] != '\r' {
			return from, err
		}
	}
	return last, nil
}

// endBytes is how much of both ends of what was read, or written, is compared.
const endBytes = 64 << 10

// ends returns checksums of both ends of the first n bytes.
func ends(in io.ReaderAt, n int64) (head, tail uint64, err error) {
	b := make([]byte, min(n, endBytes))
	if err := readAt(in, b, 0); err != nil {
		return 0, 0, err
	}
	head = xxh3.Hash(b)
	tail, err = Tail(in, n)
	return head, tail, err
}

// Tail returns a checksum of the end of the first n bytes.
func Tail(in io.ReaderAt, n int64) (uint64, error) {
	b := make([]byte, min(n, endBytes))
	err := readAt(in, b, n-int64(len(b)))
	return xxh3.Hash(b), err
}

// readAt fills b.
func readAt(in io.ReaderAt, b []byte, at int64) error {
	if n, err := in.ReadAt(b, at); n < len(b) {
		return err
	}
	return nil
}
