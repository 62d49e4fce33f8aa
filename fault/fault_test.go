package fault_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

// memoryFault is a runtime error with an address, as of a mapped file that
// was cut short.
type memoryFault struct{ error }

func (memoryFault) Addr() uintptr { return 4096 }

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 13271040: "12.66 MiB", 64 << 20: "64 MiB", 3 << 40: "3 TiB", math.MaxInt64: "8 EiB"} {
		if got := fault.Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// A damaged file has advice, unless the reader gave some, or it is text.
func TestHint(t *testing.T) {
	const advice = " (get a good copy of the file, or write it again; if other programs read it, report a bug)"
	for want, err := range map[string]error{
		"x: corrupt: short" + advice:         fault.Corrupt(fault.At{File: "x"}, "short"),
		"x: corrupt: short (try y)":          fault.Corrupt(fault.At{File: "x"}, "short").WithHint("try y"),
		"x: line 3: corrupt: short":          fault.Corrupt(fault.At{File: "x", Line: 3}, "short"),
		"corrupt: short":                     fault.Corrupt(fault.At{}, "short"),
		"x: mismatch: n: want 1, got 2":      fault.Mismatch(fault.At{File: "x"}, "n", "1", "2"),
		"x: corrupt: n: want 1, got 2 (try)": fault.Corrupt(fault.At{File: "x"}, "n").Wanted("1", "2").WithHint("try"),
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// Only an error made of a recovered panic counts as one; its text stays.
func TestRecovered(t *testing.T) {
	decode := func(f func() error) (err error) {
		defer fault.Recovered(fault.At{File: "x", Page: 3}, &err)
		return f()
	}
	err := decode(func() error { panic(errors.New("index out of range [3]")) })
	if !errors.Is(err, fault.ErrPanicked) || !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("a panic became %v", err)
	}
	if want := "x: page 3: corrupt: the decoder gave up: index out of range [3] (get a good copy of the file, or write it again; if other programs read it, report a bug)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(fmt.Errorf("building: %w", err), fault.ErrPanicked) {
		t.Error("lost when wrapped")
	}
	for name, err := range map[string]error{
		"none":          decode(func() error { return nil }),
		"a fault":       decode(func() error { return fault.Corrupt(fault.At{}, "short") }),
		"a cut mapping": decode(func() error { panic(memoryFault{errors.New("invalid memory address")}) }),
	} {
		if errors.Is(err, fault.ErrPanicked) {
			t.Errorf("%s counts as a panic: %v", name, err)
		}
	}
	if err := decode(func() error { panic(memoryFault{}) }); !errors.Is(err, fault.ErrGone) || !strings.HasPrefix(err.Error(), "x: page 3") {
		t.Errorf("a cut mapping became %v", err)
	}
}
