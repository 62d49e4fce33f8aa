package output

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// sameClicks compares rows; a list without items may be nil.
func sameClicks(t testing.TB, what string, got, want []roomtest.Click) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
		return
	}
	plain := func(c roomtest.Click) roomtest.Click {
		c.Tags = append([]string{}, c.Tags...)
		c.Raw = append([]byte{}, c.Raw...)
		if c.User != nil {
			u := *c.User
			u.Ports = append([]int32{}, u.Ports...)
			c.User = &u
		}
		return c
	}
	for i := range got {
		if g, w := plain(got[i]), plain(want[i]); !reflect.DeepEqual(g, w) {
			t.Errorf("%s: row %d of the output: got %+v, want %+v", what, i, g, w)
			return
		}
	}
}

// copyTo scans files into an output and returns the result.
func copyTo(ctx context.Context, t testing.TB, opts keyscan.Options, out Destination, names ...string) (*keyscan.Stats, error) {
	t.Helper()
	opts.Mem = sourcetest.Checked(t)
	out.Result = source.ResultExact
	files, err := source.Open(t.Context(), names, source.Opening{OpenOptions: source.OpenOptions{Mem: opts.Mem}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	s, err := keyscan.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.WriteScan(ctx, s, source.Split(files, out.Shard), files, nil)
	return s.Stats, err
}

func ids(n, step int64) []int64 {
	var out []int64
	for id := int64(0); id < n; id += step {
		out = append(out, id)
	}
	return out
}

func keep(rows []roomtest.Click, members []int64) []roomtest.Click {
	in := map[int64]bool{}
	for _, id := range members {
		in[id] = true
	}
	var out []roomtest.Click
	for _, c := range rows {
		if c.ID != nil && in[*c.ID] {
			out = append(out, c)
		}
	}
	return out
}

// However a log is divided into files, row groups and pages, and whatever the number of
// workers, the same rows come out; for one log always the same bytes.
func TestPagesMetamorphic(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	rows := slices.Concat(roomtest.Clicks(rng, 1500, 0), roomtest.Clicks(rng, 1000, 1500), roomtest.Clicks(rng, 1, 2500))
	cuts := []int{0, 1500, 2500, 2501}
	for i, l := range roomtest.Layouts {
		for name, members := range map[string][]int64{"some": ids(1000, 9), "all": ids(1000, 1), "none": nil} {
			want := keep(rows, members)
			dir := t.TempDir()
			var in []string
			for j := range 3 {
				in = append(in, roomtest.WriteClicks(t, filepath.Join(dir, fmt.Sprint(j, ".parquet")), rows[cuts[j]:cuts[j+1]], l))
			}
			what := fmt.Sprint(name, ", layout ", i)
			sums := map[[32]byte]bool{}
			for _, threads := range []int{1, 2, 5} {
				out := filepath.Join(dir, fmt.Sprint("out", threads, ".parquet"))
				stats, err := copyTo(t.Context(), t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", members...))}}, Threads: threads}}, Destination{Output: Output{Name: out}}, in...)
				if err != nil {
					t.Fatal(what, err)
				}
				sourcetest.Equal(t, what+": rows in and out", []int64{stats.RowsIn.Load(), stats.RowsOut.Load()}, []int64{2501, int64(len(want))})
				sums[sha256.Sum256([]byte(sourcetest.Get(t, out)))] = true
			}
			sourcetest.Equal(t, what+": outputs by 1, 2 and 5 threads", len(sums), 1)
			sameClicks(t, what, roomtest.ReadClicks(t, filepath.Join(dir, "out1.parquet")), want)
			checkIndex(t, what, filepath.Join(dir, "out2.parquet"))
		}
	}
}

// checkIndex compares the page index of an output with its pages, using parquet-go.
func checkIndex(t testing.TB, what, path string) {
	t.Helper()
	b := sourcetest.Get(t, path)
	f, err := pq.OpenFile(bytes.NewReader([]byte(b)), int64(len(b)))
	if err != nil {
		t.Fatal(what, err)
	}
	for g, group := range f.RowGroups() {
		for c, chunk := range group.ColumnChunks() {
			index, err := chunk.ColumnIndex()
			if err != nil {
				t.Errorf("%s: row group %d, column %d: %v", what, g, c, err)
				continue
			}
			offsets, err := chunk.OffsetIndex()
			if err != nil {
				t.Fatal(what, err)
			}
			pages, first := chunk.Pages(), int64(0)
			for i := range offsets.NumPages() {
				p, err := pages.ReadPage()
				if err != nil {
					t.Fatal(what, err)
				}
				lo, hi, ok := p.Bounds()
				at := fmt.Sprintf("%s: row group %d, column %d, page %d", what, g, c, i)
				sourcetest.Equal(t, at+": first row", offsets.FirstRowIndex(i), first)
				sourcetest.Equal(t, at+": NULLs", index.NullCount(i), p.NumNulls())
				sourcetest.Equal(t, at+": without a value", index.NullPage(i), p.NumNulls() == p.NumValues())
				if less := chunk.Type().Compare; ok && (less(index.MinValue(i), lo) > 0 || less(index.MaxValue(i), hi) < 0) {
					t.Errorf("%s: bounds %v to %v, want %v to %v", at, index.MinValue(i), index.MaxValue(i), lo, hi)
				}
				first += p.NumRows()
				pq.Release(p)
			}
			sourcetest.Equal(t, what+": rows of the pages", first, group.NumRows())
			if err := pages.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Pages that are copied compressed are copied so whether or not they are written before
// their turn.
func TestPagesSameBytes(t *testing.T) {
	type wide struct {
		ID int64 `parquet:"id,plain"`
		A  int64 `parquet:"a,plain"`
		B  int32 `parquet:"b,plain"`
	}
	rng := rand.New(rand.NewPCG(5, 6))
	rows := make([]wide, 80_000)
	for i := range rows {
		rows[i] = wide{rng.Int64N(100), rng.Int64N(1 << 20), int32(rng.IntN(3))}
	}
	path := filepath.Join(t.TempDir(), "log.parquet")
	if err := pq.WriteFile(path, rows, pq.MaxRowsPerRowGroup(10_000), pq.DataPageVersion(1), pq.Compression(&pq.Snappy)); err != nil {
		t.Fatal(err)
	}
	for _, members := range [][]int64{ids(100, 1), ids(100, 2)} {
		sums := map[[32]byte]int{}
		for i := range 6 {
			out := filepath.Join(t.TempDir(), "out.parquet")
			_, err := copyTo(t.Context(), t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", members...))}}, Threads: 1 + i}}, Destination{Output: Output{Name: out}}, path)
			if err != nil {
				t.Fatal(err)
			}
			sums[sha256.Sum256([]byte(sourcetest.Get(t, out)))]++
		}
		sourcetest.Equal(t, "different outputs", len(sums), 1)
	}
}

// damage overwrites bytes in the middle of a column chunk.
func damage(t testing.TB, path string, group, leaf int) {
	t.Helper()
	b := []byte(sourcetest.Get(t, path))
	f, err := parquet.Open(nil, bytes.NewReader(b), int64(len(b)), path)
	if err != nil {
		t.Fatal(err)
	}
	md := f.Metadata.RowGroups[group].Columns[leaf].MetaData
	at := md.DataPageOffset + md.TotalCompressedSize*2/3
	for i := range int64(8) {
		b[at+i] ^= 0x5a
	}
	sourcetest.Put(t, path, string(b))
}

// A page that cannot be decoded is an error that names its place. No single file
// becomes visible, and in a directory no _SUCCESS.
func TestPagesDamaged(t *testing.T) {
	rows := roomtest.Clicks(rand.New(rand.NewPCG(7, 8)), 4000, 0)
	opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", ids(1000, 2)...))}}, Threads: 3}}
	for leaf, column := range map[int]string{0: "id", 3: "url", 7: "ports"} {
		dir := t.TempDir()
		in := roomtest.WriteClicks(t, filepath.Join(dir, "log.parquet"), rows, roomtest.Layout{Group: 500, Page: 800, Version: 1, Codec: pq.Compression(&pq.Zstd)})
		damage(t, in, 5, leaf)
		out := filepath.Join(dir, "out.parquet")
		_, err := copyTo(t.Context(), t, opts, Destination{Output: Output{Name: out}}, in)
		sourcetest.Says(t, column, err, fault.ErrCorrupt, "log.parquet", "row group 6", column, "page ")
		_, err = copyTo(t.Context(), t, opts, Destination{Output: Output{Name: filepath.Join(dir, "dir") + "/"}}, in)
		sourcetest.Says(t, column+" in a directory", err, fault.ErrCorrupt, "row group 6")
		sourcetest.Equal(t, "files left behind", sourcetest.Tree(t, dir), []string{"log.parquet"})
	}
}

// cancelAfter cancels a scan when the given number of rows has been examined.
func cancelAfter(opts keyscan.Options, rows int64, cancel context.CancelCauseFunc, cause error) keyscan.Options {
	seen := make(chan int64, 1)
	seen <- 0
	opts.Progress = func(n int64) {
		total := <-seen + n
		seen <- total
		if total >= rows {
			cancel(cause)
		}
	}
	return opts
}

// A cancelled scan ends soon, returns the cause, and leaves nothing.
func TestPagesCancelled(t *testing.T) {
	dir := t.TempDir()
	in := roomtest.WriteClicks(t, filepath.Join(dir, "log.parquet"), roomtest.Clicks(rand.New(rand.NewPCG(9, 1)), 10_000, 0), roomtest.Layout{Group: 400, Page: 2000, Version: 1, Codec: pq.Compression(&pq.Snappy)})
	why := errors.New("enough")
	for _, after := range []int64{1, 3000, 7000} {
		for _, name := range []string{"out.parquet", "dir/"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			opts := cancelAfter(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", ids(1000, 1)...))}}, Threads: 3}}, after, cancel, why)
			began := time.Now()
			_, err := copyTo(ctx, t, opts, Destination{Output: Output{Name: filepath.Join(dir, name)}}, in)
			cancel(nil)
			if !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled after %d rows: %v", after, err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("cancelled after %d rows: it took %v to end", after, took)
			}
			sourcetest.Equal(t, "files left behind", sourcetest.Tree(t, dir), []string{"log.parquet"})
			if err := os.RemoveAll(filepath.Join(dir, "dir")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Shards, counts and directories together give the whole.
func TestPagesForms(t *testing.T) {
	rows := roomtest.Clicks(rand.New(rand.NewPCG(2, 2)), 5000, 0)
	dir := t.TempDir()
	in := roomtest.WriteClicks(t, filepath.Join(dir, "log.parquet"), rows, roomtest.Layout{Group: 600, Page: 700, Version: 1, Codec: pq.Compression(&pq.Snappy)})
	members := ids(1000, 5)
	opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", members...))}}, Threads: 2}}
	want := keep(rows, members)
	var got []roomtest.Click
	for i := range 4 {
		out := filepath.Join(dir, fmt.Sprint("shard", i, ".parquet"))
		if _, err := copyTo(t.Context(), t, opts, Destination{Output: Output{Name: out, Shard: dataset.Shard{Index: uint32(i), Of: 4}}}, in); err != nil {
			t.Fatal(err)
		}
		got = append(got, roomtest.ReadClicks(t, out)...)
	}
	slices.SortFunc(got, func(a, b roomtest.Click) int { return int(a.Row - b.Row) })
	sameClicks(t, "shards", got, want)
	if _, err := copyTo(t.Context(), t, opts, Destination{Output: Output{Name: filepath.Join(dir, "out") + "/"}}, in); err != nil {
		t.Fatal(err)
	}
	sameClicks(t, "directory", roomtest.ReadClicks(t, filepath.Join(dir, "out", "log.parquet")), want)
	files := roomtest.Open(t, source.Opening{}, in)
	s, err := keyscan.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := Count(t.Context(), s, source.Split(files, dataset.Shard{})); err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "counted", s.Stats.RowsOut.Load(), int64(len(want)))
}
