package arraycopy_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// columnsOf returns the columns that Map reads of a file.
type columnsOf func(*source.File) ([]int, error)

func value(rec arrow.Record) int64 { return rec.Column(0).(*array.Int64).Value(0) }

// The output is in input order and complete, for any number of workers, whatever time
// each takes.
func TestMapOrder(t *testing.T) {
	for _, threads := range []int{0, 1, 2, 8, 100} {
		mem := sourcetest.Checked(t)
		table := &sourcetest.Table{Mem: mem}
		a := roomtest.Some(table, 20, 7)
		b := roomtest.Some(&sourcetest.Table{Mem: mem}, 5, 1)
		pieces := []source.Piece{{File: a, Lo: 0, Hi: 3}, {File: b, Lo: 1, Hi: 4}, {File: b, Lo: 5, Hi: 5}, {File: a, Lo: 10, Hi: 20}}
		var want []string
		for i, p := range pieces {
			for g := p.Lo; g < p.Hi; g++ {
				for batch := range p.File.Table().(*sourcetest.Table).Groups[g].Batches {
					for range (g + batch) % 3 {
						want = append(want, fmt.Sprint(i, ":", g*1000+batch))
					}
				}
			}
		}
		rng := rand.New(rand.NewPCG(1, uint64(threads)))
		var mu sync.Mutex
		work := func() (roomtest.Work, error) {
			busy := atomic.Bool{}
			return func(_ source.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
				if busy.Swap(true) {
					t.Error("two goroutines use one Work")
				}
				defer busy.Store(false)
				mu.Lock()
				pause := time.Duration(rng.IntN(200)) * time.Microsecond
				mu.Unlock()
				time.Sleep(pause)
				v := value(rec)
				for range (v/1000 + v%1000) % 3 {
					rec.Retain()
					if err := emit(rec); err != nil {
						return err
					}
				}
				return nil
			}, nil
		}
		var got []string
		for r, err := range roomtest.Map(t.Context(), pieces, threads, nil, work) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(r.Piece, ":", value(r.Record)))
			r.Record.Release()
		}
		sourcetest.Equal(t, fmt.Sprint(threads, " threads"), got, want)
	}
}

// If the consumer stops, all goroutines end and no memory is left.
func TestMapStops(t *testing.T) {
	for after := range 12 {
		f := roomtest.Some(&sourcetest.Table{Mem: sourcetest.Checked(t)}, 30, 4)
		seen := 0
		for r, err := range roomtest.Map(t.Context(), []source.Piece{{File: f, Lo: 0, Hi: 30}}, 4, nil, roomtest.Pass) {
			if err != nil {
				t.Fatal(err)
			}
			r.Record.Release()
			if seen++; seen > after {
				break
			}
		}
		sourcetest.Equal(t, "batches", seen, after+1)
	}
}

// A slow consumer slows the workers down: the number of waiting batches is bounded,
// however small the row groups are.
func TestMapWaitsForTheConsumer(t *testing.T) {
	const threads = 4
	for _, batches := range []int{1, 2, 50} {
		table := &sourcetest.Table{Mem: sourcetest.Checked(t)}
		f := roomtest.Some(table, 2000, batches)
		first := true
		for r, err := range roomtest.Map(t.Context(), []source.Piece{{File: f, Lo: 0, Hi: 2000}}, threads, nil, roomtest.Pass) {
			if err != nil {
				t.Fatal(err)
			}
			r.Record.Release()
			if !first {
				break
			}
			first = false
			time.Sleep(50 * time.Millisecond)
			if n := table.Batches.Load(); n > 8*threads {
				t.Errorf("groups of %d batches: %d batches were read ahead of a consumer that took one", batches, n)
			}
		}
	}
}

