package columns

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/publish"
)

func le32(x uint32) []byte { return binary.LittleEndian.AppendUint32(nil, x) }
func le64(x uint64) []byte { return binary.LittleEndian.AppendUint64(nil, x) }

func f32(x float32) []byte { return le32(math.Float32bits(x)) }
func f64(x float64) []byte { return le64(math.Float64bits(x)) }

func ago(days int32) []byte { return le32(uint32(days)) }

// minus returns -x.
func minus(x int64) []byte { return le64(uint64(-x)) }

// Bounds of each type, with the values that pyarrow and Python's datetime, decimal
// and struct give to the same bytes.
func TestBounds(t *testing.T) {
	at := func(u parquet.Unit, utc bool) parquet.Logical {
		return parquet.Logical{Kind: parquet.Timestamp, Unit: u, UTC: utc}
	}
	clock := func(u parquet.Unit) parquet.Logical { return parquet.Logical{Kind: parquet.Time, Unit: u} }
	unsigned := parquet.Logical{Kind: parquet.Int, BitWidth: 64}
	dec := func(p, s int) parquet.Logical { return parquet.Logical{Kind: parquet.Decimal, Precision: p, Scale: s} }
	text, day := parquet.Logical{Kind: parquet.String}, parquet.Logical{Kind: parquet.Date}
	fixed, array, i32, i64 := format.FixedLenByteArray, format.ByteArray, format.Int32, format.Int64
	none := parquet.Logical{}
	raw := func(s string) []byte { b, _ := hex.DecodeString(s); return b }
	const micros, nanos = 1704103872123456, 1704103872123456789
	for _, c := range []struct {
		typ     format.Type
		logical parquet.Logical
		v       []byte
		want    string // "": none
	}{
		{format.Boolean, none, []byte{1}, "true"},
		{format.Boolean, none, []byte{0}, "false"},
		{i32, none, le32(math.MaxUint32), "-1"},
		{i32, parquet.Logical{Kind: parquet.Int, BitWidth: 32}, le32(math.MaxUint32), "4294967295"},
		{i64, none, le64(1 << 53), "9007199254740992"},
		{i64, none, le64(1<<53 + 1), `"9007199254740993"`},
		{i64, none, le64(uint64(1<<63 - 1)), `"9223372036854775807"`},
		{i64, none, le64(1 << 63), `"-9223372036854775808"`},
		{i64, unsigned, le64(1 << 63), `"9223372036854775808"`},
		{i64, unsigned, le64(7), "7"},
		{format.Float, none, f32(0.1), "0.10000000149011612"},
		{format.Float, none, f32(0.3), "0.30000001192092896"},
		{format.Double, none, f64(0.1), "0.1"},
		{format.Double, none, f64(5), "5.0"},
		{format.Double, none, f64(math.Copysign(0, -1)), "-0.0"},
		{format.Double, none, f64(1e300), "1e+300"},
		{format.Double, none, f64(math.Inf(1)), `"inf"`},
		{format.Double, none, f64(math.Inf(-1)), `"-inf"`},
		{format.Double, none, f64(math.NaN()), ""},
		{fixed, parquet.Logical{Kind: parquet.Float16}, []byte{0x00, 0x3e}, "1.5"},
		{fixed, parquet.Logical{Kind: parquet.Float16}, []byte{0x01, 0x80}, "-5.960464477539063e-08"},
		{fixed, parquet.Logical{Kind: parquet.Float16}, []byte{0x00, 0xfc}, `"-inf"`},
		{fixed, parquet.Logical{Kind: parquet.Float16}, []byte{0xff, 0x7b}, "65504.0"},
		{i32, dec(9, 2), le32(math.MaxUint32 - 4), `"-0.05"`},
		{i32, dec(9, 0), le32(120), `"120"`},
		{i64, dec(18, 3), le64(123456), `"123.456"`},
		{fixed, dec(38, 2), raw("ffffffffffffffffffffffffffffff9c"), `"-1.00"`},
		{array, dec(38, 38), raw("01"), `"0.` + strings.Repeat("0", 37) + `1"`},
		{fixed, dec(39, 2), raw("00000000000000000000000000000000ff"), ""},
		{array, dec(38, 2), raw(strings.Repeat("7f", 40)), ""},
		{array, text, []byte(`a"é`), `"a\"é"`},
		{array, text, []byte{}, `""`},
		{array, text, []byte("a\xff"), ""},
		{array, parquet.Logical{Kind: parquet.JSON}, []byte("{}"), `"{}"`},
		{i32, day, ago(19782), `"2024-02-29"`},
		{i32, day, ago(-719162), `"0001-01-01"`},
		{i32, day, ago(-719163), ""},
		{i32, day, ago(2932896), `"9999-12-31"`},
		{i32, day, ago(2932897), ""},
		{i32, day, ago(math.MinInt32), ""},
		{i64, at(parquet.Micros, true), le64(micros), `"2024-01-01T10:11:12.123456Z"`},
		{i64, at(parquet.Micros, false), le64(micros), `"2024-01-01T10:11:12.123456"`},
		{i64, at(parquet.Millis, true), le64(micros / 1000), `"2024-01-01T10:11:12.123Z"`},
		{i64, at(parquet.Nanos, false), le64(nanos), `"2024-01-01T10:11:12.123456789"`},
		{i64, at(parquet.Micros, true), le64(0), `"1970-01-01T00:00:00.000000Z"`},
		{i64, at(parquet.Micros, true), minus(1), `"1969-12-31T23:59:59.999999Z"`},
		{i64, at(parquet.Millis, true), le64(math.MaxInt64), ""},
		{i64, at(parquet.Micros, true), le64(1 << 63), ""},
		{i32, clock(parquet.Millis), le32(3723004), `"01:02:03.004"`},
		{i64, clock(parquet.Nanos), le64(86399999999999), `"23:59:59.999999999"`},
		{i64, clock(parquet.Micros), le64(86400000000), ""},
		{i64, clock(parquet.Micros), minus(1), ""},
		{fixed, parquet.Logical{Kind: parquet.UUID}, raw("00112233445566778899aabbccddeeff"), `"00112233-4455-6677-8899-aabbccddeeff"`},
		{array, none, []byte{0xff, 0}, `"/wA="`},
		{fixed, none, make([]byte, 33), ""},
		{i64, none, nil, ""},
		{format.Int96, none, nil, ""},
	} {
		l := &parquet.Leaf{Type: c.typ, Logical: c.logical}
		if got := string(bound(l, typeOf(l), c.v)); got != c.want || got != "" && !json.Valid([]byte(got)) {
			t.Errorf("%v %+v %x: got %s, want %s", c.typ, c.logical, c.v, got, c.want)
		}
	}
}

