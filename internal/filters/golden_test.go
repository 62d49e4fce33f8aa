package filters

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
)

// go test ./internal/filters -run 'Golden|Vectors' -update rewrites the files. Golden files of
// a released version never change.
var update = flag.Bool("update", false, "write testdata anew")

const goldenDir = "testdata/golden"

type golden struct {
	name   string
	opts   Options
	filter func(t testing.TB) *Filter
}

func goldens() []golden {
	return []golden{
		{"bloom-sealed", Options{}, func(t testing.TB) *Filter {
			f := bloomFilter(t, 45, keysFrom(1, 1000))
			f.facts.Key[0].Min, f.facts.Key[0].Max = intBound(math.MinInt64), uintBound(math.MaxUint64)
			return f
		}},
		{"bloom-partial", Options{}, func(t testing.TB) *Filter {
			f := bloomFilter(t, 720, keysFrom(2, 60)) // sparse: zstd pays
			f.facts.Want = KindBloom
			f.facts.Partial = &Partial{Of: 19, Held: []uint32{0, 7, 8, 18}}
			return f
		}},
		{"bloom-uncompressed", Options{Uncompressed: true}, func(t testing.TB) *Filter {
			return bloomFilter(t, 240, keysFrom(3, 20))
		}},
		{"bloom-xxh64", Options{}, func(t testing.TB) *Filter {
			f := bloomFilter(t, 1, nil)
			f.SetBloom(parquetBloom(t))
			f.facts.Key[0] = KeyColumn{Class: "bytes", Min: []byte{}, Max: []byte("z")}
			f.facts.BuildID = [32]byte{}
			return f
		}},
		{"exact-sealed", Options{}, func(t testing.TB) *Filter {
			f := exactFilter([]uint64{1, 5, 1 << 40, math.MaxUint64, math.MaxInt64 + 1}, false)
			negative := int64(-1)
			f.Exact().Add([]uint64{uint64(negative), 1 << 63, 42}, true)
			f.Exact().Add(dense(-500, 250), true)
			f.facts.Key[0].Min, f.facts.Key[0].Max = intBound(math.MinInt64), uintBound(math.MaxUint64)
			f.facts.Keys = 300
			return f
		}},
		{"exact-partial", Options{}, func(t testing.TB) *Filter {
			f := exactFilter(dense(1_000_000, 700), false)
			f.facts.Want = KindExact
			f.facts.Params.Blocks = 1440
			f.facts.Partial = &Partial{Of: 2, Held: []uint32{1}}
			return f
		}},
		{"exact-runs", Options{}, func(t testing.TB) *Filter {
			// Blocks of consecutive members, among others.
			var values []uint64
			for i := range uint64(5000) {
				values = append(values, 1<<16+i, 2<<16+i*13)
			}
			for i := range uint64(200_000) {
				values = append(values, 3<<16+i)
			}
			return exactFilter(append(values, 3, 5, 8), false)
		}},
		{"exact-gaps", Options{}, func(t testing.TB) *Filter {
			// Gaps of every length up to 60, and some that need an escape code.
			var values []uint64
			v := uint64(7)
			for i := range uint64(5000) {
				v += 1 + i*i%61
				if i%1000 == 999 {
					v += 1 << (i / 100)
				}
				values = append(values, v)
			}
			f := exactFilter(values, false)
			f.Exact().Add(dense(-300, 40), true)
			return f
		}},
		{"composite", Options{}, composite},
		{"bloom-literals", Options{}, func(t testing.TB) *Filter {
			return bloomFilter(t, 144, keysFrom(6, 1400)) // a quarter full: Huffman coding pays
		}},
		{"bloom512-sealed", Options{}, func(t testing.TB) *Filter {
			f := splitFilter(t, bloom.Split512, 24, keysFrom(1, 1000))
			f.facts.Key[0].Min, f.facts.Key[0].Max = intBound(math.MinInt64), uintBound(math.MaxUint64)
			return f
		}},
		{"bloom512-partial", Options{}, func(t testing.TB) *Filter {
			f := splitFilter(t, bloom.Split512, 720, keysFrom(2, 60))
			f.facts.Partial = &Partial{Of: 19, Held: []uint32{0, 7, 8, 18}}
			return f
		}},
		{"bloom512-literals", Options{}, func(t testing.TB) *Filter {
			return splitFilter(t, bloom.Split512, 72, keysFrom(6, 1400))
		}},
		{"bloom512-uncompressed", Options{Uncompressed: true}, func(t testing.TB) *Filter {
			return splitFilter(t, bloom.Split512, 120, keysFrom(3, 20))
		}},
		{"bloom-capacity", Options{}, func(t testing.TB) *Filter {
			f := bloomFilter(t, 720, keysFrom(9, 40)) // room for 900
			f.facts.Capacity = Capacity{Keys: 900, Blocks: 720}
			return f
		}},
		{"exact-capacity", Options{}, func(t testing.TB) *Filter {
			f := exactFilter(dense(-70, 90), true)
			f.facts.Capacity = Capacity{Keys: 1 << 40, Blocks: 1 << 32}
			return f
		}},
		{"exact512-partial", Options{}, func(t testing.TB) *Filter {
			f := exactFilter(dense(1_000_000, 70), false)
			f.facts.Params = bloom.Params{Geometry: bloom.Split512, Hash: xxh3Hash, Blocks: 1440}
			f.facts.Partial = &Partial{Of: 2, Held: []uint32{1}}
			return f
		}},
		{"counting-set", Options{}, func(t testing.TB) *Filter {
			f := countingFilter(t, 45, false, keysFrom(1, 1000))
			f.facts.Capacity = Capacity{Keys: 1100, Blocks: 45}
			return f
		}},
		{"counting-partial", Options{}, func(t testing.TB) *Filter {
			f := countingFilter(t, 9, true, append(keysFrom(1, 100), slices.Repeat([]uint64{7}, 20)...))
			f.facts.Partial = &Partial{Of: 3, Held: []uint32{0, 2}}
			return f
		}},
		{"counting-uncompressed", Options{Uncompressed: true}, func(t testing.TB) *Filter {
			return countingFilter(t, 33, true, keysFrom(3, 20))
		}},
		{"rule-unicode", Options{}, func(t testing.TB) *Filter {
			return ruled(t, "trim,lower", "bytes", "anna@example.com", "müller\u200b", "i\xff")
		}},
		{"rule-lower", Options{}, func(t testing.TB) *Filter {
			return ruled(t, "lower,ascii-only", "bytes", " anna@example.com", "müller\t", "Ärger")
		}},
		{"rule-uuid", Options{}, func(t testing.TB) *Filter {
			id := []byte{0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0}
			f := ruled(t, "trim,lower,uuid,ascii-only", "fixed[16]", string(id))
			f.facts.Key[0].Min, f.facts.Key[0].Max = id, id
			f.facts.Partial = &Partial{Of: 3, Held: []uint32{1}}
			return f
		}},
		{"rule-url", Options{}, func(t testing.TB) *Filter {
			return ruled(t, "trim,url,ascii-only", "bytes", "http://example.com/a%2Fb", "https://xn--bcher-kva.de/?q", "no URL")
		}},
		{"rule-url-host", Options{}, func(t testing.TB) *Filter {
			return ruled(t, "url-host", "bytes", "example.com", "[::1]")
		}},
		{"exceptions", Options{}, func(t testing.TB) *Filter {
			f := bloomFilter(t, 45, keysFrom(1, 1000))
			f.facts.Exceptions = &Exceptions{Hashes: hashSet(1, 1<<40, 1<<63, math.MaxUint64), Known: 30_000, Digest: [32]byte{1, 31: 2}}
			return f
		}},
		{"exceptions-partial", Options{}, func(t testing.TB) *Filter {
			f := bloomFilter(t, 720, keysFrom(2, 60))
			f.facts.Partial = &Partial{Of: 2, Held: []uint32{1}}
			f.facts.Exceptions = &Exceptions{Digest: [32]byte{7}}
			return f
		}},
	}
}

