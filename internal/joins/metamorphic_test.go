package joins_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// TestMetamorphic joins small tables that are drawn from a seed: types ×
// strategies × memory budgets × threads × classes of key × NULLs × duplicates ×
// formats × files × shards × outputs. Each way must give the rows of the naive
// nested loop, in its order, and its figures.
//
//	BLOOMJOIN_METAMORPHIC=10000   so many cases instead of the few here
//	BLOOMJOIN_METAMORPHIC_SEED=7  from this seed on; alone: this case again
func TestMetamorphic(t *testing.T) {
	count, first := cases.Count(6, 20, 60), 0
	if n := os.Getenv("BLOOMJOIN_METAMORPHIC_SEED"); n != "" {
		first, count = number(t, n), 1
	}
	if n := os.Getenv("BLOOMJOIN_METAMORPHIC"); n != "" {
		count = number(t, n)
	}
	total := tally{ways: map[string]int{}}
	failed := 0
	for seed := first; seed < first+count && failed < 5; seed++ {
		if !t.Run(strconv.Itoa(seed), func(t *testing.T) { metamorphic(t, uint64(seed), &total) }) {
			failed++
		}
	}
	t.Log(&total)
	if count >= 20 && failed == 0 {
		total.check(t)
	}
}

func number(t testing.TB, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tally counts what the cases covered, so that a run that tries nothing fails.
type tally struct {
	cases, joins, refused, tooSmall, spilled, blocks int
	ways                                             map[string]int
}

func (t *tally) add(c *recipe, w way, r join.Report) {
	t.joins++
	if r.SpilledBytes > 0 {
		t.spilled++
	}
	if w.columns != nil && w.out != "count" {
		t.ways["some columns"]++
	}
	if c.where.text != "" && r.RowsWhere > 0 && r.RowsWhere < r.RowsIn {
		t.ways["a condition"]++
	}
	if c.idWhere.text != "" && r.IDsTotal > 0 && source.IsText(c.idForm.format) {
		t.ways["a condition on text"]++
	} else if c.idWhere.text != "" && r.IDsTotal > 0 {
		t.ways["a condition on IDs"]++
	}
	if w.limit > 0 && r.RowsOut == w.limit {
		t.ways["a limit"]++
	}
	if c.sample > 0 && r.IDsTotal > 0 {
		t.ways["a sample"]++
	}
	for side, f := range map[string]form{"log": c.logForm, "IDs": c.idForm} {
		format := string(f.format)
		if f.mixed {
			format = "mixed formats"
		}
		t.ways[side+" of "+format]++
		if f.table {
			t.ways[side+" of a table"]++
		}
	}
	if w.once != "" {
		t.ways[w.once+" once"]++
	}
	if c.odd() {
		t.ways["odd types"]++
	}
	for _, s := range []string{string(w.typ) + " " + string(r.Strategy), string(w.typ), string(r.Strategy), w.budget, w.out, fmt.Sprint(w.shards > 1, " shards")} {
		t.ways[s]++
	}
	for _, p := range c.parts {
		t.ways[p.name]++
	}
}

func (t *tally) String() string {
	var ways []string
	for w, n := range t.ways {
		ways = append(ways, fmt.Sprintf("%s: %d", w, n))
	}
	slices.Sort(ways)
	return fmt.Sprintf("%d cases, %d joins, %d refusals as stated, %d budgets too small, %d joins spilled, %d in blocks; %s",
		t.cases, t.joins, t.refused, t.tooSmall, t.spilled, t.blocks, strings.Join(ways, ", "))
}

// check fails if something was never tried: in a few cases a strategy, a type of join
// or a budget; in many also a combination or a family of keys.
func (t *tally) check(tb testing.TB) {
	want := []string{
		"none", "tiny", "rows", "count", "dir/", "arrows/", "out.parquet", "out.arrow", "-", "true shards", "some columns", "a condition", "a condition on IDs", "a limit", "a sample", "odd types",
		"log of parquet", "log of arrow", "log of arrow-stream", "log of mixed formats", "log of a table", "IDs of a table", "IDs of parquet", "IDs of arrow", "IDs of arrow-stream", "IDs of mixed formats",
	}
	if t.spilled == 0 {
		tb.Error("no join has spilled")
	}
	for _, typ := range types {
		for _, s := range strategies(typ) {
			if t.cases >= 500 {
				want = append(want, string(typ)+" "+string(s))
			} else {
				want = append(want, string(typ), string(s))
			}
		}
	}
	if t.cases >= 500 {
		want = append(want, "log once", "ids once", "refused by Parquet")
		for _, f := range families() {
			want = append(want, f.name)
		}
	}
	for _, w := range want {
		if t.ways[w] == 0 {
			tb.Errorf("nothing was tried with: %s", w)
		}
	}
}

// strategies returns those that a join of the type can use.
func strategies(typ join.Type) []join.Strategy {
	all := []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle}
	if typ == join.Semi || typ == join.Anti {
		return append(all, join.Exact)
	}
	return all
}

