package joins_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// numbers is a column of the integers from lo to hi, exclusive.
func numbers(name string, dt arrow.DataType, lo, hi int) column {
	c := column{name: name, dt: dt}
	for i := lo; i < hi; i++ {
		c.values = append(c.values, fmt.Sprint(i))
	}
	return c
}

func texts(name string, values ...string) column {
	return column{name: name, dt: arrow.BinaryTypes.String, values: values}
}

func ints(name string, values ...string) column {
	return column{name: name, dt: arrow.PrimitiveTypes.Int64, values: values}
}

// files writes a table and opens it.
func files(t testing.TB, n, groups int, cols ...column) []*partition.File {
	t.Helper()
	return open(t, partition.OpenOptions{}, writeTable(t, table(t, cols...), n, groups, ""))
}

// refused checks that a join fails with an error that contains all the words.
func refused(t *testing.T, name string, ids, logs []*partition.File, opts join.Options, words ...string) error {
	t.Helper()
	got, err := run(t, ids, logs, opts)
	if err == nil {
		t.Errorf("%s: %d rows, want an error", name, len(got.rows))
		return nil
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v, want it to say %q", name, err, w)
		}
	}
	return err
}

func TestOptionsAreChecked(t *testing.T) {
	ids, logs := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 3)), files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int32, 0, 5), texts("s", "a", "b", "c", "d", "e"))
	refused(t, "no IDs", nil, logs, join.Options{On: "k"}, "ID")
	refused(t, "no log", ids, nil, join.Options{On: "k"}, "log")
	refused(t, "no key", ids, logs, join.Options{}, "column")
	refused(t, "type", ids, logs, join.Options{On: "k", Type: "outer"}, "outer", "semi, anti, inner, left, right or full")
	refused(t, "strategy", ids, logs, join.Options{On: "k", Strategy: "magic"}, "magic")
	refused(t, "log column", ids, logs, join.Options{On: "kk=k"}, `no column "kk"`, "there ", logs[0].Name())
	refused(t, "ID column", ids, logs, join.Options{On: "k=kk"}, `no column "kk"`, "there ", ids[0].Name())
	refused(t, "FPR", ids, logs, join.Options{On: "k", FPR: 1.5}, "1.5")
	if err := refused(t, "classes", ids, logs, join.Options{On: "s=k"}, "integer", "text or binary", "s::int64", logs[0].Name()); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("classes: %v is no mismatch", err)
	}
	for _, typ := range []join.Type{join.Right, join.Full} {
		err := refused(t, "shard", ids, logs, join.Options{On: "k", Type: typ, Shard: dataset.Shard{Index: 0, Of: 2}}, "unsupported", string(typ), "Shard")
		if !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s of a shard: %v", typ, err)
		}
	}
	got, err := run(t, ids, logs, join.Options{On: "k"})
	if err != nil || len(got.rows) != 3 || got.report.Strategy != join.Exact {
		t.Errorf("by default: %v, %d rows, strategy %s", err, len(got.rows), got.report.Strategy)
	}
}

// TestShards: the outputs of a job's workers, in order, are the output of one worker.
func TestShards(t *testing.T) {
	ids := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 40, 160), numbers("w", arrow.PrimitiveTypes.Int64, 0, 120))
	logs := files(t, 3, 4, numbers("k", arrow.PrimitiveTypes.Int32, 0, 200))
	for _, typ := range types[:4] {
		for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
			opts := join.Options{On: "k", Type: typ, Strategy: strategy, FPR: 0.5}
			whole, err := run(t, ids, logs, opts)
			if err != nil {
				t.Fatal(err)
			}
			for of := range uint32(5) {
				var rows []string
				var in int64
				for i := range of + 1 {
					opts.Shard = dataset.Shard{Index: i, Of: of + 1}
					part, err := run(t, ids, logs, opts)
					if err != nil {
						t.Fatal(err)
					}
					rows, in = append(rows, part.rows...), in+part.report.RowsIn
				}
				if !slices.Equal(rows, whole.rows) || in != 200 {
					t.Errorf("%s %s: %d shards give %d rows of %d, one gives %d of 200", typ, strategy, of+1, len(rows), in, len(whole.rows))
				}
			}
		}
	}
	// More workers than row groups: some have nothing to do.
	got, err := run(t, ids, logs, join.Options{On: "k", Type: join.Left, Shard: dataset.Shard{Index: 99, Of: 1000}})
	if err != nil || len(got.rows) != 0 && got.report.RowsIn == 0 {
		t.Errorf("a shard without row groups: %v", err)
	}
}

