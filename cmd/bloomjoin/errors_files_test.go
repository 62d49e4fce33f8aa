package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pg "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Rows of the logs and ID sets of the cases.
type (
	visit struct {
		UserID  int64  `parquet:"user_id"`
		URL     string `parquet:"url"`
		Country string `parquet:"country"`
	}
	namedVisit struct { // user_id is text
		UserID string `parquet:"user_id"`
		URL    string `parquet:"url"`
	}
	laterVisit struct { // a column more
		UserID  int64  `parquet:"user_id"`
		URL     string `parquet:"url"`
		Country string `parquet:"country"`
		Agent   string `parquet:"agent"`
	}
	anonymous struct { // no key
		URL string `parquet:"url"`
	}
	visitors struct { // a repeated key
		Users []int64 `parquet:"users,list"`
	}
	account struct { // key in a struct
		User struct {
			ID   int64  `parquet:"id"`
			Name string `parquet:"name"`
		} `parquet:"user"`
	}
)

// makeErrorFiles writes the input files of the cases.
func makeErrorFiles(t *testing.T, dir string) {
	t.Helper()
	t.Chdir(dir)
	visits := func(from int) (rows []visit) {
		for i := range 1000 {
			rows = append(rows, visit{int64(from + i), fmt.Sprint("/page/", i%7), []string{"DE", "FR", "NL"}[i%3]})
		}
		return rows
	}
	log := parquetOf(t, visits(0))
	put(t, "logs/monday.parquet", log)
	put(t, "logs/tuesday.parquet", parquetOf(t, visits(1000)))
	put(t, "text-keys.parquet", parquetOf(t, []namedVisit{{"7", "/"}, {"57", "/"}}))
	put(t, "later.parquet", parquetOf(t, []laterVisit{{7, "/", "DE", "curl"}}))
	put(t, "no-key.parquet", parquetOf(t, []anonymous{{"/"}}))
	put(t, "lists.parquet", parquetOf(t, []visitors{{[]int64{7, 57}}}))
	put(t, "structs.parquet", parquetOf(t, make([]account, 3)))

	// Damaged logs.
	put(t, "cut.parquet", log[:len(log)-100])
	put(t, "empty.parquet", nil)
	flipped := bytes.Clone(log)
	flipped[1000] ^= 0x10
	put(t, "flipped.parquet", flipped)
	footer := len(log) - 8 - int(binary.LittleEndian.Uint32(log[len(log)-8:]))
	m, _, err := meta.DecodeFooter(log[footer : len(log)-8])
	if err != nil {
		t.Fatal(err)
	}
	m.RowGroups[0].Columns[0].MetaData.Statistics.NullCount.V = 5
	untrue, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	untrue = append(untrue, binary.LittleEndian.AppendUint32(nil, uint32(len(untrue)))...)
	put(t, "untrue.parquet", slices.Concat(log[:footer], untrue, []byte("PAR1")))
	put(t, "encrypted.parquet", append(bytes.Clone(log[:len(log)-4]), "PARE"...))
	put(t, "flipped.arrow", flippedArrow(t))
	put(t, "v1.feather", []byte("FEA1\x00\x00\x00\x00\x01\x00\x00\x00FEA1"))
	put(t, "mixed/monday.parquet", log)
	put(t, "mixed/notes.txt", []byte("what the columns mean\n"))
	put(t, "iceberg/data/part-0.parquet", log)
	put(t, "iceberg/metadata/v1.metadata.json", []byte(`{"format-version": 2, "location": "iceberg", "schemas": [{"fields": []}], "partition-specs": [{"fields": []}], "current-snapshot-id": 5}`))
	put(t, "delta/part-0.parquet", log)
	put(t, "delta/_delta_log/00000000000000000000.json", []byte("{}\n"))
	put(t, "no-data/README.md", []byte("nothing here yet\n"))
	if err := os.Mkdir("empty", 0o777); err != nil {
		t.Fatal(err)
	}

	// ID sets.
	put(t, "ids.csv", []byte("user_id,name\n7,Ann\n57,Bob\n"))
	put(t, "ids.txt", []byte("7\n57\n"))
	put(t, "ids.ndjson", []byte(`{"user_id": 7}`+"\n"+`{"user_id": 57}`+"\n"))
	put(t, "ids.parquet", parquetOf(t, []visit{{7, "/", "DE"}, {57, "/", "FR"}}))
	put(t, "names.csv", []byte("user_id\nann\nbob\n"))
	put(t, "bad-value.csv", []byte("user_id,name\n7,Ann\n5.7,Bob\n8,Eve\n"))
	put(t, "many.csv", []byte("user_id"+manyNames(1500)+"\n7"+strings.Repeat(",1", 1500)+"\n"))
	put(t, "ragged.csv", []byte("user_id,name\n7,Ann\n57\n8,Eve\n"))
	put(t, "quote.csv", []byte("user_id,name\n7,\"Ann\n57,Bob\n"))
	put(t, "after-quote.csv", []byte("user_id,name\n7,\"Ann\"x\n57,Bob\n"))
	put(t, "no-header.csv", nil)
	put(t, "twice.csv", []byte("user_id,name,user_id\n7,Ann,7\n"))
	put(t, "unnamed.csv", []byte("user_id,,name\n7,x,Ann\n"))
	put(t, "bad.ndjson", []byte(`{"user_id": 7}`+"\n"+`{"user_id": 57`+"\n"+`{"user_id": 8}`+"\n"))
	put(t, "values.ndjson", []byte(`{"user_id": 7}`+"\n"+`{"user_id": "abc"}`+"\n"))
	put(t, "bad-value.txt", []byte("7\n57\nabc\n8\n"))
	put(t, "no-uuid.txt", []byte("00000000-0000-0000-0000-000000000007\nann\n00000000-0000-0000-0000-000000000008\n"))
	put(t, "no-host.txt", []byte("example.com\n/path\nexample.org\n"))
	put(t, "all-bad.txt", []byte("a\nb\nc\n"))
	put(t, "json-array.json", []byte(`[{"user_id": 7}, {"user_id": 57}]`+"\n"))
	put(t, "utf16.csv", utf16Of("user_id\n7\n57\n"))
	put(t, "utf16.txt", utf16Of("7\n57\n"))
	put(t, "no-mark.csv", utf16Of("user_id\n7\n57\n")[2:])
	put(t, "half.txt", append(utf16Of("ann\nbob\n"), 0x3d, 0xd8))
	put(t, "latin1.csv", []byte("user_id,name\nann,Ann\ncaf\xe9,Bob\n"))
	put(t, "latin1-name.csv", []byte("user_id,pr\xe9nom\nann,Ann\n"))
	put(t, "latin1.ndjson", []byte("{\"user_id\": \"ann\"}\n{\"user_id\": \"caf\xe9\"}\n"))
	put(t, "windows.txt", []byte("ann\n100\x80\n"))
	put(t, "cr.txt", []byte("ann\rbob\r"))
	put(t, "cr-lf.csv", []byte("user_id,name\r7,Ann\r57,Bob\r\n"))
	put(t, "cr-lf.txt", []byte("ann\rbob\r\n"))
	put(t, "binary.txt", []byte("7\n\x00\x01\x02\x00\n"))
	put(t, "long.txt", []byte("7\n"+strings.Repeat("8", 17<<20)+"\n"))
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	fmt.Fprint(w, "user_id\n"+strings.Repeat("7\n57\n", 1000))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, "cut.csv.gz", gz.Bytes()[:gz.Len()-9])
	put(t, "not-zstd.csv.zst", []byte("user_id\n7\n"))

	// Filters.
	for _, line := range []string{
		"bloomjoin build --key user_id --key-type int64 --kind bloom -o users.bjf ids.csv",
		"bloomjoin build --key user_id --key-type int64 --kind exact -o exact.bjf ids.csv",
		"bloomjoin build --key user_id -o names.bjf names.csv",
		"bloomjoin build --key user_id --normalize lower -o lower.bjf names.csv",
		"bloomjoin build --key user_id --normalize lower,ascii-only -o ascii.bjf names.csv",
		"bloomjoin build --key user_id --key-type int64 --expect 100 --kind bloom --shard 0/3 -o part-0.bjf ids.csv",
		"bloomjoin build --key user_id --key-type int64 --expect 100 --kind bloom --shard 1/3 -o part-1.bjf ids.csv",
		"bloomjoin build --key user_id --key-type int64 --expect 100 --kind bloom --shard 2/3 -o part-2.bjf ids.csv",
		"bloomjoin build --key user_id --key-type int64 --expect 200 --kind bloom --shard 2/3 -o other-2.bjf ids.csv",
		"bloomjoin build --key user_id --key-type int64 --kind bloom --geometry split-256 -o split-256.bjf ids.csv",
		"bloomjoin build --key user_id --key-type int64 --kind bloom --geometry split-512 -o split-512.bjf ids.csv",
		"bloomjoin build --key user_id,country -o pairs.bjf ids.parquet",
		"bloomjoin build --key user_id --key-type int64 --kind bloom --capacity 1000 -o room.bjf ids.csv",
		"bloomjoin build --key user_id --kind bloom --capacity 8000000 --fpr 0.0001 -o large.bjf ids.parquet",
	} {
		if text, code := runLine(t, line); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, text)
		}
	}
	filter, err := os.ReadFile("users.bjf")
	if err != nil {
		t.Fatal(err)
	}
	put(t, "cut.bjf", filter[:len(filter)-9])
	filter[len(filter)/2] ^= 0x10
	put(t, "flipped.bjf", filter)
}