// way is how a case is joined.
type way struct {
	typ      join.Type
	strategy join.Strategy
	budget   string // none, generous or tiny
	memory   int64  // in bytes
	threads  int
	filter   string // none, or the kind of the given filter
	fpr      float64
	out      string // rows, or the name of an output; count: only their number
	shards   int
	columns  []int // of the answer, by their numbers; nil: all
	spelled  []string
	suffix   string
	once     string // log or ids: that side is a stream on standard input; "": neither
	odd      bool   // Parquet cannot hold a column of the answer
	limit    int64  // 0: none
}

func (w way) String() string {
	return fmt.Sprintf("%s join by %s, memory %s (%d), %d threads, filter %s, fpr %v, into %s, %d shards, columns %q, suffix %q, once %q, limit %d",
		w.typ, w.strategy, w.budget, w.memory, w.threads, w.filter, w.fpr, w.out, w.shards, w.spelled, w.suffix, w.once, w.limit)
}

// drawWay draws everything else about a way.
func (c *recipe) drawWay(r *rand.Rand, typ join.Type, s join.Strategy) way {
	w := way{typ: typ, strategy: s, budget: choose(r, "none", "generous", "tiny"), threads: 1 + r.IntN(4), fpr: choose(r, 0, 0, 0.5),
		filter: choose(r, "none", "none", "bloom", "auto"), out: choose(r, "rows", "rows", "count", "out.parquet", "out.arrow", "dir/", "arrows/", "-"), shards: 1}
	if typ != join.Right && typ != join.Full && (w.out == "rows" || w.out == "count") && r.IntN(4) == 0 {
		w.shards = 2 + r.IntN(4)
	}
	if s == join.Exact {
		w.filter = choose(r, "none", "exact")
	}
	if c.big != "" {
		w.budget = "tiny"
	}
	if (s == join.Lookup || s == join.Auto) && w.budget != "tiny" && w.shards == 1 && !strings.HasSuffix(w.out, "/") {
		w.once = choose(r, c.onlyOnce()...)
	}
	if w.budget == "generous" {
		w.memory = 256 << 20
	}
	if typ != join.Right && typ != join.Full && w.shards == 1 && !strings.HasSuffix(w.out, "/") && r.IntN(3) == 0 {
		w.limit = 1 + r.Int64N(int64(2*c.logs.rows+2))
	}
	return w
}

// onlyOnce returns the sides that can be streams on standard input, and that none is.
func (c *recipe) onlyOnce() []string {
	sides := []string{""}
	for side, f := range map[string]form{"log": c.logForm, "ids": c.idForm} {
		if f.format == dataset.ArrowStream && f.files == 1 {
			sides = append(sides, side, side)
		}
	}
	slices.Sort(sides)
	return sides
}

// odd reports whether a column has a type with which the reader of Parquet in arrow/go
// panics, or for which Parquet has none.
func (c *recipe) odd() bool {
	return slices.ContainsFunc(slices.Concat(c.logs.leaves, c.ids.leaves), func(l leaf) bool { return l.json })
}