// hashSet returns a set of hashes.
func hashSet(hashes ...uint64) *exact.Set {
	s := exact.New()
	s.Add(hashes, false)
	return s
}

// ruled returns a filter of keys that are already normalized by a rule.
func ruled(t testing.TB, rule, class string, keys ...string) *Filter {
	f := bloomFilter(t, 1, nil)
	f.facts.Rule, f.facts.Keys = rule, uint64(len(keys))
	f.facts.Key[0] = KeyColumn{Name: "user", Class: class}
	for _, k := range keys {
		f.Bloom().Add([]uint64{xxh3Hash.Sum([]byte(k))})
	}
	return f
}

// composite has a column of every class and every optional section.
func composite(t testing.TB) *Filter {
	f := bloomFilter(t, 30, keysFrom(5, 500))
	le := binary.LittleEndian
	f.facts.Key = []KeyColumn{
		{Name: "a", Class: "integer", Min: intBound(-3), Max: intBound(9)},
		{Name: "b.c", Class: "bytes", Min: []byte("Ä"), Max: []byte("zz\x00\xff")},
		{Name: `"d.e"`, Class: "fixed[16]", Min: make([]byte, 16), Max: bytes.Repeat([]byte{0xee}, 16)},
		{Name: "", Class: "boolean", Min: []byte{0}, Max: []byte{1}},
		{Name: "f", Class: "date", Min: le.AppendUint64(nil, 0), Max: le.AppendUint64(nil, 20000)},
		{Name: "g", Class: "instant", Min: le.AppendUint32(le.AppendUint64(nil, 0), 1), Max: le.AppendUint32(le.AppendUint64(nil, 1), 999999999)},
		{Name: "h", Class: "timestamp"},
		{Name: "i", Class: "decimal", Min: []byte{0, 0, 0, 0, 0}, Max: []byte{1, 0, 0, 0, 15}},
		{Name: "j", Class: "float", Min: make([]byte, 8), Max: le.AppendUint64(nil, math.Float64bits(1.5)), HasNaN: true},
		{Name: "k", Class: "null"},
	}
	f.facts.NormalForm = "1"
	f.facts.Parents = [][32]byte{sha256.Sum256([]byte("mother")), sha256.Sum256([]byte("father"))}
	f.facts.Registers = make([]byte, RegisterCount)
	for i := range f.facts.Registers {
		f.facts.Registers[i] = byte(i % (MaxRegister + 1))
	}
	return f
}

