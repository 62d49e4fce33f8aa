package iceberg

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
)

// perDay is how many values of a type a day has.
var perDay = map[string]int64{"date": 1, "timestamp": 86400e6, "timestamptz": 86400e6}

func floorDiv(a, b int64) int64 {
	if q := a / b; a%b < 0 {
		return q - 1
	}
	return a / b
}

// transformed applies a transform as the specification defines it. old: as writers did that cut times
// before 1970 towards it.
func transformed(transform, typ string, v int64, old bool) int64 {
	if strings.HasPrefix(transform, "truncate[") {
		var w int64
		fmt.Sscanf(transform, "truncate[%d]", &w)
		v -= (v%w + w) % w
		if typ == "int32" {
			v = int64(int32(v))
		}
		return v
	}
	day := floorDiv(v, perDay[typ])
	at := time.Unix(day*86400, 0).UTC()
	var whole int64 // before v
	exact := v == day*perDay[typ]
	switch transform {
	case "year":
		whole, exact = int64(at.Year()-1970), exact && at.YearDay() == 1
	case "month":
		whole, exact = int64((at.Year()-1970)*12)+int64(at.Month())-1, exact && at.Day() == 1
	case "day":
		whole = day
	case "hour":
		whole, exact = floorDiv(v, 3600e6), v%3600e6 == 0
	}
	if old && v < 0 && !exact {
		whole++
	}
	return whole
}

// drawn returns a value of a type.
func drawn(r *rand.Rand, typ string) int64 {
	v := r.Int64() >> r.IntN(64)
	if r.IntN(2) == 0 {
		v = -v
	}
	switch days := int64(r.IntN(3_000_000) - 700_000); {
	case perDay[typ] == 0 && typ == "int32":
		return int64(int32(v))
	case perDay[typ] == 0:
		return v
	case r.IntN(3) == 0:
		days = int64(r.IntN(1000) - 500)
		fallthrough
	default:
		v = days * perDay[typ]
		if r.IntN(3) > 0 {
			v += r.Int64N(perDay[typ])
		}
		return v
	}
}

// The range of a column contains all values that a transform takes to the values of a partition, and
// ends with the last of them.
func TestSource(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	known := map[string]int{}
	n := cases.Count(20000, 40000, 2000000)
	for range n {
		typ := []string{"int32", "int64", "date", "timestamp", "timestamptz"}[r.IntN(5)]
		transform := []string{"year", "month", "day", "hour"}[r.IntN(4)]
		if typ == "date" && transform == "hour" {
			continue
		}
		if perDay[typ] == 0 {
			transform = fmt.Sprintf("truncate[%d]", 1+r.Int64N(1<<r.IntN(31)))
		}
		var values []int64
		least, most := value{Kind: 'i', Int: math.MaxInt64}, value{Kind: 'i', Int: math.MinInt64}
		for range 1 + r.IntN(3) {
			v := drawn(r, typ)
			of := transformed(transform, typ, v, r.IntN(2) == 0)
			values = append(values, v)
			least.Int, most.Int = min(least.Int, of), max(most.Int, of)
		}
		lo, hi, ok := source(transform, typ, least, most)
		if !ok {
			continue
		}
		known[transform[:3]+typ]++
		for _, v := range values {
			if v < lo.Int || v > hi.Int {
				t.Fatalf("%s of %s takes %d to %d..%d, for which the range is %d..%d", transform, typ, v, least.Int, most.Int, lo.Int, hi.Int)
			}
		}
		if last, next := transformed(transform, typ, hi.Int, false), hi.Int+1; last != most.Int || hi.Int < math.MaxInt32 && transformed(transform, typ, next, false) == last {
			t.Fatalf("%s of %s: the range of %d..%d ends with %d, which is of %d", transform, typ, least.Int, most.Int, hi.Int, last)
		}
		if first := transformed(transform, typ, lo.Int, true); least.Int > 0 && first != least.Int {
			t.Fatalf("%s of %s: the range of %d..%d begins with %d, which is of %d", transform, typ, least.Int, most.Int, lo.Int, first)
		}
	}
	for k, count := range known {
		if count < n/60 {
			t.Errorf("%s: %d ranges", k, count)
		}
	}
	if len(known) != 3+4+4+2 {
		t.Errorf("%v", known)
	}
}

