package sketches

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/countmin"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Options say how rows are read.
type Options struct {
	Shard   dataset.Shard // that of the plan
	Threads int           // 0: GOMAXPROCS
	Memory  int64         // bytes of all counters; 0: privateMost
}

// privateMost limits the bytes of the counters of all workers together if nothing else does: each
// has a sketch of its own.
const privateMost = 256 << 20

// Report is the result of a pass over rows in numbers.
type Report struct {
	Rows     int64 // rows read
	KeysNull int64 // rows of them without a key, or without a weight
	Workers  int
	Seconds  float64
}

// PlanOptions returns the options for the plan of a build.
func (s Spec) PlanOptions(o builds.Options) builds.Options {
	o.Key, o.Uncounted = s.columns(), true
	return o
}

// columns returns the columns that are read.
func (s Spec) columns() string {
	if s.Weight == "" {
		return s.Key
	}
	return s.Key + "," + s.Weight
}

// ID returns the identity of a build of the plan's inputs; zero if they have none.
func (s Spec) ID(plan *builds.Plan) (id [32]byte) {
	if plan.BuildID == id {
		return id
	}
	return sha256.Sum256(fmt.Appendf(nil, "count-min %d %d %t %q %q %x", s.Params.Width, s.Params.Depth, s.Ranges, s.Key, s.Weight, plan.BuildID))
}

// keyOf returns the key columns of a plan, without the weight: it must be of integers.
func (s Spec) keyOf(plan *builds.Plan) ([]filters.KeyColumn, error) {
	key := plan.Spec.Header().Facts().Key
	if s.Weight == "" {
		return key, nil
	}
	last := len(key) - 1
	if class := keys.Class(key[last].Class); class != keys.Integer && class != keys.Null {
		return nil, faults.Mismatch(fault.At{Column: s.Weight}, "weight", "a column of integers", string(class)).WithHint("cast it, as {Weight COL::int64}")
	}
	return key[:last], nil
}

// Build counts the keys of a plan made with [Spec.PlanOptions]: a finished sketch if the plan has
// no shard, otherwise a partial one.
func Build(ctx context.Context, plan *builds.Plan, spec Spec, o Options) (*Sketch, Report, error) {
	start := time.Now()
	facts := *plan.Spec.Header().Facts()
	facts.BuildID = spec.ID(plan)
	var err error
	if facts.Key, err = spec.keyOf(plan); err != nil {
		return nil, Report{}, err
	}
	if o.Shard != (dataset.Shard{}) {
		facts.Partial = &filters.Partial{Of: o.Shard.Of, Held: []uint32{o.Shard.Index}, Division: plan.Division}
	}
	if classes := filters.New(facts).KeyClasses(); spec.Ranges && !Ranged(classes) {
		return nil, Report{}, faults.Unsupported(fault.At{}, "ranges of keys of class %s", strings.Join(classes, ", ")).
			WithHint("ranges are of one column of integers, dates or timestamps: leave {Range} out, or cast the key")
	}
	if err := memoryNeeded(fault.At{}, spec, 1, o.Memory); err != nil {
		return nil, Report{}, err
	}
	all, rep, err := eachKey(ctx, plan, spec, o.workers(spec), func() *Sketch { return newSketch(spec, facts) }, (*Sketch).add)
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

// eachKey adds the keys of the plan's rows, with their weights, to a value of each worker, and
// returns all of these values.
func eachKey[T any](ctx context.Context, plan *builds.Plan, spec Spec, threads int, newWork func() T, add func(T, *weighted) error) (all []T, rep Report, err error) {
	var mu sync.Mutex
	rep.Rows, rep.KeysNull, err = keyscan.Read(ctx, plan.Pieces(), keyscan.ReadOptions{
		Key: spec.columns(), Options: keys.Options{Rule: plan.Spec.Rule}, IDs: true, Distinct: true, CountNulls: true, Threads: threads,
	}, func() (func(*keyscan.Keys) error, error) {
		own, k := newWork(), &weighted{spec: spec}
		mu.Lock()
		all = append(all, own)
		mu.Unlock()
		if spec.Weight != "" {
			k.parts = len(plan.Spec.Names) - 1
		}
		return func(of *keyscan.Keys) error {
			k.Keys = of
			return add(own, k)
		}, nil
	})
	return all, rep, errors.Join(err, source.Unchanged(plan.Pieces()))
}

// weighted are keys with their weights. With a column of weights they are read as composite keys, the
// last part of which is the weight: rows with a NULL in either have no key.
type weighted struct {
	*keyscan.Keys
	spec  Spec
	parts int // of the key, before the weight; 0: each row weighs 1

	buf    [9]byte
	points []countmin.Point // memory for those of a batch
}

// at returns the key at a position in normal form, and its weight.
func (k *weighted) at(i int) (key []byte, weight uint64, err error) {
	key = k.Batch.Bytes(k.buf[:], i)
	if k.parts == 0 {
		return key, uint64(k.RowsOf(i)), nil
	}
	last := len(key) - 10 // its length, and an integer
	part := key[last+1:]
	if part[8] != 0 {
		return nil, 0, faults.Mismatch(fault.At{File: k.Piece.File.Name(), Column: k.spec.Weight}, "weight", "0 or more", "a negative number")
	}
	if key = key[:last]; k.parts == 1 { // without the length of the only part
		_, n := binary.Uvarint(key)
		key = key[n:]
	}
	return key, binary.LittleEndian.Uint64(part), nil
}
