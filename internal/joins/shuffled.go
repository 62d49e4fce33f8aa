package joins

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/shuffle"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// shuffled holds IDs on disk and yields rounds: pieces of the log, each with the IDs that its
// rows need.
type shuffled struct {
	*shuffle.Shuffle
	task    *task
	account *budget.Account
	filter  *filters.Filter // of the IDs on disk
	groups  []source.Piece  // of one row group each
	first   map[*source.File]int
}

// shuffle puts what the log and the IDs have in common on disk, by key, if even the
// IDs that the log has exceed the memory.
func (a *attempt) shuffle(ctx context.Context) (_ *joinTable, err error) {
	ofLog, err := a.logFilter(ctx, a.opts.Filter)
	if err != nil {
		return nil, err
	}
	s, err := a.newShuffled()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.Close() // the first error counts
		}
	}()
	ids := &spilledIDs{to: s.Shuffle}
	h, err := a.keep(ctx, ofLog, a.opts.Filter, ids)
	if err := cmp.Or(err, ids.close()); err != nil {
		return nil, err
	}
	h.rounds, s.filter = s, h.filter
	if err := s.spillLog(ctx); err != nil {
		return nil, err
	}
	if err := s.Exchange(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

func (a *attempt) newShuffled() (*shuffled, error) {
	s := &shuffled{task: a.task, account: a.account, first: map[*source.File]int{}}
	opts := shuffle.Options{
		Account: a.account, Dir: a.opts.TempDir, Integers: a.keys.Integers(), Matched: a.opts.Type.keepsIDs(),
		Threads: a.threads(), Columns: a.answer.IDs.Held, Repeats: a.opts.Type.columnsOfIDs(),
	}
	for _, p := range a.pieces {
		s.first[p.File] = len(s.groups) - p.Lo
		for g := p.Lo; g < p.Hi; g++ {
			s.groups = append(s.groups, source.Piece{File: p.File, Lo: g, Hi: g + 1})
			opts.GroupRows = append(opts.GroupRows, p.File.GroupRows(g))
		}
	}
	var err error
	s.Shuffle, err = shuffle.New(opts)
	return s, err
}

// spilledIDs is a keeper that writes IDs to disk.
type spilledIDs struct {
	to   *shuffle.Shuffle
	mu   sync.Mutex
	open []*shuffle.IDWriter
	rows *shuffle.IDWriter
}

// worker implements keeper.
func (d *spilledIDs) worker() (func(k *keys.Batch, some []uint32) error, error) {
	w, err := d.writer()
	if err != nil {
		return nil, err
	}
	return func(k *keys.Batch, some []uint32) error { return w.AddKeys(k, some) }, nil
}

func (d *spilledIDs) writer() (*shuffle.IDWriter, error) {
	w, err := d.to.NewIDWriter()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = append(d.open, w)
	return w, nil
}

// addRows implements keeper.
func (d *spilledIDs) addRows(b *tables.Batch, some []uint32, first int64) (err error) {
	if d.rows == nil {
		if d.rows, err = d.writer(); err != nil {
			return err
		}
	}
	return d.rows.AddRows(b, some, first)
}

func (d *spilledIDs) close() (err error) {
	for _, w := range d.open {
		err = cmp.Or(err, w.Close()) // every writer reports a full disk; once is enough
	}
	return err
}

// spillLog writes the log's keys that pass the filter to disk.
func (s *shuffled) spillLog(ctx context.Context) error {
	var mu sync.Mutex
	var open []*shuffle.LogWriter
	err := s.task.eachLogKey(ctx, s.filter, s.task.threads(), func() (func(*keyscan.Keys) error, error) {
		w, err := s.NewLogWriter()
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		open = append(open, w)
		return func(k *keyscan.Keys) error {
			hits, err := usedHits(k)
			if err != nil {
				return err
			}
			return w.Add(k.Batch, hits, s.first[k.Piece.File]+k.Piece.Lo)
		}, nil
	})
	for _, w := range open {
		err = cmp.Or(err, w.Close()) // every writer reports a full disk; once is enough
	}
	return err
}

// each yields the rounds.
func (s *shuffled) each(ctx context.Context) iter.Seq2[partitionRound, error] {
	return func(yield func(partitionRound, error) bool) {
		for n, r := range s.Ranges {
			if !s.rangeOf(ctx, n, s.groups[r.Lo:r.Hi], yield) {
				return
			}
		}
	}
}

// rangeOf yields range n of the row groups: in one round if the IDs that it needs
// fit in memory, as they should, else one row group after the other.
func (s *shuffled) rangeOf(ctx context.Context, n int, groups []source.Piece, yield func(partitionRound, error) bool) bool {
	src := s.Source(n)
	side, more, err := src.Next(ctx)
	if err != nil {
		yield(partitionRound{}, err)
		return false
	}
	if !more {
		defer src.Free()
		defer side.Release()
		return yield(partitionRound{pieces: joined(groups), side: side}, nil)
	}
	side.Release()
	for _, g := range groups {
		if !s.group(ctx, n, g, yield) {
			return false
		}
	}
	src.Free()
	return true
}

// joined merges consecutive row groups of one file into one piece.
func joined(groups []source.Piece) (pieces []source.Piece) {
	for _, g := range groups {
		if n := len(pieces); n > 0 && pieces[n-1].File == g.File && pieces[n-1].Hi == g.Lo {
			pieces[n-1].Hi = g.Hi
			continue
		}
		pieces = append(pieces, g)
	}
	return pieces
}

// group yields a row group of a range whose IDs exceed the memory, with the IDs
// that it needs itself, in portions if these exceed the memory too.
func (s *shuffled) group(ctx context.Context, n int, g source.Piece, yield func(partitionRound, error) bool) bool {
	own, err := s.keysOf(ctx, g)
	defer own.Release()
	if err != nil {
		yield(partitionRound{}, err)
		return false
	}
	src := s.Source(n)
	src.Only = own
	rows := make([]uint64, max(g.File.GroupRows(g.Lo), 0)/64+1)
	for again := false; ; again = true {
		side, more, err := src.Next(ctx)
		if err == nil && (more || again) && s.task.opts.Type == Anti {
			side.Release()
			err = faults.Errorf("%s: %w of %s: the IDs of its rows take more (raise {Memory})", fault.At{File: g.File.Name(), RowGroup: g.Lo + 1}, fault.ErrMemory, show.Size(s.account.Limit()))
		}
		if err != nil {
			yield(partitionRound{}, err)
			return false
		}
		r := partitionRound{pieces: []source.Piece{g}, again: again, side: side}
		if more || again {
			r.portion = &portion{last: !more, joined: &rows, keys: own}
		}
		ok := yield(r, nil)
		side.Release()
		if !ok || !more {
			return ok
		}
	}
}

// keysOf returns the keys of a row group that pass the filter.
func (s *shuffled) keysOf(ctx context.Context, g source.Piece) (*table.Side, error) {
	own := table.New(table.Kind{Integers: s.task.keys.Integers(), Threads: s.task.threads()}, s.account)
	_, _, err := keyscan.Read(ctx, []source.Piece{g}, s.task.logKeys(s.filter, 1), func() (func(*keyscan.Keys) error, error) {
		return func(k *keyscan.Keys) error {
			hits, err := usedHits(k)
			if err != nil {
				return err
			}
			return own.AddKeysAt(k.Batch, hits)
		}, nil
	})
	if err == nil {
		err = own.Seal()
	}
	if err != nil {
		err = fmt.Errorf("keys of the log in %s: %w", fault.At{File: g.File.Name(), RowGroup: g.Lo + 1}, err)
	}
	return own, err
}

// matches returns a function that appends the rows of the next batch of all IDs that no log row
// has, by what was found in the exchange.
func (s *shuffled) matches() func(k *keys.Batch, dst []uint32) ([]uint32, error) {
	matched, n := s.MatchedRows(), int64(0)
	return func(k *keys.Batch, dst []uint32) ([]uint32, error) {
		for row := range k.Len {
			has, err := matched.Has(n)
			if err != nil {
				return nil, err
			}
			if !has {
				dst = append(dst, uint32(row))
			}
			n++
		}
		return dst, nil
	}
}
