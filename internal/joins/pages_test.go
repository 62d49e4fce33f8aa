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
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

var pairTypes = []join.Type{join.Inner, join.Left, join.Right, join.Full}

// writtenRows joins into an output and reads it back; "-" is a stream. When it returns,
// all memory must have been released, and TempDir must be empty. path is that of the
// first log file.
func writtenRows(t *testing.T, ids, logs []*partition.File, opts join.Options, name string) (got answer, path string, err error) {
	t.Helper()
	opts.Mem, opts.TempDir = checked(t), t.TempDir()
	j, err := join.New(ids, logs, opts)
	if err != nil {
		return got, "", err
	}
	dir := t.TempDir()
	var stream bytes.Buffer
	out := partition.Output{Name: "-", Stdout: &stream}
	if name != "-" {
		out = partition.Output{Name: outputName(dir, strings.TrimPrefix(name, "arrow:"))}
	}
	if strings.HasPrefix(name, "arrow:") {
		out.Format = dataset.ArrowFile
	}
	done, err := j.Write(t.Context(), out)
	if left, e := os.ReadDir(opts.TempDir); e != nil || len(left) > 0 {
		t.Errorf("%d files are left in the temporary directory: %v", len(left), e)
	}
	if err != nil {
		return got, "", err
	}
	add := func(f *partition.File) {
		rec, err := whole(t, f)
		if err != nil {
			t.Fatal(err)
		}
		got.names, got.schema = names(rec.Schema()), rec.Schema()
		for i := range int(rec.NumRows()) {
			got.rows = append(got.rows, showRow(t, rec, i))
		}
	}
	for _, f := range done.Files {
		file := f.Name
		if strings.HasSuffix(out.Name, "/") || !filepath.IsAbs(file) {
			file = filepath.Join(out.Name, f.Name)
		}
		add(open(t, partition.OpenOptions{}, file)[0])
	}
	if name == "-" {
		r, err := ipc.NewReader(bytes.NewReader(stream.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		got.schema = r.Schema()
		if got.names, got.rows, err = stored(t, stream.Bytes(), dataset.ArrowStream, false); err != nil {
			t.Fatal(err)
		}
	}
	got.report = j.Report()
	if got.report.RowsOut != int64(len(got.rows)) {
		t.Errorf("the report says %d rows, %d are written", got.report.RowsOut, len(got.rows))
	}
	path, _ = room(j).PathOf((*source.File)(logs[0]))
	return got, path, nil
}

// outputs are the ways to get an answer: Run, and names for writtenRows.
var outputs = []string{"Run", "out.parquet", "out.arrow", "out/", "-", "arrow:out/"}

// joined joins in one of the ways. From Parquet to Parquet pages must be copied.
func joined(t *testing.T, ids, logs []*partition.File, opts join.Options, name string) (answer, error) {
	t.Helper()
	if name == "Run" {
		opts.TempDir = t.TempDir()
		return run(t, ids, logs, opts)
	}
	got, path, err := writtenRows(t, ids, logs, opts, name)
	if err == nil && logs[0].Format() == dataset.Parquet && (name == "out.parquet" || name == "out/") && path != "engine" {
		err = fmt.Errorf("path %s", path)
	}
	return got, err
}

// outputName returns the name of an output in a directory; with a slash at the end it
// is a directory.
func outputName(dir, name string) string {
	if strings.HasSuffix(name, "/") {
		return filepath.Join(dir, name) + "/"
	}
	return filepath.Join(dir, name)
}

// TestOutputs: Run, and Write into each kind of output, have the rows, columns and
// figures of the nested loop: columns of many types, of either side, from Parquet and
// Arrow, with duplicates and NULLs in the key, in all types of joins, by all strategies.
func TestOutputs(t *testing.T) {
	textIDs := table(t, ints("k", "2", "7", "NULL", "1", "7", "200"), texts("w", "two", "seven", "none", "one", "NULL", "more"))
	text := put(t, filepath.Join(t.TempDir(), "ids.csv"), "k,w\n2,two\n7,seven\n,none\n1,one\n7,\n200,more\n")
	type side struct {
		rec   arrow.Record
		files []*partition.File
	}
	// Each file has dictionaries of its own.
	stored := func(format dataset.Format, rows int, table func(i int) arrow.Record) side {
		dir := t.TempDir()
		var recs []arrow.Record
		for i := range 3 {
			recs = append(recs, table(i))
			ending := map[dataset.Format]string{dataset.Parquet: ".parquet", dataset.ArrowFile: ".arrow"}[format]
			writeFile(t, filepath.Join(dir, fmt.Sprint(i, ending)), recs[i], rows, format)
		}
		return side{together(t, recs), open(t, partition.OpenOptions{}, dir)}
	}
	logOf := func(i int) arrow.Record { return payload(t, 3*i, 2, i, 9, i+1, 50, 7, i) }
	idsOf := func(i int) arrow.Record { return payload(t, 5*i, i, i+1, i+2, 100+i, 2, 7, 7) }
	logs := []side{stored(dataset.Parquet, 3, logOf), stored(dataset.ArrowFile, 3, logOf)}
	// Unless all run, each type by each strategy has some of the columns, logs and outputs
	// in turn: every is no divisor of their number.
	every, n := cases.Count(67, 29, 5), 0
	for _, ids := range []side{stored(dataset.Parquet, 2, idsOf), stored(dataset.ArrowFile, 2, idsOf), {textIDs, open(t, partition.OpenOptions{Text: true}, text)}} {
		chosen := [][]string{nil, {"ids.st", "k", "log.d"}, {"ids.l", "ids.dec"}, {"log.m"}}
		if ids.rec == textIDs {
			chosen = [][]string{nil, {"log.l", "k"}, {"ids.w"}, {"log.st"}}
		}
		for _, typ := range types {
			rows := nestedLoop(t, logs[0].rec, ids.rec, paths([]string{"k"}), paths([]string{"k"}), "", typ)
			for _, columns := range chosen {
				if (typ == join.Semi || typ == join.Anti) && slices.ContainsFunc(columns, func(c string) bool { return strings.HasPrefix(c, "ids.") }) {
					continue
				}
				want := rows.named(columns)
				for s, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
					for _, log := range logs {
						for _, name := range outputs {
							if n++; n%every != 0 {
								continue
							}
							got, err := joined(t, ids.files, log.files, join.Options{On: "k", Type: typ, Strategy: strategy, Columns: columns, Threads: 1 + s}, name)
							if err == nil {
								err = want.unlike(got)
							}
							if err != nil {
								t.Errorf("%s IDs, %s log, %s join by %s, columns %q, %s: %v", ids.files[0].Format(), log.files[0].Format(), typ, strategy, columns, name, err)
							}
						}
					}
				}
			}
		}
	}
}

// together makes one record of several, whose dictionaries may differ.
func together(t *testing.T, recs []arrow.Record) arrow.Record {
	t.Helper()
	var cols []arrow.Array
	rows := int64(0)
	for i := range recs[0].Columns() {
		var parts []arrow.Array
		for _, r := range recs {
			parts = append(parts, r.Column(i))
		}
		a, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Release()
		cols = append(cols, a)
		rows = int64(a.Len())
	}
	rec := array.NewRecord(recs[0].Schema(), cols, rows)
	t.Cleanup(rec.Release)
	return rec
}

// TestPortions: with IDs of one row group that exceed the memory, every output has the
// rows and figures of the nested loop, and in left and full joins each log row without an
// ID once. A row's pairs come portion by portion; semi joins keep the log's order.
func TestPortions(t *testing.T) {
	const n = 12_000
	var keys, pays []string
	for i := range n {
		keys, pays = append(keys, fmt.Sprint(i*7%n)), append(pays, fmt.Sprintf("payload of ID %d", i))
	}
	idTable := table(t, ints("k", append(keys, "NULL", "3")...), texts("w", append(pays, "none", "again")...))
	logTable := table(t, numbers("k", arrow.PrimitiveTypes.Int64, n/2, n+n/2), numbers("row", arrow.PrimitiveTypes.Int64, 0, n))
	opened := func(rec arrow.Record, files, groups int) (of [2][]*partition.File) {
		for i, format := range []dataset.Format{dataset.Parquet, dataset.ArrowFile} {
			of[i] = open(t, partition.OpenOptions{}, writeTable(t, rec, files, groups, format))
		}
		return of
	}
	ids, logs := opened(idTable, 2, 3), opened(logTable, 1, 1)
	inPortions := map[string]int{}
	for i, typ := range append(slices.Clone(pairTypes), join.Semi) {
		want := nestedLoop(t, logTable, idTable, paths([]string{"k"}), paths([]string{"k"}), "", typ)
		for b, memory := range []int64{256 << 10, 64 << 10, 128 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20} { // the first takes portions
			for o, name := range outputs {
				for l, log := range logs {
					every := len(pairTypes) // so that each output of each log is in portions once
					if b > 0 {
						every = 3 * len(outputs)
					}
					if turn := i + b + 2*o + l; turn%every != 0 && !cases.All() {
						continue
					}
					opts := join.Options{On: "k", Type: typ, Strategy: join.Shuffle, Memory: memory, Threads: 1 + (i+o)%3}
					got, err := joined(t, ids[(i+o)%2], log, opts, name)
					if errors.Is(err, fault.ErrMemory) && memory < 1<<20 {
						continue
					}
					if err == nil {
						err = want.unlike(got)
					}
					if typ != join.Semi && errors.As(err, new(orderError)) {
						inPortions[fmt.Sprint(name, " of ", log[0].Format())]++
						inPortions[string(typ)]++
					} else if err != nil {
						t.Errorf("%s join of %s, %s, with %d bytes: %v", typ, log[0].Format(), name, memory, err)
					}
				}
			}
		}
	}
	for _, typ := range pairTypes {
		if inPortions[string(typ)] == 0 {
			t.Errorf("%s join: never in portions", typ)
		}
	}
	for _, name := range outputs {
		for _, log := range logs {
			if inPortions[fmt.Sprint(name, " of ", log[0].Format())] == 0 {
				t.Errorf("%s of %s: never in portions", name, log[0].Format())
			}
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