// beyondParquet reports whether Parquet cannot hold a column of the answer.
func (c *recipe) beyondParquet(w *way, all []naiveColumn) bool {
	for i, col := range all {
		d := &c.logs
		if col.side == "ids" {
			d = &c.ids
		}
		if (w.columns == nil || slices.Contains(w.columns, i)) && slices.ContainsFunc(d.leaves, func(l leaf) bool { return l.path[0] == col.name && inParquet(l.dt) == nil }) {
			return true
		}
	}
	return false
}

// metamorphic joins the case for a seed in many ways.
func metamorphic(t *testing.T, seed uint64, total *tally) {
	c := draw(seed)
	c.where = c.logs.drawCondition(rand.New(rand.NewPCG(seed, 10)), "n")
	c.idWhere = c.drawIDCondition(rand.New(rand.NewPCG(seed, 11)))
	r := rand.New(rand.NewPCG(seed, 9))
	typ := types[r.IntN(len(types))]
	c.drawSample(rand.New(rand.NewPCG(seed, 12)), typ)
	in := c.store(t, c.logs, c.ids)
	total.cases++
	files := map[string][]byte{} // the bytes of each output
	var drawn way
	if r.IntN(2) == 0 {
		drawn.drawColumns(r, in.want(t, typ).columns, typ)
	}
	for _, s := range append(strategies(typ), join.Auto) {
		if s == join.Exact && !c.integer() {
			continue
		}
		w := c.drawWay(r, typ, s)
		w.columns, w.spelled, w.suffix = drawn.columns, drawn.spelled, drawn.suffix
		w.odd = c.beyondParquet(&w, in.want(t, typ).columns)
		if err := c.attempt(t, in, &w, total, files); err != nil {
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
			t.Errorf("case %d, where %q, IDs where %q: %v\n%v\n%v\nagain with BLOOMJOIN_METAMORPHIC_SEED=%d%s", seed, c.where.text, c.idWhere.text, err, c, w, seed, c.smaller(t, w))
			return
		}
	}
}

// drawColumns draws columns of the answer, and how they are spelled.
func (w *way) drawColumns(r *rand.Rand, all []naiveColumn, typ join.Type) {
	w.columns = r.Perm(len(all))[:1+r.IntN(len(all))]
	ids := false
	for _, i := range w.columns {
		c := all[i]
		plain := onOf([][]string{{c.name}}, [][]string{{c.name}})
		sides := []string{c.side + "." + plain}
		ofLog := typ == join.Semi || typ == join.Anti
		if c.shared && !ofLog {
			sides = append(sides, "ids."+plain)
		}
		if !c.both || c.shared || ofLog {
			sides = append(sides, plain)
		}
		w.spelled = append(w.spelled, sides[r.IntN(len(sides))])
		ids = ids || c.side == "ids"
	}
	if ids {
		w.suffix = choose(r, "", "_right", "s")
	}
}

// attempt joins in one way and returns what is wrong. A tiny budget is the smallest
// power of four that suffices; all smaller ones must be refused with a memory error.
func (c *recipe) attempt(t *testing.T, in *inputs, w *way, total *tally, files map[string][]byte) error {
	refusal := c.refusal(w)
	if w.budget == "tiny" && refusal == "" && w.memory == 0 {
		for w.memory = 1 << 10; ; w.memory *= 4 {
			err := in.join(t, *w, total, files)
			if err == nil {
				return nil
			}
			if total.tooSmall++; !tooSmall(err) || w.memory >= 1<<28 {
				return c.unless(*w, err)
			}
		}
	}
	err := in.join(t, *w, total, files)
	switch {
	case refusal == "":
		return c.unless(*w, err)
	case err == nil && c.sample > 0: // it may be without the key
		return nil
	case err == nil:
		return fmt.Errorf("it succeeds; want a refusal since %s", refusal)
	case !errors.Is(err, fault.ErrUnsupported), refusal == noParquet && !strings.Contains(err.Error(), "cannot be written to Parquet: "+noParquet):
		return fmt.Errorf("%w; want that it is unsupported since %s", err, refusal)
	}
	if total.refused++; refusal == noParquet {
		total.ways["refused by Parquet"]++
	}
	return nil
}

