package inputs

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// List is a list of inputs that [Write] wrote: it replaces listing directories and opening
// files. It holds a few numbers for each input and reads the rest on demand. Its methods may be
// called concurrently. The caller closes it. The zero value has no inputs.
type List struct {
	list *inputFile
	only []bool // the inputs that it has; nil: all
	how  source.Opening
}

// With returns the inputs with the options for [List.Opened]. Options that select files or
// concern columns of paths must be empty: the list has them.
func (in *List) With(opts source.Opening) *List {
	if in == nil {
		return nil
	}
	own := *in
	own.how = opts
	return &own
}

// Opened opens files as With says; see [List.Open].
func (in *List) Opened(ctx context.Context, pieces []Piece) (files []*source.File, of []source.Piece, err error) {
	var how source.Opening
	if in != nil {
		how = in.how
	}
	return in.Open(ctx, pieces, how)
}

// noInputs is what an Inputs has that is nil, or that no function has returned.
var noInputs = &inputFile{name: "an empty list of inputs", r: bytes.NewReader(nil), close: func() error { return nil }}

// Made reports whether a function of this package has made the list.
func (in *List) Made() bool { return in != nil && in.list != nil }

// file returns the list that the inputs are of.
func (in *List) file() *inputFile {
	if !in.Made() {
		return noInputs
	}
	return in.list
}

// inputFile is an open list.
type inputFile struct {
	name   string
	r      io.ReaderAt
	size   int64
	close  func() error
	header listHeader
	digest [32]byte
	hive   []hive.Column
	blocks []inputBlock
	groups []int32   // number of row groups of each input
	bytes  []int64   // of the row groups of all inputs
	runs   []listRun // of all inputs; none without columns of paths
}

// inputBlock is where the lines of some inputs are.
type inputBlock struct {
	first, n  int // inputs
	group     int // the first of their row groups
	at, bytes int64
	sum       string
}

// IsList reports whether a file that begins with the given bytes is a list of
// inputs; 64 bytes suffice.
func IsList(first []byte) bool { return bytes.HasPrefix(first, []byte(`{"kind":"`+listKind+`"`)) }

// Read opens a list of inputs and reads its header and index.
// If src is nil, it is read from the local file system.
func Read(ctx context.Context, src storage.Source, name string) (*List, error) {
	source.NeedContext(ctx)
	if src == nil {
		src = storage.Local()
	}
	r, err := src.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return nil, err
	}
	in, err := openInputs(name, r, r.Object().Size)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	in.list.close = r.Close
	return in, objects.Rest(r)
}

// Parse returns the list with the given bytes, which must not be changed. The
// name is for messages.
func Parse(name string, b []byte) (*List, error) {
	return openInputs(name, bytes.NewReader(b), int64(len(b)))
}

func openInputs(name string, r io.ReaderAt, size int64) (*List, error) {
	l := &inputFile{name: name, r: r, size: size, close: func() error { return nil }}
	at, sum, err := l.pointer(size)
	if err != nil {
		return nil, err
	}
	index := make([]byte, size-pointerSize-at)
	if err := readAll(r, index, at); err != nil {
		return nil, l.err(err)
	}
	head, err := l.firstLine(index, at)
	if err != nil {
		return nil, err
	}
	h := xxh3.New()
	h.Write(head)
	h.Write(index)
	if h.Sum64() != sum {
		return nil, l.corrupt("its header or its index has another checksum")
	}
	if err := l.parseHeader(head); err != nil {
		return nil, err
	}
	if err := l.parseIndex(index, int64(len(head)), at); err != nil {
		return nil, err
	}
	return &List{list: l}, nil
}

