package rowfilter_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// The Bloom filters that other writers put into Parquet files are ours in XXH64 mode:
// they contain every value of their column.
func TestParquetBloomFilters(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"data_index_bloom_encoding_stats.parquet", "data_index_bloom_encoding_with_length.parquet"} {
		path := filepath.Join("../parquet/testdata", name)
		data, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer data.Close()
		info, err := data.Stat()
		if err != nil {
			t.Fatal(err)
		}
		f, err := parquet.Open(nil, data, info.Size(), name)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := source.Open(ctx, []string{path}, source.Opening{OpenOptions: source.OpenOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close(tables)

		hash := bloom.Hash{ID: bloom.XXH64}
		probed := 0
		for group := range tables[0].NumGroups() {
			bits, ok, err := f.BloomFilter(group, 0)
			if err != nil || !ok {
				t.Fatalf("%s: row group %d: a filter: %v, %v", name, group, ok, err)
			}
			filter, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: uint64(len(bits)) / bloom.Split256.BlockBytes()})
			if err != nil {
				t.Fatal(err)
			}
			if err := filter.OrBlocks(0, bits); err != nil {
				t.Fatal(err)
			}
			for rec, err := range rowfilter.Read(ctx, tables[0], group, []int{0}) {
				if err != nil {
					t.Fatal(err)
				}
				hashes := make([]uint64, rec.NumRows())
				for i := range hashes {
					hashes[i] = hash.Sum([]byte(rec.Column(0).(*array.String).Value(i)))
				}
				if got := filter.Probe(hashes, nil); len(got) != len(hashes) {
					t.Errorf("%s: row group %d: the filter has %d of %d values", name, group, len(got), len(hashes))
				}
				probed += len(hashes)
			}
			strangers := 0
			for _, s := range []string{"certainly not", "of course not", "never", "nobody", "nowhere"} {
				if filter.Contains(hash.Sum([]byte(s))) {
					strangers++
				}
			}
			if strangers == 5 {
				t.Errorf("%s: row group %d: the filter says yes to everything", name, group)
			}
		}
		if probed != 14 {
			t.Errorf("%s: probed %d values, want 14", name, probed)
		}
	}
}
