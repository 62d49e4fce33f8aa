package output

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// bundleInput is a file of a log whose outputs share files.
type bundleInput struct {
	rel    string
	rows   []roomtest.Click
	bundle int // number of those with which it may share files
}

// bundleLog writes a log of many small files in three directories. In d=1 one has
// another codec and one another schema; d=2 has larger ones, with row groups.
func bundleLog(t *testing.T, dir string, ext string) (inputs []bundleInput) {
	rng := rand.New(rand.NewPCG(11, 12))
	zstd, snappy := roomtest.Layouts[1], roomtest.Layouts[0]
	at, bundle := 0, 0
	add := func(rel string, n int, l roomtest.Layout) {
		in := bundleInput{rel: rel + ext, rows: roomtest.Clicks(rng, n, at), bundle: bundle}
		at += n
		inputs = append(inputs, in)
		name := filepath.Join(dir, filepath.FromSlash(in.rel))
		if ext == ".parquet" {
			roomtest.WriteClicks(t, name, in.rows, l)
			return
		}
		var nums []int64
		for _, c := range in.rows {
			if c.ID == nil {
				nums = append(nums, -1)
			} else {
				nums = append(nums, *c.ID)
			}
		}
		sourcetest.Write(t, name, 50, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: nums}, sourcetest.Col{Name: "text", Values: sourcetest.Numbers(n, func(i int) string { return strings.Repeat("x", i%7) })}))
	}
	for i := range 12 {
		l := snappy
		if i == 5 && ext == ".parquet" {
			bundle++
			l = zstd
		}
		add(fmt.Sprintf("d=1/%02d", i), 1+rng.IntN(100), l)
		if i == 5 && ext == ".parquet" {
			bundle++
		}
		if i == 8 {
			bundle++
			sourcetest.Write(t, filepath.Join(dir, "d=1", "08b"+ext), 2, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{0, 3, 5}}))
			inputs = append(inputs, bundleInput{rel: "d=1/08b" + ext, rows: make([]roomtest.Click, 3), bundle: bundle})
			bundle++
		}
	}
	bundle++
	for i := range 3 {
		add(fmt.Sprintf("d=2/%d", i), 500, roomtest.Layout{Group: 150, Page: 2000, Version: 1 + i%2, Codec: pq.Compression(&pq.Snappy)})
	}
	bundle++
	add("d=3/only", 10, snappy)
	return inputs
}

// checkBundles checks the files of a directory against the inputs.
func checkBundles(t *testing.T, what, dir string, w dataset.Written, inputs []bundleInput, target int64) {
	t.Helper()
	files := map[string]dataset.WrittenFile{}
	var names, found []string
	var rows int64
	for _, f := range w.Files {
		files[f.Name], names, rows = f, append(names, f.Name), rows+f.Rows
	}
	for i, in := range w.Inputs {
		sourcetest.Equal(t, what+": input", in.Rel, inputs[i].rel)
		sourcetest.Equal(t, what+": rows of "+in.Rel, in.RowsIn, int64(len(inputs[i].rows)))
		if rows -= in.RowsOut; (in.RowsOut > 0) != (len(in.Files) > 0) || in.RowsKept != in.RowsOut {
			t.Errorf("%s: %s: %d rows, %d log rows, in %q", what, in.Rel, in.RowsOut, in.RowsKept, in.Files)
		}
		for _, name := range in.Files {
			if slices.Contains(found, name) {
				continue
			}
			found = append(found, name)
			if stem := func(n string) string { return strings.TrimSuffix(n, path.Ext(n)) }; stem(name) != stem(in.Rel) {
				t.Errorf("%s: a file of %s is %s", what, in.Rel, name)
			}
			last := lastOf(w, name)
			if inputs[last].bundle != inputs[i].bundle {
				t.Errorf("%s: %s has rows of %s and %s", what, name, inputs[i].rel, inputs[last].rel)
			}
			next := last + 1
			for next < len(inputs) && w.Inputs[next].RowsOut == 0 {
				next++
			}
			if target > 0 && next < len(inputs) && inputs[next].bundle == inputs[i].bundle && files[name].Bytes < target {
				t.Errorf("%s: %s has %d bytes and is followed by another, want %d", what, name, files[name].Bytes, target)
			}
		}
	}
	sourcetest.Equal(t, what+": rows of files that no input has", rows, 0)
	sourcetest.Equal(t, what+": files, in order of inputs", names, found)
	data := slices.DeleteFunc(sourcetest.Tree(t, dir), func(n string) bool { return strings.HasPrefix(path.Base(n), "_") })
	sourcetest.Equal(t, what+": files on disk", data, slices.Sorted(slices.Values(names)))
}

// lastOf returns the index of the last input with rows in a file.
func lastOf(w dataset.Written, name string) int {
	for i := len(w.Inputs) - 1; i >= 0; i-- {
		if slices.Contains(w.Inputs[i].Files, name) {
			return i
		}
	}
	return -1
}

