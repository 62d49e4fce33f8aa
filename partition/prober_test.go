package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/storage"
)

// mappedFilter is a filter whose bits are a mapped file.
type mappedFilter struct{ *testFilter }

func (mappedFilter) Mapped() bool { return true }

// The file of a mapped filter is cut short while it is in use: an error, not
// the end of the process, and no answer.
func TestFilterCutShort(t *testing.T) {
	params := bloom.Params{Geometry: bloom.Split512, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: 1 << 12}
	name := filepath.Join(t.TempDir(), "bits")
	if err := os.WriteFile(name, make([]byte, params.Bytes()), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := storage.Local{}.Open(context.Background(), storage.Object{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	m, ok := src.(storage.Mapper)
	if !ok {
		t.Skip("files are not mapped here")
	}
	file, unmap, err := m.Map()
	if err != nil {
		t.Fatal(err)
	}
	defer unmap()
	bits, err := bloom.View(params, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []bool{false, true} {
		rec := keyRecord(1<<14, text)
		f := &testFilter{names: []string{"k"}, classes: []string{classOf(text)}, bits: bits, normal: key.NormalForm}
		p, err := NewProber("log", rec.Schema(), Match{Filter: mappedFilter{f}})
		if err != nil {
			t.Fatal(err)
		}
		if !text {
			if hits, err := p.Probe(rec); err != nil || len(hits) > 0 {
				t.Fatalf("%d hits in an empty filter, error %v", len(hits), err)
			}
			if err := os.Truncate(name, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Probe(rec); !errors.Is(err, errFilterGone) {
			t.Errorf("text %v: %v", text, err)
		}
		rec.Release()
	}
}

func classOf(text bool) string {
	if text {
		return string(key.Bytes)
	}
	return string(key.Integer)
}

// keyRecord has one column k of integers, or of texts of 25 bytes.
func keyRecord(rows int, text bool) arrow.Record {
	ints := array.NewInt64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range rows {
		ints.Append(int64(i) * 7919)
		texts.Append(fmt.Sprintf("user-%020d", i*7919))
	}
	var col arrow.Array = ints.NewArray()
	if text {
		col = texts.NewArray()
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: col.DataType()}}, nil)
	return array.NewRecord(schema, []arrow.Array{col}, int64(rows))
}

// What a probe costs from a column of values to the positions found, with a
// filter that stays in the cache.
func BenchmarkProber(b *testing.B) {
	const rows = 1 << 16
	for _, text := range []bool{false, true} {
		bits, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: 4096})
		if err != nil {
			b.Fatal(err)
		}
		f := &testFilter{names: []string{"k"}, classes: []string{classOf(text)}, bits: bits, normal: key.NormalForm}
		rec := keyRecord(rows, text)
		p, err := NewProber("log", rec.Schema(), Match{Filter: f})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("class="+classOf(text), func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Probe(rec); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/key")
			b.ReportAllocs()
		})
	}
}
