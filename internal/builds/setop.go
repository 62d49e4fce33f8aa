package builds

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// SetOp is an operation on sealed filters.
type SetOp string

const (
	Union      SetOp = "union"      // every key of any of the sets
	Intersect  SetOp = "intersect"  // every key that is in all of them
	Difference SetOp = "difference" // the keys of the first set that are in none of the others
	Subtract   SetOp = "subtract"   // of counting filters: the keys of the first one without those of the others, which it has
)

// foldLimit is how many times the requested rate a result may have if filters
// were folded to a common size.
const foldLimit = 2

// Combine is filterbuild.Combine.
func Combine(ctx context.Context, op SetOp, operands ...*filters.Filter) (*filters.Filter, error) {
	stopped.Needs(ctx, "filterbuild.Combine")
	if err := op.takes(len(operands)); err != nil {
		return nil, err
	}
	parts, release, err := partsOf(operands)
	defer release()
	if err != nil {
		return nil, err
	}
	for i := range parts { // the result records what it was made from
		if parts[i].digest, err = operands[i].Digest(); err != nil {
			return nil, fmt.Errorf("%s: %w", parts[i].name, err)
		}
	}
	f, _, err := combineParts(ctx, op, parts, filters.Limits{})
	return f, err
}

// CombineFiles is [Combine] for filter files. It reads the headers first, then
// one filter after the other. Memory holds the result and, for a filter that
// cannot be read straight into it, that filter and its fold, all within the
// limit.
func CombineFiles(ctx context.Context, store storage.Source, op SetOp, names []string, lim filters.Limits) (*filters.Filter, error) {
	f, _, err := CombineCounted(ctx, store, op, names, lim)
	return f, err
}

// CombineCounted is CombineFiles with a Report about the result's keys. For an intersection of
// Bloom filters it estimates the common keys by comparing each filter with the intersection of
// the others: the bits of the result alone would give too many.
func CombineCounted(ctx context.Context, store storage.Source, op SetOp, names []string, lim filters.Limits) (f *filters.Filter, rep Report, err error) {
	stopped.Needs(ctx, "filterbuild.CombineFiles")
	if err := op.takes(len(names)); err != nil {
		return nil, rep, err
	}
	f, err = ofParts(ctx, store, names, func(parts []part) (*filters.Filter, error) {
		f, c, err := combineParts(ctx, op, parts, lim)
		if err == nil {
			rep = Count(f)
			rep.Distinct, rep.InOne = min(rep.Distinct, c.common), c.inOne
		}
		return f, err
	})
	return f, rep, err
}

// takes returns an error unless op can be applied to n filters.
func (op SetOp) takes(n int) error {
	if op != Union && op != Intersect && op != Difference && op != Subtract {
		return fmt.Errorf("set operation %q: want union, intersect, difference or subtract", op)
	}
	switch {
	case (op == Difference || op == Subtract) && n < 2:
		return fmt.Errorf("%s: want two filters or more, got %d", op, n)
	case n < 1:
		return fmt.Errorf("%s: want one filter or more, got none", op)
	}
	return nil
}

func combineParts(ctx context.Context, op SetOp, parts []part, lim filters.Limits) (*filters.Filter, *combiner, error) {
	c := &combiner{op: op, lim: lim, budget: &budget{most: limitOf(lim), workers: 1}, common: math.MaxUint64}
	all := parts
	parts, err := op.deciding(parts, lim)
	if err = cmp.Or(err, combinable(all, parts)); err != nil {
		return nil, c, err
	}
	if len(parts) == 1 {
		f, err := parts[0].whole(lim)
		return f, c, err
	}
	if op == Subtract || slices.ContainsFunc(parts, counts) {
		f, err := combineCounting(ctx, op, parts, lim)
		return f, c, err
	}
	if op != Difference && !slices.ContainsFunc(parts, func(p part) bool { return p.digest != parts[0].digest }) {
		f, err := parts[0].whole(lim)
		return f, c, err
	}
	if rule, err := keys.RuleOf(parts[0].about.Normal()); err == nil && rule&keys.URLHost != 0 && op == Intersect {
		return nil, c, faults.Unsupported(fault.At{File: parts[0].name}, "the intersection of filters under {Normalize url-host}: a host may be in both by different parent domains").
			WithHint("scan with both, {Filter} and {Match}")
	}
	blooms, _ := byKind(parts)
	if op == Difference && len(blooms) > 0 {
		return nil, c, faults.Of(cause.NotExact, faults.Mismatch(fault.At{File: blooms[0].name}, "filter to take a difference of", "an exact one",
			"a Bloom filter, whose false positives would be taken away as well: their rows would be lost")).
			WithHint("build all with {Kind exact}; if only the first is a Bloom filter, scan with it as {Filter} and the others as {NoMatch}")
	}
	out := descend(op, parts)
	if err := keepRoom(op, out, parts); err != nil {
		return nil, c, err
	}
	if len(blooms) == 0 {
		return out, c, c.sets(ctx, out, parts)
	}
	if err := c.bits(ctx, out, parts); err != nil {
		return nil, c, err
	}
	return out, c, checkRate(op, out, parts)
}

