package builds

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/progress"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Options are the options of a build. Package filterbuild documents them.
type Options struct {
	Key         string
	Identity    []byte
	Classes     []string
	IgnoreCase  bool
	NullMisfits bool
	Normalize   string
	FPR         float64
	MaxSize     uint64
	Kind        codec.Kind
	Multiset    bool
	Geometry    codecbloom.Geometry
	Seed        uint64
	Expect      uint64
	Uncounted   bool
	Room        bool
	NoKeyRange  bool
	NoTextRange bool
	Shard       dataset.Shard
	Memory      int64
	Squeeze     bool
	TempDir     string
	Threads     int
	Mem         memory.Allocator
	Progress    func(rows int64)
}

// ErrUncounted means that a shard cannot know how many keys the whole build has.
var ErrUncounted = cause.New(cause.Uncounted, "the number of keys is not known in advance")

// Report is the result of a build in numbers.
type Report struct {
	Figures
	Sharing Sharing
	Workers int // workers that filled the filter
	Passes  int // over the keys: 2 if they were counted first
	Known   KnownFigures
	// InOne bounds, for an intersection, the rate at which keys pass that are in all sets but
	// one: it is the largest rate of one set's filter.
	InOne float64
}

// Figures are what programs see of it, as filterbuild.Report.
type Figures struct {
	Rows      int64  // rows read
	Keys      uint64 // rows whose key is not NULL
	KeysNull  int64  // rows whose key is NULL
	Distinct  uint64 // distinct keys: exact, or estimated from the bits
	Estimated bool   // Distinct is an estimate
	Spilled   int64  // bytes of waiting keys written to disk
	Seconds   float64
	// The numbers of known keys that are also IDs, and of those that would pass by mistake.
	KnownInSet, Exceptions uint64
}

// check returns an error if the options, whatever the inputs, allow no build.
func (o Options) check() error {
	switch {
	case o.FPR != 0 && o.MaxSize != 0:
		return errors.New("a false-positive rate and a size: want one of the two")
	case o.Kind > codec.KindExact && o.Kind != codec.KindCounting:
		return faults.Errorf("{Kind}: want auto (0), bloom (1), exact (2) or counting (4), got %d", uint8(o.Kind))
	case o.Kind == codec.KindCounting && o.MaxSize != 0 && o.MaxSize < counting.BlockBytes:
		return faults.Errorf("{MaxSize} of a counting filter: want %d bytes or more, got %d", counting.BlockBytes, o.MaxSize)
	case o.Multiset && o.Kind != codec.KindCounting:
		return faults.Errorf("{Multiset} needs {Kind counting}, which counts keys (give both)")
	case o.Kind == codec.KindCounting && !o.Multiset && !sealing(o.Shard):
		return faults.Errorf("{Shard} of {Kind counting} needs {Multiset}: a set counts each key once, and shards may have keys in common")
	}
	return cmp.Or(
		options.AtLeastZero("Threads", o.Threads, "GOMAXPROCS"),
		options.AtLeastZero("Memory", o.Memory, "no limit"),
		options.Shard(o.Shard.Index, o.Shard.Of),
	)
}

