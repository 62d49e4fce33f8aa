package take_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/compute"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowtest"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// sample is seven values of a type, including NULL, as JSON.
type sample struct {
	dt   arrow.DataType
	json string
}

func samples() []sample {
	f, p, b := arrow.FixedWidthTypes, arrow.PrimitiveTypes, arrow.BinaryTypes
	ints := `[1, null, -3, 4, 0, 127, -128]`
	nats := `[1, null, 3, 4, 0, 127, 255]`
	floats := `[1.5, null, -0.25, 4, 0, 1024, -3]`
	texts := `["one", null, "", "four", "a longer text that goes on", "\u0000", "one"]`
	bytes := `["AQI=", null, "", "/w==", "AAAA", "YQ==", "AQI="]`
	field := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	pair := arrow.StructOf(field("a", p.Int32), field("b", b.String), field("c", f.Boolean))
	pairs := `[{"a":1,"b":"x","c":true}, null, {"a":null,"b":"","c":false}, {"a":4,"b":null,"c":null}, {}, {"a":6,"b":"six","c":true}, {"a":7,"b":"y","c":false}]`
	long, longer := "12345678901234567", "12345678901234567890123456789012345678901234567"
	if bits.UintSize < 64 { // arrow/go cannot parse decimals longer than a word
		long, longer = long[:7], longer[:8]
	}
	lists := `[[1,2,3], null, [], [null], [4,null,5], [6], [7,8]]`
	return []sample{
		{f.Boolean, `[true, null, false, true, false, true, true]`},
		{p.Int8, ints}, {p.Int16, ints}, {p.Int32, ints}, {p.Int64, ints},
		{p.Uint8, nats}, {p.Uint16, nats}, {p.Uint32, nats}, {p.Uint64, nats},
		{f.Float16, floats}, {p.Float32, floats}, {p.Float64, floats},
		{&arrow.Decimal128Type{Precision: 20, Scale: 2}, `["1.50", null, "-3.25", "0.00", "` + long + `.89", "0.01", "-0.01"]`},
		{&arrow.Decimal256Type{Precision: 60, Scale: 1}, `["1.5", null, "-3.2", "0.0", "` + longer + `.8", "0.1", "-0.1"]`},
		{f.Date32, `["1970-01-02", null, "1969-12-31", "2024-02-29", "0001-01-01", "9999-12-31", "1970-01-01"]`},
		{f.Date64, `["1970-01-02", null, "1969-12-31", "2024-02-29", "0001-01-01", "9999-12-31", "1970-01-01"]`},
		{f.Time32s, `["00:00:01", null, "23:59:59", "00:00:00", "12:00:00", "06:30:00", "01:02:03"]`},
		{f.Time32ms, `["00:00:01.001", null, "23:59:59.999", "00:00:00", "12:00:00", "06:30:00", "01:02:03"]`},
		{f.Time64us, `["00:00:01.000001", null, "23:59:59.999999", "00:00:00", "12:00:00", "06:30:00", "01:02:03"]`},
		{f.Time64ns, `["00:00:01.000000001", null, "23:59:59.999999999", "00:00:00", "12:00:00", "06:30:00", "01:02:03"]`},
		{f.Timestamp_s, `["1970-01-02 00:00:01", null, "1960-01-01 00:00:00", "2024-02-29 12:34:56", "1970-01-01", "2000-01-01", "1999-01-01"]`},
		{f.Timestamp_ns, `["1970-01-02 00:00:01.000000001", null, "1960-01-01 00:00:00", "2024-02-29 12:34:56", "1970-01-01", "2000-01-01", "1999-01-01"]`},
		{&arrow.TimestampType{Unit: arrow.Millisecond}, `["1970-01-02 00:00:01.001", null, "1960-01-01", "2024-02-29 12:34:56", "1970-01-01", "2000-01-01", "1999-01-01"]`},
		{f.Duration_s, ints}, {f.Duration_ns, ints},
		{f.MonthInterval, `[{"months":1}, null, {"months":-3}, {"months":4}, {"months":0}, {"months":6}, {"months":7}]`},
		{f.DayTimeInterval, `[{"days":1,"milliseconds":2}, null, {"days":-3,"milliseconds":4}, {"days":0,"milliseconds":0}, {"days":5,"milliseconds":6}, {"days":6,"milliseconds":6}, {"days":7,"milliseconds":6}]`},
		{f.MonthDayNanoInterval, `[{"months":1,"days":1,"nanoseconds":2}, null, {"months":-1,"days":1,"nanoseconds":3}, {"months":0,"days":0,"nanoseconds":0}, {"months":1,"days":1,"nanoseconds":9}, {"months":1,"days":5,"nanoseconds":2}, {"months":8,"days":1,"nanoseconds":2}]`},
		{&arrow.FixedSizeBinaryType{ByteWidth: 3}, `["YWJj", null, "AAAA", "////", "YWJj", "eHl6", "MTIz"]`},
		{b.String, texts}, {b.LargeString, texts}, {b.Binary, bytes}, {b.LargeBinary, bytes}, {b.StringView, texts}, {b.BinaryView, bytes},
		{arrow.Null, `[null, null, null, null, null, null, null]`},
		{arrow.ListOf(p.Int16), lists}, {arrow.LargeListOf(p.Int64), lists},
		{arrow.ListOf(b.String), `[["a","b"], null, [], [null], ["", "c"], ["d"], ["e","f","g"]]`},
		{arrow.ListOf(arrow.ListOf(p.Int8)), `[[[1],[2,3]], null, [], [null], [[],[4]], [[null]], [[5,6,7],null]]`},
		{arrow.ListOf(pair), `[[{"a":1,"b":"x","c":true}], null, [], [null], [{"a":2,"b":null,"c":false},{}], [{}], [{"a":3,"b":"y","c":true}]]`},
		{arrow.ListOf(arrow.Null), `[[null,null], null, [], [null], [null,null,null], [], [null]]`},
		{arrow.FixedSizeListOf(2, p.Int32), `[[1,2], null, [3,null], [null,null], [5,6], [7,8], [9,10]]`},
		{arrow.FixedSizeListOf(2, b.String), `[["a","b"], null, ["c",null], [null,null], ["",""], ["d","e"], ["f","g"]]`},
		{arrow.FixedSizeListOf(1, arrow.FixedSizeListOf(2, p.Uint8)), `[[[1,2]], null, [null], [[3,null]], [[5,6]], [[7,8]], [[9,10]]]`},
		{arrow.MapOf(b.String, p.Int32), `[[{"key":"a","value":1},{"key":"b","value":null}], null, [], [{"key":"c","value":3}], [{"key":"","value":4}], [{"key":"e","value":5},{"key":"f","value":6}], []]`},
		{arrow.MapOf(p.Int8, arrow.ListOf(b.String)), `[[{"key":1,"value":["x"]}], null, [], [{"key":2,"value":null}], [{"key":3,"value":[]}], [{"key":4,"value":["y",null]}], []]`},
		{pair, pairs},
		{arrow.StructOf(field("p", pair), field("l", arrow.ListOf(p.Int8))),
			`[{"p":{"a":1,"b":"x","c":true},"l":[1]}, null, {"p":null,"l":null}, {"p":{"a":null,"b":"","c":null},"l":[]}, {"p":{},"l":[null]}, {}, {"p":{"a":9,"b":"z","c":false},"l":[1,2]}]`},
		{arrow.StructOf(), `[{}, null, {}, {}, {}, {}, {}]`},
	}
}

