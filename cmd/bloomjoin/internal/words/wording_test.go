package words

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

func TestAsFlag(t *testing.T) {
	for text, want := range map[fault.Text]string{
		"raise {Memory} or {FPR}":                                            "raise --memory or --fpr",
		"raise {Memory to 88MiB} or more":                                    "raise --memory to 88MiB or more",
		"set {MaxSize}, {NoMatch}":                                           "set --max-size, --no-match",
		"{Kind exact} or {Schema union}":                                     "--kind exact or --schema union",
		"{Expect N} or {Expect+Room}":                                        "--expect N or --capacity",
		"{TextFormat csv} and {Types}":                                       "--ids-format csv and --key-type",
		"write to {Output OUT/}":                                             "write to -o OUT/",
		"{NullMisfits}, {Int96Nanos true}, {Int96Nanos false}, {IgnoreCase}": "--cast-errors null, --int96 ns, --int96 us, --ignore-case",
	} {
		if got := faults.Word(text, Flag); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// Options are worded wherever an error is: in its cause, under wrappers of other
// packages, beside others, but not in the names of files and columns.
func TestWorded(t *testing.T) {
	memory := faults.Memory(fault.At{File: "{Memory}", Column: "Memory"}, "a page", 80<<20, 64<<20, 4)
	const said = "{Memory}: column Memory: over the memory budget: a page: want at most 16 MiB, 1/4 of the budget, got 80 MiB (raise --memory to 321MiB or more)"
	rule := faults.About(faults.Mismatch(fault.At{}, "", "lower", "none"), "{Normalize}").WithHint("say {Normalize lower}, not %s", "{Memory}")
	const ruled = "mismatch: --normalize: want lower, got none (say --normalize lower, not {Memory})"
	for want, err := range map[string]error{
		said:                                 memory,
		"x: " + said + " (twice)":            fmt.Errorf("x: %w (twice)", fmt.Errorf("%w", memory)),
		ruled + "\n" + said + "\n" + ruled:   errors.Join(rule, memory, rule),
		"a " + said + " b " + ruled:          fmt.Errorf("a %w b %w", memory, rule),
		"corrupt: " + ruled:                  &fault.Error{Kind: fault.ErrCorrupt, Err: rule},
		"y: " + said + ", or raise --memory": faults.Errorf("%s: %w, or raise {Memory}", "y", memory),
		"z (" + said + "): it is there (--force replaces it {x} {Force})": faults.WithHint(fmt.Errorf("z (%w): it is there", memory), "{Force} replaces it {{x}} %s", "{Force}"),
		"Memory": errors.New("Memory"),
	} {
		if got := Error(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
