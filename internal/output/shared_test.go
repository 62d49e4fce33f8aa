package output

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// alike writes files of one layout without compression. Mapped one after the other they
// may get the same address, so that pages of the wrong file are valid.
func alike(t testing.TB, files, rows int) (names []string) {
	t.Helper()
	dir := t.TempDir()
	for f := range files {
		name := filepath.Join(dir, fmt.Sprint(f, ".parquet"))
		out, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil)
		w, err := arrowparquet.NewParquetWriter(out, schema, arrowparquet.WriterOptions{Codec: "none", RowGroupRows: int64(rows / 5)})
		if err != nil {
			t.Fatal(err)
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := range int64(rows) {
			b.Field(0).(*array.Int64Builder).Append(int64(f+1)<<56 + i)
			b.Field(1).(*array.Int64Builder).Append(int64(f+1)<<56 - i)
		}
		rec := b.NewRecord()
		b.Release()
		err = w.Write(rec)
		rec.Release()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// TestMapsOfSharedFiles reads opened files many times at once. Each reader must see the
// rows of its file.
func TestMapsOfSharedFiles(t *testing.T) {
	const rows = 100_000
	files := roomtest.Open(t, source.Opening{}, alike(t, 4, rows)...)
	read := func(i int) error {
		row := int64(0)
		for r, err := range roomtest.Map(t.Context(), source.Split(files[i:i+1], dataset.Shard{}), 2, nil, keepRecords) {
			if err != nil {
				return err
			}
			a, b := r.Record.Column(0).(*array.Int64).Int64Values(), r.Record.Column(1).(*array.Int64).Int64Values()
			for k := range a {
				if want := int64(i+1) << 56; a[k] != want+row || b[k] != want-row {
					r.Record.Release()
					return fmt.Errorf("file %d, row %d: %x and %x", i, row, a[k], b[k])
				}
				row++
			}
			r.Record.Release()
		}
		if row != rows {
			return fmt.Errorf("file %d: %d rows, want %d", i, row, rows)
		}
		return nil
	}
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	var work sync.WaitGroup
	for g := range 6 {
		work.Go(func() {
			for k := range rounds {
				if err := read((g + k) % len(files)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
}

// keepRecords returns work that passes records on.
func keepRecords() (roomtest.Work, error) {
	return func(_ source.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
		rec.Retain()
		return emit(rec)
	}, nil
}

// drained returns the first error of a sequence.
func drained[T any](seq iter.Seq2[T, error]) error {
	for v, err := range seq {
		if r, ok := any(v).(arraycopy.Rows); ok {
			outRows{Rows: r}.release()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waysToRead returns all ways to read opened files.
func waysToRead(t testing.TB, files []*source.File) map[string]func() error {
	ctx, filter := t.Context(), roomtest.ExactOf("a", 1<<56+5, 1<<56+77)
	match := dataset.Match{Filter: (*codec.Filter)(filter), Key: "a"}
	pieces := func() []source.Piece { return source.Split(files, dataset.Shard{}) }
	scanner := func() *keyscan.Scanner {
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{match}}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	noKeys := func() (func(*keyscan.Keys) error, error) { return func(*keyscan.Keys) error { return nil }, nil }
	return map[string]func() error{
		"Map":   func() error { return drained(roomtest.Map(ctx, pieces(), 2, nil, keepRecords)) },
		"Scan":  func() error { return drained(arraycopy.Scan(ctx, scanner(), pieces())) },
		"Count": func() error { return Count(ctx, scanner(), pieces()) },
		"WriteScan": func() error {
			out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "out.parquet")}}
			_, err := out.WriteScan(ctx, scanner(), pieces(), files, nil)
			return err
		},
		"ReadKeys": func() error {
			_, _, err := keyscan.Read(ctx, pieces(), keyscan.ReadOptions{Key: "a"}, noKeys)
			return err
		},
		"a sample": func() error {
			_, _, err := keyscan.Read(ctx, pieces(), keyscan.ReadOptions{Key: "a", Runs: 2, RunRows: 10}, noKeys)
			return err
		},
		"ReadRows": func() error {
			_, _, err := tables.Read(ctx, pieces(), roomtest.ColumnsOf(t, files, "b"), tables.ReadOptions{Key: "a"}, func(*tables.Batch) error { return nil })
			return err
		},
		"File.Read":   func() error { return drained(rowfilter.Read(ctx, files[0], 0, nil)) },
		"File.Check":  func() error { return files[0].Check(ctx, 0) },
		"Fingerprint": func() error { _, err := files[0].Fingerprint(); return err },
		"CountRows":   func() error { _, err := files[0].CountRows(); return err },
		"KeepOpen": func() error {
			_, release, err := source.KeepOpen(ctx, files...)
			if err == nil {
				err = release()
			}
			return err
		},
	}
}

// TestReadersOfClosedFiles checks that each way to read says that a file is closed, and
// opens nothing behind its back.
func TestReadersOfClosedFiles(t *testing.T) {
	names := alike(t, 2, 1000)
	for what := range waysToRead(t, roomtest.Open(t, source.Opening{}, names...)) {
		files := roomtest.Open(t, source.Opening{}, names...)
		read := waysToRead(t, files)[what]
		if err := read(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		before := teststore.Descriptors(t)
		if err := source.Close(files); err != nil {
			t.Fatal(err)
		}
		if err := read(); !errors.Is(err, fs.ErrClosed) || !strings.Contains(err.Error(), names[0]) {
			t.Errorf("%s after Close: %v, want fs.ErrClosed and the name", what, err)
		}
		if err := source.Close(files); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		if after := teststore.Descriptors(t); after > before {
			t.Errorf("%s after Close: %d descriptors, %d before", what, after, before)
		}
		if files[0].Rows() != 1000 || files[0].Schema().NumFields() != 2 {
			t.Errorf("%s: the footer is forgotten", what)
		}
	}
	f := roomtest.Open(t, source.Opening{}, "../../testdata/flights/logs/2001-06.arrow")[0]
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := drained(rowfilter.Read(t.Context(), f, 0, nil)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("an Arrow file after Close: %v", err)
	}
}

// TestCloseCountsReaders closes files that are being read: Close says how many readers
// there are, these go on, and the last one releases the file.
func TestCloseCountsReaders(t *testing.T) {
	names := alike(t, 1, 5000)
	before := teststore.Descriptors(t)
	f := roomtest.Open(t, source.Opening{}, names...)[0]
	next := map[string]func() (arraycopy.Rows, error, bool){}
	for _, name := range []string{"first", "second"} {
		n, stop := iter.Pull2(roomtest.Map(t.Context(), source.Split([]*source.File{f}, dataset.Shard{}), 1, nil, keepRecords))
		defer stop()
		next[name] = n
	}
	rows := map[string]int64{}
	step := func(name string) bool {
		t.Helper()
		r, err, ok := next[name]()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			rows[name] += r.Record.NumRows()
			outRows{Rows: r}.release()
		}
		return ok
	}
	step("first")
	step("second")
	if err := f.Close(); err == nil || !strings.Contains(err.Error(), "readers at work: 2") {
		t.Errorf("Close: %v, want that two readers are at work", err)
	}
	if err := drained(rowfilter.Read(t.Context(), f, 0, nil)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a reader that begins after Close: %v", err)
	}
	for name := range next {
		for step(name) {
			continue
		}
		if rows[name] != 5000 {
			t.Errorf("%s: %d rows, want 5000", name, rows[name])
		}
	}
	if after := teststore.Descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}

	held := roomtest.Open(t, source.Opening{}, names...)[0]
	ctx, release, err := source.KeepOpen(t.Context(), held)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // and again, as long as a reader is at work; a pass of it is no other reader
		n, stop := iter.Pull2(rowfilter.Read(ctx, held, 0, nil))
		_, _, _ = n()
		if err := held.Close(); !errors.Is(err, storage.ErrAgain) || !strings.Contains(err.Error(), "readers at work: 1") {
			t.Errorf("Close of a held file: %v", err)
		}
		stop()
	}
	for range 2 {
		if err := drained(rowfilter.Read(ctx, held, 0, nil)); err != nil {
			t.Errorf("a pass over a held file: %v", err)
		}
		inner, done, err := source.KeepOpen(ctx, held)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(drained(rowfilter.Read(inner, held, 0, nil)), done()); err != nil {
			t.Error(err)
		}
	}
	nested, done, err := source.KeepOpen(ctx, held)
	if err := errors.Join(err, release(), release()); err != nil {
		t.Error(err)
	}
	if err := drained(rowfilter.Read(nested, held, 0, nil)); err != nil {
		t.Errorf("a pass over a file that is held within what was released: %v", err)
	}
	if err := held.Close(); err == nil || !strings.Contains(err.Error(), "readers at work: 1") {
		t.Errorf("Close of a file that is held within what was released: %v", err)
	}
	if err := errors.Join(done(), held.Close()); err != nil {
		t.Error(err)
	}
	if err := drained(rowfilter.Read(nested, held, 0, nil)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a context that holds nothing any more: %v", err)
	}
	if err := drained(rowfilter.Read(t.Context(), held, 0, nil)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after release: %v", err)
	}
}

// TestConsumersPanic checks that a file is released when the consumer of its rows panics.
func TestConsumersPanic(t *testing.T) {
	names := alike(t, 1, 100_000)
	for what, read := range map[string]func(*source.File){
		"File.Read": func(f *source.File) {
			for range rowfilter.Read(t.Context(), f, 0, nil) {
				panic("the consumer's")
			}
		},
		"Map": func(f *source.File) {
			for range roomtest.Map(t.Context(), source.Split([]*source.File{f}, dataset.Shard{}), 1, nil, keepRecords) {
				panic("the consumer's")
			}
		},
		"Scan": func(f *source.File) {
			s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("a", 1<<56+5)), Key: "a"}}}}, f)
			if err != nil {
				t.Fatal(err)
			}
			for range arraycopy.Scan(t.Context(), s, source.Split([]*source.File{f}, dataset.Shard{})) {
				panic("the consumer's")
			}
		},
	} {
		before, f := teststore.Descriptors(t), roomtest.Open(t, source.Opening{}, names...)[0]
		func() {
			defer func() { sourcetest.Equal(t, what, fmt.Sprint(recover()), "the consumer's") }()
			read(f)
		}()
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if after := teststore.Descriptors(t); after > before {
			t.Errorf("%s: %d descriptors, %d before", what, after, before)
		}
	}
}

