// Package filterbuild builds filters from ID sets and combines them.
//
// There are two ways to a filter. [Build] reads ID files. With [NewBuilder] a program adds
// keys itself, as Go values or Arrow arrays. Both work like this:
//
//	ID files ── Split(shard) ──► pages ──► keys ──► hashes ──► workers, which set bits
//	private filters ── OR-merge ──► one ── seal: fold, choose the kind ──► codec.Filter
//	        or one shared filter, locked a range of blocks at a time ──►
//
// A build may be divided among processes. A worker with a shard builds a partial filter;
// [Merge] or [MergeFiles] makes the whole of them. The result depends on the union of the
// keys and on the options, never on how the keys were divided. One exception: for large
// sets of integers from files, a sample of the files (the same for all shards) decides
// whether an exact set is tried at all.
//
// # Room
//
// A sealed filter is folded to the size that its keys need. Filters of two sets therefore
// seldom have the same size, and their union is too full for either size. Use
// Options.Room for sets that grow by unions: such filters keep the size for Options.Expect
// distinct keys, and filters with the same capacity and rate have the same size. An exact
// set is used while it is smaller than the bits; [Combine] turns it into bits once it is
// not.
package filterbuild

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Sentinels, for errors.Is.
var (
	// ErrFull: there are more keys than Options.Expect says, or, in unions, than the filters
	// have room for.
	ErrFull = builds.ErrFull
	// ErrUncounted: the number of keys is not known in advance, and Options.Expect does not say.
	ErrUncounted = builds.ErrUncounted
	// ErrRate: more false positives than asked for.
	ErrRate = builds.ErrRate
	// ErrMissing: keys to remove are not in the filter.
	ErrMissing = builds.ErrMissing
)

// Options are the options of a build. Only Key is required.
type Options struct {
	// Key names the key columns: paths separated by commas. Each may have a cast, as
	// in `user.id::int64`. [NewBuilder] has no files from which it could take the
	// columns' classes, so it needs a cast for each column, or Classes.
	Key string
	// Identity identifies the set of keys that are added to a Builder made by
	// [NewBuilder]. Only partial filters with the same identity can be merged, so use
	// the same for all shards of a build, and another for other keys. A build from
	// files ignores it: their identity follows from the files.
	Identity []byte
	// Classes are the classes of the filter's keys, one per column. Numbers of
	// files are converted to them exactly; numbers without an equal there are
	// left out. nil: the classes of the columns, which must be the same in all
	// files.
	Classes []string
	// IgnoreCase ignores case when it finds columns by name.
	IgnoreCase bool
	// NullMisfits turns a value that does not fit its cast into NULL. Otherwise
	// it is an error.
	NullMisfits bool
	// Normalize names the rules applied to strings in the key: some of trim and
	// lower and one of uuid, url and url-host, separated by commas; see FORMAT.md of
	// package codec. They are recorded in the filter and apply to everything it is
	// compared with. An ID that is not a UUID, or has no host, is an error.
	Normalize string
	// FPR is the requested false-positive rate; 0: chosen by the number of
	// keys. MaxSize limits the bits in bytes instead; 0: no limit. At most one
	// of the two is set.
	FPR     float64
	MaxSize uint64
	Kind    codec.Kind
	// Multiset makes a counting filter count a key each time that it is added, so that as many
	// removals remove it. Otherwise it is a set: adding a key that seems to be in does nothing.
	Multiset bool
	// Geometry of a Bloom filter; 0: Split512, which is smaller, for rates up
	// to 0.1 %, otherwise Split256, which is faster. The rate alone decides, so
	// all shards choose the same.
	Geometry bloom.Geometry
	// Seed of the hash. Use another seed if the keys were preselected by a
	// Bloom filter; otherwise both filters share their false positives.
	Seed uint64
	// Expect is an upper bound on the number of keys. 0: the number of rows,
	// or, where that is not known in advance (text files, keys from a program),
	// the number of keys, which then wait until all are read; for a counting set, the
	// number of different keys.
	Expect uint64
	// Uncounted means that an unknown part of the rows is added, so the number
	// of keys is counted while they are added. Expect is then ignored.
	Uncounted bool
	// Room keeps the sealed filter at the size for Expect distinct keys, so
	// that unions can add keys of later sets.
	Room bool
	// NoKeyRange omits the smallest and the largest key from the filter. Scans
	// use them to skip parts of a log.
	NoKeyRange bool
	// NoTextRange omits them if a column of the key is text or binary, since such keys may be
	// names or addresses, which could be read in the file. Of a Bloom filter it shows no other
	// key.
	NoTextRange bool
	// Shard is the part of the inputs to read. The filter is then a partial one
	// that must be merged, even if it is the only shard. The zero Shard reads
	// everything and seals.
	Shard dataset.Shard
	// Memory limits the bytes that filters, and keys that wait for their number
	// to be known, may take while they are filled; 0: no limit. If one Bloom
	// filter for as many keys as there are rows exceeds it, a folded one is
	// filled, which may take a second pass over the IDs. If the buffers of all
	// workers do not fit, fewer workers run. Before it is known whether the
	// filter will be exact, a set may take more than the Bloom filter would; if
	// there is no memory for that, set Kind to KindBloom.
	Memory int64
	// Squeeze makes a Bloom filter that would exceed Memory as large as Memory
	// allows, with a higher rate, instead of returning an error.
	Squeeze bool
	// TempDir is where waiting keys that exceed Memory are stored; empty:
	// os.TempDir.
	TempDir string
	Threads int // workers; 0: GOMAXPROCS
	Mem     memory.Allocator
	// Progress, if not nil, is called with the number of rows of each batch,
	// concurrently.
	Progress func(rows int64)
}

