package join

import (
	"math/rand/v2"
	"testing"
)

// TestIntSet: against a map, through growth, with repeats, zero, and values that
// share their bits but not their sign.
func TestIntSet(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	type key struct {
		v        uint64
		negative bool
	}
	var s intSet
	rows := map[key]int64{}
	for range 60 {
		signed := r.IntN(2) == 0
		values := []uint64{0, ^uint64(0), 1 << 63}
		for range r.IntN(500) {
			v := r.Uint64() >> r.IntN(64)
			values = append(values, v, -v)
		}
		if !s.add(values, signed, 0) {
			t.Fatal("refused without a bound")
		}
		for _, v := range values {
			rows[key{v, signed && int64(v) < 0}]++
		}
	}
	s.natural.seal()
	s.negative.seal()
	var want int64
	for k, n := range rows {
		table := s.table(k.v, k.negative)
		slot := table.find(k.v)
		if slot < 0 {
			t.Fatalf("%+v is not found", k)
		}
		if r.IntN(2) == 0 {
			table.mark(slot)
			table.mark(slot)
			want += n
		}
	}
	if got := s.matched(); got != want {
		t.Errorf("%d rows matched, want %d", got, want)
	}
	for range 10_000 {
		v, signed := r.Uint64()>>r.IntN(64), r.IntN(2) == 0
		k := key{v, signed && int64(v) < 0}
		if found := s.table(v, signed).find(v) >= 0; found != (rows[k] > 0) {
			t.Errorf("%+v: found %v, added %d times", k, found, rows[k])
		}
	}
}

// TestIntSetBudget: no table is begun that, beside the one it replaces, would
// take more than allowed.
func TestIntSetBudget(t *testing.T) {
	const most = 1 << 20
	var s intSet
	batch := make([]uint64, 1000)
	added := 0
	for ; ; added += len(batch) {
		for i := range batch {
			batch[i] = uint64(added + i + 1)
		}
		before := s.bytes()
		if !s.add(batch, false, most) {
			if s.bytes() != before || s.natural.len != uint64(added) {
				t.Error("refused, and changed")
			}
			break
		}
		if s.bytes() > most {
			t.Fatalf("%d bytes held, %d allowed", s.bytes(), most)
		}
	}
	if added < 20_000 { // eleven bytes for each, twice while it grows, and growth is by two
		t.Errorf("only %d values in %d bytes", added, most)
	}
}
