package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// Lines that are answered at once, if they come faster than they are answered.
const (
	linesAtOnce = 1 << 12
	bytesAtOnce = 1 << 20
	longBatch   = 4 * bytesAtOnce // more bytes have a long row, for which there is memory once
)

// answered is text that is answered row by row.
type answered interface {
	// Next returns the text of the next row, with its line end.
	Next() ([]byte, error)
	// Ready reports whether Next will certainly not wait.
	Ready() bool
	Line() int
	Offset() int64
	Compressed() bool
	Resume(line int)
	// Value returns the text of a key column of the row, false if it is NULL.
	Value(key int) (text []byte, ok bool, err error)
	Close() error
}

// tableRows are rows of CSV or TSV, or lines.
type tableRows struct {
	*text.Rows
	columns []int // of the keys
}

func (t tableRows) Value(key int) ([]byte, bool, error) {
	value, ok := t.Rows.Value(t.columns[key])
	return value, ok, nil
}

// lineProber asks a filter about rows of text. Texts are keys of the filter's class:
// numbers by value, others as scan --key COL::TYPE casts them.
type lineProber struct {
	*prober
	lineReader
	masks map[bool]string // with a mask: what is written for a row, by whether it passes

	// Ways to encode a batch. Integers that all fit into 64 bits are encoded faster than other
	// numbers.
	integers, exact lineForm

	*lineBatch // that is answered
}

// lineReader reads rows of text while others are answered.
type lineReader struct {
	in     answered
	width  int             // columns of the keys
	direct bool            // keys are text themselves, which needs no columns
	free   chan *lineBatch // that can be filled
	asked  sync.WaitGroup  // batches that are sent and not answered
}

// lineBatch is rows that are answered together.
type lineBatch struct {
	text  []byte   // rows with their line ends
	ends  []int    // of the rows in text
	lines []int    // their numbers
	keys  [][]byte // by key column: the texts of all rows
	parts [][]part // by key column and row
	plain []byte   // with direct: the keys, each after its length
	keyed []int    // with direct: the rows that have a key
	more  bool     // the next row is there, and was not waited for
	err   error    // why there are no more

	offset int64 // after the last row, and its line
	line   int
}

// part is the text of a value, in lineBatch.keys.
type part struct {
	from, to int
	there    bool // false: NULL
}

// lineForm makes keys of texts.
type lineForm struct {
	schema  *arrow.Schema
	columns []keys.Column
	enc     *keys.Encoder
}

// texts answers rows of text with rows: with the same bytes if the row may match or, with a
// mask, a word.
func (p *prober) texts(ctx context.Context, in io.Reader, format string, guessed bool) (err error) {
	l := &lineProber{prober: p}
	l.width = len(p.columns)
	l.direct = len(p.columns) == 1 && p.columns[0].Cast == nil && p.options.Classes[0] == p.options.Rule.Class(keys.Bytes)
	if l.integers, err = p.lineForm(true); err != nil {
		return err
	}
	if l.exact, err = p.lineForm(false); err != nil {
		return err
	}
	if err = l.open(io.NopCloser(in), format, guessed); err != nil {
		return err
	}
	var failed error
	err = l.each(ctx, func(b *lineBatch) error {
		l.lineBatch = b
		failed = l.answer()
		return failed
	})
	if failed != nil {
		return failed
	}
	if err = cmp.Or(p.out.Flush(), err); err != nil {
		return err
	}
	if o, ok := l.in.(*text.Objects); ok {
		for i, c := range p.columns {
			if !o.Seen(i) && p.rowsIn > 0 {
				p.warn("%s: no line has the key %s, so that none matches (name another with --key)", p.name, c.Path)
			}
		}
	}
	return nil
}

// open opens the rows, and writes their header.
func (l *lineProber) open(in io.ReadCloser, format string, guessed bool) error {
	l.masks = map[bool]string{false: "0\n", true: "1\n"}
	if format == probeNDJSON {
		l.masks = map[bool]string{false: "false\n", true: "true\n"}
	}
	rows, header, err := openAnswered(in, l.name, format, l.columns, l.by, l.options.IgnoreCase, guessed, l.memory)
	if l.in = rows; err == nil && !l.mask {
		_, err = l.out.Write(header)
	}
	return err
}

// openAnswered opens rows of text with some columns, and returns the text of their header.
func openAnswered(in io.ReadCloser, name, format string, columns []keys.Column, by byte, ignoreCase, guessed bool, memory int64) (answered, []byte, error) {
	if format == probeNDJSON {
		paths := each.Slice(columns, func(c keys.Column) []string { return c.Path })
		o, err := text.NewObjects(in, name, paths, ignoreCase, memory)
		return o, nil, err
	}
	if format == probeLines && len(columns) > 1 {
		return nil, nil, flags.Usagef("--key %s: a line is one value, and the key has %d columns (for lines of CSV, add --format csv)", keys.ColumnsString(columns), len(columns))
	}
	rows, err := text.NewRows(in, name, textFormats[format], by, columns[0].Name(), guessed, memory)
	if err != nil {
		return nil, nil, err
	}
	t := tableRows{rows, []int{0}}
	if format != probeLines {
		if t.columns, err = columnsIn(name, rows.Columns(), columns, ignoreCase); err != nil {
			return nil, nil, errors.Join(err, rows.Close())
		}
	}
	return t, rows.Header(), nil
}

