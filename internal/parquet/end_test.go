package parquet

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

// TestFalseEnd: a compressed page that is cut anywhere is an error, and never taken for the
// end of the pages.
func TestFalseEnd(t *testing.T) {
	b, err := os.ReadFile("testdata/rle_boolean_encoding.parquet") // gzip
	if err != nil {
		t.Fatal(err)
	}
	m, err := takeApart("emptied.parquet", b)
	if err != nil {
		t.Fatal(err)
	}
	page := m.chunks[0][0][0]
	for n := range page.body {
		p := &m.chunks[0][0][0]
		p.body, p.header.CompressedPageSize, p.header.CRC.Valid = page.body[:n], int32(n), false
		if b, err = m.assemble(nil); err != nil {
			t.Fatal(err)
		}
		f, err := openBytes(b, m.name)
		if err != nil {
			t.Fatal(err)
		}
		c := f.Chunk(0, 0)
		if _, err := c.Next(context.Background()); errors.Is(err, io.EOF) || !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%d of %d bytes: %v", n, len(page.body), err)
		}
		c.Close()
	}
}
