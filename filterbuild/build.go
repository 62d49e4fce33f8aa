package filterbuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Options says how to build a filter. Only Key is required.
type Options struct {
	// Key names the key columns: paths separated by commas, each of which may be
	// cast, as in `user.id::int64`. A Builder made by [NewBuilder] has no files to
	// take the columns' classes from, so it needs the types here, or Classes.
	Key string
	// Identity names the set of keys that a Builder made by [NewBuilder] is given.
	// Partial filters are merged only if it is equal, so all shards of a build
	// give the same, and builds of other keys another. Files identify themselves.
	Identity []byte
	// Classes are the classes of the filter's keys, one for each column, to
	// which numbers are converted exactly; those that have no equal there are
	// left out. nil: those of the columns, in which all files must agree.
	Classes []string
	// IgnoreCase matches column names regardless of case.
	IgnoreCase bool
	// NullMisfits makes a value that does not fit its cast a NULL instead of an
	// error.
	NullMisfits bool
	// Normalize names the rule that normalizes key strings before they are
	// compared: some of trim, lower and uuid, separated by commas; see FORMAT.md of
	// package codec. The filter records it, and it applies to everything that is
	// compared with the filter. With uuid, an ID that is not a UUID is an error.
	Normalize string
	// FPR is the wanted false-positive rate; 0: one that follows from the number of
	// keys. MaxSize limits the size of the bits in bytes instead; 0: no limit. At
	// most one of the two is set.
	FPR     float64
	MaxSize uint64
	Kind    codec.Want
	// Geometry is the geometry of a Bloom filter; 0: Split512, the smaller one, for
	// rates up to 0.1 %, else Split256, the faster one. The choice depends on the
	// rate alone, so all shards choose alike.
	Geometry bloom.Geometry
	// Seed is the seed of the hash. Use another seed if the keys were preselected
	// by a Bloom filter; otherwise both filters share their false positives.
	Seed uint64
	// Capacity is an upper bound on the number of keys; 0: the number of rows,
	// which is not known in advance for text files.
	Capacity uint64
	// Uncounted says that fewer keys are added than the files have rows, and that
	// their number is not known in advance. As with text, the keys wait until it is
	// known. Capacity is ignored.
	Uncounted bool
	// Room makes the sealed filter keep the size for Capacity distinct keys, so
	// that the keys of later sets can be added by unions.
	Room bool
	// NoKeyRange leaves the smallest and the largest key out of the filter. A scan
	// uses them to skip data.
	NoKeyRange bool
	// Shard is the part of the inputs to read. The result is then a partial filter,
	// which has to be merged even if there is only one shard. The zero Shard reads
	// everything and seals the filter.
	Shard partition.Shard
	// Memory is the maximum number of bytes for filters that are being filled and
	// for waiting keys; 0: no limit. If a Bloom filter for all rows exceeds it,
	// Build fills a folded one, which may need a second pass over the IDs. If the
	// budget has room for the filter but not for the buffers of all workers, fewer
	// workers run. While it is undecided whether the filter becomes exact, a set
	// may need more memory than the Bloom filter; set Kind to WantBloom if the
	// budget has no room for that.
	Memory int64
	// Squeeze shrinks a Bloom filter that would exceed Memory to the size that
	// fits, at a higher false-positive rate, instead of returning an error.
	Squeeze bool
	// TempDir is the directory for waiting keys that exceed Memory; empty:
	// [os.TempDir].
	TempDir string
	Threads int // workers; 0: GOMAXPROCS
	Mem     memory.Allocator
	// Progress, if not nil, is called with the number of rows of each batch,
	// concurrently from several goroutines. See also [Plan.SetProgress].
	Progress func(rows int64)
}

// ErrCapacity is returned if a shard cannot know how many keys the whole build has.
var ErrCapacity = errors.New("the number of keys is not known in advance")

// Report describes the result of a build.
type Report struct {
	Rows      int64  // rows read
	Keys      uint64 // rows whose key is not NULL
	KeysNull  int64  // rows whose key is NULL
	Distinct  uint64 // distinct keys: exact, or estimated from the bits
	Estimated bool   // Distinct is an estimate
	Sharing   Sharing
	Workers   int   // workers that filled the filter
	Passes    int   // over the keys: 2 if they were counted first
	Spilled   int64 // bytes of waiting keys written to disk
	Seconds   float64
}