// TestMemory: under any budget, the answer is right or an error.
func TestMemory(t *testing.T) {
	var pay []string
	for i := range 3000 {
		pay = append(pay, strings.Repeat("x", i%50))
	}
	ids := files(t, 3, 4, numbers("k", arrow.PrimitiveTypes.Int64, 0, 3000), texts("w", pay...))
	logs := files(t, 2, 2, numbers("k", arrow.PrimitiveTypes.Int64, 2990, 3500))
	for n, typ := range types {
		want, err := run(t, ids, logs, join.Options{On: "k", Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[join.Strategy]int{}
		for i, memory := range []int64{1, 100, 1 << 12, 1 << 13, 20_000, 1 << 15, 1 << 16, 100_000, 1 << 17, 1 << 18, 1 << 20, 1 << 26} {
			for k, strategy := range []join.Strategy{join.Auto, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
				if k > 0 && (i+k+n)%cases.Count(4, 2, 1) != 0 {
					continue
				}
				opts := join.Options{On: "k", Type: typ, Strategy: strategy, Memory: memory}
				got, err := run(t, ids, logs, opts)
				if err != nil {
					filter := strings.HasPrefix(err.Error(), "a filter of 23040 bytes exceeds the memory budget") && memory < 23040
					if !filter && !errors.Is(err, fault.ErrMemory) || !strings.Contains(err.Error(), "Memory") {
						t.Errorf("%s %s in %d bytes: %v, want fault.ErrMemory and the flag", typ, strategy, memory, err)
					}
					continue
				}
				if !slices.Equal(got.rows, want.rows) || got.report.IDsTotal != 3000 || got.report.IDsMatched != 10 {
					t.Errorf("%s %s in %d bytes: %d rows, want %d; report %+v", typ, strategy, memory, len(got.rows), len(want.rows), got.report)
				}
				if strategy == join.Auto {
					seen[got.report.Strategy]++
				}
			}
		}
		if seen[join.Lookup]+seen[join.Exact] == 0 || seen[join.Reverse] == 0 {
			t.Errorf("%s: auto came to %v", typ, seen)
		}
	}
}

// TestMemoryOfColumns: the columns of the IDs count towards the memory if they are in
// the answer, in each strategy that holds them.
func TestMemoryOfColumns(t *testing.T) {
	ids := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 1000), texts("w", slices.Repeat([]string{strings.Repeat("x", 3000)}, 1000)...))
	logs := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 1000))
	for _, strategy := range []join.Strategy{join.Auto, join.Lookup, join.Broadcast, join.Reverse} {
		for _, typ := range types {
			got, err := run(t, ids, logs, join.Options{On: "k", Type: typ, Strategy: strategy, Memory: 2 << 20})
			if strategy == join.Auto {
				if columns := typ != join.Semi && typ != join.Anti; err != nil || columns != (got.report.Strategy == join.Shuffle) || columns != (got.report.SpilledBytes > 0) {
					t.Errorf("%s: %v, report %+v", typ, err, got.report)
				}
			} else if columns := typ != join.Semi && typ != join.Anti; columns != errors.Is(err, fault.ErrMemory) || !columns && err != nil {
				t.Errorf("%s %s: %v", typ, strategy, err)
			}
		}
	}
}

