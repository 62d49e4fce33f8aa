package arrowipc

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// corpus returns the directory of the Arrow project's test files.
func corpus(t testing.TB) string {
	shared := os.Getenv("BLOOMJOIN_SHARED")
	if shared == "" {
		t.Skip("BLOOMJOIN_SHARED is not set: no corpora")
	}
	return filepath.Join(shared, "corpora", "arrow-testing", "data")
}

func bytesOpener(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

func openBytes(b []byte, stream bool, mem memory.Allocator) (*Table, error) {
	if stream {
		return OpenStream(bytesOpener(b), "test", mem, StreamOptions{})
	}
	return OpenFile(0, bytes.NewReader(b), int64(len(b)), "test", mem)
}

// walk opens b and reads every value of every array, including those at NULLs. It
// returns the number of rows.
func walk(b []byte, stream bool, mem memory.Allocator) (rows int64, err error) {
	tab, err := openBytes(b, stream, mem)
	if err != nil {
		return 0, err
	}
	defer tab.Close()
	for g := range tab.NumGroups() {
		for rec, err := range tab.Read(context.Background(), g, nil) {
			if err != nil {
				return rows, err
			}
			rows += rec.NumRows()
			for _, c := range rec.Columns() {
				walkArray(c)
			}
		}
	}
	return rows, nil
}

// walkArray reads each value of arr and its descendants.
func walkArray(arr arrow.Array) {
	n := arr.Len()
	sum := 0
	switch a := arr.(type) {
	case *array.Null:
		return
	case array.ExtensionArray:
		walkArray(a.Storage())
		return
	case *array.Dictionary:
		d := a.Dictionary()
		walkArray(d)
		for i := range n {
			if d.Len() > 0 {
				sum += len(head(d.ValueStr(a.GetValueIndex(i))))
			}
		}
	case *array.String:
		for i := range n {
			sum += len(strings.Clone(a.Value(i)))
		}
	case *array.Binary:
		for i := range n {
			sum += len(bytes.Clone(a.Value(i)))
		}
	case *array.LargeString:
		for i := range n {
			sum += len(strings.Clone(a.Value(i)))
		}
	case *array.LargeBinary:
		for i := range n {
			sum += len(bytes.Clone(a.Value(i)))
		}
	case *array.StringView:
		for i := range n {
			sum += len(strings.Clone(a.Value(i)))
		}
	case *array.BinaryView:
		for i := range n {
			sum += len(bytes.Clone(a.Value(i)))
		}
	case *array.Struct:
		for i := range a.NumField() {
			walkArray(a.Field(i))
		}
	case array.ListLike:
		walkArray(a.ListValues())
		for i := range n {
			from, to := a.ValueOffsets(i)
			s := array.NewSlice(a.ListValues(), from, to)
			sum += s.Len()
			s.Release()
		}
	case array.Union:
		for i := range a.NumFields() {
			walkArray(a.Field(i))
		}
		for i := range n {
			sum += len(head(a.ValueStr(i)))
		}
	case *array.RunEndEncoded:
		walkArray(a.RunEndsArr())
		walkArray(a.Values())
		for i := range n {
			sum += a.GetPhysicalIndex(i)
		}
	}
	if n < 10_000 {
		sum += len(head(arr.String()))
	}
	for i := range min(n, 100_000) {
		if arr.IsValid(i) {
			sum += len(head(arr.ValueStr(i)))
		}
	}
	runtime.KeepAlive(sum)
}

func head(s string) string { return s[:min(len(s), 16)] }

// timed runs f and fails if it takes longer than ten seconds.
func timed(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	timer := time.AfterFunc(10*time.Second, func() {
		select {
		case <-done:
		default:
			buf := make([]byte, 1<<20)
			panic(t.Name() + " hangs\n" + string(buf[:runtime.Stack(buf, true)]))
		}
	})
	f()
	close(done)
	timer.Stop()
}

func corpusFiles(t *testing.T, dirs ...string) []string {
	var all []string
	for _, d := range dirs {
		files, err := filepath.Glob(filepath.Join(corpus(t), d))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", d, err)
		}
		for _, f := range files {
			if st, err := os.Stat(f); err == nil && st.Mode().IsRegular() && !strings.HasSuffix(f, ".md") && !strings.HasSuffix(f, ".gz") {
				all = append(all, f)
			}
		}
	}
	return all
}

