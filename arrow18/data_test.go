package arrow18_test

import (
	"bytes"
	"strings"
	"testing"
	"unsafe"

	v18 "github.com/apache/arrow-go/v18/arrow"
	v18array "github.com/apache/arrow-go/v18/arrow/array"
	v18ipc "github.com/apache/arrow-go/v18/arrow/ipc"
	v18memory "github.com/apache/arrow-go/v18/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/arrow"
	v15array "github.com/apache/arrow/go/v15/arrow/array"
	v15ipc "github.com/apache/arrow/go/v15/arrow/ipc"
	v15memory "github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/arrow18"
)

// poison15 and poison18 overwrite what is freed, so that a reference that is
// missing shows as a wrong value.
type (
	poison15 struct{ v15memory.Allocator }
	poison18 struct{ v18memory.Allocator }
)

func (p poison15) Free(b []byte) { overwrite(b); p.Allocator.Free(b) }
func (p poison18) Free(b []byte) { overwrite(b); p.Allocator.Free(b) }

func overwrite(b []byte) {
	for i := range b {
		b[i] = 0x55
	}
}

// checked15 and checked18 are allocators that fail the test where memory is not
// released.
func checked15(t *testing.T) v15memory.Allocator {
	mem := v15memory.NewCheckedAllocator(poison15{v15memory.NewGoAllocator()})
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

func checked18(t *testing.T) v18memory.Allocator {
	mem := v18memory.NewCheckedAllocator(poison18{v18memory.NewGoAllocator()})
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// read15 and read18 build the sample's record from its JSON.
func read15(t *testing.T, mem v15memory.Allocator, s sample) v15.Record {
	t.Helper()
	arr, _, err := v15array.FromJSON(mem, s.v15, strings.NewReader(s.json))
	if err != nil {
		t.Fatal(err)
	}
	defer arr.Release()
	md := v15.NewMetadata([]string{"writer"}, []string{"test"})
	return v15array.NewRecord(v15.NewSchema([]v15.Field{{Name: "x", Type: s.v15, Nullable: true, Metadata: md15}}, &md), []v15.Array{arr}, int64(arr.Len()))
}

func read18(t *testing.T, mem v18memory.Allocator, s sample) v18.RecordBatch {
	t.Helper()
	arr, _, err := v18array.FromJSON(mem, s.v18, strings.NewReader(s.json))
	if err != nil {
		t.Fatal(err)
	}
	defer arr.Release()
	md := v18.NewMetadata([]string{"writer"}, []string{"test"})
	return v18array.NewRecordBatch(v18.NewSchema([]v18.Field{{Name: "x", Type: s.v18, Nullable: true, Metadata: md18}}, &md), []v18.Array{arr}, int64(arr.Len()))
}

func same15(t *testing.T, what string, want, got v15.Record) {
	t.Helper()
	if !got.Schema().Equal(want.Schema()) {
		t.Errorf("%s: want schema %s, got %s", what, want.Schema(), got.Schema())
	}
	if got.NumRows() != want.NumRows() || !v15array.RecordEqual(want, got) {
		t.Errorf("%s: want %v, got %v", what, want, got)
	}
}

func same18(t *testing.T, what string, want, got v18.RecordBatch) {
	t.Helper()
	if !got.Schema().Equal(want.Schema()) {
		t.Errorf("%s: want schema %s, got %s", what, want.Schema(), got.Schema())
	}
	if got.NumRows() != want.NumRows() || !v18array.RecordEqual(want, got) {
		t.Errorf("%s: want %v, got %v", what, want, got)
	}
}

// stream15 and stream18 are records as an IPC stream, and stream15In and
// stream18In read one.
func stream15(mem v15memory.Allocator, recs ...v15.Record) ([]byte, error) {
	var b bytes.Buffer
	w := v15ipc.NewWriter(&b, v15ipc.WithSchema(recs[0].Schema()), v15ipc.WithAllocator(mem), v15ipc.WithDictionaryDeltas(true))
	for _, rec := range recs {
		if err := w.Write(rec); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func stream18(mem v18memory.Allocator, recs ...v18.RecordBatch) ([]byte, error) {
	var b bytes.Buffer
	w := v18ipc.NewWriter(&b, v18ipc.WithSchema(recs[0].Schema()), v18ipc.WithAllocator(mem), v18ipc.WithDictionaryDeltas(true))
	for _, rec := range recs {
		if err := w.Write(rec); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func stream15In(t *testing.T, mem v15memory.Allocator, b []byte, each func(v15.Record)) {
	t.Helper()
	r, err := v15ipc.NewReader(bytes.NewReader(b), v15ipc.WithAllocator(mem))
	if err != nil {
		t.Fatal("read by v15: ", err)
	}
	defer r.Release()
	for r.Next() {
		each(r.Record())
	}
	if r.Err() != nil {
		t.Fatal("read by v15: ", r.Err())
	}
}

func stream18In(t *testing.T, mem v18memory.Allocator, b []byte, each func(v18.RecordBatch)) {
	t.Helper()
	r, err := v18ipc.NewReader(bytes.NewReader(b), v18ipc.WithAllocator(mem))
	if err != nil {
		t.Fatal("read by v18: ", err)
	}
	defer r.Release()
	for r.Next() {
		each(r.RecordBatch())
	}
	if r.Err() != nil {
		t.Fatal("read by v18: ", r.Err())
	}
}

// asIPC15 writes the converted record with v15, reads it with v18 and compares it
// with its source. It returns 1, or 0 if v15 cannot write the record of its own
// that has the same values either: its writer fails on some empty slices, unions
// and list views.
func asIPC15(t *testing.T, own, converted v15.Record, source v18.RecordBatch) int {
	t.Helper()
	if _, err := stream15(v15memory.DefaultAllocator, own); err != nil {
		return 0
	}
	b, err := stream15(checked15(t), converted)
	if err != nil {
		t.Error("written by v15: ", err)
		return 0
	}
	n := 0
	stream18In(t, checked18(t), b, func(rec v18.RecordBatch) { n++; same18(t, "as IPC", source, rec) })
	return n
}

// asIPC18 is asIPC15 for the other direction. The v15 reader drops the metadata of
// a map's keys and values, so the types are compared without metadata.
func asIPC18(t *testing.T, own, converted v18.RecordBatch, source v15.Record) int {
	t.Helper()
	if _, err := stream18(v18memory.DefaultAllocator, own); err != nil {
		return 0
	}
	b, err := stream18(checked18(t), converted)
	if err != nil {
		t.Error("written by v18: ", err)
		return 0
	}
	n := 0
	stream15In(t, checked15(t), b, func(rec v15.Record) {
		n++
		want, got := source.Schema().Field(0), rec.Schema().Field(0)
		if !v15.TypeEqual(want.Type, got.Type) || !want.Metadata.Equal(got.Metadata) || !rec.Schema().Metadata().Equal(source.Schema().Metadata()) {
			t.Errorf("as IPC: want %s, got %s", source.Schema(), rec.Schema())
		}
		if !v15array.Equal(source.Column(0), rec.Column(0)) {
			t.Errorf("as IPC: want %v, got %v", source, rec)
		}
	})
	return n
}

// cuts are the parts of a record of 8 rows that are converted: all, none, and
// slices at odd places.
var cuts = [][2]int64{{0, 8}, {0, 0}, {8, 8}, {1, 8}, {0, 3}, {3, 7}}

// A record crosses to v15 whatever its types and wherever it is cut: it equals
// what v15 reads from JSON, v18 reads what v15 writes of it, and it is the very
// record when it is back.
func TestRecord15(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			mem15, mem18 := checked15(t), checked18(t)
			want, whole := read15(t, mem15, s), read18(t, mem18, s)
			defer want.Release()
			written := 0
			for _, cut := range cuts {
				rec := whole.NewSlice(cut[0], cut[1])
				got, err := arrow18.Record15(rec)
				if err != nil {
					t.Fatal(err)
				}
				slice := want.NewSlice(cut[0], cut[1])
				same15(t, "converted", slice, got)
				shared(t, buffers18(rec.Column(0).Data()), buffers15(got.Column(0).Data()))
				defer slice.Release()
				back, err := arrow18.Record18(got)
				if err != nil {
					t.Fatal(err)
				}
				same18(t, "converted and back", rec, back)
				if !s.noIPC {
					written += asIPC15(t, slice, got, rec)
				}
				got.Release()
				same18(t, "back, when the other is gone", rec, back)
				rec.Release()
				back.Release()
			}
			if written < 3 && !s.noIPC {
				t.Errorf("only %d of %d cuts could be compared as IPC", written, len(cuts))
			}
			got, err := arrow18.Record15(whole)
			if err != nil {
				t.Fatal(err)
			}
			whole.Release()
			same15(t, "when its source is gone", want, got)
			got.Release()
		})
	}
}

// TestRecord18 is TestRecord15 for the other direction.
func TestRecord18(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			mem15, mem18 := checked15(t), checked18(t)
			want, whole := read18(t, mem18, s), read15(t, mem15, s)
			defer want.Release()
			written := 0
			for _, cut := range cuts {
				rec := whole.NewSlice(cut[0], cut[1])
				got, err := arrow18.Record18(rec)
				if err != nil {
					t.Fatal(err)
				}
				slice := want.NewSlice(cut[0], cut[1])
				same18(t, "converted", slice, got)
				shared(t, buffers15(rec.Column(0).Data()), buffers18(got.Column(0).Data()))
				defer slice.Release()
				back, err := arrow18.Record15(got)
				if err != nil {
					t.Fatal(err)
				}
				same15(t, "converted and back", rec, back)
				if !s.noIPC {
					written += asIPC18(t, slice, got, rec)
				}
				got.Release()
				same15(t, "back, when the other is gone", rec, back)
				rec.Release()
				back.Release()
			}
			if written < 3 && !s.noIPC {
				t.Errorf("only %d of %d cuts could be compared as IPC", written, len(cuts))
			}
			got, err := arrow18.Record18(whole)
			if err != nil {
				t.Fatal(err)
			}
			whole.Release()
			same18(t, "when its source is gone", want, got)
			got.Release()
		})
	}
}

