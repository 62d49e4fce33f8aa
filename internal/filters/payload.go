package filters

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// unpacker is a chunk on its way from the file.
type unpacker struct {
	stored []byte // padding and chunk as in the file
	raw    []byte // the chunk: in stored or in one of the buffers
	read   []byte // buffer for reads
	unzip  []byte // buffer for decompression
}

// unpack reads chunk i and verifies it.
func (u *unpacker) unpack(h *Header, dec *zstd.Decoder, i int) (err error) {
	c, from := h.chunks[i], int64(len(h.head))
	if i > 0 {
		from = h.chunks[i-1].end
	}
	if u.stored, err = h.fetch(&u.read, from, c.end); err != nil {
		return err
	}
	broken := func(what, want string, got any) *problem { return bad(fmt.Sprintf("chunk %d: %s", i, what), want, got) }
	if !isZero(u.stored[:c.start-from]) {
		return broken("padding", "zero bytes", "others").inFile(h.name)
	}
	u.raw = u.stored[c.start-from:]
	if c.coding == codingZstd {
		size := h.meta.chunkSize(i)
		u.unzip = grow(u.unzip, size)
		raw, err := dec.DecodeAll(u.raw, u.unzip[:0:size])
		if err == nil && len(raw) != size {
			return broken("size", fmt.Sprint(size), len(raw)).inFile(h.name)
		}
		if err != nil {
			p := broken("zstd", "", "")
			p.err = err
			return p.inFile(h.name)
		}
		u.raw = raw
	}
	if got := xxh3.Hash(u.raw); got != c.sum {
		return broken("checksum", hex64(c.sum), hex64(got)).inFile(h.name)
	}
	return nil
}

// fetch returns bytes of the file: in place if it is mapped, else read into buf.
func (h *Header) fetch(buf *[]byte, from, to int64) ([]byte, error) {
	if h.mapped != nil {
		return h.mapped[from:to], nil
	}
	*buf = grow(*buf, int(to-from))
	return *buf, h.readAt(*buf, from)
}

// grow returns a slice of n bytes, using b's memory if it is large enough.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// newUnzip returns a decoder for all goroutines that work on chunks, or nil if no
// chunk needs one.
func newUnzip(files []*Header) (*zstd.Decoder, error) {
	for _, h := range files {
		if h.Contiguous {
			continue
		}
		dec, err := zstd.NewReader(nil,
			zstd.WithDecoderConcurrency(workers()),
			zstd.WithDecoderMaxWindow(chunkBytes),
			zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return dec, nil
	}
	return nil, nil
}

// take has the functions that readPayloads calls with chunks, whose memory is
// reused. Either may be nil.
type take struct {
	any     func(i int, raw []byte) error // called with chunk i of a file; concurrently
	ordered func(raw []byte)              // called with all chunks in order
}

// readPayloads reads the payloads of files with equally many chunks and passes
// every verified chunk to t: first chunk 0 of each file, then chunk 1, and so on,
// so that the blocks they are merged into stay in the processor's cache. At the end
// of each file it verifies the checksum over all.
func readPayloads(ctx context.Context, files []*Header, t take) error {
	dec, err := newUnzip(files)
	if err != nil {
		return err
	}
	if dec != nil {
		defer dec.Close()
	}
	chunks := len(files[0].chunks)
	unpack := func(u *unpacker, i int) error {
		h, i := files[i%len(files)], i/len(files)
		return h.guard(func() error {
			err := u.unpack(h, dec, i)
			if err == nil && t.any != nil {
				err = t.any(i, u.raw)
			}
			return err
		})
	}
	sums := make([]xxh3.Hasher, len(files))
	inTurn := func(u *unpacker, i int) error {
		h, sum, i := files[i%len(files)], &sums[i%len(files)], i/len(files)
		return h.guard(func() error {
			if i == 0 {
				sum.Write(h.head)
			}
			sum.Write(u.stored)
			if t.ordered != nil {
				t.ordered(u.raw)
			}
			if i == chunks-1 {
				return h.verifyEnd(sum)
			}
			return nil
		})
	}
	return inOrder(ctx, chunks*len(files), unpack, inTurn)
}

// verifyEnd verifies the file after the last chunk, given the checksum of
// everything before.
func (h *Header) verifyEnd(sum *xxh3.Hasher) error {
	var buf []byte
	pad, err := h.fetch(&buf, h.chunks[len(h.chunks)-1].end, h.FileBytes-int64(len(h.tail)))
	if err != nil {
		return err
	}
	if !isZero(pad) {
		return bad("padding before section chunks", "zero bytes", "others").inFile(h.name)
	}
	sum.Write(pad)
	last := len(h.tail) - 8
	sum.Write(h.tail[:last])
	if want, got := binary.LittleEndian.Uint64(h.tail[last:]), sum.Sum64(); want != got {
		return bad("checksum over all", hex64(want), hex64(got)).inFile(h.name)
	}
	return nil
}

// OrInto ORs the payloads of Bloom filters into b, whose parameters must equal the
// files', without another copy in memory. Reading a file into an empty filter and
// merging many into a full one are the same. Each chunk is verified before its bits
// are set. After an error, including the end of ctx, b has some of the files' keys
// and must not be used. OrInto needs less than 32 MiB in addition to b, and 2 KiB
// per file. It reads all files concurrently, a chunk of each in turn.
func OrInto(ctx context.Context, b *bloom.Filter, files ...*Header) error {
	stopped.Needs(ctx, "filters.OrInto")
	if len(files) > 0 && b.Params().Blocks == 0 {
		return errNoPayload()
	}
	for _, h := range files {
		if err := h.decoded(); err != nil {
			return err
		}
		if h.Filter.kind != KindBloom {
			p := bad("payload", KindBloom.String(), h.Filter.kind)
			p.hint = "load the exact filter, and add its members"
			return p.inFile(h.name)
		}
		if err := b.Params().Match(h.Filter.facts.Params); err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
	}
	if len(files) == 0 {
		return nil
	}
	// A filter over memory that is not its own copies it at the first change. Force
	// that now, before several goroutines change it.
	if err := b.OrBlocks(0, nil); err != nil {
		return err
	}
	// Chunks of several files change the same blocks at the same time: chunk i is
	// guarded by a lock.
	var locks [2 * maxWorkers]sync.Mutex
	blocks := chunkBytes / b.Params().Geometry.BlockBytes()
	return readPayloads(ctx, files, take{any: func(i int, raw []byte) error {
		lock := &locks[i%len(locks)]
		lock.Lock()
		defer lock.Unlock()
		return b.OrBlocks(uint64(i)*blocks, raw)
	}})
}

// Verify reads the file once and returns an error unless all of its checksums are
// correct. It does not keep the payload. (Load also checks an exact payload's
// structure.)
func (h *Header) Verify() error {
	if err := h.decoded(); err != nil {
		return err
	}
	if h.Filter.kind == KindCounting {
		return h.counters(context.Background(), func(uint64, []byte) error { return nil })
	}
	return readPayloads(context.Background(), []*Header{h}, take{})
}