// Report is the result of a build in numbers.
type Report struct {
	Rows      int64  // rows read
	Keys      uint64 // rows whose key is not NULL
	KeysNull  int64  // rows whose key is NULL
	Distinct  uint64 // distinct keys: exact, or estimated from the bits
	Estimated bool   // Distinct is an estimate
	Spilled   int64  // bytes of waiting keys written to disk
	Seconds   float64
	// With [BuildAgainst], distinct known keys that are also IDs, and pass; and those that
	// would pass by mistake, and do not.
	KnownInSet, Exceptions uint64
}

// String returns the report in one line, as the command prints it.
func (r Report) String() string { return builds.Figures(r).String() }

// Build reads the IDs of files, or opts.Shard of them, and returns their filter: a sealed one
// without a shard, otherwise a partial one. Errors wrap [storage.ErrNoFiles] if there are no
// files, fault.ErrMismatch if the key's classes differ between files, and fault.ErrMemory if
// the budget is too small.
func Build(ctx context.Context, files []*partition.File, opts Options) (*codec.Filter, Report, error) {
	stopped.Needs(ctx, "filterbuild.Build")
	plan, err := builds.NewPlan(door.In(files), builds.Options(opts))
	if err != nil {
		return nil, Report{}, err
	}
	f, r, err := plan.Build(ctx)
	return (*codec.Filter)(f), Report(r.Figures), err
}

// BuildAgainst is [Build] of a filter that known good keys do not pass, unless they are IDs: it
// finds and stores the false positives among them, see FORMAT.md of package codec. The key
// columns have the same names in known and in files. files are read twice; one that can be
// read only once is an error. The false positives of up to 330 million keys at a rate of
// 0.1 % fit into the file. A partial filter has to be merged with [MergeAgainst].
func BuildAgainst(ctx context.Context, files, known []*partition.File, opts Options) (*codec.Filter, Report, error) {
	stopped.Needs(ctx, "filterbuild.BuildAgainst")
	plan, err := builds.NewPlan(door.In(files), builds.Options(opts))
	if err == nil {
		err = plan.SetKnown(door.In(known))
	}
	if err != nil {
		return nil, Report{}, err
	}
	f, r, err := plan.Build(ctx)
	return (*codec.Filter)(f), Report(r.Figures), err
}

