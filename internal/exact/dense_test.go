package exact

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A flat bitmap gives the same set as its values, in any order, wherever they
// start, and across multiples of 2^16 and 2^32; or it refuses them.
func TestDense(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		lo, span uint64
		most     uint64
		ok       bool
	}{
		{0, 1, 8 << 10, true},
		{0, 1 << 16, 8 << 10, true},
		{1, 1 << 16, 8 << 10, false},
		{1 << 30, 5_000_000, 1 << 20, true},
		{1<<32 - 100_000, 300_000, 1 << 20, true},
		{1<<33 - 70_000, 200_000, 1 << 20, true},
		{1<<62 + 12345, 1_000_000, 1 << 20, true},
		{math.MaxUint64 - 999_999, 1_000_000, 1 << 20, true},
		{0, 1 << 40, 1 << 20, false},
		{0, 1_000_000, 0, false},
	} {
		d, want := NewDense(c.most), New()
		refused := false
		want.Add([]uint64{7}, false)
		got := want.Clone()
		for range 20 {
			values := make([]uint64, 1+rng.IntN(5000))
			from := rng.Uint64N(c.span)
			for i := range values {
				values[i] = c.lo + from + rng.Uint64N(c.span-from)
			}
			values[0] = c.lo + c.span - 1
			if !d.Add(values, false) {
				refused = true
				continue
			}
			want.Add(values, false)
		}
		if d.Bytes() > c.most {
			t.Errorf("%+v: %d bytes", c, d.Bytes())
		}
		if refused == c.ok {
			t.Errorf("%+v: refused: %v", c, refused)
		}
		d.Into(got)
		if !sameMembers(got, want) {
			t.Errorf("%+v: %d members, want %d", c, got.Len(), want.Len())
		}
	}
}

func sameMembers(a, b *Set) bool {
	return a.natural.equals(&b.natural) && a.negative.equals(&b.negative)
}

// Ascending and descending values take memory in proportion to their range.
func TestDenseInOrder(t *testing.T) {
	for _, down := range []bool{false, true} {
		d, want, got := NewDense(64<<20), New(), New()
		for i := range uint64(500) {
			v := 1<<31 + i*30_000
			if down {
				v = 1<<31 - i*30_000
			}
			if !d.Add([]uint64{v}, true) {
				t.Fatal("refused", v)
			}
			want.Add([]uint64{v}, false)
		}
		if d.Bytes() > 4<<20 {
			t.Errorf("%d bytes", d.Bytes())
		}
		if d.Add([]uint64{1 << 31, ^uint64(0)}, true) {
			t.Error("-1 is in")
		}
		if d.Into(got); !sameMembers(got, want) {
			t.Errorf("%d members, want %d", got.Len(), want.Len())
		}
	}
}

func BenchmarkDense(b *testing.B) {
	values := subset(rand.New(rand.NewPCG(3, 4)), 10*million, 4)
	rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	for b.Loop() {
		d, s := NewDense(64<<20), New()
		for at := 0; at < len(values); at += 1 << 15 {
			d.Add(values[at:min(at+1<<15, len(values))], false)
		}
		d.Into(s)
	}
	perKey(b, len(values))
}
