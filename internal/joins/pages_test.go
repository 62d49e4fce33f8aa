package joins_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

var pairTypes = []join.Type{join.Inner, join.Left, join.Right, join.Full}

// writtenRows joins into an output and reads it back. When it returns, all memory must
// have been released, and TempDir must be empty. path is that of the first log file.
func writtenRows(t *testing.T, ids, logs []*partition.File, opts join.Options, name string) (got answer, path string, err error) {
	t.Helper()
	opts.Mem, opts.TempDir = checked(t), t.TempDir()
	j, err := join.New(ids, logs, opts)
	if err != nil {
		return got, "", err
	}
	dir := t.TempDir()
	done, err := j.Write(t.Context(), partition.Output{Name: outputName(dir, name)})
	if left, e := os.ReadDir(opts.TempDir); e != nil || len(left) > 0 {
		t.Errorf("%d files are left in the temporary directory: %v", len(left), e)
	}
	if err != nil {
		return got, "", err
	}
	for _, f := range done.Files {
		file := f.Name
		if strings.HasSuffix(name, "/") || !filepath.IsAbs(file) {
			file = filepath.Join(dir, name, f.Name)
		}
		rec, err := whole(t, open(t, partition.OpenOptions{}, file)[0])
		if err != nil {
			t.Fatal(err)
		}
		got.names = names(rec.Schema())
		for i := range int(rec.NumRows()) {
			got.rows = append(got.rows, showRow(t, rec, i))
		}
	}
	got.report = j.Report()
	if got.report.RowsOut != int64(len(got.rows)) {
		t.Errorf("the report says %d rows, %d are written", got.report.RowsOut, len(got.rows))
	}
	path, _ = room(j).PathOf((*source.File)(logs[0]))
	return got, path, nil
}

// outputName returns the name of an output in a directory; with a slash at the end it
// is a directory.
func outputName(dir, name string) string {
	if strings.HasSuffix(name, "/") {
		return filepath.Join(dir, name) + "/"
	}
	return filepath.Join(dir, name)
}

