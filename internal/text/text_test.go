package text

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// closing counts open readers.
type closing struct {
	io.Reader
	open *int
}

func (c closing) Close() error { *c.open--; return nil }

// given returns an opener of an input in memory; every reader of it must be closed.
func given(t testing.TB, s string) func() (io.ReadCloser, error) {
	open := 0
	t.Cleanup(func() {
		if open != 0 {
			t.Errorf("%d readers are still open", open)
		}
	})
	return func() (io.ReadCloser, error) {
		open++
		return closing{strings.NewReader(s), &open}, nil
	}
}

// all returns every row of a table as the text of its values; NULL is "∅".
func all(tab *Table, columns []int) (rows [][]string, err error) {
	for rec, err := range tab.Read(context.Background(), 0, columns) {
		if err != nil {
			return rows, err
		}
		for i := range int(rec.NumRows()) {
			row := []string{}
			for _, c := range rec.Columns() {
				switch {
				case c.IsNull(i):
					row = append(row, "∅")
				case c.DataType().ID() == arrow.STRING:
					row = append(row, strings.Clone(c.(*array.String).Value(i)))
				default:
					row = append(row, c.ValueStr(i))
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// read opens text under a name and reads it; all memory must be released.
func read(t testing.TB, name, text string, opts Options) ([][]string, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	opts.Mem = mem
	tab, err := Open(given(t, text), name, opts)
	if err != nil {
		return nil, err
	}
	rows, err := all(tab, nil)
	if err := tab.Close(); err != nil {
		t.Error(err)
	}
	mem.AssertSize(t, 0)
	return rows, err
}

func TestRows(t *testing.T) {
	for _, c := range []struct{ what, name, text, want string }{
		{"csv", "a.csv", "id,n\n1,x\n2,y\n", "[[1 x] [2 y]]"},
		{"no last line end", "a.csv", "id\n1\n2", "[[1] [2]]"},
		{"CR LF", "a.csv", "id,n\r\n1,x\r\n", "[[1 x]]"},
		{"byte order mark", "a.csv", "\xEF\xBB\xBFid\n1\n", "[[1]]"},
		{"quotes", "a.csv", "id,n\n\"a,\"\"b\",\"x\ny\"\n", "[[a,\"b x\ny]]"},
		{"Excel's delimiter", "a.csv", "sep=;\r\nid;n\r\n\"a;b\";1,5\r\n", "[[a;b 1,5]]"},
		{"Excel's delimiter in quotes", "a.csv", "\xEF\xBB\xBF\"SEP=\t\"\nid\tn\na,b\t1\n", "[[a,b 1]]"},
		{"no delimiter", "a.csv", "sep=;x,n\na,b\n", "[[a b]]"},
		{"NUL is a byte", "a.csv", "id\na\x00b\n\x00\n", "[[a\x00b] [\x00]]"},
		{"empty is NULL", "a.csv", "id,n\n,\"\"\nx,\n", "[[∅ ∅] [x ∅]]"},
		{"empty lines", "a.csv", "\nid,n\n\n1,2\n\n\n", "[[1 2]]"},
		{"CR LF in quotes stays", "a.csv", "id,n\r\n\"a\r\nb\",\"\r\"\r\n\"\n\r\n\r\r\n\",2", "[[a\r\nb \r] [\n\r\n\r\r\n 2]]"},
		{"quotes about names", "a.csv", "\"i\"\"d\",\"n\nm\"\n\"1\",\"\"\"\"\n", "[[1 \"]]"},
		{"CR alone", "a.csv", "id,n\n\r1,2\r3\n\r,\r\r\n", "[[\r1 2\r3] [\r \r]]"},
		{"CR alone", "a.txt", "1\r2\n\r\n\r\r\n3\r", "[[1\r2] [\r] [3]]"},
		{"CR at the end", "a.csv", "id\r\n1\r\n\r", "[[1]]"},
		{"lines of blanks", "a.txt", "1\n \n\t\n\n2\n", "[[1] [ ] [\t] [2]]"},
		{"lines of blanks", "a.csv", "id\n1\n \n\n2\n", "[[1] [ ] [2]]"},
		{"mark and empty lines", "a.csv", "\xEF\xBB\xBF\r\n\n\"id\"\r\n1", "[[1]]"},
		{"a mark alone", "a.txt", "\xEF\xBB\xBF", "[]"},
		{"a second mark", "a.txt", "\xEF\xBB\xBF\xEF\xBB\xBF1\n", "[[\xEF\xBB\xBF1]]"},
		{"lines have no header", "a.txt", "id\n1\n", "[[id] [1]]"},
		{"spaces stay", "a.csv", "id,n\n 1 , 2\n", "[[ 1   2]]"},
		{"upper case suffix", "A.CSV", "id\n1\n", "[[1]]"},
		{"header only", "a.csv", "id,n\n", "[]"},
		{"tsv", "a.tsv", "id\tn\n\"1\t\"x\"\r\n\t2\n\n3\t\n", "[[\"1 \"x\"] [∅ 2] [3 ∅]]"},
		{"lines", "a.txt", "\xEF\xBB\xBF a b \r\n\n\"c,d\"\n\r\ne", "[[ a b ] [\"c,d\"] [e]]"},
		{"ids", "dir.csv/a.ids", "1\n2\n", "[[1] [2]]"},
		{"no lines", "a.txt", "", "[]"},
		{"ndjson", "a.ndjson", `{"id":"x","n":1}` + "\n\n" + `{"n":2}` + "\r\n" + `{"id":null,"n":3,"late":[]}`, "[[x 1 ∅] [∅ 2 ∅] [∅ 3 []]]"},
		{"literal numbers", "a.jsonl", `{"a":12345678901234567890123,"b":1.10,"c":-0,"d":1E+400}`, "[[12345678901234567890123 1.10 -0 1E+400]]"},
		{"booleans, nested", "a.jsonl", ` { "a" : true , "b" : { "x" : [ 1 , "y z" ] } , "c":"" } `, `[[true {"x":[1,"y z"]} ]]`},
		{"escapes", "a.jsonl", `{"a\u0062":"\u00e9\n\ud83d\ude00\\ud800\ufffd"}`, "[[é\n😀\\ud800\ufffd]]"},
		{"no objects", "a.jsonl", "\n", "[]"},
		{"empty object", "a.jsonl", "{}\n{}\n", "[[] []]"},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, once := range []bool{false, true} {
				rows, err := read(t, c.name, c.text, Options{Once: once})
				if err != nil || fmt.Sprint(rows) != c.want {
					t.Errorf("once=%v: %v, %v\nwant %s", once, rows, err, c.want)
				}
			}
		})
	}
}

// A first row that has no names is a row as any other.
func TestNoHeader(t *testing.T) {
	for _, text := range []string{"a,b\rc\n", "\"a\",b\rc\n"} {
		rows, err := read(t, "a.csv", text+text, Options{NoHeader: true})
		if got, want := fmt.Sprint(rows), "[[a b\rc] [a b\rc]]"; err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if _, err := read(t, "a.csv", text, Options{}); err == nil {
			t.Errorf("%q: no error of a CR within names", text)
		}
	}
	if _, err := read(t, "a.csv", "\n", Options{NoHeader: true}); err == nil || strings.Contains(err.Error(), "names") {
		t.Errorf("no row: %v", err)
	}
}

func TestRefused(t *testing.T) {
	types := map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Int8}
	for _, c := range []struct {
		what, name, text string
		kind             error
		want             string // in the text of the error
	}{
		{"no header", "a.csv", "", fault.ErrCorrupt, "column names"},
		{"no header", "a.tsv", "\n\n", fault.ErrCorrupt, "column names"},
		{"two names", "a.csv", "a,b,a\n", fault.ErrCorrupt, "two columns have the same name"},
		{"empty name", "a.tsv", "a\t\tb\n", fault.ErrCorrupt, "column 2"},
		{"too few", "a.csv", "a,b\n1,2\n\"3\n\"\n", fault.ErrCorrupt, "a.csv: line 3:"},
		{"too many", "a.tsv", "a\tb\n\n1\t2\t3\n", fault.ErrCorrupt, "a.tsv: line 3:"},
		{"too few behind quoted lines", "a.csv", "a,b\r\n\"1\r\n\r\n\",2\r\n\r\n3\r\n", fault.ErrCorrupt, "a.csv: line 6:"},
		{"too many behind a mark", "a.csv", "\xEF\xBB\xBFa\n1\n\n2,3", fault.ErrCorrupt, "a.csv: line 4:"},
		{"too many in quotes", "a.csv", "a,b\n1,2\n1,\"2\n\",3,4\n", fault.ErrCorrupt, "a.csv: line 3:"},
		{"value behind a mark", "a.txt", "\xEF\xBB\xBF1\r\n\r\nx", fault.ErrMismatch, "a.txt: line 3: column n"},
		{"a value of blanks", "a.txt", "1\n \n", fault.ErrMismatch, "a.txt: line 2: column n"},
		{"CR alone", "a.txt", "1\r2\n3\n", fault.ErrMismatch, "a.txt: line 1: column n"},
		{"two names", "a.csv", "\n\na,\"a\"\n", fault.ErrCorrupt, "line 3"},
		{"JSON of blanks", "a.jsonl", "{}\n \n", fault.ErrCorrupt, "line 2"},
		{"bare quote behind quoted lines", "a.csv", "a,b\n\"\n\n\",x\ny,x\"y\n", fault.ErrCorrupt, "line 5: corrupt: a quote in"},
		{"behind a quote", "a.csv", "a\n\"x\"y\n", fault.ErrCorrupt, "line 2: corrupt: text after a closing quote"},
		{"bare quote", "a.csv", "a\nx\"y\n", fault.ErrCorrupt, "line 2"},
		{"open quote", "a.csv", "a\n1\n\"x\ny\n", fault.ErrCorrupt, "line 3: corrupt: a quote that is not closed"},
		{"value", "a.csv", "id,n\n1,2\n3,secret\n", fault.ErrMismatch, "a.csv: line 3: column n: mismatch: a value that does not parse: want int8"},
		{"value behind lines in quotes", "a.csv", "id,n\n\"1\n\n\",\"2\"\n\"\n\",128\n", fault.ErrMismatch, "line 6: column n"},
		{"json value", "a.jsonl", "{\"n\":1}\n\n{\"n\":1.0}", fault.ErrMismatch, "line 3: column n"},
		{"json array", "a.jsonl", "[1]", fault.ErrCorrupt, "line 1: corrupt: not one JSON object"},
		{"json number", "a.jsonl", "{}\n3\n", fault.ErrCorrupt, "line 2"},
		{"two objects", "a.jsonl", "{} {}", fault.ErrCorrupt, "line 1"},
		{"key twice", "a.jsonl", `{"a":1,"\u0061":2}`, fault.ErrCorrupt, "twice"},
		{"half a pair", "a.jsonl", `{"a":"\ud800"}`, fault.ErrCorrupt, "surrogate"},
		{"half a pair", "a.jsonl", `{"a":"\ud800\u0041"}`, fault.ErrCorrupt, "surrogate"},
		{"half a pair", "a.jsonl", `{"a":"\ud800\ue000"}`, fault.ErrCorrupt, "surrogate"},
		{"half a pair", "a.jsonl", `{"a":"\udc00"}`, fault.ErrCorrupt, "surrogate"},
		{"half a pair in a key", "a.jsonl", `{"\ud800":1}`, fault.ErrCorrupt, "surrogate"},
		{"not UTF-8", "a.jsonl", "{\"a\":\"\xff\"}", fault.ErrCorrupt, "UTF-8"},
		{"UTF-32", "a.csv", "\xFF\xFE\x00\x00i\x00\x00\x00", fault.ErrUnsupported, "UTF-32"},
		{"binary lines", "a.txt", "BZh91AY\n\x00\x01\n", fault.ErrUnsupported, "binary data, not text"},
		{"binary CSV", "a.csv", "a\n\"x\x00\x1F\"\n", fault.ErrUnsupported, "binary data"},
		{"binary TSV", "a.tsv", "a\n" + strings.Repeat("x\n", 30000) + "\x02\x00\n", fault.ErrUnsupported, "binary data"},
		{"unknown name", "ids.dat", "1", fault.ErrUnsupported, ".csv"},
		{"not compressed", "a.csv.gz", "a\n1\n", fault.ErrCorrupt, "not gzip"},
		{"not compressed", "a.csv.zst", "", fault.ErrCorrupt, "not zstd"},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, err := read(t, c.name, c.text, Options{Types: types, Column: "n"})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %v with %q", err, c.kind, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the value is shown: %v", err)
			}
		})
	}
}

