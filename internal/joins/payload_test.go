package joins_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// payload is a table with columns of many types beside its key k. Tables of different
// shifts differ, and so do their dictionaries.
func payload(t testing.TB, shift int, keys ...int) arrow.Record {
	t.Helper()
	p, b := arrow.PrimitiveTypes, arrow.BinaryTypes
	field := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	st := arrow.StructOf(arrow.Field{Name: "x", Type: p.Int32}, field("y", b.String))
	schema := arrow.NewSchema([]arrow.Field{
		field("k", p.Int64), field("d", &arrow.DictionaryType{IndexType: p.Int8, ValueType: b.String}), field("l", arrow.ListOf(b.String)),
		field("st", st), field("m", arrow.MapOf(b.String, p.Int64)), field("f", arrow.FixedSizeListOf(2, p.Int16)),
		field("dec", &arrow.Decimal128Type{Precision: 9, Scale: 2}), field("bool", arrow.FixedWidthTypes.Boolean),
		field("ld", arrow.ListOf(&arrow.DictionaryType{IndexType: p.Int16, ValueType: b.String})), field("ls", b.LargeString),
		field("dur", arrow.FixedWidthTypes.Duration_ms), field("u", &arrow.FixedSizeBinaryType{ByteWidth: 2}), field("null", arrow.Null),
	}, nil)
	rows := make([]string, len(keys))
	for i, k := range keys {
		n := i + shift
		rows[i] = fmt.Sprintf(`{"k":%d,"d":"word %d","l":["a%d",null],"st":{"x":%d,"y":null},"m":[{"key":"k","value":%d}],"f":[%d,null],
			"dec":"%d.50","bool":%v,"ld":["e%d","e%d"],"ls":"%s","dur":%d,"u":"YWI="}`, k, n%4, n, n, n, n, n, n%2 == 0, n%3, n%2, strings.Repeat("z", n%5), n)
		if i%3 == 2 {
			rows[i] = fmt.Sprintf(`{"k":%d}`, k)
		}
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rec.Release)
	return rec
}

// TestPayload: columns of many types, from ID files that each have their own
// dictionaries, next to each other and to NULLs.
func TestPayload(t *testing.T) {
	idDir, logDir := t.TempDir(), t.TempDir()
	var ids []arrow.Record
	for i := range 3 {
		ids = append(ids, payload(t, 5*i, i, i+1, i+2, 100+i, 2))
		writeFile(t, filepath.Join(idDir, fmt.Sprint(i, ".arrow")), ids[i], 2, dataset.ArrowFile)
	}
	var logs []arrow.Record
	for i := range 2 {
		logs = append(logs, payload(t, 3*i, 7, 2, 0, 50, 4, 1, 2))
		writeFile(t, filepath.Join(logDir, fmt.Sprint(i, ".arrow")), logs[i], 3, dataset.ArrowFile)
	}
	idFiles, logFiles := open(t, partition.OpenOptions{}, idDir), open(t, partition.OpenOptions{}, logDir)
	for _, typ := range types {
		for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
			got, err := run(t, idFiles, logFiles, join.Options{On: "k", Type: typ, Strategy: strategy})
			if err != nil {
				t.Fatalf("%s %s: %v", typ, strategy, err)
			}
			// The oracle over several tables: its rows in the tables' order.
			if want := several(t, logs, ids, typ); !slices.Equal(got.rows, want) {
				t.Errorf("%s %s: got\n  %s\nwant\n  %s", typ, strategy, strings.Join(got.rows, "\n  "), strings.Join(want, "\n  "))
			}
		}
	}
}

