package filterbuild

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Options says how to build a filter. Only Key is needed.
type Options struct {
	// Key names the key columns of the ID files: paths separated by commas.
	Key string
	// Normalize names the rule by which strings in the key are made alike before
	// they are compared: some of trim, lower and uuid, separated by commas; see
	// FORMAT.md of package codec. It is recorded in the filter, and holds for
	// whatever is compared with it. Under uuid, an ID that is none is an error.
	Normalize string
	// FPR is the wished false-positive rate; 0: by the number of keys. MaxSize
	// bounds the bits in bytes instead; 0: no bound. At most one is set.
	FPR     float64
	MaxSize uint64
	Kind    codec.Want
	// Geometry of a Bloom filter; 0: Split512, the smaller one, for rates up to
	// 0.1 %, else Split256, the faster one. It is chosen by the rate alone, so
	// that all shards choose alike.
	Geometry bloom.Geometry
	// Capacity is an upper bound on the number of keys; 0: the number of rows,
	// which text files do not tell beforehand.
	Capacity uint64
	// Room says that the sealed filter is to keep the size for Capacity keys,
	// distinct ones, so that those of later sets can be put in by unions.
	Room bool
	// NoKeyRange keeps the least and the greatest key out of the filter, from
	// which a scan sees what it need not read.
	NoKeyRange bool
	// Shard is the part of the inputs to read. Its filter is a partial one, to
	// be merged, also where it is the only shard. The zero Shard reads all
	// and seals.
	Shard partition.Shard
	// Memory is the most bytes that filters may take while they are filled; 0:
	// no bound. With less than one Bloom filter's size for each worker, fewer
	// workers run; with less than one at all, only exact filters can be built,
	// by as many workers as wished. While it is open whether the filter will be
	// exact, a set may take more than the Bloom filter would: where the budget
	// has room for that alone, WantBloom needs to be said.
	Memory  int64
	Threads int // workers; 0: GOMAXPROCS
	Mem     memory.Allocator
	// Progress, if not nil, is called with the number of rows of each batch,
	// from many goroutines. See also [Plan.SetProgress].
	Progress func(rows int64)
}

// ErrCapacity says that a shard cannot tell how many keys the whole build has.
var ErrCapacity = errors.New("the number of keys is not known beforehand")

// ErrMemory says that what must be held exceeds the memory budget.
var ErrMemory = errors.New("over the memory budget")

// Report is what a build came to.
type Report struct {
	Rows      int64  // rows read
	Keys      uint64 // of them with a key that is not NULL
	KeysNull  int64  // rows without a key
	Distinct  uint64 // keys without duplicates: exact, or estimated from the bits
	Estimated bool   // Distinct is an estimate
	Seconds   float64
}

// KeyPaths returns the key columns.
func (o Options) KeyPaths() ([]keys.Path, error) { return keys.ParsePaths(o.Key) }

// Plan is a build whose inputs have been looked at, and nothing read yet.
type Plan struct {
	Spec    Spec
	BuildID [32]byte // zero if an input can be told only by reading it
	opts    Options
	files   []*partition.File
	pieces  []partition.Piece
	unsized bool // the capacity comes out while reading
}

// NewPlan finds the key in all files, compares their classes and fixes what
// all workers of the build agree on.
func NewPlan(files []*partition.File, opts Options) (*Plan, error) {
	if opts.FPR != 0 && opts.MaxSize != 0 {
		return nil, errors.New("a false-positive rate and a size cannot both be asked for")
	}
	if opts.Mem == nil {
		opts.Mem = memory.DefaultAllocator
	}
	paths, err := opts.KeyPaths()
	if err != nil {
		return nil, err
	}
	p := &Plan{opts: opts, files: files, pieces: partition.Split(files, opts.Shard)}
	rule, err := keys.ParseRule(opts.Normalize)
	if err != nil {
		return nil, err
	}
	p.Spec = Spec{
		Rule: rule,
		Hash: bloom.Hash{ID: bloom.XXH3}, Geometry: opts.Geometry, Capacity: opts.Capacity,
		FPR: opts.FPR, MaxSize: opts.MaxSize, Room: opts.Room, Want: opts.Kind, NoRange: opts.NoKeyRange,
		SkipBad: slices.ContainsFunc(files, (*partition.File).SkipsBad),
	}
	for _, path := range paths {
		p.Spec.Names = append(p.Spec.Names, path.String())
	}
	if err := p.classes(paths); err != nil {
		return nil, err
	}
	if err := p.Spec.check(); err != nil {
		return nil, err
	}
	if err := p.capacity(); err != nil {
		return nil, err
	}
	inputs, ok, err := partition.Digest(nil, files)
	if err != nil {
		return nil, err
	}
	if ok {
		p.BuildID = p.Spec.id(inputs)
	} else if !sealing(opts.Shard) { // partial filters are told apart by their inputs
		return nil, fmt.Errorf("standard input: %w, so that it cannot be divided into shards", ErrCapacity)
	}
	return p, nil
}

