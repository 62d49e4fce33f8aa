package enc

import (
	"bytes"
	stdgzip "compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/bytestreamsplit"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// Every decoder is compared with the naive one, and with parquet-go's if ours
// accepts the bytes (parquet-go panics or guesses if they are invalid).

func FuzzHybrid(f *testing.F) {
	seedPages(f, func(p *seedPage) {
		add := func(src []byte, n int, width uint, limit uint32) {
			if n < 1<<16 && len(src) <= maxSeed {
				f.Add(src, uint16(n), uint8(width), limit, uint64(n))
			}
		}
		add(p.rep, p.n, LevelWidth(p.maxRep), uint32(p.maxRep))
		add(p.def, p.n, LevelWidth(p.maxDef), uint32(p.maxDef))
		if (p.enc == format.PlainDictionary || p.enc == format.RLEDictionary) && len(p.values) > 0 {
			add(p.values[1:], p.count, uint(p.values[0])%33, 1<<32-1)
		}
	})
	f.Fuzz(func(t *testing.T, src []byte, count uint16, bits uint8, limit uint32, seed uint64) {
		n, width := int(count), uint(bits)%33
		want, ok := naiveHybrid(src, n, width)
		within := ok && (n == 0 || slices.Max(want) <= limit)
		got := make([]uint32, n)
		if err := DecodeHybrid(got, src, width, limit); (err == nil) != within || within && !slices.Equal(got, want) {
			t.Fatalf("width %d: %d up to %d, %v, not %d, %v, %v", width, got, limit, err, want, ok, within)
		}
		if width <= 8 && limit < 256 {
			levels := make([]uint8, n)
			if err := DecodeHybrid(levels, src, width, limit); (err == nil) != within {
				t.Fatalf("width %d: %d levels up to %d, %v, not %v", width, n, limit, err, within)
			}
			for i, l := range levels {
				if within && uint32(l) != want[i] {
					t.Fatalf("width %d: level %d is %d, not %d", width, i, l, want[i])
				}
			}
		}
		v, same := ConstantLevel(src, n, width)
		if sure := ok && n > 0 && slices.Max(want) == slices.Min(want); same != sure || same && v != want[0] {
			t.Fatalf("width %d: constant %d, %v, of %d", width, v, same, want)
		}
		if width > 0 { // width 0 ignores src
			checkGatherHybrid(t, src, n, width, limit, pickAny(seed, n))
		}
		if theirs, err := theirHybrid(src, n, width); ok && err == nil && !slices.Equal(theirs, want) {
			t.Fatalf("width %d: %d, not as parquet-go has it, %d", width, want, theirs)
		}
	})
}

func pickAny(seed uint64, n int) []uint32 {
	return pick(rand.New(rand.NewPCG(seed, 1)), n, 1+int(seed%20), 1+int(seed/20%100))
}

// guarded turns panics of f into errors.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// theirHybrid decodes n values with parquet-go, which decodes all of src and
// requires it to be valid.
func theirHybrid(src []byte, n int, width uint) (v []uint32, err error) {
	total, left := uint64(0), src
	for len(left) > 0 { // it allocates what a run claims
		header, k := binary.Uvarint(left)
		run, err := nextRun(left, width, 1<<20)
		if k <= 0 || err != nil || header > 1<<20 || total > 1<<20 {
			return nil, errRun
		}
		total += header
		left = left[run.end:]
	}
	return v, guarded(func() error {
		signed, err := (&rle.Encoding{BitWidth: int(width)}).DecodeInt32(nil, src)
		if err != nil || len(signed) < n {
			return ErrShort
		}
		for _, x := range signed[:n] {
			v = append(v, uint32(x))
		}
		return nil
	})
}

func FuzzDelta(f *testing.F) {
	seedPages(f, func(p *seedPage) {
		if p.enc == format.DeltaBinaryPacked && p.count < 1<<16 {
			f.Add(p.values, uint16(p.count))
		}
	})
	rng := rand.New(rand.NewPCG(15, 1))
	for _, n := range []int{1, 40, 300} {
		v := make([]int64, n)
		for i := range v {
			v[i] = int64(rng.Uint64() >> rng.IntN(64))
		}
		f.Add(encodeDeltas(rng, v, 32, 4), uint16(n))
		f.Add(encodeDeltas(rng, v, 128, 2), uint16(n))
	}
	f.Fuzz(func(t *testing.T, src []byte, count uint16) {
		n := int(count)
		want, rest, widest, ok := naiveDelta(src, n)
		got, left, err := decodeDelta(src, bytes.Repeat([]byte{0xff}, 64), n, 8)
		if (err == nil) != ok {
			t.Fatalf("%d values: %v, not %v", n, err, ok)
		}
		narrow, left4, err4 := decodeDelta(src, nil, n, 4)
		if (err4 == nil) != ok {
			t.Fatalf("%d values of 32 bits: %v, not %v", n, err4, ok)
		}
		if !ok {
			return
		}
		if !bytes.Equal(got, plain64(want)) || !bytes.Equal(left, rest) || !bytes.Equal(left4, rest) {
			t.Fatalf("%x and %d bytes behind, not %d and %d", got, len(left), want, len(rest))
		}
		low := make([]int32, n)
		for i, x := range want {
			low[i] = int32(x)
		}
		if !bytes.Equal(narrow, plain32(low)) {
			t.Fatalf("%x, not %d", narrow, low)
		}
		if n == 0 || len(rest) > 0 {
			return // it also decodes what follows
		}
		var theirs []int64
		if guarded(func() (err error) {
			theirs, err = new(delta.BinaryPackedEncoding).DecodeInt64(nil, src)
			return err
		}) == nil && !slices.Equal(theirs, want) {
			t.Fatalf("%d, not as parquet-go has it, %d", want, theirs)
		}
		var theirs32 []int32
		if widest <= 32 && guarded(func() (err error) {
			theirs32, err = new(delta.BinaryPackedEncoding).DecodeInt32(nil, src)
			return err
		}) == nil && !slices.Equal(theirs32, low) {
			t.Fatalf("%d, not as parquet-go has it, %d", low, theirs32)
		}
	})
}

var byteArrays = []struct {
	enc   format.Encoding
	naive func([]byte, int) ([][]byte, bool)
}{
	{format.Plain, naivePlain},
	{format.DeltaLengthByteArray, naiveDeltaLength},
	{format.DeltaByteArray, naiveDeltaBytes},
}

func FuzzByteArrays(f *testing.F) {
	seedPages(f, func(p *seedPage) {
		for i, c := range byteArrays {
			if p.enc == c.enc && p.kind.of == format.ByteArray && p.count < 1<<16 {
				f.Add(uint8(i), p.values, uint16(p.count), uint64(p.count))
			}
		}
	})
	all, offsets, plain := randomBytes(rand.New(rand.NewPCG(15, 2)), 60)
	lengths, _ := new(delta.LengthByteArrayEncoding).EncodeByteArray(nil, all, offsets)
	prefixes, _ := new(delta.ByteArrayEncoding).EncodeByteArray(nil, all, offsets)
	f.Add(uint8(0), plain, uint16(60), uint64(3))
	f.Add(uint8(1), lengths, uint16(60), uint64(3))
	f.Add(uint8(2), prefixes, uint16(60), uint64(3))
	f.Fuzz(func(t *testing.T, which uint8, src []byte, count uint16, seed uint64) {
		n, c := int(count), byteArrays[int(which)%len(byteArrays)]
		if n == 0 {
			return // writers differ in what they store for no values
		}
		values, ok := c.naive(src, n)
		want := toPlain(values)
		got, err := decodeExactly(kind{format.ByteArray, 0}, c.enc, src, bytes.Repeat([]byte{0xff}, 99), n)
		if (err == nil) != ok || ok && !bytes.Equal(got, want) {
			t.Fatalf("%v, %d values: %x, %v, not %x, %v", c.enc, n, got, err, want, ok)
		}
		if c.enc == format.Plain {
			checkGatherByteArrays(t, src, n, pickAny(seed, n))
		}
		if c.enc == format.DeltaByteArray && n > 0 {
			checkDeltaFixed(t, src, n, int(seed%40)+1, values, ok)
		}
		if !ok || c.enc == format.Plain {
			return
		}
		var joined []byte
		var ends []uint32
		err = guarded(func() (err error) {
			if c.enc == format.DeltaByteArray {
				joined, ends, err = new(delta.ByteArrayEncoding).DecodeByteArray(nil, src, nil)
			} else {
				joined, ends, err = new(delta.LengthByteArrayEncoding).DecodeByteArray(nil, src, nil)
			}
			return err
		})
		if err == nil && len(ends) == n+1 {
			theirs := make([][]byte, n)
			for i := range theirs {
				theirs[i] = joined[ends[i]:ends[i+1]]
			}
			if !bytes.Equal(toPlain(theirs), want) {
				t.Fatalf("%v: %q, not as parquet-go has it, %q", c.enc, values, theirs)
			}
		}
	})
}

// checkDeltaFixed decodes DELTA_BYTE_ARRAY as fixed-length values.
func checkDeltaFixed(t *testing.T, src []byte, n, length int, values [][]byte, ok bool) {
	t.Helper()
	var want []byte
	for _, v := range values {
		want = append(want, v...)
		ok = ok && len(v) == length
	}
	leaf := kind{format.FixedLenByteArray, length}
	got, err := decodeExactly(leaf, format.DeltaByteArray, src, nil, n)
	if (err == nil) != ok || ok && !bytes.Equal(got, want) {
		t.Fatalf("%d values of %d bytes: %x, %v, not %x, %v", n, length, got, err, want, ok)
	}
}

func FuzzFixed(f *testing.F) {
	seedPages(f, func(p *seedPage) {
		if w := p.kind.width; w > 0 && w < 256 && (p.enc == format.Plain || p.enc == format.ByteStreamSplit) {
			f.Add(p.values, uint8(w), uint64(p.count))
		}
	})
	for _, w := range []int{1, 2, 4, 8, 12, 16, 17, 24} {
		f.Add(randomString(rand.New(rand.NewPCG(15, 3)), 19*w), uint8(w), uint64(7))
	}
	f.Fuzz(func(t *testing.T, src []byte, width uint8, seed uint64) {
		w := max(1, int(width))
		n := len(src) / w
		checkGatherFixed(t, src, w, pickAny(seed, n))
		checkGatherBools(t, src, pickAny(seed, 8*len(src)))
		_, err := exactly(unsplit(src, nil, n, w))
		if (err == nil) != (len(src) == n*w) {
			t.Fatalf("%d values of %d bytes in %d: %v", n, w, len(src), err)
		}
		whole := src[:n*w]
		got, err := exactly(unsplit(whole, bytes.Repeat([]byte{0xff}, 99), n, w))
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range got {
			if want := whole[i%w*n+i/w]; c != want {
				t.Fatalf("%d values of %d bytes: byte %d is %d, not %d", n, w, i, c, want)
			}
		}
		if n == 0 {
			return
		}
		if theirs, err := new(bytestreamsplit.Encoding).DecodeFixedLenByteArray(nil, whole, w); err == nil && !bytes.Equal(theirs, got) {
			t.Fatalf("%d values of %d bytes: %x, not as parquet-go has it, %x", n, w, got, theirs)
		}
	})
}

func FuzzBooleans(f *testing.F) {
	seedPages(f, func(p *seedPage) {
		if p.kind.of == format.Boolean && p.count < 1<<16 {
			f.Add(p.values, uint16(p.count))
		}
	})
	f.Add([]byte{9, 0, 0, 0, 5 << 1, 1, 2<<1 | 1, 0xa5, 0x5a, 50 << 1, 0, 3 << 1, 1}, uint16(74))
	f.Fuzz(func(t *testing.T, src []byte, count uint16) {
		n := int(count)
		var bools []uint32
		ok := false
		if len(src) >= 4 && uint64(binary.LittleEndian.Uint32(src)) <= uint64(len(src)-4) {
			bools, ok = naiveHybrid(src[4:][:binary.LittleEndian.Uint32(src)], n, 1)
		}
		want := make([]byte, (n+7)/8)
		for i, b := range bools {
			ok = ok && b <= 1
			want[i/8] |= byte(b) << (i % 8)
		}
		got, _, err := rleBooleans(src, bytes.Repeat([]byte{0xff}, 99), n)
		if (err == nil) != ok || ok && !bytes.Equal(got, want) {
			t.Fatalf("%d booleans: %x, %v, not %x, %v", n, got, err, want, ok)
		}
	})
}

func FuzzDecompress(f *testing.F) {
	seedPages(f, func(p *seedPage) {
		if p.codec != format.Uncompressed && len(p.stored) <= maxSeed {
			f.Add(uint8(p.codec), p.stored, uint32(p.size))
		}
	})
	for _, flags := range []byte{0, 0x20, 0x80} {
		var b bytes.Buffer
		z := stdgzip.NewWriter(&b)
		z.Write([]byte("thirteen byte"))
		z.Close()
		b.Bytes()[3] |= flags
		f.Add(uint8(format.Gzip), b.Bytes(), uint32(13))
	}
	f.Fuzz(func(t *testing.T, which uint8, src []byte, length uint32) {
		codec, size := format.CompressionCodec(which%8), int(length%(1<<20))
		var d Decompressor
		defer d.Close()
		got, err := d.Decompress(codec, nil, src, size)
		if err == nil && len(got) != size {
			t.Fatalf("%v: %d bytes, not %d", codec, len(got), size)
		}
		dirty := bytes.Repeat([]byte{0xff}, size)
		again, errAgain := d.Decompress(codec, dirty, src, size)
		if (err == nil) != (errAgain == nil) || err == nil && !bytes.Equal(got, again) {
			t.Fatalf("%v: %d bytes, %v, then %d, %v", codec, len(got), err, len(again), errAgain)
		}
		if codec != format.Gzip || size == 0 {
			return
		}
		var theirs []byte
		z, theirErr := stdgzip.NewReader(bytes.NewReader(src))
		if theirErr == nil {
			theirs, theirErr = io.ReadAll(io.LimitReader(z, int64(size)+1))
		}
		if errors.Is(err, stdgzip.ErrHeader) && reservedFlags(src) {
			return
		}
		if (err == nil) != (theirErr == nil && len(theirs) == size) || err == nil && !bytes.Equal(got, theirs) {
			t.Fatalf("gzip: %d bytes, %v, not %d, %v", size, err, len(theirs), theirErr)
		}
	})
}

// reservedFlags reports whether a member's header has a flag that must be zero (RFC
// 1952, section 2.3.1.2), which the standard library ignores.
func reservedFlags(src []byte) bool {
	for r := bytes.NewReader(src); r.Len() > 3; {
		if src[len(src)-r.Len()+3]>>5 != 0 {
			return true
		}
		z, err := stdgzip.NewReader(r)
		if err != nil {
			return false
		}
		z.Multistream(false)
		if _, err := io.Copy(io.Discard, z); err != nil {
			return false
		}
	}
	return false
}
