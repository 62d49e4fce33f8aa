package filters

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/exact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refuse decodes b, also in place if possible, and expects an error.
func refuse(t *testing.T, what string, b []byte) {
	f, err := decodeBoth(t, b, Limits{MaxBytes: 1 << 24})
	if f != nil || err == nil {
		t.Errorf("%s: accepted", what)
	} else if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("%s: %v", what, err)
	}
}

// damage tries every flipped bit (unless all cases run, some bits of each byte), every
// truncation (with -short, of some bytes) and a trailing byte.
func damage(t *testing.T, file []byte) { damageBits(t, file, cases.Count(1, 4, 8)) }

// damageBits is like damage, but flips only the given number of bits per byte. Which
// bits it flips varies from byte to byte.
func damageBits(t *testing.T, file []byte, bits int) {
	decode(t, file)
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	step := workers * cases.Count(3, 1, 1)
	for w := range workers {
		wg.Go(func() {
			b := bytes.Clone(file)
			for i := w; i < len(file); i += step {
				for n := range bits {
					bit := (i/workers + n) % 8
					b[i] ^= 1 << bit
					refuse(t, fmt.Sprintf("bit %d of byte %d flipped", bit, i), b)
					b[i] ^= 1 << bit
				}
				refuse(t, fmt.Sprintf("cut to %d bytes", i), b[:i])
			}
		})
	}
	wg.Wait()
	for x := range 256 {
		refuse(t, "a trailing byte", append(bytes.Clone(file), byte(x)))
	}
}

// The filter has the default rate for its number of keys.
func TestDamageBloom(t *testing.T) {
	const keys = 700
	for _, g := range bloom.Geometries() {
		t.Run(g.String(), func(t *testing.T) {
			blocks := g.BlocksFor(keys, bloom.DefaultFPR(keys))
			damage(t, encode(t, splitFilter(t, g, blocks, keysFrom(4, keys)), Options{}))
		})
	}
}

func TestDamageExact(t *testing.T) {
	damage(t, encode(t, exactFilter(dense(-4000, 2000), true), Options{}))
}

func TestDamageGoldens(t *testing.T) {
	for _, g := range goldens() {
		t.Run(g.name, func(t *testing.T) {
			f := g.filter(t)
			f.facts.Registers = nil // 131,072 more bits of the same kind
			// Raw chunks are covered by the two tests above.
			if file := encode(t, f, g.opts); len(file) < pageBytes || g.name == "composite" || g.name == "rule-uuid" {
				damageBits(t, file, cases.Count(1, 1, 8))
			}
		})
	}
	t.Run("unknown-section", func(t *testing.T) { damage(t, unknownSection(t)) })
}

