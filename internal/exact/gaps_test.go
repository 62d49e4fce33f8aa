package exact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// bitsOf returns the bits of bytes one by one, starting with the lowest bit of each
// byte.
type bitsOf struct {
	b  []byte
	at int
}

func (r *bitsOf) bit() int {
	x := int(r.b[r.at/8]) >> (r.at % 8) & 1
	r.at++
	return x
}

func (r *bitsOf) number(n int) *big.Int {
	v := new(big.Int)
	for i := range n {
		v.SetBit(v, i, uint(r.bit()))
	}
	return v
}

// slowGaps decodes a part literally as described, bit by bit and
// with big integers. It checks nothing.
func slowGaps(b []byte) (members []*big.Int) {
	r := &bitsOf{b: b}
	n := int(r.number(64).Uint64())
	for len(members) < n {
		v := r.number(64)
		k := int(r.number(8).Uint64())
		members = append(members, v)
		for i := 1; i < 65536 && len(members) < n; i++ {
			if k == 255 {
				v = new(big.Int).Add(v, big.NewInt(1))
				members = append(members, v)
				continue
			}
			q := 0
			for q < 33 && r.bit() == 0 {
				q++
			}
			var d *big.Int
			if q == 32 {
				d = r.number(64)
			} else {
				d = new(big.Int).Lsh(big.NewInt(int64(q)), uint(k))
				d.Add(d, r.number(k))
			}
			v = new(big.Int).Add(v, d)
			v.Add(v, big.NewInt(1))
			members = append(members, v)
		}
		for r.at%8 != 0 {
			r.at++
		}
	}
	return members
}

// part encodes members.
func part(values []uint64) []byte { return newGapsWriter(bitmapOf(values), true).out }

func bitmapOf(values []uint64) *bitmap {
	m := new(bitmap)
	m.add(values)
	return m
}

// all returns the members.
func (m *bitmap) all() (values []uint64) {
	var buf [100]uint64
	var c cursor
	for n := m.read(&c, buf[:]); n > 0; n = m.read(&c, buf[:]) {
		values = append(values, buf[:n]...)
	}
	return values
}

func (m *bitmap) equals(t *bitmap) bool { return slices.Equal(m.all(), t.all()) }

// readPart decodes a part.
func readPart(b []byte, least uint64) (*bitmap, error) {
	m := new(bitmap)
	return m, readGaps(b, least, &taker{to: m})
}

// gapsSamples returns sets for every case that the form distinguishes.
func gapsSamples() map[string][]uint64 {
	r := rand.New(rand.NewPCG(41, 42))
	spread := func(n int, gap func() uint64) []uint64 {
		v, values := gap(), make([]uint64, 0, n)
		for range n {
			values = append(values, v)
			next := v + 1 + gap()
			if next <= v {
				break
			}
			v = next
		}
		return values
	}
	geometric := func(k float64) func() uint64 {
		return func() uint64 { return uint64(math.Log(1-r.Float64()) / math.Log(1-1/k)) }
	}
	samples := map[string][]uint64{
		"none":          nil,
		"0":             {0},
		"5":             {5},
		"2^64-1":        {math.MaxUint64},
		"the ends":      {0, math.MaxUint64},
		"the last two":  {math.MaxUint64 - 1, math.MaxUint64},
		"edges":         edges,
		"escape at 0":   append(spread(100, func() uint64 { return 0 }), 1<<63),
		"31 and 32":     {0, 1, 2, 3, 35, 68, 69},
		"run":           spread(9000, func() uint64 { return 0 }),
		"a block's run": spread(65536, func() uint64 { return 0 }),
		"long runs":     append(spread(200_000, func() uint64 { return 0 }), spread(70_000, func() uint64 { return 0 })...),
		"even":          spread(9000, func() uint64 { return 1 }),
		"one in 2":      spread(3000, geometric(2)),
		"one in 3":      spread(3000, geometric(3)),
		"one in 16":     spread(9000, geometric(16)),
		"one in 1000":   spread(3000, geometric(1000)),
		"one in 2^26":   spread(3000, geometric(1<<26)),
		"one in 2^40":   spread(3000, geometric(1<<40)),
		"48 bits":       spread(3000, func() uint64 { return r.Uint64() >> 12 }),
		"runs apart":    spread(5000, func() uint64 { return r.Uint64() >> (40 + r.IntN(400)) }),
		"all widths":    spread(2000, func() uint64 { return r.Uint64() >> (11 + r.IntN(53)) }),
		"far clusters":  spread(5000, func() uint64 { return geometric(20)() + r.Uint64N(2000)/1999<<50 }),
		"negative ends": {1 << 63, 1<<63 + 1, 1<<63 + 40, math.MaxUint64},
	}
	for i := range samples["long runs"] { // one begins at 7, the other at 2^40 - 1
		if samples["long runs"][i] += 7; i >= 200_000 {
			samples["long runs"][i] += 1<<40 - 8
		}
	}
	for i := range uint64(140_000) {
		samples["run up to the end"] = append(samples["run up to the end"], math.MaxUint64-139_999+i)
	}
	for _, n := range []int{65535, 65536, 65537, 131073} {
		samples["block of "+strconv.Itoa(n)] = spread(n, geometric(9))
	}
	for _, k := range []int{24, 25, 26, 31, 32, 33, 57, 58, 60, 61, 62} {
		samples["k near "+strconv.Itoa(k)] = spread(40, func() uint64 { return r.Uint64() >> (64 - k) })
	}
	return samples
}