// threads returns the wanted number of workers.
func (o Options) threads() int {
	if o.Threads > 0 {
		return o.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// KeyColumns returns the key columns.
func (o Options) KeyColumns() ([]key.Column, error) { return key.ParseColumns(o.Key) }

// keys returns the options for turning columns into keys under a rule.
func (o Options) keys(rule key.Rule) key.Options {
	k := key.Options{Rule: rule, IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits}
	if o.Classes != nil {
		k.Classes = key.ClassesOf(o.Classes)
	}
	return k
}

// Plan is a build whose inputs have been examined, but whose keys have not been
// read.
type Plan struct {
	Spec    Spec
	BuildID [32]byte // zero if an input has no identity until it is read
	opts    Options
	files   []*partition.File
	pieces  []partition.Piece
	unsized bool // the number of keys is known only after reading them
}

// NewPlan finds the key columns in all files, compares their classes and fixes
// everything that all workers of the build must agree on.
func NewPlan(files []*partition.File, opts Options) (*Plan, error) {
	p, columns, err := newPlan(opts)
	if err != nil {
		return nil, err
	}
	p.files, p.pieces = files, partition.Split(files, opts.Shard)
	p.Spec.SkipBad = slices.ContainsFunc(files, (*partition.File).SkipsBad)
	if err := p.classes(columns); err != nil {
		return nil, err
	}
	if err := p.Spec.check(); err != nil {
		return nil, err
	}
	if err := p.capacity(); err != nil {
		return nil, err
	}
	inputs, ok, err := (&partition.Run{Log: files}).Digest()
	if err != nil {
		return nil, err
	}
	if ok {
		p.BuildID = p.Spec.id(inputs)
	} else if !sealing(opts.Shard) { // partial filters are told apart by their inputs
		return nil, fmt.Errorf("%s: %w, so the input cannot be divided into shards (name a file)", nameless(files), ErrCapacity)
	}
	return p, nil
}

// newPlan returns what follows from the options alone, and the key columns.
func newPlan(opts Options) (*Plan, []key.Column, error) {
	if opts.FPR != 0 && opts.MaxSize != 0 {
		return nil, nil, errors.New("a false-positive rate and a size: want one of the two")
	}
	if opts.Mem == nil {
		opts.Mem = memory.DefaultAllocator
	}
	columns, err := opts.KeyColumns()
	if err != nil {
		return nil, nil, err
	}
	rule, err := key.ParseRule(opts.Normalize)
	if err != nil {
		return nil, nil, err
	}
	p := &Plan{opts: opts}
	p.Spec = Spec{
		Rule: rule,
		Hash: bloom.Hash{ID: bloom.XXH3, Seed: opts.Seed}, Geometry: opts.Geometry, Capacity: opts.Capacity,
		FPR: opts.FPR, MaxSize: opts.MaxSize, Room: opts.Room, Want: opts.Kind, NoRange: opts.NoKeyRange,
	}
	for _, c := range columns {
		p.Spec.Names = append(p.Spec.Names, c.Path.String())
		if c.Cast != nil {
			p.Spec.reading = append(p.Spec.reading, c.String())
		}
	}
	if p.Spec.reading != nil && opts.NullMisfits {
		p.Spec.reading = append(p.Spec.reading, "misfits are NULL")
	}
	return p, columns, nil
}

// nameless returns the name of the first file that has no identity.
func nameless(files []*partition.File) string {
	for _, f := range files {
		if fp, err := f.Fingerprint(); fp == nil && err == nil {
			return f.Name
		}
	}
	return ""
}

// sealing reports whether a build of the shard ends in a sealed filter. A build
// with shards, even with one, ends in a merge.
func sealing(s partition.Shard) bool { return s == partition.Shard{} }

// classes compares the key classes of all files. A column without a type, which
// holds only NULLs, takes the class of the others.
func (p *Plan) classes(columns []key.Column) error {
	want := make([]key.Class, len(columns))
	first := make([]string, len(columns)) // first file with that class
	for i := range want {
		want[i] = key.Null
	}
	options := p.opts.keys(p.Spec.Rule)
	for _, f := range p.files {
		f.CheckIDs(columns, options)
		enc, err := key.NewEncoder(f.Schema(), columns, options)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if f.Format.IsText() {
			as := string(f.Format)
			for _, c := range enc.Columns() {
				as += " " + f.Schema().Field(c).Type.String()
			}
			p.Spec.reading = append(p.Spec.reading, as)
		}
		if p.opts.Classes != nil {
			continue
		}
		for i, got := range enc.Classes() {
			if want[i] == key.Null {
				want[i], first[i] = got, f.Name
			}
			at := fault.At{File: f.Name, Column: columns[i].String()}
			if err := key.Same(at, columns[i], first[i], want[i], got); err != nil {
				return err
			}
		}
	}
	p.Spec.Classes = p.opts.Classes
	if p.opts.Classes == nil {
		for _, c := range want {
			p.Spec.Classes = append(p.Spec.Classes, string(c))
		}
	}
	return nil
}

// capacity sets the capacity to the number of rows if none was given.
func (p *Plan) capacity() error {
	if p.opts.Uncounted {
		p.unsized, p.Spec.Capacity = true, 0
		return nil
	}
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
				return fault.Errorf("%s: %w, so the shards' filters would differ in size (give an upper bound, {Capacity N})", f.Name, ErrCapacity)
			}
			p.unsized = true
			p.Spec.Capacity = 0
			return nil
		}
		p.Spec.Capacity += uint64(n)
	}
	return nil
}

