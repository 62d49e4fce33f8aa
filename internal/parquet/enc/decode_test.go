package enc

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/bytestreamsplit"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// The oracle is parquet-go's encoders.

func TestHybridAgainstParquetGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for width := uint(1); width <= 32; width++ {
		enc := rle.Encoding{BitWidth: int(width)}
		for _, n := range []int{1, 7, 8, 9, 64, 1000} {
			want := make([]uint32, n)
			signed := make([]int32, n)
			for i := range want {
				if i > 0 && rng.IntN(3) > 0 {
					want[i] = want[i-1]
				} else {
					want[i] = uint32(rng.Uint64() & (1<<width - 1))
				}
				signed[i] = int32(want[i])
			}
			src, err := enc.EncodeInt32(nil, signed)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]uint32, n)
			if err := DecodeHybrid(got, src, width, 1<<32-1); err != nil || !slices.Equal(got, want) {
				t.Fatalf("width %d, %d values: %v", width, n, err)
			}
			if err := DecodeHybrid(make([]uint32, n+8), src, width, 1<<32-1); err == nil {
				t.Fatalf("width %d: 8 more values than %d were found", width, n)
			}
		}
	}
}

func TestUnpack(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	for width := uint(0); width <= 32; width++ {
		for _, n := range []int{0, 1, 7, 8, 9, 16, 31, 32, 33, 200} {
			for _, behind := range []int{0, 1, 7, 8, 50} {
				src := randomString(rng, int(PackedSize(n, width))+behind)
				want, top := make([]uint32, n), uint32(0)
				small := make([]uint8, n)
				for i := range want {
					want[i] = uint32(naiveBits(src, i, width))
					small[i] = uint8(want[i])
					top = max(top, want[i])
				}
				got := make([]uint32, n)
				if !Unpack(got, src, width, top) || !slices.Equal(got, want) {
					t.Fatalf("width %d, %d values, %d bytes behind: %v, not %v", width, n, behind, got, want)
				}
				if top > 0 && Unpack(got, src, width, top-1) {
					t.Fatalf("width %d, %d values, %d bytes behind: %d was not found too large", width, n, behind, top)
				}
				if !Unpack(got, src, width, 1<<32-1) {
					t.Fatalf("width %d, %d values: a limit beyond the width", width, n)
				}
				if width > 8 {
					continue
				}
				levels := make([]uint8, n)
				if !Unpack(levels, src, width, top) || !bytes.Equal(levels, small) {
					t.Fatalf("width %d, %d levels, %d bytes behind: %v, not %v", width, n, behind, levels, small)
				}
				if top > 0 && Unpack(levels, src, width, top-1) {
					t.Fatalf("width %d, %d levels, %d bytes behind: %d was not found too large", width, n, behind, top)
				}
			}
		}
	}
}

