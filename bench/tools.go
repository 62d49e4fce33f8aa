package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sync/errgroup"
)

// tools are the parts of this program that run as processes of their own.
var tools = map[string]func(args []string) error{
	"generate": generate, "decompress": runDecompress, "gunzip": runGunzip, "filter": runFilter,
}

// runGunzip decompresses a file, which is the least work of a build from it.
func runGunzip(args []string) (err error) {
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, struct{ io.Reader }{z})
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: nothing in it: %w", args[0], gzip.ErrHeader)
	}
	return err
}

// chunk is a column chunk: bytes [begin, end) of a file.
type chunk struct {
	path       string
	codec      format.CompressionCodec
	begin, end int64
}

// runDecompress reads and decompresses every page of Parquet files, and discards it, which
// is the least work of a scan that cannot skip pages: THREADS COLUMNS FILE|DIRECTORY.
func runDecompress(args []string) error {
	threads, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	chunks, err := chunksBelow(args[2], args[1])
	if err != nil {
		return err
	}
	var next, pages atomic.Int64
	var group errgroup.Group
	for range threads {
		group.Go(func() error {
			var d decompressor
			for {
				n := int(next.Add(1)) - 1
				if n >= len(chunks) {
					pages.Add(d.pages)
					return nil
				}
				if err := d.chunk(chunks[n]); err != nil {
					return fmt.Errorf("%s: chunk at byte %d: %w", chunks[n].path, chunks[n].begin, err)
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if pages.Load() < int64(len(chunks)) || len(chunks) == 0 {
		return fmt.Errorf("%d pages in %d chunks", pages.Load(), len(chunks))
	}
	return nil
}

// chunksBelow returns the chunks of a file, or of the files below a directory. columns are
// separated by commas; none: all.
func chunksBelow(root, columns string) (chunks []chunk, err error) {
	wanted := strings.Split(columns, ",")
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		meta, err := metadataOf(path)
		if err != nil {
			return err
		}
		for _, group := range meta.RowGroups {
			for _, column := range group.Columns {
				m := column.MetaData
				if columns != "" && !slices.Contains(wanted, strings.Join(m.PathInSchema, ".")) {
					continue
				}
				begin := m.DataPageOffset
				if m.DictionaryPageOffset > 0 {
					begin = min(begin, m.DictionaryPageOffset)
				}
				chunks = append(chunks, chunk{path, m.Codec, begin, begin + m.TotalCompressedSize})
			}
		}
		return nil
	})
	return chunks, err
}

func metadataOf(path string) (meta *format.FileMetaData, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p.Metadata(), nil
}

// decompressor reads chunks, and reuses its buffers.
type decompressor struct {
	stored, plain []byte
	zstd          *zstd.Decoder
	pages         int64
}

func (d *decompressor) chunk(c chunk) (err error) {
	f, err := os.Open(c.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size := int(c.end - c.begin)
	d.stored = slices.Grow(d.stored[:0], size)[:size]
	if _, err := f.ReadAt(d.stored, c.begin); err != nil {
		return err
	}
	for rest := d.stored; len(rest) > 0; d.pages++ {
		var header format.PageHeader
		r := bytes.NewReader(rest)
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r)).Decode(&header); err != nil {
			return err
		}
		body := rest[len(rest)-r.Len():]
		if header.CompressedPageSize < 0 || int(header.CompressedPageSize) > len(body) || header.Type == format.DataPageV2 {
			return errors.New("a page that ends after its chunk, or of version 2")
		}
		if err := d.page(c.codec, body[:header.CompressedPageSize]); err != nil {
			return err
		}
		if len(d.plain) != int(header.UncompressedPageSize) {
			return fmt.Errorf("decompressed to %d bytes, want %d", len(d.plain), header.UncompressedPageSize)
		}
		rest = body[header.CompressedPageSize:]
	}
	return nil
}

func (d *decompressor) page(codec format.CompressionCodec, body []byte) (err error) {
	switch codec {
	case format.Snappy:
		d.plain, err = s2.Decode(d.plain[:cap(d.plain)], body)
	case format.Zstd:
		if d.zstd == nil {
			if d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); err != nil {
				return err
			}
		}
		d.plain, err = d.zstd.DecodeAll(body, d.plain[:0])
	default:
		err = fmt.Errorf("codec %s, want snappy or zstd", codec)
	}
	return err
}

// littleEndian returns an integer as the bytes that filters hash.
func littleEndian(x *[8]byte, v int64) []byte {
	binary.LittleEndian.PutUint64(x[:], uint64(v))
	return x[:]
}
