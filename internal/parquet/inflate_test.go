package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	pg "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

type turnRow struct {
	ID    int64    `parquet:"id"`
	Name  string   `parquet:"name,dict"`
	URL   *string  `parquet:"url,optional"`
	Tags  []string `parquet:"tags,list"`
	Price float64  `parquet:"price"`
}

// inTurnsFile is a file in Snappy with pages of some ten KiB, written by another program.
func inTurnsFile(t *testing.T, rng *rand.Rand, version int) []byte {
	rows := make([]turnRow, 20_000)
	for i := range rows {
		url := fmt.Sprintf("https://www.example.com/%d/%x", rng.IntN(50), rng.IntN(1<<20))
		rows[i] = turnRow{ID: rng.Int64N(1 << 20), Name: fmt.Sprint("a name that is long ", rng.IntN(3000)), Price: float64(rng.IntN(5000)) / 100}
		if rng.IntN(5) > 0 {
			rows[i].URL = &url
		}
		for range rng.IntN(4) {
			rows[i].Tags = append(rows[i].Tags, fmt.Sprint("tag ", rng.IntN(1000)))
		}
	}
	var out bytes.Buffer
	w := pg.NewGenericWriter[turnRow](&out, pg.Compression(&pg.Snappy), pg.DataPageVersion(version), pg.PageBufferSize(20<<10), pg.MaxRowsPerRowGroup(12_000))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// turnWalk is the result of a walk over a chunk, and how many of its pages were decompressed early.
type turnWalk struct {
	sums           *chunkSums
	pages, skipped int
	err            string
	early          int
}

func walkInTurns(t *testing.T, f *File, g, l int, rows []uint32, coded, alone bool) (w turnWalk) {
	c := f.Chunk(g, l)
	defer c.Close()
	if c.alone = alone; rows != nil {
		c.Select(rows)
	}
	if coded {
		c.SkipCoded()
	}
	w.sums = new(chunkSums)
	seen := map[int64]bool{}
	for {
		p, err := c.Next(t.Context())
		for _, e := range c.buf.early {
			if e.of != nil && !seen[e.end] {
				seen[e.end], w.early = true, w.early+1
			}
		}
		if err != nil {
			if w.pages, w.skipped = c.Pages(); !errors.Is(err, io.EOF) {
				w.err = err.Error()
			}
			return w
		}
		if err := checkPage(p, c); err != nil {
			t.Fatal(err)
		}
		w.sums.add(p, c)
	}
}

// A walk that decompresses pages together returns the same pages and errors as one that
// decompresses one at a time, wherever bytes are damaged.
func TestPagesInTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, version := range []int{1, 2} {
		in := inTurnsFile(t, rng, version)
		early, wrong := 0, 0
		for range cases.Count(40, 150, 3000) {
			b := bytes.Clone(in)
			for range rng.IntN(3) {
				b[rng.IntN(len(b)*9/10)] ^= 1 << rng.IntN(8)
			}
			f, err := openBytes(b, "input")
			if err != nil {
				continue
			}
			unmap := func() {}
			if rng.IntN(4) > 0 {
				unmap = mapBytes(t, f, &Mapping{Bytes: b})
			} else {
				f.ReadAtLeast(int64(rng.IntN(100 << 10)))
			}
			for g := range f.RowGroups {
				for l := range f.Leaves {
					var rows []uint32
					if n := int(f.RowGroups[g].Rows); rng.IntN(3) > 0 {
						rows = pick(rng, n, 1+rng.IntN(1<<rng.IntN(12)), 1+rng.IntN(1<<rng.IntN(12)))
					}
					coded := rng.IntN(5) == 0
					one, turns := walkInTurns(t, f, g, l, rows, coded, true), walkInTurns(t, f, g, l, rows, coded, false)
					if one.early > 0 || one.err != turns.err || one.pages != turns.pages || one.skipped != turns.skipped || one.sums.all != turns.sums.all || !slices.Equal(one.sums.rows, turns.sums.rows) {
						t.Fatalf("V%d, row group %d, leaf %d, rows %.10v: %+v one at a time, %+v in turns", version, g, l, rows, one, turns)
					}
					if turns.err == "" && turns.early > turns.pages-turns.skipped {
						t.Fatalf("V%d, row group %d, leaf %d: %d pages early of %d, %d skipped", version, g, l, turns.early, turns.pages, turns.skipped)
					}
					if early += turns.early; turns.err != "" {
						wrong++
					}
				}
			}
			unmap()
		}
		if early < 100 || wrong == 0 {
			t.Errorf("V%d: %d pages were decompressed early, %d walks failed", version, early, wrong)
		}
	}
}

