package inputs

import (
	"bufio"
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
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A list of inputs is a file of JSON lines:
//
//	header    what the list is, the columns of paths, totals
//	inputs    one line for each, in ascending order of Rel
//	blocks    one line for each 256 inputs: where they are, their checksum, and what
//	          a worker needs of inputs that it does not read
//	pointer   where the blocks begin, and a checksum of header and blocks
//
// A worker reads the pointer, the header, the blocks and the lines of its own inputs.
// docs/inputs.md describes the lines of inputs.

// listKind is the value of "kind" in the header.
const listKind = "bloomjoin inputs"

const listVersion = 2

// listBlock is the number of inputs whose lines are read at once.
const listBlock = 256

// inputList is what a list of inputs records.
type inputList struct {
	arguments []string      // the names that were listed, for people
	base      string        // see [source.Opening]
	hive      []hive.Column // the columns of Values of all inputs, in their order
	inputs    int           // their number
	spool     *spill.Bytes  // has their lines: a log may have a million files
	unsorted  bool          // these are not in ascending order of Rel
	last      string        // Rel
	leftOut   []string      // Rels of files that exist but are not inputs, in ascending order
}

// listHeader is the first line.
type listHeader struct {
	Kind      string       `json:"kind"`
	Version   int          `json:"version"`
	Arguments []string     `json:"arguments"`
	Base      string       `json:"base,omitempty"`
	Hive      []listColumn `json:"hive,omitempty"`
	Inputs    int          `json:"inputs"`
	Rows      int64        `json:"rows"` // -1: unknown
	Bytes     int64        `json:"bytes"`
	Digest    string       `json:"digest"`
	Schemas   []listSchema `json:"schemas,omitempty"`
	LeftOut   []string     `json:"left_out,omitempty"`
	Alike     bool         `json:"alike,omitempty"` // outputs of some inputs would have the same name
}

type listColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// listSchema is a schema that inputs have.
type listSchema struct {
	Schema string `json:"schema"`
	First  int    `json:"first"` // number of the first input that has it, from 0
	Inputs int    `json:"inputs"`
}

// listIndex is the line of a block.
type listIndex struct {
	Block  int       `json:"block"` // number of its first input, from 0
	At     int64     `json:"at"`    // offset of that input's line
	Bytes  int64     `json:"bytes"` // of all lines of the block
	Sum    string    `json:"sum"`   // XXH3-64 of these bytes
	Groups [][]int64 `json:"groups"`
	Values []listRun `json:"values,omitempty"`
}

// listRun says that consecutive inputs have the same values of the columns of paths.
type listRun struct {
	Inputs int        `json:"inputs"`
	Of     pathValues `json:"of"`
}

// pointerText is the format of the last line. Its length is the same in all lists.
const pointerText = `{"blocks_at":%20d,"sum":"%016x"}` + "\n"

var pointerSize = int64(len(fmt.Sprintf(pointerText, 0, 0)))

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

// check returns an error if an input cannot be recorded.
func (l *inputList) check(in *Input) error {
	switch {
	case in.Print == nil:
		return faults.Unsupported(fault.At{File: in.Name}, "an input without an identity in a list of inputs").WithHint("write it to a file first")
	case !slices.EqualFunc(in.Values, l.hive, func(v dataset.PartitionValue, c hive.Column) bool {
		return v.Name == c.Name && arrow.TypeEqual(v.Type, c.Type)
	}):
		return fmt.Errorf("%s: an input with other columns in its path than the list has", in.Name)
	}
	return nil
}

// add adds an input to the index of its block.
func (x *listIndex) add(in *Input) {
	groups := make([]int64, 0, len(in.Groups))
	for _, g := range in.Groups {
		groups = append(groups, g[1])
	}
	x.Groups = append(x.Groups, groups)
	if len(in.Values) > 0 {
		x.Values = addRun(x.Values, listRun{1, in.Values})
	}
}

// addRun adds a run, to the last one if it has the same values.
func addRun(runs []listRun, r listRun) []listRun {
	if last := len(runs) - 1; last >= 0 && slices.Equal(runs[last].Of, r.Of) {
		runs[last].Inputs += r.Inputs
		return runs
	}
	return append(runs, r)
}

// spooled is an input whose line is in a list's spool.
type spooled struct {
	rel string
	at  int64
	n   int
}

// waitingList describes a spool in errors.
const waitingList fault.Text = "the list of inputs that waits on disk (let TMPDIR name a directory with room)"

func newInputList(arguments []string, base string) *inputList {
	return &inputList{arguments: arguments, base: base, spool: spill.NewBytes(waitingList)}
}

// add adds an input.
func (l *inputList) add(in Input) error {
	if err := l.check(&in); err != nil {
		return err
	}
	line, err := appendLine(nil, in.named(publish.EscapeName))
	if err != nil {
		return err
	}
	l.unsorted = l.unsorted || in.Rel < l.last
	l.last, l.inputs = in.Rel, l.inputs+1
	_, err = l.spool.Write(line)
	return err
}

// open returns the list as a reader of its file would have it. Its lines stay in the
// spool.
func (l *inputList) open(ctx context.Context) (*List, error) {
	err := l.spool.Flush()
	if err == nil && l.unsorted {
		err = l.sort()
	}
	if err != nil {
		return nil, err
	}
	return l.assemble(ctx)
}

// lines reads the lines from the first on.
func (l *inputList) lines() *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(l.spool, 0, l.spool.Size()), 256<<10)
}