// Sized reports whether an upper bound on the number of keys is known before they
// are read.
func (p *Plan) Sized() bool { return !p.unsized }

// SetProgress makes Build call fn with the number of rows of each batch,
// concurrently from several goroutines. nil removes it.
func (p *Plan) SetProgress(fn func(rows int64)) { p.opts.Progress = fn }

// Build reads the IDs of the plan's shard and returns their filter: sealed if the
// plan has no shard, else partial.
func (p *Plan) Build(ctx context.Context) (*codec.Filter, Report, error) {
	start := time.Now()
	f, rep, err := p.fill(ctx, 1, 1)
	if errors.Is(err, fault.ErrMemory) && p.countable() {
		f, rep, err = p.fold(ctx, err)
	}
	rep.Seconds = time.Since(start).Seconds()
	return f, rep, err
}

// fill reads the keys into bits that are folded by the given factor from the start.
func (p *Plan) fill(ctx context.Context, fold uint64, pass int) (f *codec.Filter, rep Report, err error) {
	b, err := p.newBuilder(ctx, fold)
	if err != nil {
		return nil, rep, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	err = p.each(ctx, b.Workers(), func() (func(*key.Batch) error, error) {
		w, err := b.Worker()
		if err != nil {
			return nil, err
		}
		return w.AddBatch, nil
	})
	if err = cmp.Or(err, partition.Unchanged(p.pieces)); err != nil {
		return nil, rep, err
	}
	f, rep, err = b.Finish(ctx)
	rep.Passes = pass
	return f, rep, err
}

// fold builds the filter when, as tooLarge says, the budget has no room for bits
// for all keys. It first fills bits that are folded until they fit. If these turn
// out to hold so few distinct keys that they would have been folded at least as far
// anyway, they are the filter. Otherwise the keys, whose number is now known, are
// read again into bits that are folded as far as is certainly possible or, if those
// do not fit, as far as may be possible.
func (p *Plan) fold(ctx context.Context, tooLarge error) (*codec.Filter, Report, error) {
	params, fpr, err := p.Spec.size()
	if err != nil {
		return nil, Report{}, err
	}
	first := params.FoldWithin(uint64(p.opts.Memory))
	if first <= 1 { // the bits are not what is too large
		return nil, Report{}, tooLarge
	}
	f, rep, err := p.fill(ctx, first, 1)
	if err != nil || f.Exact() != nil {
		return f, rep, err
	}
	count := f.Bloom().Count()
	if !(count.StdErr < 0.01*count.Keys+1) { // too full to estimate the number of keys
		return nil, rep, tooLarge
	}
	sure := params.SureFold(count, fpr)
	if sure%first == 0 {
		return f, rep, nil
	}
	if sure >= first {
		return p.fill(ctx, sure, 2)
	}
	folds := params.Folds(count, fpr)
	if len(folds) > maxTries { // small filters, whose bits give a poor estimate
		return nil, rep, tooLarge
	}
	for i, k := range folds {
		if k < first {
			break
		}
		f, rep, err := p.fill(ctx, k, 2+i)
		if err != nil || f.FPR() <= bloom.FoldLimit(fpr) {
			return f, rep, err
		}
	}
	return nil, rep, tooLarge
}

// maxTries is the maximum number of times that keys are read again.
const maxTries = 8

// each passes the keys of the plan's pieces to the functions that newWork returns,
// one per worker.
func (p *Plan) each(ctx context.Context, threads int, newWork func() (func(*key.Batch) error, error)) error {
	_, err := partition.ReadKeys(ctx, p.pieces, p.keyOptions(threads), func() (func(*partition.Keys) error, error) {
		work, err := newWork()
		return func(k *partition.Keys) error {
			if p.opts.Progress != nil {
				p.opts.Progress(int64(k.Batch.Len))
			}
			return work(k.Batch)
		}, err
	})
	return err
}

// keyOptions returns the options for reading the plan's keys.
func (p *Plan) keyOptions(threads int) partition.KeyOptions {
	return partition.KeyOptions{Key: p.opts.Key, Options: p.opts.keys(p.Spec.Rule), IDs: true, Threads: threads}
}

// countable reports whether the keys can be read twice, and no other filter depends
// on the size of this one before it is folded.
func (p *Plan) countable() bool {
	return sealing(p.opts.Shard) && !p.unsized && !p.Spec.Room && !slices.ContainsFunc(p.files, (*partition.File).Once)
}

// String describes what is built, for people.
func (s Spec) String() string {
	return fmt.Sprintf("%s (%s)", strings.Join(s.Names, ","), strings.Join(s.Classes, ","))
}