// randomFilter returns any valid filter.
func randomFilter(t testing.TB, r *rand.Rand) *Filter {
	values := keysFrom(r.Uint64(), r.IntN(3000))
	var f *Filter
	switch r.IntN(3) {
	case 0:
		f = splitFilter(t, bloom.Geometries()[r.IntN(2)], 1+r.Uint64N(1<<r.IntN(18)), values)
	case 1:
		f = countingFilter(t, 1+r.Uint64N(1<<r.IntN(16)), r.IntN(2) == 0, values)
	default:
		shift := r.IntN(64)
		for i := range values {
			values[i] >>= shift
		}
		f = exactFilter(values, r.IntN(2) == 0)
	}
	f.facts.FPRAsked = r.Float64()/2 + 1e-9
	if f.facts.Counting == nil {
		f.facts.Want = Kind(r.IntN(3))
	}
	f.facts.Keys = r.Uint64()
	if r.IntN(2) == 0 {
		f.facts.Key[0].Min, f.facts.Key[0].Max = intBound(-r.Int64()), intBound(r.Int64())
	}
	if r.IntN(2) == 0 && (f.facts.Counting == nil || f.facts.Counting.Multiset) {
		f.facts.Partial = &Partial{Of: 1 + r.Uint32N(300)}
		for i := range f.facts.Partial.Of {
			if r.IntN(3) == 0 || i == f.facts.Partial.Of-1 {
				f.facts.Partial.Held = append(f.facts.Partial.Held, i)
			}
		}
		if f.Kind() == KindExact {
			f.facts.Params.Blocks = 1 + r.Uint64N(1<<32)
		}
		if r.IntN(2) == 0 {
			f.facts.Partial.Division[r.IntN(32)] = 1
		}
	}
	if r.IntN(4) == 0 {
		f.facts.Registers = make([]byte, RegisterCount)
		for i := range f.facts.Registers {
			f.facts.Registers[i] = byte(r.IntN(MaxRegister + 1))
		}
	}
	if r.IntN(3) == 0 {
		f.facts.Capacity = Capacity{Keys: 1 + r.Uint64N(1<<40), Blocks: f.facts.Params.Blocks}
		if f.facts.Params.Blocks == 0 {
			f.facts.Capacity.Blocks = 1 + r.Uint64N(1<<32)
		}
	}
	if f.Kind() == KindBloom && f.facts.Key[0].Min == nil && r.IntN(2) == 0 {
		rules := []string{"trim", "lower", "trim,lower", "uuid", "trim,uuid", "lower,uuid", "trim,lower,uuid", "url", "lower,url-host", "lower,ascii-only", "trim,uuid,ascii-only"}
		f.facts.Rule, f.facts.Key[0].Class = rules[r.IntN(len(rules))], "bytes"
		if strings.HasSuffix(f.facts.Rule, "uuid") {
			f.facts.Key[0].Class = "fixed[16]"
		}
	}
	if f.Kind() == KindBloom && r.IntN(3) == 0 {
		f.facts.Exceptions = &Exceptions{Hashes: hashSet(r.Uint64(), r.Uint64()), Digest: [32]byte{1}, Known: r.Uint64()}
	}
	for range r.IntN(3) {
		f.facts.Parents = append(f.facts.Parents, [32]byte{byte(r.Uint32()), 31: byte(r.Uint32())})
	}
	return f
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 20))
	for range 40 {
		f := randomFilter(t, r)
		small, flat := encode(t, f, Options{}), encode(t, f, Options{Uncompressed: true})
		want := describe(t, f)
		for _, file := range [][]byte{small, flat} {
			g := decode(t, file)
			if got := describe(t, g); got != want {
				t.Fatalf("decoded\n%s\nwant\n%s", got, want)
			}
			if !bytes.Equal(encode(t, g, Options{}), small) || !bytes.Equal(encode(t, g, Options{Uncompressed: true}), flat) {
				t.Fatal("decoding and encoding changed the file")
			}
			checkHeader(t, f, file)
		}
	}
}

// checkHeader compares the information in the header alone with the filter.
func checkHeader(t *testing.T, f *Filter, file []byte) {
	h, err := DecodeHeader(bytes.NewReader(file), int64(len(file)), "f")
	if err != nil {
		t.Fatal(err)
	}
	want, err := f.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if h.Digest() != want {
		t.Error("the digest of the header is not that of the filter")
	}
	if h.Filter.Kind() != f.Kind() || h.Filter.Bloom() != nil || h.Filter.Exact() != nil || h.Filter.FPR() == h.Filter.FPR() {
		t.Error("a header's filter has a payload")
	}
	if err := h.Verify(); err != nil {
		t.Error(err)
	}
	if h.Contiguous {
		if h.PayloadOffset%pageBytes != 0 || h.StoredBytes != h.PayloadBytes {
			t.Errorf("contiguous payload of %d bytes at %d, %d stored", h.PayloadBytes, h.PayloadOffset, h.StoredBytes)
		}
		if b := f.Bloom(); b != nil && f.Kind() == KindBloom {
			bits := b.AppendBlocks(nil, 0, b.Params().Blocks)
			if !bytes.Equal(bits, file[h.PayloadOffset:][:len(bits)]) {
				t.Error("the payload cannot be mapped from where the header says")
			}
		}
	}
}

// bigFilter returns a filter whose payload has many chunks, some of which compress:
// dense and sparse parts alternate.
func bigFilter(t testing.TB) *Filter {
	const blocks = 5*chunkBytes/32 + 77
	f := bloomFilter(t, blocks, nil)
	r := rand.New(rand.NewPCG(5, 6))
	hashes := make([]uint64, 0, 1<<16)
	for range 900_000 {
		h := r.Uint64()
		if h>>62 != 1 { // a quarter stays empty
			hashes = append(hashes, h)
		}
		if len(hashes) == cap(hashes) {
			f.Bloom().Add(hashes)
			hashes = hashes[:0]
		}
	}
	f.Bloom().Add(hashes)
	return f
}

