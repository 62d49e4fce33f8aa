package joins_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// poison overwrites freed memory, so that later reads of it are noticed.
type poison struct{ memory.Allocator }

func (p poison) Free(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
	p.Allocator.Free(b)
}

// given is a side of a join. It makes each record when asked for it and frees it when
// asked for the next one.
type given struct {
	t       testing.TB
	mem     memory.Allocator
	rows    arrow.Record
	size    int64 // of a record
	ended   int   // passes that ended
	begun   int
	err     error // yielded after some records, see after
	after   int
	panics  bool
	watched func() // called for each record
}

func (g *given) read(ctx context.Context) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		g.begun++
		defer func() { g.ended++ }()
		n := 0
		for lo := int64(0); lo < g.rows.NumRows(); lo += g.size {
			if n++; n > g.after && g.panics {
				panic("the program's fault")
			} else if n > g.after && g.err != nil {
				yield(nil, g.err)
				return
			}
			if g.watched != nil {
				g.watched()
			}
			if !g.one(lo, yield) {
				return
			}
		}
	}
}

// one yields a copy of some rows and frees it.
func (g *given) one(lo int64, yield func(arrow.Record, error) bool) bool {
	part := g.rows.NewSlice(lo, min(lo+g.size, g.rows.NumRows()))
	defer part.Release()
	var cols []arrow.Array
	for _, c := range part.Columns() {
		a, err := array.Concatenate([]arrow.Array{c}, g.mem)
		if err != nil {
			g.t.Fatal(err)
		}
		cols = append(cols, a)
	}
	rec := array.NewRecord(g.rows.Schema(), cols, part.NumRows())
	for _, c := range cols {
		c.Release()
	}
	defer rec.Release()
	return yield(rec, nil)
}

func (g *given) input() *partition.File { return g.named("given", partition.RecordsOptions{}) }

func (g *given) named(name string, opts partition.RecordsOptions) *partition.File {
	return partition.Records(name, g.rows.Schema(), g.read, opts)
}

// sides returns IDs and a log with repeated and missing keys, and other columns.
func sides(t testing.TB) (ids, log arrow.Record) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	key := func(n, mod int) column {
		c := column{name: "k", dt: arrow.PrimitiveTypes.Int64}
		for i := range n {
			c.values = append(c.values, []string{fmt.Sprint(i * 7 % mod), "NULL"}[min(i%13/12, 1)])
		}
		return c
	}
	words := func(name string, n int, dt arrow.DataType) column {
		c := column{name: name, dt: dt}
		for i := range n {
			c.values = append(c.values, fmt.Sprint(name, i%90))
		}
		return c
	}
	return table(t, key(150, 120), words("w", 150, arrow.BinaryTypes.String)),
		table(t, key(400, 300), words("d", 400, dict), words("w", 400, arrow.BinaryTypes.String))
}

// TestRecords: with every strategy, records give the same rows in the same order as
// files with these rows, and all memory is released.
func TestRecords(t *testing.T) {
	ids, log := sides(t)
	idDir, logDir := writeTable(t, ids, 1, 3, dataset.ArrowFile), writeTable(t, log, 1, 4, dataset.ArrowFile)
	// Unless all run, each type and strategy has single rows or larger records, in turn.
	for i, typ := range types {
		for s, strategy := range append(strategies(typ), join.Auto) {
			opts := join.Options{On: "k", Type: typ, Strategy: strategy, Threads: 3}
			want, err := run(t, open(t, partition.OpenOptions{}, idDir), open(t, partition.OpenOptions{}, logDir), opts)
			if err != nil || len(want.rows) == 0 {
				t.Fatalf("%s %s: %v", typ, strategy, err)
			}
			for k, size := range []int64{1, 64} {
				if (i+s+k)%2 != 0 && !cases.All() {
					continue
				}
				for _, known := range []bool{false, true} {
					if known != (size == 1) && !cases.All() {
						continue
					}
					mem := poison{checked(t)}
					opts.Mem = mem
					left, right := &given{t: t, mem: mem, rows: log, size: size}, &given{t: t, mem: mem, rows: ids, size: size}
					l, r := left.input(), right.input()
					if known {
						l, r = left.named("log", partition.RecordsOptions{Rows: log.NumRows()}), right.named("ids", partition.RecordsOptions{Rows: ids.NumRows()})
					}
					seq := join.Seq(t.Context(), r, l, opts)
					for range 2 { // the sequence can be ranged over again
						got := collect(t, seq)
						name := fmt.Sprintf("%s %s, records of %d, number known %v", typ, strategy, size, known)
						if !slices.Equal(got, want.rows) {
							t.Fatalf("%s: %d rows, want %d:\n%s\nwant\n%s", name, len(got), len(want.rows), strings.Join(got, "\n"), strings.Join(want.rows, "\n"))
						}
						if left.begun == 0 || left.begun != left.ended || right.begun != right.ended {
							t.Errorf("%s: %d of %d and %d of %d passes have ended", name, left.ended, left.begun, right.ended, right.begun)
						}
					}
				}
			}
		}
	}
}

