package enc

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/bytestreamsplit"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// runs returns n numbers below limit, some of them in runs.
func runs(rng *rand.Rand, n int, limit uint64) []uint32 {
	out := make([]uint32, 0, n)
	for len(out) < n {
		x := uint32(rng.Uint64N(limit))
		k := 1
		if rng.IntN(4) == 0 {
			k = 1 + rng.IntN(40)
		}
		for range min(k, n-len(out)) {
			out = append(out, x)
		}
	}
	return out
}

func TestAppendHybrid(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for width := uint(1); width <= 32; width++ {
		for i := range 60 {
			n := i
			if i > 40 {
				n = rng.IntN(3000)
			}
			v := runs(rng, n, 1<<width)
			if i%7 == 0 && n > 0 {
				for j := range v {
					v[j] = v[0]
				}
			}
			b := AppendHybrid([]byte("x"), v, width)[1:]
			got := make([]uint32, n)
			if err := DecodeHybrid(got, b, width, math.MaxUint32); err != nil || !slices.Equal(got, v) {
				t.Fatalf("width %d, %d values: %v", width, n, err)
			}
			if n > 0 && len(b) > (n+7)/8*int(width)+binary.MaxVarintLen64 {
				t.Fatalf("width %d: %d values in %d bytes", width, n, len(b))
			}
			checkDictionaryIndices(t, b, v, width)
			if width <= 8 {
				checkLevels(t, v, width)
			}
		}
	}
}

// checkDictionaryIndices decodes with parquet-go.
func checkDictionaryIndices(t *testing.T, b []byte, want []uint32, width uint) {
	if len(want) == 0 {
		return
	}
	got, err := new(rle.DictionaryEncoding).DecodeInt32(nil, append([]byte{byte(width)}, b...))
	if err != nil || len(got) < len(want) {
		t.Fatalf("parquet-go, width %d: %d of %d values, %v", width, len(got), len(want), err)
	}
	for i, x := range want {
		if uint32(got[i]) != x {
			t.Fatalf("parquet-go, width %d: value %d is %d, not %d", width, i, got[i], x)
		}
	}
}

func checkLevels(t *testing.T, v []uint32, width uint) {
	levels := make([]uint8, len(v))
	for i, x := range v {
		levels[i] = uint8(x)
	}
	b := AppendHybrid(nil, levels, width)
	got := make([]uint8, len(levels))
	if err := DecodeHybrid(got, b, width, math.MaxUint32); err != nil || !bytes.Equal(got, levels) {
		t.Fatalf("levels of width %d: %v", width, err)
	}
	theirs, err := (&rle.Encoding{BitWidth: int(width)}).DecodeLevels(nil, b)
	if err != nil || len(theirs) < len(levels) || !bytes.Equal(theirs[:len(levels)], levels) {
		t.Fatalf("parquet-go, levels of width %d: %v", width, err)
	}
}

// Long runs take almost no space, and short ones no more than packed values.
func TestHybridSize(t *testing.T) {
	v := make([]uint8, 1_000_000)
	if n := len(AppendHybrid(nil, v, 1)); n > 5 {
		t.Errorf("a million levels that are the same take %d bytes", n)
	}
	v[500_000] = 1
	if n := len(AppendHybrid(nil, v, 1)); n > 12 {
		t.Errorf("with one that differs they take %d bytes", n)
	}
}

// extremes returns integers, among them some whose differences overflow.
func extremes(rng *rand.Rand, n int, kind int) []int64 {
	out := make([]int64, n)
	for i := range out {
		switch kind % 4 {
		case 0:
			out[i] = int64(rng.Uint64())
		case 1:
			out[i] = int64(i) * 1000
		case 2:
			out[i] = []int64{math.MinInt64, math.MaxInt64, 0, -1}[rng.IntN(4)]
		case 3:
			out[i] = int64(rng.IntN(100))
		}
	}
	return out
}

func TestAppendDelta(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var enc Encoder
	for i := range 400 {
		n := i
		if i > 300 {
			n = rng.IntN(5000)
		}
		v := extremes(rng, n, i)
		v32 := make([]int32, n)
		for k, x := range v {
			v32[k] = int32(x)
			if i%4 == 2 {
				v32[k] = int32(x >> 32)
			}
		}
		b := enc.appendIntegers(nil, plain64(v), 8)
		if got, err := decodeExactly(kind{format.Int64, 8}, format.DeltaBinaryPacked, b, nil, n); err != nil || !bytes.Equal(got, plain64(v)) {
			t.Fatalf("%d values: %v", n, err)
		}
		if got, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, b); err != nil || !slices.Equal(got, v) {
			t.Fatalf("parquet-go, %d values: %v", n, err)
		}
		b = enc.appendIntegers(nil, plain32(v32), 4)
		if got, err := decodeExactly(kind{format.Int32, 4}, format.DeltaBinaryPacked, b, nil, n); err != nil || !bytes.Equal(got, plain32(v32)) {
			t.Fatalf("%d values of 32 bits: %v", n, err)
		}
		if got, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, b); err != nil || !slices.Equal(got, v32) {
			t.Fatalf("parquet-go, %d values of 32 bits: %v", n, err)
		}
		if i%4 == 1 && n > 1000 && len(b) > n/4 {
			t.Fatalf("%d values that ascend evenly take %d bytes", n, len(b))
		}
	}
}

