package keys

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// partOf returns a value of the class as a part of a key, often one close to
// others.
func partOf(rng *rand.Rand, c Class) []byte {
	n := int64(rng.Uint64()) >> rng.IntN(64)
	switch c {
	case Integer:
		v := uint64(n)
		return IntegerPart(v, n < 0 && rng.IntN(3) > 0)
	case Date:
		return binary.LittleEndian.AppendUint64(nil, uint64(n))
	case Time:
		return binary.LittleEndian.AppendUint64(nil, uint64(n)%86_400_000_000_000)
	case Instant, Timestamp, Duration: // few seconds, so that the nanoseconds decide
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(n>>60)), rng.Uint32N(1e9))
	case Decimal:
		if rng.IntN(3) == 0 {
			v := new(big.Int).Mul(big.NewInt(n), big.NewInt(int64(rng.Uint64())))
			return putDecimal(nil, v, int32(rng.IntN(60)-20))
		}
		return putDecimal(nil, big.NewInt(n), int32(rng.IntN(60)-20))
	case Bytes:
		b := bytes.Repeat([]byte{[]byte{0, 'a', 0xff}[rng.IntN(3)]}, rng.IntN(70))
		return append(b, "xyz"[:rng.IntN(4)]...)
	}
	b := make([]byte, 3)
	for i := range b {
		b[i] = byte(rng.Uint32N(3))
	}
	return b
}

var orderedClasses = []Class{Integer, Date, Time, Instant, Timestamp, Duration, Decimal, Bytes, Fixed(3)}

// TestOrderedClasses checks that the tests of bounds take in every class that has some.
func TestOrderedClasses(t *testing.T) {
	for _, c := range []Class{Integer, Bytes, Boolean, Date, Instant, Timestamp, Decimal, Float, Time, Duration, AnyNumber, Null, Fixed(3)} {
		if ordered := OrderOf(c) != Unordered; ordered != slices.Contains(orderedClasses, c) {
			t.Errorf("%s: ordered %v, in orderedClasses %v", c, ordered, !ordered)
		}
	}
}

// TestBoundsWithinASecond checks the bounds of values of one second, which differ in the second
// part of their normal form alone, whatever the unit of the column.
func TestBoundsWithinASecond(t *testing.T) {
	at := func(sec int64, nanos uint32) []byte { return putSeconds(nil, sec, nanos) }
	for _, sec := range []int64{0, 1_700_000_000, -1, -3600} {
		for _, c := range []struct {
			class Class
			dt    arrow.DataType
		}{
			{Instant, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
			{Instant, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Berlin"}},
			{Timestamp, &arrow.TimestampType{Unit: arrow.Millisecond}},
			{Timestamp, &arrow.TimestampType{Unit: arrow.Microsecond}},
			{Timestamp, &arrow.TimestampType{Unit: arrow.Nanosecond}},
			{Duration, &arrow.DurationType{Unit: arrow.Millisecond}},
			{Duration, &arrow.DurationType{Unit: arrow.Nanosecond}},
		} {
			perSecond := 1_000_000_000 / nanosIn(c.dt)
			nanos := func(units int64) uint32 { return uint32(units * nanosIn(c.dt)) }
			columns, err := ParseColumns("k")
			if err != nil {
				t.Fatal(err)
			}
			schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: c.dt}}, nil)
			enc, err := NewEncoder(schema, columns, Options{})
			if err != nil {
				t.Fatal(err)
			}
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			for _, units := range []int64{500, 300, 999, 301, 7, 998} { // neither the first nor the last is a bound
				n := sec*perSecond + units
				switch f := b.Field(0).(type) {
				case *array.TimestampBuilder:
					f.Append(arrow.Timestamp(n))
				case *array.DurationBuilder:
					f.Append(arrow.Duration(n))
				}
			}
			rec := b.NewRecord()
			b.Release()
			var batch Batch
			if err := enc.Encode(rec, &batch); err != nil {
				t.Fatal(err)
			}
			rec.Release()
			bounds := NewBounds(enc.Classes())
			bounds.Add(&batch)
			lo, hi, ok := bounds.Column(0)
			if !ok || enc.Classes()[0] != c.class || !bytes.Equal(lo, at(sec, nanos(7))) || !bytes.Equal(hi, at(sec, nanos(999))) {
				t.Errorf("%s of second %d: from %x to %x, %v, want %x to %x", c.dt, sec, lo, hi, ok, at(sec, nanos(7)), at(sec, nanos(999)))
			}
			other := NewBounds([]Class{c.class})
			other.Widen(0, at(sec, nanos(998)), at(sec, nanos(999)), true)
			lo, hi, ok = other.Intersect(bounds).Column(0)
			if !ok || !bytes.Equal(lo, at(sec, nanos(998))) || !bytes.Equal(hi, at(sec, nanos(999))) {
				t.Errorf("%s of second %d, the intersection: from %x to %x, %v", c.dt, sec, lo, hi, ok)
			}
			apart := NewBounds([]Class{c.class})
			apart.Widen(0, at(sec, nanos(1)), at(sec, nanos(6)), true)
			if lo, hi, ok = apart.Intersect(bounds).Column(0); ok {
				t.Errorf("%s of second %d, an intersection without values: from %x to %x", c.dt, sec, lo, hi)
			}
		}
	}
}