// checkRate refuses a result whose rate became useless because of the common
// size, unless that size was requested.
func checkRate(op SetOp, out *filters.Filter, parts []part) error {
	facts := out.Facts()
	resized := func(p part) bool { return p.facts().Params.Blocks != facts.Params.Blocks }
	limit, fpr := foldLimit*facts.FPRAsked, out.FPR()
	if fpr <= limit || facts.Capacity.Keys > 0 || !slices.ContainsFunc(parts, resized) {
		return nil
	}
	how := "folded to a common size"
	hint := fault.Text("build one filter from all ID sets, or build each with the same {Expect+Room}, enough for all")
	if _, exacts := byKind(parts); len(exacts) > 0 {
		how = "with exact ones turned into bits"
		hint = "build one filter from all ID sets, or build all with {Kind exact} or with the same {Expect+Room}, enough for all"
	}
	if op == Intersect {
		hint = "scan with both, {Filter} and {Match}, which needs no common size"
	}
	names := each.Slice(parts, func(p part) string { return p.name })
	return faults.Of(cause.Unlike, faults.Mismatch(fault.At{File: listed(names)}, "false-positive rate of the "+op.noun()+", "+how,
		fmt.Sprintf("at most %.2g", limit), fmt.Sprintf("%.2g", fpr))).WithHint("%s", hint)
}

func (op SetOp) noun() string {
	if op == Intersect {
		return "intersection"
	}
	return string(op)
}

// deciding returns the filters without which the result is another: a set without keys adds
// nothing, and has nothing in common with others. Among multisets all decide, as counts must fit.
func (op SetOp) deciding(parts []part, lim filters.Limits) (keyed []part, err error) {
	if op == Subtract || slices.ContainsFunc(parts, counts) {
		return parts, nil
	}
	var empty []part
	for i, p := range parts {
		switch none, err := p.empty(lim); {
		case err != nil:
			return nil, err
		case !none:
			keyed = append(keyed, p)
		case i == 0 && op == Difference:
			return parts[:1], nil
		default:
			empty = append(empty, p)
		}
	}
	if len(keyed) == 0 || op == Intersect && len(empty) > 0 {
		return empty, nil
	}
	return keyed, nil
}

// empty reports whether a filter has no key. Exact sets need not ask: they have any size.
func (p *part) empty(lim filters.Limits) (bool, error) {
	if p.facts().Keys > 0 || p.about.Kind() == filters.KindExact {
		return false, nil
	}
	f, err := p.whole(lim)
	return err == nil && f.FPR() == 0, err
}

// combinable refuses filters that are not sealed or not over the same kind of
// key, and Bloom filters of different geometries among those that decide.
func combinable(parts, deciding []part) error {
	typed := max(0, slices.IndexFunc(parts, func(p part) bool { return p.about.MayHaveKeys() }))
	var bits *part // the first Bloom filter
	var errs []error
	for _, p := range parts {
		errs = append(errs, sameKeys(ofFilters, &parts[typed].about, &p.about, parts[typed].name, p.name))
	}
	for i := range deciding {
		p := &deciding[i]
		if p.about.Kind() != filters.KindBloom {
			continue
		}
		if bits == nil {
			bits = p
		}
		if want, got := bits.facts().Params.Geometry, p.facts().Params.Geometry; want != got {
			errs = append(errs, faults.Of(cause.Unlike, faults.Mismatch(fault.At{File: p.name}, "filter geometry", want.String()+" as in "+bits.name, got)).
				WithHint("build one of them again, with the other's {Geometry}"))
		}
	}
	return several(errs)
}

