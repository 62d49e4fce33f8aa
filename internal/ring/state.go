package ring

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// The state of a ring, in bytes. Integers are little-endian, checksums XXH3-64 of all bytes
// before them.
//
//	8     magic "BLMJRING"
//	4     version, 1
//	4     length of the head
//	      head: a JSON object, see head
//	8     checksum
//	      bits, [Params].Bytes
//	8     checksum
const (
	magic    = "BLMJRING"
	version  = 1
	mostHead = 64 << 20
)

// head is what a state has besides the bits.
type head struct {
	Params
	Newest int64           `json:"newest"`
	Begun  bool            `json:"begun"`
	Counts []uint64        `json:"counts"`
	With   json.RawMessage `json:"with,omitempty"` // the caller's
}

// Encode writes the ring, and what the caller keeps with it: a JSON value, or nothing.
func (r *Ring) Encode(w io.Writer, with json.RawMessage) error {
	h, err := json.Marshal(head{Params: r.params, Newest: r.newest, Begun: r.begun, Counts: r.counts, With: with})
	if err != nil {
		return err
	}
	if len(h) > mostHead {
		return fmt.Errorf("the head of a state takes %d bytes: want at most %d", len(h), mostHead)
	}
	sum := xxh3.New()
	out := io.MultiWriter(w, sum)
	first := binary.LittleEndian.AppendUint32([]byte(magic), version)
	first = binary.LittleEndian.AppendUint32(first, uint32(len(h)))
	for _, part := range [][]byte{first, h, nil, r.bits, nil} {
		if part == nil {
			part = binary.LittleEndian.AppendUint64(nil, sum.Sum64())
		}
		if _, err := out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads what Encode has written, to the end of in. name is used in errors. size is the
// number of bytes in it, -1 if that is unknown. most limits the bytes of the bits in memory; 0: no
// limit.
func Decode(in io.Reader, name string, size int64, most uint64) (*Ring, json.RawMessage, error) {
	at := fault.At{File: name}
	sum := xxh3.New()
	in = io.TeeReader(in, sum)
	failed := func(err error) error {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return faults.Corrupt(at, "a state of duplicates that ends too early")
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	read := func(n uint64) ([]byte, error) {
		var b bytes.Buffer // grows with what there is
		if _, err := io.CopyN(&b, in, int64(n)); err != nil {
			return nil, failed(err)
		}
		return b.Bytes(), nil
	}
	check := func() error {
		got := sum.Sum64()
		b, err := read(8)
		if err != nil {
			return err
		}
		if want := binary.LittleEndian.Uint64(b); want != got {
			return faults.Wanted(faults.Corrupt(at, "checksum"), fmt.Sprintf("%016x", want), fmt.Sprintf("%016x", got))
		}
		return nil
	}
	h, err := readHead(at, read)
	if err == nil {
		err = check()
	}
	if err == nil {
		err = h.check(at, size, most)
	}
	var early []byte
	if err == nil && size < 0 { // memory is taken when an eighth of the bits has come
		early, err = read(h.Bytes() / 8)
	}
	if err != nil {
		return nil, nil, err
	}
	r := New(h.Params)
	r.newest, r.begun = h.Newest, h.Begun
	copy(r.counts, h.Counts)
	if _, err := io.ReadFull(in, r.bits[copy(r.bits, early):]); err != nil {
		return nil, nil, failed(err)
	}
	if err := check(); err != nil {
		return nil, nil, err
	}
	if n, err := in.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		return nil, nil, faults.Corrupt(at, "bytes after the end of a state of duplicates")
	}
	return r, h.With, nil
}

// readHead reads everything before the first checksum.
func readHead(at fault.At, read func(uint64) ([]byte, error)) (h head, err error) {
	first, err := read(uint64(len(magic) + 8))
	if err != nil {
		return h, err
	}
	v, n := binary.LittleEndian.Uint32(first[len(magic):]), binary.LittleEndian.Uint32(first[len(magic)+4:])
	switch {
	case string(first[:len(magic)]) != magic:
		return h, faults.Of(cause.State, faults.Mismatch(at, "kind of file", "a state of duplicates ("+magic+")", fmt.Sprintf("%q", first[:len(magic)]))).
			WithHint("name the file that holds one")
	case v != version:
		return h, faults.Unsupported(at, "version %d of a state; want %d", v, version).WithHint("use a newer version of bloomjoin")
	case n > mostHead:
		return h, faults.Corrupt(at, "a head of %d bytes", n)
	}
	text, err := read(uint64(n))
	if err != nil {
		return h, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil || d.More() {
		return h, faults.Corrupt(at, "the head of a state, which is no object that is known")
	}
	return h, nil
}

// check returns an error unless there may be such a ring, of so many bytes.
func (h *head) check(at fault.At, size int64, most uint64) error {
	p := h.Params
	ok := p.Slots >= 1 && p.Slots <= MostSlots && p.Blocks >= 1 && p.Blocks <= 1<<32 && p.FPR > 0 && p.FPR < 1 &&
		p.Width >= 0 && p.Jump >= 0 && (p.Width > 0 || p.Slots == 1 && p.Jump == 0) && len(h.Counts) == p.Slots
	if !ok {
		return faults.Corrupt(at, "the parameters of a state")
	}
	if size >= 0 && uint64(size) < p.Bytes() {
		return faults.Corrupt(at, "a state of duplicates that ends too early")
	}
	if err := p.Fits(most); err != nil {
		return fmt.Errorf("%s: %w", at.File, err)
	}
	return nil
}