// unless returns err, except the error of exact joins for IDs that are too far apart, and
// that of an Arrow file for a stream whose dictionaries change.
func (c *recipe) unless(w way, err error) error {
	if err != nil && (w.out == "out.arrow" || w.out == "arrows/") && c.logForm.format == dataset.ArrowStream && !c.logForm.mixed &&
		slices.ContainsFunc(c.logs.leaves, func(l leaf) bool { return !arrow.TypeEqual(unwrapped(l.dt), undictionaried(unwrapped(l.dt))) }) &&
		errors.Is(err, fault.ErrUnsupported) && strings.Contains(err.Error(), "a dictionary that changes within an IPC file (an IPC stream can hold it, and so can Parquet)") {
		return nil
	}
	if w.strategy != join.Exact || !errors.Is(err, fault.ErrUnsupported) {
		return err
	}
	var least, most *big.Int
	for _, l := range c.ids.leaves {
		if !slices.Equal(l.path, c.idKey[0]) {
			continue
		}
		for _, v := range l.cells {
			if i, ok := new(big.Int).SetString(v, 10); ok {
				if least == nil || i.Cmp(least) < 0 {
					least = i
				}
				if most == nil || i.Cmp(most) > 0 {
					most = i
				}
			}
		}
	}
	if most == nil || most.Sub(most, least).Cmp(big.NewInt(1<<23)) <= 0 {
		return err
	}
	return nil
}

// tooSmall reports whether an error is about a memory budget.
func tooSmall(err error) bool {
	return err != nil && (errors.Is(err, fault.ErrMemory) || strings.Contains(err.Error(), "exceeds the memory budget"))
}

// noParquet is why a column cannot be written to Parquet.
const noParquet = "there is no Parquet type for it"

// refusal returns why a join of the type has no answer: a shared key column has the
// log's type, which must be able to represent the IDs' keys.
func (c *recipe) refusal(w *way) string {
	if w.odd && (w.out == "out.parquet" || w.out == "dir/") {
		return noParquet
	}
	if w.typ != join.Right && w.typ != join.Full || w.out == "count" {
		return ""
	}
	for i := range c.parts {
		p := &c.parts[i]
		if !p.shared() || !w.has(p.log.path[0]) {
			continue
		}
		if fixed := func(dt arrow.DataType) bool { return dt.ID() == arrow.FIXED_SIZE_BINARY }; fixed(p.log.dt) != fixed(p.ids.dt) {
			return "one column is for text and UUIDs"
		}
		if p.name == "number" && classOf(p.log.dt) != classOf(p.ids.dt) {
			return "one column is for two classes of numbers"
		}
		for _, l := range c.idWhere.rows(c.ids).leaves {
			if slices.Equal(l.path, p.ids.path) && slices.ContainsFunc(l.cells, func(v string) bool { return v != null && !p.holds(p.log.dt, v) }) {
				return "the log's type does not hold a key"
			}
		}
	}
	return ""
}

// has reports whether the answer has the shared key column of that name.
func (w *way) has(name string) bool {
	plain := onOf([][]string{{name}}, [][]string{{name}})
	return w.columns == nil || slices.ContainsFunc([]string{plain, "log." + plain, "ids." + plain}, func(s string) bool { return slices.Contains(w.spelled, s) })
}

// inputs holds a case's tables, stored and open.
type inputs struct {
	c               *recipe
	logs, ids       []*partition.File
	dir             string // of the IDs
	idOpen, logOpen partition.OpenOptions
	logDir          string
	log, id         arrow.Record // the log's rows that satisfy the condition
	rows            int64        // of the log, with and without them
	wanted          map[join.Type]*naive
	filters         map[string]*filters.Filter
}

