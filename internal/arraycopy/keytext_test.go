package arraycopy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// keysOf reads a key with Read: each key, the number of rows, and the number of
// rows without a key.
func keysOf(t *testing.T, files []*source.File, column string) (all []string, rows, null int, err error) {
	t.Helper()
	var mu sync.Mutex
	o := keyscan.ReadOptions{Key: column, IDs: true, Threads: 2}
	gotRows, gotNulls, err := keyscan.Read(t.Context(), source.Split(files, dataset.Shard{}), o, func() (func(*keyscan.Keys) error, error) {
		return func(k *keyscan.Keys) error {
			mu.Lock()
			defer mu.Unlock()
			b := k.Batch
			rows, null = rows+b.Len, null+b.Len-len(b.Rows)
			for i := range b.Rows {
				all = append(all, string(b.Append(nil, i)))
			}
			return nil
		}, nil
	})
	if err == nil && (gotRows != int64(rows) || gotNulls != int64(null)) {
		t.Errorf("%s: counted %d rows, %d NULLs, want %d, %d", column, gotRows, gotNulls, rows, null)
	}
	return all, rows, null, err
}

// keysByRecords is keysOf via Arrow records.
func keysByRecords(t *testing.T, files []*source.File, column string) (all []string, rows, null int, err error) {
	t.Helper()
	paths, err := keys.ParseColumns(column)
	if err != nil {
		t.Fatal(err)
	}
	var b keys.Batch
	for r, err := range roomtest.Map(t.Context(), source.Split(files, dataset.Shard{}), 0, nil, roomtest.Pass) {
		if err != nil {
			return all, rows, null, err
		}
		enc, err := keys.NewEncoder(r.Record.Schema(), paths, keys.Options{})
		if err == nil {
			err = enc.Encode(r.Record, &b)
		}
		if err != nil {
			t.Fatal(err)
		}
		rows, null = rows+b.Len, null+b.Len-len(b.Rows)
		for i := range b.Rows {
			all = append(all, string(b.Append(nil, i)))
		}
		r.Record.Release()
	}
	return all, rows, null, nil
}

// Keys of text are the same whether lines are parsed directly into keys or into
// records. Keys of several columns, or of other types than integers and strings, always
// use records.
func TestTextKeys(t *testing.T) {
	dir := t.TempDir()
	var csv, tsv, lines, json strings.Builder
	csv.WriteString("id,b\r\n")
	tsv.WriteString("id\tb\n")
	for i := range cases.Count(5_000, 20_000, 20_000) {
		id := fmt.Sprint(i*i%60_000 - 100)
		if i%97 == 0 {
			id = ""
		} else {
			fmt.Fprintf(&lines, "%s\r\n", id)
		}
		fmt.Fprintf(&csv, "\"%s\",\"x\r\ny\"\r\n", id)
		fmt.Fprintf(&tsv, "%s\t%d\n\n", id, i)
		if id == "" {
			id = "null"
		}
		fmt.Fprintf(&json, "{\"b\": [], \"id\": %s}\n", id)
	}
	for name, text := range map[string]string{"a.csv": csv.String(), "a.tsv": tsv.String(), "a.txt": lines.String(), "a.ndjson": json.String()} {
		path := sourcetest.Put(t, dir+"/"+name, text)
		for _, id := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64} {
			for _, key := range []string{"id", "id,b"} {
				if key != "id" && name == "a.txt" {
					continue
				}
				files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Mem: sourcetest.Checked(t), Types: map[string]arrow.DataType{"id": id}}}, path)
				got, rows, null, err := keysOf(t, files, key)
				want, wantRows, wantNull, wantErr := keysByRecords(t, files, key)
				if err != nil || wantErr != nil {
					t.Fatal(name, id, err, wantErr)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s, %s: other keys", name, id, key)
				}
				sourcetest.Equal(t, "rows", rows, wantRows)
				sourcetest.Equal(t, "rows without a key", null, wantNull)
			}
		}
	}
}

// Errors of the work, of the text and of the context end the reading.
func TestTextKeysEnd(t *testing.T) {
	path := sourcetest.Put(t, t.TempDir()+"/a.txt", strings.Repeat("1\n", 200_000)+"x\n")
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Types: map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}}}, path)
	_, _, _, err := keysOf(t, files, "id")
	sourcetest.Says(t, "a bad line", err, fault.ErrMismatch, "a.txt: line 200001: column id")
	full := errors.New("full")
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		work func(*keyscan.Keys) error
		want error
	}{
		{func(*keyscan.Keys) error { return full }, full},
		{func(*keyscan.Keys) error { cancel(); return nil }, context.Canceled},
	} {
		o := keyscan.ReadOptions{Key: "id", IDs: true, Threads: 1}
		_, _, err := keyscan.Read(ctx, source.Split(files, dataset.Shard{}), o, func() (func(*keyscan.Keys) error, error) { return c.work, nil })
		if !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}

func TestBadLines(t *testing.T) {
	dir := t.TempDir()
	rec := sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}})
	parquet := sourcetest.Write(t, dir+"/a.parquet", 1, rec)
	csv := sourcetest.Put(t, dir+"/b.csv", "id\n1\nx\n2\n\n3,4\n")
	opts := source.Opening{OpenOptions: source.OpenOptions{Text: true, SkipBad: true, Types: map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}, Stdin: strings.NewReader("x\n1\n")}}
	files := roomtest.Open(t, opts, parquet, csv, "-")
	all, rows, null, err := keysOf(t, files, "id")
	if err != nil || len(all) != 4 || rows != 4 || null != 0 {
		t.Errorf("%d keys of %d rows, %d without, %v", len(all), rows, null, err)
	}
	for _, f := range files {
		n, lines, skips := f.BadLines()
		want := map[dataset.Format]string{dataset.Parquet: "0 [] false", dataset.CSV: "2 [3 6] true", dataset.Lines: "1 [1] true"}[f.Format()]
		sourcetest.Equal(t, f.Name(), fmt.Sprintf("%d %v %v", n, lines, skips), want)
	}
}