// descend returns the header of a filter made from others. Except for a
// difference it does not depend on their order: the filter with the smallest
// digest names the key.
func descend(op SetOp, parts []part) *filters.Filter {
	first := parts[0].facts()
	out := filters.New(filters.Facts{NormalForm: first.NormalForm, Rule: first.Rule, Params: first.Params, Want: filters.KindAuto})
	facts := out.Facts()
	named := 0
	blooms, _ := byKind(parts)
	for i := range parts {
		f, d := parts[i].facts(), parts[i].digest
		facts.Parents = append(facts.Parents, d)
		if op != Difference && slices.Compare(d[:], facts.Parents[named][:]) < 0 {
			named = i
		}
		if len(blooms) == 0 || parts[i].about.Kind() == filters.KindBloom { // an exact filter ignores the rate that was asked
			facts.FPRAsked = max(facts.FPRAsked, f.FPRAsked)
		}
		facts.Params.Geometry = min(facts.Params.Geometry, f.Params.Geometry)
		if op == Union {
			facts.Keys += f.Keys
		} else if i == 0 || f.Keys < facts.Keys {
			facts.Keys = f.Keys
		}
	}
	facts.Key = keyOf(parts[named].facts())
	sorted := facts.Parents
	if op == Difference {
		sorted = sorted[1:] // keep the first set before the ones that are subtracted
	}
	slices.SortFunc(sorted, func(a, b [32]byte) int { return slices.Compare(a[:], b[:]) })
	facts.Parents = append(facts.Parents[:len(facts.Parents)-len(sorted)], slices.Compact(sorted)...)
	h := sha256.New()
	h.Write([]byte(op))
	for _, d := range facts.Parents {
		h.Write(d[:])
	}
	h.Sum(facts.BuildID[:0])
	return out
}

// keyOf returns the key columns of a filter without their ranges.
func keyOf(f *filters.Facts) []filters.KeyColumn {
	return each.Slice(f.Key, func(k filters.KeyColumn) filters.KeyColumn { return filters.KeyColumn{Name: k.Name, Class: k.Class} })
}

// combiner applies an operation to one filter after the other.
type combiner struct {
	op     SetOp
	lim    filters.Limits
	budget *budget
	// For an intersection of Bloom filters:
	common uint64  // estimate of its keys, at least that of any two
	inOne  float64 // the largest rate of one of them

	exceptions *exceptions // of the filters; nil: none has any
}

func limitOf(lim filters.Limits) uint64 { return cmp.Or(lim.MaxBytes, filters.DefaultMaxBytes) }

// sets combines exact filters.
func (c *combiner) sets(ctx context.Context, out *filters.Filter, parts []part) error {
	facts := out.Facts()
	all := &partial{params: facts.Params, fpr: facts.FPRAsked, share: share{of: c.budget}, bounds: keys.NewBounds(keys.ClassesOf(out.KeyClasses()))}
	all.params.Blocks = facts.Capacity.Blocks
	all.full = all.params
	all.spec = Spec{Want: facts.Want, Room: true, Capacity: facts.Capacity.Keys}
	if facts.Capacity == (filters.Capacity{}) || c.op == Difference {
		all.spec.Want = filters.KindExact // there is no other size, or no error is allowed
	}
	var union unionStack
	for i := range parts {
		beside := share{of: c.budget}
		set, err := parts[i].set(ctx, &beside, c.lim)
		if err != nil {
			return err
		}
		all.widen(rangeOf(set))
		switch {
		case c.op == Union:
			union.add(set)
		case i == 0:
			all.set = set
		case c.op == Intersect:
			all.set.Intersect(set)
		default:
			all.set.Difference(set)
		}
		beside.release()
		held := union.bytes()
		if all.set != nil {
			held += all.set.Bytes()
		}
		if _, err := all.share.set(held); err != nil {
			return err
		}
	}
	if c.op == Union {
		all.set = union.all()
	}
	if err := all.choose(); err != nil {
		return err
	}
	if all.set != nil {
		facts.Params.Blocks, facts.Keys = 0, all.set.Len()
		out.SetExact(all.set)
		return nil
	}
	all.give(out, all.bits)
	return nil
}

// bits folds all Bloom filters to the greatest common size, and combines them.
// Exact filters become bits of that size.
func (c *combiner) bits(ctx context.Context, out *filters.Filter, parts []part) error {
	blooms, exacts := byKind(parts)
	params := blooms[0].facts().Params
	for _, p := range blooms {
		params.Blocks = bloom.CommonFold(p.facts().Params.Blocks, params.Blocks)
	}
	var err error
	if c.exceptions, err = exceptionsOf(blooms); err != nil {
		return err
	}
	if err := c.room(params, blooms, len(exacts) > 0); err != nil {
		return err
	}
	all := &partial{full: params, params: params, fpr: out.Facts().FPRAsked, share: share{of: c.budget}, bounds: keys.NewBounds(keys.ClassesOf(out.KeyClasses()))}
	if c.op == Union {
		err = c.unite(ctx, all, blooms, exacts)
	} else {
		err = c.intersect(ctx, all, blooms, exacts)
	}
	if err != nil {
		return err
	}
	all.give(out, all.bits)
	c.exceptions.into(out)
	return nil
}

