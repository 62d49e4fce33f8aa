package main

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	pageSize  = 1 << 20  // size of compressed pages
	readAhead = 16 << 10 // after a page: more than the next page's header needs
)

// totals are the numbers of bytes that were processed.
type totals struct {
	pages, stored, plain, taken, packed int64
}

func (t *totals) add(u totals) {
	t.pages += u.pages
	t.stored += u.stored
	t.plain += u.plain
	t.taken += u.taken
	t.packed += u.packed
}

// worker walks column chunks and reuses its buffers.
type worker struct {
	totals
	share         float64
	stored, plain []byte
	packed        []byte
	pending       map[pageKind][]byte // bytes from pages that are not compressed yet
	seen          func(plain []byte)  // if not nil, receives every page, for tests
	decoder       *zstd.Decoder
	encoder       *zstd.Encoder
}

// pageKind identifies bytes that may share a compressed page.
type pageKind struct {
	column string
	codec  format.CompressionCodec
}

func newWorker(share float64) *worker {
	return &worker{share: share, pending: map[pageKind][]byte{}}
}

// chunk reads a chunk page by page. Each read has the size of the previous page. If
// that is too short, a second read fetches the rest.
func (w *worker) chunk(c chunk) error {
	guess := int64(readAhead)
	for at := c.begin; at < c.end; {
		if err := w.read(c, at, 0, min(guess, c.end-at)); err != nil {
			return err
		}
		var header format.PageHeader
		r := bytes.NewReader(w.stored)
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r)).Decode(&header); err != nil {
			return fmt.Errorf("page header at byte %d: %w", at, err)
		}
		begin := int64(len(w.stored) - r.Len())
		end := begin + int64(header.CompressedPageSize)
		if header.CompressedPageSize < 0 || header.UncompressedPageSize < 0 || at+end > c.end {
			return fmt.Errorf("page at byte %d ends behind its column chunk", at)
		}
		if have := int64(len(w.stored)); have < end {
			if err := w.read(c, at, have, end); err != nil {
				return err
			}
		}
		if err := w.page(c, &header, w.stored[begin:end]); err != nil {
			return fmt.Errorf("page at byte %d: %w", at, err)
		}
		at += end
		guess = end + readAhead
	}
	return nil
}

// read fills w.stored[have:want] from the file at offset at+have.
func (w *worker) read(c chunk, at, have, want int64) error {
	if int64(cap(w.stored)) < want {
		w.stored = append(make([]byte, 0, want+want/4), w.stored[:have]...)
	}
	w.stored = w.stored[:want]
	_, err := c.file.ReadAt(w.stored[have:], at+have)
	return err
}

func (w *worker) page(c chunk, header *format.PageHeader, body []byte) error {
	if header.Type == format.DataPageV2 {
		return fmt.Errorf("data page V2, want V1")
	}
	if err := w.decompress(c.codec, body, int(header.UncompressedPageSize)); err != nil {
		return err
	}
	if len(w.plain) != int(header.UncompressedPageSize) {
		return fmt.Errorf("decompressed to %d bytes, want %d", len(w.plain), header.UncompressedPageSize)
	}
	if w.seen != nil {
		w.seen(w.plain)
	}
	w.pages++
	w.totals.stored += int64(len(body))
	w.totals.plain += int64(len(w.plain))
	if w.share == 0 || header.Type != format.DataPage {
		return nil
	}
	kind := pageKind{c.column, c.codec}
	held := append(w.pending[kind], w.plain[:int(w.share*float64(len(w.plain)))]...)
	for len(held) >= pageSize {
		if err := w.compress(kind, held[:pageSize]); err != nil {
			return err
		}
		held = held[:copy(held, held[pageSize:])]
	}
	w.pending[kind] = held
	return nil
}

func (w *worker) decompress(codec format.CompressionCodec, body []byte, size int) (err error) {
	if cap(w.plain) < size {
		w.plain = make([]byte, 0, size+size/4)
	}
	switch codec {
	case format.Uncompressed:
		w.plain = append(w.plain[:0], body...)
	case format.Snappy:
		w.plain, err = s2.Decode(w.plain[:cap(w.plain)], body)
	case format.Zstd:
		if w.decoder == nil {
			if w.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); err != nil {
				return err
			}
		}
		w.plain, err = w.decoder.DecodeAll(body, w.plain[:0])
	default:
		err = fmt.Errorf("codec %s, want snappy, zstd or none", codec)
	}
	return err
}

// compress compresses a page with a codec at its fastest level.
func (w *worker) compress(kind pageKind, page []byte) (err error) {
	switch kind.codec {
	case format.Snappy:
		w.packed = s2.EncodeSnappy(w.packed[:cap(w.packed)], page)
	case format.Zstd:
		if w.encoder == nil {
			w.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
			if err != nil {
				return err
			}
		}
		w.packed = w.encoder.EncodeAll(page, w.packed[:0])
	}
	w.taken += int64(len(page))
	w.totals.packed += int64(len(w.packed))
	return nil
}

// flush compresses the remaining bytes, which are less than a page.
func (w *worker) flush() error {
	for kind, page := range w.pending {
		if len(page) == 0 {
			continue
		}
		if err := w.compress(kind, page); err != nil {
			return err
		}
	}
	return nil
}