// BuildInputs is [Build] for a list of inputs, which must stay open. It opens only one file of
// each schema and those of the shard, and returns the same filter.
func BuildInputs(ctx context.Context, list *partition.Inputs, opts Options) (_ *codec.Filter, _ Report, err error) {
	stopped.Needs(ctx, "filterbuild.BuildInputs")
	plan, err := builds.NewPlanOf(ctx, (*inputs.List)(list), builds.Options(opts))
	if err != nil {
		return nil, Report{}, err
	}
	defer faults.Join(&err, plan.Close)
	f, r, err := plan.Build(ctx)
	return (*codec.Filter)(f), Report(r.Figures), err
}

// Builder fills a filter with keys that its workers are given. Close must be called.
type Builder builds.Builder

func (b *Builder) in() *builds.Builder { return (*builds.Builder)(b) }

// NewBuilder returns a builder for a filter without ID files: the program adds the keys. o.Key
// names the columns, with their types (`user::int64`) or with their classes in o.Classes.
//
// Keys may come from slices, a channel or a queue: each goroutine has a [Worker] and passes it
// some thousand keys at a time.
//
// Without o.Expect, keys wait until Finish, when their number is known: in memory or, above
// o.Memory, on disk. With o.Shard the filter is partial; o.Expect and o.Identity are then
// required, and must be equal for all shards.
//
// A filter depends on the union of its keys and on the options, not on the number of workers
// or shards or on how the keys are divided among them. It equals the filter of a build from
// files with the same keys and options, with two exceptions: the build ID contains
// o.Identity instead of the files' identity, and there is no sample from which to see early
// that the keys are too far apart for an exact set.
func NewBuilder(o Options) (*Builder, error) {
	b, err := builds.NewBuilder(builds.Options(o))
	return (*Builder)(b), err
}

// Workers returns how many goroutines the memory budget allows.
func (b *Builder) Workers() int { return b.in().Workers() }

// Worker returns a new worker. It may be called concurrently.
func (b *Builder) Worker() (*Worker, error) {
	w, err := b.in().Worker()
	return (*Worker)(w), err
}

// Finish merges what the workers hold and seals the result or, with a shard, returns it as a
// partial filter. It must be called once, and neither the workers nor a new one can be used
// afterwards.
func (b *Builder) Finish(ctx context.Context) (*codec.Filter, Report, error) {
	f, r, err := b.in().Finish(ctx)
	return (*codec.Filter)(f), Report(r.Figures), err
}

// Close releases what the builder holds on disk. Call it in any case.
func (b *Builder) Close() error { return b.in().Close() }

// Worker adds keys to a [Builder]'s filter. One goroutine uses it at a time.
type Worker builds.Worker

// Add adds the keys of all rows; a row with a NULL has none. It normalizes strings by the
// filter's rules and converts numbers to the filter's class. A value that cannot be a key,
// because it is not a UUID although the rules require one or has no equal in the class, is
// an error: otherwise the filter would reject a value that was added.
func (w *Worker) Add(v key.Values) error { return (*builds.Worker)(w).Add(keys.Values(v)) }

// AddSeq adds the keys of a sequence to a builder, in batches. Any number of calls may run at
// the same time: as many go on as [Builder.Workers] says, the others wait. The sequence may
// use its byte slices again.
//
// Errors are those of [Worker.Add], and that of a context that has ended. Keys are then
// missing, as they are if the sequence panics, and [Builder.Finish] returns an error.
func AddSeq[T ~int64 | ~uint64 | ~string | ~[]byte | ~[16]byte](ctx context.Context, b *Builder, sequence iter.Seq[T]) (err error) {
	stopped.Needs(ctx, "filterbuild.AddSeq")
	if sequence == nil {
		return errors.New("the sequence of keys is nil")
	}
	w, err := b.in().Lend(ctx)
	if err != nil {
		return err
	}
	returned := errors.New("the sequence of keys panicked")
	defer func() { w.Return(returned) }()
	returned = addSeq(ctx, w, sequence)
	return returned
}

// seqBatch is how many keys of a sequence are added at once.
const seqBatch = 1 << 13

