package output

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// compression is that of Parquet files.
type compression struct {
	codec string // a key of codecs
	level int    // in the codec's own scale; 0: a fast default, for zstd 1
}

// codecs are the codecs that can be written, with their highest level.
var codecs = map[string]struct {
	codec format.CompressionCodec
	level int
}{
	"none": {format.Uncompressed, 0}, "snappy": {format.Snappy, 0}, "gzip": {format.Gzip, 9},
	"brotli": {format.Brotli, 11}, "zstd": {format.Zstd, 22}, "lz4": {format.Lz4Raw, 9},
}

// CheckCompression returns an error unless s is a value of [Output.Compression].
func CheckCompression(s string) error {
	_, err := parseCompression(s)
	return err
}

func parseCompression(s string) (compression, error) {
	name, level, leveled := strings.Cut(s, ":")
	codec, ok := codecs[name]
	if !ok {
		return compression{}, fmt.Errorf("compression %q: want snappy, zstd, gzip, brotli, lz4 or none", s)
	}
	c := compression{codec: name}
	if !leveled {
		return c, nil
	}
	var err error
	if c.level, err = strconv.Atoi(level); err == nil && c.level >= 1 && c.level <= codec.level {
		return c, nil
	}
	if codec.level == 0 {
		return c, fmt.Errorf("compression %q: %s has no levels: want %s", s, name, name)
	}
	return c, fmt.Errorf("compression %q: want a level of %s from 1 to %d", s, name, codec.level)
}

// ofPages is the compression as the writer of pages wants it.
func (c compression) ofPages() enc.Compression {
	return enc.Compression{Codec: codecs[c.codec].codec, Level: c.level}
}