// TestScansOnce checks that a Scanner runs one scan, and that PathOf may be called
// meanwhile.
func TestScansOnce(t *testing.T) {
	files := roomtest.Open(t, source.Opening{}, alike(t, 2, 5000)...)
	pieces := source.Split(files, dataset.Shard{})
	dir := t.TempDir()
	ways := map[string]func(*keyscan.Scanner) error{
		"Scan":  func(s *keyscan.Scanner) error { return drained(arraycopy.Scan(t.Context(), s, pieces)) },
		"Count": func(s *keyscan.Scanner) error { return Count(t.Context(), s, pieces) },
		"WriteScan": func(s *keyscan.Scanner) error {
			_, err := Destination{Output: Output{Name: filepath.Join(dir, "out.parquet")}}.WriteScan(t.Context(), s, pieces, files, nil)
			return errors.Join(err, os.RemoveAll(filepath.Join(dir, "out.parquet")))
		},
	}
	for first, run := range ways {
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("a", 1<<56+5)), Key: "a"}}}}, files...)
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		var asking sync.WaitGroup
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.PathOf(files[0])
					s.Stats.KeysNullOf(pieces[0])
				}
			}
		})
		if err := run(s); err != nil {
			t.Errorf("%s: %v", first, err)
		}
		close(stop)
		asking.Wait()
		for second, again := range ways {
			if err := again(s); err == nil || !strings.Contains(err.Error(), "runs one scan") {
				t.Errorf("%s, then %s: %v", first, second, err)
			}
		}
		if n := s.Stats.RowsIn.Load(); n != 10_000 {
			t.Errorf("%s: %d rows counted, want 10,000", first, n)
		}
	}
}