// checked returns an allocator that fails the test if memory is not released.
func checked(t testing.TB) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// arrays returns the sample in several encodings: as it is, in a dictionary,
// in an extension type, and in a dictionary in an extension type.
func (s sample) arrays(t testing.TB, mem memory.Allocator) map[string]arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(mem, s.dt, strings.NewReader(s.json))
	if err != nil {
		t.Fatalf("%s: %v", s.dt, err)
	}
	out := map[string]arrow.Array{s.dt.String(): a}
	extended := map[string]arrow.Array{"extension of " + s.dt.String(): arrowtest.Extended(t, a)}
	for i, it := range []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int64} {
		idx, _, err := array.FromJSON(mem, it, strings.NewReader(`[6, 1, null, 3, 2, 6, 0]`))
		if err != nil {
			t.Fatal(err)
		}
		d := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: it, ValueType: s.dt, Ordered: i == 1}, idx, a)
		idx.Release()
		out[d.DataType().String()] = d
		if i == 0 {
			extended["extension of "+d.DataType().String()] = arrowtest.Extended(t, d)
		}
	}
	for _, a := range out {
		t.Cleanup(a.Release)
	}
	maps.Copy(out, extended)
	return out
}

// show renders element i as JSON. Its output for an array that is not sliced is the
// oracle.
func show(t testing.TB, a arrow.Array, i int) string {
	t.Helper()
	if e, ok := a.(array.ExtensionArray); ok {
		return show(t, e.Storage(), i)
	}
	if a.IsNull(i) || a.DataType().ID() == arrow.NULL {
		return "null"
	}
	b, err := json.Marshal(a.GetOneForMarshal(i))
	if err != nil {
		t.Fatalf("%s: %v", a.DataType(), err)
	}
	return string(b)
}

