package adapt

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// leafOf returns the source of leaf i of the target.
func leafOf(t testing.TB, from, to string, i int) *LeafSource {
	t.Helper()
	a, err := New(schemaFileOf(t, "log.parquet", from), schemaOf(t, to))
	if err != nil {
		t.Fatal(err)
	}
	return &a.Leaves[i]
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Values by hand, PLAIN, in hexadecimal.
func TestWidenedBytes(t *testing.T) {
	for _, c := range []struct{ from, to, in, out string }{
		{"int32 x", "int64 x", "ffffffff 00000080 ffffff7f", "ffffffffffffffff 00000080ffffffff ffffff7f00000000"},
		{"int32 x (UINT 32)", "int64 x", "ffffffff 00000080", "ffffffff00000000 0000008000000000"},
		{"int32 x (INT 8)", "int32 x (INT 16)", "80ffffff 7f000000", "80ffffff 7f000000"},
		{"int32 x (UINT 8)", "int64 x (UINT 64)", "ff000000", "ff00000000000000"},
		{"int32 x (UINT 32)", "int64 x (UINT 64)", "ffffffff", "ffffffff00000000"},
		{"int32 x", "double x", "ffffffff ffffff7f", "000000000000f0bf 0000c0ffffffdf41"},
		{"int32 x (UINT 32)", "double x", "ffffffff", "0000e0ffffffef41"},
		{"int32 x (INT 16)", "float x", "0080ffff", "000000c7"},
		{"float x", "double x", "0000803f 00000080 01000000 000080ff", "000000000000f03f 0000000000000080 000000000000a036 000000000000f0ff"},
		{"float x", "double x", "0100807f 0000c0ff", "000000200000f07f 000000000000f8ff"}, // NaNs, the first one signalling
		{"int32 x (DECIMAL 9 2)", "int64 x (DECIMAL 18 2)", "feffffff", "feffffffffffffff"},
		{"int32 x (DECIMAL 9 2)", "fixed(5) x (DECIMAL 11 2)", "feffffff 00010000", "fffffffffe 0000000100"},
		{"fixed(2) x (DECIMAL 4 2)", "fixed(3) x (DECIMAL 6 2)", "8001 7fff", "ff8001 007fff"},
		{"fixed(2) x (DECIMAL 4 2)", "binary x (DECIMAL 6 2)", "0001 ffff", "020000000001 02000000ffff"},
		{"int32 x (DECIMAL 9 2)", "binary x (DECIMAL 9 2)", "7f000000 80000000 80ffffff 7fffffff 00000000 ffffffff 00000080",
			"010000007f 020000000080 0100000080 02000000ff7f 0100000000 01000000ff 0400000080000000"},
		{"int64 x (DECIMAL 18 2)", "binary x (DECIMAL 18 2)", "0000000000000080 ffffffffffffff7f", "080000008000000000000000 080000007fffffffffffffff"},
		{"int64 x (TIMESTAMP MILLIS)", "int64 x (TIMESTAMP MICROS)", "ffffffffffffffff", "18fcffffffffffff"},
		{"int64 x (TIMESTAMP MICROS UTC)", "int64 x (TIMESTAMP NANOS UTC)", "0100000000000000", "e803000000000000"},
		{"int32 x (TIME MILLIS)", "int64 x (TIME NANOS)", "01000000", "40420f0000000000"},
	} {
		s := leafOf(t, "required "+c.from, "required "+c.to, 0)
		in, want := unhex(t, c.in), hex.EncodeToString(unhex(t, c.out))
		n := len(fieldsOf(s.file).children[0].value.values(in))
		out, _, err := s.Pages(0).Adapt(&parquet.Page{Number: 1, Values: n, Rows: n, NonNull: n, Plain: in, Encoding: format.ByteStreamSplit}, nil)
		if err != nil || hex.EncodeToString(out.Plain) != want || out.Encoding != format.Plain || s.Identity() {
			t.Errorf("%s to %s: %v, got %x, want %s", c.from, c.to, err, out.Plain, want)
		}
		indices := make([]uint32, n)
		out, dict, err := s.Pages(0).Adapt(&parquet.Page{Values: n, Rows: n, NonNull: n, Indices: indices, Coded: true, Encoding: format.RLEDictionary},
			&parquet.Dictionary{Len: n, Plain: in})
		if err != nil || out.Encoding != format.RLEDictionary || hex.EncodeToString(dict.Plain) != want || dict.Len != n || !out.Coded {
			t.Errorf("%s to %s: %v, a dictionary of %x, want %s", c.from, c.to, err, dict.Plain, want)
		}
	}
}

func TestValuesThatDoNotFit(t *testing.T) {
	nanos, micros := int64(math.MaxInt64)/1000, int64(math.MaxInt64)/1000000
	for _, c := range []struct {
		from, to string
		values   []byte // the first one does not fit, the second one does
		kind     error
	}{
		{"int64 x (TIMESTAMP MICROS)", "int64 x (TIMESTAMP NANOS)", plain64([]int64{nanos + 1, nanos}), fault.ErrMismatch},
		{"int64 x (TIMESTAMP MICROS)", "int64 x (TIMESTAMP NANOS)", plain64([]int64{-nanos - 1, -nanos}), fault.ErrMismatch},
		{"int64 x (TIMESTAMP MILLIS)", "int64 x (TIMESTAMP NANOS)", plain64([]int64{micros + 1, micros}), fault.ErrMismatch},
		{"int64 x (TIMESTAMP MILLIS)", "int64 x (TIMESTAMP NANOS)", plain64([]int64{math.MinInt64, -micros}), fault.ErrMismatch},
		{"int64 x (TIMESTAMP MILLIS)", "int64 x (TIMESTAMP MICROS)", plain64([]int64{math.MaxInt64, nanos}), fault.ErrMismatch},
		{"int64 x (TIME MICROS)", "int64 x (TIME NANOS)", plain64([]int64{math.MaxInt64, 86399999999}), fault.ErrMismatch},
		{"int32 x (INT 8)", "int32 x (INT 16)", plain32([]int32{128, 127}), fault.ErrCorrupt},
		{"int32 x (INT 8)", "int64 x", plain32([]int32{-129, -128}), fault.ErrCorrupt},
		{"int32 x (UINT 8)", "int32 x", plain32([]int32{-1, 255}), fault.ErrCorrupt},
		{"int32 x (UINT 16)", "float x", plain32([]int32{65536, 65535}), fault.ErrCorrupt},
		{"int32 x (DECIMAL 4 2)", "fixed(2) x (DECIMAL 4 2)", plain32([]int32{32768, 32767}), fault.ErrMismatch},
		{"int32 x (DECIMAL 4 2)", "fixed(2) x (DECIMAL 4 2)", plain32([]int32{-32769, -32768}), fault.ErrMismatch},
	} {
		s := leafOf(t, "required "+c.from, "optional "+c.to, 0)
		first := c.values[:len(c.values)/2]
		_, _, err := s.Pages(2).Adapt(&parquet.Page{Number: 7, Values: 1, Rows: 1, NonNull: 1, Plain: first}, nil)
		if !errors.Is(err, c.kind) || !strings.HasPrefix(err.Error(), "log.parquet: row group 3: column x: page 7: ") {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
		// A dictionary entry matters only if it is used.
		dict := &parquet.Dictionary{Len: 2, Plain: c.values}
		a := s.Pages(0)
		for _, used := range []uint32{1, 0, 1} {
			_, _, err := a.Adapt(&parquet.Page{Values: 1, Rows: 1, NonNull: 1, Indices: []uint32{used}, Coded: true}, dict)
			if used == 0 && !errors.Is(err, c.kind) || used == 1 && err != nil {
				t.Errorf("%s to %s: entry %d: %v", c.from, c.to, used, err)
			}
		}
	}
}

func TestDictionaryIsConvertedOnce(t *testing.T) {
	a := leafOf(t, "optional int32 x", "optional int64 x", 0).Pages(0)
	one, two := &parquet.Dictionary{Len: 1, Plain: plain32([]int32{1})}, &parquet.Dictionary{Len: 1, Plain: plain32([]int32{2})}
	page := &parquet.Page{Values: 1, Rows: 1, NonNull: 1, Def: []uint8{1}, Indices: []uint32{0}, Coded: true}
	convert := func(d *parquet.Dictionary) *parquet.Dictionary {
		_, out, err := a.Adapt(page, d)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := convert(one)
	if convert(one) != first {
		t.Error("the dictionary was converted again")
	}
	if second := convert(two); second == first || second.Plain[0] != 2 || first.Plain[0] != 1 {
		t.Error("another dictionary was not converted, or over the first")
	}
	if _, d, err := a.Adapt(&parquet.Page{Values: 1, Rows: 1, Def: []uint8{0}, Coded: true}, nil); err != nil || d != nil {
		t.Errorf("a page of NULLs without a dictionary: %v, %v", d, err)
	}
}

func TestNullColumnWithAValue(t *testing.T) {
	for _, to := range []string{"optional int64 x", "optional group x { required int32 y; optional int32 z }"} {
		a := leafOf(t, "optional int32 x (NULL)", to, 0).Pages(0)
		if _, _, err := a.Adapt(&parquet.Page{Values: 2, Rows: 2, Def: []uint8{0, 0}}, nil); err != nil {
			t.Error(err)
		}
		_, _, err := a.Adapt(&parquet.Page{Number: 3, Values: 2, Rows: 2, NonNull: 1, Def: []uint8{0, 1}, Plain: plain32([]int32{1})}, nil)
		if !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestValuesThatWidenBeyondAPage(t *testing.T) {
	s := leafOf(t, "optional int32 x (DECIMAL 9 2)", "optional fixed(1048576) x (DECIMAL 20 2)", 0)
	values := make([]byte, 4*300)
	_, _, err := s.Pages(0).Adapt(&parquet.Page{Values: 300, Rows: 300, NonNull: 300, Def: make([]uint8, 300), Plain: values}, nil)
	if !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
}

func TestAdapterRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"required int32 a", "required int32 a; required int32 b", "column b: mismatch: the file's column does not fit the output's schema: want required INT32, got no such column"},
		{"optional int32 a", "required int32 a", "column a: mismatch: the file's column does not fit the output's schema: want required, got optional"},
		{"optional int64 a", "optional int32 a", "want INT32, got INT64"},
		{"optional int64 a", "optional double a", "want DOUBLE, got INT64"},
		{"optional int32 a", "optional binary a (STRING)", "want BYTE_ARRAY STRING, got INT32"},
		{"optional group s { optional int32 a; optional int32 b }", "optional group s { optional int32 a }", "column s.b: mismatch: the file's column does not fit the output's schema: want no such field in the structure, got INT32"},
		{"optional group s { optional int32 a }", "optional int32 s", "want INT32, got group"},
		{"repeated int32 a", "optional int32 a", "want INT32, got repeated INT32"},
		{"optional int32 a (NULL)", "required int32 a", "want an optional column, got INT32 NULL"},
		{"optional int32 a (NULL)", "repeated int32 a", "want an optional column, got INT32 NULL"},
		{"optional int32 a", "optional int32 a (NULL)", "want INT32 NULL, got INT32"},
		{"optional int32 a; optional int32 a", "optional int32 a", "two columns with the same name"},
	} {
		_, err := New(schemaFileOf(t, "log.parquet", c.from), schemaOf(t, c.to))
		if !typedUnion(err) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "log.parquet: ") {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
}

// The cost of a missing column: none if levels do not matter, else that of the leaf
// with the fewest levels.
func TestSourcesOfMissingColumns(t *testing.T) {
	const from = "required group r { required int32 x }; optional group o { optional group l (LIST) { repeated group list { optional int32 element } }; optional int32 y }"
	const to = "required int32 k; optional int32 new; required group r { required int32 x; optional int32 new }; " +
		"optional group o { optional group l (LIST) { repeated group list { optional int32 element } }; optional int32 y; optional int32 new; repeated int32 many }"
	a, err := New(schemaFileOf(t, "f", strings.Replace(from, "required", "required int32 k; required", 1)), schemaOf(t, to))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		leaf              int
		missing, identity bool
	}{
		{0, false, true}, {-1, true, false}, {1, false, true}, {-1, true, false},
		{2, false, true}, {3, false, true}, {3, false, false}, {3, false, false},
	} {
		s := &a.Leaves[i]
		if s.Leaf != want.leaf || s.Missing != want.missing || s.Identity() != want.identity || s.LevelsOnly == want.identity {
			t.Errorf("leaf %d is %+v, want %+v", i, s, want)
		}
	}
}

// The footers of many files are united once per run.
func BenchmarkUnion(b *testing.B) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "optional int32 column%d; ", i)
	}
	files := make([]*parquet.File, 100)
	for i := range files {
		files[i] = schemaFileOf(b, "f", strings.Replace(text.String(), fmt.Sprintf("int32 column%d;", i), fmt.Sprintf("int64 column%d;", i), 1))
	}
	for b.Loop() {
		if _, err := Union(files, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(files)), "us/file")
}

func BenchmarkAdapt(b *testing.B) {
	const n = 20000
	def, plain := make([]uint8, n), make([]byte, 4*n)
	for i := range def {
		def[i] = 1
	}
	for name, c := range map[string][2]string{
		"levels":          {"required int32 x", "optional int32 x"},
		"int32-to-int64":  {"optional int32 x", "optional int64 x"},
		"int8-to-int16":   {"optional int32 x (INT 8)", "optional int32 x (INT 16)"},
		"float-to-double": {"optional float x", "optional double x"},
	} {
		b.Run(name, func(b *testing.B) {
			s := leafOf(b, c[0], c[1], 0)
			p := &parquet.Page{Values: n, Rows: n, NonNull: n, Plain: plain}
			if strings.HasPrefix(c[0], "optional") {
				p.Def = def
			}
			a := s.Pages(0)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := a.Adapt(p, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}

func plain32(v []int32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func plain64(v []int64) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}
