package leaves_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// TestParseCorrupt: stored rows that were cut or changed are refused, or are rows
// that can be used.
func TestParseCorrupt(t *testing.T) {
	refused := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := newTable(t, rng, 1+rng.IntN(3), rng.IntN(40))
		stored := w.block(t, rng, leaves.NewBuilder(w.of), 0, w.rows).Append(nil, nil)
		for n := range stored {
			if _, err := leaves.Parse(w.of, stored[:n:n]); !errors.Is(err, fault.ErrCorrupt) {
				t.Fatalf("seed %d, %d of %d bytes: %v", seed, n, len(stored), err)
			}
		}
		if _, err := leaves.Parse(w.of, append(stored[:len(stored):len(stored)], 0)); !errors.Is(err, fault.ErrCorrupt) {
			t.Fatalf("seed %d, a byte too much: %v", seed, err)
		}
		for range 300 {
			changed := append([]byte{}, stored...)
			changed[rng.IntN(len(changed))] ^= 1 << rng.IntN(8)
			if !use(t, w.of, changed) {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Fatal("no change was refused")
	}
}

// use reads stored bytes and all rows in them, and reports whether they are stored
// rows.
func use(t testing.TB, of []meta.Leaf, stored []byte) bool {
	t.Helper()
	b, err := leaves.Parse(of, stored)
	if err != nil {
		if !errors.Is(err, fault.ErrCorrupt) {
			t.Fatal(err)
		}
		return false
	}
	s := leaves.New(of, nil)
	if err := s.Append(b, nil); err != nil {
		t.Fatal(err)
	}
	rows := make([]uint32, s.Len())
	for i := range rows {
		rows[i] = uint32(len(rows) - 1 - i)
	}
	for i := range of {
		for p, err := range s.Pages(i, rows, leaves.Shape{MaxDef: of[i].MaxDef}) {
			if err != nil {
				t.Fatal(err)
			}
			entries(t, &of[i], of[i].MaxDef, p, nil)
		}
	}
	return true
}

func FuzzParse(f *testing.F) {
	var shapes [][]meta.Leaf
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 8))
		w := newTable(f, rng, 1+rng.IntN(3), 1+rng.IntN(20))
		shapes = append(shapes, w.of)
		f.Add(seed, w.block(f, rng, leaves.NewBuilder(w.of), 0, w.rows).Append(nil, nil))
	}
	f.Add(uint64(14), []byte("0000\x02\x00\x00\x00\x00000000000000")) // many rows without values
	f.Fuzz(func(t *testing.T, shape uint64, stored []byte) {
		use(t, shapes[shape%uint64(len(shapes))], stored)
	})
}
