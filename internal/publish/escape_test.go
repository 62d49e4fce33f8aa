package publish

import "testing"

// Names of any bytes survive escaping and unescaping.
func TestEscapeName(t *testing.T) {
	for name, want := range map[string]string{
		"a.parquet": "a.parquet", "grün\u202e": "grün\u202e", "bad\xff\xfe.parquet": `bad\xFF\xFE.parquet`,
		`a\xFF.parquet`: `a\\xFF.parquet`, `back\\slash`: `back\\\\slash`, "esc\x1b[31m": "esc\x1b[31m",
	} {
		got := EscapeName(name)
		if got != want {
			t.Errorf("%q is written %s, want %s", name, got, want)
		}
		if back := UnescapeName(got); back != name {
			t.Errorf("%q came back as %q", name, back)
		}
	}
}