// Long lines are refused before they are held in memory.
func TestLongLines(t *testing.T) {
	for _, name := range []string{"a.txt", "a.tsv", "a.csv", "a.jsonl"} {
		mem := &endless{head: "id\n\"", left: 1 << 30}
		_, err := func() ([][]string, error) {
			tab, err := Open(func() (io.ReadCloser, error) { return mem, nil }, name, Options{Once: true, MaxLineBytes: 100_000})
			if err != nil {
				return nil, err
			}
			defer tab.Close()
			return all(tab, nil)
		}()
		if !errors.Is(err, fault.ErrUnsupported) && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if taken := 1<<30 - mem.left; taken > 1<<20 {
			t.Errorf("%s: %d bytes were read", name, taken)
		}
	}
	for name, head := range map[string]string{"a.txt": "1\n\r\n\n", "a.tsv": "id\n\n1\n", "a.csv": "id\n\"\n\"\n", "a.jsonl": "{}\n{}\n\n"} {
		for _, line := range []string{strings.Repeat("x", 101), "\"" + strings.Repeat("\n", 101) + "\""} {
			_, err := read(t, name, head+line, Options{MaxLineBytes: 100})
			if line[0] == '"' && name != "a.csv" {
				continue
			}
			if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), name+": line 4:") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	line := strings.Repeat("x", 100)
	if rows, err := read(t, "a.txt", line+"\r\n"+line+"\n"+line, Options{MaxLineBytes: 100}); err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if _, err := read(t, "a.txt", line+"y\n", Options{MaxLineBytes: 100}); !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
}