// rowSets returns selections of n rows.
func rowSets(n int) map[string][]int {
	r := rand.New(rand.NewPCG(8, 1))
	all, back, many := []int{}, []int{}, []int{}
	for i := range n {
		all, back = append(all, i), append(back, n-1-i)
	}
	for range 70 { // several bytes of a bitmap
		many = append(many, r.IntN(n+1)-1)
	}
	return map[string][]int{
		"none": {}, "all": all, "backwards": back, "one": {n - 1}, "repeated": {2, 2, 2, 0, 2}, "NULL": {-1}, "NULLs": {-1, 0, -1, n - 1, -1}, "random": many,
	}
}

// TestEveryType: every type, in every encoding, whole and sliced.
func TestEveryType(t *testing.T) {
	for i, s := range samples() {
		mem := checked(t)
		for name, whole := range s.arrays(t, mem) {
			t.Run(name, func(t *testing.T) {
				n := whole.Len()
				for k, cut := range [][2]int{{0, n}, {1, n}, {2, n - 1}, {0, n - 2}, {3, 3}} {
					if (i+k)%cases.Count(4, 2, 1) != 0 { // in turn
						continue
					}
					a := array.NewSlice(whole, int64(cut[0]), int64(cut[1]))
					for rows, set := range rowSets(max(a.Len(), 1)) {
						if a.Len() < 3 { // from an empty array only NULLs can be taken
							set = nulls(len(set))
						}
						compare(t, mem, fmt.Sprintf("%v of rows %v", rows, cut), whole, a, cut[0], set)
					}
					a.Release()
				}
			})
		}
	}
}

func nulls(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = -1
	}
	return rows
}

// compare takes rows of a, which is whole from row offset on.
func compare(t *testing.T, mem memory.Allocator, name string, whole, a arrow.Array, offset int, rows []int) {
	t.Helper()
	got, err := take.Array(mem, a, rows)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	same(t, name, got, whole, a, offset, rows)
	got.Release()
}

// same compares rows of a with the rows that were taken.
func same(t *testing.T, name string, got, whole, a arrow.Array, offset int, rows []int) {
	t.Helper()
	if got.Len() != len(rows) || !arrow.TypeEqual(got.DataType(), a.DataType()) || got.Data().Offset() != 0 {
		t.Fatalf("%s: %d of %s at offset %d, want %d of %s", name, got.Len(), got.DataType(), got.Data().Offset(), len(rows), a.DataType())
	}
	want := make([]string, len(rows))
	missing := 0
	for i, r := range rows {
		if want[i] = "null"; r >= 0 {
			want[i] = show(t, whole, offset+r)
		}
		if r < 0 || a.IsNull(r) || !isDict(a) && want[i] == "null" { // a dictionary's NULL values do not count
			missing++
		}
		if g := show(t, got, i); g != want[i] {
			t.Errorf("%s: element %d is %s, want %s", name, i, g, want[i])
		}
	}
	if got.NullN() != missing {
		t.Errorf("%s: %d NULLs, want %d", name, got.NullN(), missing)
	}
	valid(t, name, got.Data())
	if len(rows) == 0 { // arrow renders this as [] or null, by type
		return
	}
	b, err := got.MarshalJSON()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if whole := "[" + strings.Join(want, ",") + "]"; compact(t, b) != compact(t, []byte(whole)) {
		t.Errorf("%s: as a whole %s, want %s", name, b, whole)
	}
}

