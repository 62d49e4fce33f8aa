package text

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/klauspost/compress/zstd"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// openRanges opens an input with ranges of the given size; 0: with one range.
func openRanges(t testing.TB, name, content string, size int64, opts Options) (*Table, error) {
	t.Helper()
	opts.Size = int64(len(content))
	if size > 0 {
		opts.RangeBytes, opts.At = size, strings.NewReader(content)
	}
	return Open(given(t, content), name, opts)
}

// found is what a table's ranges hold, in order.
type found struct {
	values []string
	rows   int
	bad    Bad
	err    string
}

var maybe = regexp.MustCompile("; it looks like [^:]*")

// equal compares everything up to an error, and of that what is certain: what the file
// may be instead is known only where its first row is read.
func (f found) equal(g found) bool {
	certain := func(s string) string {
		s, _, _ = strings.Cut(strings.ReplaceAll(s, ".zst", ""), " (")
		return maybe.ReplaceAllString(s, "")
	}
	switch {
	case f.err != "" && g.err != "" && strings.Contains(f.err+g.err, "binary data"):
		return true // a damaged line may be read before the NUL is
	case f.err != "" || g.err != "":
		return certain(f.err) == certain(g.err)
	}
	return slices.Equal(f.values, g.values) && f.rows == g.rows && f.bad.Lines == g.bad.Lines && slices.Equal(f.bad.First, g.bad.First)
}

func (f found) String() string {
	return fmt.Sprintf("%d rows, %q, bad %v, error %q", f.rows, f.values[:min(len(f.values), 50)], f.bad, f.err)
}

// sum reads all ranges, last ones first, as plain values or as records. Values after
// the first error do not count.
func sum(t testing.TB, name, content string, size int64, opts Options, plain bool, threads int) (f found) {
	tab, err := openRanges(t, name, content, size, opts)
	if err != nil {
		return found{err: err.Error()}
	}
	var groups []int
	parts := make([]found, tab.NumGroups())
	for g := range slices.Backward(parts) {
		groups = append([]int{g}, groups...)
		part := &parts[g]
		if plain { // one to three ranges as one
			run := 1 + int(size%3)
			if g%run > 0 {
				continue
			}
			part.rows, part.values, err = plainlyOf(t.Context(), tab, g, min(g+run, len(parts)), 0, threads)
		} else {
			part.rows, part.values, err = recordsOf(tab, g, 0)
		}
		if err != nil {
			part.err = err.Error()
		}
	}
	for _, p := range parts {
		f.rows += p.rows
		f.values = append(f.values, p.values...)
		if f.err = p.err; f.err != "" {
			return f
		}
	}
	if f.bad = tab.Bad(); tab.NumGroups() > 1 {
		if err := tab.Judge(groups); err != nil {
			f.err = err.Error()
		}
	}
	return f
}

var packer = sync.OnceValue(func() *zstd.Encoder {
	w, _ := zstd.NewWriter(nil, zstd.WithZeroFrames(true), zstd.WithEncoderConcurrency(1))
	return w
})

// frames compresses text as zstd frames that end at the given positions. Before each
// of them stand empty frames and skippable ones, as many as extra says.
func frames(text string, ends []int, extra int) string {
	var b bytes.Buffer
	w := packer()
	from := 0
	for i, end := range append(slices.Clone(ends), len(text)) {
		for k := range extra {
			if (i+k)%2 == 0 {
				b.Write(w.EncodeAll(nil, nil))
				continue
			}
			b.Write(binary.LittleEndian.AppendUint32(nil, 0x184D2A50+uint32(k)))
			b.Write(binary.LittleEndian.AppendUint32(nil, uint32(3*k)))
			b.Write(make([]byte, 3*k))
		}
		b.Write(w.EncodeAll([]byte(text[from:end]), nil))
		from = end
	}
	return b.String()
}

