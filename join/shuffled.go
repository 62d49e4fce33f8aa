package join

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/join/internal/shuffle"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// shuffled is a join by way of a shuffle: the log in legs, each with the IDs that
// its rows need.
type shuffled struct {
	*shuffle.Shuffle
	j     *Join
	units []partition.Piece // of one row group each
	first map[*partition.File]int
}

// shuffle prepares for a join of IDs that exceed the memory, even those of them
// that some log row may have: what the log and the IDs have in common goes to
// disk, by key.
func (j *Join) shuffle(ctx context.Context) (err error) {
	ofLog, err := j.logFilter(ctx)
	if err != nil {
		return err
	}
	s, err := j.newShuffled()
	if err != nil {
		return err
	}
	j.shuffled = s
	ids := &spilledIDs{s: s.Shuffle}
	if err := cmp.Or(j.keep(ctx, ofLog, ids), ids.close()); err != nil {
		return err
	}
	if err := s.spillLog(ctx); err != nil {
		return err
	}
	return s.Exchange(ctx)
}

func (j *Join) newShuffled() (*shuffled, error) {
	s := &shuffled{j: j, first: map[*partition.File]int{}}
	opts := shuffle.Options{
		Account: j.account, Dir: j.opts.TempDir, Integers: j.integers(), Matched: j.opts.Type.keepsIDs(),
		Threads: j.threads(), Mem: j.opts.Mem,
		Repeats: j.opts.Type.columnsOfIDs(),
	}
	if j.idCols.rows {
		opts.Schema, opts.Held = j.idCols.schema, j.idCols.held
		var err error
		if opts.Encoder, err = key.NewEncoder(opts.Schema, j.right, j.keyOptions()); err != nil {
			return nil, err
		}
	}
	for _, p := range j.pieces {
		s.first[p.File] = len(s.units) - p.Lo
		for g := p.Lo; g < p.Hi; g++ {
			s.units = append(s.units, partition.Piece{File: p.File, Lo: g, Hi: g + 1})
			opts.GroupRows = append(opts.GroupRows, p.File.GroupRows(g))
		}
	}
	var err error
	s.Shuffle, err = shuffle.New(opts)
	return s, err
}

// spilledIDs writes the IDs that are kept to disk.
type spilledIDs struct {
	s    *shuffle.Shuffle
	mu   sync.Mutex
	open []*shuffle.IDWriter
	rows *shuffle.IDWriter
}

// worker implements keeper.
func (d *spilledIDs) worker() (func(k *key.Batch, some []uint32) error, error) {
	w, err := d.writer()
	if err != nil {
		return nil, err
	}
	return func(k *key.Batch, some []uint32) error { return w.Add(nil, k, some, 0) }, nil
}

func (d *spilledIDs) writer() (*shuffle.IDWriter, error) {
	w, err := d.s.NewIDWriter()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = append(d.open, w)
	return w, nil
}

// addRows implements keeper.
func (d *spilledIDs) addRows(rec arrow.Record, k *key.Batch, some []uint32, first int64) (err error) {
	if d.rows == nil {
		if d.rows, err = d.writer(); err != nil {
			return err
		}
	}
	return d.rows.Add(rec, k, some, first)
}

func (d *spilledIDs) close() (err error) {
	for _, w := range d.open {
		err = cmp.Or(err, w.Close()) // a full disk is told of once
	}
	return err
}

// spillLog writes the log's keys to disk, as far as the filter lets them through.
func (s *shuffled) spillLog(ctx context.Context) error {
	var mu sync.Mutex
	var open []*shuffle.LogWriter
	err := s.j.eachLogKey(ctx, s.j.pieces, s.j.threads(), func() (keyWork, error) {
		w, err := s.NewLogWriter()
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		open = append(open, w)
		return func(f *partition.File, group int, k *key.Batch, hits, rows []uint32) error {
			return w.Add(k, used(hits, rows), s.first[f]+group)
		}, nil
	})
	for _, w := range open {
		err = cmp.Or(err, w.Close()) // a full disk is told of once
	}
	return err
}

