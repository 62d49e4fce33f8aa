package inputs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

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

	changes Changes
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
	name    string
	r       io.ReaderAt
	size    int64
	close   func() error
	header  listHeader
	pointer listPointer
	digest  [32]byte
	hive    []hive.Column
	tables  []*source.TableVersion
	blocks  []listIndex
	weight  uint64 // of all blocks
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
	p := &l.pointer
	if err := l.readPointer(size); err != nil {
		return nil, err
	}
	head, index := make([]byte, p.at[0]), make([]byte, size-pointerSize-p.at[3])
	if err := cmp.Or(readAll(r, index, p.at[3]), readAll(r, head, 0)); err != nil {
		return nil, l.err(err)
	}
	if p.sumOf(head, index) != p.sums[2] {
		return nil, l.corrupt("its header or its index has another checksum")
	}
	if err := l.parseHeader(head); err != nil {
		return nil, err
	}
	return &List{list: l}, l.parseIndex(index)
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

// readPointer reads the last line.
func (l *inputFile) readPointer(size int64) error {
	first := make([]byte, min(64, max(size, 0)))
	if err := readAll(l.r, first, 0); err != nil {
		return l.err(err)
	}
	if !IsList(first) {
		return faults.Corrupt(fault.At{File: l.name}, "not a list of inputs").WithHint("bloomjoin inputs writes one")
	}
	version := listVersion
	if _, err := fmt.Sscanf(string(first), `{"kind":"`+listKind+`","version":%d`, &version); err == nil && version != listVersion {
		return faults.Unsupported(fault.At{File: l.name}, "version %d of lists of inputs; want %d", version, listVersion).
			WithHint("write the list again with this version of bloomjoin")
	}
	if size < pointerSize {
		return l.corrupt("it is cut off")
	}
	b := make([]byte, pointerSize)
	if err := readAll(l.r, b, size-pointerSize); err != nil {
		return l.err(err)
	}
	p := &l.pointer
	if _, err := fmt.Sscanf(string(b), pointerText, &p.at[0], &p.at[1], &p.at[2], &p.at[3], &p.sums[0], &p.sums[1], &p.sums[2]); err != nil || p.text() != string(b) {
		return l.corrupt("it is cut off, or lines were removed or added")
	}
	if at := p.at[:]; at[0] <= 0 || !slices.IsSorted(at) || at[3] > size-pointerSize {
		return l.corrupt("its parts begin at bytes %d of %d", at, size)
	}
	return nil
}

// parseHeader parses the first line.
func (l *inputFile) parseHeader(line []byte) error {
	h := &l.header
	if err := json.Unmarshal(line, h); err != nil {
		return l.corrupt("its first line: %v", err)
	}
	if needs := slices.DeleteFunc(slices.Clone(h.Needs), func(what string) bool { return what == needsTables || what == needsIDs || what == needsKeys }); len(needs) > 0 {
		return faults.Unsupported(fault.At{File: l.name}, "a list of inputs that needs %s", strings.Join(needs, ", ")).
			WithHint("read it with a later version of bloomjoin")
	}
	for i := range h.Tables {
		table := h.Tables[i].Named(publish.UnescapeName)
		t, err := source.NewTableVersion(&table)
		if err != nil {
			return l.corrupt("its first line: %v", err)
		}
		l.tables = append(l.tables, t)
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
		column := hive.Column{Name: c.Name, Type: t}
		for _, of := range l.tables { // whose types have units
			if i := slices.IndexFunc(of.Hive, func(h hive.Column) bool { return h.Name == c.Name && keys.TypeName(h.Type) == c.Type }); i >= 0 {
				column = of.Hive[i]
			}
		}
		l.hive = append(l.hive, column)
	}
	for _, s := range h.Schemas {
		if s.First < 0 || s.First >= h.Inputs {
			return l.corrupt("its first line names input %d of %d", s.First, h.Inputs)
		}
	}
	return nil
}

