package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

// probeCase is a filter, and rows to ask it about.
type probeCase struct {
	name    string
	ids     []arrow.DataType // of the key columns
	log     []arrow.DataType // nil: as ids
	members string           // JSON array of IDs: values, or objects of the key columns
	rows    string           // JSON array of rows, likewise; null is a NULL
	want    string           // a letter a row: + if it is a member, - if not
	flags   string           // of scan and probe
	build   string           // flags of build
	exact   bool             // a Bloom filter does not tell the members apart
	lines   string           // the rows as NDJSON values, one a line, if the filter can be asked about such
}

func probeCases() []probeCase {
	one := func(t arrow.DataType) []arrow.DataType { return []arrow.DataType{t} }
	const ints, someInts = `[7, -3, 9]`, `[7, 8, -3, null, 9, 0]`
	cases := []probeCase{
		{name: "uint64", ids: one(arrow.PrimitiveTypes.Uint64), members: `[7, 18446744073709551615]`, rows: `[18446744073709551615, 8, 7, null]`, want: "+-+-", lines: "18446744073709551615 8 7.0 null"},
		{name: "signs", exact: true, ids: one(arrow.PrimitiveTypes.Uint64), log: one(arrow.PrimitiveTypes.Int64), members: `[18446744073709551615, 7]`, rows: `[-1, 7]`, want: "-+", lines: `-1 "07"`},
		{name: "string", ids: one(arrow.BinaryTypes.String), members: `["a", "", "b c"]`, rows: `["a", "A", null, "", "b c"]`, want: "+--++", lines: `"a" "A" null "" "b\u0020c"`},
		{name: "numbers as text", ids: one(arrow.BinaryTypes.String), members: `["7", "true"]`, rows: `["7", "7.0", "true"]`, want: "+-+", lines: `7 7.0 true`},
		{name: "large string", ids: one(arrow.BinaryTypes.String), log: one(arrow.BinaryTypes.LargeString), members: `["a"]`, rows: `["b", "a"]`, want: "-+"},
		{name: "binary", ids: one(arrow.BinaryTypes.Binary), log: one(arrow.BinaryTypes.String), members: `["YQ=="]`, rows: `["b", "a"]`, want: "-+", lines: `"b" "a"`},
		{name: "dictionary", ids: one(arrow.BinaryTypes.String), log: one(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}), members: `["a"]`, rows: `["b", "a", null, "a"]`, want: "-+-+"},
		{name: "lower", ids: one(arrow.BinaryTypes.String), build: "--normalize trim,lower", flags: "--normalize trim,lower", members: `["Ann "]`, rows: `[" aNN", "an"]`, want: "+-", lines: `"ann" "an"`},
		{name: "uuid rule", ids: one(arrow.BinaryTypes.String), build: "--normalize uuid", flags: "--normalize uuid", members: `["00000000-0000-0000-0000-00000000000a"]`, rows: `["{00000000-0000-0000-0000-00000000000A}", "x", null]`, want: "+--", lines: `"0000000000000000000000000000000A" "x" null`},
		{name: "boolean", ids: one(arrow.FixedWidthTypes.Boolean), members: `[true]`, rows: `[true, false, null]`, want: "+--", lines: `true "false" null`},
		{name: "date", ids: one(arrow.FixedWidthTypes.Date32), log: one(arrow.FixedWidthTypes.Date64), members: `["2024-02-29"]`, rows: `["2024-02-29", "2024-03-01"]`, want: "+-", lines: `"2024-02-29" "2024-03-01"`},
		{name: "instant", ids: one(arrow.FixedWidthTypes.Timestamp_s), log: one(arrow.FixedWidthTypes.Timestamp_us), members: `["2024-02-29 01:02:03"]`, rows: `["2024-02-29 01:02:03", "2024-02-29 01:02:03.5"]`, want: "+-", lines: `"2024-02-29T02:02:03+01:00" "2024-02-29T01:02:03.5Z"`},
		{name: "timestamp", ids: one(&arrow.TimestampType{Unit: arrow.Nanosecond}), log: one(&arrow.TimestampType{Unit: arrow.Millisecond}), members: `["2024-02-29 01:02:03"]`, rows: `["2024-02-29 01:02:03", "2024-02-29 01:02:04"]`, want: "+-", lines: `"2024-02-29T01:02:03" "2024-02-29T01:02:04"`},
		{name: "time", ids: one(arrow.FixedWidthTypes.Time32s), log: one(arrow.FixedWidthTypes.Time64us), members: `["01:02:03"]`, rows: `["01:02:03", "01:02:04"]`, want: "+-", lines: `"01:02:03" "01:02:04"`},
		{name: "duration", ids: one(arrow.FixedWidthTypes.Duration_s), log: one(arrow.FixedWidthTypes.Duration_ms), members: `["3s"]`, rows: `["3000ms", "3001ms"]`, want: "+-"},
		{name: "decimal", ids: one(&arrow.Decimal128Type{Precision: 10, Scale: 2}), log: one(&arrow.Decimal256Type{Precision: 40, Scale: 5}), members: `["7.25"]`, rows: `["7.25", "7.26"]`, want: "+-", lines: `7.250 "7.26"`},
		{name: "float", ids: one(arrow.PrimitiveTypes.Float32), log: one(arrow.PrimitiveTypes.Float64), members: `[0.5]`, rows: `[0.5, 0.25, null]`, want: "+--", lines: `5e-1 0.25 null`},
		{name: "fixed", ids: one(&arrow.FixedSizeBinaryType{ByteWidth: 2}), members: `["YWI="]`, rows: `["YWI=", "YWM="]`, want: "+-", lines: `"6162" "6163"`},
		{name: "integers and decimals", ids: one(arrow.PrimitiveTypes.Int16), log: one(&arrow.Decimal128Type{Precision: 10, Scale: 2}), members: `[7]`, rows: `["7.00", "7.50"]`, want: "+-", lines: `7.0 7.5`},
		{name: "integers and floats", ids: one(arrow.PrimitiveTypes.Int64), log: one(arrow.PrimitiveTypes.Float64), members: `[7]`, rows: `[7, 7.5]`, want: "+-", lines: `7e0 75e-1`},
		{name: "decimals and integers", ids: one(&arrow.Decimal128Type{Precision: 10, Scale: 2}), log: one(arrow.PrimitiveTypes.Uint8), members: `["7.00", "7.50"]`, rows: `[7, 8]`, want: "+-", lines: `7 8`},
		{name: "floats and integers", ids: one(arrow.PrimitiveTypes.Float64), log: one(arrow.PrimitiveTypes.Int64), members: `[7, 7.5]`, rows: `[7, 8]`, want: "+-", lines: `7 8`},
		{name: "cast", ids: one(arrow.PrimitiveTypes.Int64), log: one(arrow.BinaryTypes.String), flags: "--key k::int64 --cast-errors null", members: ints, rows: `["7", "x", null, "-3"]`, want: "+--+", lines: `"7" "x" null -3`},
		{name: "ignored case", ids: one(arrow.PrimitiveTypes.Int64), flags: "--key K --ignore-case", members: ints, rows: someInts, want: "+-+-+-", lines: "7 8 -3 null 9 0"},
		{name: "path", ids: one(arrow.PrimitiveTypes.Int64), log: one(arrow.StructOf(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true})), flags: "--key k.id", members: ints,
			rows: `[{"id": 7}, null, {"id": null}, {"id": 8}]`, want: "+---", lines: `{"id":7} null {"x":7} {"x":{},"id":8}`},
		{name: "pairs", ids: []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String}, log: []arrow.DataType{arrow.PrimitiveTypes.Uint16, arrow.BinaryTypes.LargeString},
			members: `[{"k": 7, "k1": "a"}, {"k": 8, "k1": "b"}]`, rows: `[{"k": 7, "k1": "b"}, {"k": 8, "k1": "b"}, {"k": null, "k1": "a"}, {"k": 7, "k1": "a"}]`, want: "-+-+"},
	}
	for _, t := range []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64} {
		cases = append(cases, probeCase{name: t.Name(), ids: one(arrow.PrimitiveTypes.Int64), log: one(t), members: ints, rows: someInts, want: "+-+-+-", lines: "7 8 -3 null 9 0"})
	}
	return cases
}

