package ring

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// plan returns the parameters of a ring of slots of a second.
func plan(t testing.TB, slots int, expect uint64, fpr float64) Params {
	w := Window{Window: time.Duration(slots) * time.Second, Slots: slots, Expect: expect, FPR: fpr}
	p, err := Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// hashOf returns the hash of a key.
func hashOf(key uint64) uint64 { return xxh3.Hash(binary.LittleEndian.AppendUint64(nil, key)) }

// oracle is what a ring without false positives says, by a map of the slots in which keys were
// recorded.
type oracle struct {
	slots, newest int64
	begun         bool
	last          map[uint64]int64
}

func (o *oracle) judge(key uint64, slot int64) Verdict {
	if !o.begun || slot > o.newest {
		o.begun, o.newest = true, slot
	}
	if slot <= o.newest-o.slots {
		return Late
	}
	if at, ok := o.last[key]; ok && at > o.newest-o.slots {
		return Seen
	}
	o.last[key] = slot
	return Fresh
}

// A ring of any number of slots says what a map says, over streams with late rows, gaps and
// times before 1970. The rate is such that no false positive is expected.
func TestLikeMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, slots := range []int{1, 2, 7, 8, 9, 24, 33, 64} {
		r := New(plan(t, slots, 4000, 1e-9))
		o := &oracle{slots: int64(slots), last: map[uint64]int64{}}
		now := int64(-40)
		for range 200 {
			if random.IntN(4) == 0 {
				now += random.Int64N(3)
			}
			if random.IntN(50) == 0 {
				now += random.Int64N(int64(2*slots) + 2)
			}
			var hashes []uint64
			var at []int64
			var want []Verdict
			for range random.IntN(200) {
				key, slot := random.Uint64N(300), now-random.Int64N(int64(slots)+3)/(1+random.Int64N(4))
				hashes, at, want = append(hashes, hashOf(key)), append(at, slot), append(want, o.judge(key, slot))
			}
			if got := r.Judge(hashes, at, nil); !slices.Equal(got, want) {
				t.Fatalf("%d slots: %v, want %v", slots, got, want)
			}
		}
	}
}

