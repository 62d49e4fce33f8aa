// Package sketch estimates how often keys occur in files, in about a mebibyte of memory, with
// count-min sketches.
//
//	files ── Build ──► Sketch ── Estimate, Within, Product, Heavy ──► upper bounds
//	parts ── Merge ──► one Sketch
//
// A [Sketch] answers with a number that is never below the truth. With a probability of at least
// 1-δ it is above by no more than a bound: ε times the number of all rows, or their weight. The
// probability is over the hash functions, which are the same in all sketches: for keys that were
// chosen with knowledge of them, it does not hold.
//
// The sketch of some rows is the sum of the sketches of its parts: divide files among goroutines
// or machines as you like, and [Merge]. FORMAT.md specifies the file. Anyone who has it can ask
// about any key.
//
// Source: G. Cormode and S. Muthukrishnan, "An improved data stream summary: the count-min sketch
// and its applications", J. Algorithms 55, 2005.
package sketch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/sketches"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Options are the options of [Build]. Only Key is required.
type Options struct {
	// Key names the key columns: paths separated by commas, each perhaps with a cast, as in
	// `user.id::int64`. Rows with a NULL in the key are left out.
	Key string
	// Weight names a column of integers, 0 or more, to add up instead of counting rows. As in SQL's
	// sum, rows with a NULL in it are left out. A sum above 2^64-1 is an error.
	Weight string
	// Epsilon is the error of an estimate as a share of the total; 0: 0.0001. Delta is the
	// probability of a larger one; 0: 0.01. The counters take 8·⌈e/ε⌉·⌈ln 1/δ⌉ bytes, a
	// mebibyte by default.
	Epsilon, Delta float64
	// Range counts ranges of integers, dates or timestamps (by the second), too. The counters
	// then take about 50 times as much.
	Range bool
}

// Sketch is a count-min sketch of the keys of rows, made by [Build], [Load] or [Merge]. All methods
// may be called concurrently.
type Sketch sketches.Sketch

func (s *Sketch) in() *sketches.Sketch { return (*sketches.Sketch)(s) }

// usable returns the sketch if it can be asked.
func (s *Sketch) usable() (*sketches.Sketch, error) { return s.in(), s.in().Usable(fault.At{}) }

// Build counts the keys of files. As many goroutines as there are processors have counters of their
// own, as long as these take 256 MiB together.
func Build(ctx context.Context, files []*partition.File, opts Options) (*Sketch, error) {
	stopped.Needs(ctx, "sketch.Build")
	spec := sketches.Spec{Key: opts.Key, Weight: opts.Weight, Ranges: opts.Range}
	var err error
	if spec.Params, err = sketches.ParamsFor(opts.Epsilon, opts.Delta); err != nil {
		return nil, err
	}
	plan, err := builds.NewPlan(door.In(files), spec.PlanOptions(builds.Options{}))
	if err != nil {
		return nil, err
	}
	s, _, err := sketches.Build(ctx, plan, spec, sketches.Options{})
	return (*Sketch)(s), err
}