// sort puts the lines in ascending order of Rel.
func (l *inputList) sort() (err error) {
	var inputs []spooled
	r, at := l.lines(), int64(0)
	for range l.inputs {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return err
		}
		in, err := l.parser().input(line)
		if err != nil {
			return err
		}
		inputs = append(inputs, spooled{in.Rel, at, len(line)})
		at += int64(len(line))
	}
	slices.SortStableFunc(inputs, func(a, b spooled) int { return cmp.Compare(a.rel, b.rel) })
	from := l.spool
	l.spool = spill.NewBytes(waitingList)
	defer faults.Join(&err, from.Close)
	var line []byte
	for _, in := range inputs {
		line = slices.Grow(line[:0], in.n)[:in.n]
		if err := readAll(from, line, in.at); err != nil {
			return err
		}
		if _, err := l.spool.Write(line); err != nil {
			return err
		}
	}
	return l.spool.Flush()
}

// parser parses the list's lines.
func (l *inputList) parser() *inputFile { return &inputFile{hive: l.hive} }

// assemble puts the header before the lines, and index and pointer after them.
func (l *inputList) assemble(ctx context.Context) (*List, error) {
	a := newAssembly(l)
	r := l.lines()
	for i := range l.inputs {
		if i%listBlock == 0 {
			if err := stopped.Err(ctx); err != nil {
				return nil, err
			}
		}
		if err := a.line(r, i); err != nil {
			return nil, err
		}
	}
	head, tail, err := a.finish()
	if err != nil {
		return nil, err
	}
	size := int64(len(head)) + l.spool.Size() + int64(len(tail))
	in, err := openInputs("the list of inputs", &framed{head, l.spool, l.spool.Size(), tail}, size)
	if err == nil {
		in.list.close = l.spool.Close
	}
	return in, err
}

// assembly is what the lines say for header and index.
type assembly struct {
	list    *inputList
	parser  *inputFile
	at      int64  // of the next line among the lines
	last    string // Rel
	header  *listHeader
	schemas map[string]int
	stems   map[[16]byte]bool // hashes
	digest  *Digest
	sum     *xxh3.Hasher // of the block
	block   listIndex
	index   []byte // of complete blocks, whose offsets lack the header
}

