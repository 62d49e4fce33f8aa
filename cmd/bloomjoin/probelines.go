package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// Lines that are answered at once, if they come faster than they are answered.
const (
	linesAtOnce = 1 << 12
	bytesAtOnce = 1 << 20
)

// lineProber asks a filter about lines of NDJSON. Texts are keys of the filter's class:
// numbers by value, others as scan --key COL::TYPE casts them.
type lineProber struct {
	*prober
	in *text.Objects

	// Two ways to encode a batch. Integers that all fit into 64 bits are encoded faster.
	integers, exact lineForm

	// The batch.
	text  []byte   // lines with their ends
	ends  []int    // of the lines in text
	lines []int    // their numbers
	keys  [][]byte // by key column: the texts of all lines
	parts [][]part // by key column and line
}

// part is the text of a value, in lineProber.keys.
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

// ndjson answers lines with lines: with the same bytes if the line may match or, with a
// mask, true or false.
func (p *prober) ndjson(ctx context.Context, in io.Reader) (err error) {
	l := &lineProber{prober: p, keys: make([][]byte, len(p.columns)), parts: make([][]part, len(p.columns))}
	if l.integers, err = p.lineForm(true); err != nil {
		return err
	}
	if l.exact, err = p.lineForm(false); err != nil {
		return err
	}
	paths := make([][]string, len(p.columns))
	for i, c := range p.columns {
		paths[i] = c.Path
	}
	if l.in, err = text.NewObjects(io.NopCloser(in), stdinName, paths, p.options.IgnoreCase, p.memory); err != nil {
		return err
	}
	defer func() { _ = l.in.Close() }() // nothing was written
	for err == nil {
		if err = ctx.Err(); err == nil {
			err = l.fill()
		}
		if failed := l.answer(); failed != nil {
			return failed
		}
	}
	if err != io.EOF {
		return err
	}
	for i, c := range p.columns {
		if !l.in.Seen(i) && p.rowsIn > 0 {
			p.warn("%s: no line has the key %s, so that none matches (name another with --key)", stdinName, c.Path)
		}
	}
	return nil
}

// lineTypes are the types that texts are cast to for the filter's class.
var lineTypes = map[keys.Class]string{
	keys.Integer: "decimal(76,38)", keys.Decimal: "decimal(76,38)", keys.Float: "double", keys.Boolean: "boolean",
	keys.Date: "date", keys.Time: "time", keys.Timestamp: "timestamp", keys.Instant: "timestamptz",
}

// lineForm returns the form in which the keys of lines are encoded: as text with a cast, or
// with integers set, columns of integers as such.
func (p *prober) lineForm(integers bool) (f lineForm, err error) {
	var fields []arrow.Field
	for i, c := range p.columns {
		column := keys.Column{Path: keys.Path{strconv.Itoa(i)}, Cast: c.Cast}
		var typ arrow.DataType = arrow.BinaryTypes.String
		if i < len(p.options.Classes) && c.Cast == nil {
			class := p.options.Classes[i]
			switch {
			case class == keys.Integer && integers:
				typ = arrow.PrimitiveTypes.Int64
			case class != keys.Null && class != p.options.Rule.Class(keys.Bytes):
				if column.Cast, err = lineType(class); err != nil {
					return f, faults.Unsupported(fault.At{File: stdinName, Column: c.String()}, "a key of class %s in NDJSON", class).
						WithHint("write an Arrow stream")
				}
			}
		}
		fields = append(fields, arrow.Field{Name: column.Path[0], Type: typ, Nullable: true})
		f.columns = append(f.columns, column)
	}
	f.schema = arrow.NewSchema(fields, nil)
	if f.enc, err = keys.NewEncoder(f.schema, f.columns, p.options); err != nil {
		return f, fmt.Errorf("%s: %w", stdinName, err)
	}
	at := fault.At{File: stdinName, Column: keys.ColumnsString(p.columns)}
	return f, keys.Match(at, keys.Side{Classes: p.options.Classes}, keys.Side{Columns: p.columns, Classes: f.enc.Classes()})
}

