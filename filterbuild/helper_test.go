package filterbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/partition"
)

// memStore keeps objects in memory.
type memStore struct {
	mu      sync.Mutex
	objects map[string][]byte
}

var _ partition.Store = (*memStore)(nil)

func newStore() *memStore { return &memStore{objects: map[string][]byte{}} }

func (s *memStore) get(name string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.objects[name]
	return b, ok
}

func (s *memStore) put(name string, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = b
}

func (s *memStore) List(_ context.Context, name string) ([]partition.Entry, error) {
	if _, ok := s.get(name); !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return []partition.Entry{{Name: name, Rel: path.Base(name)}}, nil
}

func (*memStore) Tree(context.Context, string) ([]partition.Object, error) { return nil, nil }

type memSource struct{ *bytes.Reader }

func (memSource) Close() error { return nil }

func (s *memStore) Open(_ context.Context, name string) (partition.Source, error) {
	b, ok := s.get(name)
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return memSource{bytes.NewReader(b)}, nil
}

type memSink struct {
	bytes.Buffer
	store   *memStore
	name    string
	private bool
}

func (s *memStore) Create(_ context.Context, name string, private bool) (partition.Sink, error) {
	return &memSink{store: s, name: name, private: private}, nil
}

func (s *memSink) Commit(replace bool) error {
	if !s.private {
		return errors.New("a filter that everybody may read")
	}
	if _, ok := s.store.get(s.name); ok && !replace {
		return fmt.Errorf("%s: %w", s.name, fs.ErrExist)
	}
	s.store.put(s.name, bytes.Clone(s.Bytes()))
	return nil
}

func (*memSink) Abort() error { return nil }

func (s *memStore) Remove(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
	return nil
}

func (*memStore) IsDir(context.Context, string) bool { return false }

// column is a column of values: []int64, []string and so on, or []any with
// nil for NULL.
type column struct {
	name   string
	values any
}

// record makes a record of the columns. A []any takes its type from the first
// value that is not nil.
func record(t testing.TB, cols ...column) arrow.Record {
	t.Helper()
	var fields []arrow.Field
	var arrays []arrow.Array
	for _, c := range cols {
		a := arrayOf(t, c.values)
		defer a.Release()
		arrays = append(arrays, a)
		fields = append(fields, arrow.Field{Name: c.name, Type: a.DataType(), Nullable: true})
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), arrays, int64(arrays[0].Len()))
}

func arrayOf(t testing.TB, values any) arrow.Array {
	mem := memory.DefaultAllocator
	switch v := values.(type) {
	case []int32:
		b := array.NewInt32Builder(mem)
		defer b.Release()
		b.AppendValues(v, nil)
		return b.NewArray()
	case []int64:
		b := array.NewInt64Builder(mem)
		defer b.Release()
		b.AppendValues(v, nil)
		return b.NewArray()
	case []uint64:
		b := array.NewUint64Builder(mem)
		defer b.Release()
		b.AppendValues(v, nil)
		return b.NewArray()
	case []string:
		b := array.NewStringBuilder(mem)
		defer b.Release()
		b.AppendValues(v, nil)
		return b.NewArray()
	case [][16]byte:
		b := array.NewFixedSizeBinaryBuilder(mem, &arrow.FixedSizeBinaryType{ByteWidth: 16})
		defer b.Release()
		for _, x := range v {
			b.Append(x[:])
		}
		return b.NewArray()
	case []any:
		b := array.NewInt64Builder(mem)
		defer b.Release()
		for _, x := range v {
			if x == nil {
				b.AppendNull()
			} else {
				b.Append(x.(int64))
			}
		}
		return b.NewArray()
	}
	t.Fatalf("no array of %T", values)
	return nil
}

// putParquet stores the record as a Parquet file with row groups of the given
// number of rows.
func putParquet(t testing.TB, s *memStore, name string, groupRows int64, rec arrow.Record) {
	t.Helper()
	var b bytes.Buffer
	w, err := arrowparquet.NewParquetWriter(&b, rec.Schema(), arrowparquet.WriterOptions{RowGroupRows: groupRows})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.put(name, b.Bytes())
}

// putArrow stores the record as an Arrow file with batches of the given number
// of rows.
func putArrow(t testing.TB, s *memStore, name string, groupRows int64, rec arrow.Record) {
	t.Helper()
	var b bytes.Buffer
	w, err := arrowipc.NewFileWriter(&b, rec.Schema(), arrowipc.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for lo := int64(0); lo < rec.NumRows(); lo += groupRows {
		slice := rec.NewSlice(lo, min(lo+groupRows, rec.NumRows()))
		err := w.Write(slice)
		slice.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.put(name, b.Bytes())
}

// plan opens the inputs and plans the build. The files stay open for the test.
func plan(t testing.TB, s *memStore, inputs []string, opts Options) (*Plan, error) {
	t.Helper()
	files, err := partition.Open(t.Context(), inputs, partition.OpenOptions{Store: s, Text: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := partition.Close(files); err != nil {
			t.Error(err)
		}
	})
	return NewPlan(files, opts)
}

func build(t testing.TB, s *memStore, inputs []string, opts Options) (*codec.Filter, Report) {
	t.Helper()
	p, err := plan(t, s, inputs, opts)
	if err != nil {
		t.Fatal(err)
	}
	f, rep, err := p.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f, rep
}

// encoded is the filter's file, without compression, which takes time.
func encoded(t testing.TB, f *codec.Filter) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := codec.Encode(&b, f, codec.Options{Uncompressed: true}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// buildShards builds all n partial filters and returns their names.
func buildShards(t testing.TB, s *memStore, prefix string, inputs []string, opts Options, n uint32) []string {
	t.Helper()
	var names []string
	for i := range n {
		o := opts
		o.Shard = partition.Shard{Index: i, Of: n}
		f, _ := build(t, s, inputs, o)
		name := fmt.Sprintf("%s-%d-of-%d", prefix, i, n)
		if _, err := Write(t.Context(), s, name, f, codec.Options{Uncompressed: i%4 != 0}, true); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// mergeTree merges random pairs into larger partial filters until two are
// left, and then those.
func mergeTree(t testing.TB, s *memStore, names []string, rng *rand.Rand) *codec.Filter {
	t.Helper()
	names = append([]string(nil), names...)
	for step := 0; len(names) > 2; step++ {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		f, err := Merge(t.Context(), s, names[:2], true, codec.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s-step-%d", names[0], step)
		if _, err := Write(t.Context(), s, name, f, codec.Options{Uncompressed: step%4 != 0}, true); err != nil {
			t.Fatal(err)
		}
		names = append(names[2:], name)
	}
	f, err := Merge(t.Context(), s, names, false, codec.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// numbers returns n integers made by f.
func numbers[T any](n int, f func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}
