package where

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// The canonical form of a condition is read back to the same condition.
func FuzzParse(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		f.Add(randomCond(r, 3))
	}
	for _, text := range []string{`NOT ((a.b IS NULL) IS UNKNOWN OR "in" IS NOT FALSE)`, `TRUE AND NULL OR x`, `'it''s' <> "a""b"`, "a -- b", "((", "größe LIKE '%_'"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(c.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", text, c, err)
		}
		if c.String() != again.String() {
			t.Fatalf("%q became %q, and that %q", text, c, again)
		}
		if a, b := pathsOf(c), pathsOf(again); !slices.Equal(a, b) {
			t.Fatalf("%q has columns %q, its canonical form %q", text, a, b)
		}
		schema := schemaOf()
		one, err := c.Bind(fault.At{}, schema, true)
		if err != nil {
			return
		}
		two, err := again.Bind(fault.At{}, schema, true)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, again, err)
		}
		if len(one.Preds()) != len(two.Preds()) {
			t.Fatalf("%q has %d predicates, its canonical form %d", text, len(one.Preds()), len(two.Preds()))
		}
	})
}

// The truth value of each row is among those that the statistics allow.
func FuzzPossible(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		f.Add(randomCond(r, 3), r.Uint64())
	}
	schema := schemaOf()
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		b, err := c.Bind(fault.At{}, schema, false)
		if err != nil {
			return
		}
		if err := checkPossible(rand.New(rand.NewPCG(seed, 5)), b); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

// The same for many conditions of every type.
func TestPossible(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	schema := schemaOf()
	for range cases.Count(10_000, 40_000, 100_000) {
		text := randomCond(r, r.IntN(4))
		c, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		b, err := c.Bind(fault.At{}, schema, false)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := checkPossible(r, b); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}
