package arraycopy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// rowText returns text in a format with rows 0 to n-1, whose fields have line ends where
// the format allows it.
func rowText(format dataset.Format, n int) string {
	var b strings.Builder
	if format == dataset.CSV || format == dataset.TSV {
		b.WriteString("\n\nid" + map[dataset.Format]string{dataset.CSV: ",", dataset.TSV: "\t"}[format] + "note\n")
	}
	for i := range n {
		end := []string{"\n", "\r\n", "\n\n", "\n"}[i%4*(i%4)%4]
		switch format {
		case dataset.CSV:
			fmt.Fprintf(&b, []string{"%d,\"\n%d\n\"\"\n,\"", "\"%d\",%d", "%d,\"\"\"\n,%d\""}[i%3*(i%3)%3]+end, i, -i)
		case dataset.TSV:
			fmt.Fprintf(&b, "%d\t\"%d"+end, i, -i)
		case dataset.NDJSON:
			fmt.Fprintf(&b, "{\"id\":%d,\"note\":\"\\n\\\"%d\"}"+end, i, -i)
		default:
			fmt.Fprintf(&b, "%d"+end, i)
		}
	}
	return b.String()
}

// idsOf returns the keys of the pieces in ascending order of their text.
func idsOf(t *testing.T, pieces []source.Piece, o keyscan.ReadOptions) (ids []string, err error) {
	t.Helper()
	var mu sync.Mutex
	_, _, err = keyscan.Read(t.Context(), pieces, o, func() (func(*keyscan.Keys) error, error) {
		return func(k *keyscan.Keys) error {
			mu.Lock()
			defer mu.Unlock()
			for i := range k.Batch.Rows {
				ids = append(ids, string(k.Batch.Append(nil, i)))
			}
			return nil
		}, nil
	})
	slices.Sort(ids)
	return ids, err
}

// Text is divided among any number of workers, with any number of threads and any size
// of row groups: each row belongs to one worker, whichever way it is read.
func TestTextInShards(t *testing.T) {
	const rows = 300
	for format, name := range map[dataset.Format]string{dataset.Lines: "a.ids", dataset.CSV: "a.csv", dataset.TSV: "a.tsv", dataset.NDJSON: "a.ndjson"} {
		path := sourcetest.Put(t, filepath.Join(t.TempDir(), name), rowText(format, rows))
		var want []string
		for i := range rows {
			want = append(want, fmt.Sprint(i))
		}
		slices.Sort(want)
		for n := uint32(1); n <= 40; n += 1 + n/uint32(cases.Count(2, 4, 41)) {
			size := int64(1 + n*n%59)
			files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true}, TextRange: size}, path)
			o := keyscan.ReadOptions{Key: "id", IDs: true, Threads: int(n) % 5}
			byRecords := n%3 == 0 && format != dataset.Lines
			var ids []string
			groups := 0
			for i := range n {
				pieces := source.Split(files, dataset.Shard{Index: i, Of: n})
				for _, p := range pieces {
					groups += p.Hi - p.Lo
				}
				if byRecords {
					got, err := mapped(pieces, 1+int(n)%4)
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, got...)
					continue
				}
				got, err := idsOf(t, pieces, o)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, got...)
			}
			slices.Sort(ids)
			if !slices.Equal(ids, want) || groups != files[0].NumGroups() || groups < rows/60 {
				t.Fatalf("%s by %d bytes, %d shards: %d IDs of %d, %d row groups of %d", name, size, n, len(ids), rows, groups, files[0].NumGroups())
			}
		}
	}
}

// mapped returns the first column of the pieces, which are read as records, in order.
func mapped(pieces []source.Piece, threads int) (ids []string, err error) {
	for r, err := range roomtest.Map(context.Background(), pieces, threads, nil, roomtest.Pass) {
		if err != nil {
			return nil, err
		}
		for i := range int(r.Record.NumRows()) {
			ids = append(ids, strings.Clone(r.Record.Column(0).ValueStr(i)))
		}
		r.Record.Release()
	}
	return ids, nil
}

// Records of text come in the order of the lines.
func TestTextRangesInOrder(t *testing.T) {
	path := sourcetest.Put(t, filepath.Join(t.TempDir(), "a.csv"), rowText(dataset.CSV, 200))
	ids, err := mapped(source.Split(roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true}, TextRange: 40}, path), dataset.Shard{}), 4)
	if err != nil || len(ids) != 200 {
		t.Fatal(len(ids), err)
	}
	for i, id := range ids {
		if id != fmt.Sprint(i) {
			t.Fatalf("row %d is %s", i, id)
		}
	}
}