// Whatever the class of the key, probe passes the rows that scan keeps: those of the IDs.
func TestProbeLikeScan(t *testing.T) {
	for _, c := range probeCases() {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, "auto")
			if !c.exact {
				c.check(t, "bloom")
			}
		})
	}
}

func (c probeCase) check(t *testing.T, kind string) {
	dir := t.TempDir()
	ids, filter := filepath.Join(dir, "ids.arrow"), filepath.Join(dir, "ids.bjf")
	if err := os.WriteFile(ids, arrowStream(t, keyRecord(t, c.ids, c.members, false)), 0o600); err != nil {
		t.Fatal(err)
	}
	key := []string{"k", "k1"}[:len(c.ids)]
	do(t, append([]string{"build", "--quiet", "--kind", kind, "--fpr", "1e-9", "--key", strings.Join(key, ","), "-o", filter, ids}, strings.Fields(c.build)...)...)
	types := c.log
	if types == nil {
		types = c.ids
	}
	log := keyRecord(t, types, c.rows, true)
	half := log.NumRows() / 2
	stream := arrowStream(t, log.NewSlice(0, half), log.NewSlice(half, half), log.NewSlice(half, log.NumRows()))
	probe := append([]string{"probe", "--quiet", "--filter", filter}, strings.Fields(c.flags)...)
	scanned := batchesOf(t, doWith(t, stream, append([]string{"scan", "--quiet", "--filter", filter, "-o", "-", "-"}, strings.Fields(c.flags)...)...))
	kept := batchesOf(t, doWith(t, stream, probe...))
	if got, want := rowsOf(t, kept), rowsOf(t, scanned); got != want {
		t.Errorf("%s: probe keeps the rows\n%s, scan\n%s", kind, got, want)
	}
	if len(kept) != 3 || !kept[0].Schema().Equal(log.Schema()) {
		t.Errorf("%d batches of schema %s, want 3 of %s", len(kept), kept[0].Schema(), log.Schema())
	}
	masks := batchesOf(t, doWith(t, stream, append(probe, "--mask")...))
	got := ""
	for i, rec := range masks {
		mask := rec.Column(0).(*array.Boolean)
		if rec.NumCols() != 1 || rec.ColumnName(0) != "may_match" || rec.Schema().Field(0).Nullable || mask.NullN() > 0 || rec.NumRows() != []int64{half, 0, log.NumRows() - half}[i] {
			t.Errorf("%s: batch %d of the mask: %v", kind, i, rec)
		}
		for row := range mask.Len() {
			got += map[bool]string{true: "+", false: "-"}[mask.Value(row)]
		}
	}
	if len(masks) != 3 || got != c.want {
		t.Errorf("%s: mask %s in %d batches, want %s", kind, got, len(masks), c.want)
	}
	if c.lines != "" {
		c.checkLines(t, probe)
	}
}

