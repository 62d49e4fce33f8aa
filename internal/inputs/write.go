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
	"io/fs"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A list of inputs is a file of JSON lines:
//
//	header    what the list is, the columns of paths, totals
//	inputs    one line for each, in ascending order of Rel
//	groups    one line for each block of 256 inputs: the bytes of their row groups
//	values    one line for each block: the values of their columns of paths, if there are any
//	index     one line for each block: where it is, its checksum, and what it weighs
//	pointer   where the parts begin, and their checksums
//
// A worker reads the pointer, the header, the index and the blocks with its own inputs; groups
// and values only where these do not say which they are.
// docs/inputs.md describes the lines of inputs.

// listKind is the value of "kind" in the header.
const listKind = "bloomjoin inputs"

const listVersion = 3

// What a reader must know of: inputs are files of tables, columns of these have ids, and rows are deleted by keys.
const (
	needsTables = "tables"
	needsIDs    = "columns by id"
	needsKeys   = "keys of deleted rows"
)

// listBlock is the number of inputs whose lines are read at once.
const listBlock = 256

// listHeader is the first line.
type listHeader struct {
	Kind      string       `json:"kind"`
	Version   int          `json:"version"`
	Needs     []string     `json:"needs,omitempty"` // what a reader must know of beside the version
	Arguments []string     `json:"arguments"`       // the names that were listed, for people
	Base      string       `json:"base,omitempty"`  // see [source.Opening]
	Hive      []listColumn `json:"hive,omitempty"`  // the columns of Values of all inputs, in their order
	Inputs    int          `json:"inputs"`
	Rows      int64        `json:"rows"` // -1: unknown
	Bytes     int64        `json:"bytes"`
	Largest   uint64       `json:"largest"` // weight of a row group
	Digest    string       `json:"digest"`
	Roots     []Root       `json:"roots,omitempty"` // none: too many
	Schemas   []listSchema `json:"schemas,omitempty"`
	LeftOut   []string     `json:"left_out,omitempty"` // Rels of files that exist but are not inputs, in ascending order
	Alike     bool         `json:"alike,omitempty"`    // outputs of some inputs would have the same name
	Tables    []lake.Table `json:"tables,omitempty"`   // that inputs are files of
}

type listColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Root is a directory that was listed, or that has files which were named.
type Root struct {
	Dir   string `json:"dir"`
	Rel   string `json:"rel,omitempty"` // see [Input].RootRel
	Found bool   `json:"found,omitempty"`
}

// maxRoots is the largest number of roots that a header has.
const maxRoots = 64

// listSchema is a schema that inputs have.
type listSchema struct {
	Schema string `json:"schema"`
	First  int    `json:"first"` // number of the first input that has it, from 0
	Inputs int    `json:"inputs"`
}

// listIndex is the line of a block.
type listIndex struct {
	Bytes  int64  `json:"bytes"`  // of all lines of the block
	Sum    string `json:"sum"`    // XXH3-64 of these bytes
	Weight uint64 `json:"weight"` // of all row groups, see [source.AppendWeights]
	Groups int64  `json:"groups"` // their number

	at     int64  // offset of the first line
	before uint64 // weight of the blocks before
}

// listRun says that consecutive inputs have the same values of the columns of paths.
type listRun struct {
	Inputs int        `json:"inputs"`
	Of     pathValues `json:"of"`
}

// listPointer is the last line.
type listPointer struct {
	at   [4]int64  // where inputs, groups, values and index begin
	sums [3]uint64 // XXH3-64 of groups; of values; of header, index and the pointer before it
}

// pointerText is the format of the last line. Its length is the same in all lists.
const pointerText = `{"inputs_at":%20d,"groups_at":%20d,"values_at":%20d,"index_at":%20d,"groups_sum":"%016x","values_sum":"%016x","sum":"%016x"}` + "\n"

var pointerSize = int64(len(new(listPointer).text()))

func (p *listPointer) text() string {
	return fmt.Sprintf(pointerText, p.at[0], p.at[1], p.at[2], p.at[3], p.sums[0], p.sums[1], p.sums[2])
}

// sumOf returns the last checksum.
func (p listPointer) sumOf(head, index []byte) uint64 {
	h := xxh3.New()
	_, _ = h.Write(head)
	_, _ = h.Write(index)
	p.sums[2] = 0
	_, _ = h.WriteString(p.text())
	return h.Sum64()
}

