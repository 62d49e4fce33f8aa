package builds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Merge merges partial filters of one build, in any order, into the sealed
// filter or, if open is true, into a larger partial one. It refuses filters of
// other builds, sealed ones, shards that occur twice and, when sealing, missing
// shards. The error lists all of them, up to a limit. The filters do not
// change, and the result shares no memory with them.
func Merge(ctx context.Context, operands []*filters.Filter, open bool) (*filters.Filter, error) {
	stopped.Needs(ctx, "filterbuild.Merge")
	if len(operands) == 0 {
		return nil, errors.New("no filter to merge: want one or more")
	}
	parts, release, err := partsOf(operands)
	defer release()
	if err != nil {
		return nil, err
	}
	return mergeAll(ctx, parts, open, filters.Limits{}, false)
}

// MergeFiles is [Merge] for filter files. Unreadable files are listed in the
// error, too.
//
// Memory holds one filter, however many files there are, and in addition exact
// parts, one at a time or a few small ones. If all parts are exact, it holds
// sets of up to twice the size of their union. If that exceeds the limit, the
// error wraps [fault.ErrMemory] or [filters.ErrLimit]. MergeFiles uses GOMAXPROCS
// processors. For directories and patterns see [Names].
func MergeFiles(ctx context.Context, store storage.Source, names []string, open bool, lim filters.Limits) (*filters.Filter, error) {
	stopped.Needs(ctx, "filterbuild.MergeFiles")
	if len(names) == 0 {
		return nil, errors.New("no filter to merge: want one or more")
	}
	return ofParts(ctx, store, names, func(parts []part) (*filters.Filter, error) { return mergeAll(ctx, parts, open, lim, false) })
}

// mergeAll merges partial filters. With against, the caller adds the exceptions.
func mergeAll(ctx context.Context, parts []part, open bool, lim filters.Limits, against bool) (*filters.Filter, error) {
	held, err := agree(ofFilters, parts, open)
	if err != nil {
		return nil, err
	}
	first := parts[0].facts()
	together := &filters.Partial{Of: first.Partial.Of, Held: held, Division: first.Partial.Division}
	if counts(parts[0]) {
		f, err := mergeCounts(ctx, parts, lim)
		if err == nil && open {
			f.Facts().Partial = together
		}
		return f, err
	}
	if first.Exceptions != nil && !open && !against {
		return nil, faults.Of(cause.Shards, faults.Mismatch(fault.At{File: parts[0].name}, "partial filters", "ones without known keys", "others")).
			WithHint("name the same known keys with {Known}")
	}
	if _, exacts := byKind(parts); len(exacts) == 0 {
		lim.MaxBytes = cmp.Or(lim.MaxBits, lim.MaxBytes)
	}
	all, err := mergeParts(ctx, parts, lim)
	if err != nil {
		return nil, err
	}
	if !open {
		return all.seal(first.BuildID)
	}
	if err := all.decide(); err != nil {
		return nil, err
	}
	f := all.open(first.BuildID, together)
	if e := first.Exceptions; e != nil {
		members, err := hashesOf(parts)
		if err != nil {
			return nil, err
		}
		f.Facts().Exceptions = &filters.Exceptions{Hashes: members, Known: e.Known, Digest: e.Digest}
	}
	return f, nil
}

// agree checks that the parts are of one build, and returns the shards that
// they hold together.
func agree(n Noun, parts []part, open bool) (held []uint32, err error) {
	build := buildOf(parts)
	if build == nil {
		build = &parts[0]
	}
	var sealed, foreign, twice []error
	owner := map[uint32]string{}
	for i := range parts {
		p := &parts[i]
		switch f, at := &p.about, (fault.At{File: p.name}); {
		case f.Sealed():
			sealed = append(sealed, faults.Of(cause.Shards, faults.Mismatch(at, n.One, "a partial "+n.One, "a finished one")).
				WithHint("combine finished %s with %s", n.Many, n.By))
		case differs(n, &build.about, f) != nil:
			foreign = append(foreign, differs(n, &build.about, f).of(build.name, at))
		default:
			twice = append(twice, repeated(p, owner)...)
			held = append(held, f.Facts().Partial.Held...)
		}
	}
	var missing error
	slices.Sort(held)
	held = slices.Compact(held)
	if !build.about.Sealed() && !open {
		missing = lacking(n, held, build.facts().Partial.Of)
	}
	return held, several([]error{several(sealed), several(foreign), several(twice), missing})
}