// readAll reads exactly len(b) bytes.
func readAll(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (l *inputFile) err(err error) error { return fmt.Errorf("%s: %w", l.name, err) }

// corrupt returns the error for a damaged list.
func (l *inputFile) corrupt(format string, args ...any) error {
	return faults.Corrupt(fault.At{File: l.name}, "not a whole list of inputs: %s", fmt.Sprintf(format, args...)).
		WithHint("write it again with bloomjoin inputs")
}

// pointer reads the last line.
func (l *inputFile) pointer(size int64) (at int64, sum uint64, err error) {
	first := make([]byte, min(64, max(size, 0)))
	if err := readAll(l.r, first, 0); err != nil {
		return 0, 0, l.err(err)
	}
	if !IsList(first) {
		return 0, 0, faults.Corrupt(fault.At{File: l.name}, "not a list of inputs").WithHint("bloomjoin inputs writes one")
	}
	if size < pointerSize {
		return 0, 0, l.corrupt("it is cut off")
	}
	b := make([]byte, pointerSize)
	if err := readAll(l.r, b, size-pointerSize); err != nil {
		return 0, 0, l.err(err)
	}
	if _, err := fmt.Sscanf(string(b), `{"blocks_at":%d,"sum":"%x"}`, &at, &sum); err != nil || fmt.Sprintf(pointerText, at, sum) != string(b) {
		return 0, 0, l.corrupt("it is cut off, or lines were removed or added")
	}
	if at <= 0 || at > size-pointerSize {
		return 0, 0, l.corrupt("its index begins at byte %d of %d", at, size)
	}
	return at, sum, nil
}

// firstLine returns the header with its line break. The first block, if any, begins
// after it.
func (l *inputFile) firstLine(index []byte, at int64) ([]byte, error) {
	end := at
	if len(index) > 0 {
		line, _, _ := bytes.Cut(index, []byte("\n"))
		var first listIndex
		if err := json.Unmarshal(line, &first); err != nil || first.At <= 0 || first.At > at {
			return nil, l.corrupt("its index cannot be read")
		}
		end = first.At
	}
	head := make([]byte, end)
	return head, readAll(l.r, head, 0)
}

// parseHeader parses the first line.
func (l *inputFile) parseHeader(line []byte) error {
	h := &l.header
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(line, &version); err != nil {
		return l.corrupt("its first line: %v", err)
	}
	if version.Version != listVersion {
		return faults.Unsupported(fault.At{File: l.name}, "version %d of lists of inputs; want %d", version.Version, listVersion).
			WithHint("write the list again with this version of bloomjoin")
	}
	if err := json.Unmarshal(line, h); err != nil {
		return l.corrupt("its first line: %v", err)
	}
	digest, err := hex.DecodeString(h.Digest)
	if err != nil || len(digest) != len(l.digest) || h.Inputs < 0 || h.Rows < -1 || h.Bytes < 0 {
		return l.corrupt("its first line has a number or digest out of range")
	}
	copy(l.digest[:], digest)
	for _, c := range h.Hive {
		t, err := keys.ParseType(c.Type)
		if err != nil {
			return l.corrupt("its first line: %v", err)
		}
		l.hive = append(l.hive, hive.Column{Name: c.Name, Type: t})
	}
	for _, s := range h.Schemas {
		if s.First < 0 || s.First >= h.Inputs {
			return l.corrupt("its first line names input %d of %d", s.First, h.Inputs)
		}
	}
	return nil
}

// parseIndex parses the lines of the blocks, whose inputs are between two offsets.
func (l *inputFile) parseIndex(index []byte, from, to int64) error {
	for len(index) > 0 {
		line, rest, ok := bytes.Cut(index, []byte("\n"))
		var x listIndex
		if err := json.Unmarshal(line, &x); err != nil || !ok {
			return l.corrupt("its index cannot be read")
		}
		if x.At != from || x.Bytes <= 0 || x.Bytes > to-from || x.Block != len(l.groups) || x.Block%listBlock != 0 || len(x.Groups) == 0 || len(x.Groups) > listBlock {
			return l.corrupt("its index contradicts itself at input %d", x.Block)
		}
		l.blocks = append(l.blocks, inputBlock{first: x.Block, n: len(x.Groups), group: len(l.bytes), at: x.At, bytes: x.Bytes, sum: x.Sum})
		if err := l.addIndex(&x); err != nil {
			return err
		}
		from, index = from+x.Bytes, rest
	}
	if from != to || len(l.groups) != l.header.Inputs {
		return l.corrupt("its index has %d of %d inputs", len(l.groups), l.header.Inputs)
	}
	return nil
}

// addIndex keeps what a block says about its inputs.
func (l *inputFile) addIndex(x *listIndex) error {
	for _, g := range x.Groups {
		if slices.ContainsFunc(g, func(bytes int64) bool { return bytes < -1 }) {
			return l.corrupt("its index has a row group's bytes out of range")
		}
		l.groups, l.bytes = append(l.groups, int32(len(g))), append(l.bytes, g...)
	}
	n := 0
	for _, r := range x.Values {
		if r.Inputs <= 0 || r.Inputs > len(x.Groups)-n || len(r.Of) != len(l.hive) {
			return l.corrupt("its index has other columns than its first line")
		}
		n += r.Inputs
		l.runs = addRun(l.runs, r)
	}
	if len(l.hive) > 0 && n != len(x.Groups) {
		return l.corrupt("its index has values for %d of %d inputs", n, len(x.Groups))
	}
	return nil
}

// text reads the lines of a block.
func (l *inputFile) text(ctx context.Context, x *inputBlock) ([]byte, error) {
	if err := stopped.Err(ctx); err != nil {
		return nil, err
	}
	b := make([]byte, x.bytes)
	if err := readAll(l.r, b, x.at); err != nil {
		return nil, l.err(err)
	}
	if fmt.Sprintf("%016x", xxh3.Hash(b)) != x.sum {
		return nil, l.corrupt("inputs %d to %d have another checksum", x.first, x.first+x.n-1)
	}
	return b, nil
}

// lines reads the inputs of a block.
func (l *inputFile) lines(ctx context.Context, k int) ([]Input, error) {
	x := &l.blocks[k]
	b, err := l.text(ctx, x)
	if err != nil {
		return nil, err
	}
	inputs := make([]Input, 0, x.n)
	group := x.group
	for i := range x.n {
		line, rest, err := l.line(b, x.first+i)
		if err != nil {
			return nil, err
		}
		in, err := l.input(line)
		if err != nil {
			return nil, l.corrupt("input %d: %v", x.first+i, err)
		}
		in.number = x.first + i
		groups := l.bytes[group : group+int(l.groups[x.first+i])]
		if !sameBytes(in.Groups, groups) || i > 0 && in.Rel < inputs[i-1].Rel {
			return nil, l.corrupt("input %d contradicts the index", x.first+i)
		}
		inputs, b, group = append(inputs, in), rest, group+len(groups)
	}
	if len(b) > 0 {
		return nil, l.corrupt("there are more lines after input %d than the index has", x.first+x.n-1)
	}
	return inputs, nil
}

// sameBytes reports whether row groups have the given sizes.
func sameBytes(groups [][2]int64, bytes []int64) bool {
	return slices.EqualFunc(groups, bytes, func(g [2]int64, b int64) bool { return g[1] == b })
}

// input parses the line of an input.
func (l *inputFile) input(b []byte) (in Input, err error) {
	if err := json.Unmarshal(b, &in); err != nil {
		return in, err
	}
	in = in.named(publish.UnescapeName)
	_, known := source.TextFormats[in.Format]
	known = known || in.Format == dataset.Parquet || in.Format == dataset.ArrowFile || in.Format == dataset.ArrowStream
	switch {
	case in.Name == "" || !filepath.IsLocal(filepath.FromSlash(in.Rel)):
		return in, fmt.Errorf("the path %q", in.Rel)
	case in.Size < 0 || len(in.Print) == 0 || !known:
		return in, errors.New("size, print or format out of range")
	case len(in.Values) != len(l.hive):
		return in, fmt.Errorf("%d values of %d columns", len(in.Values), len(l.hive))
	case slices.ContainsFunc(in.Groups, func(g [2]int64) bool { return min(g[0], g[1]) < -1 }):
		return in, errors.New("a row group's rows or bytes are out of range")
	}
	in.Values = l.typed(in.Values)
	return in, nil
}

// typed returns the values with the names and types of their columns.
func (l *inputFile) typed(values pathValues) pathValues {
	values = slices.Clone(values)
	for i := range values {
		values[i].Name, values[i].Type = l.hive[i].Name, l.hive[i].Type
	}
	return values
}

// Close closes the list. Lists that were made from it can no longer be read.
func (in *List) Close() error { return in.file().close() }

// Digest identifies all inputs of the file, whatever was chosen of them, by path, size,
// content, and the columns in their paths. It is the same wherever they are mounted.
func (in *List) Digest() [32]byte { return in.file().digest }

// Rows returns the number of rows in all inputs of the file, whatever was chosen of
// them; -1: unknown.
func (in *List) Rows() int64 { return in.file().header.Rows }

// Hive returns the columns that the inputs' directories stand for.
func (in *List) Hive() (fields []arrow.Field) {
	for _, c := range in.file().hive {
		fields = append(fields, arrow.Field{Name: c.Name, Type: c.Type, Nullable: true})
	}
	return fields
}

// Arguments returns the names that were listed.
func (in *List) Arguments() []string {
	return each.Slice(in.file().header.Arguments, publish.UnescapeName)
}

// Len returns the number of inputs that were chosen; see Where and Pick.
func (in *List) Len() (n int) {
	for i := range in.file().groups {
		if in.has(i) {
			n++
		}
	}
	return n
}

// has reports whether the list has an input, by its number in the file.
func (in *List) has(i int) bool { return in == nil || in.only == nil || in.only[i] }

// Each yields the inputs in ascending order of Rel. After an error there are no more.
func (in *List) Each(ctx context.Context) iter.Seq2[Input, error] {
	source.NeedContext(ctx)
	return func(yield func(Input, error) bool) {
		last := ""
		for k, x := range in.file().blocks {
			if in != nil && in.only != nil && !slices.Contains(in.only[x.first:x.first+x.n], true) {
				continue
			}
			inputs, err := in.file().lines(ctx, k)
			if err == nil && inputs[0].Rel < last {
				err = in.file().corrupt("input %d is not in order", x.first)
			}
			if err != nil {
				yield(Input{}, err)
				return
			}
			last = inputs[len(inputs)-1].Rel
			for i := range inputs {
				if in.has(x.first+i) && !yield(inputs[i], nil) {
					return
				}
			}
		}
	}
}

// rels yields what Each yields, of each input only Rel. It parses no JSON where a line has
// no escapes: the first worker of a run needs all of them at its start.
func (in *List) rels(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for k := range in.file().blocks {
			x := &in.file().blocks[k]
			b, err := in.file().text(ctx, x)
			if err != nil {
				yield("", err)
				return
			}
			for i := range x.n {
				line, rest, _ := bytes.Cut(b, []byte("\n"))
				b = rest
				if !in.has(x.first + i) {
					continue
				}
				rel, ok := relOf(line)
				if !ok {
					one, err := in.file().input(line)
					if err != nil {
						yield("", in.file().corrupt("input %d: %v", x.first+i, err))
						return
					}
					rel = one.Rel
				}
				if !yield(rel, nil) {
					return
				}
			}
		}
	}
}