// store writes both tables and opens them.
func (c *recipe) store(t testing.TB, logs, ids columnar) *inputs {
	in := &inputs{c: c, wanted: map[join.Type]*naive{}, filters: map[string]*filters.Filter{}}
	in.log, in.id = c.where.rows(logs).record(t), c.idWhere.rows(ids).record(t)
	members := map[string]bool{}
	in.rows = int64(logs.rows)
	defer func() {
		t.Cleanup(in.log.Release)
		t.Cleanup(in.id.Release)
	}()
	in.logDir = c.logForm.write(t, logs)
	in.logOpen = partition.OpenOptions{Where: c.where.text}
	if c.sampleLog {
		in.logOpen.SampleKeys, in.logOpen.SampleBy = c.sample, onOf(c.logKey, c.logKey)
	}
	in.logs = open(t, in.logOpen, in.logDir)
	if c.sampleLog {
		in.log = c.inSample(t, in.log, c.logKey, in.logs, members)
	}
	key := c.idKey[len(c.idKey)-1]
	in.dir = c.idForm.write(t, ids)
	in.idOpen = partition.OpenOptions{Text: true, Column: key[len(key)-1], Where: c.idWhere.text}
	if c.sample > 0 {
		in.idOpen.SampleKeys, in.idOpen.SampleBy = c.sample, onOf(c.idKey, c.idKey)
	}
	in.ids = open(t, in.idOpen, in.dir)
	if c.sample > 0 {
		in.id = c.inSample(t, in.id, c.idKey, in.typedIDs(t), members)
	}
	return in
}

// want returns the naive answer.
func (in *inputs) want(t testing.TB, typ join.Type) *naive {
	if in.wanted[typ] == nil {
		in.wanted[typ] = nestedLoop(t, in.log, in.id, in.c.logKey, in.c.idKey, in.c.rule, typ)
	}
	return in.wanted[typ]
}

// filter returns a filter of the IDs, or nil if none is wanted.
func (in *inputs) filter(t testing.TB, name string) *filters.Filter {
	if name == "none" || in.filters[name] != nil {
		return in.filters[name]
	}
	kind := map[string]codec.Kind{"bloom": codec.KindBloom, "auto": codec.KindAuto, "exact": codec.KindExact}[name]
	ids := in.ids
	if source.IsText(in.c.idForm.format) { // New sets their types, and the filter was built before
		ids = in.typedIDs(t)
	}
	in.filters[name] = filterOf(t, ids, onOf(in.c.idKey, in.c.idKey), kind, 0.3, in.c.rule)
	return in.filters[name]
}

// typedIDs opens the IDs, text with the types of their keys.
func (in *inputs) typedIDs(t testing.TB) []*partition.File {
	opts := in.idOpen
	if source.IsText(in.c.idForm.format) {
		opts.Types = map[string]arrow.DataType{}
		for _, p := range in.c.parts {
			opts.Types[p.ids.path[0]] = p.ids.dt
		}
	}
	return open(t, opts, in.dir)
}