// Write writes a list with all of its inputs, chosen or not. An object with the same content
// is left alone; another one is replaced if replace is true, and otherwise an error that wraps
// [publish.ErrExists]. If dst is nil, the list is written to the local file system.
func Write(ctx context.Context, dst storage.Storage, name string, list *List, replace bool) (size int64, err error) {
	source.NeedContext(ctx)
	file := list.file()
	if file == noInputs {
		return 0, fmt.Errorf("%s: the list of inputs is nil or empty (make it with ListInputs or ReadInputs)", name)
	}
	if dst == nil {
		dst = storage.Local()
	}
	if err := objects.Sweep(ctx, dst, name); err != nil {
		return 0, err
	}
	same, err := file.isAt(ctx, dst, name)
	if err != nil || same {
		return file.size, err
	}
	w, err := dst.Create(ctx, name, storage.CreateOptions{})
	if err != nil {
		return 0, err
	}
	defer faults.Join(&err, w.Abort)
	if _, err := io.Copy(w, io.NewSectionReader(file.r, 0, file.size)); err != nil {
		return 0, err
	}
	err = w.Commit(replace)
	if !replace && errors.Is(err, fs.ErrExist) {
		err = faults.Errorf("%s: %w, and lists other inputs ({Force} replaces it)", name, publish.ErrExists)
	}
	return file.size, err
}

