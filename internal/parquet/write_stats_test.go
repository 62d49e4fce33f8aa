package parquet

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// statsCase is a type, values to draw from, and their order. The order is
// implemented independently here, with numbers that math/big compares.
type statsCase struct {
	name    string
	typ     format.Type
	length  int
	logical format.LogicalTypeValue
	convert deprecated.ConvertedType
	values  func(rng *rand.Rand) []byte
	less    func(a, b []byte) bool // nil: unordered
}

func little(width int, f func(*rand.Rand) uint64) func(*rand.Rand) []byte {
	return func(rng *rand.Rand) []byte {
		return binary.LittleEndian.AppendUint64(nil, f(rng))[:width]
	}
}

// spread returns numbers of all magnitudes.
func spread(rng *rand.Rand) uint64 { return rng.Uint64() >> rng.IntN(64) }

// spreadBoth returns these and their negatives.
func spreadBoth(rng *rand.Rand) uint64 { return uint64(int64(rng.Uint64()) >> rng.IntN(64)) }

func bigLittle(signed bool) func(b []byte) *big.Int {
	return func(b []byte) *big.Int {
		r := bytes.Clone(b)
		for i := range r {
			r[i] = b[len(b)-1-i]
		}
		return bigBig(signed)(r)
	}
}

func bigBig(signed bool) func(b []byte) *big.Int {
	return func(b []byte) *big.Int {
		n := new(big.Int).SetBytes(b)
		if signed && len(b) > 0 && b[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		return n
	}
}

func byNumber(f func(b []byte) *big.Int) func(a, b []byte) bool {
	return func(a, b []byte) bool { return f(a).Cmp(f(b)) < 0 }
}

// floatOf returns the value of a float of 2, 4 or 8 bytes.
func floatOf(b []byte) float64 {
	switch len(b) {
	case 2:
		h := binary.LittleEndian.Uint16(b)
		e, m := int(h>>10&31), float64(h&1023)
		f := math.Ldexp(m/1024, -14)
		switch {
		case e == 31 && m > 0:
			f = math.NaN()
		case e == 31:
			f = math.Inf(1)
		case e > 0:
			f = math.Ldexp(1+m/1024, e-15)
		}
		return math.Copysign(f, float64(1-2*int(h>>15)))
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

func lessFloat(a, b []byte) bool { return floatOf(a) < floatOf(b) }
func lessBytes(a, b []byte) bool { return string(a) < string(b) }

// words returns strings that share prefixes; some are empty or long.
func words(alphabet []string, longest int) func(*rand.Rand) []byte {
	return func(rng *rand.Rand) []byte {
		var b []byte
		if rng.IntN(2) == 0 {
			b = append(b, strings.Repeat(alphabet[0], rng.IntN(30))...)
		}
		for range rng.IntN(1 + longest>>rng.IntN(8)) {
			b = append(b, alphabet[rng.IntN(len(alphabet))]...)
		}
		return b
	}
}

func raw(n int) func(*rand.Rand) []byte {
	return func(rng *rand.Rand) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = []byte{0, 1, 0x7f, 0x80, 0xff, byte(rng.Uint32())}[rng.IntN(6)]
		}
		return b
	}
}

func ragged(least, most int) func(*rand.Rand) []byte {
	return func(rng *rand.Rand) []byte { return raw(least + rng.IntN(most-least+1))(rng) }
}

func statsCases() []statsCase {
	const none = -1
	integer := func(bits int8, signed bool) format.LogicalTypeValue {
		return &format.IntType{BitWidth: bits, IsSigned: signed}
	}
	text := []string{"a", "b", "ä", "€", "\U0010ffff", "\u007f", "\ud7ff"}
	bin := []string{"a", "\xff", "\x00", "\x80"}
	fixed, array := format.FixedLenByteArray, format.ByteArray
	return []statsCase{
		{"bool", format.Boolean, 0, nil, none, func(rng *rand.Rand) []byte { return []byte{byte(rng.IntN(2))} }, lessBytes},
		{"int32", format.Int32, 0, nil, none, little(4, spreadBoth), byNumber(bigLittle(true))},
		{"int64", format.Int64, 0, nil, none, little(8, spreadBoth), byNumber(bigLittle(true))},
		{"uint8", format.Int32, 0, integer(8, false), none, little(4, func(rng *rand.Rand) uint64 { return rng.Uint64N(256) }), byNumber(bigLittle(false))},
		{"uint32", format.Int32, 0, integer(32, false), none, little(4, spreadBoth), byNumber(bigLittle(false))},
		{"uint64", format.Int64, 0, integer(64, false), none, little(8, spreadBoth), byNumber(bigLittle(false))},
		{"converted uint32", format.Int32, 0, nil, deprecated.Uint32, little(4, spreadBoth), byNumber(bigLittle(false))},
		{"int16", format.Int32, 0, integer(16, true), none, little(4, func(rng *rand.Rand) uint64 { return uint64(int16(spread(rng))) }), byNumber(bigLittle(true))},
		{"date", format.Int32, 0, &format.DateType{}, none, little(4, spreadBoth), byNumber(bigLittle(true))},
		{"timestamp", format.Int64, 0, &format.TimestampType{Unit: format.TimeUnit{Value: &format.MicroSeconds{}}}, none, little(8, spreadBoth), byNumber(bigLittle(true))},
		{"float", format.Float, 0, nil, none, little(4, spread), lessFloat},
		{"double", format.Double, 0, nil, none, little(8, spread), lessFloat},
		{"zeros", format.Double, 0, nil, none, little(8, func(rng *rand.Rand) uint64 { return rng.Uint64N(2) << 63 }), lessFloat},
		{"float16", fixed, 2, &format.Float16Type{}, none, little(2, spread), lessFloat},
		{"int96", format.Int96, 0, nil, none, raw(12), nil},
		{"string", array, 0, &format.StringType{}, none, words(text, 300), lessBytes},
		{"long string", array, 0, &format.StringType{}, none, words(text, 3000), lessBytes},
		{"broken string", array, 0, &format.StringType{}, none, words(bin, 3000), lessBytes},
		{"enum", array, 0, nil, deprecated.Enum, words(text, 20), lessBytes},
		{"binary", array, 0, nil, none, words(bin, 3000), lessBytes},
		{"ones", array, 0, nil, none, words([]string{"\xff"}, 3000), lessBytes},
		{"fixed", fixed, 7, nil, none, raw(7), lessBytes},
		{"fixed 13", fixed, 13, nil, none, raw(13), lessBytes},
		{"fixed 100", fixed, 100, nil, none, raw(100), lessBytes},
		{"fixed 2000", fixed, 2000, nil, none, raw(2000), lessBytes},
		{"uuid", fixed, 16, &format.UUIDType{}, none, raw(16), lessBytes},
		{"interval", fixed, 12, nil, deprecated.Interval, raw(12), nil},
		{"decimal32", format.Int32, 0, &format.DecimalType{Precision: 9, Scale: 2}, none, little(4, spreadBoth), byNumber(bigLittle(true))},
		{"decimal fixed", fixed, 5, &format.DecimalType{Precision: 9, Scale: 2}, none, raw(5), byNumber(bigBig(true))},
		{"decimal fixed 16", fixed, 16, &format.DecimalType{Precision: 38, Scale: 2}, none, raw(16), byNumber(bigBig(true))},
		{"decimal", array, 0, &format.DecimalType{Precision: 38, Scale: 2}, none, ragged(1, 16), byNumber(bigBig(true))},
		{"decimal without bytes", array, 0, &format.DecimalType{Precision: 38, Scale: 2}, none, ragged(0, 1), nil},
		{"geometry", array, 0, &format.GeometryType{}, none, ragged(0, 9), nil},
	}
}

func (c *statsCase) leaf() meta.Element {
	e := meta.Element{Name: c.name}
	e.Type.Set(c.typ)
	e.RepetitionType.Set(format.Required)
	if c.length > 0 {
		e.TypeLength.Set(int32(c.length))
	}
	if c.logical != nil {
		e.LogicalType.Set(format.LogicalType{Value: c.logical})
	}
	if c.convert >= 0 {
		e.ConvertedType.Set(c.convert)
	}
	return e
}

// writeLeaf returns the leaf of a schema with only the given column, and its order.
func writeLeaf(t testing.TB, e meta.Element) (*meta.Leaf, meta.Order) {
	root := meta.Element{Name: "schema"}
	root.NumChildren.Set(1)
	w, err := NewWriter(new(bytes.Buffer), []meta.Element{root, e}, nil, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &w.leaves[0], w.order[0]
}

// plainOf returns the PLAIN encoding of values.
func plainOf(l *meta.Leaf, values [][]byte) (out []byte) {
	for i, v := range values {
		switch l.Type {
		case format.Boolean:
			if i%8 == 0 {
				out = append(out, 0)
			}
			out[i/8] |= v[0] << (i % 8)
			continue
		case format.ByteArray:
			out = binary.LittleEndian.AppendUint32(out, uint32(len(v)))
		}
		out = append(out, v...)
	}
	return out
}

// extremesOf returns the smallest and the largest value. ok is false if there are
// none, or no order.
func (c *statsCase) extremesOf(values [][]byte) (lo, hi []byte, ok bool) {
	if c.less == nil || len(values) == 0 {
		return nil, nil, false
	}
	isFloat := c.typ == format.Float || c.typ == format.Double || c.name == "float16"
	lo, hi = values[0], values[0]
	for _, v := range values {
		if isFloat && math.IsNaN(floatOf(v)) {
			return nil, nil, false
		}
		if c.less(v, lo) {
			lo = v
		}
		if c.less(hi, v) {
			hi = v
		}
	}
	if isFloat { // zeros are widened
		if floatOf(lo) == 0 {
			lo = make([]byte, len(lo))
			lo[len(lo)-1] = 0x80
		}
		if floatOf(hi) == 0 {
			hi = make([]byte, len(hi))
		}
	}
	return lo, hi, true
}

// same compares bounds: bytewise, decimals by value.
func (c *statsCase) same(a, b []byte) bool {
	if strings.HasPrefix(c.name, "decimal") && c.typ == format.ByteArray {
		return !c.less(a, b) && !c.less(b, a)
	}
	return bytes.Equal(a, b)
}

func TestBounds(t *testing.T) {
	for _, c := range statsCases() {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(15, 16))
			leaf, order := writeLeaf(t, c.leaf())
			found := 0
			for i := range 240 {
				n := 1 + i%30
				values := make([][]byte, n)
				for k := range values {
					values[k] = c.values(rng)
				}
				b, err := order.BoundsOf(plainOf(leaf, values), n)
				if err != nil {
					t.Fatal(err)
				}
				lo, hi, ok := c.extremesOf(values)
				if ok != (b.Lo != nil && !b.Broken) {
					if c.name == "decimal without bytes" {
						continue // some draws have no empty value
					}
					t.Fatalf("bounds %x %x, broken %v, for %x", b.Lo, b.Hi, b.Broken, values)
				}
				if !ok {
					continue
				}
				found++
				if !c.same(b.Lo, lo) || !c.same(b.Hi, hi) {
					t.Fatalf("bounds %x %x, not %x %x, for %x", b.Lo, b.Hi, lo, hi, values)
				}
				c.checkCuts(t, order, b)
			}
			if c.less != nil && found < 40 {
				t.Fatalf("bounds for %d of 240", found)
			}
		})
	}
}

