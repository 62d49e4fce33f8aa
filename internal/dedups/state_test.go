package dedups

import (
	"strings"
	"testing"
)

// A line is whole once its end is certain: an LF may follow the last CR.
func TestLastLine(t *testing.T) {
	for _, c := range []struct {
		text       string
		from, want int64
	}{
		{"", 0, 0},
		{"a", 0, 0},
		{"a\nb", 0, 2},
		{"a\nb\n", 0, 4},
		{"a\r\nb\r", 0, 3},
		{"a\r\nb\r", 3, 3},
		{"a\nb\rc", 2, 2},
		{"a\r", 0, 0},
		{"a\rb", 0, 2},
		{"a\rb\r", 0, 4},
		{"a\rb\r", 2, 4},
		{"a\rb", 2, 2},
	} {
		got, err := LastLine(strings.NewReader(c.text), c.from, int64(len(c.text)))
		if err != nil || got != c.want {
			t.Errorf("%q from %d: %d, %v, want %d", c.text, c.from, got, err, c.want)
		}
	}
}
