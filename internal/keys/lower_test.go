package keys

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write lower.txt anew")

// tableVersion is the version of Unicode that FORMAT.md names.
const tableVersion = "15.0.0"

// The table has the simple lower case of each character in Unicode 15.0, and all that a later
// version changes are characters that 15.0 does not have.
func TestLower(t *testing.T) {
	if *update && unicode.Version == tableVersion {
		if err := os.WriteFile("lower.txt", []byte(lowerTable()), 0o644); err != nil {
			t.Fatal(err)
		}
		lowerText = lowerTable()
	}
	if unicode.Version == tableVersion && lowerText != lowerTable() {
		t.Error("lower.txt is not of Unicode 15.0: want what -update writes")
	}
	const rule = Trim | Lower | Unicode
	lettered := 0
	for c := range rune(unicode.MaxRune + 1) {
		if !utf8.ValidRune(c) {
			continue
		}
		text := string(c)
		got := string(appendLower(nil, []byte(text)))
		want := string(unicode.ToLower(c))
		if got != text {
			lettered++
		}
		if got != want && (unicode.Version == tableVersion || got != text) {
			t.Errorf("%U: %q, want %q", c, got, want)
		}
		if again := string(appendLower(nil, []byte(got))); again != got {
			t.Errorf("%U: %q, then %q", c, got, again)
		}
		blank := unicode.Is(unicode.White_Space, c)
		if trimmed, _ := rule.apply([]byte(text+"x"+text), nil); (string(trimmed) == "x") != blank {
			t.Errorf("%U: %q between it, blank %t", c, trimmed, blank)
		}
		if c < utf8.RuneSelf {
			ascii, _ := (Trim | Lower).apply([]byte(text+"x"), nil)
			if wide, _ := rule.apply([]byte(text+"x"), nil); string(wide) != string(ascii) {
				t.Errorf("%U: %q, want %q as under ASCII", c, wide, ascii)
			}
		}
	}
	if lettered != 1433 {
		t.Errorf("%d characters have a lower case, want 1433", lettered)
	}
}

// lowerTable returns lower.txt according to package unicode.
func lowerTable() string {
	type run struct{ first, last, step, to rune }
	var runs []run
	for c := range rune(unicode.MaxRune + 1) {
		to := unicode.ToLower(c)
		if to == c {
			continue
		}
		if n := len(runs) - 1; n >= 0 {
			r := &runs[n]
			step := c - r.last
			if to-c == r.to-r.first && (r.first == r.last && step <= 2 || r.step == step) {
				r.last, r.step = c, step
				continue
			}
		}
		runs = append(runs, run{c, c, 1, to})
	}
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "%X %X %X %X\n", r.first, r.last, r.step, r.to)
	}
	return b.String()
}

// Texts that are not UTF-8 keep the bytes that are not, and a text in lower case stays.
func FuzzLower(f *testing.F) {
	for _, s := range []string{"MÜLLER", "\xc3", "\xc3\x9c\x9c", "Ⱥ\xe2\x84Ⱦ", "\xed\xa0\x80Ä", "\xf0\x9e\xa4", "İΣK", "\xe2\x80\x80", "\u2003\xe2\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want []byte
		for i := 0; i < len(s); {
			c, n := utf8.DecodeRuneInString(s[i:])
			if n == 1 && c == utf8.RuneError {
				want = append(want, s[i])
			} else {
				want = append(want, appendLower(nil, []byte(s[i:i+n]))...)
			}
			i += n
		}
		got := appendLower([]byte("x"), []byte(s))
		if string(got) != "x"+string(want) {
			t.Fatalf("%q: %q, want %q", s, got, want)
		}
		if again := appendLower(nil, want); string(again) != string(want) {
			t.Errorf("%q: %q, then %q", s, want, again)
		}
	})
}

// TestLowerASCII checks each byte at each place of texts around a word's length.
func TestLowerASCII(t *testing.T) {
	for n := range 20 {
		for at := range n {
			for c := range 256 {
				text := bytes.Repeat([]byte{'Z' + 1}, n)
				text[at] = byte(c)
				want := bytes.Clone(text)
				if 'A' <= c && c <= 'Z' {
					want[at] = byte(c) + 'a' - 'A'
				}
				if lowerASCII(text); !bytes.Equal(text, want) {
					t.Fatalf("byte %#x at %d of %d: got %q, want %q", c, at, n, text, want)
				}
			}
		}
	}
}