// rangeCases are inputs in which ends of lines, rows and ranges fall together in all ways.
var rangeCases = []struct{ name, text string }{
	{"a.ids", "1\n22\n\n333\r\n4444\n5"},
	{"a.ids", "\xEF\xBB\xBF1\n2\n"},
	{"a.ids", "\n\n\n1\n\n\n2\n\n"},
	{"a.ids", "\r\n\r\n12\r\n"},
	{"a.ids", ""},
	{"a.ids", "\n"},
	{"a.ids", strings.Repeat("x", 100) + "\ny\n" + strings.Repeat("z", 100)},
	{"a.tsv", "\n\n\nid\tb\n1\t2\n\n3\t\"\n4\t5"},
	{"a.tsv", "id\tb\r\n1\t2\r\n\t3\r\n"},
	{"a.csv", "id,b\n1,2\n\"3\n\n4\",5\n6,\"\"\"\n\"\"\n\"\n\"7\",8\n"},
	{"a.csv", "\"id\n\n\",\"b\"\"\n\"\"\"\n\"1\",\"\n\"\n2,3\n\"4\r\n5\",6"},
	{"a.csv", "\xEF\xBB\xBF\n\nid,b\n\n1,2\n\n\n\"\n\",3\n"},
	{"a.csv", "id\n\"1\"\n\"\"\"\n\"\n\"\"\n\"\n\n\n\"\n2\n"},
	{"a.csv", "id,b\r\n\"x\r\n,\"\"\",\"\"\r\n\"\",\r\ny\"\r\nz,w\r\n"},
	{"a.csv", "id,b\n"},
	{"a.ndjson", "{\"id\":\"a\\nb\"}\n\n {\"id\":2}\r\n{\"other\":[1,\n"},
	{"a.ndjson", "{\"id\":1}\n{\"id\":\"\\\"\"}\n{\"id\":null}\n{\"id\":3.50}"},
	// errors
	{"a.csv", "id,b\n1,2\n3\n4,5\n"},
	{"a.csv", "id,b\n1,2\n\"3\n4\n5,6\n"},
	{"a.csv", "id,b\n1,2\n3\",4\n5,6\n\"7\",8\n"},
	{"a.csv", "id,b\n1,2\n\"3\"x,4\n5,6\n"},
	{"a.csv", "id,b\n\"1\n\"\n2,3\n\"\n\"\n4,5\n"},
	{"a.tsv", "id\n1\n2\t3\n4\n"},
	{"a.ndjson", "{\"id\":1}\n{\"id\":2}\n[]\n{\"id\":4}\n{\n"},
}

// Reading an input by ranges of any size gives the rows, errors, line numbers and bad
// lines of reading it whole.
func TestRangesLikeWhole(t *testing.T) {
	for i, c := range rangeCases {
		for k, opts := range []Options{{}, {SkipBad: true}, {NoHeader: true}, {NoHeader: true, Delimiter: '2', SkipBad: true}, {Types: map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}}, {Types: map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int8}, SkipBad: true}} {
			for way := range 3 { // unless all run, each case and option has one or two
				if every := cases.Count(3, 2, 1); (i+k+way)%every != 0 {
					continue
				}
				plain, threads := way > 0, max(way, 1)
				want := sum(t, c.name, c.text, 0, opts, plain, threads)
				for size := int64(1); size <= int64(len(c.text))+1; size += 1 + size/int64(cases.Count(3, 6, 8)) {
					if got := sum(t, c.name, c.text, size, opts, plain, threads); !got.equal(want) {
						t.Fatalf("case %d %s by %d bytes (plain %t, threads %d, %+v)\n got %v\nwant %v", i, c.name, size, plain, threads, opts, got, want)
					}
				}
			}
		}
	}
}