// Values that share prefixes and differ late, in few characters; and such values cut off.
func TestBoundsOfAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	c := statsCase{typ: format.ByteArray, convert: -1}
	leaf, order := writeLeaf(t, c.leaf())
	for range 20000 {
		n, prefix, chars := 1+rng.IntN(12), rng.IntN(12), 2<<rng.IntN(8)
		var values [][]byte
		for range n {
			v := bytes.Repeat([]byte("a"), max(0, prefix-rng.IntN(2)*rng.IntN(3)))
			for range rng.IntN(12) {
				v = append(v, byte(rng.IntN(chars)))
			}
			values = append(values, v)
		}
		plain := plainOf(leaf, values)
		b, err := order.BoundsOf(plain, n)
		if lo, hi := slices.MinFunc(values, bytes.Compare), slices.MaxFunc(values, bytes.Compare); err != nil || !bytes.Equal(b.Lo, lo) || !bytes.Equal(b.Hi, hi) {
			t.Fatalf("bounds %q %q, %v for %q", b.Lo, b.Hi, err, values)
		}
		if b, err := order.BoundsOf(plain[:rng.IntN(len(plain))], n); err == nil {
			t.Fatalf("bounds %q %q for a part of %q", b.Lo, b.Hi, values)
		}
		if b, err := order.BoundsOf(plain, n-1); n > 1 && err == nil {
			t.Fatalf("bounds %q %q for one value less than %q", b.Lo, b.Hi, values)
		}
	}
}

