package filters

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/exact"
)

// Filters shared by the tests. All depend only on their arguments.

var xxh3Hash = bloom.Hash{ID: bloom.XXH3, Seed: 7}

// keysFrom returns n distinct odd-looking values.
func keysFrom(seed uint64, n int) []uint64 {
	r := rand.New(rand.NewPCG(seed, 1))
	values := make([]uint64, n)
	for i := range values {
		values[i] = r.Uint64()
	}
	return values
}

func bloomOf(t testing.TB, g bloom.Geometry, blocks uint64, values []uint64) *bloom.Filter {
	t.Helper()
	b, err := bloom.New(bloom.Params{Geometry: g, Hash: xxh3Hash, Blocks: blocks})
	if err != nil {
		t.Fatal(err)
	}
	hashes := make([]uint64, len(values))
	xxh3Hash.Sum64(hashes, values)
	b.Add(hashes)
	return b
}

func bloomFilter(t testing.TB, blocks uint64, values []uint64) *Filter {
	t.Helper()
	return splitFilter(t, bloom.Split256, blocks, values)
}

func splitFilter(t testing.TB, g bloom.Geometry, blocks uint64, values []uint64) *Filter {
	t.Helper()
	f := &Filter{facts: Facts{
		Key:        []KeyColumn{{Name: "user.id", Class: "integer"}},
		NormalForm: "1",
		Keys:       uint64(len(values)),
		FPRAsked:   0.01,
		BuildID:    sha256.Sum256([]byte("a build")),
	}}
	f.SetBloom(bloomOf(t, g, blocks, values))
	return f
}

func countingFilter(t testing.TB, blocks uint64, multiset bool, values []uint64) *Filter {
	t.Helper()
	f := bloomFilter(t, blocks, values)
	c, err := counting.New(f.facts.Params)
	if err != nil {
		t.Fatal(err)
	}
	hashes := make([]uint64, len(values))
	xxh3Hash.Sum64(hashes, values)
	slices.Sort(hashes)
	if err := c.Change(counting.AddAll).Add(counting.Run{Hashes: hashes}); err != nil {
		t.Fatal(err)
	}
	if err := f.SetCounters(c, multiset); err != nil {
		t.Fatal(err)
	}
	return f
}

func exactFilter(values []uint64, signed bool) *Filter {
	f := &Filter{facts: Facts{
		Key:        []KeyColumn{{Name: "id", Class: "integer"}},
		NormalForm: "1",
		Params:     bloom.Params{Geometry: bloom.Split256, Hash: xxh3Hash},
		Keys:       uint64(len(values)),
		FPRAsked:   0.001,
		BuildID:    sha256.Sum256([]byte("another build")),
	}}
	s := exact.New()
	s.Add(values, signed)
	f.SetExact(s)
	return f
}

func intBound(v int64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(v))
	if v < 0 {
		return append(b, 1)
	}
	return append(b, 0)
}

func uintBound(v uint64) []byte { return append(binary.LittleEndian.AppendUint64(nil, v), 0) }

// dense returns n values from lo on, with gaps, runs and a full container.
func dense(lo int64, n int) []uint64 {
	r := rand.New(rand.NewPCG(3, 9))
	values := make([]uint64, n)
	for i := range values {
		values[i] = uint64(lo + int64(i)*4 + r.Int64N(4))
	}
	return values
}

func encode(t testing.TB, f *Filter, opts Options) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := Encode(&b, f, opts)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(b.Len()) {
		t.Fatalf("Encode says %d bytes, wrote %d", n, b.Len())
	}
	return b.Bytes()
}

func decode(t testing.TB, b []byte) *Filter {
	t.Helper()
	f, err := Decode(bytes.NewReader(b), int64(len(b)), "test.bjf", Limits{Counters: true})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// describe returns the contents of a filter as text.
func describe(t testing.TB, f *Filter) string {
	t.Helper()
	var w strings.Builder
	fmt.Fprintf(&w, "kind %s\nwant %s\nsealed %t\nnormal form %q\n", f.Kind(), f.facts.Want, f.Sealed(), f.Normal())
	for _, k := range f.facts.Key {
		fmt.Fprintf(&w, "key %q class %s min %s max %s nan %t\n", k.Name, k.Class, orNone(k.Min), orNone(k.Max), k.HasNaN)
	}
	fmt.Fprintf(&w, "geometry %d\nhash %d seed %d\nblocks %d\n", f.facts.Params.Geometry, f.facts.Params.Hash.ID, f.facts.Params.Hash.Seed, f.facts.Params.Blocks)
	fmt.Fprintf(&w, "keys %d\nfpr asked %v\nbuild %x\n", f.facts.Keys, f.facts.FPRAsked, f.facts.BuildID)
	if f.facts.Partial != nil {
		fmt.Fprintf(&w, "shards %v of %d\n", f.facts.Partial.Held, f.facts.Partial.Of)
	}
	for _, d := range f.facts.Parents {
		fmt.Fprintf(&w, "parent %x\n", d)
	}
	if c := f.facts.Counting; c != nil {
		counters := f.Counters().Counters()
		fmt.Fprintf(&w, "multiset %t\nsaturated %d\ncounters %d sha256 %x\n", c.Multiset, c.Saturated, len(counters), sha256.Sum256(counters))
	}
	if f.facts.Capacity != (Capacity{}) {
		fmt.Fprintf(&w, "capacity %d in %d blocks\n", f.facts.Capacity.Keys, f.facts.Capacity.Blocks)
	}
	if e := f.facts.Exceptions; e != nil {
		fmt.Fprintf(&w, "exceptions against %d of %x:", e.Known, e.Digest)
		for values := range e.Hashes.Values {
			fmt.Fprintf(&w, " %x", values)
		}
		fmt.Fprintln(&w)
	}
	if f.facts.Registers != nil {
		fmt.Fprintf(&w, "registers %d sha256 %x\n", len(f.facts.Registers), sha256.Sum256(f.facts.Registers))
	}
	d, err := f.Digest()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&w, "digest %x\n", d)
	if b := f.Bloom(); b != nil {
		bits := b.AppendBlocks(nil, 0, b.Params().Blocks)
		fmt.Fprintf(&w, "bits %d sha256 %x\n", len(bits), sha256.Sum256(bits))
	}
	if s := f.Exact(); s != nil {
		var list strings.Builder
		for values, signed := range s.Values {
			for _, v := range values {
				if signed {
					fmt.Fprintf(&list, " %d", int64(v))
				} else {
					fmt.Fprintf(&list, " %d", v)
				}
			}
		}
		fmt.Fprintf(&w, "members %d in decimal, each after a space, sha256 %x\n", s.Len(), sha256.Sum256([]byte(list.String())))
		if s.Len() < 300 {
			fmt.Fprintf(&w, "members%s\n", list.String())
		}
	}
	return w.String()
}

func orNone(b []byte) string {
	if b == nil {
		return "none"
	}
	return fmt.Sprintf("%x.", b)
}