// buildOf returns the first part of the build to which most of the partial
// filters belong; parts of other builds are the errors. It returns nil if all
// are sealed.
func buildOf(parts []part) (most *part) {
	count, first := map[buildID]int{}, map[buildID]*part{}
	best := buildID{}
	for i := range parts {
		if f := &parts[i].about; !f.Sealed() {
			k := idOf(f)
			if count[k]++; count[k] == 1 {
				first[k] = &parts[i]
			}
		}
	}
	for i := range parts { // in order, so that the first one wins a tie
		if f := &parts[i].about; !f.Sealed() {
			if k := idOf(f); most == nil || count[k] > count[best] {
				best, most = k, first[k]
			}
		}
	}
	return most
}

// buildID identifies the build of a partial filter.
type buildID struct {
	id [32]byte
	of uint32
}

func idOf(f *filters.Filter) buildID { return buildID{f.Facts().BuildID, f.Facts().Partial.Of} }

// difference distinguishes two partial filters of different builds.
type difference struct{ what, want, got, hint string }

func (d *difference) of(first string, at fault.At) error {
	return faults.Of(cause.Shards, faults.Mismatch(at, d.what, d.want+" as in "+first, d.got)).WithHint("%s", d.hint)
}

// differs returns nil if two partial filters are of one build. If the build IDs
// are equal, so is the rest, unless a program is at fault.
func differs(n Noun, a, b *filters.Filter) *difference {
	if idOf(a) != idOf(b) {
		return &difference{"build", buildName(a), buildName(b), "merge only partial " + n.Many + " that were built from the same inputs with the same options"}
	}
	if a.Facts().Partial.Division != b.Facts().Partial.Division {
		return &difference{"division of the text into shards", divisionName(a), divisionName(b), "build all shards with the same version, from files at the same place"}
	}
	const hint = "their build IDs are equal, but they differ: build both again"
	spell := func(f *filters.Filter) string {
		facts := f.Facts()
		return fmt.Sprintf("%q %q %q, %v, rate %v, %s, %v, known keys: %s", f.Normal(), f.KeyNames(), f.KeyClasses(), facts.Params, facts.FPRAsked, facts.Want, facts.Capacity, againstWord(f))
	}
	if want, got := spell(a), spell(b); want != got {
		return &difference{n.One + " of the build", want, got, hint}
	}
	return nil
}

// repeated records the part's shards in owner, and returns an error for each
// file that already has some of them.
func repeated(p *part, owner map[uint32]string) (errs []error) {
	var others []string // in order of appearance
	shards := map[string][]uint32{}
	partial := p.facts().Partial
	for _, s := range partial.Held {
		other, ok := owner[s]
		if !ok {
			owner[s] = p.name
			continue
		}
		if shards[other] == nil {
			others = append(others, other)
		}
		shards[other] = append(shards[other], s)
	}
	for _, other := range others {
		errs = append(errs, faults.Of(cause.Shards, faults.Mismatch(fault.At{File: p.name}, "shards", "each shard once",
			fmt.Sprintf("shard %s of %d, which is also in %s", numbered(shards[other]), partial.Of, other))).
			WithHint("leave one of the two out"))
	}
	return errs
}

// divisionName names the division of a partial filter in errors.
func divisionName(f *filters.Filter) string {
	division := f.Facts().Partial.Division
	if division == [32]byte{} {
		return "whole files"
	}
	return fmt.Sprintf("%x", division[:6])
}

// lacking returns an error unless all n shards are held.
func lacking(of Noun, held []uint32, n uint32) error {
	missing := int(n) - len(held)
	if missing <= 0 {
		return nil
	}
	return faults.Of(cause.Shards, faults.Mismatch(fault.At{}, "shards", fmt.Sprintf("all %d", n), fmt.Sprintf("%d, without %s", len(held), gaps(held, n)))).
		WithHint("add the missing partial %s, or merge into a larger partial %s with {MergePartial}", of.Many, of.One)
}

func buildName(f *filters.Filter) string {
	return fmt.Sprintf("%x of %d shards", f.Facts().BuildID[:6], f.Facts().Partial.Of)
}