func collect(t testing.TB, seq iter.Seq2[arrow.Record, error]) (rows []string) {
	t.Helper()
	for rec, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if rec.NumRows() == 0 {
			t.Error("an empty record")
		}
		for i := range int(rec.NumRows()) {
			rows = append(rows, showRow(t, rec, i))
		}
	}
	return rows
}

// TestRecordsOnce: inputs that can be read only once are joined by the strategies that
// read them once. Others refuse them before the second pass.
func TestRecordsOnce(t *testing.T) {
	ids, log := sides(t)
	for _, typ := range types {
		for _, strategy := range append(strategies(typ), join.Auto) {
			mem := poison{checked(t)}
			left, right := &given{t: t, mem: mem, rows: log, size: 50}, &given{t: t, mem: mem, rows: ids, size: 50}
			l, r := left.named("log", partition.RecordsOptions{Once: true}), right.named("ids", partition.RecordsOptions{Once: true})
			rows, failed := 0, error(nil)
			for rec, err := range join.Seq(t.Context(), r, l, join.Options{On: "k", Type: typ, Strategy: strategy, Mem: mem}) {
				if err != nil {
					failed = err
					break
				}
				rows += int(rec.NumRows())
			}
			if strategy == join.Auto || strategy == join.Lookup {
				if failed != nil || rows == 0 {
					t.Errorf("%s %s: %v, %d rows", typ, strategy, failed, rows)
				}
			} else if failed == nil || !strings.Contains(failed.Error(), "reads it more than once") || left.begun+right.begun > 0 {
				t.Errorf("%s %s: %v after %d and %d passes", typ, strategy, failed, left.begun, right.begun)
			}
		}
	}
}

// TestRecordsEnd: however a join of records ends, the passes over its inputs end, no
// goroutine remains, and all memory is released.
func TestRecordsEnd(t *testing.T) {
	ids, log := sides(t)
	stop := errors.New("enough")
	before := goleak.IgnoreCurrent()
	for _, typ := range []join.Type{join.Semi, join.Anti, join.Inner, join.Full} {
		for _, strategy := range strategies(typ) {
			for _, how := range []string{"break", "cancel", "cancel in a pass", "error of the log", "error of the IDs", "panic of the log", "panic of the IDs", "panic of the receiver"} {
				for _, at := range []int{0, 2} {
					name := fmt.Sprint(typ, " ", strategy, ": ", how, " at ", at)
					ctx, cancel := context.WithCancelCause(context.Background())
					mem := poison{checked(t)}
					left, right := &given{t: t, mem: mem, rows: log, size: 40, after: at}, &given{t: t, mem: mem, rows: ids, size: 40, after: at}
					side := map[bool]*given{true: left, false: right}[strings.HasSuffix(how, "log")]
					switch {
					case strings.HasPrefix(how, "error"):
						side.err = stop
					case strings.HasPrefix(how, "panic of the"):
						side.panics = !strings.HasSuffix(how, "receiver")
					case how == "cancel in a pass":
						seen := 0
						left.watched = func() {
							if seen++; seen > at {
								cancel(stop)
							}
						}
					}
					seq := join.Seq(ctx, right.named("the IDs", partition.RecordsOptions{}), left.named("the log", partition.RecordsOptions{}), join.Options{On: "k", Type: typ, Strategy: strategy, Threads: 2, Mem: mem})
					seen := 0
					var last error
					func() {
						defer func() {
							if r := recover(); r != nil && r != "the receiver's" {
								t.Errorf("%s: panic %v", name, r)
							}
						}()
						for _, err := range seq {
							if last != nil {
								t.Errorf("%s: the sequence goes on after %v", name, last)
							}
							if last = err; err != nil {
								continue
							}
							switch seen++; {
							case seen <= at:
							case how == "break":
								return
							case how == "cancel":
								cancel(stop)
							case strings.HasSuffix(how, "receiver"):
								panic("the receiver's")
							}
						}
					}()
					cancel(nil)
					switch {
					case strings.HasPrefix(how, "error") && !errors.Is(last, stop),
						how == "cancel in a pass" && !errors.Is(last, stop),
						how == "cancel" && last != nil && !errors.Is(last, stop),
						side.panics && (last == nil || !strings.Contains(last.Error(), "panicked: the program's fault") || !strings.Contains(last.Error(), "the log")) && side == left,
						side.panics && side == right && (last == nil || !strings.Contains(last.Error(), "the IDs")):
						t.Errorf("%s: %d records, then %v", name, seen, last)
					}
					if left.begun != left.ended || right.begun != right.ended {
						t.Errorf("%s: %d of %d and %d of %d passes have ended", name, left.ended, left.begun, right.ended, right.begun)
					}
				}
			}
		}
	}
	goleak.VerifyNone(t, before)
}