// checkLines compares the answers about NDJSON.
func (c probeCase) checkLines(t *testing.T, probe []string) {
	var in, passing, mask strings.Builder
	for i, value := range strings.Fields(c.lines) {
		line := fmt.Sprintf(" {\"other\": [\"}\", %d],\t\"k\": %s}%s", i, value, []string{"\n", "\r\n", "\n\n"}[i%3])
		in.WriteString(line)
		if c.want[i] == '+' {
			passing.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
		fmt.Fprintln(&mask, c.want[i] == '+')
	}
	rows := strings.ReplaceAll(passing.String(), "\n\n", "\n") // empty lines are left out
	if got := string(doWith(t, []byte(in.String()), probe...)); got != rows {
		t.Errorf("lines %q, want %q", got, rows)
	}
	if got := string(doWith(t, []byte(in.String()), append(probe, "--mask")...)); got != mask.String() {
		t.Errorf("mask of lines %q, want %q", got, &mask)
	}
}

// keyRecord returns a record of keys from JSON, and with numbered set the numbers of its
// rows.
func keyRecord(t *testing.T, types []arrow.DataType, values string, numbered bool) arrow.Record {
	t.Helper()
	var fields []arrow.Field
	for i, dt := range types {
		fields = append(fields, arrow.Field{Name: []string{"k", "k1"}[i], Type: dt, Nullable: true})
	}
	if len(types) == 1 {
		var rows []json.RawMessage
		if err := json.Unmarshal([]byte(values), &rows); err != nil {
			t.Fatal(err)
		}
		for i, v := range rows {
			rows[i] = json.RawMessage(fmt.Sprintf(`{"k": %s}`, v))
		}
		b, err := json.Marshal(rows)
		if err != nil {
			t.Fatal(err)
		}
		values = string(b)
	}
	meta := arrow.NewMetadata([]string{"origin"}, []string{"a test"})
	schema := arrow.NewSchema(fields, &meta)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(values), array.WithUseNumber())
	if err != nil {
		t.Fatal(err)
	}
	if !numbered {
		return rec
	}
	b := array.NewInt32Builder(memory.DefaultAllocator)
	for row := range rec.NumRows() {
		b.Append(int32(row))
	}
	schema = arrow.NewSchema(append([]arrow.Field{{Name: "row", Type: arrow.PrimitiveTypes.Int32}}, fields...), &meta)
	return array.NewRecord(schema, append([]arrow.Array{b.NewArray()}, rec.Columns()...), rec.NumRows())
}