func isDict(a arrow.Array) bool {
	if e, ok := a.(array.ExtensionArray); ok {
		a = e.Storage()
	}
	_, ok := a.(*array.Dictionary)
	return ok
}

func compact(t *testing.T, b []byte) string {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	b, _ = json.Marshal(v)
	return string(b)
}

// valid checks that buffers are long enough, that offsets ascend from zero, and that
// the validity bitmap has as many NULLs as the count.
func valid(t *testing.T, name string, d arrow.ArrayData) {
	t.Helper()
	bufs, dt := d.Buffers(), d.DataType()
	if e, ok := dt.(arrow.ExtensionType); ok {
		dt = e.StorageType()
	}
	if dt.ID() == arrow.NULL {
		return
	}
	if b := bufs[0]; b != nil && d.Len()-bitutil.CountSetBits(b.Bytes(), 0, d.Len()) != d.NullN() {
		t.Errorf("%s: %d NULLs are counted, the bits say %d", name, d.NullN(), d.Len()-bitutil.CountSetBits(b.Bytes(), 0, d.Len()))
	} else if b == nil && d.NullN() != 0 {
		t.Errorf("%s: %d NULLs without bits", name, d.NullN())
	}
	if f, ok := dt.(arrow.FixedWidthDataType); ok && bufs[1].Len()*8 < d.Len()*f.BitWidth() {
		t.Errorf("%s: %d bytes for %d of %s", name, bufs[1].Len(), d.Len(), dt)
	}
	end := int64(0)
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY, arrow.LIST, arrow.MAP:
		offs := arrow.Int32Traits.CastFromBytes(bufs[1].Bytes())
		if end = int64(offs[d.Len()]); offs[0] != 0 || len(offs) < d.Len()+1 {
			t.Errorf("%s: offsets %v", name, offs)
		}
	case arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LARGE_LIST:
		offs := arrow.Int64Traits.CastFromBytes(bufs[1].Bytes())
		if end = offs[d.Len()]; offs[0] != 0 || len(offs) < d.Len()+1 {
			t.Errorf("%s: offsets %v", name, offs)
		}
	case arrow.FIXED_SIZE_LIST:
		end = int64(d.Len()) * int64(dt.(*arrow.FixedSizeListType).Len())
	case arrow.STRING_VIEW, arrow.BINARY_VIEW: // only values that are too long for the view itself
		if d.Len() == 0 {
			break
		}
		for _, h := range arrow.ViewHeaderTraits.CastFromBytes(bufs[1].Bytes())[:d.Len()] {
			if !h.IsInline() {
				end += int64(h.Len())
			}
		}
	}
	if len(bufs) == 3 && int64(bufs[2].Len()) != end {
		t.Errorf("%s: %d bytes of data, the offsets end at %d", name, bufs[2].Len(), end)
	}
	for _, c := range d.Children() {
		if dt.ID() == arrow.STRUCT {
			end = int64(d.Len())
		}
		if int64(c.Len()) != end {
			t.Errorf("%s: %d elements below, want %d", name, c.Len(), end)
		}
		valid(t, name+" below", c)
	}
}

// TestAgainstCompute compares with arrow's own kernel, for types that have one.
func TestAgainstCompute(t *testing.T) {
	tried := 0
	for _, s := range samples() {
		switch s.dt.ID() {
		case arrow.MAP, arrow.INTERVAL_MONTHS, arrow.INTERVAL_DAY_TIME, arrow.INTERVAL_MONTH_DAY_NANO, arrow.DURATION, arrow.STRING_VIEW, arrow.BINARY_VIEW:
			continue // no kernel
		}
		mem := checked(t)
		a, _, err := array.FromJSON(mem, s.dt, strings.NewReader(s.json))
		if err != nil {
			t.Fatal(err)
		}
		idx, _, err := array.FromJSON(mem, arrow.PrimitiveTypes.Int64, strings.NewReader(`[3, null, 0, 6, 6, 1, null, 2, 5]`))
		if err != nil {
			t.Fatal(err)
		}
		want, err := compute.TakeArray(compute.WithAllocator(context.Background(), mem), a, idx)
		if err != nil {
			t.Fatalf("%s: %v", s.dt, err)
		}
		got, err := take.Array(mem, a, []int{3, -1, 0, 6, 6, 1, -1, 2, 5})
		if err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got, want) {
			t.Errorf("%s: %v, want %v", s.dt, got, want)
		}
		tried++
		for _, x := range []arrow.Array{a, idx, want, got} {
			x.Release()
		}
	}
	if tried < 30 {
		t.Errorf("only %d types were compared", tried)
	}
}