func TestManyChunks(t *testing.T) {
	f := bigFilter(t)
	want := describe(t, f)
	small, flat := encode(t, f, Options{}), encode(t, f, Options{Uncompressed: true})
	if len(small) >= len(flat)*9/10 {
		t.Errorf("%d bytes compressed, %d not", len(small), len(flat))
	}
	for _, file := range [][]byte{small, flat} {
		if got := describe(t, decode(t, file)); got != want {
			t.Errorf("decoded\n%s\nwant\n%s", got, want)
		}
		checkHeader(t, f, file)
	}
	// A flipped bit in each chunk and in the padding between them.
	h, err := DecodeHeader(bytes.NewReader(small), int64(len(small)), "f")
	if err != nil {
		t.Fatal(err)
	}
	codings := map[byte]int{}
	end := int64(len(h.head))
	for _, c := range h.chunks {
		codings[c.coding]++
		for _, at := range []int64{c.start, (c.start + c.end) / 2, c.end - 1, end} {
			small[at] ^= 0x10
			refuse(t, fmt.Sprintf("byte %d", at), small)
			small[at] ^= 0x10
		}
		end = c.end
	}
	if codings[codingRaw] == 0 || codings[codingZstd] == 0 {
		t.Errorf("chunks by coding: %v, want both", codings)
	}
}

