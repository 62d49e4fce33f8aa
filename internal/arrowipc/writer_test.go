package arrowipc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// Output is read back by this package and by arrow/go's own reader, whole and in
// slices.
func TestRoundTrip(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for _, zstd := range []bool{false, true} {
			for name, fields := range map[string][]arrow.Field{"wide": wideFields(), "odd": oddFields()} {
				t.Run(fmt.Sprintf("stream=%v/zstd=%v/%s", stream, zstd, name), func(t *testing.T) {
					mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
					defer mem.AssertSize(t, 0)
					r := rand.New(rand.NewPCG(1, 2))
					rec := sample(r, mem, arrow.NewSchema(fields, nil), 300)
					defer rec.Release()
					recs := []arrow.Record{rec}
					if name == "wide" {
						for range cases.Count(5, 20, 20) {
							i := r.Int64N(300)
							s := rec.NewSlice(i, i+r.Int64N(301-i))
							defer s.Release()
							recs = append(recs, s)
						}
					}
					b := encode(t, stream, WriterOptions{Mem: mem, Zstd: zstd}, recs...)
					compareWith(t, b, stream, recs, mem)
					theirs, err := oracle(b, stream)
					if err != nil {
						t.Fatal(err)
					}
					for i := range recs {
						if !sameRecord(theirs[i], recs[i]) {
							t.Errorf("batch %d as arrow/go reads it:\n%v\nwant\n%v", i, theirs[i], recs[i])
						}
					}
					if again := encode(t, stream, WriterOptions{Mem: mem, Zstd: zstd}, recs...); !bytes.Equal(b, again) {
						t.Error("not the same bytes a second time")
					}
				})
			}
		}
	}
}

// A slice of a slice, and arrays without an offset whose first value offset is not
// zero, also within structs and lists.
func TestWriteShiftedOffsets(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	offs := arrow.Int32Traits.CastToBytes([]int32{2, 4, 4, 7})
	data := array.NewData(arrow.BinaryTypes.String, 3, []*memory.Buffer{nil, memory.NewBufferBytes(offs), memory.NewBufferBytes([]byte("xxabcde"))}, nil, 0, 0)
	defer data.Release()
	str := array.MakeFromData(data)
	defer str.Release()
	list := array.NewData(arrow.ListOf(arrow.BinaryTypes.String), 2,
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{1, 2, 3}))}, []arrow.ArrayData{data}, 0, 0)
	defer list.Release()
	lists := array.MakeFromData(list)
	defer lists.Release()
	for _, arr := range []arrow.Array{str, lists} {
		rec := array.NewRecord(arrow.NewSchema([]arrow.Field{field1("c", arr.DataType())}, nil), []arrow.Array{arr}, int64(arr.Len()))
		b := encode(t, true, WriterOptions{Mem: mem}, rec)
		compareWith(t, b, true, []arrow.Record{rec}, mem)
		rec.Release()
	}
}

// Slices without rows, and lists that use none of their elements.
func TestWriteNothingUsed(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(9, 9))
	str := arrow.BinaryTypes.String
	fields := append(wideFields(),
		field1("ls", arrow.ListOf(str)), field1("lls", arrow.LargeListOf(arrow.ListOf(str))), field1("lfs", arrow.ListOf(arrow.FixedSizeListOf(2, str))))
	rec := sample(r, mem, arrow.NewSchema(fields, nil), 40)
	defer rec.Release()
	for _, stream := range []bool{false, true} {
		var recs []arrow.Record
		for i := range int64(40) {
			for _, n := range []int64{0, 1} {
				s := rec.NewSlice(i, i+n)
				defer s.Release()
				recs = append(recs, s)
			}
			s := rec.NewSlice(0, i)
			defer s.Release()
			recs = append(recs, s)
		}
		compareWith(t, encode(t, stream, WriterOptions{Mem: mem}, recs...), stream, recs, mem)
	}
	// Everything that this package reads can be written again, also without rows.
	odd := sample(r, mem, arrow.NewSchema(oddFields(), nil), 0)
	defer odd.Release()
	first := encode(t, false, WriterOptions{}, odd)
	tab, err := openBytes(first, false, mem)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for rec, err := range tab.Read(context.Background(), 0, nil) {
		if err != nil {
			t.Fatal(err)
		}
		encode(t, false, WriterOptions{Mem: mem}, rec)
	}
}

