package builds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// Sharing is how the workers of a process fill the bits together.
type Sharing string

const (
	// Alone means that one worker fills the filter.
	Alone Sharing = "alone"
	// Private: each worker fills a partial filter of its own, and these are
	// OR-merged. This is faster as long as they fit into the caches.
	Private Sharing = "private"
	// Ranges: all workers fill one filter, locking a range of its blocks at a
	// time (see [bloom.Shared]). It takes the memory of one filter, and a few
	// MiB per worker.
	Ranges Sharing = "ranges"
)

const (
	// privateMost limits the bytes of all private filters together. Filling two
	// of some 32 MiB takes 10 to 30 % less time than filling one by ranges; of
	// 128 MiB the same time; of 1 GiB more.
	privateMost = 64 << 20
	// The size of a worker's buffer of hashes. More than 4 MiB gains nothing,
	// however large the filter is; with less than 256 KiB the locks cost time.
	bufferMost  = 4 << 20
	bufferLeast = 256 << 10
)

// Builder fills a filter with keys that its workers are given. Close must be
// called.
type Builder struct {
	plan    *Plan
	spec    Spec         // the plan's, completed during the build
	keys    keys.Options // of the keys that are added
	params  bloom.Params // of the bits while they are filled; not set until the size is known
	threads int
	sharing Sharing
	memory  budget
	pool    *pool          // the shared filter, if sharing is Ranges
	list    *counting.List // of a counting filter: the hashes of all keys, else nil

	mu      sync.Mutex // of workers and lost
	workers []*Worker
	lost    error        // why keys are missing
	seats   chan *Worker // for Lend; nil: none has been made
	done    atomic.Bool  // Finish or Close was called
	spill   *spill.File
}

// errDone is returned by calls of a Builder that has ended.
var errDone = errors.New("the filter's builder is finished or closed (use a new one)")

// The errors of zero values, to which nothing can be added.
var (
	errNoBuilder = errors.New("the filter's builder is empty (make one with NewBuilder)")
	errNoWorker  = errors.New("the worker is empty (get one from Builder.Worker)")
)

// open returns an error if nothing can be added any more.
func (b *Builder) open() error {
	switch {
	case b == nil || b.plan == nil:
		return errNoBuilder
	case b.done.Load():
		return errDone
	}
	return nil
}

// open returns an error if nothing can be added.
func (w *Worker) open() error {
	if w == nil || w.b == nil {
		return errNoWorker
	}
	return w.b.open()
}

// NewBuilder returns a builder for up to Workers goroutines. It may read a
// sample of the IDs. The error wraps fault.ErrMemory if the budget is too small
// for a single worker.
func (p *Plan) NewBuilder(ctx context.Context) (*Builder, error) {
	stopped.Needs(ctx, "builds.Plan.NewBuilder")
	if err := p.made(); err != nil {
		return nil, err
	}
	return p.newBuilder(ctx, 1)
}

// newBuilder is NewBuilder for bits that are folded in advance.
func (p *Plan) newBuilder(ctx context.Context, fold uint64) (*Builder, error) {
	b := p.builder()
	if p.unsized || b.list != nil {
		return b, b.checkCounters()
	}
	sparse, err := p.sparse(ctx)
	if err != nil {
		return nil, err
	}
	b.spec.sparse = sparse
	b.memory.most = p.memory(b.spec)
	return b, b.divide(func(bloom.Params, float64) uint64 { return fold })
}

// builder returns a builder without a size yet.
func (p *Plan) builder() *Builder {
	b := &Builder{plan: p, spec: p.Spec, threads: p.opts.threads()}
	b.keys = keys.Options{Rule: p.Spec.Rule, Classes: keys.ClassesOf(p.Spec.Classes)}
	b.memory.most = p.memory(b.spec)
	b.memory.workers = uint64(b.threads)
	b.spill = spill.New(p.opts.TempDir, waitsOnDisk)
	if p.unsized {
		b.sharing = Private // of waiting keys
	}
	if p.Spec.Want == filters.KindCounting {
		b.sharing, b.list = Private, b.newList()
	}
	return b
}

