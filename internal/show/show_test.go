package show_test

import (
	"math"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/show"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 13271040: "12.66 MiB", 64 << 20: "64 MiB", 3 << 40: "3 TiB", math.MaxInt64: "8 EiB"} {
		if got := show.Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":               "",
		"a b/ü.parquet":  "a b/ü.parquet",
		"a\x1b[2Jb\n":    `a\x1b[2Jb` + "\n",
		"\t\x00\x7f":     `\x09\x00\x7f`,
		"x\u202ey\u0085": `x\u202ey\u0085`,
		"\xff\xfeü":      `\xff\xfeü`,
	} {
		if got := show.Printable(text, "\n"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