// Inputs share files of the target size: the same ones whatever the workers and the
// memory, with the rows in input order, from Parquet as pages and from Arrow as records.
func TestBundles(t *testing.T) {
	// Unless all run, half of the combinations; any three of the four meet in all ways.
	for i, ext := range []string{".parquet", ".arrow"} {
		in := t.TempDir()
		inputs := bundleLog(t, in, ext)
		for k, kept := range []int64{1, 200, 2000} { // 2000: no row
			for l, target := range []int64{0, 1, 30_000, 1 << 40} {
				for m, format := range []dataset.Format{dataset.Parquet, dataset.ArrowFile} {
					if (i+k+l+m)%2 != 0 && !cases.All() {
						continue
					}
					bundled(t, in, inputs, ext, kept, target, format)
				}
			}
		}
	}
}

func bundled(t *testing.T, in string, inputs []bundleInput, ext string, kept, target int64, format dataset.Format) {
	t.Helper()
	members := ids(1000, kept)
	if kept == 2000 {
		members = []int64{1 << 40}
	}
	var first string
	for i, way := range []struct {
		threads  int
		inFlight int64
		memory   int64
	}{{1, 0, 0}, {3, 0, 0}, {2, 8 << 20, 1}} {
		what := fmt.Sprintf("%s to %s, every %d., target %d, %d threads, %d bytes in flight", ext, format, kept, target, way.threads, way.inFlight)
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Mem: sourcetest.Checked(t), Hive: dataset.HiveOff}, InFlight: way.inFlight}, in)
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", members...))}}, Threads: way.threads, Mem: sourcetest.Checked(t)}})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir() + "/out/"
		out := Destination{Output: Output{Name: dir, Format: format, TargetSize: target, Memory: way.memory}, Result: source.ResultExact, Run: &Run{Options: []string{"x"}, Log: files}}
		w, err := out.WriteScan(t.Context(), s, source.Split(files, dataset.Shard{}), files, nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		checkBundles(t, what, dir, w, inputs, target)
		all := ""
		for _, f := range w.Files {
			all += fmt.Sprint(f.Name, " ", f.Rows, "\n")
			switch {
			case format == dataset.Parquet:
				all += sourcetest.Get(t, dir+f.Name)
			case ext == ".arrow": // in batches that depend on the memory
				rows, _ := sourcetest.Contents(t, dir+f.Name)
				sourcetest.Equal(t, what+": rows of "+f.Name, int64(len(rows)), f.Rows)
				all += strings.Join(rows, "\n")
			}
		}
		if i == 0 {
			first = all
		}
		sourcetest.Equal(t, what+": the same files", all == first, true)
		if ext == ".parquet" && format == dataset.Parquet {
			bundledRows(t, what, dir, w, inputs, members)
		}
	}
}

// bundledRows compares the rows of all files of a directory with those of the inputs.
func bundledRows(t *testing.T, what, dir string, w dataset.Written, inputs []bundleInput, members []int64) {
	t.Helper()
	var want, got []roomtest.Click
	for _, in := range inputs {
		want = append(want, keep(in.rows, members)...)
	}
	for _, f := range w.Files {
		if !strings.Contains(f.Name, "08b") {
			got = append(got, roomtest.ReadClicks(t, dir+f.Name)...)
		}
	}
	sameClicks(t, what, got, want)
}

// Row groups of some size are copied as they are stored into files that inputs share.
func TestBundlesCopyChunks(t *testing.T) {
	in := t.TempDir()
	const rows = 400_000
	for i := range 3 {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		values := sourcetest.Numbers(rows, func(int) int64 { return rng.Int64() })
		sourcetest.Write(t, filepath.Join(in, fmt.Sprint(i, ".parquet")), rows/2, sourcetest.Record(t, sourcetest.Checked(t),
			sourcetest.Col{Name: "id", Values: sourcetest.Numbers(rows, func(i int) int64 { return int64(i % 7) })}, sourcetest.Col{Name: "a", Values: values}, sourcetest.Col{Name: "b", Values: values}, sourcetest.Col{Name: "c", Values: values}, sourcetest.Col{Name: "d", Values: values}, sourcetest.Col{Name: "e", Values: values}, sourcetest.Col{Name: "f", Values: values}))
	}
	files := roomtest.Open(t, source.Opening{}, in)
	s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", ids(7, 1)...))}}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/out/"
	w, err := Destination{Output: Output{Name: dir, TargetSize: 20 << 20}, Result: source.ResultExact}.WriteScan(t.Context(), s, source.Split(files, dataset.Shard{}), files, nil)
	if err != nil || len(w.Files) != 2 && len(w.Files) != 3 || w.Rows != 3*rows {
		t.Fatalf("%+v, %v", w.Files, err)
	}
	if s.Stats.PagesSkipped.Load() == 0 {
		t.Error("every page was decompressed")
	}
	copied := false
	for _, f := range w.Files {
		b, err := os.ReadFile(dir + f.Name)
		if err != nil {
			t.Fatal(err)
		}
		stored := sourcetest.Get(t, filepath.Join(in, f.Name))
		copied = copied || strings.Contains(string(b), stored[100:4096])
	}
	sourcetest.Equal(t, "some bytes of the input are in the output", copied, true)
}