// TestUnsupported: for an unsupported type the error says so and names the column, and
// no memory is left.
func TestUnsupported(t *testing.T) {
	mem := checked(t)
	codes, _, err := array.FromJSON(mem, arrow.PrimitiveTypes.Int8, strings.NewReader(`[0, 0]`))
	if err != nil {
		t.Fatal(err)
	}
	defer codes.Release()
	text, _, err := array.FromJSON(mem, arrow.BinaryTypes.String, strings.NewReader(`["a", "b"]`))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Release()
	union, err := array.NewSparseUnionFromArrays(codes, []arrow.Array{text})
	if err != nil {
		t.Fatal(err)
	}
	defer union.Release()
	ends, _, err := array.FromJSON(mem, arrow.PrimitiveTypes.Int32, strings.NewReader(`[1, 2]`))
	if err != nil {
		t.Fatal(err)
	}
	defer ends.Release()
	runs := array.NewRunEndEncodedArray(ends, text, 2, 0)
	defer runs.Release()
	listViews := array.NewBuilder(mem, arrow.ListViewOf(arrow.PrimitiveTypes.Int8))
	defer listViews.Release()
	listViews.AppendNulls(2)
	listView := listViews.NewArray()
	defer listView.Release()
	for _, a := range []arrow.Array{union, runs, listView} {
		st, err := array.NewStructArray([]arrow.Array{text, a}, []string{"text", "bad"})
		if err != nil {
			t.Fatal(err)
		}
		schema := arrow.NewSchema([]arrow.Field{{Name: "first", Type: text.DataType()}, {Name: "second", Type: st.DataType()}}, nil)
		rec := array.NewRecord(schema, []arrow.Array{text, st}, 2)
		_, err = take.Record(mem, rec, []int{1})
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "column second") {
			t.Errorf("%s: %v, want it to be unsupported in column second", a.DataType(), err)
		}
		rec.Release()
		st.Release()
	}
}

// limited fails the test if more memory is requested than a few short rows need.
type limited struct {
	memory.Allocator
	t     *testing.T
	asked int
}

func (l *limited) Allocate(n int) []byte {
	if l.asked = max(l.asked, n); n > 1<<20 {
		panic(errAsked)
	}
	return l.Allocator.Allocate(n)
}

func (l *limited) Reallocate(n int, b []byte) []byte {
	if l.asked = max(l.asked, n); n > 1<<20 {
		panic(errAsked)
	}
	return l.Allocator.Reallocate(n, b)
}

var errAsked = errors.New("asked for the memory")

// TestTooLarge: exactly the rows that 32-bit offsets cannot count are refused, before
// anything is allocated for them.
func TestTooLarge(t *testing.T) {
	const big = 64 << 20
	few, many := make([]int, math.MaxInt32/big), make([]int, math.MaxInt32/big+1)
	value := memory.NewBufferBytes(make([]byte, big))
	for _, dt := range []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeBinary} {
		offs := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, big}))
		large := dt.ID() == arrow.LARGE_STRING || dt.ID() == arrow.LARGE_BINARY
		if large {
			offs = memory.NewBufferBytes(arrow.Int64Traits.CastToBytes([]int64{0, big}))
		}
		text := array.MakeFromData(array.NewData(dt, 1, []*memory.Buffer{nil, offs, value}, nil, 0, 0))
		st, err := array.NewStructArray([]arrow.Array{text}, []string{"x"})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []arrow.Array{text, st} {
			fits := large && bits.UintSize == 64
			if err := tryTake(t, a, many); fits && err != errAsked || !fits && !errors.Is(err, take.ErrTooLarge) {
				t.Errorf("%s × %d: %v", a.DataType(), len(many), err)
			}
			if err := tryTake(t, a, few); err != errAsked {
				t.Errorf("%s × %d: %v, want it to be allowed", a.DataType(), len(few), err)
			}
		}
	}
	// Lists count elements, which may take no memory at all.
	const elems = 1 << 30
	offs := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, elems}))
	list := array.MakeFromData(array.NewData(arrow.ListOf(arrow.Null), 1, []*memory.Buffer{nil, offs}, []arrow.ArrayData{array.NewNull(elems).Data()}, 0, 0))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := tryTake(t, list, []int{0, 0}); !errors.Is(err, take.ErrTooLarge) {
		t.Errorf("lists: %v", err)
	}
	runtime.ReadMemStats(&after)
	if d := after.TotalAlloc - before.TotalAlloc; d > 1<<20 {
		t.Errorf("lists: %d bytes were allocated before the refusal", d)
	}
}