func TestWriteEmpty(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{field1("a", arrow.PrimitiveTypes.Int64)}, nil)
	for _, stream := range []bool{false, true} {
		var out bytes.Buffer
		open := NewFileWriter
		if stream {
			open = NewStreamWriter
		}
		w, err := open(&out, s, WriterOptions{Metadata: map[string]string{"b": "2", "a": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		tab, err := openBytes(out.Bytes(), stream, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := tab.Schema().Metadata(); fmt.Sprint(m.Keys(), m.Values()) != "[a b] [1 2]" {
			t.Errorf("metadata %v", m)
		}
		compare(t, out.Bytes(), stream, nil)
		if recs, err := oracle(out.Bytes(), stream); err != nil || len(recs) != 0 {
			t.Errorf("%v, %v", recs, err)
		}
	}
}

// A file is also a stream from byte 8.
func TestFileHoldsStream(t *testing.T) {
	rec := sample(rand.New(rand.NewPCG(3, 4)), memory.DefaultAllocator, arrow.NewSchema(oddFields(), nil), 10)
	b := encode(t, false, WriterOptions{}, rec)
	recs, err := oracle(b[fileHead:], true)
	if err != nil || len(recs) != 1 || !sameRecord(recs[0], rec) {
		t.Errorf("%v, %v", recs, err)
	}
}

var errDisk = errors.New("disk full")

// failing fails after n bytes.
type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	if len(p) > f.n {
		n := f.n
		f.n = 0
		return n, errDisk
	}
	f.n -= len(p)
	return len(p), nil
}

func TestWriteErrorsStick(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	rec := sample(rand.New(rand.NewPCG(5, 6)), mem, arrow.NewSchema(oddFields(), nil), 10)
	defer rec.Release()
	whole := len(encode(t, false, WriterOptions{Mem: mem}, rec))
	for n := 0; n < whole; n += 7 {
		w, err := NewFileWriter(&failing{n}, rec.Schema(), WriterOptions{Mem: mem})
		if err != nil {
			t.Fatal(err)
		}
		first := w.Write(rec)
		if second := w.Write(rec); first != nil && second != first {
			t.Errorf("after %d bytes: %v, then %v", n, first, second)
		}
		if _, _, err := w.Close(); !errors.Is(err, errDisk) {
			t.Errorf("after %d bytes: closed with %v", n, err)
		}
	}
}

func TestWriteChangedDictionary(t *testing.T) {
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	recs := dictRecords(t, dt, "ab", "cd", "ab")
	compareWith(t, encode(t, true, WriterOptions{}, recs...), true, recs, nil)
	w, err := NewFileWriter(&bytes.Buffer{}, recs[0].Schema(), WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(recs[0]); err != nil {
		t.Fatal(err)
	}
	wantUnsupported(t, w.Write(recs[1]))
	_, _, err = w.Close()
	wantUnsupported(t, err)
}

// dictRecords returns records of one dictionary column, with a letter per row.
func dictRecords(t testing.TB, dt *arrow.DictionaryType, rows ...string) (recs []arrow.Record) {
	t.Helper()
	for _, s := range rows {
		b := array.NewDictionaryBuilder(memory.DefaultAllocator, dt).(*array.BinaryDictionaryBuilder)
		for _, c := range s {
			if err := b.AppendString(string(c)); err != nil {
				t.Fatal(err)
			}
		}
		arr := b.NewArray()
		recs = append(recs, array.NewRecord(arrow.NewSchema([]arrow.Field{field1("d", dt)}, nil), []arrow.Array{arr}, int64(arr.Len())))
	}
	return recs
}

func TestWriteRefused(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Float64}
	for _, dt := range []arrow.DataType{dict, arrow.ListOf(dict)} {
		_, err := NewStreamWriter(&bytes.Buffer{}, arrow.NewSchema([]arrow.Field{field1("f", dt)}, nil), WriterOptions{})
		wantUnsupported(t, err)
	}
	// A slice of a union cannot be written, and must not be written incorrectly.
	rec := sample(rand.New(rand.NewPCG(7, 8)), memory.DefaultAllocator, arrow.NewSchema(oddFields()[4:], nil), 10)
	w, err := NewStreamWriter(&bytes.Buffer{}, rec.Schema(), WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec.NewSlice(2, 5)); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("a slice of a union: %v", err)
	}
	// Another schema.
	w, _ = NewStreamWriter(&bytes.Buffer{}, arrow.NewSchema([]arrow.Field{field1("f", arrow.PrimitiveTypes.Int64)}, nil), WriterOptions{})
	if err := w.Write(rec); err == nil {
		t.Error("a record of another schema was written")
	}
}

// compareWith reads b with mem and requires the given records.
func compareWith(t *testing.T, b []byte, stream bool, want []arrow.Record, mem memory.Allocator) {
	t.Helper()
	if mem != nil {
		if _, err := walk(b, stream, mem); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, b, stream, want)
}