// join joins in one way and compares. files holds the bytes of outputs so far, which
// must be the same in all ways; nil: not compared.
func (in *inputs) join(t *testing.T, w way, total *tally, files map[string][]byte) error {
	want := in.want(t, w.typ)
	if w.columns != nil {
		suffix := w.suffix
		if suffix == "" {
			suffix = "_ids"
		}
		want = want.only(w.columns, suffix)
	}
	var got answer
	var sum join.Report // sum of all shards
	skipped := false
	for i := range w.shards {
		part, err := in.shard(t, w, i, files)
		if err != nil {
			return err
		}
		if part.names != want.names && w.out != "count" {
			return fmt.Errorf("the columns are %s, want %s", part.names, want.names)
		}
		got.rows = append(got.rows, part.rows...)
		r := part.report
		sum.RowsIn, sum.RowsOut, sum.KeysNull = sum.RowsIn+r.RowsIn, sum.RowsOut+r.RowsOut, sum.KeysNull+r.KeysNull
		sum.RowsWhere += r.RowsWhere
		sum.IDsTotal, sum.IDsMatched = max(sum.IDsTotal, r.IDsTotal), sum.IDsMatched+r.IDsMatched
		sum.KeysMatched += r.KeysMatched
		if sum.Strategy != join.Shuffle {
			sum.Strategy = r.Strategy
		}
		if w.strategy != join.Auto && r.Strategy != w.strategy {
			return fmt.Errorf("the report says strategy %s", r.Strategy)
		}
		if r.IDsTotal != want.total && w.limit == 0 {
			return fmt.Errorf("the report says %d IDs, want %d", r.IDsTotal, want.total)
		}
		skipped = skipped || r.RowGroupsSkipped+r.PagesSkipped > 0
		total.add(in.c, w, r)
	}
	if w.limit > 0 && int64(len(want.rows)) >= w.limit {
		return in.limited(w, got.rows, want.rows, sum)
	}
	if w.out != "count" && !slices.Equal(got.rows, want.rows) {
		if err := unlike(got.rows, want.rows); !errors.As(err, new(orderError)) || !in.blocks(w, sum) {
			return err
		}
		total.blocks++
	}
	nulls := sum.KeysNull == want.keysNull || sum.KeysNull < want.keysNull && (skipped || in.c.where.text != "" || in.c.sample > 0) // skipped pages may not give their null counts
	keepsLog := w.typ == join.Left || w.typ == join.Full || w.typ == join.Anti
	if sum.RowsWhere > want.rowsIn || sum.RowsWhere < want.rowsIn && keepsLog {
		return fmt.Errorf("the report says that %d rows satisfy the condition, want %d", sum.RowsWhere, want.rowsIn)
	}
	if sum.RowsIn != in.rows && sum.RowsIn != sum.RowsWhere || sum.RowsOut != int64(len(want.rows)) || !nulls {
		return fmt.Errorf("the report says %d rows of %d, %d without a key; want %d of %d, %d", sum.RowsOut, sum.RowsIn, sum.KeysNull, len(want.rows), want.rowsIn, want.keysNull)
	}
	if sum.IDsMatched < want.member || w.shards == 1 && sum.IDsMatched != want.member {
		return fmt.Errorf("the report says %d IDs matched, want %d", sum.IDsMatched, want.member)
	}
	if sum.KeysMatched < want.keys || w.shards == 1 && sum.KeysMatched != want.keys {
		return fmt.Errorf("the report says %d keys matched, want %d", sum.KeysMatched, want.keys)
	}
	return nil
}

// limited compares the first rows of an answer.
func (in *inputs) limited(w way, got, all []string, r join.Report) error {
	if r.RowsOut != w.limit || w.out != "count" && int64(len(got)) != w.limit {
		return fmt.Errorf("%d rows, and the report says %d; want %d", len(got), r.RowsOut, w.limit)
	}
	if w.out != "count" && !slices.Equal(got, all[:w.limit]) {
		return unlike(got, all[:w.limit])
	}
	return nil
}

// blocks reports whether the IDs that one row group of the log needs may exceed the
// memory. They are then taken in portions, and the pairs of the row group come portion
// by portion.
func (in *inputs) blocks(w way, r join.Report) bool {
	var held int
	for _, l := range in.c.ids.leaves {
		for _, v := range l.cells {
			held += len(v)
		}
	}
	return r.Strategy == join.Shuffle && w.memory > 0 && int64(held) > w.memory/8
}

// orderError says that all rows are there, but in another order.
type orderError string

func (e orderError) Error() string { return string(e) }

// unlike describes how the rows differ: as multisets, or in their order.
func unlike(got, want []string) error {
	count := map[string]int{}
	for _, r := range want {
		count[r]++
	}
	for _, r := range got {
		count[r]--
	}
	var missing, more []string
	for r, n := range count {
		if n > 0 {
			missing = append(missing, fmt.Sprintf("%d × %.300s", n, r))
		} else if n < 0 {
			more = append(more, fmt.Sprintf("%d × %.300s", -n, r))
		}
	}
	if len(missing)+len(more) == 0 {
		i := 0
		for got[i] == want[i] {
			i++
		}
		return orderError(fmt.Sprintf("%d rows in another order, from row %d on: got %.300s, want %.300s", len(got), i, got[i], want[i]))
	}
	slices.Sort(missing)
	slices.Sort(more)
	return fmt.Errorf("got %d rows, want %d; missing:\n  %s\ntoo many:\n  %s", len(got), len(want),
		strings.Join(missing[:min(5, len(missing))], "\n  "), strings.Join(more[:min(5, len(more))], "\n  "))
}

