package text

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/fault"
)

// plainly is plainlyOf for an input with one range.
func plainly(ctx context.Context, tab *Table, column, threads int) (rows int, values []string, err error) {
	return plainlyOf(ctx, tab, 0, column, threads)
}

// plainlyOf reads a column of a range with ReadPlain and returns the number of rows and
// the text of the values.
func plainlyOf(ctx context.Context, tab *Table, group, column, threads int) (rows int, values []string, err error) {
	for v, err := range tab.ReadPlain(ctx, group, column, threads) {
		if err != nil {
			return rows, values, err
		}
		rows += v.Rows
		plain := v.Plain
		for range v.NonNull {
			switch tab.Kind(column) {
			case Signed:
				values = append(values, fmt.Sprint(int64(binary.LittleEndian.Uint64(plain))))
				plain = plain[8:]
			case Unsigned:
				values = append(values, fmt.Sprint(binary.LittleEndian.Uint64(plain)))
				plain = plain[8:]
			default:
				n := binary.LittleEndian.Uint32(plain)
				values = append(values, string(plain[4:4+n]))
				plain = plain[4+n:]
			}
		}
		if len(plain) > 0 {
			return rows, values, fmt.Errorf("%d bytes behind the values", len(plain))
		}
	}
	return rows, values, nil
}

// byRecords is recordsOf for an input with one range.
func byRecords(tab *Table, column int) (rows int, values []string, err error) {
	return recordsOf(tab, 0, column)
}

// recordsOf reads a column of a range with Read and returns the same as plainlyOf.
func recordsOf(tab *Table, group, column int) (rows int, values []string, err error) {
	for rec, err := range tab.Read(context.Background(), group, []int{column}) {
		if err != nil {
			return rows, values, err
		}
		rows += int(rec.NumRows())
		col := rec.Column(0)
		for i := range col.Len() {
			if col.IsNull(i) {
				continue
			}
			switch c := col.(type) {
			case *array.Binary:
				values = append(values, string(c.Value(i)))
			case *array.LargeBinary:
				values = append(values, string(c.Value(i)))
			case array.StringLike:
				values = append(values, strings.Clone(c.Value(i)))
			default:
				values = append(values, c.ValueStr(i))
			}
		}
	}
	return rows, values, nil
}