// parseIndex parses the lines of the blocks.
func (l *inputFile) parseIndex(index []byte) error {
	at, end := l.pointer.at[0], l.pointer.at[1]
	for line := range bytes.Lines(index) {
		var x listIndex
		if err := json.Unmarshal(line, &x); err != nil {
			return l.corrupt("its index cannot be read")
		}
		if x.Bytes <= 0 || x.Bytes > end-at || x.Weight > source.MaxWeight || x.Groups < 0 || x.Groups > x.Bytes {
			return l.corrupt("its index contradicts itself at input %d", len(l.blocks)*listBlock)
		}
		x.at, x.before = at, l.weight
		at, l.weight = at+x.Bytes, min(l.weight+x.Weight, source.MaxWeight)
		l.blocks = append(l.blocks, x)
	}
	if n := len(l.blocks); at != end || n != l.header.Inputs/listBlock+min(l.header.Inputs%listBlock, 1) {
		return l.corrupt("its index has %d blocks for %d inputs", n, l.header.Inputs)
	}
	return nil
}

// inputsOf returns the number of inputs of a block.
func (l *inputFile) inputsOf(k int) int { return min(listBlock, l.header.Inputs-k*listBlock) }

// checked returns the text of a block if it has its checksum.
func (l *inputFile) checked(k int, b []byte) ([]byte, error) {
	if fmt.Sprintf("%016x", xxh3.Hash(b)) != l.blocks[k].Sum {
		return nil, l.corrupt("inputs %d to %d have another checksum", k*listBlock, k*listBlock+l.inputsOf(k)-1)
	}
	return b, nil
}

// text reads the lines of a block.
func (l *inputFile) text(ctx context.Context, k int) ([]byte, error) {
	b := make([]byte, l.blocks[k].Bytes)
	if err := cmp.Or(stopped.Err(ctx), readAll(l.r, b, l.blocks[k].at)); err != nil {
		return nil, l.err(err)
	}
	return l.checked(k, b)
}

// lines parses the inputs of a block.
func (l *inputFile) lines(k int, b []byte) ([]Input, error) {
	x, first := &l.blocks[k], k*listBlock
	inputs := make([]Input, 0, l.inputsOf(k))
	groups, weight, largest := int64(0), uint64(0), uint64(0)
	for i := range l.inputsOf(k) {
		line, rest, err := l.line(b, first+i)
		if err != nil {
			return nil, err
		}
		in, err := l.input(line)
		if err != nil {
			return nil, l.corrupt("input %d: %v", first+i, err)
		}
		in.number = first + i
		groups += int64(len(in.Groups))
		for _, w := range in.weights(nil) {
			weight, largest = min(weight+uint64(w), source.MaxWeight), max(largest, uint64(w))
		}
		if i > 0 && in.Rel < inputs[i-1].Rel {
			return nil, l.corrupt("input %d is not in order", first+i)
		}
		inputs, b = append(inputs, in), rest
	}
	if len(b) > 0 || groups != x.Groups || weight != x.Weight || largest > l.header.Largest {
		return nil, l.corrupt("inputs %d to %d contradict the index", first, first+len(inputs)-1)
	}
	return inputs, nil
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
	case in.Table < 0 || in.Table > len(l.tables) || in.Deleted != nil && in.Table == 0:
		return in, fmt.Errorf("table %d of %d", in.Table, len(l.tables))
	case in.Deleted != nil && slices.ContainsFunc(in.Deleted.Keys, func(i int) bool { return i < 0 || i >= len(l.tables[in.Table-1].Keys) }):
		return in, fmt.Errorf("keys %v of deleted rows, of %d", in.Deleted.Keys, len(l.tables[in.Table-1].Keys))
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

// Tables returns the tables that inputs are of.
func (in *List) Tables() []source.TableRead {
	return each.Slice(in.file().tables, (*source.TableVersion).Read)
}

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
	for i := range in.file().header.Inputs {
		if in.has(i) {
			n++
		}
	}
	return n
}

// Totals returns the bytes and row groups of all inputs of the file.
func (in *List) Totals() (bytes, groups int64) {
	for _, x := range in.file().blocks {
		groups += x.Groups
	}
	return in.file().header.Bytes, groups
}

// has reports whether the list has an input, by its number in the file.
func (in *List) has(i int) bool { return in == nil || in.only == nil || in.only[i] }