// Of transforms that say nothing of the order, of values that are none of the type and of ranges that
// do not fit, nothing is known.
func TestNoSource(t *testing.T) {
	i := func(v int64) value { return value{Kind: 'i', Int: v} }
	for _, c := range []struct {
		transform, typ string
		least, most    value
	}{
		{"bucket[16]", "int64", i(1), i(1)}, {"void", "int64", i(1), i(1)}, {"zorder", "int64", i(1), i(1)}, {"", "int64", i(1), i(1)},
		{"truncate[3]", "string", value{Kind: 'b', Bytes: []byte("abc")}, value{Kind: 'b', Bytes: []byte("abc")}},
		{"truncate[10]", "int32", i(0), i(math.MaxInt32)}, {"truncate[10]", "int64", i(0), i(math.MaxInt64)},
		{"truncate[10]", "int64", i(0), i(math.MaxInt32 - 7)}, // of -2147483648, before the column was a long
		{"truncate[0]", "int64", i(1), i(1)}, {"truncate[-1]", "int64", i(1), i(1)}, {"truncate[x]", "int64", i(1), i(1)}, {"truncate[10]", "date", i(1), i(1)},
		{"truncate[10]", "", i(1), i(1)}, {"year", "int64", i(1), i(1)}, {"year", "timestamp_ns", i(1), i(1)}, {"day", "", i(1), i(1)},
		{"year", "date", i(0), i(math.MaxInt64)}, {"day", "date", i(math.MinInt64), i(0)}, {"hour", "timestamp", i(math.MinInt64), i(math.MaxInt64)},
		{"year", "date", i(0), i(9000)}, {"day", "date", value{Kind: 'n'}, i(1)}, {"day", "date", i(1), value{Kind: 'f'}}, {"decade", "date", i(1), i(1)},
	} {
		if lo, hi, ok := source(c.transform, c.typ, c.least, c.most); ok {
			t.Errorf("%s of %s: %v to %v", c.transform, c.typ, lo, hi)
		}
	}
}

// columnOf returns a table with a column of one of Iceberg's types.
func columnOf(t *testing.T, name string) *Table {
	t.Helper()
	raw, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	s := schema{Fields: []field{{ID: 1, Name: "c", Type: raw}}}
	columns, err := s.columns("")
	if err != nil {
		t.Fatal(err)
	}
	return &Table{meta: &metadata{Schemas: []schema{s}}, table: &lake.Table{Columns: columns}, columns: map[int32]int{1: 0}, ranges: true}
}

// shownBounds returns the bounds that statistics give, as values of the column's type.
func shownBounds(t *testing.T, name string, least, most []byte) string {
	t.Helper()
	table := columnOf(t, name)
	all := table.bounds(&entry{rows: 5, spec: new(spec), ranges: map[int32]valueRange{1: {least: least, most: most, nulls: -1}}})
	typ, err := table.table.Columns[0].Arrow()
	if err != nil || len(all) != 1 || all[0].NoNulls || all[0].AllNulls {
		t.Fatalf("%+v, %v", all, err)
	}
	if all[0].Least+all[0].Most == "" {
		return ""
	}
	text := ""
	for _, end := range []string{all[0].Least, all[0].Most} {
		v, ok := hive.Value(hive.Part{Text: end}, typ)
		if !ok {
			t.Fatalf("%s is no %s", end, typ)
		}
		switch s, ok := v.(*array.String); {
		case ok:
			text += fmt.Sprintf("%q ", s.Value(0))
		case strings.HasPrefix(name, "decimal"):
			text += end + " "
		default:
			text += v.ValueStr(0) + " "
		}
		v.Release()
	}
	return strings.TrimSpace(text)
}

