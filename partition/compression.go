package partition

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Compression is the compression of a Parquet file.
type Compression struct {
	Codec string // "snappy", "zstd", "gzip", "brotli", "lz4" (the format's LZ4_RAW) or "none"
	Level int    // in the codec's own range; 0: a fast default (1 for zstd)
}

// codecs are the codecs that can be written, with their highest level.
var codecs = map[string]struct {
	codec format.CompressionCodec
	level int
}{
	"none": {format.Uncompressed, 0}, "snappy": {format.Snappy, 0}, "gzip": {format.Gzip, 9},
	"brotli": {format.Brotli, 11}, "zstd": {format.Zstd, 22}, "lz4": {format.Lz4Raw, 9},
}

// ParseCompression reads a codec and its level, as in "zstd:3" or "snappy".
func ParseCompression(s string) (Compression, error) {
	name, level, leveled := strings.Cut(s, ":")
	codec, ok := codecs[name]
	if !ok {
		return Compression{}, fmt.Errorf("compression %q: want snappy, zstd, gzip, brotli, lz4 or none", s)
	}
	c := Compression{Codec: name}
	if !leveled {
		return c, nil
	}
	var err error
	if c.Level, err = strconv.Atoi(level); err == nil && c.Level >= 1 && c.Level <= codec.level {
		return c, nil
	}
	if codec.level == 0 {
		return c, fmt.Errorf("compression %q: %s has no levels: want %s", s, name, name)
	}
	return c, fmt.Errorf("compression %q: want a level of %s from 1 to %d", s, name, codec.level)
}

// ofPages returns the compression in the form that package parquet takes.
func (c Compression) ofPages() (parquet.Compression, error) {
	codec, ok := codecs[c.Codec]
	if !ok {
		return parquet.Compression{}, fault.Unsupported(fault.At{}, "compression codec %q for Parquet", c.Codec)
	}
	return parquet.Compression{Codec: codec.codec, Level: c.Level}, nil
}