// Each yields the inputs in ascending order of Rel. After an error there are no more.
func (in *List) Each(ctx context.Context) iter.Seq2[Input, error] {
	source.NeedContext(ctx)
	return func(yield func(Input, error) bool) {
		last := ""
		for x, err := range in.texts(ctx) {
			var inputs []Input
			if err == nil {
				inputs, err = in.file().lines(x.k, x.text)
			}
			if err == nil && inputs[0].Rel < last {
				err = in.file().corrupt("input %d is not in order", x.k*listBlock)
			}
			if err != nil {
				yield(Input{}, err)
				return
			}
			last = inputs[len(inputs)-1].Rel
			for _, one := range inputs {
				if in.has(one.number) && !yield(one, nil) {
					return
				}
			}
		}
	}
}

// Check reads the whole list, and returns an error if it is damaged, or contradicts its inputs.
func (in *List) Check(ctx context.Context) (err error) {
	l := in.file()
	if l == noInputs {
		return nil
	}
	again := newInputList(in.Arguments(), &source.Opening{Layout: in.layout()}, l.tables)
	defer faults.Join(&err, again.close)
	for one, err := range (&List{list: l}).Each(ctx) {
		if err := cmp.Or(err, again.add(&one, nil)); err != nil {
			return err
		}
	}
	made, err := again.open(nil)
	if err != nil {
		return err
	}
	want, got := made.list.header, l.header
	want.Base, want.LeftOut, got.Arguments = got.Base, got.LeftOut, want.Arguments
	if !reflect.DeepEqual(got, want) || l.pointer.sums[0] != made.list.pointer.sums[0] || l.pointer.sums[1] != made.list.pointer.sums[1] {
		return l.corrupt("its inputs contradict its first line, row groups or values")
	}
	for i := range 1 + min(len(l.hive), 1) {
		for _, err := range section[json.RawMessage](l, 1+i) {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// rels yields what Each yields, of each input only Rel. It parses no JSON where a line has
// no escapes.
func (in *List) rels(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for x, err := range in.texts(ctx) {
			if err != nil {
				yield("", err)
				return
			}
			i := x.k * listBlock
			for line := range bytes.Lines(x.text) {
				if i++; !in.has(i - 1) {
					continue
				}
				_, rel, err := in.file().namesOf(line)
				if err != nil {
					yield("", err)
					return
				}
				if !yield(rel, nil) {
					return
				}
			}
		}
	}
}

// namesOf returns Name and Rel of a line. It parses no JSON where that has no escapes: quotes in
// strings have them, so those here end strings.
func (l *inputFile) namesOf(line []byte) (name, rel string, err error) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"name":"`))
	if ok && bytes.IndexByte(line, '\\') < 0 {
		one, rest, _ := bytes.Cut(rest, []byte(`"`))
		if rest, ok = bytes.CutPrefix(rest, []byte(`,"rel":"`)); ok {
			if other, _, ended := bytes.Cut(rest, []byte(`"`)); ended {
				return string(one), string(other), nil
			}
		}
	}
	in, err := l.input(line)
	if err != nil {
		return "", "", l.corrupt("the line %.60q: %v", line, err)
	}
	return in.Name, in.Rel, nil
}

// Roots returns the directories that were listed, or have files that were named. known is false if
// they are too many.
func (in *List) Roots() (roots []Root, known bool) {
	for _, r := range in.file().header.Roots {
		roots = append(roots, Root{publish.UnescapeName(r.Dir), publish.UnescapeName(r.Rel), r.Found})
	}
	return roots, len(roots) > 0 || in.file().header.Inputs == 0
}

// Alike reports whether two of the inputs may have outputs of one name.
func (in *List) Alike() bool { return in.file().header.Alike }

// State returns the inputs as the state of a directory has them. Left has the inputs that
// were not chosen when Each has ended.
func (in *List) State(ctx context.Context) publish.Inputs {
	all := publish.Inputs{Digest: in.Digest(), Len: in.Len(), Names: in.rels(ctx), Left: map[string]bool{}}
	roots, _ := in.Roots()
	for _, r := range roots {
		all.Roots += fmt.Sprintf("%t %q ", r.Found, r.Rel)
	}
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
