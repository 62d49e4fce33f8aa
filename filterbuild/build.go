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
	// IgnoreCase finds the columns by names whose letters may differ in case.
	IgnoreCase bool
	// NullMisfits makes a value that does not fit its cast a NULL. Otherwise it
	// is an error.
	NullMisfits bool
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
	// Seed is that of the hash. The keys of a filter that were chosen by another
	// one need another seed: those which that one let through in vain are like its
	// own keys, and where both hash alike, these would be let through more often
	// than the bits tell.
	Seed uint64
	// Capacity is an upper bound on the number of keys; 0: the number of rows,
	// which text files do not tell beforehand.
	Capacity uint64
	// Uncounted says that fewer keys come than the files have rows, nobody knows
	// how many: the capacity comes out while they are added, as with text. It
	// leaves Capacity out of account.
	Uncounted bool
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
	// Memory is the most bytes that filters, and keys that wait for theirs, may
	// take while they are filled; 0: no bound. Where one Bloom filter for as many
	// keys as there are rows exceeds it, one is filled that is folded
	// beforehand, which may take a second pass over the IDs. Where the budget has room for one
	// but not for the buffers of all workers, fewer run. While it is open
	// whether the filter will be exact, a set may take more than the Bloom filter
	// would: where the budget has no room for that, WantBloom needs to be said.
	Memory int64
	// Squeeze makes a Bloom filter that would exceed Memory as large as Memory
	// allows, with the rate that it then has, in place of an error.
	Squeeze bool
	// TempDir is where keys wait on disk that exceed Memory until their number
	// is known; empty: [os.TempDir].
	TempDir string
	Threads int // workers; 0: GOMAXPROCS
	Mem     memory.Allocator
	// Progress, if not nil, is called with the number of rows of each batch,
	// from many goroutines. See also [Plan.SetProgress].
	Progress func(rows int64)
}

// ErrCapacity says that a shard cannot tell how many keys the whole build has.
var ErrCapacity = errors.New("the number of keys is not known in advance")

// Report is what a build came to.
type Report struct {
	Rows      int64  // rows read
	Keys      uint64 // of them with a key that is not NULL
	KeysNull  int64  // rows without a key
	Distinct  uint64 // keys without duplicates: exact, or estimated from the bits
	Estimated bool   // Distinct is an estimate
	Sharing   Sharing
	Workers   int   // that filled the filter
	Passes    int   // over the keys: 2 if they were counted first
	Spilled   int64 // bytes of keys that waited on disk
	Seconds   float64
}

// threads returns the number of workers that are wished.
func (o Options) threads() int {
	if o.Threads > 0 {
		return o.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// KeyColumns returns the key columns.
func (o Options) KeyColumns() ([]key.Column, error) { return key.ParseColumns(o.Key) }

// keys returns how the columns become keys under a rule.
func (o Options) keys(rule key.Rule) key.Options {
	k := key.Options{Rule: rule, IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits}
	if o.Classes != nil {
		k.Classes = key.ClassesOf(o.Classes)
	}
	return k
}

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
	inputs, ok, err := (&partition.Job{Log: files}).Digest()
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

// nameless returns the first of the files that has no identity.
func nameless(files []*partition.File) string {
	for _, f := range files {
		if fp, err := f.Fingerprint(); fp == nil && err == nil {
			return f.Name
		}
	}
	return ""
}

// sealing reports whether a build of the shard ends in a sealed filter: whoever
// counts shards, be it to one, merges them.
func sealing(s partition.Shard) bool { return s == partition.Shard{} }

// classes compares the key's classes over all files. A column without a type,
// which holds only NULLs, is of the class that the others have.
func (p *Plan) classes(columns []key.Column) error {
	want := make([]key.Class, len(columns))
	first := make([]string, len(columns)) // file that has the class
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

// capacity bounds the number of keys by the number of rows.
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
	f, rep, err := p.fill(ctx, 1, 1)
	if errors.Is(err, fault.ErrMemory) && p.countable() {
		f, rep, err = p.fold(ctx, err)
	}
	rep.Seconds = time.Since(start).Seconds()
	return f, rep, err
}

// fill reads the keys into bits that are folded by the given factor beforehand.
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

// fold builds the filter in a budget that has no room, tooLarge says, for as many
// keys as there may be. It fills one that is folded until it fits; if then so few
// distinct keys are in that it would have been folded further anyhow, that is
// the filter. Else the keys, which are counted now, are read again into one that
// is folded as far as is sure, or, where that does not fit, as far as may be.
func (p *Plan) fold(ctx context.Context, tooLarge error) (*codec.Filter, Report, error) {
	params, fpr, err := p.Spec.size()
	if err != nil {
		return nil, Report{}, err
	}
	first := params.FoldWithin(uint64(p.opts.Memory))
	if first <= 1 { // it is not the bits that are too large
		return nil, Report{}, tooLarge
	}
	f, rep, err := p.fill(ctx, first, 1)
	if err != nil || f.Exact() != nil {
		return f, rep, err
	}
	count := f.Bloom().Count()
	if !(count.StdErr < 0.01*count.Keys+1) { // so full that they do not tell
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
	if len(folds) > maxTries { // of small filters, whose bits say little
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

// maxTries bounds how often the keys are read again.
const maxTries = 8

// each passes the keys of the plan's pieces to work, with several workers.
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

// keyOptions says how the plan's keys are read.
func (p *Plan) keyOptions(threads int) partition.KeyOptions {
	return partition.KeyOptions{Key: p.opts.Key, Options: p.opts.keys(p.Spec.Rule), IDs: true, Threads: threads}
}

// countable reports whether the keys can be read twice, and nobody else's
// filter needs to be of the size of this one before it is folded.
func (p *Plan) countable() bool {
	return sealing(p.opts.Shard) && !p.unsized && !p.Spec.Room && !slices.ContainsFunc(p.files, (*partition.File).Once)
}

// String says what is built, for people.
func (s Spec) String() string {
	return fmt.Sprintf("%s (%s)", strings.Join(s.Names, ","), strings.Join(s.Classes, ","))
}