// several is the oracle over tables of one schema, each with its own dictionaries. It
// joins on the first column, k.
func several(t *testing.T, logs, ids []arrow.Record, typ join.Type) (rows []string) {
	nothing := strings.Repeat(" NULL", int(ids[0].NumCols())-1)
	k := func(rec arrow.Record, i int) int64 { return rec.Column(0).(*array.Int64).Value(i) }
	rest := func(rec arrow.Record, i int) string {
		_, s, _ := strings.Cut(showRow(t, rec, i), " ")
		return " " + s
	}
	met := map[int64]bool{}
	for _, log := range logs {
		for l := range int(log.NumRows()) {
			met[k(log, l)] = true
			any := false
			for _, id := range ids {
				for i := range int(id.NumRows()) {
					if k(log, l) != k(id, i) {
						continue
					}
					if any = true; typ != join.Semi && typ != join.Anti {
						rows = append(rows, showRow(t, log, l)+rest(id, i))
					}
				}
			}
			switch {
			case any && typ == join.Semi, !any && typ == join.Anti:
				rows = append(rows, showRow(t, log, l))
			case !any && (typ == join.Left || typ == join.Full):
				rows = append(rows, showRow(t, log, l)+nothing)
			}
		}
	}
	for _, id := range ids {
		for i := range int(id.NumRows()) {
			if !met[k(id, i)] && (typ == join.Right || typ == join.Full) {
				rows = append(rows, fmt.Sprint(k(id, i))+nothing+rest(id, i))
			}
		}
	}
	return rows
}

