package parquet

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

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

// The encoders of parquet-go are the other side here.

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
			if err := decodeHybrid(got, src, width, 1<<32-1); err != nil || !slices.Equal(got, want) {
				t.Fatalf("width %d, %d values: %v", width, n, err)
			}
			if err := decodeHybrid(make([]uint32, n+8), src, width, 1<<32-1); err == nil {
				t.Fatalf("width %d: 8 more values than %d were found", width, n)
			}
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
		if err := decodeHybrid(got, c.src, 2, 2); (err == nil) != c.ok {
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
			leaf  Leaf
			enc   encoding.Encoding
			src   []byte
			plain []byte
		}{
			"delta int32":  {Leaf{Type: format.Int32}, &binaryPacked, must(binaryPacked.EncodeInt32(nil, ints)), plain32(ints)},
			"delta int64":  {Leaf{Type: format.Int64}, &binaryPacked, must(binaryPacked.EncodeInt64(nil, longs)), plain64(longs)},
			"delta length": {Leaf{Type: format.ByteArray}, &lengths, must(lengths.EncodeByteArray(nil, all, offsets)), bytesPlain},
			"delta bytes":  {Leaf{Type: format.ByteArray}, &prefixes, must(prefixes.EncodeByteArray(nil, all, offsets)), bytesPlain},
			"delta fixed":  {Leaf{Type: format.FixedLenByteArray, TypeLength: 5}, &prefixes, must(prefixes.EncodeFixedLenByteArray(nil, fixed, 5)), fixed},
			"split":        {Leaf{Type: format.Int64}, &split, must(split.EncodeInt64(nil, longs)), plain64(longs)},
		} {
			got, err := decodeValues(&c.leaf, c.enc.Encoding(), c.src, nil, n)
			if err != nil || !bytes.Equal(got, c.plain) {
				t.Fatalf("%s of %d: %v", name, n, err)
			}
			for cut := 1; cut <= min(len(c.src), 9); cut++ { // a part is an error, or padding
				got, err := decodeValues(&c.leaf, c.enc.Encoding(), c.src[:len(c.src)-cut], nil, n)
				if err == nil && !bytes.Equal(got, c.plain) {
					t.Fatalf("%s of %d: other values from %d bytes less", name, n, cut)
				}
			}
			if _, err := decodeValues(&c.leaf, c.enc.Encoding(), c.src, nil, n+1); err == nil {
				t.Fatalf("%s: %d values out of %d", name, n+1, n)
			}
		}
	}
}

func TestDeltaBytesDoNotExpand(t *testing.T) {
	// One value of 1 MiB, then 2000 times all of it again.
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
	if _, err := decodeValues(&Leaf{Type: format.ByteArray}, format.DeltaByteArray, src, nil, again+1); err != errExpands {
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
	zs := func(b []byte) []byte { // streamed: the frame does not state its size
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
		"lz4 raw":      {format.Lz4Raw, block(want)},
		"lz4 block":    {format.Lz4, block(want)},
		"lz4 frame":    {format.Lz4, frame.Bytes()},
		"lz4 hadoop":   {format.Lz4, append(hadoop(want[:half]), hadoop(want[half:])...)},
	} {
		t.Run(name, func(t *testing.T) {
			var d decompressor
			defer d.close()
			for range 2 { // the decoders are used again
				got, err := d.decompress(c.codec, nil, c.src, len(want))
				if err != nil || !bytes.Equal(got, want) {
					t.Fatal(err)
				}
			}
			for _, size := range []int{len(want) - 1, len(want) + 1, 0} {
				if got, err := d.decompress(c.codec, nil, c.src, size); err == nil {
					t.Errorf("%d bytes for %d", len(got), size)
				}
			}
		})
	}
}