// An error ends the sequence, after everything before it was yielded.
func TestMapErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, threads := range []int{1, 3} {
		for _, c := range []struct {
			name  string
			work  func() (roomtest.Work, error)
			edit  func(*sourcetest.Table, *columnsOf)
			rows  int // before the error; -1: any number
			kind  error
			words []string
		}{
			{"in Read", roomtest.Pass, func(f *sourcetest.Table, _ *columnsOf) { f.Groups[5].Err = boom }, 18, boom, nil},
			{"in two groups", roomtest.Pass, func(f *sourcetest.Table, _ *columnsOf) { f.Groups[4].Err, f.Groups[5].Err = boom, errors.New("later") }, 15, boom, nil},
			{"in Work", func() (roomtest.Work, error) {
				return func(_ source.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
					if value(rec) == 6001 {
						return boom
					}
					rec.Retain()
					return emit(rec)
				}, nil
			}, nil, 19, boom, nil},
			{"at the start of a worker", func() (roomtest.Work, error) { return nil, boom }, nil, 0, boom, nil},
			{"in Columns", roomtest.Pass, func(_ *sourcetest.Table, o *columnsOf) {
				*o = func(*source.File) ([]int, error) { return nil, boom }
			}, 0, boom, nil},
			{"a panic in Read", roomtest.Pass, func(f *sourcetest.Table, _ *columnsOf) { f.Groups[7].Panics = true }, 24, nil, []string{"some: row group 8", "internal error", "a page that nobody expected"}},
			{"a panic in Work", func() (roomtest.Work, error) {
				return func(_ source.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
					if value(rec) == 3000 {
						var nothing []int
						return fmt.Errorf("%d", nothing[int(value(rec))])
					}
					rec.Retain()
					return emit(rec)
				}, nil
			}, nil, 9, nil, []string{"some: row group 4", "internal error", "index out of range"}},
		} {
			table := &sourcetest.Table{Mem: sourcetest.Checked(t)}
			f := roomtest.Some(table, 12, 3)
			var columns columnsOf
			if c.edit != nil {
				c.edit(table, &columns)
			}
			rows, ended := 0, false
			for r, err := range roomtest.Map(t.Context(), []source.Piece{{File: f, Lo: 0, Hi: 12}}, threads, columns, c.work) {
				if ended {
					t.Errorf("%s: the sequence goes on after its error", c.name)
				}
				if err != nil {
					sourcetest.Says(t, c.name, err, c.kind, c.words...)
					ended = true
					continue
				}
				r.Record.Release()
				rows++
			}
			if !ended || rows != c.rows {
				t.Errorf("%s, %d threads: %d rows and then an error: %v; want %d", c.name, threads, rows, ended, c.rows)
			}
		}
	}
}

func TestMapCancel(t *testing.T) {
	why := errors.New("the job was called off")
	f := roomtest.Some(&sourcetest.Table{Mem: sourcetest.Checked(t)}, 50, 3)
	for _, after := range []int{0, 1, 10} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if after == 0 {
			cancel(why)
		}
		rows, failed := 0, error(nil)
		for r, err := range roomtest.Map(ctx, []source.Piece{{File: f, Lo: 0, Hi: 50}}, 3, nil, roomtest.Pass) {
			if err != nil {
				failed = err
				continue
			}
			r.Record.Release()
			if rows++; rows == after {
				cancel(why)
			}
		}
		if !errors.Is(failed, why) {
			t.Errorf("cancelled after %d: %v, want the cause", after, failed)
		}
		if rows == 150 {
			t.Errorf("cancelled after %d: all rows came", after)
		}
		cancel(nil)
	}
}

func TestMapOfNothing(t *testing.T) {
	for range roomtest.Map(t.Context(), nil, 0, nil, roomtest.Pass) {
		t.Error("something came of nothing")
	}
	f := roomtest.Some(&sourcetest.Table{Mem: sourcetest.Checked(t)}, 3, 0)
	for range roomtest.Map(t.Context(), []source.Piece{{File: f, Lo: 0, Hi: 3}}, 8, nil, roomtest.Pass) {
		t.Error("rows came of empty groups")
	}
}