// TestGapsAgainstDescription: the output matches the description, and the reader
// restores the members.
func TestGapsAgainstDescription(t *testing.T) {
	for name, values := range gapsSamples() {
		b := part(values)
		slow := slowGaps(b)
		if len(slow) != len(values) {
			t.Fatalf("%s: %d members, want %d", name, len(slow), len(values))
		}
		for i, v := range slow {
			if !v.IsUint64() || v.Uint64() != values[i] {
				t.Fatalf("%s: member %d is %v, want %d", name, i, v, values[i])
			}
		}
		got, err := readPart(b, 0)
		if err != nil || !got.equals(bitmapOf(values)) {
			t.Fatalf("%s: %v", name, err)
		}
		if size := newGapsWriter(got, false).size; size != uint64(len(b)) {
			t.Fatalf("%s: %d bytes, said to be %d", name, len(b), size)
		}
	}
}

// TestGapsParameter: k is the smallest that the description allows, counted gap by
// gap.
func TestGapsParameter(t *testing.T) {
	for name, values := range gapsSamples() {
		if len(values) == 0 || len(values) > gapsBlock {
			continue
		}
		want := 0
		for ; ; want++ {
			below := 0
			for i := range values[1:] {
				d := new(big.Int).SetUint64(values[i+1] - values[i] - 1)
				if d.BitLen() <= want {
					below++
				}
			}
			if 8*below >= 3*(len(values)-1) {
				break
			}
		}
		if n := len(values) - 1; n > 0 && values[n]-values[0] == uint64(n) {
			want = 255
		}
		if k := part(values)[16]; int(k) != want {
			t.Errorf("%s: k is %d, want %d", name, k, want)
		}
	}
}