// span is where a buffer's bytes are; absent means that there is no buffer.
type span struct {
	absent bool
	at     unsafe.Pointer
	size   int
}

func buffers15(d v15.ArrayData) (out []span) {
	for _, b := range d.Buffers() {
		if b == nil {
			out = append(out, span{absent: true})
		} else {
			out = append(out, span{at: unsafe.Pointer(unsafe.SliceData(b.Bytes())), size: b.Len()})
		}
	}
	for _, c := range d.Children() {
		out = append(out, buffers15(c)...)
	}
	if dict, _ := d.Dictionary().(*v15array.Data); dict != nil {
		out = append(out, buffers15(dict)...)
	}
	return out
}

func buffers18(d v18.ArrayData) (out []span) {
	for _, b := range d.Buffers() {
		if b == nil {
			out = append(out, span{absent: true})
		} else {
			out = append(out, span{at: unsafe.Pointer(unsafe.SliceData(b.Bytes())), size: b.Len()})
		}
	}
	for _, c := range d.Children() {
		out = append(out, buffers18(c)...)
	}
	if dict, _ := d.Dictionary().(*v18array.Data); dict != nil {
		out = append(out, buffers18(dict)...)
	}
	return out
}

// shared fails where a buffer is not the memory of its source, or is absent on
// one side alone.
func shared(t *testing.T, want, got []span) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("want %d buffers, got %d", len(want), len(got))
	}
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("buffer %d: want %+v, got %+v", i, want[i], got[i])
		}
	}
}