// isAt reports whether an object has the content of the list.
func (l *inputFile) isAt(ctx context.Context, src storage.Source, name string) (_ bool, err error) {
	r, err := src.Open(ctx, storage.Object{Name: name})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer faults.Join(&err, r.Close)
	if r.Object().Size != l.size {
		return false, nil
	}
	got, want := make([]byte, min(l.size, 1<<20)), make([]byte, min(l.size, 1<<20))
	for at := int64(0); at < l.size; at += int64(len(got)) {
		n := min(l.size-at, int64(len(got)))
		if err := readAll(r, got[:n], at); err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		if err := readAll(l.r, want[:n], at); err != nil {
			return false, l.err(err)
		}
		if !bytes.Equal(got[:n], want[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// appendLine appends v as a line of JSON.
func appendLine(b []byte, v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return append(b, buf.Bytes()...), err
}

// inputList puts a list together, input by input.
type inputList struct {
	header  listHeader
	hive    []hive.Column
	parts   [3]*spill.Bytes // lines, groups and values: a log may have a million files
	sums    [2]*xxh3.Hasher // of groups and values
	last    string          // Rel
	stems   []string        // that begin last
	schemas map[string]int
	roots   map[Root]bool
	digest  *Digest
	sum     *xxh3.Hasher // of the lines of the block
	block   listIndex
	groups  [][]int64 // of the block
	values  []listRun // of the block
	index   []byte
}

// waitingList describes a spool in errors.
const waitingList fault.Text = "the list of inputs that waits on disk (let TMPDIR name a directory with room)"

func newInputList(arguments []string, o *source.Opening, tables []*source.TableVersion) *inputList {
	l := &inputList{
		header: listHeader{Kind: listKind, Version: listVersion, Base: publish.EscapeName(o.Base)}, digest: NewDigest(),
		sums: [2]*xxh3.Hasher{xxh3.New(), xxh3.New()}, schemas: map[string]int{}, roots: map[Root]bool{}, sum: xxh3.New(),
	}
	l.header.Arguments = append([]string{}, each.Slice(arguments, publish.EscapeName)...)
	if o.Layout != nil {
		l.hive = o.Layout.Columns
	}
	for _, c := range l.hive {
		l.header.Hive = append(l.header.Hive, listColumn{c.Name, keys.TypeName(c.Type)})
	}
	for _, t := range tables {
		l.header.Tables, l.header.Needs = append(l.header.Tables, t.Table.Named(publish.EscapeName)), []string{needsTables}
	}
	if slices.ContainsFunc(tables, func(t *source.TableVersion) bool { return t.ByID }) {
		l.header.Needs = append(l.header.Needs, needsIDs)
	}
	if slices.ContainsFunc(tables, func(t *source.TableVersion) bool { return t.Keys != nil }) {
		l.header.Needs = append(l.header.Needs, needsKeys)
	}
	for i := range l.parts {
		l.parts[i] = spill.NewBytes(waitingList)
	}
	return l
}

func (l *inputList) close() error {
	return errors.Join(each.Slice(l.parts[:], (*spill.Bytes).Close)...)
}

// add adds an input, which follows the others in order of Rel. line is its line; nil: it has none yet.
func (l *inputList) add(in *Input, line []byte) (err error) {
	switch {
	case in.Print == nil:
		return faults.Unsupported(fault.At{File: in.Name}, "an input without an identity in a list of inputs").WithHint("write it to a file first")
	case !slices.EqualFunc(in.Values, l.hive, func(v dataset.PartitionValue, c hive.Column) bool {
		return v.Name == c.Name && arrow.TypeEqual(v.Type, c.Type)
	}):
		return fmt.Errorf("%s: an input with other columns in its path than the list has", in.Name)
	case in.Rel < l.last:
		return fmt.Errorf("%s: input %d of the list is not in ascending order of Rel", in.Name, l.header.Inputs)
	}
	l.count(in)
	if line == nil {
		if line, err = appendLine(nil, in.named(publish.EscapeName)); err != nil {
			return err
		}
	}
	_, _ = l.sum.Write(line)
	if _, err := l.parts[0].Write(line); err != nil {
		return err
	}
	l.block.Bytes += int64(len(line))
	bytes := make([]int64, 0, len(in.Groups))
	for _, g := range in.Groups {
		bytes = append(bytes, g[1])
	}
	l.groups = append(l.groups, bytes)
	if last := len(l.values) - 1; last >= 0 && slices.Equal(l.values[last].Of, in.Values) {
		l.values[last].Inputs++
	} else {
		l.values = append(l.values, listRun{1, in.Values})
	}
	if l.header.Inputs%listBlock == 0 {
		return l.endBlock()
	}
	return nil
}

// count adds an input to the header, and to the facts of its block.
func (l *inputList) count(in *Input) {
	h := &l.header
	stem := source.StemOf(in.Rel)
	// Rels that begin with a stem follow each other.
	l.stems = slices.DeleteFunc(l.stems, func(s string) bool { return !strings.HasPrefix(in.Rel, s) })
	h.Alike = h.Alike || slices.Contains(l.stems, stem)
	l.stems, l.last = append(l.stems, stem), in.Rel
	root := Root{Dir: address.Parent(in.Name), Rel: in.RootRel}
	if in.Root != nil {
		root.Dir, root.Found = *in.Root, true
	}
	if len(l.roots) <= maxRoots {
		l.roots[root] = true
	}
	at, ok := l.schemas[in.Schema]
	if !ok {
		at = len(h.Schemas)
		l.schemas[in.Schema], h.Schemas = at, append(h.Schemas, listSchema{Schema: in.Schema, First: h.Inputs})
	}
	h.Schemas[at].Inputs++
	h.Inputs++
	h.Bytes += in.Size
	if rows := in.rows(); rows < 0 || h.Rows < 0 {
		h.Rows = -1
	} else {
		h.Rows += rows
	}
	l.digest.Input(in)
	l.block.Groups += int64(len(in.Groups))
	for _, w := range in.weights(nil) {
		h.Largest, l.block.Weight = max(h.Largest, uint64(w)), min(l.block.Weight+uint64(w), source.MaxWeight)
	}
}

// endBlock writes what is known of a block beside its lines.
func (l *inputList) endBlock() (err error) {
	if len(l.groups) == 0 {
		return nil
	}
	l.block.Sum = fmt.Sprintf("%016x", l.sum.Sum64())
	if l.index, err = appendLine(l.index, &l.block); err != nil {
		return err
	}
	parts := []any{l.groups, l.values}
	if len(l.hive) == 0 {
		parts = parts[:1]
	}
	for i, of := range parts {
		line, err := appendLine(nil, of)
		_, _ = l.sums[i].Write(line)
		if err == nil {
			_, err = l.parts[1+i].Write(line)
		}
		if err != nil {
			return err
		}
	}
	l.sum.Reset()
	l.block, l.groups, l.values = listIndex{}, l.groups[:0], l.values[:0]
	return nil
}

// open returns the list as a reader of its file would have it. Its lines stay in the
// spool.
func (l *inputList) open(leftOut []string) (*List, error) {
	if err := l.endBlock(); err != nil {
		return nil, err
	}
	l.header.LeftOut = each.Slice(leftOut, publish.EscapeName)
	if len(l.roots) <= maxRoots {
		for root := range l.roots {
			root.Dir, root.Rel = publish.EscapeName(root.Dir), publish.EscapeName(root.Rel)
			l.header.Roots = append(l.header.Roots, root)
		}
		slices.SortFunc(l.header.Roots, func(a, b Root) int { return cmp.Or(cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Rel, b.Rel)) })
	}
	sum, _ := l.digest.Sum()
	l.header.Digest = hex.EncodeToString(sum[:])
	head, err := appendLine(nil, &l.header)
	if err != nil {
		return nil, err
	}
	p := listPointer{sums: [3]uint64{l.sums[0].Sum64(), l.sums[1].Sum64()}}
	all := framed{bytes.NewReader(head)}
	p.at[0] = int64(len(head))
	for i, part := range l.parts {
		if err := part.Flush(); err != nil {
			return nil, err
		}
		all, p.at[i+1] = append(all, part), p.at[i]+part.Size()
	}
	p.sums[2] = p.sumOf(head, l.index)
	tail := append(l.index, p.text()...)
	in, err := openInputs("the list of inputs", append(all, bytes.NewReader(tail)), p.at[3]+int64(len(tail)))
	if err == nil {
		in.list.close = l.close
	}
	return in, err
}

// framed reads several parts one after the other.
type framed []interface {
	io.ReaderAt
	Size() int64
}

// ReadAt implements [io.ReaderAt].
func (f framed) ReadAt(b []byte, off int64) (n int, err error) {
	for _, part := range f {
		if off >= part.Size() {
			off -= part.Size()
			continue
		}
		want := min(int64(len(b)-n), part.Size()-off)
		if err := readAll(part, b[n:n+int(want)], off); err != nil {
			return n, err
		}
		n, off = n+int(want), 0
		if n == len(b) {
			return n, nil
		}
	}
	return n, io.EOF
}
