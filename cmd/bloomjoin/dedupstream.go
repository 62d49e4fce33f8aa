package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/dedups"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/text"
	"github.com/bloomjoin/bloomjoin/storage"
)

// passing is a batch of rows that pass as they come.
type passing struct {
	enc   *dedups.Encoder
	rec   arrow.Record                             // the key and time columns, at least
	write func(out io.Writer, drop []uint32) error // the rows that stay
	line  func(row int) int                        // its number in the text; nil: it has none
	pause bool                                     // the input has no more at the moment
}

// dedupStream passes rows on in their own format.
type dedupStream struct {
	*dedupRun
	inputs  []string     // empty: standard input
	spill   *spill.Bytes // standard input, if it is read several times
	format  string       // known after the first input was opened
	header  []byte       // of CSV and TSV, written, without its line end
	out     *bufio.Writer
	file    *dedups.Appended // with a state
	src     storage.Reader   // the current input, if it is a file
	known   string           // its name in the state
	opened  map[string]storage.Object
	place   func() error // with a state: records how much of it is done
	writing bool         // rows are written in this reading
	rows    dedups.Rows
}

// streams passes rows of text or of an Arrow stream to the output.
func (r *dedupRun) streams(ctx context.Context, args []string) (err error) {
	s := &dedupStream{dedupRun: r, opened: map[string]storage.Object{}, inputs: slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "-" })}
	r.WatchReader(ctx, r.o.out)
	if err := r.Spare(r.o.out, append(s.inputs, r.o.state)...); err != nil {
		return err
	}
	add, end := r.Progress("passing rows", nil)
	r.end = end
	finish, err := s.open(ctx)
	if err != nil {
		return err
	}
	if r.o.exact {
		err = s.passExactly(ctx)
	} else {
		err = s.passJudged(ctx, add)
	}
	return finish(err)
}

