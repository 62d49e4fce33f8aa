package flags

import (
	"strings"
	"testing"
)

func TestPercentFlag(t *testing.T) {
	for _, c := range []struct {
		s    string
		want float64
	}{
		{"", 0}, {"10%", 0.1}, {"0.5%", 0.005}, {"100%", 1}, {"100.000%", 1}, {"7%", 7. / 100}, {"0.7%", 7. / 1000}, {"33.3%", 333. / 1000}, {"00012%", 0.12},
		{"0.0000001%", 1e-9},
	} {
		if got, err := percentFlag("--p", c.s); err != nil || got != c.want {
			t.Errorf("%q: %v, %v, want %v", c.s, got, err, c.want)
		}
	}
	for _, s := range []string{"10", "%", "-1%", "+1%", "0%", "0.0%", "100.1%", "1e1%", "NaN%", "Inf%", "10 %", " 10%", "10%%", ".5%", "5.%", "0x1%", "1_0%", "10%\n", "1" + strings.Repeat("0", 400) + "%"} {
		if got, err := percentFlag("--p", s); err == nil || got != 0 {
			t.Errorf("%q is taken for %v", s, got)
		}
	}
}
