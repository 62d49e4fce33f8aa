package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/klauspost/compress/gzip"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/dedups"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/storage"
)

// passing is a batch of rows that pass as they come.
type passing struct {
	enc   *dedups.Encoder
	rec   arrow.Record                          // the key and time columns, at least
	write func(out io.Writer, drop []int) error // the rows that stay
	lines []int                                 // their numbers in the text; nil: they have none
	pause bool                                  // the input has no more at the moment
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
	end     int64            // with a state: where its whole lines end
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
	if err := objects.Sweep(ctx, s.Store(), o.out); err != nil {
		return nil, err
	}
	w, err := s.Store().Create(ctx, o.out, storage.CreateOptions{})
	if err != nil {
		return nil, err
	}
	to, end := io.Writer(w), func() error { return nil }
	if strings.HasSuffix(strings.ToLower(o.out), ".gz") {
		zip := gzip.NewWriter(w)
		to, end = zip, zip.Close
	}
	s.out = bufio.NewWriterSize(to, 256<<10)
	return func(err error) error {
		defer func() { _ = w.Abort() }() // nothing after Commit
		if err == nil {
			err = cmp.Or(s.out.Flush(), end())
		}
		if err != nil {
			return err
		}
		return w.Commit(s.Force)
	}, nil
}

// passJudged decides about rows as they come.
func (s *dedupStream) passJudged(ctx context.Context, add func(int64)) error {
	var drop []int
	s.writing = true
	next := time.Now().Add(s.o.checkpoint)
	err := s.each(ctx, func(b *passing) (err error) {
		if err := b.encode(&s.rows); err != nil {
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
	if err == nil && s.state != nil {
		err = s.commit(ctx)
	}
	return err
}

// commit makes durable what was done so far, unless too many rows were wrongly dropped.
func (s *dedupStream) commit(ctx context.Context) error {
	if s.judge.Missed(s.o.fpr) {
		return s.out.Flush()
	}
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
	read := func(each func(source.Piece, *dedups.Rows) error) error {
		return s.each(ctx, func(b *passing) error {
			if err := b.encode(&s.rows); err != nil {
				return err
			}
			return each(source.Piece{}, &s.rows)
		})
	}
	sel, err := s.selection(0, read)
	if err != nil {
		return err
	}
	first, drop := int64(0), []int(nil)
	s.writing = true
	return s.each(ctx, func(b *passing) error {
		drop = drop[:0]
		for row := range b.rec.NumRows() {
			if sel.Dropped(first + row) {
				drop = append(drop, int(row))
			}
		}
		first += b.rec.NumRows()
		return b.write(s.out, drop)
	})
}

// encode sets rows to those of the batch. An error names the line.
func (b *passing) encode(rows *dedups.Rows) error {
	err := b.enc.Encode(b.rec, rows)
	if !errors.Is(err, keys.ErrMisfit) && !errors.Is(err, keys.ErrNoUUID) || b.lines == nil {
		return err
	}
	for i, line := range b.lines {
		one := b.rec.NewSlice(int64(i), int64(i)+1)
		err := b.enc.Encode(one, rows)
		one.Release()
		if at := (*fault.Error)(nil); errors.As(err, &at) {
			at.At.Line = line
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
	defer faults.Join(&err, src.Close)
	s.src, s.opened[name] = src, src.Object()
	size := src.Object().Size
	whole := io.NewSectionReader(src, 0, size)
	if s.state == nil {
		return s.input(ctx, whole, name, fn)
	}
	if s.known, err = filepath.Abs(name); err != nil {
		return err
	}
	from := int64(0)
	if d := s.state.Find(s.known); d != nil {
		if err := d.Check(name, src, size); err != nil {
			return err
		}
		from = d.Offset
	}
	if s.end, err = dedups.LastLine(src, from, size); err != nil {
		return err
	}
	if s.end < size {
		s.Say("note: %s: its last %s wait for the end of their line", name, words.Bytes(uint64(size-s.end)))
	}
	if s.end == from && size > 0 {
		return nil
	}
	return s.input(ctx, io.NewSectionReader(src, 0, s.end), name, fn)
}

// input reads one input.
func (s *dedupStream) input(ctx context.Context, in io.Reader, name string, fn func(*passing) error) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	format, guessed, err := probeFormat(s.o.format, name, buffered)
	if err != nil {
		return err
	}
	if s.format != "" && s.format != format {
		return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: name}, "format", s.format, format)).WithHint("give files of one format")
	}
	s.format = format
	if err := s.checkName(format); err != nil {
		return err
	}
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
	t, err := openArrow(in, name, total)
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
		write := func(_ io.Writer, drop []int) error { return writeRows(w, name, rec, others(drop, int(rec.NumRows()))) }
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