// Parts compare as the numbers that they represent, or as bytes.
func TestCompareParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range orderedClasses {
		for range 12_000 {
			a, b := partOf(rng, c), partOf(rng, c)
			want := bytes.Compare(a, b)
			if OrderOf(c) == ByNumber {
				x, ok := Number(c, a)
				y, fine := Number(c, b)
				if !ok || !fine {
					t.Fatalf("%s: %x, %x", c, a, b)
				}
				want = x.Cmp(y)
			}
			got := compareParts(c, a, b)
			if got > 0 != (want > 0) || got < 0 != (want < 0) {
				t.Fatalf("%s: %x against %x: %d, want %d", c, a, b, got, want)
			}
		}
	}
}

// batchOf returns keys of some columns in the form that Encode gives them.
func batchOf(rows [][][]byte) *Batch {
	b := &Batch{Len: len(rows), data: []byte{}}
	for i, parts := range rows {
		b.Rows = append(b.Rows, uint32(i))
		for _, p := range parts {
			if len(parts) > 1 {
				b.data = binary.AppendUvarint(b.data, uint64(len(p)))
			}
			b.data = append(b.data, p...)
		}
		b.ends = append(b.ends, len(b.data))
	}
	return b
}

// However the keys are divided, the bounds are the same and include all of them.
func TestBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 300 {
		classes := []Class{orderedClasses[1+rng.IntN(len(orderedClasses)-1)]}
		for range rng.IntN(3) {
			classes = append(classes, orderedClasses[rng.IntN(len(orderedClasses))])
		}
		rows := make([][][]byte, rng.IntN(12))
		for i := range rows {
			for _, c := range classes {
				rows[i] = append(rows[i], partOf(rng, c))
			}
		}
		all := NewBounds(classes)
		all.Add(batchOf(rows))
		parts := []*Bounds{NewBounds(classes), NewBounds(classes), NewBounds(classes)}
		for _, i := range rng.Perm(len(rows)) {
			parts[rng.IntN(3)].Add(batchOf(rows[i : i+1]))
		}
		parts[0].Merge(parts[1])
		parts[2].Merge(parts[0])
		for i, c := range classes {
			lo, hi, ok := all.Column(i)
			lo2, hi2, ok2 := parts[2].Column(i)
			if ok != ok2 || ok && (!bytes.Equal(lo, lo2) || !bytes.Equal(hi, hi2)) {
				t.Fatalf("round %d: column %d, %s: %x to %x %v, divided %x to %x %v", round, i, c, lo, hi, ok, lo2, hi2, ok2)
			}
			if !ok {
				full := slices.ContainsFunc(rows, func(r [][]byte) bool {
					return len(r[i]) > maxBound && openTop(r[i][:maxBound])
				})
				if len(rows) > 0 && !(c == Bytes && full) {
					t.Fatalf("round %d: column %d, %s: nothing is known", round, i, c)
				}
				continue
			}
			touched := [2]bool{}
			for _, r := range rows {
				if compareParts(c, r[i], lo) < 0 || compareParts(c, r[i], hi) > 0 {
					t.Fatalf("%s: %x is not from %x to %x", c, r[i], lo, hi)
				}
				touched[0] = touched[0] || bytes.HasPrefix(r[i], lo)
				touched[1] = touched[1] || bytes.Equal(r[i], hi) || len(r[i]) > maxBound
			}
			if touched != [2]bool{true, true} || c == Bytes && max(len(lo), len(hi)) > maxBound {
				t.Fatalf("%s: from %x to %x is wider than need be", c, lo, hi)
			}
		}
	}
}

