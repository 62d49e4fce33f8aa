package parquet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	pg "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// hostileRow has each physical type, each encoding, and nesting.
type hostileRow struct {
	ID      int64    `parquet:"id,delta"`
	Small   int32    `parquet:"small,delta"`
	Code    *int32   `parquet:"code,dict"`
	Name    string   `parquet:"name,dict"`
	URL     string   `parquet:"url"`
	Path    string   `parquet:"path,optional,delta"`
	Price   float64  `parquet:"price,split"`
	Ratio   float32  `parquet:"ratio,split"`
	Flag    bool     `parquet:"flag"`
	Maybe   *bool    `parquet:"maybe"`
	Digest  [16]byte `parquet:"digest"`
	Tags    []string `parquet:"tags,list"`
	Numbers []int64  `parquet:"numbers"`
	Deep    []struct {
		A *int32   `parquet:"a"`
		B []string `parquet:"b"`
	} `parquet:"deep"`
}

func hostileRows(rng *rand.Rand, n int) []hostileRow {
	rows := make([]hostileRow, n)
	for i := range rows {
		r := &rows[i]
		*r = hostileRow{ID: int64(i)*1000 + rng.Int64N(500), Small: rng.Int32N(100), Name: fmt.Sprint("name", rng.IntN(7)),
			URL: fmt.Sprintf("https://example.org/%x", rng.Uint32()), Price: rng.Float64(), Ratio: rng.Float32(), Flag: rng.IntN(2) == 0}
		if rng.IntN(3) > 0 {
			code, path, maybe := rng.Int32N(40), fmt.Sprintf("/a/b/%d", rng.IntN(900)), rng.IntN(4) == 0
			r.Code, r.Path, r.Maybe = &code, path, &maybe
		}
		copy(r.Digest[:], randomString(rng, 16))
		for range rng.IntN(4) {
			r.Tags = append(r.Tags, r.Name[rng.IntN(3):])
			r.Numbers = append(r.Numbers, int64(rng.IntN(9)))
			d := struct {
				A *int32   `parquet:"a"`
				B []string `parquet:"b"`
			}{B: r.Tags}
			if rng.IntN(2) == 0 {
				d.A = &r.Small
			}
			r.Deep = append(r.Deep, d)
		}
	}
	return rows
}

// writtenFiles returns small files written by parquet-go, whose pages all have
// checksums.
func writtenFiles(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	for name, c := range map[string]struct {
		codec   compress.Codec
		version int
		rows    int
		page    int
	}{
		"written v1":            {&pg.Uncompressed, 1, 60, 256},
		"written v1 snappy":     {&pg.Snappy, 1, 200, 4000},
		"written v2":            {&pg.Uncompressed, 2, 60, 300},
		"written v2 zstd":       {&pg.Zstd, 2, 100, 1000},
		"written v1 gzip":       {&pg.Gzip, 1, 40, 500},
		"written v2 lz4":        {&pg.Lz4Raw, 2, 40, 500},
		"written v1 brotli":     {&pg.Brotli, 1, 40, 500},
		"written v2, few pages": {&pg.Snappy, 2, 300, 1 << 20},
	} {
		rng := rand.New(rand.NewPCG(18, uint64(c.rows)))
		var out bytes.Buffer
		w := pg.NewGenericWriter[hostileRow](&out, pg.Compression(c.codec), pg.DataPageVersion(c.version), pg.PageBufferSize(c.page),
			pg.MaxRowsPerRowGroup(150), pg.WriteBufferSize(0))
		if _, err := w.Write(hostileRows(rng, c.rows)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		files[name] = out.Bytes()
	}
	return files
}