// golden returns the parts in testdata/gaps.txt: members and bytes, worked out by
// hand.
func golden(tb testing.TB) (members [][]uint64, parts [][]byte) {
	text, err := os.ReadFile("testdata/gaps.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		left, right, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		values := []uint64{}
		for _, f := range strings.Fields(left) {
			v, err := strconv.ParseUint(f, 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			values = append(values, v)
		}
		b := []byte{}
		for _, f := range strings.Fields(right) {
			v, ok := new(big.Int).SetString(f, 16)
			if !ok {
				tb.Fatalf("no hexadecimal number: %q", f)
			}
			b = append(b, v.FillBytes(make([]byte, len(f)/2))...)
		}
		members, parts = append(members, values), append(parts, b)
	}
	return members, parts
}

func TestGapsGolden(t *testing.T) {
	members, parts := golden(t)
	if len(parts) < 8 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, values := range members {
		if got := part(values); !bytes.Equal(got, parts[i]) {
			t.Errorf("%v:\n got %x\nwant %x", values, got, parts[i])
		}
		if m, err := readPart(parts[i], 0); err != nil || !m.equals(bitmapOf(values)) {
			t.Errorf("%v: %v", values, err)
		}
	}
}

// checkPart checks that accepted bytes are what the writer produces for the
// members.
func checkPart(t *testing.T, b []byte) (refused bool) {
	t.Helper()
	m, err := (*bitmap)(nil), readGaps(b, 0, &taker{})
	if err == nil {
		m, err = readPart(b, 0)
	}
	if err != nil {
		if !errors.Is(err, fault.ErrCorrupt) {
			t.Fatalf("%x: %v", b, err)
		}
		return true
	}
	if again := newGapsWriter(m, true).out; !bytes.Equal(again, b) {
		t.Fatalf("accepted, though the writer does not write it:\n got %x\nwant %x", b, again)
	}
	return false
}

// TestGapsDamage: every bit flip, truncation and trailing byte of small parts is
// refused, or is what the writer produces for another set.
func TestGapsDamage(t *testing.T) {
	_, parts := golden(t)
	for _, values := range gapsSamples() {
		parts = append(parts, part(values[:min(len(values), 14)]))
	}
	for _, b := range parts {
		for i := 0; i < 8*len(b); i += cases.Count(5, 3, 1) { // any bit of a byte
			c := bytes.Clone(b)
			c[i/8] ^= 1 << (i % 8)
			checkPart(t, c)
		}
		for n := range b {
			if !checkPart(t, b[:n]) {
				t.Errorf("%x: the first %d bytes are accepted", b, n)
			}
		}
		for x := range 256 {
			if !checkPart(t, append(bytes.Clone(b), byte(x))) {
				t.Errorf("%x: a byte more is accepted", b)
			}
		}
	}
}

// gapsPart builds a part: a count, and blocks of first member, parameter and bits
// as text.
func gapsPart(n uint64, blocks ...gapsParts) []byte {
	b := binary.LittleEndian.AppendUint64(nil, n)
	for _, p := range blocks {
		b = binary.LittleEndian.AppendUint64(b, p.first)
		b = append(b, p.k)
		text := strings.ReplaceAll(p.bits, " ", "")
		for i, x := range text {
			if i%8 == 0 {
				b = append(b, 0)
			}
			b[len(b)-1] |= byte(x-'0') << (i % 8)
		}
	}
	return b
}

type gapsParts struct {
	first uint64
	k     byte
	bits  string
}

// number returns n bits of v as text, lowest bit first.
func number(v uint64, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0' + byte(v>>i&1)
	}
	return string(b)
}

func zeros(n int) string { return strings.Repeat("0", n) }