// With a small budget fewer pages are decompressed early, and none waits for others.
func TestPagesInTurnsAreCharged(t *testing.T) {
	in := inTurnsFile(t, rand.New(rand.NewPCG(33, 34)), 1)
	for _, c := range []struct {
		small int64
		early bool
	}{{1 << 10, false}, {60 << 10, true}, {10 << 20, true}} {
		room := NewPageBudget(64 << 20)
		room.small = c.small
		f, err := Open(room, bytes.NewReader(in), int64(len(in)), "input")
		if err != nil {
			t.Fatal(err)
		}
		mapBytes(t, f, &Mapping{Bytes: in})
		chunk := f.Chunk(0, 0)
		early, most := false, int64(0)
		for {
			if _, err := chunk.Next(context.Background()); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for _, e := range chunk.buf.early {
				early = early || e.of != nil
			}
			most = max(most, chunk.buf.own.held)
			if held, size := chunk.buf.own.held, chunk.buf.Size(); held+held/4+64<<10 < size {
				t.Fatalf("%d bytes charged, %d held", held, size)
			}
		}
		if early != c.early || early && most > c.small {
			t.Errorf("small is %d: early pages %t, %d bytes charged", c.small, early, most)
		}
		if chunk.Close(); chunk.buf.own.held != 0 {
			t.Errorf("%d bytes are still charged", chunk.buf.own.held)
		}
		f.Close()
	}
}

// Pages that are decompressed early are charged once, however many the walk reads.
func TestPagesInTurnsAreChargedOnce(t *testing.T) {
	rows := make([]struct{ ID int64 }, 400_000)
	for i := range rows {
		rows[i].ID = int64(i * i % 1_000_003)
	}
	var in bytes.Buffer
	w := pg.NewGenericWriter[struct{ ID int64 }](&in, pg.Compression(&pg.Snappy), pg.PageBufferSize(64<<10))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	room := NewPageBudget(64 << 20)
	room.small = 300 << 10
	f, err := Open(room, bytes.NewReader(in.Bytes()), int64(in.Len()), "input")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapBytes(t, f, &Mapping{Bytes: in.Bytes()})
	if w := walkInTurns(t, f, 0, 0, nil, false, false); w.err != "" || w.pages < 20 || w.early < w.pages/2 {
		t.Errorf("%d of %d pages were decompressed early, %s", w.early, w.pages, w.err)
	}
}

// If the rows of pages are estimated, some pages are decompressed early for nothing. They take no
// memory after the walk.
func TestPagesInTurnsAreForgotten(t *testing.T) {
	rng := rand.New(rand.NewPCG(37, 38))
	for _, version := range []int{1, 2} {
		rows := make([]struct {
			Tags []int64 `parquet:"tags,list"`
		}, 20_000)
		for i := range rows { // more and more
			for range rng.IntN(4 + i/500) {
				rows[i].Tags = append(rows[i].Tags, rng.Int64N(1<<20))
			}
		}
		var in bytes.Buffer
		w := pg.NewGenericWriter[struct {
			Tags []int64 `parquet:"tags,list"`
		}](&in, pg.Compression(&pg.Snappy), pg.PageBufferSize(64<<10), pg.DataPageVersion(version))
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := openBytes(in.Bytes(), "input")
		if err != nil {
			t.Fatal(err)
		}
		mapBytes(t, f, &Mapping{Bytes: in.Bytes()})
		var b Buffers
		early := 0
		for range 200 {
			c := f.ChunkIn(&b, 0, 0)
			c.Select([]uint32{rng.Uint32N(20_000)})
			for err = nil; err == nil; {
				_, err = c.Next(t.Context())
				ends := map[int64]bool{}
				for _, e := range b.early {
					if e.of != nil && ends[e.end] {
						t.Fatalf("V%d: a page is there twice", version)
					}
					ends[e.end] = true
				}
			}
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			early = max(early, len(b.early))
			b.Rest()
		}
		if early == 0 || early > headersAhead {
			t.Errorf("V%d: %d pages are kept", version, early)
		}
	}
}

