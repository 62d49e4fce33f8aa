package output

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// TestHowPages: PathOf names columns whose chunks cannot be copied whole, and why:
// some of many, in some of the row groups, and in a union of schemas.
func TestHowPages(t *testing.T) {
	const n = 3000 // in three row groups
	small := []sourcetest.Col{{Name: "user", Values: sourcetest.Numbers(n, func(i int) int64 { return int64(i) })}}
	large := small
	for i := range 10 {
		name := fmt.Sprint("v", i)
		small = append(small, sourcetest.Col{Name: name, Values: sourcetest.Numbers(n, func(i int) int32 { return int32(i) * 0x01234567 })})
		large = append(large, sourcetest.Col{Name: name, Values: sourcetest.Numbers(n, func(i int) int64 { return int64(i) * 0x0123456789ABCDEF })})
	}
	dir := t.TempDir()
	names := []string{
		sourcetest.Write(t, filepath.Join(dir, "a.parquet"), n/3, sourcetest.Record(t, memory.DefaultAllocator, small...)),
		sourcetest.Write(t, filepath.Join(dir, "b.parquet"), n/3, sourcetest.Record(t, memory.DefaultAllocator, large...)),
	}
	const some = "pages are copied, and whole chunks where no row is dropped or repeated"
	for _, c := range []struct {
		schema dataset.SchemaMode
		damage func(*source.File)
		out    string
		want   [2]string
	}{
		{schema: dataset.PerFile, out: "out/", want: [2]string{some, some}},
		{schema: dataset.UnionByName, out: "out/", want: [2]string{
			some + "; no whole chunk of v0, v1, v2, v3, v4, v5, v6, v7 and 2 more: the output's column has another type", some,
		}},
		{schema: dataset.PerFile, out: "out/", damage: func(f *source.File) {
			for g := range 2 {
				f.Parquet().File().Metadata.RowGroups[g].Columns[3].MetaData.Codec = format.Lz4
			}
			f.Parquet().File().Metadata.RowGroups[0].Columns[1].MetaData.Codec = format.Gzip
		}, want: [2]string{
			some + "; no whole chunk of v0: compressed with GZIP, the output with SNAPPY (1 of 3 row groups)" +
				", nor of v2: compressed with the deprecated LZ4 (2 of 3 row groups)", some,
		}},
		{schema: dataset.UnionByName, out: "out.parquet", want: [2]string{
			"pages are copied, but no whole chunk: row groups below 8 MiB are merged in an output of several files",
			"pages are copied, but no whole chunk: row groups below 8 MiB are merged in an output of several files",
		}},
	} {
		logs := roomtest.Open(t, source.Opening{}, names...)
		if c.damage != nil {
			c.damage(logs[0])
		}
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("user", 2))}}, Schema: c.schema}})
		if err != nil {
			t.Fatal(err)
		}
		out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), c.out), Compression: "snappy"}}
		if c.out == "out/" {
			out.Name += "/"
		}
		w, err := out.openScan(t.Context(), s, nil, source.Split(logs, dataset.Shard{}), logs)
		if err != nil {
			t.Fatal(err)
		}
		w.abort()
		for i, f := range logs {
			if path, why := s.PathOf(f); path != "engine" || why != c.want[i] {
				t.Errorf("%s into %s: %s: %s, %s; want %s", c.schema, c.out, filepath.Base(f.Name()), path, why, c.want[i])
			}
		}
	}
}
