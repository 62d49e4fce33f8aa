package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/dedups"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

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
	names := make([]string, len(columns))
	for i, c := range columns {
		if names[i] = c.Name(); slices.Contains(names[:i], names[i]) {
			names[i] = fmt.Sprintf("%s (column %d)", names[i], i+1)
		}
		columns[i].Path = keys.Path{names[i]}
	}
	of, schema := s.of, textSchema(names)
	of.Key, of.Time = columns[:len(s.of.Key)], columns[len(s.of.Key):]
	enc, err := of.NewEncoder(name, schema)
	if err == nil {
		err = s.agree(enc, name)
	}
	if err == nil && s.file != nil {
		err = s.file.Ready()
	}
	if err != nil {
		_ = rows.Close() // nothing was written
		return err
	}
	offset, line := rows.Offset(), rows.Line()
	if s.state != nil {
		s.place = func() error { return s.state.Read(s.known, s.src, base+offset, line) }
	}
	r := &lineReader{in: rows, width: len(columns)}
	err = r.each(ctx, func(b *lineBatch) error {
		offset, line = b.offset, b.line
		if len(b.ends) == 0 {
			return nil
		}
		if n := len(b.text); b.text[n-1] != '\n' && b.text[n-1] != '\r' {
			b.text = append(b.text, '\n') // others may follow
			b.ends[len(b.ends)-1]++
		}
		rec, _ := b.record(schema)
		defer rec.Release()
		return fn(&passing{enc: enc, rec: rec, write: b.write, lines: b.lines, pause: !b.more})
	})
	if err != nil {
		return err
	}
	return s.ended(rows, name)
}

// openText opens rows of text at the place where a state has left them, and writes their header.
// It returns the position in the input of what the rows count as their first byte.
func (s *dedupStream) openText(in io.Reader, name string, columns []keys.Column, guessed bool) (_ answered, base int64, err error) {
	total, err := s.Total()
	if err != nil {
		return nil, 0, err
	}
	open := func(in io.Reader, guessed bool) (answered, []byte, error) {
		return openAnswered(io.NopCloser(in), name, s.format, columns, s.o.by, s.of.Options.IgnoreCase, guessed, total)
	}
	rows, header, err := open(in, guessed)
	if err != nil {
		return nil, 0, err
	}
	var d *dedups.Done
	if err = s.writeHeader(name, header); err == nil && s.state != nil {
		d = s.state.Find(s.known)
		if rows.Compressed() {
			err = faults.Unsupported(fault.At{File: name}, "compressed text with {State}, which cannot be read from a place in it").WithHint("give plain text")
		}
	}
	if err == nil && (d == nil || d.Offset == 0) {
		return rows, 0, nil
	}
	if err := errors.Join(err, rows.Close()); err != nil {
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
		return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: name}, "header", "that of the rows before", "another")).WithHint("give files with the same columns")
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
