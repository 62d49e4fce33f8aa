package roomtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// Click is a row of a log that parquet-go writes and reads, as an independent
// implementation.
type Click struct {
	ID    *int64   `parquet:"id,optional"`
	Row   int64    `parquet:"row,plain"`
	Host  string   `parquet:"host,dict"`
	URL   string   `parquet:"url,delta"`
	Tags  []string `parquet:"tags,list"`
	Score float64  `parquet:"score,split"`
	User  *visitor `parquet:"user,optional"`
	Long  int64    `parquet:"long,delta"`
	Raw   []byte   `parquet:"raw"`
}

// Clicks returns n rows, with numbers from first on.
func Clicks(rng *rand.Rand, n, first int) []Click {
	out := make([]Click, n)
	for i := range out {
		c := Click{
			Row: int64(first + i), Host: fmt.Sprint("host", first/1000*3+rng.IntN(5)), URL: fmt.Sprint("/page/", rng.IntN(n)),
			Score: rng.Float64(), Long: rng.Int64(), Raw: make([]byte, rng.IntN(20)),
		}
		if rng.IntN(10) > 0 {
			id := rng.Int64N(1000)
			c.ID = &id
		}
		for j := range rng.IntN(4) {
			c.Tags = append(c.Tags, fmt.Sprint("tag", j))
		}
		if rng.IntN(200) == 0 {
			c.Tags = slices.Repeat([]string{"many"}, 700)
		}
		if rng.IntN(5) > 0 {
			c.User = &visitor{Ports: slices.Repeat([]int32{int32(i)}, rng.IntN(3))}
			if rng.IntN(3) > 0 {
				name := fmt.Sprint("n", rng.IntN(20))
				c.User.Name = &name
			}
		}
		out[i] = c
	}
	return out
}

// Layout is a way to write a log.
type Layout struct {
	Group   int64 // rows
	Page    int   // bytes
	Version int   // of data pages
	Codec   pq.WriterOption
}

// Layouts are some ways to write a log. LZ4_RAW is missing: parquet-go decompresses some of
// its pages wrongly, those for which its first buffer was too small.
var Layouts = []Layout{
	{100_000, 1 << 20, 1, pq.Compression(&pq.Snappy)},
	{700, 1000, 1, pq.Compression(&pq.Zstd)},
	{1000, 2000, 2, pq.Compression(&pq.Uncompressed)},
	{90, 300, 1, pq.Compression(&pq.Snappy)},
	{2500, 900, 2, pq.Compression(&pq.Snappy)},
}

// WriteClicks writes a file and returns its name.
func WriteClicks(t testing.TB, path string, rows []Click, l Layout) string {
	t.Helper()
	var b bytes.Buffer
	w := pq.NewGenericWriter[Click](&b, pq.MaxRowsPerRowGroup(l.Group), pq.PageBufferSize(l.Page), pq.DataPageVersion(l.Version), l.Codec)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return sourcetest.Put(t, path, b.String())
}

// ReadClicks reads a file.
func ReadClicks(t testing.TB, path string) []Click {
	t.Helper()
	rows, err := pq.ReadFile[Click](path)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

type visitor struct {
	Name  *string `parquet:"name,optional,dict"`
	Ports []int32 `parquet:"ports,list"`
}