// checkCuts checks shortened bounds: they include the values, are short enough, and
// text stays valid.
func (c *statsCase) checkCuts(t *testing.T, order meta.Order, b meta.Bounds) {
	t.Helper()
	for _, limit := range []int{4, 5, 6, 7, maxIndexBound, meta.MaxBound} {
		lo, hi, exactLo, exactHi := order.Shorten(b, limit)
		if lo == nil {
			whole := c.typ != format.ByteArray || strings.HasPrefix(c.name, "decimal")
			if whole && len(b.Lo) <= meta.MaxBound || !whole && !noneAbove(b.Hi[:min(limit, len(b.Hi))]) && len(b.Hi) <= limit {
				t.Fatalf("no bounds of %d bytes for %x %x", limit, b.Lo, b.Hi)
			}
			continue
		}
		switch {
		case c.less(b.Lo, lo) || c.less(hi, b.Hi):
			t.Fatalf("cut to %d bytes: %x %x do not hold %x %x", limit, lo, hi, b.Lo, b.Hi)
		case exactLo != bytes.Equal(lo, b.Lo) || exactHi != bytes.Equal(hi, b.Hi):
			t.Fatalf("cut to %d bytes: exact %v %v", limit, exactLo, exactHi)
		case c.typ == format.ByteArray && c.convert < 0 && !strings.HasPrefix(c.name, "decimal") && max(len(lo), len(hi)) > limit:
			t.Fatalf("cut to %d bytes: %d and %d", limit, len(lo), len(hi))
		case strings.HasSuffix(c.name, "string") && c.name != "broken string" && !(utf8.Valid(lo) && utf8.Valid(hi)):
			t.Fatalf("cut to %d bytes: %q %q are no texts", limit, lo, hi)
		}
	}
}