// lineType returns the type that texts are cast to for a class.
func lineType(class keys.Class) (arrow.DataType, error) {
	if name, ok := lineTypes[class]; ok {
		return keys.ParseType(name)
	}
	return keys.ParseType(string(class)) // fixed[w]
}

// fill reads the lines that there are, at least one.
func (l *lineProber) fill() error {
	l.text, l.ends, l.lines = l.text[:0], l.ends[:0], l.lines[:0]
	for i := range l.keys {
		l.keys[i], l.parts[i] = l.keys[i][:0], l.parts[i][:0]
	}
	for len(l.lines) == 0 || l.in.Ready() && len(l.lines) < linesAtOnce && len(l.text) < bytesAtOnce {
		line, end, err := l.in.Next()
		if err != nil {
			return err
		}
		for i := range l.keys {
			value, ok, err := l.in.Value(i)
			if err != nil {
				for k := range i {
					l.parts[k] = l.parts[k][:len(l.lines)]
				}
				return err
			}
			from := len(l.keys[i])
			l.keys[i] = append(l.keys[i], value...)
			l.parts[i] = append(l.parts[i], part{from, len(l.keys[i]), ok})
		}
		l.text = append(append(l.text, line...), end...)
		l.ends, l.lines = append(l.ends, len(l.text)), append(l.lines, l.in.Line())
	}
	return nil
}

// answer writes the answer to the batch, and flushes it.
func (l *lineProber) answer() error {
	if len(l.lines) == 0 {
		return nil
	}
	if err := l.pass(); err != nil {
		return err
	}
	from, next := 0, 0
	for i, end := range l.ends {
		hit := next < len(l.rows) && l.rows[next] == i
		if hit {
			next++
		}
		var err error
		switch {
		case l.mask:
			_, err = l.out.WriteString(strconv.FormatBool(hit) + "\n")
		case hit:
			_, err = l.out.Write(l.text[from:end])
		}
		if err != nil {
			return err
		}
		from = end
	}
	l.count(int64(len(l.lines)), int64(len(l.rows)))
	return l.out.Flush()
}

// pass sets rows to those of the batch that may match.
func (l *lineProber) pass() error {
	form := &l.integers
	rec, ok := l.record(form)
	if !ok {
		form = &l.exact
		rec, _ = l.record(form)
	}
	defer rec.Release()
	if err := form.enc.Encode(rec, &l.batch); err != nil {
		return fmt.Errorf("%s: %w", stdinName, err)
	}
	if l.batch.Fit(fault.At{}, form.columns) != nil {
		return l.misfit(form, rec)
	}
	l.rows = l.rows[:0]
	return l.ask(0)
}

// record returns the texts of the batch as columns. ok is false if one is not an integer of
// 64 bits, and its column is to be of integers.
func (l *lineProber) record(form *lineForm) (rec arrow.Record, ok bool) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, form.schema)
	defer b.Release()
	for i, parts := range l.parts {
		for _, p := range parts {
			if !p.there {
				b.Field(i).AppendNull()
				continue
			}
			value := l.keys[i][p.from:p.to]
			switch b := b.Field(i).(type) {
			case *array.StringBuilder:
				b.Append(string(value))
			case *array.Int64Builder:
				n, err := strconv.ParseInt(string(value), 10, 64)
				if err != nil {
					return nil, false
				}
				b.Append(n)
			}
		}
	}
	return b.NewRecord(), true
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
			return fmt.Errorf("%s: %w", stdinName, err)
		}
		at := fault.At{File: stdinName, Line: line}
		if b.Fit(at, form.columns) == nil {
			continue
		}
		if slices.ContainsFunc(l.columns, func(c keys.Column) bool { return c.Cast != nil }) {
			return keys.Misfit(at, l.columns)
		}
		at.Column = keys.ColumnsString(l.columns)
		return faults.Mismatch(at, "a value that does not parse", strings.Join(l.filter.KeyClasses(), ", ")+" (the filter)", "").
			WithHint("cast the key with {Key COL::TYPE}; with {NullMisfits} such values then count as NULL")
	}
	return fmt.Errorf("%s: a value is of another kind than the filter's keys", stdinName) // not reached: some line has it
}