func newAssembly(l *inputList) *assembly {
	h := &listHeader{Kind: listKind, Version: listVersion, Arguments: []string{}, Base: publish.EscapeName(l.base), Inputs: l.inputs}
	h.Arguments = append(h.Arguments, each.Slice(l.arguments, publish.EscapeName)...)
	h.LeftOut = each.Slice(l.leftOut, publish.EscapeName)
	for _, c := range l.hive {
		h.Hive = append(h.Hive, listColumn{c.Name, keys.TypeName(c.Type)})
	}
	return &assembly{
		list: l, parser: l.parser(), header: h, digest: NewDigest(),
		schemas: map[string]int{}, stems: map[[16]byte]bool{}, sum: xxh3.New(),
	}
}

// line adds the line of input i.
func (a *assembly) line(r *bufio.Reader, i int) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	in, err := a.parser.input(line)
	if err != nil {
		return fmt.Errorf("line %d of the list of inputs: %w", i+1, err)
	}
	if in.Rel < a.last {
		return fmt.Errorf("%s: input %d of the list is not in ascending order of Rel", in.Name, i)
	}
	a.count(&in, i)
	if i%listBlock == 0 {
		a.block = listIndex{Block: i, At: a.at}
	}
	_, _ = a.sum.Write(line)
	a.block.Bytes += int64(len(line))
	a.last, a.at = in.Rel, a.at+int64(len(line))
	a.block.add(&in)
	if i%listBlock < listBlock-1 && i < a.list.inputs-1 {
		return nil
	}
	a.block.Sum = fmt.Sprintf("%016x", a.sum.Sum64())
	a.sum.Reset()
	a.index, err = appendLine(a.index, &a.block)
	return err
}

// count adds an input to the header.
func (a *assembly) count(in *Input, i int) {
	h := a.header
	stem := xxh3.HashString128(source.StemOf(in.Rel)).Bytes()
	h.Alike = h.Alike || a.stems[stem]
	a.stems[stem] = true
	at, ok := a.schemas[in.Schema]
	if !ok {
		at = len(h.Schemas)
		a.schemas[in.Schema], h.Schemas = at, append(h.Schemas, listSchema{Schema: in.Schema, First: i})
	}
	h.Schemas[at].Inputs++
	h.Bytes += in.Size
	if rows := in.rows(); rows < 0 || h.Rows < 0 {
		h.Rows = -1
	} else {
		h.Rows += rows
	}
	a.digest.Input(in)
}

// finish returns what stands before the lines and after them.
func (a *assembly) finish() (head, tail []byte, err error) {
	sum, _ := a.digest.Sum()
	a.header.Digest = hex.EncodeToString(sum[:])
	if head, err = appendLine(nil, a.header); err != nil {
		return nil, nil, err
	}
	for line := range bytes.Lines(a.index) {
		var block listIndex
		if err := json.Unmarshal(line, &block); err != nil {
			return nil, nil, err
		}
		block.At += int64(len(head))
		if tail, err = appendLine(tail, &block); err != nil {
			return nil, nil, err
		}
	}
	h := xxh3.New()
	_, _ = h.Write(head)
	_, _ = h.Write(tail)
	return head, fmt.Appendf(tail, pointerText, int64(len(head))+a.list.spool.Size(), h.Sum64()), nil
}

// framed reads bytes between others.
type framed struct {
	head  []byte
	lines io.ReaderAt
	size  int64 // of the lines
	tail  []byte
}

// ReadAt implements [io.ReaderAt].
func (f *framed) ReadAt(b []byte, off int64) (n int, err error) {
	for _, part := range []struct {
		r    io.ReaderAt
		size int64
	}{{bytes.NewReader(f.head), int64(len(f.head))}, {f.lines, f.size}, {bytes.NewReader(f.tail), int64(len(f.tail))}} {
		if off >= part.size {
			off -= part.size
			continue
		}
		want := min(int64(len(b)-n), part.size-off)
		if err := readAll(part.r, b[n:n+int(want)], off); err != nil {
			return n, err
		}
		n, off = n+int(want), 0
		if n == len(b) {
			return n, nil
		}
	}
	return n, io.EOF
}