// open opens the output. finish must be called with the error of the run, and returns it or that
// of the output.
func (s *dedupStream) open(ctx context.Context) (finish func(error) error, err error) {
	o := s.o
	if o.state != "" {
		if s.file, err = dedups.OpenAppended(o.out); err != nil {
			return nil, err
		}
		if err = s.begin(ctx); err == nil {
			err = s.file.Begin(ctx, s.state, s.judge.Ring, s.Force)
		}
		if err != nil {
			return nil, errors.Join(err, s.file.Close())
		}
		s.out = bufio.NewWriterSize(s.file, 256<<10)
		return func(err error) error {
			if err != nil {
				s.file.Rewind()
			}
			return errors.Join(err, s.file.Close())
		}, nil
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if o.out == "-" {
		s.out = bufio.NewWriterSize(s.Stdout, 64<<10)
		return func(err error) error { return cmp.Or(s.out.Flush(), err) }, nil // also the batches before an error
	}
	if _, err := s.Store().Stat(ctx, o.out); err == nil && !s.Force {
		return nil, fmt.Errorf("%s: %w (--force replaces it)", o.out, publish.ErrExists)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w, err := s.Store().Create(ctx, o.out, storage.CreateOptions{})
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewWriterSize(w, 256<<10)
	return func(err error) error {
		defer func() { _ = w.Abort() }() // nothing after Commit
		if err = cmp.Or(err, s.out.Flush()); err != nil {
			return err
		}
		return w.Commit(s.Force)
	}, nil
}

// passJudged decides about rows as they come.
func (s *dedupStream) passJudged(ctx context.Context, add func(int64)) error {
	var drop []uint32
	s.writing = true
	next := time.Now().Add(s.o.checkpoint)
	err := s.each(ctx, func(b *passing) (err error) {
		if err := b.encode(&s.rows, nil); err != nil {
			return err
		}
		if drop, err = s.judge.Drop(&s.rows, drop[:0]); err != nil {
			return err
		}
		if err := b.write(s.out, drop); err != nil {
			return err
		}
		if add != nil {
			add(int64(s.rows.Len))
		}
		if s.state != nil && time.Now().After(next) {
			err = s.commit(ctx)
			next = time.Now().Add(s.o.checkpoint)
		} else if b.pause {
			err = s.out.Flush()
		}
		return err
	})
	s.counts = s.judge.Counts
	if err == nil && s.state != nil {
		err = s.commit(ctx)
	}
	return err
}

// commit makes durable what was done so far.
func (s *dedupStream) commit(ctx context.Context) error {
	if s.place != nil {
		if err := s.place(); err != nil {
			return err
		}
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.file.Commit(ctx, s.judge.Ring)
}

// passExactly reads the input several times.
func (s *dedupStream) passExactly(ctx context.Context) error {
	if len(s.inputs) == 0 {
		s.spill = spill.NewBytes("{TempDir}: the input, which is read several times")
		s.spill.Dir = s.o.tempDir
		defer func() { _ = s.spill.Close() }() // its space is free in any case
		if _, err := io.Copy(s.spill, s.Stdin); err != nil {
			return err
		}
		if err := s.spill.Flush(); err != nil {
			return err
		}
	}
	read := func(wanted func(uint64) bool, each func(source.Piece, *dedups.Rows) error) error {
		return s.each(ctx, func(b *passing) error {
			if err := b.encode(&s.rows, wanted); err != nil {
				return err
			}
			return each(source.Piece{}, &s.rows)
		})
	}
	sel, err := s.selection(0, read)
	if err != nil {
		return err
	}
	first, drop := int64(0), []uint32(nil)
	s.writing = true
	return s.each(ctx, func(b *passing) error {
		drop = drop[:0]
		for row := range b.rec.NumRows() {
			if sel.Dropped(first + row) {
				drop = append(drop, uint32(row))
			}
		}
		first += b.rec.NumRows()
		return b.write(s.out, drop)
	})
}

// encode sets rows to those of the batch. An error names the line.
func (b *passing) encode(rows *dedups.Rows, wanted func(uint64) bool) error {
	err := b.enc.Encode(b.rec, rows, wanted)
	if !errors.Is(err, keys.ErrMisfit) && !errors.Is(err, keys.ErrNoUUID) || b.line == nil {
		return err
	}
	for i := range b.rec.NumRows() {
		one := b.rec.NewSlice(i, i+1)
		err := b.enc.Encode(one, rows, nil)
		one.Release()
		if at := (*fault.Error)(nil); errors.As(err, &at) {
			at.At.Line = b.line(int(i))
			return err
		}
	}
	return err
}

// each opens one input after another and calls fn with their batches.
func (s *dedupStream) each(ctx context.Context, fn func(*passing) error) error {
	if len(s.inputs) == 0 {
		if s.spill == nil {
			return s.input(ctx, s.Stdin, stdinName, fn)
		}
		return s.input(ctx, io.NewSectionReader(s.spill, 0, s.spill.Size()), stdinName, fn)
	}
	for _, name := range s.inputs {
		if err := s.named(ctx, name, fn); err != nil {
			return err
		}
	}
	return nil
}

// named reads a file, with a state from where it was left.
func (s *dedupStream) named(ctx context.Context, name string, fn func(*passing) error) (err error) {
	object := s.opened[name]
	object.Name = name
	src, err := s.Store().Open(ctx, object) // the same in each reading
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	s.src, s.opened[name] = src, src.Object()
	size := src.Object().Size
	whole := io.NewSectionReader(src, 0, size)
	if s.state == nil {
		return s.input(ctx, whole, name, fn)
	}
	if s.known, err = filepath.Abs(name); err != nil {
		return err
	}
	if d := s.state.Find(s.known); d != nil {
		if err := d.Check(name, src, size); err != nil {
			return err
		}
		if d.Offset == size {
			return nil
		}
	}
	return s.input(ctx, whole, name, fn)
}

// input reads one input.
func (s *dedupStream) input(ctx context.Context, in io.Reader, name string, fn func(*passing) error) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	format, guessed, err := probeFormat(s.o.format, name, buffered)
	if err != nil {
		return err
	}
	if s.format != "" && s.format != format {
		return faults.Mismatch(fault.At{File: name}, "format", s.format, format).WithHint("give files of one format")
	}
	s.format = format
	if format == probeArrow {
		if s.Shown && s.o.out == "-" {
			return flags.Usagef("standard output is a terminal, and the rows are an Arrow stream, which is not text: pipe it into a program, or send it to a file")
		}
		return s.arrow(ctx, buffered, name, fn)
	}
	return s.text(ctx, buffered, name, guessed, fn)
}

// arrow passes on an Arrow stream, batch for batch.
func (s *dedupStream) arrow(ctx context.Context, in io.Reader, name string, fn func(*passing) error) error {
	total, err := s.Total()
	if err != nil {
		return err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(in), nil }
	t, err := arrowipc.OpenStream(open, name, nil, arrowipc.StreamOptions{Once: true, Memory: total})
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }() // nothing was written
	enc, err := s.of.NewEncoder(name, t.Schema())
	if err != nil {
		return err
	}
	var w *arrowipc.Writer
	if s.writing {
		if w, err = arrowipc.NewStreamWriter(s.out, t.Schema(), arrowipc.WriterOptions{}); err != nil {
			return err
		}
	}
	for rec, err := range t.Read(ctx, 0, nil) {
		if err != nil {
			return err
		}
		write := func(_ io.Writer, drop []uint32) error { return writeKept(w, rec, drop) }
		if err := fn(&passing{enc: enc, rec: rec, write: write, pause: true}); err != nil {
			return err
		}
	}
	if w == nil {
		return nil
	}
	_, _, err = w.Close()
	return err
}

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
	rest := io.NewSectionReader(s.src, d.Offset, s.src.Object().Size-d.Offset)
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
