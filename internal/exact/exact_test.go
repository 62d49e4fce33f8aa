package exact

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// member is an integer from -2^63 to 2^64-1: its 64 bits, and whether it is
// negative. The map of members is the oracle.
type member struct {
	bits     uint64
	negative bool
}

type oracle map[member]bool

func memberOf(v uint64, signed bool) member { return member{v, signed && int64(v) < 0} }

// edges are the values around changes of sign, width and container.
var edges = []uint64{0, 1, 1<<16 - 1, 1 << 16, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<63 + 1, ^uint64(0) - 1, ^uint64(0)}

// random returns values of one of several shapes: sparse, dense, runs, edges.
func random(r *rand.Rand) (values []uint64, signed bool) {
	base := r.Uint64() >> r.IntN(64)
	if r.IntN(2) == 0 {
		base = -base
	}
	n, shape := r.IntN(6000), r.IntN(4)
	for i := range n {
		switch shape {
		case 0:
			values = append(values, base+r.Uint64()>>r.IntN(64))
		case 1:
			values = append(values, base+r.Uint64N(1<<17))
		case 2:
			values = append(values, base+uint64(i))
		case 3:
			values = append(values, edges[r.IntN(len(edges))])
		}
	}
	return values, r.IntN(2) == 0
}

func build(parts ...oracle) *Set {
	s := New()
	for _, o := range parts {
		for m := range o {
			s.Add([]uint64{m.bits}, m.negative)
		}
	}
	return s
}

func check(t *testing.T, what string, s *Set, o oracle) {
	t.Helper()
	if s.Len() != uint64(len(o)) {
		t.Fatalf("%s: %d members, want %d", what, s.Len(), len(o))
	}
	got := oracle{}
	last, wasNegative := uint64(0), true
	for values, signed := range s.Values {
		for _, v := range values {
			m := memberOf(v, signed)
			if signed != m.negative {
				t.Fatalf("%s: batch of negative integers holds %d", what, v)
			}
			if len(got) > 0 && m.negative == wasNegative && v <= last || m.negative && !wasNegative {
				t.Fatalf("%s: members out of order", what)
			}
			last, wasNegative = v, m.negative
			got[m] = true
		}
	}
	for m := range o {
		if !got[m] {
			t.Fatalf("%s: %+v is missing", what, m)
		}
	}
}

func marshal2(t testing.TB, s *Set) []byte {
	t.Helper()
	negative, natural, err := s.marshalRoaring()
	if err != nil {
		t.Fatal(err)
	}
	return append(append(negative, 0xaa), natural...)
}

func TestSetAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range cases.Count(10, 30, 60) {
		a, b := oracle{}, oracle{}
		sa, sb := New(), New()
		for range 1 + r.IntN(3) {
			values, signed := random(r)
			sa.Add(values, signed)
			for _, v := range values {
				a[memberOf(v, signed)] = true
			}
			values, signed = random(r)
			if r.IntN(2) == 0 && len(a) > 0 { // an overlap
				for m := range a {
					b[m] = true
					sb.Add([]uint64{m.bits}, m.negative)
				}
			}
			sb.Add(values, signed)
			for _, v := range values {
				b[memberOf(v, signed)] = true
			}
		}
		check(t, "added", sa, a)
		probe(t, r, sa, a)
		u, both := oracle{}, oracle{}
		for m := range a {
			u[m] = true
			if b[m] {
				both[m] = true
			}
		}
		for m := range b {
			u[m] = true
		}
		union := sa.Clone()
		union.Union(sb)
		check(t, "union", union, u)
		common := sa.Clone()
		common.Intersect(sb)
		check(t, "intersection", common, both)
		check(t, "an operand", sa, a)
		check(t, "the other", sb, b)
		for _, s := range []*Set{sa, sb, common} {
			if s.Cost() > union.Cost() {
				t.Errorf("cost %d of a part, %d of the union", s.Cost(), union.Cost())
			}
		}
		if n := union.Len() * MaxCostPerKey; union.Cost() > n {
			t.Errorf("cost %d of %d members", union.Cost(), union.Len())
		}
	}
}