// gaps lists the numbers below n that are not in held, which ascends, as
// ranges, up to a limit.
func gaps(held []uint32, n uint32) string {
	var l rangeList
	next := uint32(0)
	for _, s := range held {
		l.add(next, s)
		next = s + 1
	}
	l.add(next, n)
	return l.String()
}

// numbered lists ascending numbers as ranges, up to a limit.
func numbered(numbers []uint32) string {
	var l rangeList
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[0]+uint32(n) {
			n++
		}
		l.add(numbers[0], numbers[0]+uint32(n))
		numbers = numbers[n:]
	}
	return l.String()
}

// rangeList formats ranges of numbers, as in 1,4-5,7.
type rangeList struct {
	text []string
	more int // numbers that are not listed
}

// add adds the numbers from lo to hi, exclusive.
func (l *rangeList) add(lo, hi uint32) {
	switch {
	case lo >= hi:
	case len(l.text) == maxListed:
		l.more += int(hi - lo)
	case hi-lo == 1:
		l.text = append(l.text, fmt.Sprint(lo))
	default:
		l.text = append(l.text, fmt.Sprintf("%d-%d", lo, hi-1))
	}
}

func (l *rangeList) String() string {
	s := strings.Join(l.text, ",")
	if l.more > 0 {
		s += fmt.Sprintf(" and %d more", l.more)
	}
	return s
}

// mergeParts reads the keys of all parts into one. If any part is a Bloom
// filter, so is the result, from the start.
func mergeParts(ctx context.Context, parts []part, lim filters.Limits) (*partial, error) {
	first := &parts[0].about
	all, err := partialOf(first, &budget{most: limitOf(lim), workers: 1})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", parts[0].name, err)
	}
	blooms, exacts := byKind(parts)
	if len(blooms) > 0 {
		if err := all.fill(); err != nil {
			return nil, fmt.Errorf("%s: %w", blooms[0].name, err)
		}
	}
	for some := range slices.Chunk(blooms, readsAtOnce) {
		if err := all.takeBits(ctx, some); err != nil {
			return nil, err
		}
	}
	return all, all.takeSets(ctx, exacts, lim)
}

// partialOf returns an empty filter into which parts like f are merged.
func partialOf(f *filters.Filter, b *budget) (*partial, error) {
	facts := f.Facts()
	s, err := specOf(f)
	if err != nil {
		return nil, err
	}
	return &partial{spec: s, fpr: facts.FPRAsked, full: facts.Params, params: facts.Params, bounds: s.newBounds(), share: share{of: b}}, nil
}

// specOf returns the spec of a filter's build, as far as the filter has it.
func specOf(f *filters.Filter) (Spec, error) {
	facts := f.Facts()
	rule, err := keys.RuleOf(f.Normal())
	return Spec{
		Names: f.KeyNames(), Classes: f.KeyClasses(), Rule: rule, Hash: facts.Params.Hash, Geometry: facts.Params.Geometry, FPR: facts.FPRAsked, Want: facts.Want,
		Capacity: facts.Capacity.Keys, Room: facts.Capacity != (filters.Capacity{}), Multiset: facts.Counting != nil && facts.Counting.Multiset,
	}, err
}

func byKind(parts []part) (blooms, exacts []part) {
	for _, p := range parts {
		if p.about.Kind() != filters.KindExact {
			blooms = append(blooms, p)
		} else {
			exacts = append(exacts, p)
		}
	}
	return blooms, exacts
}

// readsAtOnce is how many files are merged at a time: enough for bits to be set
// many times while they are in the processor's cache, and few enough for any
// limit on open files.
const readsAtOnce = 64