func TestAppendByteArrays(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var enc Encoder
	leaf := kind{format.ByteArray, 0}
	for n := range 300 {
		all, offsets, plain := randomBytes(rng, n)
		b := enc.appendLengths(nil, plain, n)
		if got, err := decodeExactly(leaf, format.DeltaLengthByteArray, b, nil, n); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("lengths of %d values: %v", n, err)
		}
		if n > 0 {
			got, _, err := new(delta.LengthByteArrayEncoding).DecodeByteArray(nil, b, nil)
			if err != nil || !bytes.Equal(got, all) {
				t.Fatalf("parquet-go, lengths of %d values: %v", n, err)
			}
		}
		b = enc.appendPrefixes(nil, plain, n, 0)
		if got, err := decodeExactly(leaf, format.DeltaByteArray, b, nil, n); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("prefixes of %d values: %v", n, err)
		}
		if n > 0 {
			got, at, err := new(delta.ByteArrayEncoding).DecodeByteArray(nil, b, nil)
			if err != nil || !bytes.Equal(got, all) || !slices.Equal(at, offsets) {
				t.Fatalf("parquet-go, prefixes of %d values: %v", n, err)
			}
		}
	}
}

func TestAppendFixed(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	var enc Encoder
	for width := 1; width < 20; width++ {
		for n := 1; n < 200; n += 7 {
			plain := make([]byte, n*width)
			for i := range plain {
				plain[i] = byte(rng.IntN(3))
			}
			leaf := kind{format.FixedLenByteArray, width}
			b := appendSplit([]byte("x"), plain, width)[1:]
			if got, err := decodeExactly(leaf, format.ByteStreamSplit, b, nil, n); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("split, %d values of %d bytes: %v", n, width, err)
			}
			got, err := new(bytestreamsplit.Encoding).DecodeFixedLenByteArray(nil, b, width)
			if err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("parquet-go, split, %d values of %d bytes: %v", n, width, err)
			}
			b = enc.appendPrefixes(nil, plain, n, width)
			if got, err := decodeExactly(leaf, format.DeltaByteArray, b, nil, n); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("prefixes, %d values of %d bytes: %v", n, width, err)
			}
			got, err = new(delta.ByteArrayEncoding).DecodeFixedLenByteArray(nil, b, width)
			if err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("parquet-go, prefixes, %d values of %d bytes: %v", n, width, err)
			}
		}
	}
}

func TestAppendBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	src := make([]byte, 50)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	for range 2000 {
		dst := bytes.Repeat([]byte{0xff}, 60)[:0] // earlier contents must not show through
		var want []byte
		for range 4 {
			from := rng.IntN(390)
			n := rng.IntN(400 - from)
			have := len(want)
			dst = AppendBits(dst, have, src, from, n)
			for i := range n {
				want = append(want, src[(from+i)/8]>>((from+i)%8)&1)
			}
		}
		if len(dst) != (len(want)+7)/8 {
			t.Fatalf("%d bits in %d bytes", len(want), len(dst))
		}
		for i := range len(dst) * 8 {
			bit := dst[i/8] >> (i % 8) & 1
			if i < len(want) && bit != want[i] || i >= len(want) && bit != 0 {
				t.Fatalf("bit %d of %d is %d", i, len(want), bit)
			}
		}
	}
}

func TestCompression(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	texts := [][]byte{{0}, []byte("x"), bytes.Repeat([]byte("abc"), 100_000), make([]byte, 1_200_000)}
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	texts = append(texts, noise)
	levels := map[format.CompressionCodec][]int{
		format.Uncompressed: {0}, format.Snappy: {0}, format.Gzip: {0, 1, 9}, format.Zstd: {0, 3, 22},
		format.Brotli: {0, 1, 5}, format.Lz4Raw: {0, 1, 9},
	}
	for codec, levels := range levels {
		for _, level := range levels {
			c := Compression{codec, level}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
			var z Compressor
			var d Decompressor
			for _, src := range append(texts[1:], texts[0]) {
				b, err := z.Compress(src, c)
				if err != nil {
					t.Fatal(codec, level, err)
				}
				got, err := d.Decompress(codec, nil, b, len(src))
				if err != nil || !bytes.Equal(got, src) || !Plausible(codec, int64(len(b)), int64(len(src))) {
					t.Fatalf("%v, level %d, %d bytes: %v", codec, level, len(src), err)
				}
			}
			d.Close()
		}
	}
	for _, c := range []Compression{{format.Lz4, 0}, {format.LZO, 0}, {17, 0}, {format.Snappy, 1}, {format.Zstd, 23}, {format.Gzip, -1}, {format.Lz4Raw, 10}} {
		if c.Check() == nil {
			t.Errorf("codec %v, level %d is taken", int32(c.Codec), c.Level)
		}
	}
}