// endless is a single line without end.
type endless struct {
	head string
	left int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, e.head)
	e.head = e.head[n:]
	for i := n; i < len(p); i++ {
		p[i] = 'x'
	}
	e.left -= len(p)
	return len(p), nil
}

func (e *endless) Close() error { return nil }

func gz(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

func zst(s string) string {
	w, _ := zstd.NewWriter(nil)
	defer w.Close()
	return string(w.EncodeAll([]byte(s), nil))
}

func TestCompressed(t *testing.T) {
	const text = "id\n1\n2\n3\n"
	for kind, pack := range map[string]func(string) string{"gz": gz, "zst": zst} {
		for _, name := range []string{"a.csv." + kind, "a.csv"} {
			for _, parts := range []string{pack(text), pack(text[:4]) + pack(text[4:])} {
				if rows, err := read(t, name, parts, Options{}); err != nil || fmt.Sprint(rows) != "[[1] [2] [3]]" {
					t.Errorf("%s: %v, %v", name, rows, err)
				}
			}
		}
		whole := pack(strings.Repeat(text, 3))
		for n := 5; n < len(whole); n++ {
			if rows, err := read(t, "a.ids."+kind, whole[:n], Options{}); !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), "a.ids") {
				t.Errorf("%s cut at %d: %d rows, %v", kind, n, len(rows), err)
			}
		}
		for _, junk := range []string{"x", "\n", "garbage", "\x00\x00\x00\x00"} {
			if _, err := read(t, "a.ids."+kind, whole+junk, Options{}); !errors.Is(err, fault.ErrCorrupt) {
				t.Errorf("%s with %q behind: %v", kind, junk, err)
			}
		}
		for i := range whole { // checksums detect flips, unless they only change the header
			b := []byte(whole)
			b[i] ^= 0x10
			read(t, "a.ids", string(b), Options{})
		}
	}
	// A window of 1 GiB is refused before it is allocated.
	frame := "\x28\xB5\x2F\xFD\x00\xA0\x01\x00\x00"
	if _, err := read(t, "a.csv", frame, Options{}); !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
}

