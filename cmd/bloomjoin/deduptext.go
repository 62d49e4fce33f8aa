package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/dedups"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// textBatch is rows of text with the texts of their key and time columns.
type textBatch struct {
	in    answered
	text  []byte
	ends  []int
	lines []int
	build *array.RecordBuilder

	offset int64 // after the last row, and its line
	line   int
}

// text passes on rows of text as they are.
func (s *dedupStream) text(ctx context.Context, in io.Reader, name string, guessed bool, fn func(*passing) error) error {
	if s.format == probeLines && len(s.of.Time) > 0 {
		return flags.Usagef("--time %s: a line is one value, the key (for lines of CSV, add --format csv)", s.o.time)
	}
	columns := slices.Concat(s.of.Key, s.of.Time)
	rows, base, err := s.openText(in, name, columns, guessed)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // nothing was written
	fields := make([]arrow.Field, len(columns))
	of := s.of
	of.Key, of.Time = slices.Clone(s.of.Key), slices.Clone(s.of.Time)
	for i, c := range columns {
		field := c.Name()
		if slices.ContainsFunc(fields[:i], func(f arrow.Field) bool { return f.Name == field }) {
			field = fmt.Sprintf("%s (column %d)", field, i+1)
		}
		fields[i] = arrow.Field{Name: field, Type: arrow.BinaryTypes.String, Nullable: true}
		c.Path = keys.Path{field}
		if i < len(of.Key) {
			of.Key[i] = c
		} else {
			of.Time[0] = c
		}
	}
	schema := arrow.NewSchema(fields, nil)
	enc, err := of.NewEncoder(name, schema)
	if err == nil {
		err = s.agree(enc, name)
	}
	if err == nil && s.file != nil {
		err = s.file.Ready()
	}
	if err != nil {
		return err
	}
	b := &textBatch{in: rows, build: array.NewRecordBuilder(memory.DefaultAllocator, schema), offset: rows.Offset(), line: rows.Line()}
	defer b.build.Release()
	if s.state != nil {
		s.place = func() error { return s.state.Read(s.known, s.src, base+b.offset, b.line) }
	}
	for err != io.EOF {
		if err := ctx.Err(); err != nil {
			return err
		}
		err = b.fill(len(columns))
		if len(b.ends) > 0 { // also before an error
			if err := b.pass(enc, !rows.Ready(), fn); err != nil {
				return err
			}
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
	b.offset, b.line = rows.Offset(), rows.Line() // past empty lines
	return s.ended(rows, name)
}

// pass calls fn with the batch.
func (b *textBatch) pass(enc *dedups.Encoder, pause bool, fn func(*passing) error) error {
	all := b.build.NewRecord()
	defer all.Release()
	rec := all.NewSlice(0, int64(len(b.ends)))
	defer rec.Release()
	return fn(&passing{enc: enc, rec: rec, write: b.write, line: func(row int) int { return b.lines[row] }, pause: pause})
}

// fill reads the rows that there are, at least one.
func (b *textBatch) fill(columns int) error {
	b.text, b.ends, b.lines = b.text[:0], b.ends[:0], b.lines[:0]
	for len(b.ends) == 0 || b.in.Ready() && len(b.ends) < linesAtOnce && len(b.text) < bytesAtOnce {
		row, err := b.in.Next()
		if err != nil {
			return err
		}
		for i := range columns {
			to := b.build.Field(i).(*array.StringBuilder)
			value, ok, err := b.in.Value(i)
			switch {
			case err != nil:
				for k := i; k < columns; k++ { // a row that the batch does not count
					b.build.Field(k).AppendNull()
				}
				return err
			case ok:
				to.BinaryBuilder.Append(value)
			default:
				to.AppendNull()
			}
		}
		b.text = append(b.text, row...)
		if n := len(row); row[n-1] != '\n' && row[n-1] != '\r' {
			b.text = append(b.text, '\n') // others may follow
		}
		b.offset, b.line = b.in.Offset(), b.in.Line()
		b.ends, b.lines = append(b.ends, len(b.text)), append(b.lines, b.line)
	}
	return nil
}

// write writes the rows that stay.
func (b *textBatch) write(out io.Writer, drop []uint32) error {
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

// openText opens rows of text at the place where a state has left them, and writes their header.
// It returns the position in the input of what the rows count as their first byte.
func (s *dedupStream) openText(in io.Reader, name string, columns []keys.Column, guessed bool) (_ answered, base int64, err error) {
	total, err := s.Total()
	if err != nil {
		return nil, 0, err
	}
	open := func(in io.Reader, guessed bool) (answered, []byte, error) {
		return openAnswered(io.NopCloser(in), name, s.format, columns, s.of.Options.IgnoreCase, guessed, total)
	}
	rows, header, err := open(in, guessed)
	if err != nil {
		return nil, 0, err
	}
	if err := s.writeHeader(name, header); err != nil || s.state == nil {
		return rows, 0, err
	}
	start := make([]byte, 4)
	if n, _ := s.src.ReadAt(start, 0); bytes.HasPrefix(start[:n], []byte("\x1f\x8b")) || bytes.HasPrefix(start[:n], []byte("\x28\xb5\x2f\xfd")) {
		e := faults.Unsupported(fault.At{File: name}, "compressed text with {State}, which cannot be read from a place in it")
		return nil, 0, errors.Join(e.WithHint("give plain text"), rows.Close())
	}
	d := s.state.Find(s.known)
	if d == nil || d.Offset == 0 {
		return rows, 0, nil
	}
	if err := rows.Close(); err != nil {
		return nil, 0, err
	}
	rest := io.NewSectionReader(s.src, d.Offset, s.end-d.Offset)
	if rows, _, err = open(io.MultiReader(bytes.NewReader(header), rest), false); err != nil {
		return nil, 0, err
	}
	line, last := d.Line, make([]byte, 1)
	if _, err := s.src.ReadAt(last, d.Offset-1); err != nil {
		return nil, 0, errors.Join(err, rows.Close())
	} else if last[0] != '\n' {
		line-- // its end comes now
	}
	rows.Resume(line)
	return rows, d.Offset - int64(len(header)), nil
}

// writeHeader writes the header of the first input, which those of others must equal.
func (s *dedupStream) writeHeader(name string, header []byte) error {
	if len(header) == 0 || !s.writing {
		return nil
	}
	names := bytes.TrimRight(header, "\r\n")
	if s.header == nil && s.state != nil && s.state.Length > 0 {
		start, err := s.file.Start(len(names) + 1)
		if err != nil {
			return err
		}
		s.header = bytes.TrimRight(start, "\r\n")
	}
	if s.header == nil {
		s.header = slices.Clone(names)
		if len(names) == len(header) {
			header = append(s.header, '\n')
		}
		_, err := s.out.Write(header)
		return err
	}
	if !bytes.Equal(names, s.header) {
		return faults.Mismatch(fault.At{File: name}, "header", "that of the rows before", "another").WithHint("give files with the same columns")
	}
	return nil
}

// ended ends one input.
func (s *dedupStream) ended(rows answered, name string) error {
	if o, ok := rows.(*text.Objects); ok && s.writing && s.judge != nil && s.judge.RowsIn > 0 {
		for i, c := range slices.Concat(s.of.Key, s.of.Time) {
			if !o.Seen(i) {
				s.Warn("%s: no line has %s, so that all stay (name another with --key or --time)", name, c.Path)
			}
		}
	}
	if s.place == nil {
		return nil
	}
	err := s.place()
	s.place = nil
	return err
}
