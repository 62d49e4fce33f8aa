package text

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
)

var typed = map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Int8, "m": arrow.PrimitiveTypes.Uint8}

func TestSkipBad(t *testing.T) {
	for _, c := range []struct {
		what, name, text, want string
		bad                    []int
	}{
		{"values", "a.txt", "1\nx\n\n128\r\n2\n \n-\n3\n4", "[[1] [2] [3] [4]]", []int{2, 4, 6, 7}},
		{"nothing bad", "a.txt", "1\n2\n", "[[1] [2]]", nil},
		{"behind a mark", "a.csv", "\xEF\xBB\xBFn\r\nx\r\n\r\n1\r\ny\r\n2\r\n", "[[1] [2]]", []int{2, 5}},
		{"width", "a.csv", "n,s\n1\n1,a,b\n1,a,b,c\n2,\"a\"\n3,\"a\",\"b\"\n4,b\n5,c\n6,d\n", "[[2 a] [4 b] [5 c] [6 d]]", []int{2, 3, 4, 6}},
		{"width", "a.tsv", "n\ts\n1\n1\t\"\tb\n2\t\"\n3\tx", "[[2 \"] [3 x]]", []int{2, 3}},
		{"behind quoted lines", "a.csv", "n,s\n1,\"\n\n\"\n\nx,y\n2,z\n", "[[1 \n\n] [2 z]]", []int{6}},
		{"second column", "a.csv", "s,n,m\na,1,1\nb,2,-1\n,x,x\nc,,\n", "[[a 1 1] [c ∅ ∅]]", []int{3, 4}},
		{"NULL is not bad", "a.csv", "n,s\n,\n\"\",x\n", "[[∅ ∅] [∅ x]]", nil},
		{"objects", "a.jsonl", "[1]\n{\"n\":1}\n{\"n\":1,\"n\":2}\n{\"n\":\"\xff\"}\n\n{\"n\":\"2\"}\n{\"n\":\"\\ud800\"}\n{\"n\":3\n \n{} {}\n{\"n\":1.0}\n" + strings.Repeat("{\"n\":3}\n", 6),
			"[[1] [2] [3] [3] [3] [3] [3] [3]]", []int{1, 3, 4, 7, 8, 9, 10, 11}},
		{"objects and values", "a.jsonl", "{\"n\":\"x\"}\n" + strings.Repeat("[]\n", 9) + "{\"n\":1}\n{\"n\":\"x\"}\n" + strings.Repeat("[]\n{\"n\":128}\n", 3) + strings.Repeat("{\"n\":1}\n", 16),
			"[[1]" + strings.Repeat(" [1]", 16) + "]", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18}},
		{"keys of bad objects", "a.jsonl", "{\"z\":1,\"z\":2}\n{\"n\":1}\n", "[[1]]", []int{1}},
		{"not UTF-8", "a.csv", "s\na\n\xff\nb\n\xc3(\nc\n", "[[a] [b] [c]]", []int{3, 5}},
		{"not UTF-8, in an integer", "a.txt", "1\n\xff\n2\n", "[[1] [2]]", []int{2}},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, once := range []bool{false, true} {
				tab, err := Open(given(t, c.text), c.name, Options{Types: typed, Column: "n", SkipBad: true, Once: once})
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // the counts of passes are not added up
					rows, err := all(tab, nil)
					bad := tab.Bad()
					if err != nil || fmt.Sprint(rows) != c.want || bad.Lines != int64(len(c.bad)) || !slices.Equal(bad.First, c.bad) {
						t.Errorf("once=%v: %v, %v, bad %v\nwant %s, bad %v", once, rows, err, bad, c.want, c.bad)
					}
					if once {
						break
					}
				}
				tab.Close()
			}
		})
	}
}

// Passes over different columns skip the same lines.
func TestSkipBadInAnyColumn(t *testing.T) {
	for _, name := range []string{"a.csv", "a.tsv"} {
		by := map[string]string{"a.csv": ",", "a.tsv": "\t"}[name]
		text := strings.ReplaceAll("n,b,s\n1,\xff,a\n2,b,\xff\n3,c,c\n4,d,d\n", ",", by)
		for _, columns := range [][]int{nil, {0}, {}} {
			types := map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Int8, "b": arrow.BinaryTypes.Binary}
			tab, err := Open(given(t, text), name, Options{Types: types, SkipBad: true})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := all(tab, columns)
			if bad := tab.Bad(); err != nil || len(rows) != 3 || !slices.Equal(bad.First, []int{3}) {
				t.Errorf("%s %v: %v, %v, bad %v", name, columns, rows, err, bad)
			}
			for _, threads := range []int{1, 2} {
				n := 0
				for v, err := range tab.ReadPlain(context.Background(), 0, 1, 0, threads) {
					if err != nil {
						t.Fatal(err)
					}
					n += v.Rows
				}
				if bad := tab.Bad(); n != 3 || !slices.Equal(bad.First, []int{3}) {
					t.Errorf("%s, %d threads: %d rows, bad %v", name, threads, n, bad)
				}
			}
		}
	}
	_, err := read(t, "a.csv", "n,s\n1,a\n\"2\",\"\n\xff\"\n3,c\n", Options{Types: typed, SkipBad: true})
	if err == nil || !strings.Contains(err.Error(), "a.csv: line 3: column s") {
		t.Errorf("a bad row that spans lines: %v", err)
	}
}

