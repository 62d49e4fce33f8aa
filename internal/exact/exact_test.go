package exact

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/cases"
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
	negative, natural := s.Marshal()
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
		again, err := Unmarshal(all.Marshal())
		if err != nil {
			t.Fatal(err)
		}
		check(t, "unmarshalled", again, whole)
		if !bytes.Equal(marshal2(t, again), want) {
			t.Fatal("written and read, other bytes")
		}
	}
}

// Members that fill a container in an order that makes it another kind.
func TestMarshalKinds(t *testing.T) {
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
		t.Error("a full container is not always one")
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
