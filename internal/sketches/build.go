package sketches

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/countmin"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Options say how rows are read.
type Options struct {
	Shard    dataset.Shard // that of the plan
	Threads  int           // 0: GOMAXPROCS
	Memory   int64         // bytes of all counters; 0: privateMost
	Progress func(rows int64)
}

// privateMost limits the bytes of the counters of all workers together if nothing else does: each
// has a sketch of its own.
const privateMost = 256 << 20

// Report is the result of a pass over rows in numbers.
type Report struct {
	Rows     int64 // rows read
	KeysNull int64 // rows of them without a key
	Workers  int
	Seconds  float64
}

// PlanOptions returns the options for the plan of a build.
func (s Spec) PlanOptions(o builds.Options) builds.Options {
	o.Key, o.Uncounted = s.Key, true
	return o
}

// ID returns the identity of a build of the plan's inputs; zero if they have none.
func (s Spec) ID(plan *builds.Plan) (id [32]byte) {
	if plan.BuildID == id {
		return id
	}
	return sha256.Sum256(fmt.Appendf(nil, "count-min %d %d %t %q %q %x", s.Params.Width, s.Params.Depth, s.Ranges, s.Key, s.Weight, plan.BuildID))
}

// Build counts the keys of a plan made with [Spec.PlanOptions]: a finished sketch if the plan has
// no shard, otherwise a partial one.
func Build(ctx context.Context, plan *builds.Plan, spec Spec, o Options) (*Sketch, Report, error) {
	start := time.Now()
	facts := filters.Facts{NormalForm: keys.NormalForm, Rule: plan.Spec.Rule.String(), BuildID: spec.ID(plan)}
	for i, name := range plan.Spec.Names {
		facts.Key = append(facts.Key, filters.KeyColumn{Name: name, Class: plan.Spec.Classes[i]})
	}
	if o.Shard != (dataset.Shard{}) {
		facts.Partial = &filters.Partial{Of: o.Shard.Of, Held: []uint32{o.Shard.Index}, Division: plan.Division}
	}
	if spec.Ranges && !Ranged(keys.ClassesOf(plan.Spec.Classes)) {
		return nil, Report{}, faults.Unsupported(fault.At{}, "ranges of keys of class %s", plan.Spec).
			WithHint("ranges are of one column of integers, dates or timestamps: leave {Range} out, or cast the key")
	}
	if err := memoryNeeded(fault.At{}, spec, 1, o.Memory); err != nil {
		return nil, Report{}, err
	}
	var mu sync.Mutex
	var all []*Sketch
	threads := o.workers(spec)
	rep, err := each(ctx, plan, spec, threads, o.Progress, func() func(*keys.Batch, []uint64) error {
		s := newSketch(spec, facts)
		mu.Lock()
		all = append(all, s)
		mu.Unlock()
		var hashes []uint64
		var points []countmin.Point
		return func(b *keys.Batch, weights []uint64) error { return s.add(b, weights, &hashes, &points) }
	})
	if err != nil {
		return nil, rep, err
	}
	if len(all) == 0 { // a shard without rows
		all = append(all, newSketch(spec, facts))
	}
	for _, s := range all[1:] {
		if err := all[0].merge(s); err != nil {
			return nil, rep, err
		}
	}
	all[0].rows = uint64(rep.Rows - rep.KeysNull)
	rep.Workers, rep.Seconds = len(all), time.Since(start).Seconds()
	return all[0], rep, nil
}

// workers returns how many workers may have counters of their own.
func (o Options) workers(spec Spec) int {
	room := uint64(privateMost)
	if o.Memory > 0 {
		room = min(room, uint64(o.Memory))
	}
	return int(max(1, min(uint64(tasks.Processors(o.Threads)), room/spec.Bytes())))
}

// each passes the keys of the plan's rows and their weights to workers.
func each(ctx context.Context, plan *builds.Plan, spec Spec, threads int, progress func(int64), newWork func() func(*keys.Batch, []uint64) error) (rep Report, err error) {
	if progress == nil {
		progress = func(int64) {}
	}
	options := keys.Options{Rule: plan.Spec.Rule}
	if spec.Weight != "" {
		return eachWeighted(ctx, plan, spec, options, threads, progress, newWork)
	}
	rep.Rows, rep.KeysNull, err = keyscan.Read(ctx, plan.Pieces(), keyscan.ReadOptions{
		Key: spec.Key, Options: options, IDs: true, Distinct: true, CountNulls: true, Threads: threads,
	}, func() (func(*keyscan.Keys) error, error) {
		work := newWork()
		var weights []uint64
		return func(k *keyscan.Keys) error {
			if k.Times == nil {
				progress(int64(k.Batch.Len))
				return work(k.Batch, nil)
			}
			weights = weights[:0]
			var rows int64
			for _, n := range k.Times {
				weights, rows = append(weights, uint64(n)), rows+int64(n)
			}
			progress(rows)
			return work(k.Batch, weights)
		}, nil
	})
	return rep, errors.Join(err, source.Unchanged(plan.Pieces()))
}

// weighing is what the workers of a pass over keys and weights share.
type weighing struct {
	key, weight []keys.Column
	options     keys.Options
	way         tasks.Flight
	progress    func(int64)
	rows, nulls atomic.Int64
}