// shard joins one shard of the log.
func (in *inputs) shard(t *testing.T, w way, i int, files map[string][]byte) (got answer, err error) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	temp := t.TempDir()
	opts := join.Options{On: in.c.on, Type: w.typ, Strategy: w.strategy, Normalize: in.c.rule, FPR: w.fpr, Threads: w.threads, Memory: w.memory, TempDir: temp, Mem: mem, Limit: w.limit}
	if w.shards > 1 {
		opts.Shard = dataset.Shard{Index: uint32(i), Of: uint32(w.shards)}
	}
	if w.out == "count" {
		opts.Columns = []string{}
	} else if w.columns != nil {
		opts.Columns, opts.Suffix = w.spelled, w.suffix
	}
	if in.c.refusal(&w) == "" || w.filter == "exact" {
		opts.Filter = (*codec.Filter)(in.filter(t, w.filter))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	defer func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("it hangs: %w", err)
		}
		if n := mem.CurrentAlloc(); n != 0 {
			err = errors.Join(err, fmt.Errorf("%d bytes are not released", n))
		}
		if left, e := os.ReadDir(temp); e != nil || len(left) > 0 {
			err = errors.Join(err, e, fmt.Errorf("%d files are left behind", len(left)))
		}
	}()
	logs, ids := in.logs, in.ids
	standard := func(dir string, opts partition.OpenOptions) []*partition.File {
		b, err := os.ReadFile(filepath.Join(dir, "000.arrows"))
		if err != nil {
			t.Fatal(err)
		}
		opts.Text, opts.Stdin = false, bytes.NewReader(b)
		return open(t, opts, "-")
	}
	switch w.once {
	case "log":
		logs = standard(in.logDir, in.logOpen)
	case "ids":
		ids = standard(in.dir, in.idOpen)
	}
	j, err := join.New(ids, logs, opts)
	if err != nil {
		return got, err
	}
	switch w.out {
	case "rows":
		err = got.collect(t, ctx, j)
	case "count":
		var n int64
		if n, err = j.Count(ctx); err == nil && n != j.Report().RowsOut {
			err = fmt.Errorf("%d rows are counted, the report says %d", n, j.Report().RowsOut)
		}
	default:
		batches := (w.typ == join.Right || w.typ == join.Full) && w.out != "out.parquet" && w.out != "dir/" // of IDs without a row, as they are held
		if batches || w.limit > 0 || in.blocks(w, join.Report{Strategy: join.Shuffle}) {                    // the portions differ from one way to another
			files = nil
		}
		err = got.file(t, ctx, j, w, files, in.c)
	}
	got.report = j.Report()
	return got, err
}