// Errors that may span several lines cannot be skipped.
func TestNotSkipped(t *testing.T) {
	for _, c := range []struct {
		what, name, text string
		kind             error
		want             string
	}{
		{"bare quote", "a.csv", "n,s\n1,a\"\n2,b\n", fault.ErrCorrupt, "line 2"},
		{"behind a quote", "a.csv", "n,s\n1,\"a\"b\n2,b\n", fault.ErrCorrupt, "line 2"},
		{"open quote", "a.csv", "n,s\n1,\"a\n2,b\n", fault.ErrCorrupt, "line 2"},
		{"a row that may have taken others", "a.csv", "n,s\n1,\"a\n2,b\n3,\",c\n", fault.ErrCorrupt, "line 2"},
		{"a value that may have taken others", "a.csv", "n,s\n0,a\n\"1,a\n2,\",b\n", fault.ErrMismatch, "line 3: column n"},
		{"too long", "a.txt", "1\n" + strings.Repeat("1", 2001) + "\n2\n", fault.ErrUnsupported, "line 2"},
		{"no header", "a.csv", "\n\n", fault.ErrCorrupt, "column names"},
		{"two names", "a.csv", "n,n\n1,2\n", fault.ErrCorrupt, "line 1"},
		{"UTF-16", "a.txt", "\x001\x00\n", fault.ErrUnsupported, "UTF-16"},
		{"a name that is not UTF-8", "a.csv", "n,\xff\n1,a\n2,b\n", fault.ErrCorrupt, "line 1: corrupt: the name of column 2"},
		{"half a surrogate pair", "a.txt", "\xFE\xFF\x001\x00\n\xD8\x00\x00\n", fault.ErrCorrupt, "line 2: corrupt: half a surrogate pair of utf-16be"},
		{"binary data", "a.txt", "1\n\x00\x01\n", fault.ErrUnsupported, "binary data"},
		{"no gzip", "a.txt.gz", "1\n", fault.ErrCorrupt, "gzip"},
		{"half of gzip", "a.txt.gz", gz("1\n2\n")[:20], fault.ErrCorrupt, "a.txt.gz"},
		{"junk behind zstd", "a.txt.zst", zst("1\n2\n") + "xxxx", fault.ErrCorrupt, "a.txt.zst"},
	} {
		t.Run(c.what, func(t *testing.T) {
			opts := Options{Types: typed, Column: "n", SkipBad: true, MaxLineBytes: 2000}
			rows, err := read(t, c.name, c.text, opts)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v; want %v with %q", rows, err, c.kind, c.want)
			}
		})
	}
	// A line cut short by the storage is not treated as a bad line.
	for _, text := range []string{"1\n2\nx", gz("1\n2\nx")} {
		open := func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader(text[:len(text)-1]), iotest.ErrReader(errStorage))), nil
		}
		tab, err := Open(open, "a.txt", Options{Types: typed, Column: "n", SkipBad: true})
		if err == nil {
			_, err = all(tab, nil)
		}
		if !errors.Is(err, errStorage) {
			t.Errorf("%v", err)
		}
	}
}