// Bounds of each type are values of the type, also of a column that was narrower.
func TestBounds(t *testing.T) {
	one := func(typ string, v any) []byte { return laketest.SingleValue(typ, v) }
	for _, c := range []struct {
		typ         string
		least, most []byte
		want        string
	}{
		{"int", one("int", math.MinInt32), one("int", 7), "-2147483648 7"},
		{"long", one("long", int64(math.MinInt64)), one("long", int64(math.MaxInt64)), "-9223372036854775808 9223372036854775807"},
		{"long", one("int", -5), one("int", 6), "-5 6"},
		{"long", one("int", -5), one("long", 1<<40), "-5 1099511627776"},
		{"int", one("int", 8), one("int", 7), ""},
		{"int", []byte{1, 2}, one("int", 7), ""},
		{"int", nil, one("int", 7), ""},
		{"int", one("int", 7), []byte{}, ""},
		{"float", one("float", 0.1), one("float", 1e20), "0.1 1e+20"},
		{"float", one("float", math.Copysign(0, -1)), one("float", 0.0), "-0 0"},
		{"double", one("float", -1.5), one("float", 2.0), "-1.5 2"},
		{"double", one("double", math.Inf(-1)), one("double", math.Inf(1)), "-Inf +Inf"},
		{"double", one("double", math.NaN()), one("double", math.NaN()), ""},
		{"double", one("double", 1.0), one("double", math.NaN()), ""},
		{"double", one("double", 4.9e-324), one("double", 1.7976931348623157e308), "5e-324 1.7976931348623157e+308"},
		{"date", one("date", -1), one("date", 19000), "1969-12-31 2022-01-08"},
		{"date", one("date", -1), one("date", math.MaxInt32), ""},
		{"timestamp", one("timestamp", -1), one("timestamp", 1700000000000001), "1969-12-31 23:59:59.999999Z 2023-11-14 22:13:20.000001Z"},
		{"timestamptz", one("timestamp", -1), one("timestamp", 0), "1969-12-31 23:59:59.999999Z 1970-01-01 00:00:00Z"},
		{"timestamp", one("timestamp", int64(math.MinInt64)), one("timestamp", 0), ""},
		{"timestamp_ns", one("timestamp", 1), one("timestamp", 1), ""},
		{"time", one("timestamp", 1), one("timestamp", 86399999999), "00:00:00.000001 23:59:59.999999"},
		{"time", one("timestamp", 5), one("timestamp", 86400000000), ""},
		{"time", one("timestamp", -1), one("timestamp", 5), ""},
		{"string", []byte("a b"), []byte("a c"), `"a b" "a c"`},
		{"string", []byte{}, []byte("NULL"), `"" "NULL"`},
		{"string", []byte("é"), []byte{0xc3, 0xaa}, `"é" "ê"`},
		{"string", []byte("a"), []byte{'a', 0xff}, ""},
		{"string", []byte("b"), []byte("a"), ""},
		{"string", []byte("abc"), []byte("ab\U0010ffff"), "\"abc\" \"ab\\U0010ffff\""},
		{"decimal(9, 2)", []byte{0xff}, []byte{0x01, 0x00}, "-0.01 2.56"},
		{"decimal(9, 2)", []byte{0x01}, []byte{0xff, 0xff}, ""},
		{"decimal(9, 0)", []byte{0x80}, []byte{0x00, 0x80}, "-128 128"},
		{"decimal(38, 10)", []byte{0x80, 0, 0, 0, 0, 0, 0, 0, 0}, []byte{0}, "-236118324143.4822606848 0.0000000000"},
		{"decimal(9, 2)", []byte{}, []byte{1}, ""},
		{"decimal(9, 2)", make([]byte, 33), []byte{1}, ""},
		{"boolean", []byte{0}, []byte{1}, ""},
		{"uuid", make([]byte, 16), make([]byte, 16), ""},
		{"binary", []byte("a"), []byte("b"), ""},
		{"fixed[4]", one("int", 1), one("int", 2), ""},
	} {
		if got := shownBounds(t, c.typ, c.least, c.most); got != c.want {
			t.Errorf("%s of %x..%x: got %s, want %s", c.typ, c.least, c.most, got, c.want)
		}
	}
}

// Bounds of random decimals, with superfluous bytes of their sign.
func TestDecimalBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range cases.Count(300, 2000, 100000) {
		p := 1 + r.IntN(38)
		s := r.IntN(p + 1)
		n := below(r, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(p)), nil))
		b := n.FillBytes(make([]byte, len(n.Bytes())+1+r.IntN(3)))
		if r.IntN(2) == 0 {
			n.Neg(n)
			b = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b)))).FillBytes(make([]byte, len(b)+1))[1:]
		}
		digits := new(big.Int).Abs(n).String()
		digits = strings.Repeat("0", max(s+1-len(digits), 0)) + digits
		want := digits[:len(digits)-s]
		if s > 0 {
			want += "." + digits[len(digits)-s:]
		}
		if n.Sign() < 0 {
			want = "-" + want
		}
		v := value{Kind: 'b', Bytes: b}
		if got, ok := v.Text(fmt.Sprintf("decimal(%d,%d)", p, s)); !ok || got != want {
			t.Fatalf("decimal(%d,%d) of %x: %s, want %s", p, s, b, got, want)
		}
	}
}