// TestTextIDs: the IDs of text files take the type of the log's key.
func TestTextIDs(t *testing.T) {
	p := arrow.PrimitiveTypes
	for _, c := range []struct {
		dt         arrow.DataType
		log        []string
		csv        string
		rows       int
		wrong      string
		dictionary bool
	}{
		{p.Int32, []string{"5", "-1", "7"}, "+5\n-01\n\n99999999999\n", 2, "5.0", false},
		{p.Uint64, []string{"18446744073709551615", "5"}, "18446744073709551615\n", 1, "-1", false},
		{p.Float32, []string{"0.5", "NaN", "1"}, "5e-1\nnan\n", 2, "one", false},
		{p.Float32, []string{"0.1", "16777216", "0.30000001", "1e-45"}, "0.1\n16777216\n0.3\n1e-45\n2\n", 4, "16777217", false},
		{p.Float32, []string{"0.1"}, "0.1000000001\n", 1, "1e39", false},
		{p.Float64, []string{"0.1", "0.10000000149011612"}, "0.1\n", 1, "1e309", false},
		{p.Int64, []string{"1", "2"}, "1\n", 1, "1.5", false},
		{arrow.BinaryTypes.Binary, []string{"YQ==", "Yg=="}, "a\n\xff\n", 1, "", false},
		{arrow.BinaryTypes.String, []string{"05", "5"}, "05\n", 1, "", false},
		{arrow.FixedWidthTypes.Date32, []string{"2024-02-29"}, "2024-02-29\n", 1, "2023-02-29", false},
		{&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, []string{"2024-02-29 12:00:00"}, "2024-02-29T14:00:00+02:00\n", 1, "2024-02-29T14:00:00+", false},
		{&arrow.TimestampType{Unit: arrow.Millisecond}, []string{"2024-02-29 12:00:00.123", "2024-02-29 12:00:00.124"}, "2024-02-29T12:00:00.123000\n", 1, "2024-02-29T12:00:00.1234", false},
		{&arrow.TimestampType{Unit: arrow.Second}, []string{"2024-02-29 12:00:00"}, "2024-02-29 12:00:00.0\n", 1, "2024-02-29T12:00:00.9999", false},
		{&arrow.Decimal128Type{Precision: 9, Scale: 2}, []string{"1.50"}, "1.5\n", 1, "x", false},
		{&arrow.Decimal128Type{Precision: 10, Scale: 2}, []string{"1.00", "1.01"}, "1.000\n", 1, "1.005", false},
		{&arrow.FixedSizeBinaryType{ByteWidth: 16}, []string{"AAECAwQFBgcICQoLDA0ODw=="}, "00010203-0405-0607-0809-0a0b0c0d0e0f\n", 1, "00", false},
		{p.Int64, []string{"5", "6"}, "5\n", 1, "x", true},
	} {
		dt, format := c.dt, dataset.Format("")
		if c.dictionary {
			dt, format = &arrow.DictionaryType{IndexType: p.Int8, ValueType: dt}, dataset.ArrowFile
		}
		logs := open(t, partition.OpenOptions{}, writeTable(t, table(t, column{name: "k", dt: dt, values: c.log}), 1, 1, format))
		csv := func(text string) []*partition.File {
			name := filepath.Join(t.TempDir(), "ids.csv")
			if err := os.WriteFile(name, []byte("id,w\n"+strings.ReplaceAll(strings.TrimSpace(text), "\n", ",1\n")+",1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return open(t, partition.OpenOptions{Text: true}, name)
		}
		for _, typ := range []join.Type{join.Semi, join.Inner, join.Full} {
			for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
				got, err := run(t, csv(c.csv), logs, join.Options{On: "k=id", Type: typ, Strategy: strategy})
				if err != nil || typ != join.Full && len(got.rows) != c.rows {
					t.Errorf("%s %s %s: %v, %q, want %d rows", dt, typ, strategy, err, got.rows, c.rows)
				}
			}
		}
		if c.wrong != "" {
			refused(t, c.wrong, csv(c.csv+c.wrong+"\n"), logs, join.Options{On: "k=id"}, "ids.csv", "line ", "column id")
		}
		kept := csv(c.csv)
		_, err := run(t, kept, logs, join.Options{On: "k=id", KeepTypes: true})
		if text := c.dt.ID() == arrow.STRING; text != (err == nil) {
			t.Errorf("%s, types kept: %v", dt, err)
		}
	}
}

// TestPayloadWritten: every format can hold the answer, and reads back the same.
func TestPayloadWritten(t *testing.T) {
	idDir, logDir := t.TempDir(), t.TempDir()
	for i := range 3 {
		writeFile(t, filepath.Join(idDir, fmt.Sprint(i, ".arrow")), payload(t, 5*i, i, i+1, i+2, 100+i, 2), 2, dataset.ArrowFile)
	}
	writeFile(t, filepath.Join(logDir, "log.arrow"), payload(t, 3, 7, 2, 0, 50, 4, 1, 2), 100, dataset.ArrowFile)
	ids, logs := open(t, partition.OpenOptions{}, idDir), open(t, partition.OpenOptions{}, logDir)
	for _, typ := range types {
		for _, format := range []dataset.Format{dataset.Parquet, dataset.ArrowFile} {
			opts := join.Options{On: "k", Type: typ}
			want, err := run(t, ids, logs, opts)
			if err != nil {
				t.Fatal(err)
			}
			j, err := join.New(ids, logs, opts)
			if err != nil {
				t.Fatal(err)
			}
			out := output.Destination{Output: output.Output{Name: filepath.Join(t.TempDir(), "out."+string(format)), Format: format}}
			parts := each.Slice(room(j).Parts(), func(p output.Part) output.Part { // without its file
				if f := p.Piece.File; f != nil {
					p.Name = f.Name()
				}
				return output.Part{Name: p.Name, Schema: p.Schema}
			})
			answer := each.Seq(j.Run(t.Context()), func(r partition.Rows) arraycopy.Rows { return arraycopy.Rows{Piece: r.Piece, Record: r.Record} })
			if _, err := out.Write(t.Context(), parts, answer); err != nil {
				t.Errorf("%s to %s: %v", typ, format, err)
				continue
			}
			var rows []string
			back := open(t, partition.OpenOptions{}, out.Name)
			for g := range back[0].NumGroups() {
				for rec, err := range back[0].Read(t.Context(), g, nil) {
					if err != nil {
						t.Fatal(err)
					}
					for i := range int(rec.NumRows()) {
						rows = append(rows, showRow(t, rec, i))
					}
				}
			}
			if !slices.Equal(rows, want.rows) {
				t.Errorf("%s to %s: got\n  %s\nwant\n  %s", typ, format, strings.Join(rows, "\n  "), strings.Join(want.rows, "\n  "))
			}
		}
	}
}
