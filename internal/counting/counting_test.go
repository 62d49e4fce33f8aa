package counting

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/spill"
)

var xxh = bloom.Hash{ID: bloom.XXH3}

func params(blocks uint64) bloom.Params {
	return bloom.Params{Geometry: bloom.Split256, Hash: xxh, Blocks: blocks}
}

func newFilter(t testing.TB, blocks uint64) *Filter {
	t.Helper()
	f, err := New(params(blocks))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// model is what a filter is compared with: a map of counters, and one of the keys that
// raised them.
type model struct {
	params bloom.Params
	counts map[uint64]uint64 // by block and place
	keys   map[uint64]uint64 // how often a hash is in
	all    uint64            // sum over the keys
}

func newModel(p bloom.Params) *model {
	return &model{p, map[uint64]uint64{}, map[uint64]uint64{}, 0}
}

func (m *model) places(h uint64) (all [8]uint64) {
	block, at := bloom.Place(h, m.params.Blocks)
	for i, k := range at {
		all[i] = block<<8 | uint64(k)
	}
	return all
}

func (m *model) has(h uint64) bool {
	for _, c := range m.places(h) {
		if m.counts[c] == 0 {
			return false
		}
	}
	return true
}

func (m *model) raise(h, n uint64) {
	m.keys[h] += n
	m.all += n
	for _, c := range m.places(h) {
		m.counts[c] = min(m.counts[c]+n, Most)
	}
}

// lower removes copies of a key that is in.
func (m *model) lower(h, n uint64) {
	m.all -= n
	if m.keys[h] -= n; m.keys[h] == 0 {
		delete(m.keys, h)
	}
	for _, c := range m.places(h) {
		if m.counts[c] != Most { // saturated counters stay
			m.counts[c] -= n
		}
	}
}

// check compares a filter with the model, and its bits with those of a Bloom filter of the
// keys that are left.
func (m *model) check(t *testing.T, f *Filter) (saturated uint64) {
	t.Helper()
	want := make([]byte, Bytes(m.params))
	for c, n := range m.counts {
		want[c/2] |= byte(n) << (4 * (c % 2))
		if n == Most {
			saturated++
		}
	}
	if !bytes.Equal(f.Counters(), want) || Saturated(want) != saturated {
		t.Fatal("the counters differ from the model's")
	}
	bits, err := f.Bits()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := bloom.New(m.params)
	if err != nil {
		t.Fatal(err)
	}
	for h := range m.keys {
		plain.Add([]uint64{h})
		if !bits.Contains(h) {
			t.Fatal("a key is lost")
		}
	}
	if saturated == 0 && !bytes.Equal(bits.AppendBlocks(nil, 0, m.params.Blocks), plain.AppendBlocks(nil, 0, m.params.Blocks)) {
		t.Fatal("the bits are not those of the keys that are left")
	}
	return saturated
}

// machine is a filter and its model, with keys to choose from.
type machine struct {
	t        *testing.T
	multiset bool
	rand     *rand.Rand
	keys     []uint64
	filter   *Filter
	model    *model
}

// draw returns up to n keys, some of them several times.
func (m *machine) draw(n int) (list []uint64) {
	for range 1 + m.rand.IntN(n) {
		list = append(list, m.keys[m.rand.IntN(len(m.keys))])
	}
	return list
}

// members returns some of the keys that are in.
func (m *machine) members(n int) (list []uint64) {
	copies := map[uint64]uint64{}
	for _, h := range m.draw(n) {
		if copies[h]++; copies[h] <= m.model.keys[h] {
			list = append(list, h)
		}
	}
	return list
}

func (m *machine) change(way Way, list []uint64, done, left uint64) {
	m.t.Helper()
	c := m.filter.Change(way)
	if err := c.Add(Run{}.with(slices.Clone(list), m.multiset)); err != nil || c.Done != done || c.Left != left {
		m.t.Fatalf("way %d: %d done, %d left, %v; want %d, %d", way, c.Done, c.Left, err, done, left)
	}
}

func (m *machine) add() {
	list := m.draw(40)
	if m.multiset {
		m.change(AddAll, list, uint64(len(list)), 0)
		for _, h := range list {
			m.model.raise(h, 1)
		}
		return
	}
	fresh, in := map[uint64]bool{}, map[uint64]bool{}
	for _, h := range list {
		if m.model.has(h) {
			in[h] = true
		} else {
			fresh[h] = true
		}
	}
	m.change(AddToSet, list, uint64(len(fresh)), uint64(len(in)))
	for h := range fresh {
		m.model.raise(h, 1)
	}
}

// remove removes keys that are in, and tries to remove some that are not.
func (m *machine) remove() {
	list, missing := m.members(60), 0
	in := len(list)
	for _, h := range m.draw(3) {
		if !m.model.has(h) && !slices.Contains(list, h) {
			list = append(list, h)
			missing++
		}
	}
	m.change(Remove, list, uint64(in), uint64(missing))
	for _, h := range list[:in] {
		m.model.lower(h, 1)
	}
}

// merge adds a filter of other keys, or subtracts one of keys that are in.
func (m *machine) merge(subtract bool) {
	list := m.draw(40)
	if subtract {
		list = m.members(40)
	}
	g := newFilter(m.t, m.model.params.Blocks)
	if err := g.Change(AddAll).Add(Run{}.with(slices.Clone(list), true)); err != nil {
		m.t.Fatal(err)
	}
	if err := m.filter.Combine(0, g.Counters(), subtract); err != nil {
		m.t.Fatal(err)
	}
	for _, h := range list {
		if subtract {
			m.model.lower(h, 1)
		} else {
			m.model.raise(h, 1)
		}
	}
}

// A million random additions, removals and merges leave the counters of a map, and the bits
// of a filter that was built from the remaining keys.
func TestStateMachine(t *testing.T) {
	steps := cases.Count(1_000, 9_000, 40_000) // of up to 60 keys: more than a million in all
	for _, multiset := range []bool{false, true} {
		for _, blocks := range []uint64{1, 7, 144} {
			r := rand.New(rand.NewPCG(blocks, 1))
			m := &machine{t: t, multiset: multiset, rand: r, filter: newFilter(t, blocks), model: newModel(params(blocks))}
			for range 40 * blocks {
				m.keys = append(m.keys, r.Uint64())
			}
			saturated := uint64(0)
			for step := range steps {
				n := r.IntN(20)
				if blocks > 1 && 4*m.model.all > uint64(len(m.keys)) {
					n = 10 // so few are in that no counter is saturated
				}
				switch {
				case n < 8:
					m.add()
				case n < 14:
					m.remove()
				case n < 16 && multiset:
					m.merge(false)
				default:
					m.merge(true)
				}
				if step%50 == 0 || step == steps-1 {
					saturated = m.model.check(t, m.filter)
				}
			}
			if (saturated > 0) != (multiset && blocks == 1) {
				t.Errorf("%d blocks, multiset %v: %d saturated counters at the end", blocks, multiset, saturated)
			}
		}
	}
}

// What would lower a counter below 0 is refused, whatever the order and the number of calls.
func TestShort(t *testing.T) {
	f := newFilter(t, 3)
	if err := f.Change(AddAll).Add(Run{[]uint64{5, 9 << 60}, []uint64{2, Most}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Clone().Change(Remove).Add(Run{[]uint64{5}, []uint64{3}}); !errors.Is(err, ErrShort) {
		t.Errorf("a third copy of two: %v", err)
	}
	if err := f.Clone().Change(Remove).Add(Run{[]uint64{5, 9 << 60}, []uint64{2, 1 << 40}}); err != nil {
		t.Errorf("copies of a key whose counters are saturated: %v", err)
	}
}

// The list is the same however much of it is on disk and however it was divided.
func TestList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var hashes []uint64
	for range 300_000 {
		hashes = append(hashes, uint64(r.IntN(100_000))*0x9e3779b97f4a7c15)
	}
	for range 100_000 { // one key, over and over
		hashes = append(hashes, 42)
	}
	for _, multiset := range []bool{false, true} {
		counts := map[uint64]uint64{}
		for _, h := range hashes {
			if counts[h]++; !multiset {
				counts[h] = 1
			}
		}
		for _, most := range []uint64{0, 1, 1 << 20} {
			for _, unload := range []bool{false, true} {
				disk := spill.New(t.TempDir(), "test")
				l := NewList(multiset, disk, most)
				done := make(chan error)
				for part := range slices.Chunk(hashes, len(hashes)/3+1) {
					go func() {
						a := l.Adder()
						err := a.Add(part)
						if err == nil {
							err = a.Flush()
						}
						done <- err
					}()
				}
				for range 3 {
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				}
				added, distinct, err := l.Sort(context.Background(), 3)
				if err != nil || added != uint64(len(hashes)) || distinct != uint64(len(counts)) {
					t.Fatalf("%d of %d, %v; want %d of %d", distinct, added, err, len(counts), len(hashes))
				}
				if unload {
					if err := l.Unload(); err != nil || l.Held() != 0 {
						t.Fatalf("%d bytes held, %v", l.Held(), err)
					}
				}
				seen, last := 0, uint64(0)
				err = l.Each(context.Background(), func(r Run) error {
					for i, h := range r.Hashes {
						if seen > 0 && h <= last || counts[h] != r.copies(i) {
							t.Fatalf("hash %d after %d, %d times; want %d", h, last, r.copies(i), counts[h])
						}
						last = h
						seen++
					}
					return nil
				})
				if err != nil || seen != len(counts) {
					t.Fatalf("%d hashes, %v; want %d", seen, err, len(counts))
				}
				if err := disk.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Counters are added and subtracted as numbers are, up to saturation.
func TestCombineCounters(t *testing.T) {
	for a := range 16 {
		for b := range 16 {
			for _, other := range []int{0, 15} {
				for _, subtract := range []bool{false, true} {
					f := newFilter(t, 1)
					f.Counters()[5], f.Counters()[4] = byte(a|other<<4), byte(other|a<<4)
					in := make([]byte, BlockBytes)
					in[5], in[4] = byte(b), byte(b<<4)
					want, short := min(a+b, Most), false
					if subtract && a < Most {
						want, short = a-b, b > a
					} else if subtract {
						want = Most
					}
					err := f.Combine(0, in, subtract)
					if (err != nil) != short {
						t.Fatalf("%d, %d, %v: %v", a, b, subtract, err)
					}
					if c := f.Counters(); !short && (c[5] != byte(want|other<<4) || c[4] != byte(other|want<<4)) {
						t.Fatalf("%d, %d, %v: got %x %x, want %x", a, b, subtract, c[4], c[5], want)
					}
				}
			}
		}
	}
}

func TestAppendBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		counters, want := make([]byte, 2*BlockBytes), make([]byte, 2*BlockBytes/4)
		for range r.IntN(700) {
			c := r.IntN(512)
			counters[c/2] |= byte(1+r.IntN(15)) << (c % 2 * 4)
		}
		for c := range 512 {
			if counters[c/2]>>(c%2*4)&15 > 0 {
				want[c/8] |= 1 << (c % 8)
			}
		}
		if got := AppendBits(nil, counters); !slices.Equal(got, want) {
			t.Fatalf("bits %x, want %x", got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, p := range []bloom.Params{
		{Geometry: bloom.Split512, Hash: xxh, Blocks: 1}, params(MaxBlocks + 1), params(0), {},
	} {
		if _, err := New(p); err == nil {
			t.Errorf("%+v: want an error", p)
		}
	}
}