// divide fixes the size of the bits and how the workers share them.
func (b *Builder) divide(fold func(p bloom.Params, fpr float64) uint64) error {
	params, fpr, err := b.spec.size()
	if err != nil {
		return err
	}
	params.Blocks /= fold(params, fpr)
	size := params.Bytes()
	if most := b.memory.most; most > 0 && size > most && !b.spec.exact() {
		if b.spec.MaxSize > 0 || !b.plan.opts.Squeeze {
			return overBudget(most, size)
		}
		b.spec.FPR, b.spec.MaxSize = 0, most
		return b.divide(fold)
	}
	b.params = params
	b.share(size)
	b.memory.workers = uint64(b.threads)
	return nil
}

// share chooses the way of sharing that allows the most workers within the
// budget, and their number.
func (b *Builder) share(size uint64) {
	n, room := uint64(b.threads), b.memory.most
	if room == 0 {
		room = math.MaxInt64
	}
	if size > room || b.spec.Want == filters.KindExact { // the build fails if the set turns into bits
		b.sharing = Private
		return
	}
	private := min(n, min(privateMost, room)/size)
	ranges := min(n, (room-size)/bufferLeast)
	if b.spec.exact() {
		// A set that outgrows the bits is converted, so both exist for a moment.
		private, ranges = min(private, room/(2*size)), min(ranges, (room-size)/(2*size))
	}
	switch {
	case private <= 1 && ranges <= 1:
		b.sharing, b.threads = Alone, 1
	case private >= ranges:
		b.sharing, b.threads = Private, int(private)
	default:
		b.sharing, b.threads = Ranges, int(ranges)
		b.pool = &pool{params: b.params, buffer: min(bufferMost, (room-size)/ranges), share: share{of: &b.memory}}
	}
}

// Workers returns how many goroutines the memory budget allows.
func (b *Builder) Workers() int { return b.threads }

// Close releases what the builder holds on disk. Call it in any case.
func (b *Builder) Close() error {
	if b == nil || b.plan == nil {
		return nil
	}
	b.done.Store(true)
	return b.spill.Close()
}

// pool is the filter that all workers fill by ranges, once one of them has bits
// to set.
type pool struct {
	params bloom.Params
	buffer uint64 // bytes per worker
	share  share

	mu     sync.Mutex
	filter *bloom.Filter
	shared *bloom.Shared
}

// adder returns a new adder to the filter.
func (p *pool) adder() (*bloom.Adder, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filter == nil {
		if err := p.share.bits(p.params); err != nil {
			return nil, err
		}
		f, err := bloom.New(p.params)
		if err != nil {
			return nil, err
		}
		p.filter, p.shared = f, bloom.NewShared(f, p.buffer)
	}
	return p.shared.Adder(), nil
}

// Worker adds keys to a Builder's filter. One goroutine uses it at a time.
type Worker struct {
	b       *Builder
	part    *partial // nil until the size is known
	rows    int64
	null    int64
	backlog *backlog        // keys that wait until the size is known
	counted *counting.Adder // to the builder's list, else nil
	hashes  []uint64
	values  *keys.ValueEncoder
}

// Worker returns a new worker. It may be called concurrently.
func (b *Builder) Worker() (*Worker, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	return b.newWorker()
}