// FuzzPlain compares ReadPlain with Read: the same values, the same error, the same
// bad lines.
func FuzzPlain(f *testing.F) {
	names := []string{"a.txt", "a.csv", "a.tsv", "a.jsonl"}
	prim := arrow.PrimitiveTypes
	types := []arrow.DataType{
		prim.Int8, prim.Int16, prim.Int32, prim.Int64, prim.Uint8, prim.Uint16, prim.Uint32, prim.Uint64,
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeBinary,
	}
	for i, s := range []string{
		"1\n-1\n+7\r\n\n007\n128\n-128\n-129\n0", "n,s\n1,a\n,b\n\"2\",\"\n\"\n3\n", "n\ts\n1\ta\n\tb\nx\tc\n", "{\"n\":1}\n{\"n\":\"2\"}\n{}\n{\"n\":1e3}\n[]\n",
		"9223372036854775807\n-9223372036854775808\n9223372036854775808\n", "18446744073709551615\n18446744073709551616\n00000000000000000000000001\n-0\n--0\n+\n",
		"32768\n-32768\n65536\n2147483648\n4294967296\n", " 1\n1 \n1_0\n\xD9\xA3\n1.0\n0x1\n", "\xEF\xBB\xBFn\n1\n",
	} {
		for j := range types {
			f.Add(s, uint8(i%len(names)), uint8(j), i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, s string, name, dt uint8, skip bool) {
		opts := Options{Column: "n", Types: map[string]arrow.DataType{"n": types[int(dt)%len(types)]}, SkipBad: skip, MaxLineBytes: 1 << 16}
		all, bytewise := given(t, s), false
		open := func() (io.ReadCloser, error) {
			r, err := all()
			if bytewise { // otherwise there is only one part
				r = struct {
					io.Reader
					io.Closer
				}{iotest.OneByteReader(r), r}
			}
			return r, err
		}
		tab, err := Open(open, names[int(name)%len(names)], opts)
		if err != nil || tab.Schema().NumFields() == 0 {
			return
		}
		column := tab.Schema().NumFields() - 1
		if at := tab.Schema().FieldIndices("n"); len(at) > 0 {
			column = at[0]
		}
		rows, values, err := byRecords(tab, column)
		bad := tab.Bad()
		for _, threads := range []int{1, 3} {
			bytewise, tab.part = threads > 1 && len(s) < 1000, 1+len(s)%20
			gotRows, got, gotErr := plainly(context.Background(), tab, column, threads)
			if fmt.Sprint(err) != fmt.Sprint(gotErr) {
				t.Fatalf("%d threads: %v, by records %v", threads, gotErr, err)
			}
			if err == nil && (rows != gotRows || fmt.Sprintf("%q", values) != fmt.Sprintf("%q", got)) {
				t.Fatalf("%d threads: %d rows %q, by records %d rows %q", threads, gotRows, got, rows, values)
			}
			if fmt.Sprint(bad) != fmt.Sprint(tab.Bad()) || !skip && bad.Lines > 0 {
				t.Fatalf("%d threads: bad %v, by records %v", threads, tab.Bad(), bad)
			}
		}
	})
}

// Values arrive in batches of limited size, whatever the lines are like.
func TestPlainBatches(t *testing.T) {
	for _, c := range []struct{ lines, length, batches int }{
		{valueRows, 3, 1}, {valueRows + 1, 3, 2}, {2 * valueRows, 3, 2}, {10, valueBytes - 4, 10}, {3, 2 * valueBytes, 3}, {0, 0, 0},
	} {
		text := strings.Repeat(strings.Repeat("x", c.length)+"\n", c.lines)
		tab, err := Open(given(t, text), "a.txt", Options{Column: "n"})
		if err != nil {
			t.Fatal(err)
		}
		batches, rows := 0, 0
		for v, err := range tab.ReadPlain(context.Background(), 0, 0, 1) {
			if err != nil {
				t.Fatal(err)
			}
			batches++
			rows += v.Rows
		}
		if batches != c.batches || rows != c.lines {
			t.Errorf("%d lines of %d: %d rows in %d batches, want %d", c.lines, c.length, rows, batches, c.batches)
		}
	}
}

func TestPlainRefused(t *testing.T) {
	tab, err := Open(given(t, "n\n1\n"), "a.csv", Options{Types: map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Float64}})
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range []int{-1, 0, 1} {
		if _, _, err := plainly(context.Background(), tab, column, 1); err == nil {
			t.Errorf("column %d", column)
		}
	}
	nested := tab.WithTypes(map[string]arrow.DataType{"n": arrow.ListOf(arrow.PrimitiveTypes.Int8)})
	if _, _, err := plainly(context.Background(), nested, 0, 1); !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStorage)
	typed := tab.WithTypes(map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Int8})
	if _, _, err := plainly(ctx, typed, 0, 1); !errors.Is(err, errStorage) {
		t.Error(err)
	}
}

// stalled is standard input that has some data and then stalls.
type stalled struct {
	io.Reader
	more chan struct{}
}

func (s stalled) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	<-s.more
	return 0, io.EOF
}

// A cancelled context, and an error, are returned without waiting for a stalled
// standard input; its goroutine ends with it.
func TestStalledInput(t *testing.T) {
	for name, text := range map[string]string{"an error": "1\nx\n", "a cancellation": "1\n2\n"} {
		for _, threads := range []int{1, 2} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				stall(t, text, threads)
			})
		}
	}
}

func stall(t *testing.T, text string, threads int) {
	more := make(chan struct{})
	open := func() (io.ReadCloser, error) {
		return io.NopCloser(stalled{io.MultiReader(strings.NewReader(text[:2]), strings.NewReader(text[2:])), more}), nil
	}
	tab, err := Open(open, "standard input", Options{Format: Lines, Once: true, Column: "n", Types: typed})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if !strings.Contains(text, "x") {
		time.AfterFunc(50*time.Millisecond, cancel)
	}
	start := time.Now()
	_, _, err = plainly(ctx, tab, 0, threads)
	if took := time.Since(start); err == nil || took > 20*patience {
		t.Errorf("%v, after %v", err, took)
	}
	cancel()
	close(more) // goleak checks that this ends the goroutine
}