// TestOtherFilter: a filter without one of the IDs would lose rows, so it is refused.
func TestOtherFilter(t *testing.T) {
	k := func(lo, hi int) []*partition.File {
		return files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, lo, hi))
	}
	ids, others, more, logs := k(0, 500), k(1, 501), k(-5, 600), k(490, 510)
	apart, few, all := append(k(0, 100), k(1000, 1100)...), k(0, 100), k(0, 2000)
	text := files(t, 1, 1, texts("k", "a", "b"))
	for _, strategy := range []join.Strategy{join.Auto, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
		for _, kind := range []codec.Kind{codec.KindBloom, codec.KindExact} {
			for _, typ := range types {
				opts := join.Options{On: "k", Type: typ, Strategy: strategy, Filter: (*codec.Filter)(filterOf(t, others, "k", kind, 0.001))}
				err := refused(t, "other IDs", ids, logs, opts, "built from other IDs", "1 of 500 missing", ids[0].Name())
				if !errors.Is(err, fault.ErrMismatch) {
					t.Errorf("%v is no mismatch", err)
				}
				opts.Filter = (*codec.Filter)(filterOf(t, more, "k", kind, 0.001)) // has more keys, which are checked exactly
				if got, err := run(t, ids, logs, opts); err != nil || got.report.IDsMatched != 10 {
					t.Errorf("%s %s with a filter of more IDs: %v, %+v", typ, strategy, err, got.report)
				}
				// The missing IDs are outside the range of the candidates.
				opts.Filter = (*codec.Filter)(filterOf(t, few, "k", kind, 0.001))
				refused(t, "IDs apart", apart, all, opts, "built from other IDs", "100 of 100 missing", apart[1].Name())
			}
		}
		refused(t, "class", ids, logs, join.Options{On: "k", Strategy: strategy, Filter: (*codec.Filter)(filterOf(t, text, "k", codec.KindBloom, 0.01))}, "mismatch", "integer", "text or binary")
		plan, err := builds.NewPlan(door.In(ids), builds.Options{Key: "k", Shard: dataset.Shard{Index: 0, Of: 2}})
		if err != nil {
			t.Fatal(err)
		}
		part, _, err := plan.Build(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		refused(t, "partial", ids, logs, join.Options{On: "k", Strategy: strategy, Filter: (*codec.Filter)(part)}, "finished", "partial")
	}
	for _, typ := range []join.Type{join.Semi, join.Anti} { // the filter alone would decide
		opts := join.Options{On: "k", Type: typ, Strategy: join.Exact, Filter: (*codec.Filter)(filterOf(t, more, "k", codec.KindExact, 0.001))}
		refused(t, "a filter of more IDs", ids, logs, opts, "number of distinct IDs in it: want 500, got 605", "built from other IDs")
	}
}

// TestStdin: IDs that can be read only once.
func TestStdin(t *testing.T) {
	lines := "3\n5\n5\n99\n"
	logs := files(t, 1, 2, numbers("k", arrow.PrimitiveTypes.Int32, 0, 10))
	for typ, want := range map[join.Type]int{join.Semi: 2, join.Anti: 8, join.Inner: 3, join.Left: 11, join.Right: 4, join.Full: 12} {
		for _, strategy := range []join.Strategy{join.Auto, join.Lookup} {
			ids := once(t, "id", strings.NewReader(lines))
			got, err := run(t, ids, logs, join.Options{On: "k=id", Type: typ, Strategy: strategy})
			if err != nil || len(got.rows) != want || got.report.IDsTotal != 4 || got.report.IDsMatched != 3 {
				t.Errorf("%s %s: %v, %d rows, want %d; %+v", typ, strategy, err, len(got.rows), want, got.report)
			}
		}
	}
	refused(t, "broadcast", once(t, "id", strings.NewReader(lines)), logs, join.Options{On: "k=id", Strategy: join.Broadcast}, "standard input", "more than once")
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintln(&many, i)
	}
	err := refused(t, "too many", once(t, "id", strings.NewReader(many.String())), logs, join.Options{On: "k=id", Memory: 1 << 18, Threads: 1}, "Memory", "standard input")
	if !errors.Is(err, fault.ErrMemory) {
		t.Errorf("%v, want fault.ErrMemory", err)
	}
	refused(t, "not an integer", once(t, "id", strings.NewReader("1\nx\n")), logs, join.Options{On: "k=id"}, "standard input", "line 2")
}