// Merge adds up sketches, and changes none of them. Finished ones must have the same ε and δ and
// keys of one class, and all or none of them weights, and ranges; otherwise the error wraps
// fault.ErrMismatch. Partial ones, which the command writes, must be all parts of one build.
func Merge(parts ...*Sketch) (*Sketch, error) {
	names := make([]string, len(parts))
	union := false
	for i, s := range parts {
		names[i] = fmt.Sprintf("sketch %d", i+1)
		if _, err := s.usable(); err == nil {
			union = true
		} else if !errors.Is(err, fault.ErrMismatch) {
			return nil, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	sum, err := sketches.Merge(names, each.Slice(parts, (*Sketch).in), false, union)
	return (*Sketch)(sum), err
}

// mostLoaded limits the counters that Load reads, in bytes.
const mostLoaded = min(4<<30, math.MaxInt/2)

// Load reads and verifies the file of a sketch. Its counters may take 4 GiB; the error for more wraps
// fault.ErrMemory, that for a file that is damaged or no sketch fault.ErrCorrupt.
func Load(ctx context.Context, store storage.Source, name string) (*Sketch, error) {
	stopped.Needs(ctx, "sketch.Load")
	if store == nil {
		return nil, fmt.Errorf("%s: no storage: want a storage.Source such as storage.Local(), got nil", name)
	}
	s, err := sketches.Load(ctx, store, name, mostLoaded)
	return (*Sketch)(s), err
}

// Save writes the sketch to a file and returns its size in bytes. On storage with users only the
// owner may read it. Equal rows and options give equal bytes. Without replace, an existing file is
// left alone, and is an error unless it holds the same sketch.
func (s *Sketch) Save(ctx context.Context, store storage.Storage, name string, replace bool) (int64, error) {
	stopped.Needs(ctx, "sketch.Save")
	if _, err := s.usable(); err != nil && !errors.Is(err, fault.ErrMismatch) {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if store == nil {
		return 0, fmt.Errorf("%s: no storage: want a storage.Storage such as storage.Local(), got nil", name)
	}
	size, _, err := s.in().Save(ctx, store, name, replace)
	return size, err
}

// Estimate returns, for each row of v, an upper bound on the weight of its key (without Weight: the
// number of its rows); 0 for NULLs, and for numbers without an equal in the class of the key. Each
// is at most bound above the weight, with probability 1-δ.
func (s *Sketch) Estimate(v key.Values) (most []uint64, bound uint64, err error) {
	room, err := s.usable()
	if err != nil {
		return nil, 0, err
	}
	most = make([]uint64, v.Len())
	err = encode(room, v, func(first int, b *keys.Batch) error {
		for i, n := range room.Estimate(b) {
			most[first+int(b.Rows[i])] = n
		}
		return nil
	})
	return most, room.Bound(1), err
}

// encode calls fn with the keys of v, in batches.
func encode(room *sketches.Sketch, v key.Values, fn func(first int, b *keys.Batch) error) error {
	options, err := room.KeyOptions()
	if err != nil {
		return err
	}
	return keys.NewValueEncoder(options).Encode(keys.Values(v), fn)
}

// Within returns an upper bound on the weight of the keys in a range, whose ends, inclusive, are the
// two rows of v. It is at most bound above the weight, with probability 1-δ. The sketch must have
// been built with Range.
func (s *Sketch) Within(v key.Values) (most, bound uint64, err error) {
	room, err := s.usable()
	if err != nil {
		return 0, 0, err
	}
	ends := 0
	err = encode(room, v, func(_ int, b *keys.Batch) error {
		if ends = len(b.Rows); ends != 2 || v.Len() != 2 {
			return nil
		}
		nodes := 0
		most, nodes, err = room.Within(b)
		bound = room.Bound(nodes)
		return err
	})
	if err == nil && (ends != 2 || v.Len() != 2) {
		err = errors.New("the ends of a range: want two keys of the sketch's class")
	}
	return most, bound, err
}

// Product returns an upper bound on the rows of the inner join of the rows of both sketches: the sum
// over all keys of the product of their weights. It is at most bound above, with probability 1-δ. The
// sketches must have equal ε and δ and keys of one class. A sum above 2^64-1 is an error.
func (s *Sketch) Product(t *Sketch) (most, bound uint64, err error) {
	var rooms [2]*sketches.Sketch
	for i, of := range []*Sketch{s, t} {
		if rooms[i], err = of.usable(); err != nil {
			return 0, 0, err
		}
	}
	return sketches.Product(rooms[0], rooms[1], [2]string{"sketch 1", "sketch 2"})
}

// Heavy returns all keys with a share of at least phi of the total, as text, and upper bounds on
// their weights, the heaviest first. A key with a share below phi-ε is among them with a probability
// of δ at most. The sketch must have been built with Range, of integers or dates, and phi be above ε.
func (s *Sketch) Heavy(phi float64) (keys []string, most []uint64, err error) {
	room, err := s.usable()
	if err != nil {
		return nil, nil, err
	}
	if !(phi > 0 && phi < 1) {
		return nil, nil, fmt.Errorf("the share of heavy keys: want a number between 0 and 1, got %v", phi)
	}
	found, err := room.Heavy(phi)
	for _, h := range found {
		keys, most = append(keys, h.Key), append(most, h.Weight)
	}
	return keys, most, err
}