// threads returns the requested number of workers.
func (o Options) threads() int {
	if o.Threads > 0 {
		return o.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// keys returns the options for turning columns into keys under a rule.
func (o Options) keys(rule keys.Rule) keys.Options {
	k := keys.Options{Rule: rule, IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits}
	if o.Classes != nil {
		k.Classes = keys.ClassesOf(o.Classes)
	}
	return k
}

// Plan is a build that has examined its inputs but has not read them.
type Plan struct {
	Spec    Spec
	BuildID [32]byte // zero if an input has no identity until it is read
	// Division is the digest of the pieces into which text is divided, for
	// [filters.Partial]; zero if no text is.
	Division [32]byte
	Known    *Known // that SetKnown has set; nil: none
	opts     Options
	files    []*source.File
	pieces   []source.Piece
	list     *fromList // nil: the files are all inputs
	unsized  bool      // the number of keys is known only after reading them
	bits     int64     // see SetBits
}

// NewPlan finds the key in all files, compares their classes and fixes what all
// workers of the build agree on. The error for no files wraps [storage.ErrNoFiles].
func NewPlan(files []*source.File, opts Options) (*Plan, error) {
	p, columns, err := newPlan(opts)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no files of IDs: want one or more%w", quiet.Error{Err: storage.ErrNoFiles})
	}
	if err := source.CheckFiles("IDs", files); err != nil {
		return nil, err
	}
	p.files = slices.Clone(files) // views take the place of some
	p.views(p.files, columns)
	p.pieces = source.Split(p.files, opts.Shard)
	p.Division = division(files)
	if err := p.agree(columns); err != nil {
		return nil, err
	}
	if err := p.capacity(p.rows); err != nil {
		return nil, err
	}
	digest, ok, err := (&output.Run{Log: files}).Digest()
	if err != nil {
		return nil, err
	}
	if ok {
		p.BuildID = p.Spec.id(digest)
	} else if !sealing(opts.Shard) { // partial filters are identified by their inputs
		return nil, fmt.Errorf("%s: %w, so the input cannot be divided into shards (name a file)", nameless(files), ErrUncounted)
	}
	return p, nil
}

// agree fixes what follows from the columns of the files.
func (p *Plan) agree(columns []keys.Column) error {
	p.Spec.SkipBad = slices.ContainsFunc(p.files, func(f *source.File) bool {
		_, _, skips := f.BadLines()
		return skips
	})
	if reads := slices.Compact(each.Slice(p.files, (*source.File).Reads)); strings.Join(reads, "") != "" {
		p.Spec.reading = append(p.Spec.reading, reads...)
	}
	if err := p.classes(columns); err != nil {
		return err
	}
	return p.Spec.check()
}

// division digests how text files are divided into ranges. This does not follow from
// their content: the size of ranges depends on the version, and is larger over a
// network.
func division(files []*source.File) [32]byte {
	d := newDivided()
	for i, f := range files {
		d.add(i, f.Format(), f.NumGroups(), f.GroupBytes)
	}
	return d.sum()
}

// divided computes the digest of a division.
type divided struct {
	h   hash.Hash
	any bool
}

func newDivided() *divided { return &divided{h: sha256.New()} }

// add adds input i.
func (d *divided) add(i int, format dataset.Format, groups int, bytes func(int) int64) {
	if !source.IsText(format) || groups < 2 {
		return
	}
	d.any = true
	fmt.Fprintf(d.h, "%d:", i)
	for g := range groups {
		fmt.Fprintf(d.h, " %d", bytes(g))
	}
}

func (d *divided) sum() (sum [32]byte) {
	if d.any {
		d.h.Sum(sum[:0])
	}
	return sum
}

// newPlan returns the part of a plan that depends on the options alone, and the key
// columns.
func newPlan(opts Options) (*Plan, []keys.Column, error) {
	if err := opts.check(); err != nil {
		return nil, nil, err
	}
	if opts.Mem == nil {
		opts.Mem = memory.DefaultAllocator
	}
	columns, err := keys.ParseColumns(opts.Key)
	if err != nil {
		return nil, nil, err
	}
	rule, err := keys.ParseRule(opts.Normalize)
	if err != nil {
		return nil, nil, err
	}
	p := &Plan{opts: opts}
	p.Spec = Spec{
		Rule: rule,
		Hash: bloom.Hash{ID: bloom.XXH3, Seed: opts.Seed}, Geometry: bloom.Geometry(opts.Geometry), Capacity: opts.Expect,
		FPR: opts.FPR, MaxSize: opts.MaxSize, Room: opts.Room, Want: filters.Kind(opts.Kind), NoRange: opts.NoKeyRange,
		Multiset: opts.Multiset,
	}
	if opts.Kind == codec.KindCounting {
		p.Spec.MaxSize /= counting.BlockBytes / bloom.Split256.BlockBytes()
		if opts.Geometry == 0 {
			p.Spec.Geometry = bloom.Split256
		}
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

// nameless returns the first file without an identity.
func nameless(files []*source.File) string {
	for _, f := range files {
		if fp, err := f.Fingerprint(); fp == nil && err == nil {
			return f.Name()
		}
	}
	return ""
}

// sealing reports whether a build of the shard ends in a sealed filter. With
// shards, even a single one, it does not: its filters are merged.
func sealing(s dataset.Shard) bool { return s == dataset.Shard{} }

// partial returns the part of the build that a filter of the plan's shard holds; nil: all.
func (p *Plan) partial() *filters.Partial {
	s := p.opts.Shard
	if sealing(s) {
		return nil
	}
	return &filters.Partial{Of: s.Of, Held: []uint32{s.Index}, Division: p.Division}
}

// views replaces files by views that check IDs by the plan's rule.
func (p *Plan) views(files []*source.File, columns []keys.Column) {
	for i, f := range files {
		files[i] = f.WithIDs(columns, p.opts.keys(p.Spec.Rule))
	}
}

// classes compares the classes of the key in all files. A column without a
// type, which has only NULLs, takes the class of the other files.
func (p *Plan) classes(columns []keys.Column) error {
	want := make([]keys.Class, len(columns))
	first := make([]string, len(columns)) // first file with that class
	for i := range want {
		want[i] = keys.Null
	}
	options := p.opts.keys(p.Spec.Rule)
	for _, f := range p.files {
		enc, err := keys.NewEncoder(f.Schema(), columns, options)
		if err != nil {
			return f.Failed(err)
		}
		if source.IsText(f.Format()) && p.list == nil {
			p.Spec.reading = append(p.Spec.reading, readAs(f, enc))
		}
		if p.opts.Classes != nil {
			continue
		}
		for i, got := range enc.Classes() {
			if want[i] == keys.Null {
				want[i], first[i] = got, f.Name()
			}
			at := fault.At{File: f.Name(), Column: columns[i].String()}
			if err := keys.Same(at, columns[i], first[i], want[i], got); err != nil {
				return err
			}
		}
	}
	p.Spec.Classes = p.opts.Classes
	if p.opts.Classes == nil {
		for _, c := range want {
			switch {
			case c != keys.Null:
			case p.Spec.Rule != 0 && !p.Spec.Rule.Concerns(want): // which only strings can follow
				c = p.Spec.Rule.Class(keys.Bytes)
			case p.Spec.Want == filters.KindExact: // which only integers can be
				c = keys.Integer
			}
			p.Spec.Classes = append(p.Spec.Classes, string(c))
		}
	}
	p.Spec.NoRange = p.Spec.NoRange || p.opts.NoTextRange && slices.ContainsFunc(p.Spec.Classes, isText)
	return nil
}

// capacity sets the capacity to the number of rows if none was given. rows returns that number,
// or -1 and the input that does not state its own.
func (p *Plan) capacity(rows func() (n int64, of string, err error)) error {
	if p.opts.Uncounted {
		p.unsized, p.Spec.Capacity = true, 0
		return nil
	}
	if p.Spec.Capacity > 0 {
		return nil
	}
	switch n, of, err := rows(); {
	case err != nil:
		return err
	case n >= 0:
		p.Spec.Capacity = uint64(n)
	case !p.opts.Shard.Whole():
		return faults.Errorf("%s: %w, so the shards' filters would differ in size (give an upper bound, {Expect N})", of, ErrUncounted)
	default:
		p.unsized = true
	}
	return nil
}

// Sized reports whether an upper bound on the number of keys is known before they
// are read.
func (p *Plan) Sized() bool { return !p.unsized }

// SetProgress makes Build call fn with the number of rows of each batch,
// concurrently; nil: no calls.
func (p *Plan) SetProgress(fn func(rows int64)) {
	if p != nil {
		p.opts.Progress = fn
	}
}

// SetBits lets the bits of a Bloom filter, and what is needed to fill them, take n bytes,
// unless an exact set may come first. Sets are limited by Options.Memory, which must leave
// room for garbage, since they grow.
func (p *Plan) SetBits(n int64) { p.bits = n }

// Size returns the parameters of the bits that a Bloom filter of these options takes until
// it is sealed, and its false-positive rate when it holds Expect keys. The error wraps
// fault.ErrMemory if that is more than Memory, or more than bits bytes.
func Size(opts Options, bits int64) (bloom.Params, float64, error) {
	p, _, err := newPlan(opts)
	if err != nil {
		return bloom.Params{}, 0, err
	}
	params, _, err := p.Spec.sizeWithin(uint64(max(opts.Memory, bits, 0)))
	return params, params.Geometry.FPR(params.Blocks, opts.Expect), err
}

// memory returns the budget in bytes of what a build under s holds; 0: no limit.
func (p *Plan) memory(s Spec) uint64 {
	if s.exact() {
		return uint64(max(p.opts.Memory, 0))
	}
	return uint64(max(p.opts.Memory, p.bits, 0))
}

// errNoPlan is the error of a Plan that NewPlan or NewPlanOf has not returned.
var errNoPlan = errors.New("the plan is empty (make one with NewPlan or NewPlanOf)")

// made returns an error for a Plan that NewPlan or NewPlanOf has not returned.
func (p *Plan) made() error {
	if p == nil || p.opts.Mem == nil { // which has a default
		return errNoPlan
	}
	return nil
}

// Build reads the plan's shard of the IDs and returns its filter: a sealed one
// if the plan has no shard, otherwise a partial one.
func (p *Plan) Build(ctx context.Context) (*filters.Filter, Report, error) {
	stopped.Needs(ctx, "builds.Plan.Build")
	if err := p.made(); err != nil {
		return nil, Report{}, err
	}
	start := time.Now()
	f, rep, err := p.fill(ctx, 1, 1)
	if errors.Is(err, fault.ErrMemory) && p.countable() {
		f, rep, err = p.fold(ctx, err)
	}
	if err == nil && p.Known != nil {
		rep.Known, err = p.except(ctx, f)
		rep.KnownInSet, rep.Exceptions = rep.Known.InSet, rep.Known.Exceptions
	}
	rep.Seconds = time.Since(start).Seconds()
	return f, rep, err
}

// fill reads the keys into bits that are folded in advance by the given factor.
func (p *Plan) fill(ctx context.Context, fold uint64, pass int) (f *filters.Filter, rep Report, err error) {
	b, err := p.newBuilder(ctx, fold)
	if err != nil {
		return nil, rep, err
	}
	defer faults.Join(&err, b.Close)
	err = p.each(ctx, b.Workers(), func() (func(*keys.Batch) error, error) {
		w, err := b.Worker()
		if err != nil {
			return nil, err
		}
		return w.AddBatch, nil
	})
	if err = cmp.Or(err, source.Unchanged(p.pieces)); err != nil {
		return nil, rep, err
	}
	f, rep, err = b.Finish(ctx)
	rep.Passes = pass
	return f, rep, err
}

// fold builds the filter if its full size exceeds the budget; tooLarge is the
// error of that attempt. It fills a filter that is folded until it fits. If
// there are so few distinct keys that sealing would fold at least as far, that
// is the result. Otherwise the keys, now counted, are read again into a filter
// that is folded as far as sealing will certainly fold, or, if that does not
// fit, as far as it may.
func (p *Plan) fold(ctx context.Context, tooLarge error) (*filters.Filter, Report, error) {
	params, fpr, err := p.Spec.size()
	if err != nil {
		return nil, Report{}, err
	}
	first := params.FoldWithin(p.memory(p.Spec))
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

// maxTries limits how often the keys are read again.
const maxTries = 8

// each passes the keys of the plan's pieces to the functions that newWork returns,
// one per worker.
func (p *Plan) each(ctx context.Context, threads int, newWork func() (func(*keys.Batch) error, error)) error {
	_, _, err := keyscan.Read(progress.With(ctx, p.opts.Progress), p.pieces, p.keyOptions(threads), func() (func(*keyscan.Keys) error, error) {
		work, err := newWork()
		return func(k *keyscan.Keys) error { return work(k.Batch) }, err
	})
	return err
}

// keyOptions returns the options for reading the plan's keys.
func (p *Plan) keyOptions(threads int) keyscan.ReadOptions {
	return keyscan.ReadOptions{Key: p.opts.Key, Options: p.opts.keys(p.Spec.Rule), IDs: true, Threads: threads}
}

// countable reports whether the keys can be read twice, and no other filter
// must have this one's size before folding.
func (p *Plan) countable() bool {
	return sealing(p.opts.Shard) && !p.unsized && !p.Spec.Room && p.Spec.Want != filters.KindCounting && !slices.ContainsFunc(p.files, (*source.File).Once)
}

// String describes what is built.
func (s Spec) String() string {
	return fmt.Sprintf("%s (%s)", strings.Join(s.Names, ","), strings.Join(s.Classes, ","))
}

// String returns the figures in one line, as the command prints them.
func (f Figures) String() string {
	about := ""
	if f.Estimated {
		about = "about "
	}
	return fmt.Sprintf("%d rows, %d keys, %d rows with a NULL, %s%d distinct keys", f.Rows, f.Keys, f.KeysNull, about, f.Distinct)
}