// unknownSection returns bloom-sealed with a section that no reader knows, as a
// later version might write it.
func unknownSection(t testing.TB) []byte {
	d := dismantle(t, encode(t, goldens()[0].filter(t), goldens()[0].opts))
	d.version = 3
	d.sections = append(d.sections, piece{id: 4000, body: []byte("from later")})
	return d.assemble()
}

func TestGolden(t *testing.T) {
	for _, g := range goldens() {
		t.Run(g.name, func(t *testing.T) {
			want := encode(t, g.filter(t), g.opts)
			file := golden1(t, g.name, want, describe(t, g.filter(t)))
			f := decode(t, file)
			if again := encode(t, f, g.opts); !bytes.Equal(again, file) {
				t.Error("decoding and encoding changed the file")
			}
		})
	}
	t.Run("unknown-section", func(t *testing.T) {
		sealed := goldens()[0]
		file := golden1(t, "unknown-section", unknownSection(t), describe(t, sealed.filter(t)))
		h, err := DecodeHeader(bytes.NewReader(file), int64(len(file)), "x")
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Skipped) != 1 || h.Skipped[0] != 4000 || h.Version != 3 {
			t.Errorf("skipped %v of a version %d file", h.Skipped, h.Version)
		}
		// A writer leaves out sections that it does not know.
		if again := encode(t, decode(t, file), sealed.opts); !bytes.Equal(again, encode(t, sealed.filter(t), sealed.opts)) {
			t.Error("not the file without the unknown section")
		}
	})
}

// golden1 returns the golden file with that name, after comparing it with want and
// its content with text.
func golden1(t *testing.T, name string, want []byte, text string) []byte {
	t.Helper()
	path := filepath.Join(goldenDir, name)
	if *update {
		writeFile(t, path+".bjf", want)
		writeFile(t, path+".txt", []byte(text))
	}
	file, err := os.ReadFile(path + ".bjf")
	if err != nil {
		t.Fatal(err)
	}
	wantText, err := os.ReadFile(path + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(t, decode(t, file)); got != string(wantText) {
		t.Errorf("decoded to\n%s\nwant\n%s", got, wantText)
	}
	if !bytes.Equal(file, want) {
		t.Error("the file would be written otherwise today")
	}
	return file
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
