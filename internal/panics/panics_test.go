package panics_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// memoryFault is a runtime error with an address, as of a mapped file that
// was cut short.
type memoryFault struct{ error }

func (memoryFault) Addr() uintptr { return 4096 }

// Only an error made of a recovered panic counts as one; its text stays.
func TestRecovered(t *testing.T) {
	decode := func(f func() error) (err error) {
		defer panics.Recover(fault.At{File: "x", Page: 3}, &err)
		return f()
	}
	err := decode(func() error { panic(errors.New("index out of range [3]")) })
	if !errors.Is(err, panics.ErrRecovered) || !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("a panic became %v", err)
	}
	if want := "x: page 3: corrupt: the decoder gave up: index out of range [3] (get a good copy of the file, or write it again; if other programs read it, report a bug)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(fmt.Errorf("building: %w", err), panics.ErrRecovered) {
		t.Error("lost when wrapped")
	}
	for name, err := range map[string]error{
		"none":          decode(func() error { return nil }),
		"a fault":       decode(func() error { return faults.Corrupt(fault.At{}, "short") }),
		"a cut mapping": decode(func() error { panic(memoryFault{errors.New("invalid memory address")}) }),
	} {
		if errors.Is(err, panics.ErrRecovered) {
			t.Errorf("%s counts as a panic: %v", name, err)
		}
	}
	if err := decode(func() error { panic(memoryFault{}) }); !errors.Is(err, panics.ErrUnmapped) || !strings.HasPrefix(err.Error(), "x: page 3") {
		t.Errorf("a cut mapping became %v", err)
	}
}