// sealing reports whether a build of the shard ends in a sealed filter: whoever
// counts shards, be it to one, merges them.
func sealing(s partition.Shard) bool { return s == partition.Shard{} }

// classes compares the key's classes over all files.
func (p *Plan) classes(paths []keys.Path) error {
	var want []keys.Class
	var first string
	for _, f := range p.files {
		f.CheckIDs(paths, p.Spec.Rule)
		enc, err := keys.NewEncoder(f.Schema(), paths, p.Spec.Rule)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		got := enc.Classes()
		if slices.Contains(got, keys.Null) {
			return fault.Unsupported(fault.At{File: f.Name, Column: p.opts.Key}, "a key column without a type, which holds only NULLs")
		}
		if want == nil {
			want, first = got, f.Name
			continue
		}
		if err := keys.Match(fault.At{File: f.Name, Column: p.opts.Key}, want, got); err != nil {
			return fmt.Errorf("the ID files differ: %s was read first: %w", first, err)
		}
	}
	for _, c := range want {
		p.Spec.Classes = append(p.Spec.Classes, string(c))
	}
	return nil
}

// capacity bounds the number of keys by the number of rows.
func (p *Plan) capacity() error {
	if p.Spec.Capacity > 0 {
		return nil
	}
	for _, f := range p.files {
		n, err := f.CountRows()
		if err != nil {
			return err
		}
		if n < 0 {
			if !p.opts.Shard.Whole() {
				return fmt.Errorf("%s: %w, so that shards would come to filters of different sizes (say --expect N)", f.Name, ErrCapacity)
			}
			p.unsized = true
			p.Spec.Capacity = 0
			return nil
		}
		p.Spec.Capacity += uint64(n)
	}
	return nil
}

// Sized reports whether an upper bound on the number of keys is known before
// they are read.
func (p *Plan) Sized() bool { return !p.unsized }

// SetProgress makes Build call fn with the number of rows of each batch, from
// many goroutines; nil: nothing.
func (p *Plan) SetProgress(fn func(rows int64)) { p.opts.Progress = fn }

// Build reads the plan's shard of the IDs and returns its filter: sealed if
// the plan has no shard, else partial.
func (p *Plan) Build(ctx context.Context) (*codec.Filter, Report, error) {
	start := time.Now()
	b, err := p.NewBuilder()
	if err != nil {
		return nil, Report{}, err
	}
	read := partition.ReadOptions{Threads: b.Workers(), Columns: func(f *partition.File) ([]int, error) {
		enc, err := p.encoder(f, f.Schema())
		if err != nil {
			return nil, err
		}
		return enc.Columns(), nil
	}}
	work := func() (partition.Work, error) {
		w, err := b.Worker()
		if err != nil {
			return nil, err
		}
		var at *partition.File
		var enc *keys.Encoder
		var batch keys.Batch
		return func(piece partition.Piece, rec arrow.Record, _ func(arrow.Record) error) error {
			if at != piece.File {
				var err error
				if enc, err = p.encoder(piece.File, rec.Schema()); err != nil {
					return err
				}
				at = piece.File
			}
			if err := enc.EncodeIDs(rec, &batch); err != nil {
				return fmt.Errorf("%s: %w", piece.File.Name, err)
			}
			if p.opts.Progress != nil {
				p.opts.Progress(rec.NumRows())
			}
			return w.Add(&batch)
		}, nil
	}
	for _, err := range partition.Map(ctx, p.pieces, read, work) {
		if err != nil {
			return nil, Report{}, err
		}
	}
	f, rep, err := b.Finish()
	rep.Seconds = time.Since(start).Seconds()
	return f, rep, err
}

func (p *Plan) encoder(f *partition.File, schema *arrow.Schema) (*keys.Encoder, error) {
	paths, err := p.opts.KeyPaths()
	if err != nil {
		return nil, err
	}
	enc, err := keys.NewEncoder(schema, paths, p.Spec.Rule)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return enc, nil
}

// Builder fills a plan's filter from batches of keys, whoever reads them.
type Builder struct {
	plan    *Plan
	threads int
	memory  budget
	mu      sync.Mutex
	workers []*Worker
}

// NewBuilder returns a builder for up to Workers goroutines. The error wraps
// ErrMemory if not even one of them could work within the budget.
func (p *Plan) NewBuilder() (*Builder, error) {
	b := &Builder{plan: p, threads: p.opts.Threads}
	if b.threads <= 0 {
		b.threads = runtime.GOMAXPROCS(0)
	}
	if p.opts.Memory > 0 {
		b.memory.most = uint64(p.opts.Memory)
	}
	if b.memory.most > 0 && !p.unsized && p.Spec.Want != codec.WantExact {
		params, _, err := p.Spec.size()
		if err != nil {
			return nil, err
		}
		if params.Bytes() > b.memory.most && !p.Spec.exact() {
			return nil, overBudget(b.memory.most, params)
		}
		each := params.Bytes()
		if p.Spec.exact() {
			each *= 2 // a set is given up when it costs as much as the bits, which are filled from it
		}
		fit := b.memory.most / each
		if params.Bytes() <= b.memory.most {
			fit = max(fit, 1)
		}
		if fit > 0 { // else a worker whose set turns into bits ends the build
			b.threads = int(min(uint64(b.threads), fit))
		}
	}
	b.memory.workers = uint64(b.threads)
	return b, nil
}

