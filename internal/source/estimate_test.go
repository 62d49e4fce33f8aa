package source

import (
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestEstimateLines: an estimate of the lines of text, compressed or not.
func TestEstimateLines(t *testing.T) {
	lines := strings.Repeat("12345\n", 100_000)
	for _, c := range []struct {
		name, content string
		low, high     int64
	}{
		{"ids.txt", lines, 99_000, 101_000},
		{"few.txt", "1\n2\n3\n", 3, 4},
		{"empty.txt", "", 0, 1},
		{"packed.txt.gz", "\x1f\x8b\x08" + strings.Repeat("x", 30_000), 5_000, 20_000},
	} {
		f := &File{name: c.name, format: dataset.Lines, size: int64(len(c.content)), reader: readerSource{strings.NewReader(c.content)}, table: &noShare{}, doubts: new(doubts)}
		if n, err := f.EstimateLines(); err != nil || n < c.low || n > c.high {
			t.Errorf("%s: %d rows, %v; want %d to %d", c.name, n, err, c.low, c.high)
		}
	}
}

// readerSource reads a string.
type readerSource struct{ *strings.Reader }

func (r readerSource) Object() storage.Object { return storage.Object{Size: r.Size()} }

func (r readerSource) Close() error { return nil }