// Text without a header has the rows of the same text behind one with the names 1, 2, …, and
// text with another delimiter those of the text with commas.
func TestHeaderlessAndDelimited(t *testing.T) {
	const text = "\xEF\xBB\xBF1,\"a\n,b\",c\n\n\"2\",,\"\"\"\"\r\n3,x;y,\n4,\"\r\n\",d\n\n5,6,7"
	for _, name := range []string{"a.csv", "a.tsv", "a.csv.zst"} {
		for size := int64(0); size < 60; size++ {
			by := []string{",", ";", "|", "\t"}[size%4]
			text, o := text, Options{NoHeader: true}
			switch {
			case name == "a.tsv":
				by, text = "\t", strings.NewReplacer("\n,", "", "\r\n\"", "", "\"", "").Replace(text)
			case by != ",":
				o.Delimiter = by[0]
			}
			text = strings.NewReplacer(",", by, by, ",").Replace(text)
			headed := "\xEF\xBB\xBF" + strings.Join([]string{"1", "2", "3"}, by) + "\n" + text[3:]
			for _, column := range []string{"1", "2", "3"} {
				read := func(text string, o Options) []string {
					if strings.HasSuffix(name, ".zst") {
						text = frames(text, []int{7, 20}, 1)
					}
					tab, err := openRanges(t, name, text, size, o)
					if err != nil {
						t.Fatal(err)
					}
					c := slices.Index(tab.columns, column)
					var all []string
					for g := range tab.NumGroups() {
						_, values, err := plainlyOf(t.Context(), tab, g, g+1, c, 2)
						if err != nil {
							t.Fatalf("%s by %d bytes: %v", name, size, err)
						}
						all = append(all, values...)
					}
					return all
				}
				with := o
				with.NoHeader = false
				got, want := read(text, o), read(headed, with)
				if !slices.Equal(got, want) || column == "1" && len(got) != 5 {
					t.Fatalf("%s by %d bytes, column %s, delimiter %q:\n got %q\nwant %q", name, size, column, by, got, want)
				}
			}
		}
	}
}

// The first field of a header may have no name; it is then no column.
func TestIndexColumn(t *testing.T) {
	for name, text := range map[string]string{"a.csv": ",id,v\n0,a,\"x\ny\"\n1,b,\n", "a.tsv": "\tid\tv\n0\ta\tx\n1\tb\t\n"} {
		tab, err := openRanges(t, name, text, 5, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(tab.columns, []string{"id", "v"}) {
			t.Errorf("%s: columns %q", name, tab.columns)
		}
		if _, ids, err := plainlyOf(t.Context(), tab, 0, tab.NumGroups(), 0, 1); err != nil || !slices.Equal(ids, []string{"a", "b"}) {
			t.Errorf("%s: %q, %v", name, ids, err)
		}
	}
}

// So does reading zstd by frames, wherever these end, and with frames that hold nothing.
func TestFramesLikeWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	several := false
	for i, c := range rangeCases {
		opts := Options{SkipBad: i%2 == 0}
		want := sum(t, c.name, c.text, 0, opts, true, 1)
		for range cases.Count(8, 20, 40) {
			var ends []int
			for range r.IntN(len(c.text) + 1) {
				ends = append(ends, r.IntN(len(c.text)+1))
			}
			slices.Sort(ends)
			packed := frames(c.text, ends, r.IntN(4))
			size := 1 + r.Int64N(100)
			if tab, err := openRanges(t, c.name+".zst", packed, size, opts); err == nil {
				several = several || tab.NumGroups() > 5
			}
			got := sum(t, c.name+".zst", packed, size, opts, r.IntN(2) == 0, 1+r.IntN(2))
			if !got.equal(want) {
				t.Fatalf("case %d %s with frames to %v by %d bytes\n got %v\nwant %v", i, c.name, ends, size, got, want)
			}
		}
	}
	if !several {
		t.Error("no input had more than five ranges")
	}
}