// room returns an error, before anything is allocated, if the result and the
// largest filter that cannot be read straight into it, unfolded and folded,
// exceed the limit.
func (c *combiner) room(params bloom.Params, blooms []part, exacts bool) error {
	result, beside := params.Bytes(), uint64(0)
	if c.op == Intersect && (len(blooms) > 1 || exacts) || c.exceptions != nil {
		beside = result
	}
	for _, p := range blooms {
		if p.bytes != result {
			beside = max(beside, p.bytes+result)
		}
	}
	if need := result + beside; need > c.budget.most {
		return faults.Errorf("%w of %s: the %s takes %s, of which its result %s (raise {Memory})", fault.ErrMemory, show.Size(int64(c.budget.most)), c.op.noun(), show.Size(int64(need)), show.Size(int64(result)))
	}
	return nil
}

// unite adds all filters to all.
func (c *combiner) unite(ctx context.Context, all *partial, blooms, exacts []part) error {
	if err := all.fill(); err != nil {
		return err
	}
	var alike, others []part
	for _, p := range blooms {
		if p.facts().Params == all.params && c.exceptions == nil {
			alike = append(alike, p)
		} else {
			others = append(others, p)
		}
	}
	for some := range slices.Chunk(alike, readsAtOnce) {
		if err := all.takeBits(ctx, some); err != nil {
			return err
		}
	}
	for i := range others {
		bits, head, err := c.load(ctx, &others[i], all.params)
		if err != nil {
			return err
		}
		all.sketch(registersOf(head))
		all.widen(boundsIn(head))
		c.exceptions.drop(bits, head)
		if err := all.bits.Union(bits); err != nil {
			return err
		}
	}
	return c.each(ctx, exacts, func(set *exact.Set) error {
		all.widen(rangeOf(set))
		all.hashAll(set)
		c.exceptions.dropMembers(set, all.params.Hash)
		return nil
	})
}

// each calls fn with the sets of exact filters, of which one is in memory at a time.
func (c *combiner) each(ctx context.Context, exacts []part, fn func(*exact.Set) error) error {
	for i := range exacts {
		beside := share{of: c.budget}
		set, err := exacts[i].set(ctx, &beside, c.lim)
		if err != nil {
			return err
		}
		if err := fn(set); err != nil {
			return err
		}
		beside.release()
	}
	return nil
}

// intersect leaves in all what every filter contains. The registers of an
// intersection are unknown.
func (c *combiner) intersect(ctx context.Context, all *partial, blooms, exacts []part) error {
	for i := range blooms {
		bits, head, err := c.load(ctx, &blooms[i], all.params)
		if err != nil {
			return err
		}
		c.inOne = max(c.inOne, bits.FPR())
		if i == 0 {
			all.bits, all.bounds, all.registers = bits, boundsIn(head), registersOf(head)
			continue
		}
		if both, err := all.bits.Compare(bits); err == nil {
			c.atMost(both.Both.Keys)
		} else if r := registersOf(head); all.registers != nil && r != nil {
			c.atMost(all.registers.Compare(r).Both.Keys)
		}
		all.bounds = all.bounds.Intersect(boundsIn(head))
		if err := all.bits.Intersect(bits); err != nil {
			return err
		}
	}
	all.registers = nil
	return c.each(ctx, exacts, func(set *exact.Set) error {
		all.bounds = all.bounds.Intersect(rangeOf(set))
		one := &partial{full: all.params, params: all.params}
		if err := one.fill(); err != nil {
			return err
		}
		one.hashAll(set)
		c.inOne = max(c.inOne, one.bits.FPR())
		if both, err := all.bits.Compare(one.bits); err == nil {
			c.atMost(both.Both.Keys)
		}
		return all.bits.Intersect(one.bits)
	})
}

// atMost records an estimate of the keys that some of the sets have in common.
func (c *combiner) atMost(keys float64) { c.common = min(c.common, uint64(max(keys, 0)+0.5)) }

// load reads or copies a Bloom filter, and folds it to the size of the result.
// The header that it returns has the registers.
func (c *combiner) load(ctx context.Context, p *part, params bloom.Params) (*bloom.Filter, *filters.Filter, error) {
	if p.filter != nil {
		if k := p.facts().Params.Blocks / params.Blocks; k > 1 {
			bits, err := p.filter.Bloom().Fold(k)
			return bits, p.filter, err
		}
		return p.filter.Bloom().Clone(), p.filter, nil
	}
	h, err := p.header()
	if err != nil {
		return nil, nil, err
	}
	bits, err := bloom.New(h.Filter.Facts().Params)
	if err != nil {
		return nil, nil, err
	}
	if err := filters.OrInto(ctx, bits, h); err != nil {
		return nil, nil, err
	}
	if k := bits.Params().Blocks / params.Blocks; k > 1 {
		bits, err = bits.Fold(k)
	}
	return bits, h.Filter, errors.Join(err, p.rest())
}
