package bloom

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	parquet "github.com/parquet-go/parquet-go/bloom"
	"github.com/zeebo/xxh3"
)

// go test ./internal/bloom -run Vectors -update rewrites testdata. It never changes once
// released, because filters on disk depend on it.
var update = flag.Bool("update", false, "write testdata anew")

// randoms returns n values from a fixed seed.
func randoms(seed uint64, n int) []uint64 {
	r := rand.New(rand.NewPCG(seed, 77))
	values := make([]uint64, n)
	for i := range values {
		values[i] = r.Uint64()
	}
	return values
}

// newFilter returns a filter of the given geometry.
func (g Geometry) newFilter(t testing.TB, blocks uint64, hashes ...uint64) *Filter {
	t.Helper()
	f, err := New(Params{Geometry: g, Hash: Hash{ID: XXH3}, Blocks: blocks})
	if err != nil {
		t.Fatal(err)
	}
	f.Add(hashes)
	return f
}

// each runs a test for each geometry.
func each(t *testing.T, test func(t *testing.T, g Geometry)) {
	for _, g := range Geometries() {
		t.Run(g.String(), func(t *testing.T) { test(t, g) })
	}
}

func bitsOf(f *Filter) []byte { return f.AppendBlocks(nil, 0, f.params.Blocks) }

// TestVectors: hashes and bits equal those in testdata, which never change.
func TestVectors(t *testing.T) {
	const path = "testdata/vectors.txt"
	var w bytes.Buffer
	fmt.Fprintln(&w, "# hash <id> <seed> <bytes> = <hash>; all in hex but the id and seed")
	for _, h := range []Hash{{XXH3, 0}, {XXH3, 1}, {XXH3, 0x9e3779b97f4a7c15}, {XXH64, 0}} {
		for _, key := range []string{"", "00", "0100000000000000", "ffffffffffffffff", "0807060504030201", "616263",
			"000102030405060708090a0b0c0d0e0f10", strings.Repeat("5a", 200), strings.Repeat("a5", 300)} {
			b, _ := hex.DecodeString(key)
			fmt.Fprintf(&w, "hash %d %d %s = %016x\n", h.ID, h.Seed, key, h.Sum(b))
		}
	}
	fmt.Fprintln(&w, "# filter <blocks> <hash>,... = <bits>")
	for _, g := range Geometries() {
		if g == Split512 {
			fmt.Fprintln(&w, "# the same, of geometry split-512")
		}
		for _, n := range []uint64{1, 2, 3, 5} {
			hashes := append(randoms(n, 4), 0, ^uint64(0))
			fmt.Fprintf(&w, "filter %d", n)
			for _, h := range hashes {
				fmt.Fprintf(&w, " %016x", h)
			}
			fmt.Fprintf(&w, " = %x\n", bitsOf(g.newFilter(t, n, hashes...)))
		}
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, w.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := bufio.NewScanner(&w)
	for i, line := range strings.Split(strings.TrimSpace(string(want)), "\n") {
		if !got.Scan() || got.Text() != line {
			t.Fatalf("line %d: got %q, want %q", i+1, got.Text(), line)
		}
	}
}

// The same insertions into parquet-go's filter give the same bits, and its hash
// equals ours.
func TestParquetOracle(t *testing.T) {
	hash := Hash{ID: XXH64}
	for _, n := range []uint64{1, 2, 3, 45, 720, 1440, 100_003} {
		values := randoms(n, 5000)
		hashes := make([]uint64, len(values))
		hash.Sum64(hashes, values)
		theirs := make(parquet.SplitBlockFilter, n)
		for i, v := range values {
			if h := (parquet.XXH64{}).Sum64Uint64(v); h != hashes[i] {
				t.Fatalf("hash of %d: %x, want %x", v, hashes[i], h)
			}
			theirs.Insert(hashes[i])
		}
		f, err := New(Params{Geometry: Split256, Hash: hash, Blocks: n})
		if err != nil {
			t.Fatal(err)
		}
		f.Add(hashes)
		if !bytes.Equal(bitsOf(f), theirs.Bytes()) {
			t.Fatalf("%d blocks: other bits than parquet-go's", n)
		}
		probes := append(randoms(n+1, 5000), hashes...)
		var want []uint32
		for i, h := range probes {
			if theirs.Check(h) {
				want = append(want, uint32(i))
			}
			if f.Contains(h) != theirs.Check(h) {
				t.Fatalf("Contains(%x) is not what parquet-go says", h)
			}
		}
		if got := f.Probe(probes, nil); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%d blocks: Probe finds others than parquet-go", n)
		}
	}
	for _, s := range []string{"", "a", "plain", strings.Repeat("long ", 100)} {
		if got, want := hash.Sum([]byte(s)), (parquet.XXH64{}).Sum64([]byte(s)); got != want {
			t.Errorf("hash of %q: %x, want %x", s, got, want)
		}
	}
}

func TestSum64(t *testing.T) {
	values := append(randoms(1, 500), 0, 1, 1<<32, 1<<63, ^uint64(0))
	seeds := append(randoms(2, 300), 0, 1, 1<<31, 1<<32, 1<<32-1, ^uint64(0))
	dst := make([]uint64, len(values))
	for _, seed := range seeds {
		h := Hash{XXH3, seed}
		h.Sum64(dst, values)
		for i, v := range values {
			b := []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 32), byte(v >> 40), byte(v >> 48), byte(v >> 56)}
			if want := xxh3.HashSeed(b, seed); dst[i] != want || h.Sum(b) != want {
				t.Fatalf("seed %x, value %x: Sum64 %x, Sum %x, want %x", seed, v, dst[i], h.Sum(b), want)
			}
		}
	}
	Hash{ID: XXH3}.Sum64(nil, nil)
}

func FuzzSum64(f *testing.F) {
	f.Add(uint64(0), uint64(0))
	f.Add(^uint64(0), uint64(1)<<32)
	f.Fuzz(func(t *testing.T, v, seed uint64) {
		b := []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 32), byte(v >> 40), byte(v >> 48), byte(v >> 56)}
		dst := []uint64{v}
		Hash{XXH3, seed}.Sum64(dst, dst)
		if dst[0] != xxh3.HashSeed(b, seed) {
			t.Fatalf("%x", dst[0])
		}
	})
}