// TestPagesAreRecords: what Write copies from page to page is what Run yields as records:
// columns of many types, of either side, with duplicates and NULLs in the key, in all
// types of joins, by all strategies, into files and directories.
func TestPagesAreRecords(t *testing.T) {
	idDir, logDir := t.TempDir(), t.TempDir()
	for i := range 3 {
		writeFile(t, filepath.Join(idDir, fmt.Sprint(i, ".parquet")), payload(t, 5*i, i, i+1, i+2, 100+i, 2, 7, 7), 2, dataset.Parquet)
		writeFile(t, filepath.Join(logDir, fmt.Sprint(i, ".parquet")), payload(t, 3*i, 2, i, 9, i+1, 50, 7, i), 3, dataset.Parquet)
	}
	text := filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(text, []byte("k,w\n2,two\n7,seven\n,none\n1,one\n7,\n200,more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := open(t, partition.OpenOptions{}, logDir)
	for form, ids := range map[string][]*partition.File{"parquet": open(t, partition.OpenOptions{}, idDir), "csv": open(t, partition.OpenOptions{Text: true}, text)} {
		chosen := [][]string{nil, {"log.l", "k"}, {"ids.w"}, {"log.st"}}
		if form == "parquet" {
			chosen = [][]string{nil, {"ids.st", "k", "log.d"}, {"ids.l", "ids.dec"}, {"log.m"}}
		}
		// Unless all run: each type by each strategy with half of the columns, or one of
		// them, in turn.
		every := cases.Count(4, 2, 1)
		for i, typ := range pairTypes {
			for k, columns := range chosen {
				for s, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
					if (i+k+s)%every != 0 {
						continue
					}
					opts := join.Options{On: "k", Type: typ, Strategy: strategy, Columns: columns, Threads: 1 + s}
					want, err := run(t, ids, logs, opts)
					if err != nil {
						t.Fatalf("%s %s %s: %v", form, typ, strategy, err)
					}
					for _, name := range []string{"out.parquet", "out/"} {
						got, path, err := writtenRows(t, ids, logs, opts, name)
						what := fmt.Sprintf("%s IDs, %s join by %s, columns %q, into %s", form, typ, strategy, columns, name)
						switch {
						case err != nil:
							t.Errorf("%s: %v", what, err)
						case path != "engine":
							t.Errorf("%s: path %s", what, path)
						case got.names != want.names || !slices.Equal(got.rows, want.rows):
							t.Errorf("%s: columns %s, want %s; %v", what, got.names, want.names, unlike(got.rows, want.rows))
						}
						a, b := got.report, want.report
						if a.IDsMatched != b.IDsMatched || a.IDsTotal != b.IDsTotal || a.RowsMatched != b.RowsMatched || a.RowsIn != b.RowsIn {
							t.Errorf("%s: report\n%+v\nwant\n%+v", what, a, b)
						}
					}
				}
			}
		}
	}
}

// TestPagesInPortions: with IDs of one row group that exceed the memory, pages have the
// rows that records have, and in left and full joins each log row without an ID once.
func TestPagesInPortions(t *testing.T) {
	const n = 12_000
	var keys, pays []string
	for i := range n {
		keys, pays = append(keys, fmt.Sprint(i*7%n)), append(pays, fmt.Sprintf("payload of ID %d", i))
	}
	ids := files(t, 2, 3, ints("k", append(keys, "NULL", "3")...), texts("w", append(pays, "none", "again")...))
	logs := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, n/2, n+n/2), numbers("row", arrow.PrimitiveTypes.Int64, 0, n))
	for _, typ := range pairTypes {
		want, err := run(t, ids, logs, join.Options{On: "k", Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		reordered := 0
		for memory := int64(64 << 10); memory <= 4<<20; memory *= int64(cases.Count(4, 2, 2)) {
			got, _, err := writtenRows(t, ids, logs, join.Options{On: "k", Type: typ, Strategy: join.Shuffle, Memory: memory, Threads: 2}, "out.parquet")
			if errors.Is(err, fault.ErrMemory) && memory < 1<<20 {
				continue
			}
			if err != nil {
				t.Fatalf("%s join with %d bytes: %v", typ, memory, err)
			}
			if slices.Equal(got.rows, want.rows) {
				continue
			}
			if err := unlike(got.rows, want.rows); !errors.As(err, new(orderError)) {
				t.Errorf("%s join with %d bytes: %v", typ, memory, err)
			}
			reordered++
		}
		if reordered == 0 {
			t.Errorf("%s join: never in portions", typ)
		}
	}
}

// TestPathOf: which answers are made of pages, and why others are not.
func TestPathOf(t *testing.T) {
	k := numbers("k", arrow.PrimitiveTypes.Int64, 0, 9)
	ids := files(t, 1, 1, k, texts("w", strings.Fields("a b c d e f g h i")...))
	record := table(t, k)
	arrows := open(t, partition.OpenOptions{}, writeTable(t, record, 1, 1, dataset.ArrowFile))
	parquets := files(t, 2, 1, k)
	for _, c := range []struct {
		name string
		logs []*partition.File
		out  string
		path string
		why  string
	}{
		{"pages", parquets, "out.parquet", "engine", "pages are copied"},
		{"a directory", parquets, "out/", "engine", "pages are copied"},
		{"an Arrow output", parquets, "out.arrow", "generic", "since the output is not Parquet"},
		{"an Arrow log", arrows, "out.parquet", "generic", "since the log is not all Parquet"},
		{"one Arrow log", slices.Concat(parquets, arrows), "out.parquet", "generic", "since the log is not all Parquet"},
	} {
		for _, typ := range pairTypes {
			j, err := join.New(ids, c.logs, join.Options{On: "k", Type: typ})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := j.Write(t.Context(), partition.Output{Name: outputName(t.TempDir(), c.out)}); err != nil {
				t.Errorf("%s, %s: %v", c.name, typ, err)
				continue
			}
			if path, why := room(j).PathOf((*source.File)(c.logs[0])); path != c.path || !strings.Contains(why, c.why) {
				t.Errorf("%s, %s: %s, %s; want %s, %s", c.name, typ, path, why, c.path, c.why)
			}
		}
	}
}

// TestWhyNotWhole: PathOf names the columns whose chunks are not copied whole, and why.
func TestWhyNotWhole(t *testing.T) {
	k, v := numbers("k", arrow.PrimitiveTypes.Int64, 0, 9), numbers("v", arrow.PrimitiveTypes.Int64, 5, 14)
	ids := files(t, 1, 1, k, texts("w", strings.Fields("a b c d e f g h i")...))
	rec := table(t, k, v)
	required := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	one := open(t, partition.OpenOptions{}, writeTable(t, array.NewRecord(required, rec.Columns(), rec.NumRows()), 1, 1, dataset.Parquet))
	const all = "pages are copied, and whole chunks where no row is dropped or repeated"
	for _, c := range []struct {
		logs       []*partition.File
		typ        join.Type
		out, codec string
		want       string
	}{
		{one, join.Semi, "out.parquet", "", all},
		{one, join.Left, "out.parquet", "", all},
		{one, join.Left, "out.parquet", "snappy", all},
		{one, join.Full, "out.parquet", "", all + "; no whole chunk of k: the output's column is optional"},
		{one, join.Anti, "out.parquet", "brotli", "pages are copied, but no whole chunk: compressed with SNAPPY, the output with BROTLI"},
		{one, join.Left, "out.parquet", "zstd:9", "pages are copied, but no whole chunk: compressed with SNAPPY, the output with ZSTD"},
		{one, join.Full, "out/", "gzip", "pages are copied, but no whole chunk: k: the output's column is optional; v: compressed with SNAPPY, the output with GZIP"},
		{files(t, 2, 1, k, v), join.Left, "out.parquet", "", "pages are copied, but no whole chunk: row groups below 8 MiB are merged in an output of several files"},
		{files(t, 2, 1, k, v), join.Left, "out/", "", all},
		{files(t, 1, 3, k, v), join.Left, "out.parquet", "", "pages are copied, but no whole chunk: row groups below 16 KiB are merged"},
	} {
		j, err := join.New(ids, c.logs, join.Options{On: "k", Type: c.typ})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Write(t.Context(), partition.Output{Name: outputName(t.TempDir(), c.out), Compression: c.codec}); err != nil {
			t.Fatal(err)
		}
		if path, why := room(j).PathOf((*source.File)(c.logs[0])); path != "engine" || why != c.want {
			t.Errorf("%s join into %s, %s: %s, %s; want %s", c.typ, c.out, c.codec, path, why, c.want)
		}
	}
}

// TestStoppedPages: a join that is cancelled while it copies pages, at any time, ends
// with an error that says so, publishes nothing and releases everything.
func TestStoppedPages(t *testing.T) {
	errStop := errors.New("enough")
	ids := files(t, 2, 3, numbers("k", arrow.PrimitiveTypes.Int64, 0, 300), texts("w", slices.Repeat([]string{"pay"}, 300)...))
	logs := files(t, 3, 3, numbers("k", arrow.PrimitiveTypes.Int64, 100, 400))
	for _, typ := range pairTypes {
		for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Shuffle} {
			for _, at := range []int64{0, 1, 150, 299, 1 << 20} { // rows before the end; the last: not at all
				ctx, cancel := context.WithCancelCause(t.Context())
				seen := make(chan int64, 1)
				seen <- 0
				j, err := join.New(ids, logs, join.Options{
					On: "k", Type: typ, Strategy: strategy, Threads: 2, Mem: checked(t), TempDir: t.TempDir(),
					Progress: func(rows int64) {
						n := <-seen + rows
						if seen <- n; n > at {
							cancel(errStop)
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				_, err = j.Write(ctx, partition.Output{Name: filepath.Join(dir, "out.parquet")})
				cancel(nil)
				left, _ := os.ReadDir(dir)
				done, stopped := err == nil, errors.Is(err, errStop) || errors.Is(err, context.Canceled)
				if done == stopped || done != (len(left) == 1) || at == 1<<20 && !done {
					t.Errorf("%s join by %s, cancelled after %d rows: %v, and %d files", typ, strategy, at, err, len(left))
				}
			}
		}
	}
}

// What goes to an io.Writer as Parquet is the file that goes to a storage, and a writer
// that fails ends the join.
func TestPagesToAWriter(t *testing.T) {
	k, v := numbers("k", arrow.PrimitiveTypes.Int64, 0, 900), numbers("v", arrow.PrimitiveTypes.Int64, 5, 905)
	ids := files(t, 2, 2, numbers("k", arrow.PrimitiveTypes.Int64, 100, 1100), numbers("w", arrow.PrimitiveTypes.Int64, 0, 1000))
	for _, logs := range [][]*partition.File{files(t, 3, 2, k, v), open(t, partition.OpenOptions{}, writeTable(t, table(t, k, v), 2, 2, dataset.ArrowFile))} {
		for _, typ := range types {
			write := func(out partition.Output) error {
				j, err := join.New(ids, logs, join.Options{On: "k", Type: typ})
				if err != nil {
					t.Fatal(err)
				}
				w, err := j.Write(t.Context(), out)
				if err == nil && (w.Rows != j.Report().RowsOut || w.Rows == 0) {
					t.Errorf("%s: %d rows are written, the report says %d", typ, w.Rows, j.Report().RowsOut)
				}
				return err
			}
			store := storage.Memory()
			var stream bytes.Buffer
			if err := errors.Join(write(partition.Output{Name: "x.parquet", Store: store}), write(partition.Output{Name: "-", Stdout: &stream, Format: dataset.Parquet})); err != nil {
				t.Fatal(err)
			}
			r, err := store.Open(t.Context(), storage.Object{Name: "x.parquet"})
			if err != nil {
				t.Fatal(err)
			}
			want, err := io.ReadAll(io.NewSectionReader(r, 0, r.Object().Size))
			if err != nil || !bytes.Equal(stream.Bytes(), want) {
				t.Errorf("%s: %d bytes, want the %d of the file (%v)", typ, stream.Len(), len(want), err)
			}
			for _, after := range []int64{0, 3, 200} {
				if err := write(partition.Output{Name: "-", Stdout: &full{after}, Format: dataset.Parquet}); !errors.Is(err, errFull) {
					t.Errorf("%s: after %d bytes: %v, want %v", typ, after, err, errFull)
				}
			}
		}
	}
}

var errFull = errors.New("full")

// full takes some bytes.
type full struct{ left int64 }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= int64(len(b)); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}
