package exact

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// samples returns sets of many kinds, small enough for tests.
func samples() map[string]*Set {
	r := rand.New(rand.NewPCG(51, 52))
	sets := map[string]*Set{}
	put := func(name string, parts ...[]uint64) {
		s := New()
		for i, values := range parts {
			s.Add(values, i == 1)
		}
		sets[name] = s
	}
	negated := func(values []uint64) []uint64 {
		minus := make([]uint64, len(values))
		for i, v := range values {
			minus[i] = -v - 1
		}
		return minus
	}
	wide := make([]uint64, 300)
	for i := range wide {
		wide[i] = r.Uint64()
	}
	run := make([]uint64, 1<<17)
	for i := range run {
		run[i] = uint64(i)
	}
	put("empty")
	put("one", []uint64{5})
	put("few", wide[:100])
	put("anywhere", wide)
	put("anywhere, signed", nil, wide)
	put("run", run)
	put("runs of both signs", run, negated(run))
	put("one in 2", subset(r, 100_000, 2))
	put("one in 4", subset(r, 100_000, 4))
	put("one in 16", subset(r, 100_000, 16))
	put("one in 16 below zero", nil, negated(subset(r, 100_000, 16)))
	put("one in 16 of both signs", subset(r, 70_000, 16), negated(subset(r, 10_000, 16)))
	put("one in 300", subset(r, 10_000, 300))
	put("one in 16 and a few below zero", subset(r, 100_000, 16), []uint64{1<<64 - 1, 1 << 63})
	put("runs, and a few elsewhere", append(slices.Clone(run), wide[:100]...))
	return sets
}

// TestWire: the bytes can be read, pass Check, and have the predicted size.
func TestWire(t *testing.T) {
	r := rand.New(rand.NewPCG(53, 54))
	for name, s := range samples() {
		negative, natural := s.Marshal()
		if n := s.WireBytes(); n != uint64(len(negative)+len(natural)) {
			t.Errorf("%s: %d bytes, said to be %d", name, len(negative)+len(natural), n)
		}
		memory, err := Check(negative, natural)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := Unmarshal(negative, natural)
		if err != nil || !sameMembers(s, again) {
			t.Fatalf("%s: read, it is another set: %v", name, err)
		}
		want := uint64(0)
		for _, c := range slices.Concat(again.negative.held, again.natural.held) {
			want += containerMemory + 2*uint64(len(c.list))
			if c.bits != nil && c.bits != everything {
				want += 8192
			}
		}
		if memory != want {
			t.Errorf("%s: %d bytes in memory, want %d", name, memory, want)
		}
		if !bytes.Equal(marshal2(t, shuffled(r, s)), marshal2(t, s)) {
			t.Errorf("%s: another order, other bytes", name)
		}
	}
}

// shuffled returns the same set, built in parts and in another order.
func shuffled(r *rand.Rand, s *Set) *Set {
	c := New()
	for values, signed := range s.Values {
		values = slices.Clone(values)
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		part := New()
		part.Add(values[len(values)/2:], signed)
		c.Add(values[:len(values)/2], signed)
		c.Union(part)
	}
	return c
}

// TestLongRuns: 2^34 members in a few MiB are not visited one by one.
func TestLongRuns(t *testing.T) {
	s := New()
	s.natural.addRun(1<<40-5, 1<<34)
	negative, natural := s.Marshal()
	if n := len(negative) + len(natural); s.WireBytes() != uint64(n) || n > 4<<20 {
		t.Fatalf("%d bytes, said to be %d", n, s.WireBytes())
	}
	if memory, err := Check(negative, natural); err != nil || memory > 16<<20 {
		t.Errorf("%d bytes in memory, %v", memory, err)
	}
	if again, err := Unmarshal(negative, natural); err != nil || again.Len() != 1<<34 || again.Bytes() > 64<<20 {
		t.Fatal(err)
	}
}

func TestWireRefused(t *testing.T) {
	both := samples()["one in 16 of both signs"]
	minus, plus := both.Marshal()
	for name, c := range map[string]struct {
		negative, natural []byte
		says              string
	}{
		"naturals in both parts": {plus, plus, "corrupt: negative members: exact set: first member of a block: want 9223372036854775808 or above"},
		"natural is cut":         {minus, plus[:len(plus)-1], "corrupt: natural members: exact set is too short"},
		"negative has more":      {append(bytes.Clone(minus), 0), plus, "corrupt: negative members: exact set: bytes behind it"},
	} {
		s, err := Unmarshal(c.negative, c.natural)
		if !errors.Is(err, fault.ErrCorrupt) || s != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if _, checked := Check(c.negative, c.natural); checked == nil || checked.Error() != err.Error() {
			t.Errorf("%s: the check says %v", name, checked)
		}
	}
}

// TestWireDamaged: bit flips in and truncations of a whole set are refused or give
// another set whose bytes are exactly these.
func TestWireDamaged(t *testing.T) {
	negative, natural := samples()["anywhere"].Marshal()
	for i := 0; i < 8*len(natural); i += 29 {
		c := bytes.Clone(natural)
		c[i/8] ^= 1 << (i % 8)
		checkSet(t, negative, c)
	}
	for n := 0; n < len(natural); n += 31 {
		if s, err := Unmarshal(negative, natural[:n]); !errors.Is(err, fault.ErrCorrupt) || s != nil {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

// checkSet checks that accepted bytes are what Marshal gives, and that Check
// agrees.
func checkSet(t *testing.T, negative, natural []byte) {
	t.Helper()
	_, checked := Check(negative, natural)
	s, err := Unmarshal(negative, natural)
	if (checked == nil) != (err == nil) {
		t.Fatalf("the check says %v, the decoder %v", checked, err)
	}
	if err != nil {
		if !errors.Is(err, fault.ErrCorrupt) || s != nil {
			t.Fatal(err)
		}
		return
	}
	a, b := s.Marshal()
	if !bytes.Equal(a, negative) || !bytes.Equal(b, natural) {
		t.Fatal("accepted, though Marshal does not give it")
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	for name, s := range samples() {
		negative, natural := s.Marshal()
		if n := testing.AllocsPerRun(3, func() { _, _ = Check(negative, natural) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// FuzzWire: no input causes a panic or more memory than its members need, and every accepted
// input is what Marshal gives.
func FuzzWire(f *testing.F) {
	for _, s := range samples() {
		if negative, natural := s.Marshal(); len(negative)+len(natural) < 4000 {
			f.Add(negative, natural)
		}
	}
	f.Fuzz(func(t *testing.T, negative, natural []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Unmarshal(negative, natural)
		runtime.ReadMemStats(&after)
		if errors.Is(err, panics.ErrRecovered) {
			t.Fatalf("a recovered panic: %v", err)
		}
		size := uint64(len(negative) + len(natural))
		// A block of consecutive members, of 9 bytes, takes the bitmaps of two containers, and some on the way.
		if n := after.TotalAlloc - before.TotalAlloc; n > 200*size+size/9*(64<<10)+4<<20 {
			t.Fatalf("%d bytes allocated for %d", n, size)
		}
		checkSet(t, negative, natural)
	})
}