// textFormats are the formats of rows that have columns.
var textFormats = map[string]text.Format{probeLines: text.Lines, probeCSV: text.CSV, probeTSV: text.TSV}

// columnsIn returns the positions of columns among names.
func columnsIn(file string, names []string, columns []keys.Column, ignoreCase bool) (at []int, err error) {
	about := arrow.NewMetadata([]string{keys.HasHeader}, []string{"true"})
	schema := arrow.NewSchema(textSchema(names).Fields(), &about)
	for _, c := range columns {
		f, err := c.Resolve(schema, ignoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		at = append(at, f.Index[0])
	}
	return at, nil
}

// textSchema returns the schema of columns of text.
func textSchema(names []string) *arrow.Schema {
	return arrow.NewSchema(each.Slice(names, func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
	}), nil)
}

// lineForm returns the form in which the keys of lines are encoded: as text with a cast, or
// with integers set, columns of integers as such.
func (p *prober) lineForm(integers bool) (f lineForm, err error) {
	var fields []arrow.Field
	for i, c := range p.columns {
		column := keys.Column{Path: keys.Path{strconv.Itoa(i)}, Cast: c.Cast}
		var typ arrow.DataType = arrow.BinaryTypes.String
		if i < len(p.options.Classes) && c.Cast == nil {
			class, ok := p.options.Classes[i], true
			switch {
			case class == keys.Integer && integers:
				typ = arrow.PrimitiveTypes.Int64
			case class != keys.Null:
				column.Cast, ok = keys.TextType(class, p.options.Rule)
			}
			if !ok {
				return f, faults.Unsupported(fault.At{File: p.name, Column: c.String()}, "a key of class %s in text", class).
					WithHint("write an Arrow stream")
			}
		}
		fields = append(fields, arrow.Field{Name: column.Path[0], Type: typ, Nullable: true})
		f.columns = append(f.columns, column)
	}
	f.schema = arrow.NewSchema(fields, nil)
	if f.enc, err = keys.NewEncoder(f.schema, f.columns, p.options); err != nil {
		return f, fmt.Errorf("%s: %w", p.name, err)
	}
	at := fault.At{File: p.name, Column: keys.ColumnsString(p.columns)}
	return f, keys.Match(at, keys.Side{Classes: p.options.Classes}, keys.Side{Columns: p.columns, Classes: f.enc.Classes()})
}

