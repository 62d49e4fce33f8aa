package exact

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// operation is a method that combines a set with another one. wants reports whether
// a value is in the result, given whether it was in the set (in) and in the other
// one (too).
type operation struct {
	name  string
	do    func(s, t *Set)
	wants func(in, too bool) bool
}

var (
	union      = operation{"union", (*Set).Union, func(in, too bool) bool { return in || too }}
	intersect  = operation{"intersection", (*Set).Intersect, func(in, too bool) bool { return in && too }}
	difference = operation{"difference", (*Set).Difference, func(in, too bool) bool { return in && !too }}
)

// want is the oracle's result.
func (op operation) want(a, b oracle) oracle {
	o := oracle{}
	for _, operand := range []oracle{a, b} {
		for m := range operand {
			if op.wants(a[m], b[m]) {
				o[m] = true
			}
		}
	}
	return o
}

// of returns the operation's result and leaves both sets unchanged.
func (op operation) of(a, b *Set) *Set {
	c := a.Clone()
	op.do(c, b)
	return c
}

// pair returns two overlapping sets.
func pair(r *rand.Rand) (a, b *Set) {
	a, b = New(), New()
	for range 1 + r.IntN(4) {
		values, signed := random(r)
		cut, from := r.IntN(len(values)+1), r.IntN(len(values)+1)
		a.Add(values[:cut], signed)
		b.Add(values[from:], signed)
	}
	return a, b
}

// TestSetAlgebra: identities that hold for all sets. Equal means equal bytes.
func TestSetAlgebra(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 25 {
		a, b := pair(r)
		c, _ := pair(r)
		before := [2][]byte{marshal2(t, a), marshal2(t, b)}
		equal := func(law string, x, y *Set) {
			t.Helper()
			if x.Len() != y.Len() || !bytes.Equal(marshal2(t, x), marshal2(t, y)) {
				t.Fatalf("%s: %d and %d members", law, x.Len(), y.Len())
			}
		}
		or, and, not := union.of(a, b), intersect.of(a, b), difference.of(a, b)
		if or.Len() != a.Len()+b.Len()-and.Len() {
			t.Fatalf("|A∪B| = %d, |A|+|B|-|A∩B| = %d", or.Len(), a.Len()+b.Len()-and.Len())
		}
		equal("A∪B = B∪A", or, union.of(b, a))
		equal("A∩B = B∩A", and, intersect.of(b, a))
		equal("A∪A = A", union.of(a, a), a)
		equal("A∩A = A", intersect.of(a, a), a)
		equal("A∖A = ∅", difference.of(a, a), New())
		equal("A∪∅ = A", union.of(a, New()), a)
		equal("A∩∅ = ∅", intersect.of(a, New()), New())
		equal("A∖∅ = A", difference.of(a, New()), a)
		equal("∅∖A = ∅", difference.of(New(), a), New())
		equal("A∖B ∪ A∩B = A", union.of(not, and), a)
		equal("A∖B ∩ B = ∅", intersect.of(not, b), New())
		equal("(A∪B)∖B = A∖B", difference.of(or, b), not)
		equal("A∖(A∖B) = A∩B", difference.of(a, not), and)
		equal("(A∪B)∪C = A∪(B∪C)", union.of(or, c), union.of(a, union.of(b, c)))
		equal("(A∩B)∩C = A∩(B∩C)", intersect.of(and, c), intersect.of(a, intersect.of(b, c)))
		equal("A∩(B∪C) = A∩B ∪ A∩C", intersect.of(a, union.of(b, c)), union.of(and, intersect.of(a, c)))
		equal("A∖(B∪C) = A∖B ∩ A∖C", difference.of(a, union.of(b, c)), intersect.of(not, difference.of(a, c)))
		equal("A∖(B∩C) = A∖B ∪ A∖C", difference.of(a, intersect.of(b, c)), union.of(not, difference.of(a, c)))
		for _, s := range []*Set{a, or, and, not} {
			c := New()
			c.Add(s.natural.all(), false)
			c.Add(s.negative.all(), true)
			equal("rebuilt in order", c, s)
			for _, h := range slices.Concat(s.natural.held, s.negative.held) {
				if n := h.len(); n == 0 || (h.bits == nil) != (n <= listMax) || (h.bits == everything) != (n == containerSize) {
					t.Fatalf("a container of %d members, as a list: %t", n, h.bits == nil)
				}
			}
		}
		for _, s := range []*Set{or, and, not} { // shared memory would show up
			s.Add(edges, true)
			s.Difference(a)
		}
		if !bytes.Equal(before[0], marshal2(t, a)) || !bytes.Equal(before[1], marshal2(t, b)) {
			t.Fatal("an operand has changed")
		}
	}
}

// TestSetOperationsOnItself: the operand may be the set itself.
func TestSetOperationsOnItself(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for range 20 {
		a, _ := pair(r)
		want := marshal2(t, a)
		a.Union(a)
		a.Intersect(a)
		if !bytes.Equal(marshal2(t, a), want) {
			t.Fatal("A∪A or A∩A is not A")
		}
		if a.Difference(a); a.Len() != 0 {
			t.Fatalf("A∖A has %d members", a.Len())
		}
	}
}

// pieceBytes is the size of a piece of fuzzed input: an arithmetic sequence of
// values.
const pieceBytes = 10

// decode builds a set from pieces. It adds values in order and backwards, and
// marshals the set in between.
func decode(t *testing.T, b []byte) (*Set, oracle) {
	s, o := New(), oracle{}
	for pieces := 0; len(b) >= pieceBytes && pieces < 24; pieces++ {
		flags, n, base := b[0], uint64(b[1]), binary.LittleEndian.Uint64(b[2:])
		b = b[pieceBytes:]
		signed := flags&1 != 0
		step := []uint64{1, 3, 1 << 11, 1 << 33}[flags>>1&3]
		if flags&8 != 0 {
			n *= 24
		}
		values := make([]uint64, n)
		for i := range values {
			at := uint64(i)
			if flags&16 != 0 {
				at = n - 1 - at
			}
			values[i] = base + at*step
			o[memberOf(values[i], signed)] = true
		}
		s.Add(values, signed)
		if flags&32 != 0 {
			var err error
			if s, err = Unmarshal(s.Marshal()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s, o
}

// fuzzOperation compares an operation with the oracle: members, bytes and the
// answers of every form of index.
func fuzzOperation(f *testing.F, op operation) {
	f.Fuzz(func(t *testing.T, x, y []byte) {
		s, a := decode(t, x)
		other, b := decode(t, y)
		theirs := marshal2(t, other)
		want := op.want(a, b)
		op.do(s, other)
		check(t, op.name, s, want)
		if !bytes.Equal(marshal2(t, s), marshal2(t, build(want))) {
			t.Fatalf("%s: the same members have other bytes", op.name)
		}
		if !bytes.Equal(marshal2(t, other), theirs) {
			t.Fatalf("%s: the operand has changed", op.name)
		}
		r := rand.New(rand.NewPCG(uint64(len(x)), uint64(len(y))))
		forms(s, func(string) { probe(t, r, s, want) })
	})
}

func FuzzUnion(f *testing.F)      { fuzzOperation(f, union) }
func FuzzIntersect(f *testing.F)  { fuzzOperation(f, intersect) }
func FuzzDifference(f *testing.F) { fuzzOperation(f, difference) }