// nothing is the result of a task whose keys go to a function.
type nothing struct{}

func (nothing) Release() {}

// eachWeighted is each for rows with a column of weights.
func eachWeighted(ctx context.Context, plan *builds.Plan, spec Spec, options keys.Options, threads int, progress func(int64), newWork func() func(*keys.Batch, []uint64) error) (rep Report, err error) {
	pieces := plan.Pieces()
	ctx, release, err := source.MapPieces(ctx, pieces)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, release()) }()
	w := &weighing{options: options, progress: progress}
	if w.key, err = keys.ParseColumns(spec.Key); err != nil {
		return rep, err
	}
	if w.weight, err = keys.ParseColumns(spec.Weight); err != nil {
		return rep, err
	}
	w.way = tasks.NewFlight(tasks.InFlight(pieces), threads, func() int64 {
		return tasks.Need(pieces, w.columns)
	})
	todo := tasks.Groups(pieces)
	if slices.ContainsFunc(pieces, func(p source.Piece) bool { return source.IsText(p.File.Format()) }) {
		todo = tasks.TextRuns(todo, w.way.Workers)
	}
	for _, err := range tasks.Map(ctx, todo, w.way, func() (tasks.Work[nothing], error) {
		worker := &weigher{weighing: w, work: newWork()}
		return worker.read, nil
	}) {
		if err != nil {
			return rep, err
		}
	}
	rep.Rows, rep.KeysNull = w.rows.Load(), w.nulls.Load()
	return rep, source.Unchanged(pieces)
}

// encoders finds the columns of the key and the weight in a schema.
func (w *weighing) encoders(f *source.File, schema *arrow.Schema) (key, weight *keys.Encoder, err error) {
	if key, err = keyscan.NewEncoder(f.Name(), schema, w.key, w.options, false); err != nil {
		return nil, nil, err
	}
	if weight, err = keyscan.NewEncoder(f.Name(), schema, w.weight, keys.Options{}, false); err != nil {
		return nil, nil, err
	}
	if classes := weight.Classes(); len(classes) != 1 || classes[0] != keys.Integer && classes[0] != keys.Null {
		return nil, nil, faults.Mismatch(keyscan.AtColumns(f.Name(), w.weight), "weight", "one column of integers", fmt.Sprintf("class %v", classes)).
			WithHint("cast it, as {Weight COL::int64}")
	}
	return key, weight, nil
}

// columns returns the columns that are read of a file.
func (w *weighing) columns(f *source.File) ([]int, error) {
	key, weight, err := w.encoders(f, f.Schema())
	if err != nil {
		return []int{}, err
	}
	read := append(slices.Clone(key.Columns()), weight.Columns()...)
	slices.Sort(read)
	return slices.Compact(read), nil
}

// weigher reads keys and weights in one goroutine.
type weigher struct {
	*weighing
	work        func(*keys.Batch, []uint64) error
	keys, heavy keys.Batch
	weights     []uint64
}

// read implements tasks.Work.
func (w *weigher) read(ctx context.Context, t tasks.Task, _ func(nothing) error) error {
	columns, err := w.columns(t.File)
	if err != nil {
		return err
	}
	for g := t.Group; g < t.After(); g++ {
		var key, weight *keys.Encoder
		records := t.File.Reading(ctx, g, columns, func(ctx context.Context) iter.Seq2[arrow.Record, error] {
			return rowfilter.ReadFrom(ctx, t.File, w.way.Table(t.File), g, columns, func(int64) {})
		})
		for rec, err := range records {
			if err == nil && key == nil {
				key, weight, err = w.encoders(t.File, rec.Schema())
			}
			if err != nil {
				return err
			}
			for lo := int64(0); lo < rec.NumRows() && err == nil; lo += source.StepRows {
				some := rec.NewSlice(lo, min(lo+source.StepRows, rec.NumRows()))
				err = w.record(t.File, some, key, weight)
				some.Release()
			}
			if err != nil {
				return source.InGroup(err, t.File, g)
			}
		}
	}
	return nil
}

// record passes on the keys and weights of a record.
func (w *weigher) record(f *source.File, rec arrow.Record, key, weight *keys.Encoder) error {
	if err := key.EncodeIDs(f.Name(), rec, &w.keys); err != nil {
		return err
	}
	if err := weight.EncodeKeys(f.Name(), rec, &w.heavy); err != nil {
		return err
	}
	values, _ := w.heavy.Ints() // not if there are only NULLs
	w.weights = w.weights[:0]
	next := 0
	for _, row := range w.keys.Rows {
		for next < len(w.heavy.Rows) && w.heavy.Rows[next] < row {
			next++
		}
		what := ""
		switch {
		case next == len(w.heavy.Rows) || w.heavy.Rows[next] != row:
			what = "NULL"
		case w.heavy.Negative(next):
			what = "a negative one"
		default:
			w.weights = append(w.weights, values[next])
			continue
		}
		return faults.Mismatch(keyscan.AtColumns(f.Name(), w.weight), "weight of a row with a key", "an integer from 0", what).
			WithHint("give such rows the weight 0, or leave them out")
	}
	w.rows.Add(int64(w.keys.Len))
	w.nulls.Add(int64(w.keys.Nulls()))
	w.progress(int64(w.keys.Len))
	return w.work(&w.keys, w.weights)
}