// Workers returns how many goroutines the memory budget lets work.
func (b *Builder) Workers() int { return b.threads }

// Worker fills a private partial filter. One goroutine uses it at a time.
type Worker struct {
	b    *Builder
	part *partial // nil while the size is not known
	rows int64
	null int64
	// Keys that wait for the size: integers with their signs, or hashes.
	wait   []uint64
	signed []uint64 // signed integers, apart
	hashes []uint64
	bounds *keys.Bounds // of those keys; nil if none are to be kept
	share  share        // of the memory budget, for them
}

// Worker returns a new worker. It may be called from many goroutines.
func (b *Builder) Worker() (*Worker, error) {
	w := &Worker{b: b, bounds: b.plan.Spec.newBounds(), share: share{of: &b.memory}}
	if !b.plan.unsized {
		var err error
		if w.part, err = newPartial(b.plan.Spec, &b.memory); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.workers = append(b.workers, w)
	return w, nil
}

// Add puts in the keys of a batch.
func (w *Worker) Add(batch *keys.Batch) error {
	w.rows += int64(batch.Len)
	w.null += int64(batch.Nulls())
	if w.part != nil {
		return w.part.add(batch)
	}
	if w.bounds != nil {
		w.bounds.Add(batch)
	}
	if values, signed, ok := batch.Ints(); ok && signed {
		w.signed = append(w.signed, values...)
	} else if ok {
		w.wait = append(w.wait, values...)
	} else {
		w.hashes = batch.Hash(w.b.plan.Spec.Hash, w.hashes)
		w.wait = append(w.wait, w.hashes...)
	}
	if _, ok := w.share.hold(uint64(cap(w.wait)+cap(w.signed)) * 8); !ok {
		return fmt.Errorf("%w of %d bytes: %w, and keys are held until it is (say --expect N, or raise --memory)", ErrMemory, w.b.memory.most, ErrCapacity)
	}
	return nil
}

// Finish merges the workers' filters and seals the result, or, for a shard,
// returns it as a partial filter. No worker may be used after.
func (b *Builder) Finish() (*codec.Filter, Report, error) {
	var rep Report
	if len(b.workers) == 0 {
		if _, err := b.Worker(); err != nil { // for a shard without input
			return nil, rep, err
		}
	}
	for _, w := range b.workers {
		rep.Rows += w.rows
		rep.KeysNull += w.null
	}
	rep.Keys = uint64(rep.Rows - rep.KeysNull)
	all, err := b.union(rep.Keys)
	if err != nil {
		return nil, rep, err
	}
	if err := all.decide(); err != nil {
		return nil, rep, err
	}
	if all.set != nil {
		rep.Distinct = all.set.Len()
	} else {
		rep.Distinct, rep.Estimated = distinct(all.bits, rep.Keys), true
	}
	if s := b.plan.opts.Shard; !sealing(s) {
		return all.open(b.plan.BuildID, codec.Partial{Of: s.Of, Held: []uint32{s.Index}}), rep, nil
	}
	f, err := all.seal(b.plan.BuildID)
	return f, rep, err
}

// union merges what the workers hold.
func (b *Builder) union(n uint64) (*partial, error) {
	spec := b.plan.Spec
	if !b.plan.unsized {
		all := b.workers[0].part
		for _, w := range b.workers[1:] {
			if err := all.merge(w.part); err != nil {
				return nil, err
			}
			w.part = nil
		}
		return all, nil
	}
	spec.Capacity = max(n, 1)
	all, err := newPartial(spec, &b.memory)
	if err != nil {
		return nil, err
	}
	for _, w := range b.workers {
		if err := all.drain(w); err != nil {
			return nil, err
		}
		all.stretch(w.bounds)
	}
	return all, nil
}

// drain puts in the keys that a worker held back, batch by batch.
func (p *partial) drain(w *Worker) error {
	for _, held := range []struct {
		values []uint64
		signed bool
	}{{w.wait, false}, {w.signed, true}} {
		for chunk := range slices.Chunk(held.values, 1<<16) {
			if !p.spec.integer() {
				p.keys += uint64(len(chunk))
				p.addHashes(chunk)
			} else if err := p.addInts(chunk, held.signed); err != nil {
				return err
			}
		}
	}
	w.wait, w.signed = nil, nil
	w.share.release()
	return nil
}

// distinct rounds the estimate from the bits, which cannot exceed the keys.
func distinct(f *bloom.Filter, added uint64) uint64 {
	c := f.Count().Keys
	if c >= float64(added) {
		return added
	}
	return uint64(c + 0.5)
}

// String says what is built, for people.
func (s Spec) String() string {
	return fmt.Sprintf("%s (%s)", strings.Join(s.Names, ","), strings.Join(s.Classes, ","))
}