// Bounds of a partition and of statistics are those of one column, and of its type.
func TestPartitionBounds(t *testing.T) {
	i := func(v int64) value { return value{Kind: 'i', Int: v} }
	for _, c := range []struct {
		typ, transform string
		v              value
		want           string
	}{
		{"date", "month", i(0), "1969-12-01 1970-01-31 true false"},
		{"date", "month", i(601), "2020-02-01 2020-02-29 true false"},
		{"timestamp", "day", i(-1), "1969-12-30T00:00:00.000000 1969-12-31T23:59:59.999999 true false"},
		{"timestamptz", "hour", i(1), "1970-01-01T01:00:00.000000Z 1970-01-01T01:59:59.999999Z true false"},
		{"timestamptz", "year", i(50), "2020-01-01T00:00:00.000000Z 2020-12-31T23:59:59.999999Z true false"},
		{"int", "truncate[10]", i(-10), "-10 -1 true false"},
		{"long", "identity", i(7), "7 7 true false"},
		{"string", "identity", value{Kind: 'b', Bytes: []byte("x")}, "x x true false"},
		{"string", "truncate[2]", value{Kind: 'b', Bytes: []byte("xy")}, "  true false"},
		{"boolean", "identity", i(1), "true true true false"},
		{"long", "bucket[8]", i(7), "  true false"},
		{"long", "bucket[8]", value{Kind: 'n'}, "  false true"},
		{"long", "void", value{Kind: 'n'}, "none"},
		{"long", "other", i(1), "none"},
	} {
		table := columnOf(t, c.typ)
		e := &entry{rows: 5, spec: &spec{Fields: []specField{{Source: 1, ID: 1000, Transform: c.transform, typ: types[c.typ]}}}, values: []value{c.v}}
		got := "none"
		if all := table.bounds(e); len(all) == 1 {
			got = fmt.Sprint(all[0].Least, " ", all[0].Most, " ", all[0].NoNulls, " ", all[0].AllNulls)
		}
		if got != c.want {
			t.Errorf("%s of %s: got %s, want %s", c.transform, c.typ, got, c.want)
		}
	}
	// Statistics come first; a partition says what they do not.
	table := columnOf(t, "long")
	by := &spec{Fields: []specField{{Source: 1, ID: 1000, Transform: "truncate[10]", typ: "int64"}, {Source: 1, ID: 1001, Transform: "bucket[2]", typ: "int64"}}}
	e := &entry{rows: 5, spec: by, values: []value{i(10), i(1)}, ranges: map[int32]valueRange{1: {nulls: 0, least: laketest.SingleValue("long", 12), most: laketest.SingleValue("long", 13)}, 9: {}}}
	if got := fmt.Sprint(table.bounds(e)); got != "[{0 12 13 true false}]" {
		t.Error(got)
	}
	e.ranges[1] = valueRange{nulls: -1}
	if got := fmt.Sprint(table.bounds(e)); got != "[{0 10 19 true false}]" {
		t.Error(got)
	}
	e.ranges[1], e.values = valueRange{nulls: 5}, []value{{Kind: 'n'}, {Kind: 'n'}}
	if got := fmt.Sprint(table.bounds(e)); got != "[{0   false true}]" {
		t.Error(got)
	}
}

// Two values of a field of partitions are the same partition only if they are equal.
func TestPartitionKeys(t *testing.T) {
	values := []value{{Kind: 'n'}, {Kind: 'i'}, {Kind: 'i', Int: 1}, {Kind: 'f'}, {Kind: 'f', Float: math.Copysign(0, -1)}, {Kind: 'f', Float: 1}, {Kind: 'b'}, {Kind: 'x'}, {Kind: 'x', Bytes: []byte{0}}, {Kind: 'x', Bytes: []byte{0xff}}, {Kind: 'x', Bytes: []byte{0, 0xff}}, {Kind: 'b', Bytes: []byte("n")}, {Kind: 'b', Bytes: []byte("\x00n")}}
	seen := map[string]bool{}
	for i := range values {
		for j := range values {
			e := entry{spec: new(spec), values: []value{values[i], values[j]}}
			if key := e.partition(); seen[key] {
				t.Errorf("%q", key)
			} else {
				seen[key] = true
			}
		}
	}
}

// below draws an integer below most.
func below(r *rand.Rand, most *big.Int) *big.Int {
	n := new(big.Int)
	for range 3 {
		n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(r.Uint64()))
	}
	return n.Rem(n.Rsh(n, uint(r.IntN(190))), most)
}