func TestConstantLevel(t *testing.T) {
	for name, c := range map[string]struct {
		src   []byte
		n     int
		width uint
		v     uint32
		ok    bool
	}{
		"one run":              {[]byte{60 << 1, 1}, 60, 1, 1, true},
		"two runs":             {[]byte{60 << 1, 1, 60 << 1, 1}, 120, 1, 1, true},
		"different runs":       {[]byte{60 << 1, 1, 60 << 1, 0}, 100, 1, 0, false},
		"second not needed":    {[]byte{60 << 1, 1, 60 << 1, 0}, 60, 1, 1, true},
		"packed ones":          {[]byte{2<<1 | 1, 0xff, 0xff}, 16, 1, 1, true},
		"packed, padded":       {[]byte{2<<1 | 1, 0xff, 0x03}, 10, 1, 1, true},
		"packed, a zero":       {[]byte{2<<1 | 1, 0xff, 0x01}, 10, 1, 0, false},
		"packed, wide":         {append([]byte{3<<1 | 1}, bytes.Repeat([]byte{0xb6, 0x6d, 0xdb}, 3)...), 24, 3, 6, true},
		"packed, last differs": {append([]byte{3<<1 | 1}, 0xb6, 0x6d, 0xdb, 0xb6, 0x6d, 0xdb, 0xb6, 0x6d, 0x5b), 24, 3, 0, false},
		"mixed":                {[]byte{1<<1 | 1, 0, 9 << 1, 0}, 17, 1, 0, true},
		"too few":              {[]byte{60 << 1, 1}, 61, 1, 0, false},
		"nothing":              {nil, 1, 1, 0, false},
		"no levels":            {[]byte{60 << 1, 1}, 0, 1, 0, false},
	} {
		v, ok := ConstantLevel(c.src, c.n, c.width)
		if ok != c.ok || ok && v != c.v {
			t.Errorf("%s: %d, %v", name, v, ok)
		}
	}
	rng := rand.New(rand.NewPCG(13, 2))
	for range 20000 { // it agrees with decoding
		width, n := 1+uint(rng.IntN(3)), 1+rng.IntN(40)
		src := bytes.Repeat([]byte{[]byte{0, 0xff, 0x55, 0xaa}[rng.IntN(4)]}, 3+rng.IntN(20))
		src[0] = byte(rng.IntN(8))
		if rng.IntN(4) == 0 {
			src[1+rng.IntN(len(src)-1)] ^= 1 << rng.IntN(8)
		}
		levels := make([]uint8, n)
		err := DecodeHybrid(levels, src, width, 1<<width-1)
		v, ok := ConstantLevel(src, n, width)
		if ok && v < 1<<width && (err != nil || CountLevels(levels, uint8(v)) != n) {
			t.Fatalf("width %d, %d levels of %x: constant %d, but %v, %v", width, n, src, v, levels, err)
		}
		if !ok && err == nil && CountLevels(levels, levels[0]) == n {
			t.Fatalf("width %d, %d levels of %x are all %d", width, n, src, levels[0])
		}
	}
}

