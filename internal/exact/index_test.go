package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// forms gives the set each form of index that is possible, whatever its cost.
func forms(s *Set, do func(form string)) {
	indexes := map[string]*index{
		"compressed": {settled: true},
		"table":      {settled: true, table: newTable(s, s.entries(math.MaxUint64))},
	}
	e := extentOf(s)
	if n, ok := e.words(); ok && n < 1<<20 {
		indexes["flat"] = &index{settled: true, flat: newFlat(s, e, n)}
	}
	for form, ix := range indexes {
		s.index.Store(ix)
		do(form)
	}
	s.changed()
}

// form returns the name of the index that s is probed in.
func form(s *Set) string {
	ix := s.index.Load()
	switch {
	case ix == nil || !ix.settled:
		return "none yet"
	case ix.flat != nil:
		return "flat"
	case ix.table != nil:
		return "table"
	}
	return "compressed"
}

// around returns the values at most n from v, wrapping around at 64 bits.
func around(v, n uint64) (values []uint64) {
	for d := range 2*n + 1 {
		values = append(values, v+d-n)
	}
	return values
}

// TestProbeForms: all forms give the oracle's answer close to members, close to the
// edges of signs and words, and elsewhere, for signed and unsigned values.
func TestProbeForms(t *testing.T) {
	const top = 1 << 63
	minus := func(n uint64) member { return member{-n, true} }
	r := rand.New(rand.NewPCG(11, 12))
	sets := map[string]oracle{
		"empty":             {},
		"0":                 {{0, false}: true},
		"2^64-1":            {{math.MaxUint64, false}: true},
		"-1":                {minus(1): true},
		"-1 and 2^64-1":     {minus(1): true, {math.MaxUint64, false}: true},
		"-2^63":             {minus(top): true},
		"2^63":              {{top, false}: true},
		"-2^63 and 2^63":    {minus(top): true, {top, false}: true},
		"2^63-1":            {{top - 1, false}: true},
		"around 2^63":       {{top - 1, false}: true, {top, false}: true, {top + 70, false}: true},
		"around 0":          {minus(1): true, {0, false}: true, {63, false}: true, {64, false}: true, minus(64): true, minus(65): true},
		"the ends":          {minus(top): true, {math.MaxUint64, false}: true, {0, false}: true},
		"int64":             {minus(top): true, {top - 1, false}: true},
		"-1000 and 1000000": {minus(1000): true, {1000000, false}: true},
	}
	for i := range 12 {
		o := oracle{}
		values, signed := random(r)
		for _, v := range values {
			o[memberOf(v, signed)] = true
		}
		sets[fmt.Sprint("random ", i)] = o
	}
	for name, o := range sets {
		s := build(o)
		forms(s, func(form string) {
			t.Run(name+"/"+form, func(t *testing.T) {
				probe(t, r, s, o)
				probeNear(t, s, o)
			})
		})
	}
}

func probeNear(t *testing.T, s *Set, o oracle) {
	t.Helper()
	var values []uint64
	for m := range o {
		if values = append(values, around(m.bits, 130)...); len(values) > 1<<15 {
			break
		}
	}
	for _, v := range edges {
		values = append(values, around(v, 130)...)
	}
	for _, signed := range []bool{false, true} {
		var want []uint32
		for i, v := range values {
			if o[memberOf(v, signed)] {
				want = append(want, uint32(i))
			}
		}
		if got := s.Probe(values, signed, nil); !slices.Equal(got, want) {
			t.Fatalf("signed %t: %d found, want %d", signed, len(got), len(want))
		}
	}
}

// TestProbeLengths: batches that do not fill the last block or word.
func TestProbeLengths(t *testing.T) {
	s := New()
	var values []uint64
	for i := range uint64(3 * blockSize) {
		values = append(values, i)
		if i%3 == 0 {
			s.Add([]uint64{i}, false)
		}
	}
	forms(s, func(form string) {
		for _, n := range []int{0, 1, 63, 64, 65, 127, blockSize - 1, blockSize, blockSize + 1, 2*blockSize + 65, 3 * blockSize} {
			if got, want := len(s.Probe(values[:n], n%2 == 0, nil)), (n+2)/3; got != want {
				t.Errorf("%s: %d of %d values found, want %d", form, got, n, want)
			}
		}
	})
}

// TestTableOverflow: entries that all hash to the last bucket overflow into the
// first ones and are found there, and nothing else is.
func TestTableOverflow(t *testing.T) {
	const entries = 40
	buckets := tableBuckets(entries)
	o := oracle{}
	var others []uint64
	for key := uint64(0); len(o) < entries; key++ {
		if tableSlot(key, buckets) != buckets-1 {
			continue
		}
		if len(others) < entries {
			others = append(others, key*64+5)
			continue
		}
		o[member{key*64 + 5, false}] = true
	}
	s := build(o)
	ix := &index{settled: true, table: newTable(s, entries)}
	s.index.Store(ix)
	if b := ix.table.buckets; b[0].keys[0] == vacant || b[len(b)-1].keys[bucketEntries-1]>>63 == 0 {
		t.Fatal("nothing has overflowed")
	}
	probeNear(t, s, o)
	if got := s.Probe(others, false, nil); len(got) != 0 {
		t.Errorf("%d values found that are not members", len(got))
	}
}