// Bad lines in columns that are not read do not matter.
func TestBadColumns(t *testing.T) {
	tab, err := Open(given(t, "n,m\n1,x\ny,2\n3,3\n4,5,6\n7,7\n8,8\n"), "a.csv", Options{Types: typed, SkipBad: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		columns []int
		want    string
		bad     []int
	}{
		{[]int{0}, "[[1] [3] [7] [8]]", []int{3, 5}},
		{[]int{1}, "[[2] [3] [7] [8]]", []int{2, 5}},
		{[]int{1, 0}, "[[3 3] [7 7] [8 8]]", []int{2, 3, 5}},
		{[]int{}, "[[] [] [] [] []]", []int{5}},
	} {
		rows, err := all(tab, c.columns)
		if err != nil || fmt.Sprint(rows) != c.want || !slices.Equal(tab.Bad().First, c.bad) {
			t.Errorf("columns %v: %v, %v, bad %v", c.columns, rows, err, tab.Bad())
		}
	}
}

// The list of bad line numbers is limited, their count is not. A batch of only bad
// lines is not returned as an empty batch.
func TestManyBad(t *testing.T) {
	text := "1\n" + strings.Repeat("x\n", 2*batchRows+5) + "2\n" + strings.Repeat("y\n", 3) + strings.Repeat("3\n", 2*batchRows+8)
	tab, err := Open(given(t, text), "a.txt", Options{Types: typed, Column: "n", SkipBad: true})
	if err != nil {
		t.Fatal(err)
	}
	var rows int64
	for rec, err := range tab.Read(context.Background(), 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.NumRows() == 0 {
			t.Error("an empty batch")
		}
		rows += rec.NumRows()
	}
	want := make([]int, badShown)
	for i := range want {
		want[i] = i + 2
	}
	if bad := tab.Bad(); rows != 2*batchRows+10 || bad.Lines != 2*batchRows+8 || !slices.Equal(bad.First, want) {
		t.Errorf("%d rows, bad %v", rows, bad)
	}
	for _, err := range tab.Read(context.Background(), 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		break // a pass that did not reach the end does not count
	}
	if tab.Bad().Lines != 2*batchRows+8 {
		t.Error(tab.Bad())
	}
}

// Concurrent passes count separately.
func TestBadAtOnce(t *testing.T) {
	text := strings.Repeat("1\nx\n", 5000)
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	tab, err := Open(open, "a.txt", Options{Types: typed, Column: "n", SkipBad: true})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			n := 0
			if i%2 == 0 {
				rows, err := all(tab, nil)
				if n = len(rows); err != nil {
					t.Error(err)
				}
			} else {
				for v, err := range tab.ReadPlain(context.Background(), 0, 1, 0, 1+i%4) {
					if n += v.Rows; err != nil {
						t.Error(err)
					}
				}
			}
			if bad := tab.Bad(); n != 5000 || bad.Lines != 5000 {
				t.Errorf("%d rows, %d bad lines", n, bad.Lines)
			}
		})
	}
	wg.Wait()
}

// Of bad lines in any order, the smallest 20 are kept.
func TestBadOrder(t *testing.T) {
	var b Bad
	for i := range 100 {
		b.add(i*37%101 + 1)
	}
	want := make([]int, badShown)
	for i := range want {
		want[i] = i + 1
	}
	if b.Lines != 100 || !slices.Equal(b.First, want) {
		t.Error(b)
	}
}

// A text that fails a column's check is like one that does not parse: it is
// reported with its line, however the column is read, and skipped with SkipBad.
func TestCheck(t *testing.T) {
	const text = "k,n\nfine,1\n\n\"fine\",2\nno,3\n,4\nno,5\nfine,6\n"
	for i, skip := range []bool{false, true, false, true} {
		tab, err := Open(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, "a.csv", Options{Size: -1, SkipBad: skip})
		if err != nil {
			t.Fatal(err)
		}
		for _, checked := range []*Table{
			tab.WithCheck([]string{"k", "z"}, func(s string) bool { return s == "fine" }, "fine things"),
			tab.WithCheck([]string{"k"}, func(s string) bool { return s == "fine" }, "fine things").WithTypes(nil), // which keeps the check
		} {
			rows, nulls := 0, 0
			var errs []error
			for rec, err := range checked.Read(t.Context(), 0, []int{1, 0}) {
				if err != nil {
					errs = append(errs, err)
					break
				}
				rows, nulls = rows+int(rec.NumRows()), nulls+rec.Column(1).NullN()
			}
			for v, err := range checked.ReadPlain(t.Context(), 0, 1, 0, 1+i) {
				if err != nil {
					errs = append(errs, err)
					break
				}
				if v.Rows != rows || v.Rows-v.NonNull != nulls || string(v.Plain) != strings.Repeat("\x04\x00\x00\x00fine", v.NonNull) {
					t.Errorf("%d rows, %d values %q, want %d rows with %d NULLs", v.Rows, v.NonNull, v.Plain, rows, nulls)
				}
			}
			if bad := checked.Bad(); skip && (len(errs) > 0 || rows != 4 || nulls != 1 || bad.Lines != 2 || !slices.Equal(bad.First, []int{5, 7})) {
				t.Errorf("bad ones left out: %d rows, %d NULLs, %+v, errors %v", rows, nulls, bad, errs)
			}
			for _, err := range errs {
				if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "a.csv: line 5: column k: ") || !strings.Contains(err.Error(), "want fine things") {
					t.Error(err)
				}
			}
			if !skip && len(errs) != 2 {
				t.Errorf("%d errors of two ways to read", len(errs))
			}
		}
	}
}