// Reading in advance is limited, and ends when yield returns false.
func TestAheadIsBounded(t *testing.T) {
	mem := &endless{left: 1 << 30}
	open := func() (io.ReadCloser, error) {
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader("1\n"), strings.NewReader(strings.Repeat("2\n", valueRows)), mem), mem}, nil
	}
	tab, err := Open(open, "a.txt", Options{Column: "n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range tab.ReadPlain(context.Background(), 0, 0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		break
	}
	if taken := 1<<30 - mem.left; taken > 3*blocksAhead*readSize {
		t.Errorf("%d bytes were read ahead", taken)
	}
}

// Parts parsed concurrently are returned in order, with the bad lines and the first
// error of the whole, wherever the text is divided.
func TestParts(t *testing.T) {
	var text strings.Builder
	var want []string
	var bad []int
	line := 0
	add := func(s string) { line++; text.WriteString(s + "\n") }
	for i := 0; text.Len() < 10*splitBytes; i++ {
		add(fmt.Sprint(i))
		want = append(want, fmt.Sprint(i))
		if i%1000 == 7 {
			add("")
			add("x" + strings.Repeat("y", i%5000))
			bad = append(bad, line)
		}
	}
	text.WriteString("5")
	want = append(want, "5")
	types := map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Int64}
	for _, once := range []bool{false, true} {
		for _, threads := range []int{1, 2, 7} {
			opts := Options{Column: "n", Types: types, SkipBad: true, Once: once, MaxLineBytes: 6000}
			tab, err := Open(given(t, gz(text.String())), "a.txt.gz", opts)
			if err != nil {
				t.Fatal(err)
			}
			rows, values, err := plainly(context.Background(), tab, 0, threads)
			if got := tab.Bad(); err != nil || rows != len(want) || !slices.Equal(values, want) || got.Lines != int64(len(bad)) || !slices.Equal(got.First, bad[:badShown]) {
				t.Errorf("%d threads: %d rows of %d, bad %v of %d, %v", threads, rows, len(want), got, len(bad), err)
			}
		}
	}
	strict, err := Open(given(t, text.String()), "a.txt", Options{Column: "n", Types: types})
	if err != nil {
		t.Fatal(err)
	}
	short, err := Open(given(t, text.String()), "a.txt", Options{Column: "n", Types: types, SkipBad: true, MaxLineBytes: 3000})
	if err != nil {
		t.Fatal(err)
	}
	long := 0 // the first line that is too long
	for i, s := range strings.Split(text.String(), "\n") {
		if len(s) > 3000 {
			long = i + 1
			break
		}
	}
	for _, threads := range []int{1, 2, 7} {
		if _, _, err := plainly(context.Background(), strict, 0, threads); !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), fmt.Sprintf("line %d:", bad[0])) {
			t.Errorf("%d threads: %v", threads, err)
		}
		if _, _, err := plainly(context.Background(), short, 0, threads); !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), fmt.Sprintf("line %d:", long)) {
			t.Errorf("%d threads: %v, want line %d", threads, err, long)
		}
		for v, err := range strict.ReadPlain(context.Background(), 0, 0, threads) {
			if err == nil && v.Rows > 0 {
				break // must end all goroutines
			}
		}
	}
}

// Only one long line is held at a time, however many goroutines parse.
func TestLongParts(t *testing.T) {
	const length, lines = 4 << 20, 24
	line := strings.Repeat("x", length) + "\n"
	open := func() (io.ReadCloser, error) {
		var r []io.Reader
		for range lines {
			r = append(r, strings.NewReader(line), strings.NewReader("1\n"))
		}
		return io.NopCloser(io.MultiReader(r...)), nil
	}
	tab, err := Open(open, "a.txt", Options{Column: "n"})
	if err != nil {
		t.Fatal(err)
	}
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rows, most := 0, uint64(0)
	for v, err := range tab.ReadPlain(context.Background(), 0, 0, 8) {
		if err != nil {
			t.Fatal(err)
		}
		rows += v.Rows
		time.Sleep(time.Millisecond) // lets the others read as far as they can
		runtime.GC()
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
	}
	// The line while it grows, when it is split off, and as a value.
	if rows != 2*lines || most > 12*length {
		t.Errorf("%d rows, %d MiB held", rows, most>>20)
	}
}