// TestNames: a shared key column appears once; any other clash of names gets the
// suffix.
func TestNames(t *testing.T) {
	logs := files(t, 1, 1, ints("k", "1"), ints("a", "2"), ints("a_ids", "3"), ints("z", "4"))
	ids := files(t, 1, 1, ints("a", "20"), ints("k", "1"), ints("a_ids", "30"), ints("b", "40"), ints("z", "1"))
	for on, want := range map[string]string{
		"k":     "k a a_ids z a_ids_ids a_ids_ids_ids b z_ids | 1 2 3 4 20 30 40 1",
		"k=z":   "k a a_ids z a_ids_ids k_ids a_ids_ids_ids b z_ids | 1 2 3 4 20 1 30 40 1",
		"k,k=z": "k a a_ids z a_ids_ids a_ids_ids_ids b z_ids | 1 2 3 4 20 30 40 1",
		"k,k":   "k a a_ids z a_ids_ids a_ids_ids_ids b z_ids | 1 2 3 4 20 30 40 1",
	} {
		for _, typ := range types[2:] {
			got, err := run(t, ids, logs, join.Options{On: on, Type: typ})
			if err != nil || len(got.rows) != 1 || got.names+" | "+got.rows[0] != want {
				t.Errorf("%s %s: %v, %s | %q, want %s", on, typ, err, got.names, got.rows, want)
			}
		}
		got, err := run(t, ids, logs, join.Options{On: on})
		if err != nil || got.names != "k a a_ids z" {
			t.Errorf("%s semi: %v, columns %s", on, err, got.names)
		}
	}
}

// TestSharedKeyDoesNotFit: if the log's key column cannot represent the key of an ID
// without a log row, the error says what to do. The key is never changed.
func TestSharedKeyDoesNotFit(t *testing.T) {
	p := arrow.PrimitiveTypes
	ts := func(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u} }
	for _, c := range []struct {
		log, id   arrow.DataType
		both      string
		lone      string // the log's type cannot represent it
		fits      string
		fitsShown string
	}{
		{p.Int32, p.Int64, "1", "2147483648", "-5", "-5"},
		{p.Int64, p.Uint64, "1", "18446744073709551615", "5", "5"},
		{p.Uint16, p.Int8, "1", "-1", "5", "5"},
		{p.Float32, p.Float64, "1.5", "0.1", "0.25", "1/4"},
		{p.Float32, p.Float64, "1.5", "1e300", "NaN", "NaN"},
		{ts(arrow.Millisecond), ts(arrow.Nanosecond), "2000-01-01", "2000-01-01 00:00:00.000000001", "1970-01-01 00:00:00.001", "1000000ns"},
		{ts(arrow.Nanosecond), ts(arrow.Second), "2000-01-01", "3000-01-01", "1970-01-01 00:00:01", "1000000000ns"},
		{&arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 9, Scale: 3}, "1.50", "1.501", "2.50", "5/2"},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, &arrow.Decimal128Type{Precision: 9, Scale: 2}, "1.50", "1234567.00", "2.50", "5/2"},
		{&arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal256Type{Precision: 60, Scale: 2}, "1.50", "12345678901234567890123456789012345678901234567890.00", "2.50", "5/2"},
		{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, "a", "", "b", `"b"`},
		{arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date32, "2000-01-01", "", "1970-01-02", `"1970-01-02"`},
	} {
		if id := c.id.ID(); strconv.IntSize < 64 && (id == arrow.DECIMAL256 || id == arrow.LARGE_STRING) {
			continue // arrow/go panics on so many digits, and its cast of strings fails, so the join is refused
		}
		logs := files(t, 1, 1, column{name: "k", dt: c.log, values: []string{c.both}})
		for _, typ := range []join.Type{join.Right, join.Full} {
			for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
				name := fmt.Sprintf("%s: %s into %s", typ, c.id, c.log)
				opts := join.Options{On: "k", Type: typ, Strategy: strategy}
				good := files(t, 1, 1, column{name: "k", dt: c.id, values: []string{c.both, c.fits}}, ints("w", "7", "8"))
				if got, err := run(t, good, logs, opts); err != nil || len(got.rows) != 2 || got.rows[1] != c.fitsShown+" 8" {
					t.Errorf("%s: %v, %q, want %s last", name, err, got.rows, c.fitsShown)
				}
				if c.lone == "" {
					continue
				}
				bad := files(t, 1, 1, column{name: "k", dt: c.id, values: []string{c.both, c.lone}}, ints("w", "7", "8"))
				refused(t, name, bad, logs, opts, "unsupported", "column k", "On k=NAME", fmt.Sprint(bad[0].Schema().Field(0).Type), fmt.Sprint(c.log))
			}
		}
	}
}

