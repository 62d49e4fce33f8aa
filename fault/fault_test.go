package fault_test

import (
	"errors"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// A damaged file has advice, unless the reader gave some, or it is text.
func TestHint(t *testing.T) {
	const advice = " (get a good copy of the file, or write it again; if other programs read it, report a bug)"
	for want, err := range map[string]error{
		"x: corrupt: short" + advice:         faults.Corrupt(fault.At{File: "x"}, "short"),
		"x: corrupt: short (try y)":          faults.Corrupt(fault.At{File: "x"}, "short").WithHint("try y"),
		"x: line 3: corrupt: short":          faults.Corrupt(fault.At{File: "x", Line: 3}, "short"),
		"corrupt: short":                     faults.Corrupt(fault.At{}, "short"),
		"x: mismatch: n: want 1, got 2":      faults.Mismatch(fault.At{File: "x"}, "n", "1", "2"),
		"x: corrupt: n: want 1, got 2 (try)": faults.Wanted(faults.Corrupt(fault.At{File: "x"}, "n"), "1", "2").WithHint("try"),
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// A nil error has a text, and budgets and shares that make no sense still give one.
func TestNilError(t *testing.T) {
	var none *fault.Error
	if none.Error() == "" || none.Unwrap() != nil {
		t.Errorf("%q wraps %v", none.Error(), none.Unwrap())
	}
	if err := faults.Memory(fault.At{}, "x", 5, 0, 0); !errors.Is(err, fault.ErrMemory) || err.Error() == "" {
		t.Error(err)
	}
}
