package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
)

func generated(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := run(append(args, dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// values reads a column with another library than the writer's, row by row.
func values[T comparable](t *testing.T, path string) (all []T) {
	t.Helper()
	type row struct {
		ID T `parquet:"id"`
	}
	rows, err := parquet.ReadFile[row](path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		all = append(all, r.ID)
	}
	return all
}

// apart checks the number of distinct keys in the files, that all keys in members are
// in the set, and that none in outside is.
func apart[T comparable](t *testing.T, ids []T, distinct int, members, outside []T) {
	t.Helper()
	set := map[T]bool{}
	for _, id := range ids {
		set[id] = true
	}
	if len(set) != distinct {
		t.Errorf("%d distinct keys, want %d", len(set), distinct)
	}
	in := map[T]bool{}
	for _, id := range members {
		in[id] = true
		if !set[id] {
			t.Fatalf("a member that is not in the set")
		}
	}
	if len(members) == 0 || len(in) != len(members) {
		t.Errorf("%d members, %d distinct", len(members), len(in))
	}
	others := map[T]bool{}
	for _, id := range outside {
		others[id] = true
		if set[id] {
			t.Fatalf("a key outside that is in the set")
		}
	}
	if len(others) != len(outside) {
		t.Errorf("%d keys outside, %d distinct", len(outside), len(others))
	}
}

func TestIntegers(t *testing.T) {
	dir := generated(t, "-set", "int64", "-rows", "20000", "-files", "2", "-outside", "3000")
	ids := append(values[int64](t, dir+"/ids/part-00.parquet"), values[int64](t, dir+"/ids/part-01.parquet")...)
	if len(ids) != 20000 {
		t.Errorf("%d rows", len(ids))
	}
	for i, id := range ids {
		if want := int64(keyset.Sparse().At(uint64(i))); id != want {
			t.Fatalf("row %d is %d, want %d", i, id, want)
		}
	}
	outside := values[int64](t, dir+"/outside.parquet")
	if len(outside) != 3000 {
		t.Errorf("%d rows outside", len(outside))
	}
	apart(t, ids, 20000, values[int64](t, dir+"/members.parquet"), outside)
}

func TestDense(t *testing.T) {
	dir := generated(t, "-set", "dense", "-rows", "10000", "-outside", "3000")
	ids := values[int64](t, dir+"/ids/part-00.parquet")
	for _, id := range ids {
		if id < 0 || id >= 40000 {
			t.Fatalf("key %d is not of the sequence", id)
		}
	}
	apart(t, ids, 10000, values[int64](t, dir+"/members.parquet"), values[int64](t, dir+"/outside.parquet"))
}

func TestStrings(t *testing.T) {
	dir := generated(t, "-set", "string", "-rows", "10000", "-outside", "3000")
	ids, size := values[string](t, dir+"/ids/part-00.parquet"), 0
	for _, id := range ids {
		if len(id) < keyset.MinText || len(id) > keyset.MaxText {
			t.Fatalf("a string of %d bytes", len(id))
		}
		size += len(id)
	}
	if mean := float64(size) / float64(len(ids)); mean < 25.5 || mean > 26.5 {
		t.Errorf("%.1f bytes on average, want 26", mean)
	}
	apart(t, ids, 10000, values[string](t, dir+"/members.parquet"), values[string](t, dir+"/outside.parquet"))
}

func TestRepeated(t *testing.T) {
	dir := generated(t, "-set", "repeated", "-rows", "40000", "-distinct", "200", "-files", "4", "-outside", "500")
	var ids []int64
	for i := range 4 {
		ids = append(ids, values[int64](t, fmt.Sprintf("%s/ids/part-%02d.parquet", dir, i))...)
	}
	if len(ids) != 40000 {
		t.Errorf("%d rows", len(ids))
	}
	apart(t, ids, 200, values[int64](t, dir+"/distinct/ids.parquet"), values[int64](t, dir+"/outside.parquet"))
	apart(t, ids, 200, values[int64](t, dir+"/members.parquet"), nil)
}

func TestTextLines(t *testing.T) {
	dir := generated(t, "-set", "text", "-rows", "10000", "-outside", "500")
	packed, err := os.ReadFile(dir + "/ids/part-00.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range lines {
		if want := fmt.Sprint(keyset.Sparse().At(uint64(i))); line != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
	apart(t, lines, 10000, values[string](t, dir+"/members-text.parquet"), values[string](t, dir+"/outside-text.parquet"))
	var byValue []string
	for _, id := range values[int64](t, dir+"/outside.parquet") {
		byValue = append(byValue, fmt.Sprint(id))
	}
	if fmt.Sprint(byValue) != fmt.Sprint(values[string](t, dir+"/outside-text.parquet")) {
		t.Error("the logs by value and as text differ")
	}
}

// Files have one required column, snappy compression, row groups of a hundredth of the
// file, and a dictionary only for duplicates.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		set        string
		dictionary bool
	}{{"int64", false}, {"repeated", true}} {
		dir := generated(t, "-set", c.set, "-rows", "400000", "-distinct", "400000", "-outside", "10")
		p, f := open(t, dir+"/ids/part-00.parquet")
		defer f.Close()
		if n := len(p.RowGroups()); n != groups {
			t.Errorf("%s: %d row groups", c.set, n)
		}
		for _, group := range p.Metadata().RowGroups {
			column := group.Columns[0].MetaData
			if len(group.Columns) != 1 || column.Codec.String() != "SNAPPY" || (column.DictionaryPageOffset > 0) != c.dictionary {
				t.Fatalf("%s: %d columns, %s, dictionary at %d", c.set, len(group.Columns), column.Codec, column.DictionaryPageOffset)
			}
		}
		if p.Root().Columns()[0].Optional() {
			t.Errorf("%s: the column is optional", c.set)
		}
	}
}

func open(t *testing.T, path string) (*parquet.File, *os.File) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	p, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return p, f
}

// Generation is deterministic, also with concurrency.
func TestDeterministic(t *testing.T) {
	for _, set := range []string{"int64", "dense", "string", "text", "repeated"} {
		var want string
		for range 2 {
			dir := generated(t, "-set", set, "-rows", "30000", "-distinct", "100", "-files", "3", "-outside", "100")
			h := sha256.New()
			err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				content, err := os.ReadFile(path)
				fmt.Fprintln(h, strings.TrimPrefix(path, dir), len(content))
				h.Write(content)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%x", h.Sum(nil))
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s: two runs differ", set)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-rows", "10", t.TempDir()}, {"-set", "int64", t.TempDir()}, {"-set", "int64", "-rows", "10", "-files", "3", t.TempDir()},
		{"-set", "repeated", "-rows", "10", t.TempDir()}, {"-set", "repeated", "-rows", "10", "-distinct", "11", t.TempDir()},
		{"-set", "int64", "-rows", "10"},
	} {
		if err := run(args); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}