func TestHybridBounds(t *testing.T) {
	got := make([]uint8, 8)
	for name, c := range map[string]struct {
		src []byte
		ok  bool
	}{
		"repeat":           {[]byte{8 << 1, 2}, true},
		"longer repeat":    {[]byte{60 << 1, 2}, true},
		"above the most":   {[]byte{8 << 1, 3}, false},
		"packed":           {[]byte{1<<1 | 1, 0b10100100, 0}, true},
		"packed above":     {[]byte{1<<1 | 1, 0b11100100, 0}, false},
		"packed cut":       {[]byte{1<<1 | 1, 0}, false},
		"repeat of none":   {[]byte{0, 0, 8 << 1, 1}, false},
		"nothing":          {nil, false},
		"two runs":         {[]byte{4 << 1, 1, 4 << 1, 2}, true},
		"too few":          {[]byte{4 << 1, 1, 3 << 1, 2}, false},
		"a varint too far": {[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, false},
	} {
		if err := DecodeHybrid(got, c.src, 2, 2); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func plain32(v []int32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func plain64(v []int64) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

// strings of random length, in parquet-go's form and PLAIN.
func randomBytes(rng *rand.Rand, n int) (all []byte, offsets []uint32, plain []byte) {
	offsets = []uint32{0}
	for range n {
		v := bytes.Repeat([]byte{'a' + byte(rng.IntN(3))}, rng.IntN(30))
		all = append(all, v...)
		offsets = append(offsets, uint32(len(all)))
		plain = append(binary.LittleEndian.AppendUint32(plain, uint32(len(v))), v...)
	}
	return all, offsets, plain
}

func TestValuesAgainstParquetGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 31, 32, 33, 127, 128, 129, 130, 5000} {
		ints, longs := make([]int32, n), make([]int64, n)
		shift := rng.IntN(64)
		for i := range ints {
			ints[i], longs[i] = int32(rng.Uint32())>>(shift/2), int64(rng.Uint64())>>shift
		}
		all, offsets, bytesPlain := randomBytes(rng, n)
		fixed := make([]byte, 5*n)
		for i := range fixed {
			fixed[i] = byte(rng.IntN(3))
		}
		binaryPacked, split := delta.BinaryPackedEncoding{}, bytestreamsplit.Encoding{}
		lengths, prefixes := delta.LengthByteArrayEncoding{}, delta.ByteArrayEncoding{}
		must := func(b []byte, err error) []byte {
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		for name, c := range map[string]struct {
			kind  kind
			enc   encoding.Encoding
			src   []byte
			plain []byte
		}{
			"delta int32":  {kind{format.Int32, 4}, &binaryPacked, must(binaryPacked.EncodeInt32(nil, ints)), plain32(ints)},
			"delta int64":  {kind{format.Int64, 8}, &binaryPacked, must(binaryPacked.EncodeInt64(nil, longs)), plain64(longs)},
			"delta length": {kind{format.ByteArray, 0}, &lengths, must(lengths.EncodeByteArray(nil, all, offsets)), bytesPlain},
			"delta bytes":  {kind{format.ByteArray, 0}, &prefixes, must(prefixes.EncodeByteArray(nil, all, offsets)), bytesPlain},
			"delta fixed":  {kind{format.FixedLenByteArray, 5}, &prefixes, must(prefixes.EncodeFixedLenByteArray(nil, fixed, 5)), fixed},
			"split":        {kind{format.Int64, 8}, &split, must(split.EncodeInt64(nil, longs)), plain64(longs)},
		} {
			got, err := decodeExactly(c.kind, c.enc.Encoding(), c.src, nil, n)
			if err != nil || !bytes.Equal(got, c.plain) {
				t.Fatalf("%s of %d: %v", name, n, err)
			}
			for cut := 1; cut <= min(len(c.src), 9); cut++ { // a truncation is an error or cuts off padding
				got, err := decodeExactly(c.kind, c.enc.Encoding(), c.src[:len(c.src)-cut], nil, n)
				if err == nil && !bytes.Equal(got, c.plain) {
					t.Fatalf("%s of %d: other values from %d bytes less", name, n, cut)
				}
			}
			if _, err := decodeExactly(c.kind, c.enc.Encoding(), c.src, nil, n+1); err == nil {
				t.Fatalf("%s: %d values out of %d", name, n+1, n)
			}
		}
	}
}

// encodeDeltas encodes values with any block and miniblock sizes that the format
// allows, each miniblock at its minimum width or wider.
func encodeDeltas(rng *rand.Rand, v []int64, perMini, minis int) []byte {
	src := binary.AppendUvarint(nil, uint64(perMini*minis))
	src = binary.AppendUvarint(src, uint64(minis))
	src = binary.AppendUvarint(src, uint64(len(v)))
	src = binary.AppendVarint(src, v[0])
	for at := 1; at < len(v); at += perMini * minis {
		block := v[at-1 : min(at+perMini*minis, len(v))]
		least := int64(math.MaxInt64)
		for i := range block[1:] {
			least = min(least, block[i+1]-block[i])
		}
		src = binary.AppendVarint(src, least)
		widths := len(src)
		src = append(src, make([]byte, minis)...)
		for m := 0; m*perMini < len(block)-1; m++ {
			mini := block[m*perMini : min((m+1)*perMini+1, len(block))]
			width := 0
			for i := range mini[1:] {
				width = max(width, bits.Len64(uint64(mini[i+1]-mini[i]-least)))
			}
			width += rng.IntN(64 - width + 1)
			src[widths+m] = byte(width)
			packed := make([]byte, perMini*width/8)
			for i := range mini[1:] {
				d := uint64(mini[i+1] - mini[i] - least)
				for k := range width {
					packed[(i*width+k)/8] |= byte(d>>k&1) << ((i*width + k) % 8)
				}
			}
			src = append(src, packed...)
		}
	}
	return src
}

func TestDeltaBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 3))
	for range 2000 {
		v := make([]int64, 1+rng.IntN(700))
		shift := rng.IntN(64)
		for i := range v {
			v[i] = int64(rng.Uint64()) >> shift
		}
		perMini, minis := 32*(1+rng.IntN(9)), 4*(1+rng.IntN(2))
		src := encodeDeltas(rng, v, perMini, minis)
		for _, size := range []int{4, 8} {
			var want []byte
			for _, x := range v {
				want = append(want, plain64([]int64{x})[:size]...)
			}
			got, rest, err := decodeDelta(append(src, "behind"...), nil, len(v), size)
			if err != nil || !bytes.Equal(got, want) || string(rest) != "behind" {
				t.Fatalf("%d values of %d bytes, %d by %d: %v, %q behind", len(v), size, minis, perMini, err, rest)
			}
		}
	}
}

func TestUnsplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 4))
	for _, w := range []int{1, 2, 3, 4, 5, 8, 12, 16, 24, 33} {
		for _, n := range []int{0, 1, 7, 8, 9, 16, 100} {
			src := randomString(rng, n*w)
			var want []byte
			for i := range n {
				for k := range w {
					want = append(want, src[k*n+i])
				}
			}
			if got, err := exactly(unsplit(src, nil, n, w)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d values of %d bytes: %v", n, w, err)
			}
			if _, err := exactly(unsplit(append(src, 0), nil, n, w)); err == nil {
				t.Errorf("%d values of %d bytes and one more byte", n, w)
			}
		}
	}
}

func TestRLEBooleans(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 5))
	for range 2000 {
		var src []byte
		n := 0
		for range 1 + rng.IntN(6) {
			k := 1 + rng.IntN(100)
			if rng.IntN(2) == 0 {
				src = append(binary.AppendUvarint(src, uint64(k)<<1), byte(rng.IntN(2)))
				n += k
			} else {
				src = append(binary.AppendUvarint(src, uint64(k%9+1)<<1|1), randomString(rng, k%9+1)...)
				n += 8 * (k%9 + 1)
			}
		}
		n -= rng.IntN(min(n, 8))
		levels := make([]uint8, n)
		if err := DecodeHybrid(levels, src, 1, 1); err != nil {
			t.Fatal(err)
		}
		want := make([]byte, (n+7)/8)
		for i, b := range levels {
			want[i/8] |= b << (i % 8)
		}
		all := append(binary.LittleEndian.AppendUint32(nil, uint32(len(src))), src...)
		dirty := bytes.Repeat([]byte{0xff}, 1000)
		if got, _, err := rleBooleans(all, dirty, n); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d booleans: %v", n, err)
		}
		if _, _, err := rleBooleans(all, nil, n+8); err == nil {
			t.Fatalf("%d booleans out of %d", n+8, n)
		}
	}
	if _, _, err := rleBooleans([]byte{2, 0, 0, 0, 2 << 1, 2}, nil, 2); err == nil {
		t.Error("a boolean that is 2")
	}
}

func TestDeltaBytesDoNotExpand(t *testing.T) {
	// One value of 1 MiB, then 2000 copies of it that share its bytes.
	const size, again = 1 << 20, 2000
	enc := delta.BinaryPackedEncoding{}
	prefix, suffix := make([]int32, again+1), make([]int32, again+1)
	suffix[0] = size
	for i := range again {
		prefix[i+1] = size
	}
	src, _ := enc.EncodeInt32(nil, prefix)
	more, _ := enc.EncodeInt32(nil, suffix)
	src = append(append(src, more...), make([]byte, size)...)
	if _, err := decodeExactly(kind{format.ByteArray, 0}, format.DeltaByteArray, src, nil, again+1); err != ErrExpands {
		t.Fatal(err)
	}
}