// collect takes the rows as records.
func (a *answer) collect(t *testing.T, ctx context.Context, j *join.Join) error {
	parts := room(j).Parts()
	a.names = names(parts[0].Schema)
	last := 0
	for r, err := range j.Run(ctx) {
		if err != nil {
			return err
		}
		err = func() error {
			defer r.Record.Release()
			if r.Piece < last || r.Record.NumRows() == 0 {
				return fmt.Errorf("%d rows of part %d after part %d", r.Record.NumRows(), r.Piece, last)
			}
			last = r.Piece
			if !r.Record.Schema().Equal(parts[r.Piece].Schema) {
				return fmt.Errorf("part %d has schema %v, said was %v", r.Piece, r.Record.Schema(), parts[r.Piece].Schema)
			}
			for i := range int(r.Record.NumRows()) {
				a.rows = append(a.rows, showRow(t, r.Record, i))
			}
			return nil
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// file writes the answer and reads it back.
func (a *answer) file(t *testing.T, ctx context.Context, j *join.Join, w way, files map[string][]byte, c *recipe) error {
	var stream bytes.Buffer
	dir := t.TempDir()
	out := partition.Output{
		Name:       w.out,
		Stdout:     &stream,
		WriteEmpty: true,
		TargetSize: int64(c.logs.rows % 3 * 2000),
	}
	if w.out != "-" {
		out.Name = filepath.Join(dir, w.out)
		if strings.HasSuffix(w.out, "/") {
			out.Name += "/"
		}
	}
	if w.out == "arrows/" {
		out.Format = dataset.ArrowFile
	}
	done, err := j.Write(ctx, out)
	if err != nil {
		if left, e := os.ReadDir(dir); e != nil || len(left) > 0 && !strings.HasSuffix(w.out, "/") {
			return fmt.Errorf("%d files are published or left behind after %w", len(left), err)
		}
		return err
	}
	if err := inputsAgree(done, j.Report(), w.typ, c.where.text != "" || c.sampleLog); w.limit == 0 && err != nil {
		return err
	}
	var all []byte
	format := dataset.Parquet
	switch w.out {
	case "-":
		all, format = stream.Bytes(), dataset.ArrowStream
		a.names, a.rows, err = stored(t, all, format, false)
	default:
		if w.out == "out.arrow" || w.out == "arrows/" {
			format = dataset.ArrowFile
		}
		for i, f := range done.Files {
			name := f.Name
			if strings.HasSuffix(w.out, "/") {
				name = filepath.Join(dir, w.out, f.Name)
			}
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			columns, rows, err := stored(t, b, format, c.odd())
			if err != nil {
				return err
			}
			if i > 0 && columns != a.names || int64(len(rows)) != f.Rows {
				return fmt.Errorf("%s: columns %s and %d rows; want %s and %d", f.Name, columns, len(rows), a.names, f.Rows)
			}
			a.names, a.rows, all = columns, append(a.rows, rows...), append(all, b...)
		}
	}
	if err != nil {
		return err
	}
	if files == nil {
		return nil
	}
	if before, ok := files[w.out]; ok && !bytes.Equal(before, all) {
		return fmt.Errorf("%d bytes are written, not the same as the %d by another strategy", len(all), len(before))
	}
	files[w.out] = all
	return nil
}

// smaller removes rows from both tables while the join remains wrong, and describes the
// rest.
func (c *recipe) smaller(t *testing.T, w way) string {
	logs, ids := c.logs, c.ids
	var last error
	wrong := func(l, i columnar) bool {
		small := *c
		if small.logs, small.ids = l, i; i.rows == 0 && c.idForm.format == dataset.NDJSON {
			return false // without rows it has no columns
		}
		w := w
		err := small.attempt(t, small.store(t, l, i), &w, &tally{ways: map[string]int{}}, nil)
		if err != nil {
			last = err
		}
		return err != nil
	}
	if !wrong(logs, ids) {
		return "\n(it does not fail a second time)"
	}
	until := time.Now().Add(20 * time.Second)
	for _, d := range []*columnar{&logs, &ids, &logs, &ids} {
		for step := max(d.rows/2, 1); step > 0; step /= 2 {
			for at := 0; at < d.rows && time.Now().Before(until); {
				var rows []int
				for i := range d.rows {
					if i < at || i >= at+step {
						rows = append(rows, i)
					}
				}
				before := *d
				if *d = d.subset(rows); !wrong(logs, ids) {
					*d, at = before, at+step
				}
			}
		}
	}
	if logs.rows*len(logs.leaves)+ids.rows*len(ids.leaves) > 200 {
		return fmt.Sprintf("\nand with %d and %d rows: %v", logs.rows, ids.rows, last)
	}
	return fmt.Sprintf("\nand with less: %v\n%v%v", last, logs, ids)
}

// String shows a table.
func (d columnar) String() string {
	var b strings.Builder
	for _, l := range d.leaves {
		fmt.Fprintf(&b, "  %s %s: %q\n", strings.Join(l.path, "."), l.dt, l.cells)
	}
	return b.String()
}