// put writes a file and creates its parent directories.
func put(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// flippedArrow returns an Arrow file whose buffer of user_id begins a byte too late.
func flippedArrow(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	ids.AppendValues([]int64{7, 57, 8, 58}, nil)
	col, field := ids.NewArray(), arrow.Field{Name: "user_id", Type: arrow.PrimitiveTypes.Int64}
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{field, {Name: "n", Type: field.Type}}, nil), []arrow.Array{col, col}, 4)
	w, err := arrowipc.NewFileWriter(&b, rec.Schema(), arrowipc.WriterOptions{})
	if err == nil {
		err = w.Write(rec)
	}
	if _, _, closed := w.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	at := bytes.Index(b.Bytes(), binary.LittleEndian.AppendUint64(make([]byte, 8), 32)) // offset and length
	if at < 0 {
		t.Fatal("no buffer of 32 bytes")
	}
	b.Bytes()[at] = 1
	return b.Bytes()
}

// parquetOf writes rows in two row groups, with parquet-go as an independent writer.
func parquetOf[T any](t *testing.T, rows []T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pg.NewGenericWriter[T](&b, pg.MaxRowsPerRowGroup(500), pg.CreatedBy("test", "1", "1"))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// utf16Of encodes text as Windows programs do.
func utf16Of(s string) []byte {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// manyNames returns n names of columns after another one, as in CSV.
func manyNames(n int) (names string) {
	for i := range n {
		names += fmt.Sprintf(",c%d", i)
	}
	return names
}