// takeBits adds the bits of some Bloom filters to p's.
func (p *partial) takeBits(ctx context.Context, parts []part) error {
	heads, err := headers(parts)
	if err != nil {
		return err
	}
	var files []*filters.Header
	for i, h := range heads {
		p.keys += parts[i].facts().Keys
		p.widen(boundsIn(&parts[i].about))
		if f := parts[i].filter; f != nil {
			p.sketch(registersOf(f))
			if err := p.bits.Union(f.Bloom()); err != nil {
				return fmt.Errorf("%s: %w", parts[i].name, err)
			}
			continue
		}
		p.sketch(registersOf(h.Filter))
		files = append(files, h)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(filters.OrInto(ctx, p.bits, files...), restAll(parts))
}

// takeSets adds the members of exact filters to p's set or bits.
func (p *partial) takeSets(ctx context.Context, parts []part, lim filters.Limits) error {
	var sets unionStack
	for len(parts) > 0 {
		n := sideBySide(parts)
		some, err := loadSets(ctx, parts[:n], p.share.of, lim)
		if err != nil {
			return err
		}
		for i, q := range parts[:n] {
			p.keys += q.facts().Keys
			p.widen(boundsIn(&q.about))
			if p.bits != nil {
				p.hashAll(some[i].set)
			} else if err := p.pileUp(&sets, some[i].set); err != nil {
				return err
			}
			some[i].share.release()
		}
		parts = parts[n:]
	}
	if p.bits != nil {
		return nil
	}
	p.set = sets.all()
	return p.decide()
}

// pileUp adds a set to the pile, and turns the pile into p's bits once one of its
// sets costs more than the bits.
func (p *partial) pileUp(sets *unionStack, set *exact.Set) error {
	cost := sets.add(set)
	if _, err := p.share.set(sets.bytes()); err != nil {
		return err
	}
	if p.spec.Want == filters.KindExact || cost <= p.params.Bytes() {
		return nil
	}
	if err := p.fill(); err != nil {
		return err
	}
	for _, set := range *sets {
		p.hashAll(set)
	}
	*sets = nil
	return nil
}

// hashAll adds the members of a set to the bits.
func (p *partial) hashAll(set *exact.Set) {
	for values := range set.Values {
		p.hash(values)
	}
}

// unionStack is a union of sets that is computed late. Two sets are united when they
// have similar sizes, so none of many sets is copied more often than the
// logarithm of their number. Each set is less than half as large as the one
// before it, so all together take at most twice the memory of the largest.
type unionStack []*exact.Set

// add adds a set, which must not be used afterwards, and returns the cost of
// the set that contains it now.
func (p *unionStack) add(set *exact.Set) (cost uint64) {
	sets := *p
	for n := set.Len(); len(sets) > 0 && sets[len(sets)-1].Len() <= 2*n; n = set.Len() {
		last := sets[len(sets)-1]
		last.Union(set)
		set, sets = last, sets[:len(sets)-1]
	}
	*p = append(sets, set)
	return set.Cost()
}

// all returns the union and empties the pile.
func (p *unionStack) all() *exact.Set {
	all := exact.New()
	for len(*p) > 0 {
		last := len(*p) - 1
		set := (*p)[last]
		set.Union(all)
		all, *p = set, (*p)[:last]
	}
	return all
}

func (p unionStack) bytes() (n uint64) {
	for _, set := range p {
		n += set.Bytes()
	}
	return n
}

// besideBytes limits the exact payloads that are read concurrently. Larger ones
// are read one by one.
const besideBytes = 8 << 20

// sideBySide returns how many of the exact filters to read concurrently.
func sideBySide(parts []part) int {
	n, bytes := 0, uint64(0)
	for n < len(parts) && n < runtime.GOMAXPROCS(0) && (n == 0 || bytes+parts[n].bytes <= besideBytes) {
		bytes += parts[n].bytes
		n++
	}
	return n
}

// loaded is a set and its share of the budget.
type loaded struct {
	set   *exact.Set
	share share
}

// loadSets reads exact filters concurrently.
func loadSets(ctx context.Context, parts []part, b *budget, lim filters.Limits) ([]loaded, error) {
	sets, errs := make([]loaded, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i := range parts {
		sets[i].share.of = b
		wg.Go(func() { sets[i].set, errs[i] = parts[i].set(ctx, &sets[i].share, lim) })
	}
	wg.Wait()
	if err := stopped.Err(ctx); err != nil {
		return nil, err
	}
	return sets, several(errs)
}

// set reads or copies an exact filter, and holds it in the share.
func (p *part) set(ctx context.Context, s *share, lim filters.Limits) (*exact.Set, error) {
	if err := stopped.Err(ctx); err != nil {
		return nil, err
	}
	if p.filter != nil {
		set := p.filter.Exact().Clone()
		_, err := s.set(set.Bytes())
		return set, err
	}
	h, err := p.header()
	if err != nil {
		return nil, err
	}
	f, err := h.Load(lim)
	if err == nil {
		err = p.rest()
	}
	if err != nil {
		return nil, err
	}
	if _, err := s.set(f.Exact().Bytes()); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return f.Exact(), nil
}