// each calls fn with one batch after another, which is valid until it returns. After an error,
// the last one has the rows before it.
func (l *lineReader) each(ctx context.Context, fn func(*lineBatch) error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for b := range l.batches(ctx) {
		failed := fn(b)
		err = b.err
		if b.long() {
			b = newLineBatch(l.width)
		}
		l.free <- b // which has room for all
		l.asked.Done()
		if failed != nil {
			return failed
		}
	}
	if err == nil { // the last batch has one, unless it did not come
		err = ctx.Err()
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// batches reads rows while others are answered. The last batch says why there are no more,
// unless ctx ends before. The goroutine ends with the input or with ctx; if it is blocked in a
// read then, it ends when standard input does, and the command does not wait for it.
func (l *lineReader) batches(ctx context.Context) <-chan *lineBatch {
	const atOnce = 3 // one is read, one is answered, and one waits
	full := make(chan *lineBatch)
	l.free = make(chan *lineBatch, atOnce)
	for range atOnce {
		l.free <- newLineBatch(l.width)
	}
	go func() {
		defer close(full)
		defer func() { _ = l.in.Close() }() // nothing was written
		for {
			var b *lineBatch
			select {
			case b = <-l.free:
			case <-ctx.Done():
				return
			}
			b.err = b.fill(l.in, l.direct)
			b.more = b.err == nil && l.in.Ready()
			last, long := b.err != nil, b.long() // b is not the goroutine's any more once it is sent
			l.asked.Add(1)
			select {
			case full <- b:
			case <-ctx.Done():
				return
			}
			if last {
				return
			}
			if long {
				l.asked.Wait()
			}
		}
	}()
	return full
}

func newLineBatch(columns int) *lineBatch {
	return &lineBatch{keys: make([][]byte, columns), parts: make([][]part, columns)}
}

func (b *lineBatch) long() bool { return len(b.text) > longBatch }

// fill reads the rows that there are, at least one.
func (b *lineBatch) fill(in answered, direct bool) error {
	b.text, b.ends, b.lines = b.text[:0], b.ends[:0], b.lines[:0]
	b.plain, b.keyed = b.plain[:0], b.keyed[:0]
	for i := range b.keys {
		b.keys[i], b.parts[i] = b.keys[i][:0], b.parts[i][:0]
	}
	b.offset, b.line = in.Offset(), in.Line()
	for len(b.lines) == 0 || in.Ready() && len(b.lines) < linesAtOnce && len(b.text) < bytesAtOnce {
		row, err := in.Next()
		if err == io.EOF { // past empty lines
			b.offset, b.line = in.Offset(), in.Line()
		}
		if err != nil {
			return err
		}
		if direct {
			err = b.addDirect(in)
		} else {
			err = b.addParts(in)
		}
		if err != nil {
			return err
		}
		b.text = append(b.text, row...)
		b.offset, b.line = in.Offset(), in.Line()
		b.ends, b.lines = append(b.ends, len(b.text)), append(b.lines, b.line)
	}
	return nil
}

// addDirect adds the key of the row, which is text.
func (b *lineBatch) addDirect(in answered) error {
	value, ok, err := in.Value(0)
	if err != nil || !ok {
		return err
	}
	b.plain = append(binary.LittleEndian.AppendUint32(b.plain, uint32(len(value))), value...)
	b.keyed = append(b.keyed, len(b.lines))
	return nil
}

// addParts adds the texts of the row's key columns.
func (b *lineBatch) addParts(in answered) error {
	for i := range b.keys {
		value, ok, err := in.Value(i)
		if err != nil {
			for k := range i {
				b.parts[k] = b.parts[k][:len(b.lines)]
			}
			return err
		}
		from := len(b.keys[i])
		b.keys[i] = append(b.keys[i], value...)
		b.parts[i] = append(b.parts[i], part{from, len(b.keys[i]), ok})
	}
	return nil
}

// answer writes the answer to the batch, and flushes it if the input pauses.
func (l *lineProber) answer() error {
	if len(l.lines) == 0 {
		return nil
	}
	if err := l.pass(); err != nil {
		return err
	}
	n := len(l.lines)
	drop := l.rows
	if !l.invert {
		drop = others(l.rows, n)
	}
	var err error
	if !l.mask {
		err = l.write(l.out, drop)
	} else {
		for _, hit := range marked(l.rows, n) {
			_, err = l.out.WriteString(l.masks[hit]) // the first error stays
		}
	}
	if err != nil {
		return err
	}
	l.count(int64(n), int64(n-len(drop)))
	if l.more {
		return nil
	}
	return l.out.Flush()
}

// write writes the rows without some.
func (b *lineBatch) write(out io.Writer, drop []int) error {
	from := 0
	for _, row := range drop {
		to := 0
		if row > 0 {
			to = b.ends[row-1]
		}
		if _, err := out.Write(b.text[from:to]); err != nil {
			return err
		}
		from = b.ends[row]
	}
	_, err := out.Write(b.text[from:])
	return err
}

// pass sets rows to those of the batch that may match.
func (l *lineProber) pass() error {
	l.rows = l.rows[:0]
	if l.direct {
		l.batch.SetBytes(l.plain, len(l.keyed), l.options.Rule)
		err := l.ask(0)
		for i, key := range l.rows {
			l.rows[i] = l.keyed[key]
		}
		l.keysNull += int64(len(l.lines) - len(l.keyed))
		return err
	}
	form := &l.integers
	rec, ok := l.record(form.schema)
	if !ok {
		form = &l.exact
		rec, _ = l.record(form.schema)
	}
	defer rec.Release()
	if err := form.enc.Encode(rec, &l.batch); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	if l.batch.Fit(fault.At{}, form.columns) != nil {
		return l.misfit(form, rec)
	}
	return l.ask(0)
}

// record returns the texts of the batch as columns. ok is false if one is not an integer of
// 64 bits, and its column is to be of integers.
func (b *lineBatch) record(schema *arrow.Schema) (rec arrow.Record, ok bool) {
	build := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer build.Release()
	for i, parts := range b.parts {
		for _, p := range parts {
			if !p.there {
				build.Field(i).AppendNull()
				continue
			}
			value := b.keys[i][p.from:p.to]
			switch to := build.Field(i).(type) {
			case *array.StringBuilder:
				to.BinaryBuilder.Append(value)
			case *array.Int64Builder:
				n, err := strconv.ParseInt(string(value), 10, 64)
				if err != nil {
					return nil, false
				}
				to.Append(n)
			}
		}
	}
	return build.NewRecord(), true
}

// misfit returns the error about the first line of the batch with a value that is not of
// its column's type.
func (l *lineProber) misfit(form *lineForm, rec arrow.Record) error {
	var b keys.Batch
	for i, line := range l.lines {
		one := rec.NewSlice(int64(i), int64(i)+1)
		err := form.enc.Encode(one, &b)
		one.Release()
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		at := fault.At{File: l.name, Line: line}
		if b.Fit(at, form.columns) == nil {
			continue
		}
		if slices.ContainsFunc(l.columns, func(c keys.Column) bool { return c.Cast != nil }) {
			return keys.Misfit(at, l.columns, len(l.lines) > 1)
		}
		at.Column = keys.ColumnsString(l.columns)
		return faults.Of(cause.BadValue, faults.Mismatch(at, "a value that does not parse", strings.Join(l.filter.KeyClasses(), ", ")+" (the filter)", "")).
			WithHint("mend the value, or leave the line out; another column is named with {Key}")
	}
	return fmt.Errorf("%s: a value is of another kind than the filter's keys", l.name) // not reached: some line has it
}