func TestDecompress(t *testing.T) {
	want := bytes.Repeat([]byte("one page of it, "), 999)
	half := len(want) / 2
	gz := func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		w.Write(b)
		w.Close()
		return out.Bytes()
	}
	zs := func(b []byte) []byte { // streamed, so the frame does not have its size
		var out bytes.Buffer
		w, _ := zstd.NewWriter(&out)
		w.Write(b)
		w.Close()
		return out.Bytes()
	}
	block := func(b []byte) []byte {
		out := make([]byte, lz4.CompressBlockBound(len(b)))
		n, _ := lz4.CompressBlock(b, out, nil)
		return out[:n]
	}
	hadoop := func(b []byte) []byte {
		c := block(b)
		out := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
		return append(binary.BigEndian.AppendUint32(out, uint32(len(c))), c...)
	}
	var brotlied bytes.Buffer
	bw := brotli.NewWriter(&brotlied)
	bw.Write(want)
	bw.Close()
	var frame bytes.Buffer
	w := lz4.NewWriter(&frame)
	w.Write(want)
	w.Close()
	for name, c := range map[string]struct {
		codec format.CompressionCodec
		src   []byte
	}{
		"none":         {format.Uncompressed, want},
		"snappy":       {format.Snappy, s2.EncodeSnappy(nil, want)},
		"gzip":         {format.Gzip, gz(want)},
		"gzip members": {format.Gzip, append(gz(want[:half]), gz(want[half:])...)},
		"zstd":         {format.Zstd, zs(want)},
		"zstd frames":  {format.Zstd, append(zs(want[:half]), zs(want[half:])...)},
		"brotli":       {format.Brotli, brotlied.Bytes()},
		"lz4 raw":      {format.Lz4Raw, block(want)},
		"lz4 block":    {format.Lz4, block(want)},
		"lz4 frame":    {format.Lz4, frame.Bytes()},
		"lz4 hadoop":   {format.Lz4, append(hadoop(want[:half]), hadoop(want[half:])...)},
	} {
		t.Run(name, func(t *testing.T) {
			var d Decompressor
			defer d.Close()
			for range 2 { // decoders are reused, also after errors
				got, err := d.Decompress(c.codec, nil, c.src, len(want))
				if err != nil || !bytes.Equal(got, want) {
					t.Fatal(err)
				}
				for _, size := range []int{len(want) - 1, len(want) + 1, 0} {
					if got, err := d.Decompress(c.codec, nil, c.src, size); err == nil {
						t.Errorf("%d bytes for %d", len(got), size)
					}
				}
				for _, cut := range []int{1, len(c.src) / 2, len(c.src) - 1} {
					if got, err := d.Decompress(c.codec, nil, c.src[:cut], len(want)); err == nil {
						t.Errorf("%d bytes from %d of %d", len(got), cut, len(c.src))
					}
				}
			}
		})
	}
}

// kind is a type of values and their size.
type kind struct {
	of    format.Type
	width int
}

// decodeExactly is Decode for a src that must end with the last value.
func decodeExactly(k kind, e format.Encoding, src, buf []byte, n int) ([]byte, error) {
	return exactly(Decode(k.of, k.width, e, src, buf, n))
}

// exactly makes bytes after the last value an error.
func exactly(plain []byte, tail int, err error) ([]byte, error) {
	if err == nil && tail > 0 {
		err = ErrTrailing
	}
	return plain, err
}

// TestUnpackHighFirst uses the example in the format's Encodings.md.
func TestUnpackHighFirst(t *testing.T) {
	src := []byte{0b00000101, 0b00111001, 0b01110111}
	got := make([]uint8, 8)
	if !UnpackHighFirst(got, src, 3, 7) || !bytes.Equal(got, []byte{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("%d", got)
	}
	if UnpackHighFirst(got, src, 3, 6) {
		t.Error("a level above the limit")
	}
}
