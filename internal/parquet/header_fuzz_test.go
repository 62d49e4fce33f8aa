package parquet

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

func FuzzPageHeader(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(paths) < 10 {
		f.Fatalf("%d files in testdata, %v", len(paths), err)
	}
	if shared := os.Getenv("BLOOMJOIN_SHARED"); shared != "" {
		more, err := filepath.Glob(filepath.Join(shared, "corpora/parquet-testing/data/*.parquet"))
		if err != nil || len(more) < 50 {
			f.Fatalf("%d files in the corpora, %v", len(more), err)
		}
		paths = append(paths, more...)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		file, err := Open(nil, bytes.NewReader(b), int64(len(b)), path)
		if err != nil || len(file.RowGroups) == 0 {
			continue // encrypted, or corrupt
		}
		for l := range file.Leaves {
			c := file.Chunk(0, l)
			for k := 0; k < 3 && c.pos < c.end; k++ {
				h, offset, err := c.readHeader()
				if err != nil {
					break
				}
				f.Add(b[offset:c.pos])
				if _, err := c.readBody(h); err != nil {
					break
				}
			}
			c.Close()
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h meta.PageHeader
		n, err := meta.Decode(b, &h)
		if err != nil {
			return
		}
		if n <= 0 || n > len(b) {
			t.Fatalf("%d bytes out of %d", n, len(b))
		}
		var again meta.PageHeader
		if m, err := meta.Decode(b[:n], &again); err != nil || m != n || !reflect.DeepEqual(h, again) {
			t.Fatalf("the header depends on what is behind it: %d bytes, then %d, %v", n, m, err)
		}
		if _, err := meta.Decode(b[:n-1], &again); err != meta.ErrShort {
			t.Fatalf("a header of one byte less: %v", err)
		}
		encoded, err := thrift.Marshal(new(thrift.CompactProtocol), &h)
		if err != nil {
			t.Fatal(err)
		}
		var round meta.PageHeader
		if m, err := meta.Decode(encoded, &round); err != nil || m != len(encoded) || !reflect.DeepEqual(h, round) {
			t.Fatalf("not the same after encoding: %+v, %+v, %v", h, round, err)
		}
	})
}