// Keys that are in both sets are within the bounds of the intersection.
func TestBoundsIntersect(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	bounded := 0
	for range 2000 {
		c := orderedClasses[1+rng.IntN(len(orderedClasses)-1)]
		a, b := NewBounds([]Class{c}), NewBounds([]Class{c})
		var common [][]byte
		for range 1 + rng.IntN(4) {
			v := partOf(rng, c)
			in := rng.IntN(3)
			if in != 1 {
				a.Add(batchOf([][][]byte{{v}}))
			}
			if in != 0 {
				b.Add(batchOf([][][]byte{{v}}))
			}
			if in == 2 {
				common = append(common, v)
			}
		}
		lo, hi, ok := a.Intersect(b).Column(0)
		if ok {
			bounded++
		}
		for _, v := range common {
			if ok && (compareParts(c, v, lo) < 0 || compareParts(c, v, hi) > 0) {
				t.Fatalf("%s: %x is in both, and not from %x to %x", c, v, lo, hi)
			}
			if _, _, known := a.Column(0); known && !ok {
				t.Fatalf("%s: %x is in both, and nothing is known", c, v)
			}
		}
	}
	if bounded < 500 {
		t.Errorf("only %d have bounds", bounded)
	}
}

func openTop(b []byte) bool { return bytes.Count(b, []byte{0xff}) == len(b) }

func TestBoundsOfIntegers(t *testing.T) {
	b := NewBounds([]Class{Integer})
	show := func(p []byte) string {
		n, _ := Number(Integer, p)
		return n.Num().String()
	}
	for _, c := range []struct {
		values []int64
		signed bool
		want   string
	}{
		{nil, true, "nothing"},
		{[]int64{5}, true, "5 to 5"},
		{[]int64{9, 7, 8}, false, "5 to 9"},
		{[]int64{0, -1, 3}, true, "-1 to 9"},
		{[]int64{-1, 4}, false, "-1 to 18446744073709551615"},
		{[]int64{math.MaxInt64, math.MinInt64, 0, 0}, true, "-9223372036854775808 to 18446744073709551615"},
	} {
		batch := &Batch{isInt: true, signed: c.signed}
		for i, v := range c.values {
			batch.Rows, batch.ints = append(batch.Rows, uint32(i)), append(batch.ints, uint64(v))
		}
		b.Add(batch)
		got := "nothing"
		if lo, hi, ok := b.Column(0); ok {
			got = fmt.Sprintf("%s to %s", show(lo), show(hi))
		}
		if got != c.want {
			t.Errorf("with %d, signed %v: %s, want %s", c.values, c.signed, got, c.want)
		}
	}
}

// Classes without an order, and values without a bound of reasonable size, have no
// bounds.
func TestBoundsUnknown(t *testing.T) {
	for _, c := range []struct {
		class  Class
		values []string
	}{
		{Float, []string{"12345678"}}, {Boolean, []string{"\x00"}}, {Fixed(65), []string{strings.Repeat("a", 65)}},
		{Bytes, []string{"a", strings.Repeat("\xff", 65), "b"}},
		{Decimal, []string{"\x00\x00\x00\x00\x01", "\x00\x00\x00\x80\x01"}},
	} {
		b := NewBounds([]Class{c.class})
		for _, v := range c.values {
			b.Add(batchOf([][][]byte{{[]byte(v)}}))
		}
		if lo, hi, ok := b.Column(0); ok {
			t.Errorf("%s: from %x to %x", c.class, lo, hi)
		}
	}
	b := NewBounds([]Class{Bytes})
	b.Add(batchOf([][][]byte{{nil}}))
	if lo, hi, ok := b.Column(0); !ok || len(lo) > 0 || len(hi) > 0 {
		t.Errorf("the empty string: from %x to %x, %v", lo, hi, ok)
	}
	b.Widen(0, nil, nil, false)
	b.Add(batchOf([][][]byte{{[]byte("a")}}))
	if _, _, ok := b.Column(0); ok {
		t.Error("what was lost came back")
	}
}

func BenchmarkBounds(b *testing.B) {
	ints := &Batch{isInt: true, Rows: make([]uint32, 1<<16), ints: make([]uint64, 1<<16)}
	words := &Batch{Rows: make([]uint32, 1<<16)}
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range ints.ints {
		ints.ints[i] = rng.Uint64()
		words.data = fmt.Appendf(words.data, "user-%012d", rng.Uint64N(1e12))
		words.ends = append(words.ends, len(words.data))
	}
	for name, c := range map[string]struct {
		class Class
		batch *Batch
	}{"integers": {Integer, ints}, "strings": {Bytes, words}} {
		b.Run(name, func(b *testing.B) {
			bounds := NewBounds([]Class{c.class})
			for b.Loop() {
				bounds.Add(c.batch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.batch.Rows)), "ns/key")
		})
	}
}
