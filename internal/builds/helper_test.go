package builds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// memStore keeps objects in memory. It refuses to create objects that other users
// may read, because filters contain IDs.
type memStore struct{ *teststore.Memory }

func newStore() *memStore { return &memStore{teststore.NewMemory()} }

func (s *memStore) get(name string) ([]byte, bool) { return s.Get(name) }

func (s *memStore) put(name string, b []byte) { s.Put(name, b) }

func (s *memStore) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	if !o.Private {
		return nil, errors.New("a filter that everybody may read")
	}
	return s.Memory.Create(ctx, name, o)
}

// column is a column of values: []int64, []string and so on, or []any with nil for
// NULL.
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
	files, err := openFiles(t, inputs, source.OpenOptions{Store: s, Text: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := source.Close(files); err != nil {
			t.Error(err)
		}
	})
	return NewPlan(files, opts)
}

func build(t testing.TB, s *memStore, inputs []string, opts Options) (*filters.Filter, Report) {
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

// encoded returns the filter's file, without compression to save time.
func encoded(t testing.TB, f *filters.Filter) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := filters.Encode(&b, f, filters.Options{Uncompressed: true}); err != nil {
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
		o.Shard = dataset.Shard{Index: i, Of: n}
		f, _ := build(t, s, inputs, o)
		name := fmt.Sprintf("%s-%d-of-%d", prefix, i, n)
		if _, err := filters.Save(t.Context(), s, name, f, filters.Options{Uncompressed: i%4 != 0, Replace: true}); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// mergeTree merges random pairs into larger partial filters until two are left, and
// then merges these.
func mergeTree(t testing.TB, s *memStore, names []string, rng *rand.Rand) *filters.Filter {
	t.Helper()
	names = slices.Clone(names)
	for step := 0; len(names) > 2; step++ {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		f, err := MergeFiles(t.Context(), s, names[:2], true, filters.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s-step-%d", names[0], step)
		if _, err := filters.Save(t.Context(), s, name, f, filters.Options{Uncompressed: step%4 != 0, Replace: true}); err != nil {
			t.Fatal(err)
		}
		names = append(names[2:], name)
	}
	f, err := MergeFiles(t.Context(), s, names, false, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// numbers returns f(0) to f(n-1).
func numbers[T any](n int, f func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// addInts adds integer keys to a Bloom filter.
func addInts(f *bloom.Filter, keys []uint64) {
	hashes := make([]uint64, len(keys))
	f.Params().Hash.Sum64(hashes, keys)
	f.Add(hashes)
}

// openFiles opens files of IDs.
func openFiles(t testing.TB, names []string, o source.OpenOptions) ([]*source.File, error) {
	return source.Open(t.Context(), names, source.Opening{OpenOptions: o})
}