// The JSON of a file: what is unknown is absent, and names that JSON cannot hold are
// left out.
func TestOf(t *testing.T) {
	leaf := func(typ format.Type, path ...string) *parquet.Leaf { return &parquet.Leaf{Path: path, Type: typ} }
	got, err := Of([]parquet.LeafSummary{
		{Leaf: leaf(format.Int32, "s", "a.b"), FieldID: 4, Lower: le32(1), Upper: le32(9), ExactLower: true},
		{Leaf: leaf(format.Int96, "old"), FieldID: -1, Nulls: 3},
		{Leaf: leaf(format.Int64, "b\xff"), FieldID: -1, Lower: le64(1), Upper: le64(2)},
		{Leaf: leaf(format.Double, "x"), FieldID: 0, Nulls: -1},
	})
	want := `[{"path":["s","a.b"],"id":4,"type":"int","nulls":0,"lower":1,"upper":9,"upper_inexact":true},` +
		`{"path":["old"],"nulls":3},{"path":["x"],"id":0,"type":"float"}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	none, err := Of(nil)
	b, _ := json.Marshal(publish.File{Name: "x", Columns: none})
	if err != nil || strings.Contains(string(b), "columns") {
		t.Errorf("no columns: %s, %v", b, err)
	}
}

// A manifest keeps the columns of a file as they are, and does not grow with their
// number or the length of their names.
func TestSize(t *testing.T) {
	var leaves []parquet.LeafSummary
	for i := range 32 {
		name := fmt.Sprint(strings.Repeat("n", 300), i)
		leaves = append(leaves, parquet.LeafSummary{Leaf: &parquet.Leaf{Path: []string{name}, Type: format.Int64}, FieldID: -1})
	}
	c, err := Of(leaves)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(publish.File{Columns: c}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	var back publish.File
	var columns []publish.Column
	if err := json.Unmarshal(b, &back); err != nil || back.Columns != c {
		t.Errorf("read back: %s, %v", back.Columns, err)
	}
	if err := json.Unmarshal([]byte(c), &columns); err != nil || len(c) > 4096 || len(columns) < 10 {
		t.Errorf("%d columns in %d bytes, %v", len(columns), len(c), err)
	}
}