// A row that is too far ahead does not move the window.
func TestJump(t *testing.T) {
	for jump, want := range map[time.Duration]int64{0: 0, time.Minute: 1, time.Hour: 1, 90 * time.Minute: 2} {
		p, err := Plan(Window{Window: 24 * time.Hour, Slots: 24, Jump: jump, Expect: 1, FPR: 0.1})
		if err != nil || p.Jump != want {
			t.Errorf("%v: %d slots, %v", jump, p.Jump, err)
		}
	}
	p := plan(t, 4, 100, 1e-6)
	p.Jump = 2
	r := New(p)
	got := r.Judge([]uint64{1, 2, 1, 3, 2, 1}, []int64{10, 13, 10, 12, 14, 9}, nil)
	if want := []Verdict{Fresh, Ahead, Seen, Fresh, Fresh, Late}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The rate of false positives is that asked for when the ring is as full as planned, and that
// predicted at any fill: keys that were never recorded are seen within 5 standard deviations.
func TestRate(t *testing.T) {
	for _, c := range []struct {
		slots int
		fpr   float64
	}{{1, 0.01}, {5, 0.01}, {24, 0.01}, {24, 0.001}, {64, 0.05}} {
		const expect = 60_000
		r := New(plan(t, c.slots, expect, c.fpr))
		for i := range uint64(expect) {
			r.Judge([]uint64{hashOf(i)}, []int64{int64(i * uint64(c.slots) / expect)}, nil)
			if i == expect/3 || i == expect-1 {
				const probes = 200_000
				hits := 0
				for k := range uint64(probes) {
					if r.has(hashOf(k|1<<40)) != 0 {
						hits++
					}
				}
				p := r.Rate()
				if i == expect-1 && (p > 1.001*c.fpr || p < 0.8*c.fpr) {
					t.Errorf("%d slots: predicted %v, want %v", c.slots, p, c.fpr)
				}
				if got := float64(hits) / probes; math.Abs(got-p) > 5*math.Sqrt(p/probes)+1e-5 {
					t.Errorf("%d slots, %d keys: measured %v, predicted %v", c.slots, i, got, p)
				}
			}
		}
	}
}

// A slot hits exactly when a Bloom filter of the same geometry and size does.
func TestLikeBloom(t *testing.T) {
	p := Params{Slots: 8, Width: time.Second, Blocks: 37, Expect: 1000, FPR: 0.01}
	r := New(p)
	f, err := bloom.New(bloom.Params{Geometry: bloom.Split512, Blocks: p.Blocks, Hash: bloom.Hash{ID: bloom.XXH3}})
	if err != nil {
		t.Fatal(err)
	}
	hits := 0
	for i := range uint64(4000) {
		h := hashOf(i)
		want := len(f.Probe([]uint64{h}, nil)) > 0
		if got := r.Judge([]uint64{h}, []int64{0}, nil)[0] == Seen; got != want {
			t.Fatalf("key %d: seen %t, in the filter %t", i, got, want)
		}
		if want {
			hits++
		}
		f.Add([]uint64{h})
	}
	if hits == 0 || hits == 4000 {
		t.Errorf("%d hits: the test shows nothing", hits)
	}
}

// TestSlotOf compares slots with those computed by big integers, however far from 1970. Slots above
// 2^62 are refused.
func TestSlotOf(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	far, none := 0, 0
	for range 100_000 {
		n := random.Uint64() >> random.IntN(64)
		if random.IntN(4) == 0 {
			n = -n
		}
		negative := int64(n) < 0 && random.IntN(8) > 0
		unit := []uint64{1, 1000, 1e6, 1e9, 86_400e9}[random.IntN(5)]
		rest, width := random.Uint64N(unit), 1+random.Uint64()>>random.IntN(55)
		time := new(big.Int).SetUint64(n)
		if negative {
			time.SetInt64(int64(n))
		}
		time.Add(time.Mul(time, new(big.Int).SetUint64(unit)), new(big.Int).SetUint64(rest))
		want := time.Div(time, new(big.Int).SetUint64(width)) // rounds down
		got, ok := SlotOf(n, negative, unit, rest, width)
		if fits := want.BitLen() < 63; ok && (!want.IsInt64() || want.Int64() != got) || fits && !ok || want.BitLen() > 63 && ok {
			t.Fatalf("%d·%d + %d ns, negative %t, in slots of %d ns: %d, %t, want %v", n, unit, rest, negative, width, got, ok, want)
		} else if !ok {
			none++
		} else if got > 1<<40 || got < -1<<40 {
			far++
		}
	}
	if far < 1000 || none < 1000 {
		t.Errorf("%d far slots, %d times without one: the test shows nothing", far, none)
	}
}

// Whatever the number of slots, filters take little more than they need.
func TestLayout(t *testing.T) {
	for slots := 1; slots <= MostSlots; slots++ {
		p := Params{Slots: slots}
		width, ways := p.layout()
		if used := float64(uint64(slots)*ways) / float64(8*width); width > 8 || ways < 1 || used > 1 || used < 0.8 {
			t.Errorf("%d slots: %d bytes, %d ways", slots, width, ways)
		}
	}
	if p := plan(t, 1, 1e6, 0.01); p.Bytes() > 1_500_000 {
		t.Errorf("%d bytes for a million keys", p.Bytes())
	}
}

// Plans that no ring can have are errors.
func TestPlan(t *testing.T) {
	for _, w := range []Window{
		{}, {Slots: 65, Expect: 1, FPR: 0.1, Window: time.Hour}, {Slots: 1, FPR: 0.1}, {Slots: 1, Expect: 1, FPR: math.NaN()},
		{Slots: 2, Expect: 1, FPR: 0.1}, {Slots: 7, Expect: 1, FPR: 0.1, Window: 24 * time.Hour}, {Slots: 1, Expect: 1, FPR: 1}, {Slots: 1, Expect: 1, FPR: 0.1, Window: -1},
	} {
		if p, err := Plan(w); err == nil {
			t.Errorf("%+v: %+v", w, p)
		}
	}
	p := plan(t, 24, 864_000_000, 0.001)
	if err := p.Fits(1 << 30); !errors.Is(err, fault.ErrMemory) {
		t.Error(err)
	}
	if perKey := float64(p.Bytes()) / 864e6; perKey > 4 {
		t.Errorf("%.2f bytes a key", perKey)
	}
}

// state returns the bytes of a small ring.
func state(t testing.TB) []byte {
	r := New(Params{Slots: 3, Width: time.Second, Blocks: 1, Expect: 9, FPR: 0.5})
	r.Judge([]uint64{hashOf(1), hashOf(2)}, []int64{4, 5}, nil)
	var b bytes.Buffer
	if err := r.Encode(&b, json.RawMessage(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A decoded ring continues as the encoded one, and encodes to the same bytes.
func TestState(t *testing.T) {
	b := state(t)
	r, with, err := Decode(bytes.NewReader(b), "x", int64(len(b)), 0)
	if err != nil || string(with) != `{"a":1}` {
		t.Fatal(string(with), err)
	}
	var again bytes.Buffer
	if err := r.Encode(&again, with); err != nil || !bytes.Equal(again.Bytes(), b) {
		t.Error(err)
	}
	got := r.Judge([]uint64{hashOf(1), hashOf(2), hashOf(1)}, []int64{5, 6, 7}, nil)
	if want := []Verdict{Seen, Seen, Fresh}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, _, err := Decode(bytes.NewReader(b), "x", -1, 100); !errors.Is(err, fault.ErrMemory) {
		t.Error(err)
	}
}

// A state of unknown length is read, and takes no more memory than there are bits.
func TestUnknownLength(t *testing.T) {
	b := state(t)
	if _, _, err := Decode(bytes.NewReader(b), "x", -1, 0); err != nil {
		t.Error(err)
	}
	h := []byte(`{"slots":1,"width_ns":0,"jump":0,"expect":1,"fpr":0.1,"blocks":4294967296,"newest":0,"begun":false,"counts":[0]}`)
	b = binary.LittleEndian.AppendUint32(b[:12:12], uint32(len(h)))
	b = append(b, h...)
	b = append(binary.LittleEndian.AppendUint64(b, xxh3.Hash(b)), 1, 2, 3)
	if _, _, err := Decode(bytes.NewReader(b), "x", -1, 0); !errors.Is(err, fault.ErrCorrupt) {
		t.Error(err)
	}
}

// The golden file, which never changes, is read and written as it is.
func TestGolden(t *testing.T) {
	want, err := os.ReadFile("testdata/v1.state")
	if err != nil {
		t.Fatal(err)
	}
	if got := state(t); !bytes.Equal(got, want) {
		t.Errorf("%d bytes that differ from the %d of the file", len(got), len(want))
	}
	if _, _, err := Decode(bytes.NewReader(want), "v1.state", int64(len(want)), 0); err != nil {
		t.Error(err)
	}
}

// Every flipped bit, every cut and every byte more is refused.
func TestDamagedState(t *testing.T) {
	b := state(t)
	refused := func(what string, at int, b []byte) {
		if _, _, err := Decode(bytes.NewReader(b), "x", int64(len(b)), 0); err == nil || errors.Is(err, panics.ErrRecovered) {
			t.Errorf("%s %d: %v", what, at, err)
		}
	}
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		refused("bit", i, b)
		b[i/8] ^= 1 << (i % 8)
	}
	for n := range b {
		refused("cut at", n, b[:n])
	}
	refused("longer by", 1, append(slices.Clone(b), 0))
}

// Whatever the bytes, with right checksums, there is a ring or an error.
func FuzzState(f *testing.F) {
	b := state(f)
	f.Add(b[16:bytes.IndexByte(b, '}')+3], b[len(b)-100:])
	f.Add([]byte(`{"slots":64,"width_ns":1,"jump":0,"expect":1,"fpr":0.1,"blocks":4294967296,"newest":0,"begun":false,"counts":[1]}`), []byte{})
	f.Add([]byte(`{"slots":1,"width_ns":0,"jump":0,"expect":1,"fpr":0.1,"blocks":1,"newest":9223372036854775807,"begun":true,"counts":[18446744073709551615]}`), make([]byte, 520))
	f.Fuzz(func(t *testing.T, head, bits []byte) {
		b := binary.LittleEndian.AppendUint32([]byte(magic), version)
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(head))), head...)
		b = binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
		b = append(b, bits...)
		b = binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
		r, with, err := Decode(bytes.NewReader(b), "x", int64(len(b)), 1<<20)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := r.Encode(&again, with); err != nil {
			t.Fatal(err)
		}
		r.Judge([]uint64{1, 2, 3, 1}, []int64{0, math.MaxInt64, math.MinInt64, r.newest}, nil)
		if p := r.Rate(); !(p >= 0 && p <= 1) {
			t.Error(p)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	const keys = 20_000_000
	r := New(plan(b, 24, keys, 0.001))
	hashes, slots := make([]uint64, 1<<12), make([]int64, 1<<12)
	n := uint64(0)
	b.SetBytes(1)
	var v []Verdict
	for b.Loop() {
		for i := range hashes {
			n++
			hashes[i], slots[i] = hashOf(n), int64(n*24/keys)
		}
		v = r.Judge(hashes, slots, v[:0])
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}