// noneAbove reports whether no bytes, or characters, of the same number are
// greater.
func noneAbove(b []byte) bool {
	return len(bytes.Trim(b, "\xff")) == 0 || strings.Trim(string(b), "\U0010ffff\u007f") == ""
}

// A chunk's bounds are those of its pages' bounds.
func TestBoundsAdd(t *testing.T) {
	for _, c := range statsCases() {
		rng := rand.New(rand.NewPCG(17, 18))
		leaf, order := writeLeaf(t, c.leaf())
		for range 100 {
			var sum meta.Bounds
			var all [][]byte
			broken := false
			for range 1 + rng.IntN(4) {
				values := make([][]byte, rng.IntN(4))
				for k := range values {
					values[k] = c.values(rng)
				}
				b, err := order.BoundsOf(plainOf(leaf, values), len(values))
				if err != nil {
					t.Fatal(err)
				}
				sum.Add(order, b)
				broken = broken || b.Broken
				all = append(all, values...)
			}
			lo, hi, ok := c.extremesOf(all)
			if broken != sum.Broken || ok && (!c.same(lo, sum.Lo) || !c.same(hi, sum.Hi)) {
				t.Fatalf("%s: bounds %x %x, broken %v; want %x %x", c.name, sum.Lo, sum.Hi, sum.Broken, lo, hi)
			}
		}
	}
}

// Columns in a variant, or in a group of unknown kind, have no bounds; nor do
// columns whose order is not that of their type.
func TestNoOrder(t *testing.T) {
	group := func(name string, children int32, v format.LogicalTypeValue, known bool) meta.Element {
		e := meta.Element{Name: name}
		e.NumChildren.Set(children)
		e.RepetitionType.Set(format.Optional)
		if v != nil || known {
			e.LogicalType.Set(format.LogicalType{Value: v})
		}
		return e
	}
	bin := func(name string) meta.Element {
		return (&statsCase{name: name, typ: format.ByteArray, convert: -1}).leaf()
	}
	schema := []meta.Element{
		group("schema", 5, nil, false),
		group("v", 2, &format.VariantType{}, false), bin("metadata"), bin("value"),
		group("unknown", 1, nil, true), bin("inner"),
		group("struct", 1, nil, false), bin("field"),
		bin("ordered"), bin("other"),
	}
	schema[0].RepetitionType.Reset()
	orders := make([]format.ColumnOrder, 6)
	for i := range orders[:5] {
		orders[i].Value = &format.TypeDefinedOrder{}
	}
	w, err := NewWriter(new(bytes.Buffer), schema, orders, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range w.Leaves() {
		want := l.Dotted == "struct.field" || l.Dotted == "ordered"
		if o := w.order[i]; o.Defined() != want || o.ByteArrays() != want {
			t.Errorf("%s: an order: %v", l.Dotted, o.Defined())
		}
	}
}