func (b *Builder) newWorker() (*Worker, error) {
	w := &Worker{b: b}
	if b.list != nil {
		w.counted = b.list.Adder()
	} else if b.plan.unsized {
		w.backlog = &backlog{spec: b.spec, spill: b.spill, bounds: b.spec.newBounds(), share: share{of: &b.memory}, most: b.memory.most / backlogPart / b.memory.workers}
	} else {
		var err error
		if w.part, err = b.newPartial(); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.workers = append(b.workers, w)
	return w, nil
}

// newPartial returns an empty partial filter for a worker.
func (b *Builder) newPartial() (*partial, error) {
	p, err := newPartial(b.spec, &b.memory)
	if err != nil {
		return nil, err
	}
	p.params, p.pool = b.params, b.pool
	return p, p.begin()
}

// Lend returns a worker of a builder made by NewBuilder, until [Worker.Return]. It waits while
// [Builder.Workers] are lent; if the context ends meanwhile, it returns the context's error.
func (b *Builder) Lend(ctx context.Context) (*Worker, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	select {
	case w := <-b.seats:
		if w != nil {
			return w, nil
		}
		w, err := b.Worker()
		if err != nil {
			b.seats <- nil
		}
		return w, err
	case <-ctx.Done():
		return nil, stopped.Err(ctx)
	}
}

// Return gives a worker back that Lend returned. With an error, keys that it was meant to add
// are missing, and the builder cannot be finished.
func (w *Worker) Return(err error) {
	if err != nil {
		w.b.mu.Lock()
		w.b.lost = cmp.Or(w.b.lost, err)
		w.b.mu.Unlock()
	}
	w.b.seats <- w
}

// AddBatch adds the keys of a batch. They must be of the filter's classes and
// made under its rule; otherwise the error wraps fault.ErrMismatch.
func (w *Worker) AddBatch(batch *keys.Batch) error {
	if err := w.open(); err != nil {
		return err
	}
	if batch == nil {
		return errors.New("the batch of keys is nil")
	}
	if err := batch.Fits(w.b.keys.Classes, w.b.keys.Rule); err != nil {
		return err
	}
	w.rows += int64(batch.Len)
	w.null += int64(batch.Nulls())
	if len(batch.Rows) == 0 { // a column without a type may not have the filter's class
		return nil
	}
	switch {
	case w.counted != nil:
		w.hashes = batch.Hash(w.b.spec.Hash, w.hashes)
		return w.counted.Add(w.hashes)
	case w.part != nil:
		return w.part.add(batch)
	case w.backlog != nil:
		return w.backlog.add(batch)
	}
	return errDone
}

// Finish merges what the workers hold and seals the result or, with a shard,
// returns it as a partial filter. It must be called once, and neither the workers
// nor a new one can be used afterwards.
func (b *Builder) Finish(ctx context.Context) (*filters.Filter, Report, error) {
	stopped.Needs(ctx, "filterbuild.Builder.Finish")
	var rep Report
	if err := b.open(); err != nil {
		return nil, rep, err
	}
	if b.done.Swap(true) {
		return nil, rep, errDone
	}
	if err := stopped.Err(ctx); err != nil {
		return nil, rep, err
	}
	b.mu.Lock()
	used, lost := b.workers, b.lost
	b.mu.Unlock()
	if lost != nil {
		return nil, rep, fmt.Errorf("keys are missing, as they could not be added: %w", lost)
	}
	if len(used) == 0 {
		if _, err := b.newWorker(); err != nil { // a shard without input
			return nil, rep, err
		}
		used = b.workers
	}
	defer func() {
		for _, w := range used {
			w.part, w.backlog, w.counted = nil, nil, nil
		}
	}()
	for _, w := range b.workers {
		rep.Rows += w.rows
		rep.KeysNull += w.null
	}
	rep.Keys = uint64(rep.Rows - rep.KeysNull)
	if b.list != nil {
		f, err := b.count(ctx, &rep)
		return f, rep, err
	}
	if b.plan.unsized {
		if err := b.release(ctx, rep.Keys); err != nil {
			return nil, rep, err
		}
	}
	all, err := b.union()
	if err != nil {
		return nil, rep, err
	}
	if err := all.decide(); err != nil {
		return nil, rep, err
	}
	rep.Sharing, rep.Workers, rep.Passes, rep.Spilled = b.sharing, len(b.workers), 1, b.spill.Written()
	if all.set != nil {
		rep.Distinct = all.set.Len()
		if rep.Sharing == Ranges { // there are no bits to share
			rep.Sharing = Private
		}
	} else {
		rep.Distinct, rep.Estimated = distinct(all.bits, all.registers, rep.Keys), true
	}
	if rep.Workers == 1 { // too little input for more workers
		rep.Sharing = Alone
	}
	if p := b.plan.partial(); p != nil {
		return all.open(b.plan.BuildID, p), rep, nil
	}
	f, err := all.seal(b.plan.BuildID)
	return f, rep, err
}

// union merges what the workers hold. Once one of them, or a union of some, has
// become bits that all share, the others follow.
func (b *Builder) union() (*partial, error) {
	all, rest := b.workers[0].part, b.workers[1:]
	for len(rest) > 0 && (b.pool == nil || b.pool.filter == nil) {
		if err := all.merge(rest[0].part); err != nil {
			return nil, err
		}
		rest[0].part, rest = nil, rest[1:]
	}
	if b.pool == nil || b.pool.filter == nil {
		all.pool = nil // if it turns into bits now, it does not share them
		return all, nil
	}
	if err := all.flush(); err != nil {
		return nil, err
	}
	for _, w := range rest {
		if err := w.part.flush(); err != nil {
			return nil, err
		}
		all.keys += w.part.keys
		all.widen(w.part.bounds)
		all.sketch(w.part.registers)
		w.part.share.release()
	}
	all.share.release()
	all.bits, all.pool = b.pool.filter, nil
	return all, nil
}

// release sizes the filter, now that the number of keys is known, and adds the
// waiting keys.
func (b *Builder) release(ctx context.Context, n uint64) error {
	b.spec.Capacity = max(n, 1)
	counted, parts := new(bloom.Registers), 0
	for _, w := range b.workers {
		if err := w.backlog.end(); err != nil {
			return err
		}
		counted.Merge(&w.backlog.registers)
		parts += len(w.backlog.blocks)
	}
	b.threads = min(b.threads, max(parts, 1))
	if err := b.makeRoom(counted); err != nil {
		return err
	}
	waiting := b.workers
	b.workers = nil
	for range b.threads {
		w := &Worker{b: b}
		var err error
		if w.part, err = b.newPartial(); err != nil {
			return err
		}
		b.workers = append(b.workers, w)
	}
	blocks := make(chan block)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(blocks)
		for _, w := range waiting {
			for _, x := range w.backlog.blocks {
				select {
				case blocks <- x:
				case <-ctx.Done():
					return stopped.Err(ctx)
				}
			}
			w.backlog.blocks = nil
			w.backlog.share.release()
		}
		return nil
	})
	for _, w := range b.workers {
		group.Go(func() error { return w.drain(blocks) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, w := range waiting {
		b.workers[0].part.widen(w.backlog.bounds)
	}
	return nil
}

// makeRoom divides the work, and moves all waiting keys to disk if the filter
// needs the memory.
func (b *Builder) makeRoom(counted *bloom.Registers) error {
	distinct := counted.Estimate()
	err := b.divide(func(p bloom.Params, fpr float64) uint64 {
		if b.spec.Room {
			return 1
		}
		return p.SureFold(bloom.Cardinality{Keys: distinct, StdErr: 0.0081 * distinct}, fpr)
	})
	if err != nil || b.memory.most == 0 {
		return err
	}
	if held := b.memory.held.Load(); held+b.given() <= b.memory.most {
		return nil
	}
	for _, w := range b.workers {
		if err := w.backlog.toDisk(); err != nil {
			return err
		}
	}
	return nil
}

// given returns the bytes that share allotted to all workers together.
func (b *Builder) given() uint64 {
	size, n := b.params.Bytes(), uint64(b.threads)
	given := size
	switch b.sharing {
	case Private:
		given = n * size
	case Ranges:
		given = size + n*b.pool.buffer
	}
	if b.spec.exact() {
		given += n * 2 * size // sets, until they are given up
	}
	return given
}

// drain adds keys that have waited.
func (w *Worker) drain(blocks <-chan block) error {
	var buf []uint64
	var raw []byte
	for x := range blocks {
		values, err := x.load(&buf, &raw)
		if err != nil {
			return err
		}
		for chunk := range slices.Chunk(values, 1<<14) {
			if err := w.part.addWaiting(chunk, x.signed); err != nil {
				return err
			}
		}
	}
	return nil
}