// Line numbers count from the start of the file, whichever worker reads the line.
func TestTextRangesNumberLines(t *testing.T) {
	content := "id,b\n" + strings.Repeat("1,\"\n\"\n", 100) + "x,2\n" + strings.Repeat("3,4\n", 200)
	path := sourcetest.Put(t, filepath.Join(t.TempDir(), "a.csv"), content)
	types := map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}
	for n := uint32(1); n < 20; n += 3 {
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Types: types}, TextRange: 30}, path)
		var failed []error
		for i := range n {
			if _, err := idsOf(t, source.Split(files, dataset.Shard{Index: i, Of: n}), keyscan.ReadOptions{Key: "id", IDs: true}); err != nil {
				failed = append(failed, err)
			}
		}
		if len(failed) != 1 || !strings.Contains(failed[0].Error(), "a.csv: line 202: column id: mismatch") {
			t.Errorf("%d shards: %v", n, failed)
		}
		files = roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Types: types, SkipBad: true}, TextRange: 30}, path)
		rows := 0
		for i := range n {
			ids, err := idsOf(t, source.Split(files, dataset.Shard{Index: i, Of: n}), keyscan.ReadOptions{Key: "id", IDs: true})
			if err != nil {
				t.Fatal(err)
			}
			rows += len(ids)
		}
		if count, first, _ := files[0].BadLines(); rows != 300 || count != 1 || !slices.Equal(first, []int{202}) {
			t.Errorf("%d shards: %d rows, %d bad lines %v", n, rows, count, first)
		}
	}
}

// Bad lines may fill a row group, but not most of what is read.
func TestTextRangesJudgedTogether(t *testing.T) {
	types := map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}
	for bad, ok := range map[int]bool{40: true, 101: false} {
		path := sourcetest.Put(t, filepath.Join(t.TempDir(), "a.ids"), strings.Repeat("x\n", bad)+strings.Repeat("1\n", 100))
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Types: types, SkipBad: true}, TextRange: 10}, path)
		_, err := idsOf(t, source.Split(files, dataset.Shard{}), keyscan.ReadOptions{Key: "id", IDs: true})
		if ok != (err == nil) {
			t.Errorf("%d bad lines: %v", bad, err)
		}
		if !ok {
			sourcetest.Says(t, "most lines", err, fault.ErrMismatch, "line 1:", "too many bad lines", "101 of 201")
		}
	}
}

// Long lines in many row groups are read one after the other, in either way of reading,
// without waiting for each other forever.
func TestTextRangesWithLongLines(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,b\n")
	for i := range 12 {
		fmt.Fprintf(&b, "%d,\"%s\"\n", i, strings.Repeat("x\n", 800<<10))
	}
	path := sourcetest.Put(t, filepath.Join(t.TempDir(), "a.csv"), b.String())
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Memory: 256 << 20}, TextRange: 1 << 20}, path)
	if files[0].NumGroups() < 10 {
		t.Fatal(files[0].NumGroups())
	}
	ids, err := mapped(source.Split(files, dataset.Shard{}), 6)
	if err != nil || len(ids) != 12 {
		t.Fatal(len(ids), err)
	}
	if ids, err = idsOf(t, source.Split(files, dataset.Shard{}), keyscan.ReadOptions{Key: "id", IDs: true, Threads: 6}); err != nil || len(ids) != 12 {
		t.Fatal(len(ids), err)
	}
}

// Each byte of text over a network is announced, and read about once; CSV is not divided,
// since the quotes before a row group would have to be read.
func TestTextRangesFar(t *testing.T) {
	dir := t.TempDir()
	for name, divided := range map[string]bool{"a.ids": true, "a.ndjson": true, "a.csv": false} {
		rows := 200_000
		if name == "a.ids" { // its lines are short
			rows = 320_000
		}
		path := sourcetest.Put(t, filepath.Join(dir, name), rowText(map[string]dataset.Format{"a.ids": dataset.Lines, "a.ndjson": dataset.NDJSON, "a.csv": dataset.CSV}[name], rows))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		remote := &teststore.Remote{Storage: storage.Local()}
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Store: remote}, TextRange: 1 << 20}, path)
		if (files[0].NumGroups() > 1) != divided || (files[0].Undivided() == "") != divided {
			t.Errorf("%s: %d row groups, %q", name, files[0].NumGroups(), files[0].Undivided())
		}
		remote.Counts()
		ids, err := idsOf(t, source.Split(files, dataset.Shard{}), keyscan.ReadOptions{Key: "id", IDs: true, Threads: 2})
		if err != nil || len(ids) != rows {
			t.Fatal(name, len(ids), err)
		}
		c := remote.Counts()
		if c.Unannounced > 0 || c.Kept > 0 || c.Read > info.Size()*9/8 || c.Announced > info.Size()*9/8+int64(source.LeastAhead)*2 {
			t.Errorf("%s of %d bytes in %d row groups: %+v", name, info.Size(), files[0].NumGroups(), c)
		}
	}
}