func addSeq[T ~int64 | ~uint64 | ~string | ~[]byte | ~[16]byte](ctx context.Context, w *builds.Worker, sequence iter.Seq[T]) error {
	batch, n, first := make([]T, seqBatch), 0, 0
	byteSlices, values := plain(batch)
	var memory []byte // of byteSlices
	add := func() error {
		err := w.AddFrom(first, values(n))
		first, n, memory = first+n, 0, memory[:0]
		return err
	}
	for v := range sequence {
		if batch[n] = v; byteSlices != nil {
			at := len(memory)
			memory = append(memory, byteSlices[n]...)
			byteSlices[n] = memory[at:]
		}
		n++
		if err := stopped.Err(ctx); err != nil {
			return err
		}
		if n < seqBatch {
			continue
		}
		if err := add(); err != nil {
			return err
		}
	}
	return add()
}

// plain returns the values of the first n keys of a batch, and the batch if its keys are byte
// slices. A declared type has the memory layout of its underlying type.
func plain[T any](batch []T) (byteSlices [][]byte, values func(n int) keys.Values) {
	at, all := unsafe.Pointer(unsafe.SliceData(batch)), len(batch)
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Int64:
		return nil, valuesOf(keys.Int64s, unsafe.Slice((*int64)(at), all))
	case reflect.Uint64:
		return nil, valuesOf(keys.Uint64s, unsafe.Slice((*uint64)(at), all))
	case reflect.String:
		return nil, valuesOf(keys.Strings, unsafe.Slice((*string)(at), all))
	case reflect.Slice:
		byteSlices = unsafe.Slice((*[]byte)(at), all)
		return byteSlices, valuesOf(keys.ByteSlices, byteSlices)
	default:
		return nil, valuesOf(keys.UUIDs, unsafe.Slice((*[16]byte)(at), all))
	}
}

func valuesOf[T any](of func([]T) keys.Values, batch []T) func(n int) keys.Values {
	return func(n int) keys.Values { return of(batch[:n]) }
}

// Merge merges partial filters of one build, in any order, into the sealed filter. It refuses
// filters of other builds, sealed ones, shards that occur twice and missing ones. The error
// lists all of them, up to a limit. The filters do not change, and the result shares no
// memory with them.
func Merge(ctx context.Context, filters ...*codec.Filter) (*codec.Filter, error) {
	return merge(ctx, filters, false)
}

// MergePartial is [Merge] of some of the shards, into a larger partial filter.
func MergePartial(ctx context.Context, filters ...*codec.Filter) (*codec.Filter, error) {
	return merge(ctx, filters, true)
}

func merge(ctx context.Context, partials []*codec.Filter, open bool) (*codec.Filter, error) {
	f, err := builds.Merge(ctx, in(partials), open)
	return (*codec.Filter)(f), err
}

func in(list []*codec.Filter) []*filters.Filter {
	return each.Slice(list, func(f *codec.Filter) *filters.Filter { return (*filters.Filter)(f) })
}

// MergeFiles is [Merge] for filter files. Unreadable files are listed in the error, too.
//
// Memory holds one filter, however many files there are, and in addition exact parts, one at a
// time or a few small ones. If all parts are exact, it holds sets of up to twice the size of
// their union. If that exceeds the limit, the error wraps fault.ErrMemory or
// [codec.ErrLimit].
func MergeFiles(ctx context.Context, store storage.Source, names []string, lim codec.Limits) (*codec.Filter, error) {
	f, err := builds.MergeFiles(ctx, store, names, false, filters.Limits{MaxBytes: lim.MaxBytes})
	return (*codec.Filter)(f), err
}

// MergeAgainst is [MergeFiles] for partial filters of [BuildAgainst], with the same known
// keys. It returns the filter that one build would.
func MergeAgainst(ctx context.Context, store storage.Source, names []string, known []*partition.File, lim codec.Limits) (*codec.Filter, error) {
	stopped.Needs(ctx, "filterbuild.MergeAgainst")
	f, _, err := builds.MergeAgainst(ctx, store, names, filters.Limits{MaxBytes: lim.MaxBytes}, func(f *filters.Filter) (*builds.Known, error) {
		return builds.KnownOf(f, door.In(known), 0)
	})
	return (*codec.Filter)(f), err
}