// TestRecordsRefusals: if the inputs cannot be joined, the sequence yields one error
// and nothing else.
func TestRecordsRefusals(t *testing.T) {
	ids, log := sides(t)
	good := func(rec arrow.Record) *partition.File {
		return (&given{t: t, mem: memory.DefaultAllocator, rows: rec, size: 50}).input()
	}
	for _, c := range []struct {
		name     string
		ids, log *partition.File
		on, word string
	}{
		{"no such key", good(ids), good(log), "key", `no column "key"`},
		{"another class", good(ids), good(log), "w=k", "mismatch"},
		{"no schema", partition.Records("the IDs", nil, nil, partition.RecordsOptions{}), good(log), "k", "the IDs"},
		{"no sequence", good(ids), partition.Records("the log", log.Schema(), func(context.Context) iter.Seq2[arrow.Record, error] { return nil }, partition.RecordsOptions{}), "k", "the log: no sequence"},
	} {
		n := 0
		for rec, err := range join.Seq(t.Context(), c.ids, c.log, join.Options{On: c.on}) {
			if n++; rec != nil || err == nil || !strings.Contains(err.Error(), c.word) {
				t.Errorf("%s: %v, %v, want %q", c.name, rec, err, c.word)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d yields", c.name, n)
		}
	}
}

// TestRecordsOfRecords: the answer of one join is an input of another.
func TestRecordsOfRecords(t *testing.T) {
	ids, log := sides(t)
	mem := poison{checked(t)}
	side := func(rec arrow.Record) *partition.File { return (&given{t: t, mem: mem, rows: rec, size: 30}).input() }
	kept := partition.Records("kept", log.Schema(), func(ctx context.Context) iter.Seq2[arrow.Record, error] {
		return join.Seq(ctx, side(ids), side(log), join.Options{On: "k", Mem: mem})
	}, partition.RecordsOptions{})
	opts := join.Options{On: "k", Type: join.Inner, Mem: mem}
	for _, strategy := range strategies(join.Inner) {
		opts.Strategy = strategy
		got := collect(t, join.Seq(t.Context(), side(ids), kept, opts))
		want := collect(t, join.Seq(t.Context(), side(ids), side(log), opts))
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: %d rows, want %d", strategy, len(got), len(want))
		}
	}
}

// TestRecordsInLittleMemory: IDs that do not fit are shuffled and cut into portions,
// like those of files. Records are one row group with an unknown number of rows.
func TestRecordsInLittleMemory(t *testing.T) {
	const n = 20_000
	column := func(name, format string, n, times int) column {
		c := column{name: name, dt: arrow.BinaryTypes.String}
		for i := range n * times {
			c.values = append(c.values, fmt.Sprintf(format, i%n))
		}
		return c
	}
	ids := table(t, column("k", "key %08d", n, 2), column("p", "payload payload payload %d", n, 2))
	log := table(t, column("k", "key %08d", n*5/4, 1), column("w", "word %d", n*5/4, 1))
	for i, typ := range types {
		if i%cases.Count(2, 1, 1) != 0 {
			continue
		}
		mem := poison{checked(t)}
		side := func(rec arrow.Record) *partition.File { return (&given{t: t, mem: mem, rows: rec, size: 5000}).input() }
		opts := join.Options{On: "k", Type: typ, Mem: mem, Threads: 2}
		opts.Strategy = join.Lookup
		want := collect(t, join.Seq(t.Context(), side(ids), side(log), opts))
		opts.Strategy, opts.Memory, opts.TempDir = join.Shuffle, 5<<19, t.TempDir()
		got := collect(t, join.Seq(t.Context(), side(ids), side(log), opts))
		if typ != join.Semi && typ != join.Anti { // the portions come one after another
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) || len(want) < n/4 {
			t.Errorf("%s: %d rows, want %d", typ, len(got), len(want))
		}
		// A row that has IDs in several portions is one row.
		j, err := join.New([]*partition.File{side(ids)}, []*partition.File{side(log)}, opts)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range j.Run(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			r.Record.Release()
		}
		if r := j.Report(); r.RowsMatched != n || r.Candidates < n || r.IDsMatched != 2*n || r.RowsIn != n*5/4 {
			t.Errorf("%s: %d of %d rows and %d IDs matched, want %d and %d", typ, r.RowsMatched, r.RowsIn, r.IDsMatched, n, 2*n)
		}
	}
}