// TestGapsRefuses: one fault each, with its error.
func TestGapsRefuses(t *testing.T) {
	ones := strings.Repeat("1", gapsBlock-1)
	for name, c := range map[string]struct {
		least uint64
		b     []byte
		says  string
	}{
		"nothing":                   {0, nil, "too short: 0 bytes"},
		"a count without end":       {0, gapsPart(1<<64-1, gapsParts{0, 0, "1"}), "too short"},
		"no block":                  {0, gapsPart(1), "too short"},
		"half a head":               {0, gapsPart(1, gapsParts{0, 0, ""})[:16], "too short"},
		"none, and a byte":          {0, gapsPart(0, gapsParts{0, 0, ""}), "bytes behind it: want 0, got 9"},
		"a member more":             {0, gapsPart(8, gapsParts{5, 0, "01111111"}), ""},
		"a member less":             {0, gapsPart(7, gapsParts{5, 0, "01111111"}), "bits behind a block: want 0, got 1"},
		"padding":                   {0, gapsPart(2, gapsParts{5, 1, "11000001"}), "bits behind a block: want 0, got 32"},
		"parameter 65":              {0, gapsPart(1, gapsParts{5, 65, ""}), "Rice parameter: want 64 at most, or 255, got 65"},
		"parameter of no gaps":      {0, gapsPart(1, gapsParts{5, 1, ""}), "Rice parameter: want less than 1, got 1"},
		"parameter too large":       {0, gapsPart(2, gapsParts{5, 2, "110"}), "Rice parameter: want less than 2, got 2"},
		"parameter too small":       {0, gapsPart(2, gapsParts{5, 0, "01"}), "Rice parameter: want 3/8 of 1 gaps below 2^0, got 0"},
		"escape of 31":              {0, gapsPart(3, gapsParts{5, 0, "1" + zeros(32) + "1" + number(31, 64)}), "gap in full: want 32·2^0 or above, got 31"},
		"escape of 32":              {0, gapsPart(3, gapsParts{5, 0, "1" + zeros(32) + "1" + number(32, 64)}), ""},
		"33 zeros":                  {0, gapsPart(3, gapsParts{5, 0, "1" + zeros(33) + "1" + number(33, 64)}), "zero bits before a gap: want 32 at most, got 33"},
		"beyond 2^64":               {0, gapsPart(2, gapsParts{1<<64 - 2, 1, "11"}), "gap: want a member below 2^64 behind 18446744073709551614, got 1"},
		"a run too short":           {0, gapsPart(1, gapsParts{5, 255, ""}), "consecutive members: want two or more, below 2^64, got 1 from 5"},
		"a run of two":              {0, gapsPart(2, gapsParts{5, 255, ""}), ""},
		"a run of two in gaps":      {0, gapsPart(2, gapsParts{5, 0, "1"}), "Rice parameter of consecutive members: want 255, got 0"},
		"a run up to 2^64-1":        {0, gapsPart(gapsBlock, gapsParts{1<<64 - gapsBlock, 255, ""}), ""},
		"a run beyond 2^64-1":       {0, gapsPart(gapsBlock, gapsParts{1<<64 - gapsBlock + 1, 255, ""}), "got 65536 from 18446744073709486081"},
		"a run in gaps":             {0, gapsPart(gapsBlock, gapsParts{5, 0, ones}), "Rice parameter of consecutive members: want 255, got 0"},
		"beyond 2^64, more to come": {0, gapsPart(200, gapsParts{1<<64 - 2, 0, ones[:199]}), "gap: want a member below 2^64 behind 18446744073709551615, got 0"},
		"round, more to come":       {0, gapsPart(200, gapsParts{1<<64 - 9, 0, "1" + zeros(9) + ones[:198]}), "gap: want a member below 2^64 behind 18446744073709551608, got 9"},
		"up to 2^64-1":              {0, gapsPart(3, gapsParts{1<<64 - 3, 255, ""}), ""},
		"behind 2^64-1":             {0, gapsPart(2, gapsParts{1<<64 - 1, 0, "1"}), "want a member below 2^64"},
		"a gap of 2^64":             {0, gapsPart(2, gapsParts{0, 64, "01" + zeros(64)}), "gap: want less than 2^64, got 1·2^64"},
		"all the way round":         {0, gapsPart(2, gapsParts{7, 64, "1" + number(1<<64-1, 64)}), "want a member below 2^64"},
		"a natural number":          {1 << 63, gapsPart(1, gapsParts{1<<63 - 1, 0, ""}), "first member of a block: want 9223372036854775808 or above, got 9223372036854775807"},
		"a negative one":            {1 << 63, gapsPart(1, gapsParts{1 << 63, 0, ""}), ""},
		"blocks in order":           {0, gapsPart(gapsBlock+1, gapsParts{5, 255, ""}, gapsParts{5 + gapsBlock, 0, ""}), ""},
		"blocks that overlap":       {0, gapsPart(gapsBlock+1, gapsParts{5, 255, ""}, gapsParts{4 + gapsBlock, 0, ""}), "first member of a block: want 65541 or above, got 65540"},
		"a block after 2^64-1":      {0, gapsPart(gapsBlock+1, gapsParts{1<<64 - gapsBlock, 255, ""}, gapsParts{0, 0, ""}), "first member of a block"},
	} {
		err := readGaps(c.b, c.least, &taker{})
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// FuzzGaps: the reader accepts exactly what the writer produces, and agrees with
// the reader that follows the description.
func FuzzGaps(f *testing.F) {
	_, parts := golden(f)
	for _, b := range parts {
		f.Add(b)
	}
	for _, values := range gapsSamples() {
		f.Add(part(values[:min(len(values), 300)]))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkPart(t, b) {
			return
		}
		m, _ := readPart(b, 0)
		if m.len() > 1<<20 {
			return // runs
		}
		got := m.all()
		for i, v := range slowGaps(b) {
			if !v.IsUint64() || v.Uint64() != got[i] {
				t.Fatalf("member %d is %d, want %v", i, got[i], v)
			}
		}
	})
}