// Hostile files must be read or refused.
func TestCorpusHostile(t *testing.T) {
	read, refused := 0, 0
	try := func(name string, b []byte, stream bool) {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			peak := &peakAllocator{Allocator: mem}
			timed(t, func() {
				rows, err := walk(b, stream, peak)
				if err == nil {
					read++
					t.Logf("read: %d rows", rows)
					return
				}
				refused++
				wantFault(t, err)
				t.Logf("refused: %v", err)
			})
			if peak.peak > 1<<30 {
				t.Errorf("%d bytes at once", peak.peak)
			}
		})
	}
	for _, f := range corpusFiles(t, "arrow-ipc-file/*", "arrow-ipc-stream/*") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name, stream := filepath.Base(f), strings.Contains(f, "ipc-stream")
		try(name, b, stream)
		if !stream && !bytes.HasPrefix(b, []byte(magic)) {
			copy(b, magic) // most of them lack it and have other faults later
			try(name+"+magic", b, stream)
		}
	}
	t.Logf("%d read, %d refused", read, refused)
}

// oracle reads with arrow/go's own reader.
func oracle(b []byte, stream bool) (recs []arrow.Record, err error) {
	if stream {
		r, err := ipc.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		if strconv.IntSize == 64 { // the reader's counter is unaligned on 32-bit machines
			defer r.Release()
		}
		for r.Next() {
			r.Record().Retain()
			recs = append(recs, r.Record())
		}
		return recs, r.Err()
	}
	r, err := ipc.NewFileReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	for i := range r.NumRecords() {
		rec, err := r.RecordAt(i)
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec)
	}
	return recs, nil
}

// The reference files of other versions and implementations: all are read except
// those with unsupported features, and arrow/go reads the same.
func TestCorpusIntegration(t *testing.T) {
	unsupported := []string{"bigendian"}
	// Converted layouts, which the oracle does not know or reads as another type: the
	// file and the stream must agree. TestPlainLayouts checks values.
	plain := []string{"generated_decimal32", "generated_decimal64", "generated_list_view"}
	read, refused := 0, 0
	for _, f := range corpusFiles(t, "arrow-ipc-stream/integration/*/*") {
		dir := filepath.Base(filepath.Dir(f))
		t.Run(dir+"/"+filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			stream := strings.HasSuffix(f, ".stream")
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			_, err = walk(b, stream, mem)
			for _, u := range unsupported {
				if strings.Contains(f, u) {
					wantUnsupported(t, err)
					refused++
					return
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			read++
			for _, p := range plain {
				if strings.Contains(f, p) {
					if stream {
						compare(t, b, true, ourRecords(t, strings.TrimSuffix(f, ".stream")+".arrow_file"))
					}
					return
				}
			}
			want, err := oracle(b, stream)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, b, stream, want)
		})
	}
	t.Logf("%d read, %d refused as unsupported", read, refused)
}

// ourRecords returns the records of a file. The test releases them.
func ourRecords(t *testing.T, name string) (recs []arrow.Record) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := openBytes(b, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for g := range tab.NumGroups() {
		for rec, err := range tab.Read(context.Background(), g, nil) {
			if err != nil {
				t.Fatal(err)
			}
			rec.Retain()
			t.Cleanup(rec.Release)
			recs = append(recs, rec)
		}
	}
	if len(recs) == 0 {
		t.Fatalf("%s: no records", name)
	}
	return recs
}

// compare reads b and requires the same records.
func compare(t *testing.T, b []byte, stream bool, want []arrow.Record) {
	t.Helper()
	tab, err := openBytes(b, stream, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	i := 0
	for g := range tab.NumGroups() {
		for rec, err := range tab.Read(context.Background(), g, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if i >= len(want) {
				t.Fatalf("more than %d batches", len(want))
			}
			if !rec.Schema().Equal(want[i].Schema()) {
				t.Errorf("schema\n%v\nwant\n%v", rec.Schema(), want[i].Schema())
			}
			if !sameRecord(rec, want[i]) {
				t.Errorf("batch %d\n%v\nwant\n%v", i, rec, want[i])
			}
			i++
		}
	}
	if i != len(want) {
		t.Errorf("%d batches, want %d", i, len(want))
	}
}

// sameRecord compares values; columns without rows are always equal.
func sameRecord(a, b arrow.Record) bool {
	if a.NumRows() != b.NumRows() || a.NumCols() != b.NumCols() {
		return false
	}
	for i := range int(a.NumCols()) {
		if a.NumRows() > 0 && !array.Equal(a.Column(i), b.Column(i)) {
			return false
		}
	}
	return true
}
