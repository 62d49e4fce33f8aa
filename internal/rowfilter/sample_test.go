package rowfilter_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// sampled returns the numbers of a file of one a line, read as a type, that are in the sample.
func sampled(t *testing.T, name string, as arrow.DataType, share float64) (numbers []int) {
	opts := source.OpenOptions{Text: true, Types: map[string]arrow.DataType{"id": as}, SampleKeys: share, SampleBy: "id"}
	f := roomtest.Open(t, source.Opening{OpenOptions: opts}, name)[0]
	for g := range f.NumGroups() {
		for rec, err := range rowfilter.Read(t.Context(), f, g, nil) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range int(rec.NumRows()) {
				var n float64
				if _, err := fmt.Sscan(rec.Column(0).ValueStr(i), &n); err != nil {
					t.Fatal(err)
				}
				numbers = append(numbers, int(n))
			}
		}
	}
	return numbers
}

// TestSample: numbers are in the sample by their values, whatever their type, and in each larger one.
// The share is right, also of keys that a filter lets through. The first members never change.
func TestSample(t *testing.T) {
	const lines = 100_000
	var text strings.Builder
	for i := range lines {
		fmt.Fprintln(&text, i)
	}
	name := filepath.Join(t.TempDir(), "ids.txt")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tenth := sampled(t, name, arrow.PrimitiveTypes.Int64, 0.1)
	if sd := math.Sqrt(lines * 0.1 * 0.9); math.Abs(float64(len(tenth))-lines*0.1) > 5*sd {
		t.Errorf("%d of %d keys are in a sample of a tenth", len(tenth), lines)
	}
	for _, as := range []arrow.DataType{arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Float64, &arrow.Decimal128Type{Precision: 20, Scale: 2}} {
		if got := sampled(t, name, as, 0.1); !slices.Equal(got, tenth) {
			t.Errorf("as %s, other numbers are in the sample", as)
		}
	}
	half := sampled(t, name, arrow.PrimitiveTypes.Int64, 0.5)
	for _, n := range tenth {
		if _, found := slices.BinarySearch(half, n); !found {
			t.Fatalf("%d is in a sample of a tenth, and not of a half", n)
		}
	}
	if all := sampled(t, name, arrow.PrimitiveTypes.Int64, 1); len(all) != lines {
		t.Errorf("%d of %d keys are in a sample of all", len(all), lines)
	}
	if want := []int{1, 6, 7, 11, 18, 22, 24, 31}; !slices.Equal(tenth[:8], want) {
		t.Errorf("the sample begins with %v, want %v", tenth[:8], want)
	}
	if texts, want := sampled(t, name, arrow.BinaryTypes.String, 0.1)[:8], []int{29, 40, 41, 48, 54, 55, 63, 67}; !slices.Equal(texts, want) {
		t.Errorf("the sample of texts begins with %v, want %v", texts, want)
	}
	hash, passed, both := bloom.Hash{ID: bloom.XXH3}, 0, 0
	for n := range lines { // half of the keys, as a filter's hash would choose them
		if hash.AppendInts(nil, []uint64{uint64(n)})[0]>>63 == 0 {
			passed++
			if _, found := slices.BinarySearch(tenth, n); found {
				both++
			}
		}
	}
	if sd := math.Sqrt(float64(passed) * 0.1 * 0.9); math.Abs(float64(both)-float64(passed)*0.1) > 5*sd {
		t.Errorf("%d of %d keys that a filter lets through are in a sample of a tenth", both, passed)
	}
}
