package avro_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/lake/avro"
)

func every(int) bool { return true }

func none(int) bool { return false }

func golden(t testing.TB, codec string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", codec+".avro"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// show prints a value with its kind.
func show(v *avro.Value, ids ...int) string {
	if v == nil {
		return "nil"
	}
	switch v.Kind {
	case avro.Null:
		return "null"
	case avro.Float, avro.Double:
		return fmt.Sprint(v.Kind, " ", v.Float)
	case avro.Bytes, avro.String, avro.Fixed:
		return fmt.Sprintf("%v %q", v.Kind, v.Bytes)
	case avro.Array:
		var all []string
		for i := range v.List {
			all = append(all, show(&v.List[i], ids...))
		}
		return fmt.Sprint(v.Kind, " ", all)
	case avro.Rec:
		var all []string
		for _, id := range ids {
			all = append(all, show(v.Value(id)))
		}
		return fmt.Sprint(all)
	}
	return fmt.Sprint(v.Kind, " ", v.Int)
}

// want returns what testdata/make.py writes as record i.
func want(i int) string {
	or := func(null bool, format string, args ...any) string {
		if null {
			return "null"
		}
		return fmt.Sprintf(format, args...)
	}
	var counts, bounds, other []string
	for c := range i % 7 {
		counts = append(counts, fmt.Sprintf("[int %d long %d]", c, i+c))
	}
	for c := range i % 4 {
		bounds = append(bounds, fmt.Sprintf("[int %d bytes %q]", c, strings.Repeat(string(rune(c)), c)))
	}
	for range i % 3 {
		other = append(other, "[]") // keys and values have no ids
	}
	snapshot := int64(1) << (i % 63)
	if i%2 == 1 {
		snapshot = -snapshot
	}
	return strings.Join([]string{
		fmt.Sprint("int ", i%3), or(i == 1, "long %d", snapshot), fmt.Sprintf("string %q", fmt.Sprintf("s3://b/d/%d.parquet", i)),
		or(i%4 == 0, "int %d", i-5), or(i%4 == 1, "long %d", int64(i)<<33), or(i%4 == 2, "fixed %q", strings.Repeat(string([]byte{byte(i)}), 16)),
		[]string{"null", fmt.Sprintf("string %q", strings.Repeat("t", i)), fmt.Sprintf("bytes %q", make([]byte, i))}[i%3],
		or(i%5 == 0, "float %v", float64(i)/4), or(i%5 == 1, "double %v", float64(i)/8), fmt.Sprint("boolean ", i%2),
		fmt.Sprint("long ", i*i), or(i%3 == 2, "array %v", counts), fmt.Sprintf("array [[int %d long 0]]", i), fmt.Sprintf("array %v", bounds),
		or(i%2 == 1, "array [long 4 long %d]", int64(1)<<i), fmt.Sprintf("array %v", other), fmt.Sprint("enum ", i%3),
	}, ", ")
}

func TestGolden(t *testing.T) {
	for _, codec := range codecs {
		i := 0
		err := new(avro.Reader).Read(golden(t, codec), every, func(r *avro.Value) error {
			f := r.Value(2)
			p := f.Value(102)
			got := []string{show(r.Value(0)), show(r.Value(1)), show(f.Value(100))}
			for id := 1000; id <= 1006; id++ {
				got = append(got, show(p.Value(id)))
			}
			got = append(got, show(f.Value(103)), show(f.Value(109), 117, 118), show(f.Value(110), 117, 118), show(f.Value(125), 126, 127))
			got = append(got, show(f.Value(132)), show(f.Value(900)), show(f.Value(901)))
			if got := strings.Join(got, ", "); got != want(i) {
				t.Errorf("%s: record %d: got  %s\nwant %s", codec, i, got, want(i))
			}
			i++
			return nil
		})
		if err != nil || i != 40 {
			t.Errorf("%s: %d records: %v", codec, i, err)
		}
	}
}

// Fields that are not asked for are not there, nor are those in them.
func TestWanted(t *testing.T) {
	asked := map[int]bool{2: true, 102: true, 1001: true, 110: true, 118: true, 1: false}
	err := new(avro.Reader).Read(golden(t, "null"), func(id int) bool { return asked[id] }, func(r *avro.Value) error {
		f := r.Value(2)
		for id, v := range map[int]*avro.Value{0: r.Value(0), 1: r.Value(1), 100: f.Value(100), 1000: f.Value(102).Value(1000), 117: f.Value(110).List[0].Value(117), 9999: r.Value(9999), 5: (*avro.Value)(nil).Value(5)} {
			if v != nil {
				t.Errorf("field %d is there: %v", id, v)
			}
		}
		if f.Value(102).Value(1001) == nil || f.Value(110).List[0].Value(118) == nil {
			t.Errorf("a field is missing")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The error of a caller is returned as it is, and ends the reading.
func TestStop(t *testing.T) {
	stop, n := errors.New("stop"), 0
	err := new(avro.Reader).Read(golden(t, "null"), none, func(*avro.Value) error { n++; return stop })
	if err != stop || n != 1 {
		t.Errorf("%v after %d records", err, n)
	}
}

// A file that is cut off anywhere but between two blocks is damaged.
func TestCut(t *testing.T) {
	for _, codec := range codecs {
		b := golden(t, codec)
		whole := 0
		for n := range b {
			rows := 0
			err := new(avro.Reader).Read(b[:n:n], every, func(*avro.Value) error { rows++; return nil })
			if err == nil {
				whole++
			} else if !errors.Is(err, fault.ErrCorrupt) {
				t.Fatalf("%s: %d bytes: %v", codec, n, err)
			}
			if ends := n > 16 && string(b[n-16:n]) == string(b[len(b)-16:]); ends != (err == nil) {
				t.Fatalf("%s: %d bytes: %v", codec, n, err)
			}
		}
		if whole < 3 {
			t.Errorf("%s: only %d blocks", codec, whole)
		}
	}
}

// long returns integers as they are stored.
func long(values ...int64) (b []byte) {
	for _, v := range values {
		b = binary.AppendVarint(b, v)
	}
	return b
}

// of returns the schema of a record of one field.
func of(field any) any {
	return map[string]any{"type": "record", "name": "r", "fields": []any{map[string]any{"name": "f", "type": field, "field-id": 1}}}
}

type object = map[string]any

// laughs returns records of ten fields in each other, of which the innermost have no bytes.
func laughs() any {
	t := any("null")
	for i := range 30 {
		fields := []any{}
		for j := range 10 {
			fields = append(fields, object{"name": fmt.Sprint("f", j), "type": t, "field-id": j})
			t = fmt.Sprint("L", i-1)
			if i == 0 {
				t = "null"
			}
		}
		t = object{"type": "record", "name": fmt.Sprint("L", i), "fields": fields}
	}
	return t
}

func deep(n int) any {
	t := any("int")
	for range n {
		t = object{"type": "array", "items": t}
	}
	return of(t)
}

var self = object{"type": "record", "name": "r", "fields": []any{object{"name": "f", "field-id": 1, "type": []any{"null", "r"}}}}

// hostile are files that are refused, with the reason.
var hostile = []struct {
	name, want string
	b          []byte
}{
	{"empty", "no Avro container file", nil},
	{"magic", `want "Obj\x01" first, got "PAR1"`, []byte("PAR1PAR1")},
	{"header", "ends early", []byte("Obj\x01\x00")},
	{"endless header", "values here", append([]byte("Obj\x01"), long(1<<60)...)},
	{"many entries of the header", "values here", append(append([]byte("Obj\x01"), long(1<<20)...), make([]byte, 1<<17)...)},
	{"no schema", "the Avro schema", append([]byte("Obj\x01\x00"), marker...)},
	{"codec", `the Avro codec "xz"`, file(of("int"), "xz", []int64{1}, [][]byte{{0}})},
	{"no record", "want record, got int", file("int", "null", nil, nil)},
	{"no type", `the type "" is unknown`, file(of(object{"type": "array"}), "null", nil, nil)},
	{"unknown type", `the type "x" is unknown`, file(of("x"), "null", nil, nil)},
	{"array by name", `the type "array" is unknown`, file(of("array"), "null", nil, nil)},
	{"fixed", "want the size", file(of(object{"type": "fixed", "name": "x", "size": -1}), "null", nil, nil)},
	{"large fixed", "want the size", file(of(object{"type": "fixed", "name": "x", "size": 1e300}), "null", nil, nil)},
	{"fields", "want the size, symbols or fields", file(object{"type": "record", "name": "r"}, "null", nil, nil)},
	{"enum", "want the size, symbols or fields", file(of(object{"type": "enum", "name": "e"}), "null", nil, nil)},
	{"name twice", `"r" is there twice`, file(of(of("int")), "null", nil, nil)},
	{"id twice", "have the id 1", file(object{"type": "record", "name": "r", "fields": []any{object{"type": "int", "field-id": 1}, object{"type": "int", "field-id": 1}}}, "null", nil, nil)},
	{"types in types", "64 types in each other", file(deep(70), "null", nil, nil)},
	{"values in values", "64 in each other", file(self, "null", []int64{1}, [][]byte{[]byte(strings.Repeat("\x02", 70) + "\x00")})},
	{"record in itself", "64 in each other", file(object{"type": "record", "name": "r", "fields": []any{object{"type": "r", "field-id": 1}}}, "null", []int64{1}, [][]byte{{}})},
	{"negative records", "-1 records", file(of("int"), "null", []int64{-1}, [][]byte{{}})},
	{"endless records", "records in 0 bytes", file(of("null"), "null", []int64{1 << 60}, [][]byte{{}})},
	{"endless nulls", "values here", file(of(object{"type": "array", "items": "null"}), "null", []int64{1}, [][]byte{long(1<<60, 0)})},
	{"more items than bytes", "values here", file(of(object{"type": "array", "items": "int"}), "null", []int64{1}, [][]byte{append(long(200000), make([]byte, 100000)...)})},
	{"least count", "values here", file(of(object{"type": "array", "items": "null"}), "null", []int64{1}, [][]byte{long(-1<<63, 0, 0)})},
	{"many lists of nulls", "values here", file(of(object{"type": "array", "items": object{"type": "array", "items": "null"}}), "null", []int64{1}, [][]byte{append(long(1000), strings.Repeat(string(long(4000, 0)), 1000)...)})},
	{"records of nothing", "values here", file(laughs(), "null", []int64{1}, [][]byte{{}})},
	{"long", "integer of 64 bits", file(of("long"), "null", []int64{1}, [][]byte{append([]byte(strings.Repeat("\xff", 9)), 2)})},
	{"longer", "integer of 64 bits", file(of("long"), "null", []int64{1}, [][]byte{append([]byte(strings.Repeat("\x80", 10)), 0)})},
	{"int", "int 2147483648", file(of("int"), "null", []int64{1}, [][]byte{long(1 << 31)})},
	{"enum's symbol", "enum 1", file(of(object{"type": "enum", "name": "e", "symbols": []any{"A"}}), "null", []int64{1}, [][]byte{long(1)})},
	{"boolean", "boolean 2", file(of("boolean"), "null", []int64{1}, [][]byte{{2}})},
	{"branch", "branch 2 of a union of 2", file(of([]any{"null", "int"}), "null", []int64{1}, [][]byte{long(2)})},
	{"branch below", "branch -1 of a union of 2", file(of([]any{"null", "int"}), "null", []int64{1}, [][]byte{long(-1)})},
	{"length", "want a length of at most 1, got 2", file(of("bytes"), "null", []int64{1}, [][]byte{append(long(2), 0)})},
	{"negative length", "got -1", file(of("bytes"), "null", []int64{1}, [][]byte{long(-1)})},
	{"length of items", "items of a list to end", file(of(object{"type": "array", "items": "int"}), "null", []int64{1}, [][]byte{long(-1, 2, 5, 0)})},
	{"shorter length of items", "items of a list to end", file(of(object{"type": "array", "items": "int"}), "null", []int64{1}, [][]byte{long(-1, 0, 5, 0)})},
	{"bytes left", "1 bytes follow", file(of("int"), "null", []int64{1}, [][]byte{{0, 0}})},
	{"marker", "want the marker", change(file(of("int"), "null", []int64{1}, [][]byte{{0}}), 1)},
	{"snappy's checksum", "compressed with snappy", change(file(of("int"), "snappy", []int64{1}, [][]byte{{0}}), 17)},
	{"snappy's size", "compressed with snappy", raw("snappy", binary.AppendUvarint(nil, 1<<40), 8)},
	{"snappy's checksum is missing", "compressed with snappy", raw("snappy", nil, 3)},
	{"deflate", "compressed with deflate", raw("deflate", []byte{0xff}, 3)},
	{"zstandard", "compressed with zstandard", raw("zstandard", nil, 8)},
	{"zstandard's window", "compressed with zstandard", raw("zstandard", []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8, 1, 0, 0}, 0)},
}

// change changes the byte at a distance from the end.
func change(b []byte, fromEnd int) []byte {
	b[len(b)-fromEnd] ^= 1
	return b
}

// raw returns a file of a block that is b and zeros.
func raw(codec string, b []byte, zeros int) []byte {
	all := file(of("int"), codec, nil, nil)
	b = append(b, make([]byte, zeros)...)
	return append(append(append(all, long(1, int64(len(b)))...), b...), marker...)
}

func TestHostile(t *testing.T) {
	for _, c := range hostile {
		before := allocated()
		err := new(avro.Reader).Read(c.b, every, func(*avro.Value) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: %v is of no kind", c.name, err)
		}
		if got := allocated() - before; got > limit(c.b) {
			t.Errorf("%s: %d bytes are allocated for %d", c.name, got, len(c.b))
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// limit returns how many bytes may be allocated for a file.
func limit(b []byte) uint64 { return 4<<20 + 300*uint64(len(b)) }

// Numbers of a manifest as large tables have them.
const entries, perBlock = 20000, 500

// manifest returns a file with counts and bounds of a number of columns.
func manifest(codec string, columns int64) []byte {
	pair := func(name, value string, id int) any {
		return []any{"null", object{"type": "array", "items": object{"type": "record", "name": name, "fields": []any{
			object{"name": "key", "type": "int", "field-id": id}, object{"name": "value", "type": value, "field-id": id + 1}}}}}
	}
	schema := object{"type": "record", "name": "entry", "fields": []any{
		object{"name": "status", "type": "int", "field-id": 0},
		object{"name": "snapshot", "type": []any{"null", "long"}, "field-id": 1},
		object{"name": "seq", "type": []any{"null", "long"}, "field-id": 3},
		object{"name": "file", "field-id": 2, "type": object{"type": "record", "name": "r2", "fields": []any{
			object{"name": "content", "type": "int", "field-id": 134},
			object{"name": "path", "type": "string", "field-id": 100},
			object{"name": "format", "type": "string", "field-id": 101},
			object{"name": "partition", "field-id": 102, "type": object{"type": "record", "name": "r102", "fields": []any{
				object{"name": "day", "type": []any{"null", "int"}, "field-id": 1000}}}},
			object{"name": "rows", "type": "long", "field-id": 103},
			object{"name": "size", "type": "long", "field-id": 104},
			object{"name": "counts", "type": pair("c", "long", 117), "field-id": 109},
			object{"name": "lower", "type": pair("l", "bytes", 126), "field-id": 125},
		}}},
	}}
	var blocks [][]byte
	var counts []int64
	for i := range int64(entries) {
		if i%perBlock == 0 {
			blocks, counts = append(blocks, nil), append(counts, perBlock)
		}
		b := &blocks[len(blocks)-1]
		path := fmt.Sprintf("s3://bucket/warehouse/events/data/day=2024-01-01/part-%08d.parquet", i)
		*b = append(*b, long(1, 1, i<<40, 1, i/1000, 0, int64(len(path)))...)
		*b = append(append(*b, path...), long(7)...)
		*b = append(append(*b, "PARQUET"...), long(1, 19000+i/100, 1000000+i, 123456789+i)...)
		for list := range int64(2) {
			if *b = append(*b, long(min(columns, 1))...); columns == 0 {
				continue
			}
			*b = append(*b, long(columns)...)
			for c := range columns {
				if *b = append(*b, long(c, 8+list)...); list == 1 {
					*b = append(*b, "12345678"+string(rune('a'))...)
				}
			}
			*b = append(*b, 0)
		}
	}
	return file(schema, codec, counts, blocks)
}

// simple are the fields of a file without counts and bounds.
func simple(id int) bool { return id < 105 || id >= 1000 }

// Records share their memory.
func TestAllocations(t *testing.T) {
	b := manifest("null", 2)
	n, files := 0, int64(0)
	allocs := testing.AllocsPerRun(1, func() {
		err := new(avro.Reader).Read(b, every, func(r *avro.Value) error {
			n++
			files += r.Value(2).Value(103).Int
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	if n != 2*entries || files != entries*(2000000+entries-1) {
		t.Errorf("%d records, %d rows", n, files)
	}
	if allocs > 1000 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkRead(b *testing.B) {
	for _, columns := range []int64{0, 10} {
		for _, codec := range []string{"null", "deflate", "zstandard"} {
			for name, wanted := range map[string]func(int) bool{"simple": simple, "every": every} {
				file := manifest(codec, columns)
				b.Run(fmt.Sprint(columns, "/", codec, "/", name), func(b *testing.B) {
					for range b.N {
						if err := new(avro.Reader).Read(file, wanted, func(*avro.Value) error { return nil }); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(entries)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mentries/s")
				})
			}
		}
	}
}

// Whatever a file has, it is read or refused, in memory in proportion. Where all fields can be
// read, they can be skipped, too.
func FuzzRead(f *testing.F) {
	for _, codec := range codecs {
		f.Add(golden(f, codec), uint64(3))
	}
	for _, c := range hostile {
		f.Add(c.b, uint64(1))
	}
	for seed := range uint64(8) {
		b, _, _ := draw(seed)
		f.Add(b, seed)
	}
	f.Fuzz(func(t *testing.T, b []byte, mask uint64) {
		before := allocated()
		read := func(wanted func(int) bool) (n int, err error) {
			err = new(avro.Reader).Read(b, wanted, func(r *avro.Value) error {
				n++
				for id := range 3 {
					show(r.Value(id), 100, 102)
				}
				return nil
			})
			return n, err
		}
		all, err := read(every)
		for _, wanted := range []func(int) bool{none, func(id int) bool { return mask>>(id&63)&1 != 0 }} {
			if n, again := read(wanted); err == nil && (again != nil || n != all) {
				t.Errorf("%d records, and with some of the fields %d: %v", all, n, again)
			}
		}
		packed := slices.ContainsFunc(codecs[1:], func(codec string) bool { return bytes.Contains(b, []byte(codec)) })
		if got := allocated() - before; !packed && got > 16<<20+4000*uint64(len(b)) {
			t.Errorf("%d bytes are allocated for %d", got, len(b))
		}
	})
}