var errStorage = errors.New("storage is gone")

// A storage error is not reported as corrupt input.
func TestStorageError(t *testing.T) {
	for _, text := range []string{"id\n1\n2\n", gz("id\n1\n"), zst("id\n1\n")} {
		for n := range len(text) {
			open := func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader(text[:n]), iotest.ErrReader(errStorage))), nil
			}
			tab, err := Open(open, "a.csv", Options{})
			if err == nil {
				_, err = all(tab, nil)
			}
			if !errors.Is(err, errStorage) || errors.Is(err, fault.ErrCorrupt) {
				t.Errorf("after %d bytes: %v", n, err)
			}
		}
	}
	fails := func() (io.ReadCloser, error) { return nil, os.ErrPermission }
	if _, err := Open(fails, "a.csv", Options{}); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
}

func TestProjection(t *testing.T) {
	tab, err := Open(given(t, "a,b,c\n1,x,3\n4,y,6\n"), "a.csv", Options{Size: 19, Types: map[string]arrow.DataType{"b": arrow.PrimitiveTypes.Int8}})
	if err != nil {
		t.Fatal(err)
	}
	if tab.NumGroups() != 1 || tab.GroupRows(0) != -1 || tab.GroupBytes(0) != 19 {
		t.Error("groups")
	}
	// b does not parse but is not selected.
	if rows, err := all(tab, []int{2, 0}); err != nil || fmt.Sprint(rows) != "[[3 1] [6 4]]" {
		t.Errorf("%v, %v", rows, err)
	}
	n := int64(0)
	for rec, err := range tab.Read(context.Background(), 0, []int{}) {
		if err != nil || rec.NumCols() != 0 {
			t.Fatal(rec, err)
		}
		n += rec.NumRows()
	}
	if n != 2 {
		t.Errorf("%d rows", n)
	}
	for _, bad := range [][]int{{3}, {-1}} {
		if _, err := all(tab, bad); err == nil {
			t.Errorf("columns %v", bad)
		}
	}
	for _, err := range tab.Read(context.Background(), 1, nil) {
		if err == nil {
			t.Error("group 1")
		}
	}
}