// relOf returns Rel of a line without escapes. Quotes in strings are escaped, so those
// here end strings.
func relOf(line []byte) (rel string, ok bool) {
	line, ok = bytes.CutPrefix(line, []byte(`{"name":"`))
	if !ok || bytes.IndexByte(line, '\\') >= 0 {
		return "", false
	}
	_, line, _ = bytes.Cut(line, []byte(`"`))
	line, ok = bytes.CutPrefix(line, []byte(`,"rel":"`))
	found, _, ended := bytes.Cut(line, []byte(`"`))
	return string(found), ok && ended
}

// Alike reports whether two of the inputs may have outputs of one name.
func (in *List) Alike() bool { return in.file().header.Alike }

// State returns the inputs as the state of a directory has them. Left has the inputs that
// were not chosen when Each has ended.
func (in *List) State(ctx context.Context) publish.Inputs {
	all := publish.Inputs{Digest: in.Digest(), Len: in.Len(), Names: in.rels(ctx), Left: map[string]bool{}}
	for _, rel := range in.file().header.LeftOut {
		all.Left[publish.UnescapeName(rel)] = true
	}
	all.Each = func(yield func(publish.Input, error) bool) {
		whole := &List{list: in.file()}
		i := -1
		for one, err := range whole.Each(ctx) {
			if i++; err == nil && !in.has(i) {
				all.Left[one.Rel] = true
				continue
			}
			if !yield(one.Published(), err) || err != nil {
				return
			}
		}
	}
	return all
}