// SetOp is an operation on sealed filters.
type SetOp string

// The operations.
const (
	// Union contains every key of any of the sets. Its bits are those of a filter of the common
	// size to which all keys were added, so its false-positive rate is higher than that of
	// each filter. FPR of the result returns it.
	Union = SetOp(builds.Union)
	// Intersect contains every key that is in all of the sets. A key missing from some sets
	// passes at most at the smallest rate of these sets' filters at the common size. FPR of
	// the result is the rate for keys that are in none of the sets, which is lower.
	Intersect = SetOp(builds.Intersect)
	// Difference contains the keys of the first set that are in none of the others, without
	// error. It is for exact filters only: subtracting a Bloom filter would also remove its
	// false positives, which may be keys of the difference, and bits that keys share cannot
	// be cleared.
	Difference = SetOp(builds.Difference)
	// Subtract takes the keys of counting filters from the first one, which must have them: the
	// counters are then those of a build without the keys, unless some are saturated. A key
	// that the first filter does not have is noticed only if a counter would fall below 0.
	Subtract = SetOp(builds.Subtract)
)

// Combine applies op to sealed filters over the same kind of key. If all are
// exact, so is the result; otherwise it is a Bloom filter.
//
// Bloom filters must have one geometry. Different sizes are folded to the
// greatest size that divides all of them, which may be far smaller than each,
// and exact filters become bits of that size. If that was necessary, a result
// with more than twice the rate requested of any Bloom filter is refused. Since
// sealed filters are as small as their keys allow, a union of Bloom filters is
// nearly always better built from the ID sets, or from filters with room. The
// result's rate may exceed what was requested of the filters.
//
// A union of filters with room for the same number of keys has that room, too,
// and so has a difference. Exact sets become bits of that size once the bits
// are the better filter. A union that would lose room is refused.
//
// Counting filters can be subtracted and, if they are multisets, united: copies of a key add
// up. Their capacities and rates must be the same.
//
// A union or intersection of one filter, or of several with one digest, is the first of
// them itself. Otherwise the result shares no memory with the filters. They do not change.
func Combine(ctx context.Context, op SetOp, filters ...*codec.Filter) (*codec.Filter, error) {
	f, err := builds.Combine(ctx, builds.SetOp(op), in(filters)...)
	return (*codec.Filter)(f), err
}

// CombineFiles is [Combine] for filter files. It reads the headers first, then one filter after
// the other. Memory holds the result and, for a filter that cannot be read straight into it,
// that filter and its fold, all within the limit.
func CombineFiles(ctx context.Context, store storage.Source, op SetOp, names []string, lim codec.Limits) (*codec.Filter, error) {
	f, err := builds.CombineFiles(ctx, store, builds.SetOp(op), names, filters.Limits{MaxBytes: lim.MaxBytes})
	return (*codec.Filter)(f), err
}

// Update returns a counting filter from which keys are removed, and to which others are then
// added; f does not change. The order of the values does not matter, and what is in is decided
// before each of the two steps. In a set, a value counts once, and one that seems to be in is
// not added. If it only seems so, as happens at the rate of [codec.Filter.FPR], removals of
// keys that share its counters may lose it, and its own removal may lose them. Multisets lose
// no key as long as only keys that are in are removed.
//
// Keys to remove that are certainly not in are an error that wraps [ErrMissing]. Others that
// are not in look like members at the rate of FPR: removing one makes counters too low, so
// keys that share them may be lost.
func Update(ctx context.Context, f *codec.Filter, remove, add key.Values) (*codec.Filter, error) {
	g, err := builds.UpdateValues(ctx, (*filters.Filter)(f), keys.Values(remove), keys.Values(add))
	return (*codec.Filter)(g), err
}

// Plain returns the Bloom filter of a finished counting filter: its bits are those of a build
// from the keys that are in with the same Expect and rate in [bloom.Split256], if no counter is
// saturated. It has neither registers nor a key range.
func Plain(f *codec.Filter) (*codec.Filter, error) {
	g, err := builds.Plain((*filters.Filter)(f))
	return (*codec.Filter)(g), err
}