// TestManyIDsOfOneKey: a log row that matches 200,000 IDs comes in batches that fit in
// memory.
func TestManyIDsOfOneKey(t *testing.T) {
	const n = 200_000
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	w := array.NewInt64Builder(memory.DefaultAllocator)
	defer w.Release()
	for i := range n {
		b.Append(7)
		w.Append(int64(i))
	}
	k, pay := b.NewArray(), w.NewArray()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "k", Type: k.DataType()}, {Name: "w", Type: pay.DataType()}}, nil), []arrow.Array{k, pay}, n)
	k.Release()
	pay.Release()
	defer rec.Release()
	ids := open(t, partition.OpenOptions{}, writeTable(t, rec, 2, 3, ""))
	logs := files(t, 1, 1, ints("k", "6", "7", "8", "7"), ints("n", "0", "1", "2", "3"))
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	j, err := join.New(ids, logs, join.Options{On: "k", Type: join.Left, Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	row := 0
	for r, err := range j.Run(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Record.NumRows() > 1<<16 {
			t.Errorf("a batch of %d rows", r.Record.NumRows())
		}
		for i := range int(r.Record.NumRows()) {
			number, pay := r.Record.Column(1).(*array.Int64).Value(i), r.Record.Column(2).(*array.Int64)
			want, id := int64(1), row-1
			switch {
			case row == 0, row == n+1:
				if want = int64(row / (n + 1) * 2); number != want || pay.IsValid(i) {
					t.Fatalf("row %d is of log row %d", row, number)
				}
				row++
				continue
			case row > n+1:
				want, id = 3, row-n-2
			}
			if number != want || pay.Value(i) != int64(id) {
				t.Fatalf("row %d is of log row %d and ID %d, want %d and %d", row, number, pay.Value(i), want, id)
			}
			row++
		}
		r.Record.Release()
	}
	if row != 2*n+2 || j.Report().IDsMatched != n {
		t.Errorf("%d rows, %+v", row, j.Report())
	}
}

// TestPayloadNullable: a column that is nullable in one ID file is nullable in the
// answer, whatever the first file declares.
func TestPayloadNullable(t *testing.T) {
	dir := t.TempDir()
	for i, nullable := range []bool{false, true} {
		rec := table(t, ints("k", "1", "2"), texts("w", "a", []string{"b", "NULL"}[i]))
		fields := rec.Schema().Fields()
		fields[1].Nullable = nullable
		rec = array.NewRecord(arrow.NewSchema(fields, nil), rec.Columns(), 2)
		writeFile(t, filepath.Join(dir, fmt.Sprint(i, ".parquet")), rec, 10, "")
		rec.Release()
	}
	ids := open(t, partition.OpenOptions{}, dir)
	logs := files(t, 1, 1, ints("k", "2"))
	got, err := run(t, ids, logs, join.Options{On: "k", Type: join.Inner})
	if err != nil || !slices.Equal(got.rows, []string{`2 "b"`, "2 NULL"}) {
		t.Errorf("%v, %q", err, got.rows)
	}
	out := filepath.Join(t.TempDir(), "out.parquet")
	if err := os.WriteFile(out, written(t, ids, logs, join.Options{On: "k", Type: join.Inner}), 0o600); err != nil {
		t.Fatal(err)
	}
	back := open(t, partition.OpenOptions{}, out)
	if f := back[0].Schema().Field(1); !f.Nullable {
		t.Errorf("column %s is written as never NULL", f.Name)
	}
}
