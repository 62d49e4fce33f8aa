package keyset

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
)

// At small widths every integer occurs once.
func TestIDsArePermutations(t *testing.T) {
	for _, universe := range []uint64{2, 3, 4, 100, 255, 256, 257, 40_000, 1 << 17} {
		ids, seen := Dense(universe), make([]bool, universe)
		for i := range universe {
			v := ids.At(i)
			if v >= universe || seen[v] {
				t.Fatalf("universe %d: key %d is %d, out of range or there already", universe, i, v)
			}
			seen[v] = true
		}
	}
}

// The first quarter of a permutation is a sample of all, in random order.
func TestDense(t *testing.T) {
	const n = 200_000
	ids := Dense(4 * n)
	var rising int
	var parts [64]int
	for i := range uint64(n) {
		v := ids.At(i)
		if i > 0 && v > ids.At(i-1) {
			rising++
		}
		parts[v*64/(4*n)]++
	}
	if math.Abs(float64(rising)-n/2) > 5*math.Sqrt(n/12) {
		t.Errorf("%d of %d neighbours rise", rising, n)
	}
	for b, count := range parts {
		if math.Abs(float64(count)-n/64) > 5*math.Sqrt(n/64*0.75) {
			t.Errorf("%d keys lie in part %d, want about %d", count, b, n/64)
		}
	}
}

// The content of data files must not change without their version.
func TestIDsAreTheSameForEver(t *testing.T) {
	got := fmt.Sprint(Dense(400).At(0), Dense(400).At(399))
	for i := range uint64(3) {
		got += " " + string(AppendText(nil, i))
	}
	const want = "112 253 83dded5d-6854-94e2- 44e85e31-a777-4591-f320-3 04562444-99ef-5e"
	if got != want {
		t.Errorf("got %q, want %q: raise the data's version", got, want)
	}
}

func TestText(t *testing.T) {
	const n = 100_000
	shape := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{2}[0-9a-f-]*$`)
	whole := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	heads, lengths := make(map[string]bool, n), map[int]int{}
	buffer := []byte("kept")
	for i := range uint64(n) {
		buffer = AppendText(buffer[:4], i)
		s := strings.TrimPrefix(string(buffer), "kept")
		if len(s) < MinText || heads[s[:MinText]] || !shape.MatchString(s) || len(s) == MaxText && !whole.MatchString(s) {
			t.Fatalf("string %d is %q", i, s)
		}
		heads[s[:MinText]] = true
		lengths[len(s)]++
	}
	for length := MinText; length <= MaxText; length++ {
		if want := float64(n) / 21; math.Abs(float64(lengths[length])-want) > 5*math.Sqrt(want) {
			t.Errorf("%d strings of %d bytes, want about %.0f", lengths[length], length, want)
		}
		delete(lengths, length)
	}
	if len(lengths) > 0 {
		t.Errorf("other lengths: %v", lengths)
	}
}
