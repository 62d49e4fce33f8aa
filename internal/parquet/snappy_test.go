package parquet

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// All Snappy pages of the corpora are decompressed as by s2.
func TestSnappyPages(t *testing.T) {
	shared := os.Getenv("BLOOMJOIN_SHARED")
	if shared == "" {
		t.Skip("BLOOMJOIN_SHARED is not set: the corpora are not at hand")
	}
	pages, large := 0, 0
	var d enc.Decompressor
	check := func(path string, p modelPage) {
		h := &p.header
		body, size := p.body, int(h.UncompressedPageSize)
		if v2 := h.DataPageHeaderV2; v2.Valid {
			levels := int(v2.V.RepetitionLevelsByteLength) + int(v2.V.DefinitionLevelsByteLength)
			if levels < 0 || levels > min(size, len(body)) {
				return
			}
			body, size = body[levels:], size-levels
		}
		want, wantErr := s2.Decode(nil, body)
		if len(body) == 0 && size == 0 {
			wantErr = nil
		} else if wantErr == nil && len(want) != size {
			wantErr = errors.New("the decompressed size is not the one stated")
		}
		got, err := d.Decompress(format.Snappy, nil, body, size)
		if err == nil && !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("%s: a page of %d bytes, %d decompressed: %v, want %v", path, len(body), size, err, wantErr)
		}
		if pages++; size >= 8<<10 {
			large++
		}
	}
	for _, dir := range []string{"corpora", "data"} {
		err := filepath.WalkDir(filepath.Join(shared, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".parquet" {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			m, err := takeApart(path, b)
			if err != nil {
				return nil // a damaged file
			}
			decoded, err := decodeFooter(m.footer)
			if err != nil {
				return err
			}
			for g, group := range m.chunks {
				for l, chunk := range group {
					for _, p := range chunk {
						if decoded.RowGroups[g].Columns[l].MetaData.Codec == format.Snappy {
							check(path, p)
						}
					}
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	t.Logf("%d pages, %d of 8 KiB or more", pages, large)
	if pages < 80 || large < 4 {
		t.Errorf("only %d pages, %d of 8 KiB or more", pages, large)
	}
}