// tryTake returns the error of Array, or errAsked if it goes on to allocate.
func tryTake(t *testing.T, a arrow.Array, rows []int) error {
	return try(t, func(mem memory.Allocator) (arrow.Array, error) { return take.Array(mem, a, rows) })
}

func try(t *testing.T, fn func(memory.Allocator) (arrow.Array, error)) (err error) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer func() {
		if r := recover(); r != nil {
			if err, _ = r.(error); err != errAsked {
				panic(r)
			}
			return
		}
		mem.AssertSize(t, 0)
	}()
	out, err := fn(&limited{Allocator: mem, t: t})
	if err == nil {
		out.Release()
	}
	return err
}

// TestRecord: rows of all columns, and the number of rows if there is no column.
func TestRecord(t *testing.T) {
	mem := checked(t)
	md := arrow.NewMetadata([]string{"k"}, []string{"v"})
	rec, _, err := array.RecordFromJSON(mem, arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Int8, Nullable: true}, {Name: "b", Type: arrow.BinaryTypes.String, Nullable: true},
	}, &md), strings.NewReader(`[{"a":1,"b":"x"},{"a":null,"b":"y"},{"a":3,"b":null}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	got, err := take.Record(mem, rec, []int{2, -1, 0})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	want, _, err := array.RecordFromJSON(mem, rec.Schema(), strings.NewReader(`[{"a":3,"b":null},{"a":null,"b":null},{"a":1,"b":"x"}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer want.Release()
	if !array.RecordEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !got.Schema().Equal(rec.Schema()) || !got.Schema().HasMetadata() {
		t.Errorf("schema %v", got.Schema())
	}
	none := array.NewRecord(arrow.NewSchema(nil, nil), nil, 5)
	defer none.Release()
	got, err = take.Record(mem, none, []int{1, 2})
	if err != nil || got.NumRows() != 2 {
		t.Errorf("without columns: %v, %v", got, err)
	}
	got.Release()
}

// NULLs have exactly the type, with the names, nullability and metadata of its children; so have
// arrays that get another type of their layout.
func TestNulls(t *testing.T) {
	md := arrow.NewMetadata([]string{"a"}, []string{"b"})
	fixed := arrow.FixedSizeListOfField(2, arrow.Field{Name: "xy", Type: arrow.PrimitiveTypes.Int16, Metadata: md})
	types := []arrow.DataType{fixed, arrow.FixedSizeListOfNonNullable(1, fixed), arrow.LargeListOfField(arrow.Field{Name: "x", Type: fixed}), arrow.StructOf(arrow.Field{Name: "s", Type: fixed})}
	for _, s := range samples() {
		types = append(types, s.dt)
	}
	for _, dt := range types {
		for _, n := range []int{0, 3} {
			a, err := take.Nulls(memory.DefaultAllocator, dt, n)
			if err != nil {
				t.Fatalf("%s: %v", dt, err)
			}
			if a.DataType() != dt || a.Len() != n || a.NullN() != n {
				t.Errorf("%d NULLs of %s: %d of %d, of %s", n, dt, a.NullN(), a.Len(), a.DataType())
			}
			as := take.As(a, dt)
			if rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "c", Type: dt, Nullable: true}}, nil), []arrow.Array{as}, int64(n)); rec.Column(0).NullN() != n {
				t.Errorf("%s: not NULL as that type", dt)
			}
		}
	}
	for _, dt := range []arrow.DataType{arrow.SparseUnionOf([]arrow.Field{{Name: "a", Type: fixed}}, []arrow.UnionTypeCode{0}), arrow.ListViewOf(fixed)} {
		if _, err := take.Nulls(memory.DefaultAllocator, dt, 1); !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: %v, want unsupported", dt, err)
		}
	}
}