func TestWithTypes(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int64}
	tab, err := Open(given(t, "{\"a\":\"007\"}\n"), "a.jsonl", Options{Once: true})
	if err != nil {
		t.Fatal(err)
	}
	typed := tab.WithTypes(map[string]arrow.DataType{"a": dict, "z": arrow.PrimitiveTypes.Int8, "b": arrow.BinaryTypes.Binary})
	if got := fmt.Sprint(typed.Schema().Fields()); !strings.Contains(got, "a: type=int64") || typed.Schema().NumFields() != 1 {
		t.Error(got)
	}
	if tab.Schema().NumFields() != 1 || tab.Schema().Field(0).Type.ID() != arrow.STRING {
		t.Error("the first table has changed")
	}
	if rows, err := all(typed, nil); err != nil || fmt.Sprint(rows) != "[[7]]" {
		t.Errorf("%v, %v", rows, err)
	}
	if _, err := all(tab, nil); err == nil {
		t.Error("standard input was read twice")
	}
	bad := map[string]arrow.DataType{"a": arrow.ListOf(arrow.PrimitiveTypes.Int8)}
	if _, err := all(tab.WithTypes(bad), nil); !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
	if _, err := Open(given(t, "a\n"), "a.csv", Options{Types: bad}); !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
}

// NUL beside another control character, or 32 NULs, in the first 64 KiB are found, however the
// bytes arrive. A NUL in a key is a byte like others.
func TestBinary(t *testing.T) {
	for _, c := range []struct {
		at   int // position of the NUL
		text string
		bad  bool
	}{
		{0, "\x00\x01", true}, {1, "\x1F\x00", true}, {4, "\x00x\n\b", true}, {readSize - 2, "\x00\x01", true}, {readSize - 1, "\x00\x01", false}, {readSize + 100, "\x00\x01", false},
		{4, strings.Repeat("\x00", 32), true}, {4, strings.Repeat("\x00", 31), false}, {0, "a\x00b", false}, {6, "\x00", false}, {7, "a\x00\n\x00b\n\t\x00", false},
	} {
		text := strings.Repeat("x\n", c.at/2) + "y"[:c.at%2] + c.text + "\n"
		open := func() (io.ReadCloser, error) {
			return io.NopCloser(iotest.HalfReader(strings.NewReader(text))), nil
		}
		tab, err := Open(open, "a.txt", Options{})
		if err == nil {
			_, err = all(tab, nil)
		}
		if c.bad != errors.Is(err, fault.ErrUnsupported) || !c.bad && err != nil {
			t.Errorf("%q at %d: %v", c.text, c.at, err)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]Format{
		"a.csv": CSV, "A.TSV.GZ": TSV, "a.txt.zst": Lines, "a.ids.zstd": Lines,
		"a.jsonl": NDJSON, "a.parquet": Auto, "a.gz": Auto, "a.csv.bz2": Auto,
	} {
		if f, ok := FormatOf(name); f != want || ok != (f != Auto) {
			t.Errorf("%s: format %d, %t", name, f, ok)
		}
	}
}

// The columns are those of the first thousand objects.
func TestLateKeys(t *testing.T) {
	text := strings.Repeat("{\"a\":1}\n", 999) + "{\"b\":2}\n{\"c\":3}\n"
	rows, err := read(t, "a.jsonl", text, Options{})
	if err != nil || len(rows) != 1001 || fmt.Sprint(rows[998:]) != "[[1 ∅] [∅ 2] [∅ ∅]]" {
		t.Errorf("%v, %v", rows[998:], err)
	}
	rows, err = read(t, "a.jsonl", text, Options{Types: map[string]arrow.DataType{"c": arrow.PrimitiveTypes.Int32}})
	if err != nil || fmt.Sprint(rows[1000]) != "[∅ ∅]" { // a type does not create a column
		t.Errorf("%v, %v", rows[1000], err)
	}
}

func TestBatchesAndContext(t *testing.T) {
	var b strings.Builder
	for i := range batchRows + 10 {
		fmt.Fprintln(&b, i)
	}
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	tab, err := Open(given(t, b.String()), "a.txt", Options{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	for rec, err := range tab.Read(context.Background(), 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, rec.NumRows())
	}
	if !slices.Equal(sizes, []int64{batchRows, 10}) {
		t.Error(sizes)
	}
	for range tab.Read(context.Background(), 0, nil) {
		break // must not leak
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for _, err := range tab.Read(ctx, 0, nil) {
		cancel()
		if n++; n == 2 && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	big := strings.Repeat(strings.Repeat("x", 1<<20)+"\n", 20)
	tab, err = Open(given(t, big), "a.txt", Options{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range tab.Read(context.Background(), 0, nil) {
		if err != nil || rec.NumRows() > 16 {
			t.Fatal(rec.NumRows(), err)
		}
	}
}

func TestChanged(t *testing.T) {
	text := "a,b\n1,2\n"
	tab, err := Open(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, "a.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	text = "b,a\n1,2\n"
	if _, err := all(tab, nil); !errors.Is(err, fault.ErrMismatch) {
		t.Error(err)
	}
}
