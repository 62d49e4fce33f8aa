package enc

import (
	"bytes"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

const (
	defaultBrotli = 3
	zstdWindow    = 1 << 20 // about a page
)

// Check returns an error if there is no such codec to write with, or no such level.
func (c Compression) Check() error {
	ok := c.Level == 0
	switch c.Codec {
	case format.Uncompressed, format.Snappy:
	case format.Gzip:
		ok = ok || c.Level >= gzip.BestSpeed && c.Level <= gzip.BestCompression
	case format.Zstd:
		ok = ok || c.Level >= 1 && c.Level <= 22
	case format.Brotli:
		ok = ok || c.Level >= 1 && c.Level <= brotli.BestCompression
	case format.Lz4Raw:
		ok = ok || c.Level >= 1 && c.Level <= 9
	default:
		return faults.Unsupported(fault.At{}, "writing with compression codec %v", c.Codec)
	}
	if !ok {
		return fmt.Errorf("compression level %d of codec %v", c.Level, c.Codec)
	}
	return nil
}

// Compressor holds encoder state that is reused between pages of one Compression. The
// zero value is ready to use.
// It is not safe for concurrent use.
type Compressor struct {
	zstd   *zstd.Encoder
	gzip   *gzip.Writer
	brotli *brotli.Writer
	lz4    lz4.Compressor
	lz4HC  lz4.CompressorHC
	out    []byte // memory of the result
}

// Trim frees the result's memory if it is more than most bytes.
func (z *Compressor) Trim(most int) {
	if cap(z.out) > most {
		z.out = nil
	}
}

// Compress returns src compressed, valid until the next call, or src itself.
func (z *Compressor) Compress(src []byte, c Compression) ([]byte, error) {
	var err error
	out := z.out[:0]
	switch c.Codec {
	case format.Uncompressed:
		return src, nil
	case format.Snappy:
		out = GrowTo(out, s2.MaxEncodedLen(len(src)))
		out = s2.EncodeSnappy(out, src)
	case format.Zstd:
		if z.zstd == nil {
			if z.zstd, err = newZstd(c.Level); err != nil {
				return nil, err
			}
		}
		out = z.zstd.EncodeAll(src, out)
	case format.Lz4Raw:
		out, err = z.lz4Raw(GrowTo(out, lz4.CompressBlockBound(len(src))), src, c.Level)
	case format.Gzip, format.Brotli:
		out, err = z.stream(out, src, c)
	default:
		err = ErrCodec
	}
	z.out = out
	return out, err
}

func newZstd(level int) (*zstd.Encoder, error) {
	l := zstd.SpeedFastest
	if level > 0 {
		l = zstd.EncoderLevelFromZstd(level)
	}
	// The page header already has a checksum.
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true))
}

func (z *Compressor) lz4Raw(dst, src []byte, level int) ([]byte, error) {
	var n int
	var err error
	if level > 0 {
		z.lz4HC.Level = lz4.Level1 << (level - 1)
		n, err = z.lz4HC.CompressBlock(src, dst)
	} else {
		n, err = z.lz4.CompressBlock(src, dst)
	}
	if err == nil && n == 0 {
		err = io.ErrShortBuffer
	}
	return dst[:n], err
}

// stream compresses with a codec that is an io.Writer.
func (z *Compressor) stream(dst, src []byte, c Compression) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	var w io.WriteCloser
	switch {
	case c.Codec == format.Gzip && z.gzip == nil:
		level := gzip.DefaultCompression
		if c.Level > 0 {
			level = c.Level
		}
		var err error
		if z.gzip, err = gzip.NewWriterLevel(b, level); err != nil {
			return nil, err
		}
		w = z.gzip
	case c.Codec == format.Gzip:
		z.gzip.Reset(b)
		w = z.gzip
	case z.brotli == nil:
		level := defaultBrotli
		if c.Level > 0 {
			level = c.Level
		}
		z.brotli = brotli.NewWriterLevel(b, level)
		w = z.brotli
	default:
		z.brotli.Reset(b)
		w = z.brotli
	}
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Compression is a codec with a level in the codec's own scale. Level 0 is a fast
// default.
type Compression struct {
	Codec format.CompressionCodec
	Level int
}