// TestZeroFiles checks what nil and zero Files, Scanners and pieces come to, and numbers
// out of range: errors that name the mistake, never a panic.
func TestZeroFiles(t *testing.T) {
	ctx, good := t.Context(), roomtest.Open(t, source.Opening{}, alike(t, 1, 1000)...)[0]
	match := []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("a", 5)), Key: "a"}}
	scan := func(pieces ...source.Piece) error {
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: match}})
		if err != nil {
			t.Fatal(err)
		}
		return drained(arraycopy.Scan(ctx, s, pieces))
	}
	keys := func(pieces ...source.Piece) error {
		_, _, err := keyscan.Read(ctx, pieces, keyscan.ReadOptions{Key: "a"}, func() (func(*keyscan.Keys) error, error) { return func(*keyscan.Keys) error { return nil }, nil })
		return err
	}
	new_ := func(files ...*source.File) error {
		_, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: match}}, files...)
		return err
	}
	for what, c := range map[string]struct {
		err  error
		word string
	}{
		"Close of nil":                {source.Close([]*source.File{nil}), "nil"},
		"Close of a zero File":        {new(source.File).Close(), "not opened"},
		"Read of a zero File":         {drained(rowfilter.Read(ctx, new(source.File), 0, nil)), "not opened"},
		"Check of a zero File":        {new(source.File).Check(ctx, 0), "not opened"},
		"Read of row group 99":        {drained(rowfilter.Read(ctx, good, 99, nil)), "row group"},
		"Read of row group -1":        {drained(rowfilter.Read(ctx, good, -1, nil)), "row group"},
		"Read of column 99":           {drained(rowfilter.Read(ctx, good, 0, []int{99})), "column"},
		"Check of row group 99":       {good.Check(ctx, 99), "row group"},
		"Scan of a nil File's pieces": {scan(source.Split([]*source.File{nil}, dataset.Shard{})...), "nil"},
		"Scan of a zero Piece":        {scan(source.Piece{}), "nil"},
		"Scan of a zero File":         {scan(source.Piece{File: &source.File{}}), "not open"},
		"Scan of 0 to 99":             {scan(source.Piece{File: good, Hi: 99}), "0 up to 99"},
		"Scan of 3 to 1":              {scan(source.Piece{File: good, Lo: 3, Hi: 1}), "3 up to 1"},
		"ReadKeys of 0 to 99":         {keys(source.Piece{File: good, Hi: 99}), "0 up to 99"},
		"NewScanner of nil":           {new_(nil), "nil"},
		"NewScanner of a zero":        {new_(&source.File{}), "not opened"},
		"a zero Scanner's Scan":       {drained(arraycopy.Scan(ctx, new(keyscan.Scanner), nil)), "NewScanner"},
		"a zero Scanner's Count":      {Count(ctx, new(keyscan.Scanner), nil), "NewScanner"},
		"a nil Scanner's Scan":        {drained(arraycopy.Scan(ctx, (*keyscan.Scanner)(nil), nil)), "NewScanner"},
		"Map without work":            {drained(roomtest.Map(ctx, source.Split([]*source.File{good}, dataset.Shard{}), 1, nil, nil)), "newWork"},
		"ReadKeys without work": {func() error {
			_, _, err := keyscan.Read(ctx, source.Split([]*source.File{good}, dataset.Shard{}), keyscan.ReadOptions{Key: "a"}, nil)
			return err
		}(), "newWork"},
		"ReadKeys without a key": {func() error { _, _, err := keyscan.Read(ctx, nil, keyscan.ReadOptions{}, nil); return err }(), ""},
		"a Match without a filter": {func() error {
			_, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Key: "a"}}}})
			return err
		}(), "filter 1 of 1 is nil"},
		"Records without a schema": {drained(rowfilter.Read(ctx, source.Records("r", nil, nil, source.RecordsOptions{}), 0, nil)), "schema"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.word) {
			t.Errorf("%s: %v, want an error with %q", what, c.err, c.word)
		}
	}
	for _, f := range []*source.File{{}, source.Records("r", nil, nil, source.RecordsOptions{})} {
		if f.NumGroups() > 1 || f.BytesRead() != 0 || len(f.Doubts()) != 0 || f.Schema().NumFields() != 0 || f.GroupRows(7) != -1 || f.Codec() != "" || f.Rows() > 0 {
			t.Errorf("%+v", f)
		}
	}
	if n := rowfilter.PlainBytes(good, 0, 99, nil); n < 16_000 || rowfilter.PlainBytes(good, 5, 2, nil) != -1 || rowfilter.PlainBytes(good, 0, 1, []int{7}) != -1 {
		t.Errorf("%d bytes", n)
	}
	if path, _ := new(keyscan.Scanner).PathOf(nil); path != "" {
		t.Errorf("a path %q", path)
	}
	var none context.Context
	for what, call := range map[string]func(){
		"Scan": func() {
			s, _ := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: match}})
			_ = drained(arraycopy.Scan(none, s, source.Split([]*source.File{good}, dataset.Shard{})))
		},
		"Map": func() {
			_ = drained(roomtest.Map(none, source.Split([]*source.File{good}, dataset.Shard{}), 1, nil, keepRecords))
		},
		"Read":     func() { _ = drained(rowfilter.Read(none, good, 0, nil)) },
		"KeepOpen": func() { _, _, _ = source.KeepOpen(none, good) },
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "nil context") {
					t.Errorf("%s without a context: %v, want a panic that says so", what, r)
				}
			}()
			call()
		}()
	}
	if err := good.Close(); err != nil {
		t.Errorf("readers are left: %v", err)
	}
}

// TestLogWithoutFiles checks that a directory takes the rows of a log without files.
func TestLogWithoutFiles(t *testing.T) {
	for _, name := range []string{"out/", "out.parquet"} {
		s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("a", 5)), Key: "a"}}}})
		if err != nil {
			t.Fatal(err)
		}
		out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), name) + map[bool]string{true: "/"}[strings.HasSuffix(name, "/")]}, Run: &Run{}}
		w, err := out.WriteScan(t.Context(), s, nil, nil, nil)
		if dir := strings.HasSuffix(name, "/"); dir != (err == nil) || w.Rows != 0 || !dir && !errors.Is(err, storage.ErrNoFiles) {
			t.Errorf("%s: %d rows, %v", name, w.Rows, err)
		}
	}
}
