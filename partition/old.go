package partition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/key"
)

// A Verifier tells members from false positives. One goroutine uses it.
//
// Deprecated: use [Match].Check.
type Verifier interface {
	Begin(f *File, group int)
	Filter() bool
	Verify(k *key.Batch, hits []uint32) []uint32
	Count(k *key.Batch, hits, members, rows []uint32) error
}

// checkOf returns a Verifier as a check.
func checkOf(v Verifier) check {
	var last Piece
	var all, hits []uint32
	return func(k *Keys) (members []uint32, err error) {
		if k.Piece != last {
			v.Begin(k.Piece.File, k.Piece.Lo)
			last = k.Piece
		}
		if v.Filter() {
			if hits, err = k.Probe(); err != nil {
				return nil, err
			}
		} else {
			for len(all) < len(k.Batch.Rows) {
				all = append(all, uint32(len(all)))
			}
			hits = all[:len(k.Batch.Rows)]
		}
		members = v.Verify(k.Batch, slices.Clone(hits))
		if k.Times != nil && !slices.ContainsFunc(k.Times, func(n uint32) bool { return n > 0 }) {
			return members, nil
		}
		return members, v.Count(k.Batch, hits, members, k.Times)
	}
}

// Prober probes the keys of record batches of one schema.
//
// Deprecated: use [key.Encoder] and the filter.
type Prober struct {
	Keys key.Batch

	file string
	enc  *key.Encoder
	of   Keys
}

// NewProber finds the key columns in the schema.
func NewProber(file string, schema *arrow.Schema, m Match) (*Prober, error) {
	enc, err := m.encoder(file, schema)
	if err != nil {
		return nil, err
	}
	return &Prober{file: file, enc: enc, of: Keys{filter: m.Filter, Piece: Piece{File: &File{Name: file}}}}, nil
}

// Probe returns the positions of keys that may be members.
func (p *Prober) Probe(rec arrow.Record) ([]uint32, error) {
	if err := p.enc.EncodeKeys(p.file, rec, &p.Keys); err != nil {
		return nil, err
	}
	p.of.Batch = &p.Keys
	return p.of.Probe()
}

// All is Probe without asking the filter.
func (p *Prober) All(rec arrow.Record) ([]uint32, error) {
	if err := p.enc.EncodeKeys(p.file, rec, &p.Keys); err != nil {
		return nil, err
	}
	all := Keys{Batch: &p.Keys}
	return all.Probe()
}

// KeyWork is called with keys that were read.
type KeyWork func(p Piece, b *key.Batch) error

// MapKeys reads the keys of all rows of the pieces.
//
// Deprecated: use [ReadKeys].
func MapKeys(ctx context.Context, pieces []Piece, column string, o key.Options, threads int, newWork func() (KeyWork, error)) error {
	opts := KeyOptions{Key: column, Options: o, IDs: true, Threads: threads}
	_, err := ReadKeys(ctx, pieces, opts, func() (func(*Keys) error, error) {
		work, err := newWork()
		return func(k *Keys) error { return work(k.Piece, k.Batch) }, err
	})
	return err
}

// Run is a run of rows of one row group.
//
// Deprecated: use [Sample].
type Run struct {
	File        *File
	Group       int
	First, Rows int64
	Stands      float64
}

// Runs returns up to n runs.
func Runs(pieces []Piece, n int, rows int64) (runs []Run, all, ok bool) {
	total := rowsOfPieces(pieces)
	tasks, err := runsOf(pieces, n, rows)
	for _, t := range tasks {
		runs = append(runs, Run{t.file, t.group, t.lo, t.hi - t.lo, t.stands})
	}
	return runs, float64(n)*float64(rows) >= float64(total), err == nil
}

// RunWork is called with keys of a run.
type RunWork func(run int, b *key.Batch) error

// ReadRuns reads the keys of runs.
//
// Deprecated: use [ReadKeys].
func ReadRuns(ctx context.Context, runs []Run, column string, o key.Options, threads int, newWork func() (RunWork, error)) error {
	o.NullMisfits = true
	columns, err := key.ParseColumns(column)
	if err != nil {
		return err
	}
	var tasks []task
	var pieces []Piece
	for i, r := range runs {
		pieces = append(pieces, Piece{r.File, r.Group, r.Group + 1})
		tasks = append(tasks, task{rowRange: rowRange{r.Group, r.First, r.First + r.Rows}, file: r.File, piece: i, number: i})
	}
	way := flightOf(InFlight(pieces), threads, func() int64 { return keyNeed(pieces, columns, o) })
	shared := &keyReading{options: KeyOptions{Key: column, Options: o}, columns: columns, way: way, parsers: 1}
	for _, err := range mapTasks(ctx, tasks, way, func() (taskWork, error) {
		work, err := newWork()
		return newKeyWorker(shared, func(k *Keys) error { return work(k.Run, k.Batch) }).read, err
	}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Stage is a run of row groups with filters of its own. Only one set of filters
// is in use at a time, so that what they take in memory is that of the largest.
type Stage struct {
	// Pieces are what the stage reads, in order. Each is within one of the
	// scan's pieces, and each row of these is in one stage.
	Pieces []Piece
	Match  []Match
	// Again says that the stage reads the rows of the one before once more. They
	// are not counted another time, but for those that pass.
	Again bool
}

// PieceOf returns which of the pieces p is within.
func PieceOf(pieces []Piece, p Piece) (int, error) {
	for i, q := range pieces {
		if q.File == p.File && q.Lo <= p.Lo && p.Hi <= q.Hi {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s: row groups %d to %d of a stage are none of the scan's", p.File.Name, p.Lo+1, p.Hi)
}

// with returns the scanner with other filters. Both count into the same Stats.
func (s *Scanner) with(m []Match) *Scanner {
	t := *s
	t.opts.Match, t.opts.Stages = m, nil
	return &t
}

// eachStage calls fn with the scanner of each stage.
func (s *Scanner) eachStage(ctx context.Context, pieces []Piece, fn func(t *Scanner, pieces []Piece) error) error {
	if s.opts.Stages == nil {
		return fn(s, pieces)
	}
	for st, err := range s.opts.Stages(ctx, pieces) {
		if err != nil {
			return err
		}
		t := s.with(st.Match)
		if st.Again {
			t.Stats = new(ScanStats)
		}
		if err := fn(t, st.Pieces); err != nil {
			return err
		}
		if st.Again {
			s.Stats.RowsOut.Add(t.Stats.RowsOut.Load())
		}
	}
	return nil
}

func (s *Scanner) scanTo(ctx context.Context, w *ScanWriter, pieces []Piece) error {
	return s.eachStage(ctx, pieces, func(t *Scanner, pieces []Piece) error { return w.Scan(ctx, t, pieces) })
}

func (s *Scanner) countStages(ctx context.Context, pieces []Piece) error {
	err := s.eachStage(ctx, pieces, func(t *Scanner, pieces []Piece) error {
		t.opts.End = nil
		return t.Count(ctx, pieces)
	})
	if err == nil && s.opts.End != nil {
		err = s.opts.End()
	}
	return err
}

var errStop = errors.New("stop")

func (s *Scanner) scanStages(ctx context.Context, pieces []Piece) iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		err := s.eachStage(ctx, pieces, func(t *Scanner, some []Piece) error {
			for r, err := range t.records(ctx, some) {
				if err == nil {
					r.Piece, err = PieceOf(pieces, some[r.Piece])
				}
				if err != nil {
					return err
				}
				if !yield(r, nil) {
					return errStop
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(Rows{}, err)
		}
	}
}