// FuzzRanges compares the ranges of any text with the whole.
func FuzzRanges(f *testing.F) {
	for i, c := range rangeCases {
		f.Add(c.text, uint8(i), uint16(3), uint16(i*7), false)
		f.Add(c.text, uint8(i), uint16(i), uint16(40), true)
		f.Add(strings.ReplaceAll(c.text, ",", ";"), uint8(i), uint16(2), uint16(3<<10), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text string, form uint8, size, cut uint16, packed bool) {
		if len(text) > 4<<10 {
			return
		}
		name := []string{"a.csv", "a.tsv", "a.ndjson", "a.ids"}[form%4]
		opts := Options{SkipBad: form&4 != 0, MaxLineBytes: 200 * int(form>>3&1)}
		if form&16 != 0 {
			opts.Types = map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int32}
		}
		opts.NoHeader = cut>>10&1 != 0
		if cut>>11&1 != 0 {
			opts.Delimiter = ';'
		}
		want := sum(t, name, text, 0, opts, true, 1)
		content := text
		if packed {
			var ends []int
			for at := int(cut%97) + 1; at < len(text); at += int(cut%97) + 1 {
				ends = append(ends, at)
			}
			name, content = name+".zst", frames(text, ends, int(cut>>7)%4)
		} else if compressionOf([]byte(text[:min(len(text), 4)])) != "" {
			return
		}
		got := sum(t, name, content, 1+int64(size)%int64(len(content)+1), opts, form&32 != 0, 1+int(form>>6&1))
		if !got.equal(want) {
			t.Fatalf("%s by %d bytes\n got %v\nwant %v", name, size, got, want)
		}
	})
}

// Ranges of CSV hold the values that csv of Python 3 and read_csv of DuckDB 2.0 find: the
// digest is theirs.
func TestRangesLikeOthers(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,note\n")
	for i := range 2000 {
		fmt.Fprintf(&b, []string{"%[1]d,\"a\n%[2]d\"\n", "\"%[1]d\",\"\"\"\n\"\",%[2]d\"\r\n", "%[1]d,\n", "\"%[1]d\",\"\r\n,%[2]d\"\n", "%[1]d,plain%[2]d\n"}[i%5], i, i*i)
	}
	const want = "c3db27ef3dd1bf7eac3dd32f650a534efde41a963a1ad45877e77a3d78eb1874"
	for _, size := range []int64{3, 10, 100, 1000, 10_000}[cases.Count(2, 1, 0):] {
		tab, err := openRanges(t, "a.csv", b.String(), size, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var values []string
		rows := 0
		for g := range tab.NumGroups() {
			n, v, err := plainlyOf(t.Context(), tab, g, g+1, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			rows, values = rows+n, append(values, v...)
		}
		if sum := sha256.Sum256([]byte(strings.Join(values, "\x00"))); rows != 2000 || fmt.Sprintf("%x", sum) != want {
			t.Errorf("by %d bytes: %d rows, %d values, %x", size, rows, len(values), sum)
		}
	}
}

// A reader waits for its turn before a long line, or a long row, takes memory.
func TestRangesTakeTurns(t *testing.T) {
	for _, c := range []struct {
		name, row string
		turns     bool
	}{
		{"a.ids", strings.Repeat("x", 3<<20), true}, {"a.ids", strings.Repeat("x", 300<<10), false},
		{"a.csv", `"` + strings.Repeat("x\n", 3<<19) + `"`, true}, {"a.csv", `"` + strings.Repeat("x\n", 3<<15) + `"`, false},
	} {
		turns := 0
		opts := Options{Turn: func(context.Context) error { turns++; return nil }}
		tab, err := openRanges(t, c.name, "id\n1\n"+c.row+"\n2\n", 1000, opts)
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for g := range tab.NumGroups() {
			n, _, err := plainlyOf(t.Context(), tab, g, g+1, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			rows += n
		}
		if turns > 0 != c.turns || rows < 3 {
			t.Errorf("%s, a row of %d bytes: %d turns, %d rows", c.name, len(c.row), turns, rows)
		}
	}
}