// arrowStream returns records as an Arrow stream.
func arrowStream(t *testing.T, recs ...arrow.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(recs[0].Schema()))
	for _, rec := range recs {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// batchesOf reads an Arrow stream.
func batchesOf(t *testing.T, stream []byte) (recs []arrow.Record) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		r.Record().Retain()
		recs = append(recs, r.Record())
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return recs
}

// rowsOf returns the rows of records as text.
func rowsOf(t *testing.T, recs []arrow.Record) string {
	t.Helper()
	var out bytes.Buffer
	for _, rec := range recs {
		if err := array.RecordToJSON(rec, &out); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// doWith runs a command that must succeed over standard input, and returns its output.
func doWith(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	var out, said bytes.Buffer
	if code := run(args, bytes.NewReader(stdin), &out, &said); code != session.ExitDone {
		t.Fatalf("%q: exit code %d: %s", args, code, &said)
	}
	return out.Bytes()
}

// Each batch is answered before the next one is read.
func TestProbeAnswersAtOnce(t *testing.T) {
	filter := filepath.Join(t.TempDir(), "ids.bjf")
	ids := filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(ids, []byte("k\n7\n9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, "build", "--key", "k", "--key-type", "int64", "-o", filter, ids)
	int64s := []arrow.DataType{arrow.PrimitiveTypes.Int64}
	ask := func(t *testing.T, args ...string) (in io.WriteCloser, out io.Reader, wait func() error) {
		stdin, feed, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd, stdout, _ := start(t, stdin, append([]string{"probe", "--quiet", "--filter", filter}, args...)...)
		stdin.Close()
		return feed, stdout, cmd.Wait
	}
	t.Run("arrow", func(t *testing.T) {
		in, out, wait := ask(t, "--mask")
		w := ipc.NewWriter(in, ipc.WithSchema(keyRecord(t, int64s, `[]`, true).Schema()))
		var r *ipc.Reader
		for _, c := range []struct{ rows, want string }{{`[7, 8]`, "[true false]"}, {`[]`, "[]"}, {`[9]`, "[true]"}} {
			if err := w.Write(keyRecord(t, int64s, c.rows, true)); err != nil {
				t.Fatal(err)
			}
			if r == nil {
				var err error
				if r, err = ipc.NewReader(out); err != nil {
					t.Fatal(err)
				}
			}
			if !r.Next() || fmt.Sprint(r.Record().Column(0)) != c.want {
				t.Errorf("%s: %v, %v, want %s", c.rows, r.Record(), r.Err(), c.want)
			}
		}
		w.Close()
		in.Close()
		if r.Next() || r.Err() != nil {
			t.Errorf("%v, want the end", r.Err())
		}
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("lines", func(t *testing.T) {
		in, out, wait := ask(t, "--mask")
		answers := bufio.NewReader(out)
		for _, c := range []struct{ lines, want string }{{"7\n", "1\n"}, {"8\n\n9\n", "0\n1\n"}, {"10\n", "0\n"}} {
			fmt.Fprint(in, c.lines)
			got := make([]byte, len(c.want))
			if _, err := io.ReadFull(answers, got); err != nil || string(got) != c.want {
				t.Fatalf("%q: %q, %v, want %q", c.lines, got, err, c.want)
			}
		}
		in.Close()
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("csv", func(t *testing.T) {
		in, out, wait := ask(t, "--format", "csv")
		answers := bufio.NewReader(out)
		fmt.Fprint(in, "x,k\n1,7\n\"half a")
		for _, want := range []string{"x,k\n", "1,7\n"} {
			if got, err := answers.ReadString('\n'); err != nil || got != want {
				t.Fatalf("%q, %v, want %q", got, err, want)
			}
		}
		fmt.Fprint(in, "\nfield\",9\n")
		in.Close()
		if rest, err := io.ReadAll(answers); err != nil || string(rest) != "\"half a\nfield\",9\n" {
			t.Errorf("%q, %v", rest, err)
		}
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("ndjson", func(t *testing.T) {
		in, out, wait := ask(t)
		lines := bufio.NewReader(out)
		for _, line := range []string{`{"k":7}`, `{"k": 9, "x": "y"}`} {
			fmt.Fprintf(in, "{\"k\":8}\n%s\n", line)
			if got, err := lines.ReadString('\n'); got != line+"\n" {
				t.Fatalf("%q, %v, want %q", got, err, line)
			}
		}
		fmt.Fprint(in, `{"k":9}`) // without a line end
		in.Close()
		if rest, err := io.ReadAll(lines); err != nil || string(rest) != `{"k":9}` {
			t.Errorf("%q, %v", rest, err)
		}
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
}

// An input that ends too early leaves an answer without its end marker, and a bad line one
// with the answers before it.
func TestProbeOfBadInput(t *testing.T) {
	filter, ids := filepath.Join(t.TempDir(), "ids.bjf"), filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(ids, []byte("k\n7\n9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, "build", "--key", "k", "--key-type", "int64", "-o", filter, ids)
	rec := keyRecord(t, []arrow.DataType{arrow.PrimitiveTypes.Int64}, `[7, 8, 9]`, true)
	whole := arrowStream(t, rec)
	answer := doWith(t, whole, "probe", "--quiet", "--filter", filter)
	for _, c := range []struct{ in, out, want string }{
		{string(whole[:len(whole)-8]), string(answer[:len(answer)-8]), "ends without its end marker"},
		{string(whole[:len(whole)-20]), "", "standard input"},
		{"", "", "got nothing"},
		{"PAR1", "", "read from its end"},
		{"k,x\n7,1\n", "", "looks like a CSV header: want one ID a line (--format csv"},
		{"7\nx\n", "", "line 2: column k: mismatch: a value that does not parse: want integer"},
		{"{\"k\": 7}\n{\"k\": 8\n", "{\"k\": 7}\n", "line 2: corrupt: not one JSON object"},
		{"{\"k\": 7}\n\n{\"k\": 7, \"k\": 8}\n", "{\"k\": 7}\n", "line 3: column k: corrupt: a key that stands twice"},
		{"{\"k\": \"x\"}\n", "", "line 1: column k: mismatch: a value that does not parse: want integer"},
		{"{\"x\": 1}\n{\"x\": 1}\n{\"k\": {}}\n", "", "line 3: column k: mismatch"},
	} {
		var out, said bytes.Buffer
		code := run([]string{"probe", "--filter", filter}, strings.NewReader(c.in), &out, &said)
		if code != session.ExitFailed || out.String() != c.out || !strings.Contains(said.String(), c.want) {
			t.Errorf("%q: exit code %d, %q: %s: want %q and %q", c.in, code, &out, &said, c.out, c.want)
		}
	}
}

// A stream of before 0.15, whose messages have no marker before their length, is read by its
// first bytes, from a file and from standard input.
func TestOldArrowStream(t *testing.T) {
	t.Chdir(t.TempDir())
	rec := keyRecord(t, []arrow.DataType{arrow.PrimitiveTypes.Int64}, `[7, 8, 9]`, true)
	whole := arrowStream(t, rec)
	old := bytes.ReplaceAll(whole, []byte("\xff\xff\xff\xff"), nil)
	put(t, "old", old)
	put(t, "ids.csv", []byte("k\n7\n9\n"))
	works(t, "", "build", "--quiet", "--key", "k", "--key-type", "int64", "-o", "ids.bjf", "ids.csv")
	want := doWith(t, whole, "probe", "--quiet", "--filter", "ids.bjf")
	for _, args := range [][]string{{}, {"old"}} {
		if got := doWith(t, old, append([]string{"probe", "--quiet", "--filter", "ids.bjf"}, args...)...); !bytes.Equal(got, want) {
			t.Errorf("probe %v: %q, want %q", args, got, want)
		}
	}
	pipe, half := iotest.OneByteReader(bytes.NewReader(old[4:])), bytes.NewReader(old[:4])
	var out, said bytes.Buffer
	if code := run([]string{"probe", "--quiet", "--filter", "ids.bjf"}, io.MultiReader(half, pipe), &out, &said); code != session.ExitDone || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("probe of a slow pipe: exit code %d, %q: %s", code, &out, &said)
	}
	for _, log := range []string{"-", "old"} {
		if got := works(t, string(old), "join", "--quiet", "--ids", "ids.csv", "--on", "k", "--count", log); got != "2\n" {
			t.Errorf("join of %s: %s rows, want 2", log, got)
		}
	}
	if got := works(t, "", "inspect", "--check", "old"); !strings.Contains(got, "arrow-stream") || !strings.Contains(got, "every page was decoded") {
		t.Error(got)
	}
}

// The report counts rows and NULL keys. A key that no line has is worth a warning.
func TestProbeReport(t *testing.T) {
	filter, ids := filepath.Join(t.TempDir(), "ids.bjf"), filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(ids, []byte("k\n7\n9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, "build", "--key", "k", "--key-type", "int64", "-o", filter, ids)
	for _, format := range []string{"arrow", "ndjson"} {
		in := []byte("{\"k\":7}\n{\"k\":null}\n{\"k\":8}\n{}\n")
		if format == "arrow" {
			in = arrowStream(t, keyRecord(t, []arrow.DataType{arrow.PrimitiveTypes.Int64}, `[7, null, 8, null]`, true))
		}
		var said bytes.Buffer
		if code := run([]string{"probe", "--json", "--quiet", "--format", format, "--filter", filter}, bytes.NewReader(in), io.Discard, &said); code != session.ExitDone {
			t.Fatalf("exit code %d: %s", code, &said)
		}
		var r map[string]any
		if err := json.Unmarshal(said.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r["verb"] != "probe" || r["schema_version"] != 1.0 || r["rows_in"] != 4.0 || r["rows_out"] != 1.0 || r["keys_null"] != 2.0 || r["seconds"] == nil {
			t.Errorf("%s: %v", format, r)
		}
	}
	var out, said bytes.Buffer
	if code := run([]string{"probe", "--mask", "--filter", filter, "--key", "K"}, strings.NewReader("{\"k\":7}\n"), &out, &said); code != session.ExitDone || out.String() != "false\n" || !strings.Contains(said.String(), "no line has the key K") {
		t.Errorf("exit code %d: %q: %s", code, &out, &said)
	}
}