// probe compares Probe with the oracle for members and others, as signed and as
// unsigned values.
func probe(t *testing.T, r *rand.Rand, s *Set, o oracle) {
	values := slices.Clone(edges)
	for m := range o {
		values = append(values, m.bits, m.bits+1, m.bits-1)
		if len(values) > 2000 {
			break
		}
	}
	for range 500 {
		values = append(values, r.Uint64()>>r.IntN(64))
	}
	for _, signed := range []bool{false, true} {
		want := []uint32{9}
		for i, v := range values {
			if o[memberOf(v, signed)] {
				want = append(want, uint32(i))
			}
		}
		if got := s.Probe(values, signed, []uint32{9}); !slices.Equal(got, want) {
			t.Fatalf("signed %t: %d found, want %d", signed, len(got)-1, len(want)-1)
		}
	}
}

func TestMinusOne(t *testing.T) {
	s := New()
	s.Add([]uint64{math.MaxUint64}, true) // -1
	if len(s.Probe([]uint64{math.MaxUint64}, false, nil)) != 0 || len(s.Probe([]uint64{math.MaxUint64}, true, nil)) != 1 {
		t.Error("-1 is taken for 2^64-1")
	}
	u := New()
	u.Add([]uint64{math.MaxUint64}, false)
	both := s.Clone()
	both.Union(u)
	if both.Len() != 2 {
		t.Errorf("-1 and 2^64-1 are %d members", both.Len())
	}
	both.Intersect(u)
	if both.Len() != 1 || bytes.Equal(marshal2(t, s), marshal2(t, u)) {
		t.Error("-1 and 2^64-1 are mixed up")
	}
}

// The bytes depend on the members alone, not on the order in which they were added
// or on the sets that they came from.
func TestMarshalIsCanonical(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range cases.Count(8, 20, 40) {
		whole := oracle{}
		for range 1 + r.IntN(3) {
			values, signed := random(r)
			for _, v := range values {
				whole[memberOf(v, signed)] = true
			}
		}
		want := marshal2(t, build(whole)) // the order of a map differs each time
		if got := marshal2(t, build(whole)); !bytes.Equal(got, want) {
			t.Fatal("another order, other bytes")
		}
		parts := make([]oracle, 1+r.IntN(5))
		for i := range parts {
			parts[i] = oracle{}
		}
		for m := range whole {
			parts[r.IntN(len(parts))][m] = true
		}
		all := New()
		for _, p := range parts {
			all.Union(build(p))
		}
		if !bytes.Equal(marshal2(t, all), want) {
			t.Fatal("built in parts, other bytes")
		}
		// Removed from a larger set, and through a file.
		larger := build(whole)
		values, signed := random(r)
		larger.Add(values, signed)
		larger.Intersect(build(whole))
		if !bytes.Equal(marshal2(t, larger), want) {
			t.Fatal("cut out of a larger set, other bytes")
		}
		negative, natural, err := all.marshalRoaring()
		if err != nil {
			t.Fatal(err)
		}
		again, err := unmarshalRoaring(negative, natural)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "unmarshalled", again, whole)
		if !bytes.Equal(marshal2(t, again), want) {
			t.Fatal("written and read, other bytes")
		}
	}
}

// Members that fill a container in an order that makes its form change.
func TestMarshalForms(t *testing.T) {
	up, down, odd := New(), New(), New()
	for i := range uint64(1 << 16) {
		up.Add([]uint64{i}, false)
		down.Add([]uint64{1<<16 - 1 - i}, false)
	}
	for _, rest := range []uint64{1, 0} {
		for i := range uint64(1 << 15) {
			odd.Add([]uint64{2*i + rest}, false)
		}
	}
	want := marshal2(t, up)
	if !bytes.Equal(marshal2(t, down), want) || !bytes.Equal(marshal2(t, odd), want) {
		t.Error("a full container has several forms")
	}
	if len(want) > 60 {
		t.Errorf("one run takes %d bytes", len(want))
	}
}

