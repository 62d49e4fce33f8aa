package joins_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// TestTextMeetsBothFloats: text IDs are the log's 0.1 of float32 in a log of float32 alone.
// With float64 beside it they are the number itself, whatever the order of the files.
func TestTextMeetsBothFloats(t *testing.T) {
	narrow := writeTable(t, table(t, column{name: "k", dt: arrow.PrimitiveTypes.Float32, values: []string{"0.1", "0.5"}}), 1, 1, "")
	wide := writeTable(t, table(t, column{name: "k", dt: arrow.PrimitiveTypes.Float64, values: []string{"0.1", "0.5"}}), 1, 1, "")
	name := filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(name, []byte("k\n0.1\n0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		logs []string
		rows int
	}{{[]string{narrow}, 2}, {[]string{wide}, 2}, {[]string{narrow, wide}, 3}, {[]string{wide, narrow}, 3}} {
		ids := open(t, partition.OpenOptions{Text: true}, name)
		got, err := run(t, ids, open(t, partition.OpenOptions{}, c.logs...), join.Options{On: "k"})
		if err != nil || len(got.rows) != c.rows {
			t.Errorf("%v: rows %q, want %d: %v", c.logs, got.rows, c.rows, err)
		}
	}
}

// TestTextMeetsNulls: the type of text IDs is that of a file that has one, also if the key of the
// first file is NULL in all rows.
func TestTextMeetsNulls(t *testing.T) {
	none := writeTable(t, table(t, column{name: "k", dt: arrow.Null, values: []string{"NULL", "NULL"}}), 1, 1, dataset.ArrowFile)
	name := filepath.Join(t.TempDir(), "ids.csv")
	for text, dt := range map[string]arrow.DataType{"2024-05-01": arrow.FixedWidthTypes.Date32, "1.50": &arrow.Decimal128Type{Precision: 9, Scale: 2}, "7": arrow.PrimitiveTypes.Int32, "x": arrow.BinaryTypes.String} {
		typed := writeTable(t, table(t, column{name: "k", dt: dt, values: []string{text, "NULL"}}), 1, 1, dataset.ArrowFile)
		if err := os.WriteFile(name, []byte("k\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, logs := range [][]string{{none, typed}, {typed, none}, {none, none, typed}} {
			ids := open(t, partition.OpenOptions{Text: true}, name)
			got, err := run(t, ids, open(t, partition.OpenOptions{}, logs...), join.Options{On: "k"})
			if err != nil || len(got.rows) != 1 || got.report.IDsMatched != 1 {
				t.Errorf("%s, %v: rows %q: %v", dt, logs, got.rows, err)
			}
		}
	}
}

// TestTextMeetsAllIntegers: text IDs are compared with log files of signed and of
// unsigned integers, although no integer type holds both.
func TestTextMeetsAllIntegers(t *testing.T) {
	small := writeTable(t, table(t, column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: []string{"-7", "7", "8"}}), 1, 1, "")
	large := writeTable(t, table(t, column{name: "k", dt: arrow.PrimitiveTypes.Uint64, values: []string{"18446744073709551615", "7", "9"}}), 1, 1, "")
	name := filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(name, []byte("k\n18446744073709551615\n-7\n7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, logs := range [][]string{{small, large}, {large, small}} {
		ids := open(t, partition.OpenOptions{Text: true}, name)
		got, err := run(t, ids, open(t, partition.OpenOptions{}, logs...), join.Options{On: "k"})
		if err != nil || len(got.rows) != 4 || got.report.IDsMatched != 3 {
			t.Errorf("%v: rows %q, %d IDs matched: %v", logs, got.rows, got.report.IDsMatched, err)
		}
	}
}

// TestLogsOfOneAnswer: logs that differ in what the answer does not keep make one output.
func TestLogsOfOneAnswer(t *testing.T) {
	one := table(t, ints("k", "1", "2", "3"), texts("w", "a", "b", "NULL"))
	fields := one.Schema().Fields()
	fields[0].Nullable = !fields[0].Nullable
	other := array.NewRecord(arrow.NewSchema(fields, nil), one.Columns(), 3)
	defer other.Release()
	ids := writeTable(t, table(t, ints("k", "2", "4"), texts("v", "x", "y")), 1, 1, "")
	for _, format := range []dataset.Format{dataset.ArrowFile, dataset.Parquet} {
		for _, typ := range []join.Type{join.Right, join.Full} {
			logs := []string{writeTable(t, one, 1, 1, format), writeTable(t, other, 1, 1, format)}
			want, err := joined(t, open(t, partition.OpenOptions{}, ids), open(t, partition.OpenOptions{}, logs...), join.Options{On: "k", Type: typ}, "Run")
			if err != nil {
				t.Fatal(err)
			}
			for _, out := range []string{"-", "out.arrow"} {
				got, err := joined(t, open(t, partition.OpenOptions{}, ids), open(t, partition.OpenOptions{}, logs...), join.Options{On: "k", Type: typ}, out)
				if err != nil || !slices.Equal(got.rows, want.rows) {
					t.Errorf("%s join of logs in %s into %s: %q, want %q: %v", typ, format, out, got.rows, want.rows, err)
				}
			}
		}
	}
}