func TestIndexForm(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	dense, sparse, wide := New(), New(), New()
	var values []uint64
	for range 1 << 14 {
		values = append(values, 1<<40+r.Uint64N(1<<18))
	}
	dense.Add(values, false)
	for i := range values {
		values[i] = r.Uint64()
	}
	sparse.Add(values, true)
	wide.Add([]uint64{0, 1 << 60}, false)
	for name, c := range map[string]struct {
		s      *Set
		budget uint64
		want   string
	}{
		"dense":                   {dense, 1 << 30, "flat"},
		"dense, too little":       {dense, 1 << 15, "compressed"},
		"dense, none":             {dense, 0, "compressed"},
		"sparse":                  {sparse, 1 << 30, "table"},
		"sparse, too little":      {sparse, 1 << 18, "compressed"},
		"two, far apart":          {wide, 1 << 30, "table"},
		"two, far apart, 3 words": {wide, 24, "compressed"},
		"dense, no limit":         {dense, math.MaxUint64, "flat"},
	} {
		before := c.s.compressedBytes()
		c.s.Index(c.budget)
		if got := form(c.s); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if got := c.s.Bytes(); got < before || got-before > c.budget {
			t.Errorf("%s: an index of %d bytes, want %d at most", name, got-before, c.budget)
		}
	}
}

// TestIndexFollowsChanges: the next Probe sees a change, and the budget is kept.
func TestIndexFollowsChanges(t *testing.T) {
	other := New()
	other.Add([]uint64{5, 6, 7}, false)
	for name, c := range map[string]struct {
		change func(s *Set)
		want   []uint32
	}{
		"add":        {func(s *Set) { s.Add([]uint64{9}, false) }, []uint32{1, 5, 9}},
		"union":      {func(s *Set) { s.Union(other) }, []uint32{1, 5, 6, 7}},
		"intersect":  {func(s *Set) { s.Intersect(other) }, []uint32{5}},
		"difference": {func(s *Set) { s.Difference(other) }, []uint32{1}},
	} {
		values := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
		for _, budget := range []uint64{0, 1 << 20} {
			s := New()
			s.Add([]uint64{1, 5}, false)
			s.Index(budget)
			if got := s.Probe(values, false, nil); !slices.Equal(got, []uint32{1, 5}) {
				t.Errorf("%s: found %d before", name, got)
			}
			c.change(s)
			if got := s.Clone().Probe(values, false, nil); !slices.Equal(got, c.want) {
				t.Errorf("%s: found %d in the clone, want %d", name, got, c.want)
			}
			if got := s.Probe(values, false, nil); !slices.Equal(got, c.want) {
				t.Errorf("%s: found %d, want %d", name, got, c.want)
			}
			if got, want := form(s), map[uint64]string{0: "compressed", 1 << 20: "flat"}[budget]; got != want {
				t.Errorf("%s: %s afterwards, want %s", name, got, want)
			}
		}
	}
}

// TestProbeBuildsIndex: Probe builds the index once the patience is used up,
// whatever the number of goroutines.
func TestProbeBuildsIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	s, o := New(), oracle{}
	var values []uint64
	for range 1 << 16 {
		v := r.Uint64N(1 << 20)
		values = append(values, v)
		o[member{v, false}] = true
	}
	s.Add(values, false)
	s.Probe(values[:s.Len()/patience], false, nil)
	if got := form(s); got != "none yet" {
		t.Errorf("%s after few values", got)
	}
	s.changed()
	var want []uint32
	some := make([]uint64, 4000)
	for i := range some {
		some[i] = r.Uint64N(1 << 20)
		if o[member{some[i], false}] {
			want = append(want, uint32(i))
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var sel []uint32
			for range 20 {
				if sel = s.Probe(some, true, sel[:0]); !slices.Equal(sel, want) {
					t.Errorf("%d found, want %d", len(sel), len(want))
				}
			}
			s.Bytes()
		})
	}
	wg.Wait()
	if got := form(s); got != "flat" {
		t.Errorf("%s after many values", got)
	}
}

func TestProbeAllocates(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s := New()
	values := make([]uint64, 5000)
	for i := range values {
		values[i] = r.Uint64N(1<<20) - 1<<19
	}
	s.Add(values[:2048], true)
	sel := make([]uint32, 0, len(values))
	forms(s, func(form string) {
		if n := testing.AllocsPerRun(10, func() { sel = s.Probe(values, true, sel[:0]) }); n != 0 {
			t.Errorf("%s: Probe allocates %v times", form, n)
		}
		hits := slices.Clip(sel)
		if n := testing.AllocsPerRun(10, func() { hits = s.Probe(values, true, hits[:0]) }); n != 0 {
			t.Errorf("%s: Probe allocates %v times with room for the members alone", form, n)
		}
	})
}

// TestBytes compares with the heap. It allows a third for the capacity that append
// reserves and for the allocator's rounding.
func TestBytes(t *testing.T) {
	for name, c := range map[string]struct {
		n     int
		value func(r *rand.Rand) uint64
	}{
		"sparse": {20_000, (*rand.Rand).Uint64},
		"arrays": {200_000, func(r *rand.Rand) uint64 { return r.Uint64N(1 << 25) }},
		"bits":   {200_000, func(r *rand.Rand) uint64 { return r.Uint64N(1 << 20) }},
	} {
		r := rand.New(rand.NewPCG(17, 18))
		values := make([]uint64, c.n)
		for i := range values {
			values[i] = c.value(r)
		}
		before := heap()
		s := New()
		s.Add(values, false)
		compressed := heap() - before
		without := s.Bytes()
		s.Index(math.MaxUint64)
		all := heap() - before
		for what, p := range map[string][2]uint64{"compressed": {without, compressed}, "with an index": {s.Bytes(), all}} {
			if got, want := float64(p[0]), float64(p[1]); got < 0.67*want || got > 1.33*want {
				t.Errorf("%s, %s: %.0f bytes, on the heap %.0f", name, what, got, want)
			}
		}
		runtime.KeepAlive(values)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