func TestSameBytesOnAnyMachine(t *testing.T) {
	f := bigFilter(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := encode(t, f, Options{})
	for _, n := range []int{2, 3, 7}[cases.Count(2, 0, 0):] {
		runtime.GOMAXPROCS(n)
		if !bytes.Equal(encode(t, f, Options{}), one) {
			t.Errorf("%d processors write another file", n)
		}
		if describe(t, decode(t, one)) != describe(t, f) {
			t.Errorf("%d processors read another filter", n)
		}
	}
}

// hugeClaims returns a valid sparse file of a filter with n empty blocks: every
// chunk compresses to a few bytes.
func hugeClaims(t testing.TB, n uint64) []byte {
	t.Helper()
	chunk := encode(t, bloomFilter(t, chunkBytes/bloom.Split256.BlockBytes(), nil), Options{})
	d := dismantle(t, chunk)
	entry := d.table.body
	stored := d.payload[:cursorAt(entry)]
	count := int(n * bloom.Split256.BlockBytes() / chunkBytes)
	d.payload = bytes.Repeat(stored, count)
	d.payload = append(d.payload, make([]byte, -len(d.payload)&7)...)
	d.table.body = bytes.Repeat(entry, count)
	params, payload := d.section(secParams).body, d.section(secPayload).body
	for i := range 8 {
		params[16+i] = byte(n >> (8 * i))
		payload[8+i] = byte(n * bloom.Split256.BlockBytes() >> (8 * i))
	}
	return d.assemble()
}

func cursorAt(entry []byte) uint32 { return (&cursor.Cursor{Rest: entry}).U32() }

func TestLimits(t *testing.T) {
	file := hugeClaims(t, 1<<31) // 64 GiB in a few MB
	size := int64(len(file))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(bytes.NewReader(file), size, "huge.bjf", Limits{MaxBytes: 1 << 30})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "huge.bjf") {
		t.Errorf("error %v, want ErrLimit", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes allocated for a file that was refused", n)
	}
	// One block fewer, or a limit of exactly that size, is accepted.
	f := bloomFilter(t, 100, keysFrom(1, 10))
	file = encode(t, f, Options{})
	for limit, want := range map[uint64]error{3199: ErrLimit, 3200: nil} {
		if _, err := Decode(bytes.NewReader(file), int64(len(file)), "f", Limits{MaxBytes: limit}); !errors.Is(err, want) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	// An exact set takes more memory than its bytes.
	sparse := encode(t, exactFilter(keysFrom(3, 1000), false), Options{})
	h, err := DecodeHeader(bytes.NewReader(sparse), int64(len(sparse)), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Load(Limits{MaxBytes: h.PayloadBytes * 2}); !errors.Is(err, ErrLimit) {
		t.Errorf("sparse set: %v", err)
	}
}

// The vectors that claim large sizes are refused without allocating that much.
func TestClaimsCostNothing(t *testing.T) {
	for _, v := range vectors() {
		if !strings.HasPrefix(v.name, "blocks-2-to") && !strings.HasPrefix(v.name, "exact-part-2") && v.name != "exact-count-too-large" && v.name != "header-size-beyond-file" {
			continue
		}
		b := v.file(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Decode(bytes.NewReader(b), int64(len(b)), "f", Limits{})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<17 {
			t.Errorf("%s: %d bytes allocated", v.name, n)
		}
	}
}

// failing fails to read or write past n bytes.
type failing struct {
	b []byte
	n int64
}

var errDisk = errors.New("disk on fire")

func (f failing) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > f.n {
		return 0, errDisk
	}
	return bytes.NewReader(f.b).ReadAt(p, at)
}

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= int64(len(p)); f.n < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestInputOutputErrors(t *testing.T) {
	f := bloomFilter(t, 300, keysFrom(1, 2000))
	file := encode(t, f, Options{})
	for _, n := range []int64{0, 30, 5000} {
		_, err := Decode(failing{file, n}, int64(len(file)), "name", Limits{})
		if !errors.Is(err, errDisk) || errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), "name") {
			t.Errorf("reading fails after %d bytes: %v", n, err)
		}
	}
	for _, n := range []int64{0, 100, 5000, int64(len(file)) - 1} {
		if _, err := Encode(&failing{n: n}, f, Options{}); !errors.Is(err, errDisk) {
			t.Errorf("writing fails after %d bytes: %v", n, err)
		}
	}
	// The file shrank after its size was read.
	_, err := Decode(bytes.NewReader(file[:len(file)-10]), int64(len(file)), "name", Limits{})
	if !errors.Is(err, fault.ErrCorrupt) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("file shrank: %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, spoil := range map[string]func(f *Filter){
		"no payload":        func(f *Filter) { f.held = nil },
		"no key":            func(f *Filter) { f.facts.Key = nil },
		"no normal form":    func(f *Filter) { f.facts.NormalForm = "" },
		"rule unknown":      func(f *Filter) { f.facts.Key[0].Class, f.facts.Rule = "bytes", "upper" },
		"rule not in order": func(f *Filter) { f.facts.Key[0].Class, f.facts.Rule = "bytes", "lower,trim" },
		"rule of nothing":   func(f *Filter) { f.facts.Key[0].Class, f.facts.Rule = "bytes", "ascii-only" },
		"rule twice":        func(f *Filter) { f.facts.Key[0].Class, f.facts.Rule = "bytes", "trim,trim" },
		"rule of integers":  func(f *Filter) { f.facts.Rule = "trim" },
		"rule, UUIDs, text": func(f *Filter) {
			f.facts.Key, f.facts.Rule = []KeyColumn{{Class: "fixed[16]"}, {Class: "bytes"}}, "uuid"
		},
		"long name":         func(f *Filter) { f.facts.Key[0].Name = strings.Repeat("x", 1<<16) },
		"class":             func(f *Filter) { f.facts.Key[0].Class = "fixed[07]" },
		"one bound":         func(f *Filter) { f.facts.Key[0].Min = intBound(1) },
		"bound of 8 bytes":  func(f *Filter) { f.facts.Key[0].Min, f.facts.Key[0].Max = make([]byte, 8), make([]byte, 8) },
		"bound sign":        func(f *Filter) { f.facts.Key[0].Min, f.facts.Key[0].Max = append(make([]byte, 8), 1), intBound(1) },
		"NaN":               func(f *Filter) { f.facts.Key[0].HasNaN = true },
		"fpr":               func(f *Filter) { f.facts.FPRAsked = 1 },
		"want":              func(f *Filter) { f.facts.Want = 3 },
		"params":            func(f *Filter) { f.facts.Params.Blocks++ },
		"hash":              func(f *Filter) { f.facts.Params.Hash.Seed++ },
		"registers":         func(f *Filter) { f.facts.Registers = []byte{} },
		"unsorted shards":   func(f *Filter) { f.facts.Partial = &Partial{Of: 5, Held: []uint32{2, 1}} },
		"a shard twice":     func(f *Filter) { f.facts.Partial = &Partial{Of: 5, Held: []uint32{2, 2}} },
		"shard beyond":      func(f *Filter) { f.facts.Partial = &Partial{Of: 5, Held: []uint32{5}} },
		"no shard":          func(f *Filter) { f.facts.Partial = &Partial{Of: 5} },
		"too many shards":   func(f *Filter) { f.facts.Partial = &Partial{Of: MaxShards + 1, Held: []uint32{0}} },
		"partial, no build": func(f *Filter) { f.facts.Partial = &Partial{Of: 5, Held: []uint32{1}}; f.facts.BuildID = [32]byte{} },
		"too many parents":  func(f *Filter) { f.facts.Parents = make([][32]byte, maxHeader/32) },
		"exact of text":     func(f *Filter) { f.SetExact(exact.New()); f.facts.Params.Blocks = 0; f.facts.Key[0].Class = "bytes" },
		"exact with blocks": func(f *Filter) { f.SetExact(exact.New()) },
		"exact part, blocks": func(f *Filter) {
			f.SetExact(exact.New())
			f.facts.Params.Blocks = 0
			f.facts.Partial = &Partial{Of: 1, Held: []uint32{0}}
		},
	} {
		f := bloomFilter(t, 10, nil)
		spoil(f)
		n, err := Encode(io.Discard, f, Options{})
		if !errors.Is(err, ErrInvalid) || n != 0 {
			t.Errorf("%s: %d bytes, error %v", name, n, err)
		}
		if _, err := f.Digest(); err == nil && name != "too many parents" {
			t.Errorf("%s: has a digest", name)
		}
	}
}

func TestDigestTellsApart(t *testing.T) {
	seen := map[[32]byte]string{}
	for name, change := range map[string]func(f *Filter){
		"same":   func(f *Filter) {},
		"name":   func(f *Filter) { f.facts.Key[0].Name = "x" },
		"class":  func(f *Filter) { f.facts.Key[0].Class = "bytes" },
		"normal": func(f *Filter) { f.facts.NormalForm = "2" },
		"bits":   func(f *Filter) { f.Bloom().Add([]uint64{1}) },
		"keys":   func(f *Filter) { f.facts.Keys++ },
		"fpr":    func(f *Filter) { f.facts.FPRAsked /= 2 },
		"want":   func(f *Filter) { f.facts.Want = KindBloom },
		"build":  func(f *Filter) { f.facts.BuildID[0]++ },
		"shards": func(f *Filter) { f.facts.Partial = &Partial{Of: 1, Held: []uint32{0}} },
		"pieces": func(f *Filter) { f.facts.Partial = &Partial{Of: 1, Held: []uint32{0}, Division: [32]byte{1}} },
		"parent": func(f *Filter) { f.facts.Parents = make([][32]byte, 1) },
		"range":  func(f *Filter) { f.facts.Key[0].Min, f.facts.Key[0].Max = intBound(1), intBound(2) },
		"trim":   func(f *Filter) { f.facts.Key[0].Class, f.facts.Rule = "bytes", "trim" },
		"lower":  func(f *Filter) { f.facts.Key[0].Class, f.facts.Rule = "bytes", "lower" },
		"both":   func(f *Filter) { f.facts.Key[0].Class, f.facts.Rule = "bytes", "trim,lower" },
		"ascii":  func(f *Filter) { f.facts.Key[0].Class, f.facts.Rule = "bytes", "trim,lower,ascii-only" },
	} {
		f := bloomFilter(t, 100, keysFrom(1, 5))
		change(f)
		d, err := f.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
}

// TestDigestOfChunks computes the digest from the bytes of a file, as FORMAT.md says: it covers
// every section and the checksum of every chunk, the first and the last like the others.
func TestDigestOfChunks(t *testing.T) {
	ints := make([]uint64, 140_000)
	r := rand.New(rand.NewPCG(7, 9))
	for i := range ints {
		ints[i] = r.Uint64()
	}
	for name, f := range map[string]*Filter{
		"no key": bloomFilter(t, 10, nil), "one chunk": bloomFilter(t, 100, keysFrom(1, 90)), "a block more": bloomFilter(t, chunkBytes/32+1, keysFrom(1, 900)),
		"many chunks": bloomFilter(t, 2*chunkBytes/32+77, keysFrom(1, 900)), "integers": exactFilter(ints, false), "composite": composite(t),
	} {
		identity, err := f.Digest()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{{}, {Uncompressed: true}} {
			file := encode(t, f, o)
			sections := file[24 : 24+binary.LittleEndian.Uint32(file[12:])]
			sums, h := sumsOf(t, file), header(t, file, name)
			if want := digestBy(sections, sums); identity != want || h.Digest() != want {
				t.Errorf("%s, %+v: digest %x, of the header %x, want %x", name, o, identity, h.Digest(), want)
			}
			m := &h.meta
			for i := range sums {
				for _, bit := range []uint64{1, 1 << 63} {
					sums[i] ^= bit
					if got := digest(m, sums); got == identity || got != digestBy(sections, sums) {
						t.Errorf("%s: another checksum of chunk %d of %d gives %x", name, i, len(sums), got)
					}
					sums[i] ^= bit
				}
			}
			if len(sums) > 1 && digest(m, sums[:len(sums)-1]) == identity {
				t.Errorf("%s: the digest is that without the last chunk", name)
			}
		}
		// A bit of each chunk, in a file that is right in itself.
		if name != "a block more" {
			continue
		}
		file := encode(t, f, Options{Uncompressed: true})
		for i := range sumsOf(t, file) {
			at := header(t, file, name).PayloadOffset + int64(i)*chunkBytes + 5
			file[at] ^= 4
			other := repair(file)
			file[at] ^= 4
			if d := header(t, other, name).Digest(); d == identity || d != digestBy(other[24:24+binary.LittleEndian.Uint32(other[12:])], sumsOf(t, other)) {
				t.Errorf("%s, with another byte %d: digest %x", name, at, d)
			}
		}
	}
}

// sumsOf reads the checksums in the chunk table, which ends before the trailer of 16 bytes and the
// section's checksum of 8. The table is the last section of the file.
func sumsOf(t *testing.T, file []byte) (sums []uint64) {
	t.Helper()
	end := len(file) - 16 - 8
	for n := 1; ; n++ { // entries of 16 bytes after the section's head of 8
		head := end - 16*n - 8
		if head < 0 {
			t.Fatal("no chunk table")
		}
		if binary.LittleEndian.Uint16(file[head:]) == secChunks && binary.LittleEndian.Uint32(file[head+4:]) == uint32(16*n) {
			for e := range n {
				sums = append(sums, binary.LittleEndian.Uint64(file[head+8+16*e+8:]))
			}
			return sums
		}
	}
}

// digestBy is the digest by its definition.
func digestBy(sections []byte, sums []uint64) [32]byte {
	h := sha256.New()
	h.Write(sections)
	for _, s := range sums {
		_ = binary.Write(h, binary.LittleEndian, s) // a hash takes everything
	}
	return [32]byte(h.Sum(nil))
}

func TestNames(t *testing.T) {
	f := composite(t)
	if got := fmt.Sprintf("%v %v %s %s %s %s", f.KeyNames()[:2], f.KeyClasses()[:3], f.Normal(), f.Kind(), f.facts.Want, Kind(9)); got != "[a b.c] [integer bytes fixed[16]] 1 bloom auto kind 9" {
		t.Error(got)
	}
	if f = ruled(t, "trim,uuid", "fixed[16]"); f.Normal() != "1+trim,uuid,unicode-15.0" {
		t.Error(f.Normal())
	}
	if f.FPR() != f.Bloom().FPR() || exactFilter(nil, false).FPR() != 0 {
		t.Error("FPR is not that of the payload")
	}
	if IsFilter([]byte(magic)[:7]) || IsFilter([]byte("PAR1PAR1")) || !IsFilter(encode(t, f, Options{})[:8]) {
		t.Error("IsFilter")
	}
}

// A header may be loaded several times, and the filters share no memory.
func TestLoadsAreApart(t *testing.T) {
	f := composite(t)
	file := encode(t, f, Options{})
	h, err := DecodeHeader(bytes.NewReader(file), int64(len(file)), "f")
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.Load(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a.Bloom().Add([]uint64{1, 2, 3})
	a.facts.Key[0].Min[0]++
	a.facts.Registers[0]++
	a.facts.Parents[0][0]++
	b, err := h.Load(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if describe(t, b) != describe(t, f) {
		t.Error("a change of one copy shows in another")
	}
}
