package enc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/bloomjoin/bloomjoin/internal/snappy"
	bloomzstd "github.com/bloomjoin/bloomjoin/internal/zstd"
)

// Decompressor holds decoder state that is reused between pages. It is not safe for
// concurrent use.
type Decompressor struct {
	large  bloomzstd.Decoder // decodes most zstd; zstd decodes the rest, and finds the errors
	zstd   *zstd.Decoder
	gzip   *gzip.Reader
	brotli *brotli.Reader
	lz4    *lz4.Reader
	src    bytes.Reader // input of the stream decoders
}

// maxRatio returns an upper bound, with a margin, on the bytes that a compressed
// byte can expand to; 0 if the codec has no bound. It prevents large allocations
// for tiny pages.
func maxRatio(codec format.CompressionCodec) int64 {
	switch codec {
	case format.Uncompressed:
		return 1
	case format.Snappy:
		return 64
	case format.Gzip:
		return 1100
	case format.Lz4, format.Lz4Raw:
		return 256
	}
	return 0
}

// Plausible reports whether the compressed bytes can expand to size bytes.
func Plausible(codec format.CompressionCodec, compressed, size int64) bool {
	r := maxRatio(codec)
	return r == 0 || size <= compressed*r+64
}

// Decompress returns src decompressed, which must be size bytes. The result is in
// dst's memory if that is large enough, or src itself if nothing is compressed.
func (d *Decompressor) Decompress(codec format.CompressionCodec, dst, src []byte, size int) ([]byte, error) {
	if codec == format.Uncompressed {
		if len(src) != size {
			return nil, errSize
		}
		return src, nil
	}
	if size == 0 && len(src) == 0 {
		return dst[:0], nil // some writers store nothing at all for an empty page
	}
	if cap(dst) < max(size, 1) { // never nil: lz4's assembly takes the slice's address
		dst = make([]byte, size, max(size, 64))
	}
	dst = dst[:size]
	n := size
	var err error
	switch codec {
	case format.Snappy:
		err = snappy.Decode(dst, src)
	case format.Gzip:
		n, err = d.gunzip(dst, src)
	case format.Zstd:
		n, err = d.unzstd(dst, src)
	case format.Brotli:
		n, err = d.unbrotli(dst, src)
	case format.Lz4Raw:
		n, err = lz4.UncompressBlock(src, dst)
	case format.Lz4:
		n, err = d.unlz4(dst, src)
	default:
		return nil, ErrCodec
	}
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, errSize
	}
	return dst, nil
}

// DecompressPart returns the first need bytes of what Decompress would return. It may not read,
// and then does not check, the rest of src.
func (d *Decompressor) DecompressPart(codec format.CompressionCodec, dst, src []byte, size, need int) ([]byte, error) {
	if codec != format.Zstd || need > size/4*3 { // a stream takes longer
		out, err := d.Decompress(codec, dst, src, size)
		return out[:min(need, len(out))], err
	}
	z, err := d.zstdDecoder()
	if err != nil {
		return nil, err
	}
	d.src.Reset(src)
	if err := z.Reset(&d.src); err != nil {
		return nil, err
	}
	dst = Reuse(dst, need)
	_, err = io.ReadFull(z, dst)
	return dst, errors.Join(err, z.Reset(nil)) // otherwise the next page waits for this one
}

func (d *Decompressor) gunzip(dst, src []byte) (int, error) {
	d.src.Reset(src)
	if d.gzip == nil {
		z, err := gzip.NewReader(&d.src)
		if err != nil {
			return 0, err
		}
		d.gzip = z
	} else if err := d.gzip.Reset(&d.src); err != nil {
		return 0, err
	}
	return readExactly(d.gzip, dst) // concatenated gzip members are all read
}

func (d *Decompressor) unbrotli(dst, src []byte) (int, error) {
	d.src.Reset(src)
	if d.brotli == nil {
		d.brotli = brotli.NewReader(&d.src)
	} else if err := d.brotli.Reset(&d.src); err != nil {
		return 0, err
	}
	return readExactly(d.brotli, dst)
}

func (d *Decompressor) unzstd(dst, src []byte) (int, error) {
	if d.large.Decode(dst, src) {
		return len(dst), nil
	}
	z, err := d.zstdDecoder()
	if err != nil {
		return 0, err
	}
	out, err := z.DecodeAll(src, dst[:0:len(dst)])
	return len(out), err
}

func (d *Decompressor) zstdDecoder() (_ *zstd.Decoder, err error) {
	if d.zstd == nil {
		d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(MaxPageSize), zstd.WithDecodeAllCapLimit(true))
	}
	return d.zstd, err
}

// Close frees the decoders' memory.
func (d *Decompressor) Close() {
	if d.zstd != nil {
		d.zstd.Close()
		d.zstd = nil
	}
}

// readExactly fills dst from r and checks that r ends there.
func readExactly(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	var one [1]byte
	for {
		switch m, err := r.Read(one[:]); {
		case m > 0:
			return n, errSize
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

// unlz4 decodes the deprecated LZ4 codec. Its framing was never specified: it is
// Hadoop's (groups of big-endian lengths, uncompressed and then compressed, before
// each block), an LZ4 frame, or a single bare block.
func (d *Decompressor) unlz4(dst, src []byte) (int, error) {
	if n, ok := lz4Hadoop(dst, src); ok {
		return n, nil
	}
	if len(src) >= 4 && binary.LittleEndian.Uint32(src) == 0x184D2204 {
		d.src.Reset(src)
		if d.lz4 == nil {
			d.lz4 = lz4.NewReader(&d.src)
		} else {
			d.lz4.Reset(&d.src)
		}
		return readExactly(d.lz4, dst)
	}
	n, err := lz4.UncompressBlock(src, dst)
	if err != nil {
		return 0, fmt.Errorf("neither Hadoop's LZ4 framing, nor a frame, nor a block: %w", err)
	}
	return n, nil
}

func lz4Hadoop(dst, src []byte) (int, bool) {
	out := 0
	for len(src) > 0 {
		if len(src) < 8 {
			return 0, false
		}
		want, have := binary.BigEndian.Uint32(src), binary.BigEndian.Uint32(src[4:])
		src = src[8:]
		if uint64(want) > uint64(len(dst)-out) || uint64(have) > uint64(len(src)) {
			return 0, false
		}
		n, err := lz4.UncompressBlock(src[:have], dst[out:out+int(want)])
		if err != nil || n != int(want) {
			return 0, false
		}
		out += n
		src = src[have:]
	}
	return out, out == len(dst)
}