type partRow struct {
	ID   int64   `parquet:"id"`
	Text string  `parquet:"text,plain"`
	Skew string  `parquet:"skew,plain"` // the first of a page are the longest
	Some *string `parquet:"some,optional,plain"`
	Rare *int64  `parquet:"rare,optional"` // all in the second half of a page
}

// If the last rows of a page are not selected, only its first bytes are decompressed. The rows
// equal those of the whole page, however long the values are.
func TestPartsOfPages(t *testing.T) {
	const rows = 16_000
	rng := rand.New(rand.NewPCG(35, 36))
	all := make([]partRow, rows)
	for i := range all {
		text := fmt.Sprintf("%x %d", rng.Uint64(), rng.IntN(10))
		all[i] = partRow{ID: rng.Int64(), Text: text, Skew: strings.Repeat("x", max(1, 60-i%1600/20)) + text[:4]}
		if rng.IntN(3) > 0 {
			all[i].Some = &text
		}
		if n := rng.Int64(); i > 9000 {
			all[i].Rare = &n
		}
	}
	for _, codec := range []compress.Codec{&pg.Snappy, &pg.Zstd} {
		for version := 1; version <= 2; version++ {
			var out bytes.Buffer
			w := pg.NewGenericWriter[partRow](&out, pg.Compression(codec), pg.DataPageVersion(version), pg.PageBufferSize(100<<10))
			if _, err := w.Write(all); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := openBytes(out.Bytes(), "input")
			if err != nil {
				t.Fatal(err)
			}
			mapBytes(t, f, &Mapping{Bytes: out.Bytes()})
			for l := range f.Leaves {
				whole, err := readChunk(t.Context(), f, 0, l, nil)
				if err != nil {
					t.Fatal(err)
				}
				for range cases.Count(20, 60, 500) {
					some := pick(rng, rows, 1+rng.IntN(1<<(4+rng.IntN(12))), 1+rng.IntN(30))
					if len(some) == 0 {
						some = []uint32{rng.Uint32N(rows)}
					}
					got, err := readChunk(t.Context(), f, 0, l, some)
					if err == nil {
						err = compareRows(whole, got, some)
					}
					if err != nil {
						t.Fatalf("%v, V%d, leaf %d: %v", codec, version, l, err)
					}
				}
			}
			for _, row := range []uint32{0, 1000} {
				c := f.Chunk(0, 1)
				c.Select([]uint32{row})
				if _, err := c.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(c.buf.raw) > 80<<10 {
					t.Errorf("%v, V%d, row %d: %d bytes of the page are decompressed", codec, version, row, len(c.buf.raw))
				}
				c.Close()
			}
		}
	}
}

// A page that was decompressed early is one of its file: another file may have a page of the
// same sizes at the same place.
func TestEarlyPageOfAnotherFile(t *testing.T) {
	one, other, stored := new(File), new(File), make([]byte, 2)
	b := &Buffers{early: []earlyPage{{data: []byte("abc"), of: one, stored: len(stored), end: 50, size: 3}}}
	if b.takeEarly(other, stored, 50, 3, 3) {
		t.Error("another file takes it")
	}
	if !b.takeEarly(one, stored, 50, 3, 3) || string(b.raw) != "abc" {
		t.Errorf("its file gets %q", b.raw)
	}
	if b.takeEarly(one, stored, 50, 3, 3) {
		t.Error("it is taken twice")
	}
}