func TestValuesStops(t *testing.T) {
	s := New()
	s.Add([]uint64{1, 2, 3}, false)
	s.Add([]uint64{math.MaxUint64}, true)
	n := 0
	for range s.Values {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d batches after break", n)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	s := New()
	s.Add([]uint64{1, 2, 3}, false)
	c := s.Clone()
	c.Add([]uint64{4}, false)
	u := New()
	u.Union(s)
	u.Add([]uint64{5}, false)
	check(t, "cloned and merged from", s, oracle{{1, false}: true, {2, false}: true, {3, false}: true})
}

// one is the marshalled set {1, 2, 4}.
func one(change func(b []byte)) []byte {
	b := []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 16, 0, 0, 0, 1, 0, 2, 0, 4, 0}
	change(b)
	return b
}

func TestUnmarshalRefuses(t *testing.T) {
	none := make([]byte, 8)
	if s, err := unmarshalRoaring(none, one(func([]byte) {})); err != nil || s.Len() != 3 {
		t.Fatalf("the sample itself: %v", err)
	}
	if s, err := unmarshalRoaring(none, none); err != nil || s.Len() != 0 {
		t.Fatalf("the empty set: %v", err)
	}
	for name, b := range map[string][]byte{
		"nothing":              nil,
		"seven bytes":          make([]byte, 7),
		"2^60 high keys":       one(func(b []byte) { b[7] = 0x10 }),
		"one high key more":    one(func(b []byte) { b[0] = 2 }),
		"cut short":            one(func([]byte) {})[:33],
		"a byte more":          append(one(func([]byte) {}), 0),
		"cookie":               one(func(b []byte) { b[12]++ }),
		"no container":         one(func(b []byte) { b[16] = 0 })[:20],
		"2^16 containers":      one(func(b []byte) { b[16], b[18] = 0, 1 }),
		"members out of order": one(func(b []byte) { b[28], b[30] = 2, 1 }),
		"a member twice":       one(func(b []byte) { b[30] = 1 }),
		"members more":         one(func(b []byte) { b[22] = 200 }),
		"empty with a tail":    append(none, 0),
	} {
		if s, err := unmarshalRoaring(none, b); !errors.Is(err, fault.ErrCorrupt) || s != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := unmarshalRoaring(one(func([]byte) {}), none); !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("natural numbers among the negative ones: %v", err)
	}
}

// FuzzUnmarshal: no input causes a panic or excessive memory, and every accepted
// input is a set that can be written and read.
func FuzzUnmarshal(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 12 {
		s := New()
		for range 1 + r.IntN(2) {
			values, signed := random(r)
			s.Add(values, signed)
		}
		negative, natural, err := s.marshalRoaring()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(negative, natural)
	}
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0}, one(func([]byte) {}))
	f.Fuzz(func(t *testing.T, negative, natural []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := unmarshalRoaring(negative, natural)
		runtime.ReadMemStats(&after)
		size := uint64(len(negative) + len(natural))
		if n := after.TotalAlloc - before.TotalAlloc; n > 100*size+1<<20 {
			t.Fatalf("%d bytes allocated for %d", n, size)
		}
		if errors.Is(err, panics.ErrRecovered) {
			t.Fatalf("a recovered panic: %v", err)
		}
		if err != nil {
			return
		}
		a, b, err := s.marshalRoaring()
		if err != nil {
			t.Fatal(err)
		}
		again, err := unmarshalRoaring(a, b)
		if err != nil || again.Len() != s.Len() {
			t.Fatalf("written and read: %v", err)
		}
		s.Intersect(again)
		if s.Len() != again.Len() {
			t.Fatal("written and read, it is another set")
		}
	})
}
