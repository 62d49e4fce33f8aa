package flags

import "testing"

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{"64MiB": 64 << 20, "3GiB": 3 << 30, "100MB": 100e6, "1KiB": 1024, "32": 32, "1.5GiB": 3 << 29} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "MiB", "1XB", "1e3", "99999999999GiB", "9EiB9", "NaN"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("%q: %d, want an error", s, got)
		}
	}
}