// TestLastRowsInPortions: a log row that has its ID in an early portion is not one without an ID,
// nor is it lost, wherever the row group ends. The log's last rows have IDs, and its first ones
// have none. Row groups of records do not say how many rows they have.
func TestLastRowsInPortions(t *testing.T) {
	const n, without, little = 2000, 300, 384 << 10
	idKeys, pays := texts("k"), texts("p")
	for i := range n {
		idKeys.values = append(idKeys.values, fmt.Sprintf("key %08d", i*7%n))
		pays.values = append(pays.values, fmt.Sprintf("payload of ID %08d, %0280d", i*7%n, i))
	}
	idTable := table(t, idKeys, pays)
	ids := open(t, partition.OpenOptions{}, writeTable(t, idTable, 1, 1, ""))
	payOf := map[string]string{}
	for i, k := range idKeys.values {
		payOf[k] = pays.values[i]
	}
	for _, rows := range []int{29*64 + 1, 30*64 - 1} {
		keys := texts("k")
		for i := range rows {
			keys.values = append(keys.values, fmt.Sprintf("key %08d", n-1+without-i))
		}
		logTable := table(t, keys, numbers("row", arrow.PrimitiveTypes.Int64, 0, rows))
		logs := open(t, partition.OpenOptions{}, writeTable(t, logTable, 1, 1, ""))
		records := func() []*partition.File {
			return []*partition.File{(&given{t: t, mem: poison{checked(t)}, rows: logTable, size: 700}).input()}
		}
		for _, typ := range []join.Type{join.Left, join.Full, join.Anti} {
			var want []string
			seen := map[string]bool{}
			for i, k := range keys.values {
				pay, has := payOf[k]
				seen[k] = true
				row := fmt.Sprintf("%q %d", k, i)
				switch {
				case typ == join.Anti:
					if !has {
						want = append(want, row)
					}
				case has:
					want = append(want, fmt.Sprintf("%s %q", row, pay))
				case typ == join.Left || typ == join.Full:
					want = append(want, row+" NULL")
				}
			}
			for _, k := range idKeys.values {
				if typ == join.Full && !seen[k] {
					want = append(want, fmt.Sprintf("%q NULL %q", k, payOf[k]))
				}
			}
			ordered := slices.Clone(want)
			slices.Sort(want)
			check := func(what string, got answer, err error) {
				t.Helper()
				what = fmt.Sprintf("%d rows, %s join %s", rows, typ, what)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if inPortions := !slices.Equal(got.rows, ordered); inPortions != strings.Contains(what, "in portions") {
					t.Errorf("%s: rows in the log's order: %v", what, !inPortions)
				}
				slices.Sort(got.rows)
				if !slices.Equal(got.rows, want) {
					t.Errorf("%s: %v", what, unlike(got.rows, want))
				}
				matched := int64(rows - without)
				if r := got.report; r.RowsMatched != matched || r.IDsMatched != matched || r.RowsIn != int64(rows) {
					t.Errorf("%s: %d of %d rows and %d IDs matched, want %d of %d", what, r.RowsMatched, r.RowsIn, r.IDsMatched, matched, rows)
				}
			}
			for i, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
				if (i%2 == 0) != (rows%64 == 1) { // each once is enough
					continue
				}
				got, err := run(t, ids, logs, join.Options{On: "k", Type: typ, Strategy: strategy, Threads: 2})
				check("by "+string(strategy), got, err)
			}
			if typ == join.Anti { // its IDs are never taken in portions
				continue
			}
			o := join.Options{On: "k", Type: typ, Strategy: join.Shuffle, Memory: little, TempDir: t.TempDir(), Threads: 2}
			got, err := run(t, ids, logs, o)
			check("in portions", got, err)
			got, err = run(t, ids, records(), o)
			check("of records in portions", got, err)
			got, path, err := writtenRows(t, ids, logs, o, "out.parquet")
			check("of pages in portions", got, err)
			if path != "engine" {
				t.Errorf("%s join: pages are not copied: %s", typ, path)
			}
		}
	}
}
