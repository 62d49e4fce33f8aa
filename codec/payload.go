package codec

import (
	"encoding/binary"
	"fmt"
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"
)

// unpacker reads one chunk at a time.
type unpacker struct {
	zstd   *zstd.Decoder // nil where no chunk needs it
	stored []byte        // padding and chunk, as in the file
	buf    []byte
	raw    []byte // the chunk: in stored or in buf
}

func (h *Header) newUnpackers() ([]*unpacker, error) {
	us := make([]*unpacker, min(len(h.chunks), runtime.GOMAXPROCS(0)))
	for i := range us {
		us[i] = new(unpacker)
		if h.Contiguous {
			continue
		}
		dec, err := zstd.NewReader(nil,
			zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(chunkBytes),
			zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		us[i].zstd = dec
	}
	return us, nil
}

// read reads chunk i and verifies it.
func (u *unpacker) read(h *Header, i int) error {
	c, from := h.chunks[i], int64(len(h.head))
	if i > 0 {
		from = h.chunks[i-1].end
	}
	u.stored = grow(u.stored, int(c.end-from))
	if err := h.readAt(u.stored, from); err != nil {
		return err
	}
	name := fmt.Sprintf("chunk %d: ", i)
	if !isZero(u.stored[:c.start-from]) {
		return bad(name+"padding", "zero bytes", "others").inFile(h.name)
	}
	u.raw = u.stored[c.start-from:]
	if c.coding == codingZstd {
		size := h.meta.chunkSize(i)
		u.buf = grow(u.buf, size)
		raw, err := u.zstd.DecodeAll(u.raw, u.buf[:0:size])
		if err == nil && len(raw) != size {
			return bad(name+"size", fmt.Sprint(size), len(raw)).inFile(h.name)
		}
		if err != nil {
			p := bad(name+"zstd", "", "")
			p.err = err
			return p.inFile(h.name)
		}
		u.raw = raw
	}
	if got := xxh3.Hash(u.raw); got != c.sum {
		return bad(name+"checksum", hex64(c.sum), hex64(got)).inFile(h.name)
	}
	return nil
}

// grow returns a slice of n bytes in b's memory if that is enough.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// eachChunk gives the chunks to sink, in order and verified; the slice is
// reused. As many as there are processors are read at a time. At the end it
// verifies the checksum over all.
func (h *Header) eachChunk(sink func(i int, raw []byte) error) error {
	us, err := h.newUnpackers()
	if err != nil {
		return err
	}
	var sum xxh3.Hasher
	sum.Write(h.head)
	for lo := 0; lo < len(h.chunks); lo += len(us) {
		group := us[:min(len(us), len(h.chunks)-lo)]
		var eg errgroup.Group
		for i, u := range group {
			eg.Go(func() error { return u.read(h, lo+i) })
		}
		if err := eg.Wait(); err != nil {
			return err
		}
		for i, u := range group {
			sum.Write(u.stored)
			if err := sink(lo+i, u.raw); err != nil {
				return err
			}
		}
	}
	if err := h.readPadding(&sum); err != nil {
		return err
	}
	last := len(h.tail) - 8
	sum.Write(h.tail[:last])
	if want, got := binary.LittleEndian.Uint64(h.tail[last:]), sum.Sum64(); want != got {
		return bad("checksum over all", hex64(want), hex64(got)).inFile(h.name)
	}
	return nil
}

// readPadding reads the bytes between the last chunk and the chunk table.
func (h *Header) readPadding(sum *xxh3.Hasher) error {
	from := h.chunks[len(h.chunks)-1].end
	pad := make([]byte, h.FileBytes-int64(len(h.tail))-from)
	if err := h.readAt(pad, from); err != nil {
		return err
	}
	if !isZero(pad) {
		return bad("padding before section chunks", "zero bytes", "others").inFile(h.name)
	}
	sum.Write(pad)
	return nil
}