// legs yields the ranges of the log, each with the IDs that it needs.
func (s *shuffled) legs(ctx context.Context) iter.Seq2[leg, error] {
	return func(yield func(leg, error) bool) {
		for n, r := range s.Ranges {
			if !s.leg(ctx, n, s.units[r.Lo:r.Hi], yield) {
				return
			}
		}
	}
}

// leg yields a range: whole, if the IDs that it needs fit into memory, as they
// should, else row group by row group.
func (s *shuffled) leg(ctx context.Context, n int, units []partition.Piece, yield func(leg, error) bool) bool {
	src := s.Source(ctx, n)
	side, more, err := src.Next(ctx)
	if err != nil {
		yield(leg{}, err)
		return false
	}
	if !more {
		defer src.Free()
		defer side.Release()
		return yield(leg{Stage: partition.Stage{Pieces: joined(units)}, side: side}, nil)
	}
	side.Release()
	for _, u := range units {
		if !s.unit(ctx, n, u, yield) {
			return false
		}
	}
	src.Free()
	return true
}

// joined puts row groups of one file that follow each other into one piece.
func joined(units []partition.Piece) (pieces []partition.Piece) {
	for _, u := range units {
		if n := len(pieces); n > 0 && pieces[n-1].File == u.File && pieces[n-1].Hi == u.Lo {
			pieces[n-1].Hi = u.Hi
			continue
		}
		pieces = append(pieces, u)
	}
	return pieces
}

// unit yields a row group of a range whose IDs exceed the memory: with those of
// them that it needs itself, in blocks if these do, too.
func (s *shuffled) unit(ctx context.Context, n int, u partition.Piece, yield func(leg, error) bool) bool {
	own, err := s.keysOf(ctx, u)
	defer own.Release()
	if err != nil {
		yield(leg{}, err)
		return false
	}
	src := s.Source(ctx, n)
	src.Only = own
	var rows []uint64
	for again := false; ; again = true {
		side, more, err := src.Next(ctx)
		if err == nil && (more || again) && s.j.opts.Type == Anti {
			side.Release()
			err = fault.Errorf("%s: %w of %s: the IDs of its rows take more (raise {Memory})", fault.At{File: u.File.Name, RowGroup: u.Lo + 1}, fault.ErrMemory, show.Size(s.Account.Limit()))
		}
		if err != nil {
			yield(leg{}, err)
			return false
		}
		l := leg{Stage: partition.Stage{Pieces: []partition.Piece{u}, Again: again}, side: side}
		if more || again {
			l.block = &block{last: !more, joined: &rows, keys: own}
		}
		ok := yield(l, nil)
		side.Release()
		if !ok || !more {
			return ok
		}
	}
}

// keysOf returns the keys of a row group that the filter lets through.
func (s *shuffled) keysOf(ctx context.Context, u partition.Piece) (*table.Side, error) {
	own := table.New(table.Kind{Integers: s.Integers, Threads: s.Threads, Mem: s.Mem}, s.Account)
	err := s.j.eachLogKey(ctx, []partition.Piece{u}, 1, func() (keyWork, error) {
		return func(_ *partition.File, _ int, k *key.Batch, hits, rows []uint32) error {
			return own.AddKeysAt(k, used(hits, rows))
		}, nil
	})
	if err == nil {
		err = own.Seal()
	}
	if err != nil {
		err = fmt.Errorf("keys of the log in %s: %w", fault.At{File: u.File.Name, RowGroup: u.Lo + 1}, err)
	}
	return own, err
}

// loneRows calls fn with the ID rows that no log row has.
func (s *shuffled) loneRows(ctx context.Context, fn func(rec arrow.Record, rows []int) error) error {
	matched, n := s.MatchedRows(), int64(0)
	return s.j.eachID(ctx, true, func(_ *partition.File, rec arrow.Record, _ *key.Batch) error {
		var rows []int
		for row := range int(rec.NumRows()) {
			has, err := matched.Has(n)
			if err != nil {
				return err
			}
			if !has {
				rows = append(rows, row)
			}
			n++
		}
		return s.j.hold(rec, rows, fn)
	})
}
