package filters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
)

// Codings of a chunk.
const (
	codingRaw  = 0
	codingZstd = 1
)

// packer is a chunk on its way to the file.
type packer struct {
	raw    []byte
	sum    uint64 // of raw
	coding byte
	packed []byte // raw compressed with zstd, if that is the coding
	huff   huff0.Scratch
}

// newZstd returns an encoder for all goroutines that work on chunks. It allocates
// their tables, 4 MiB each, on first use.
func newZstd() (*zstd.Encoder, error) {
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(workers()),
		zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(chunkBytes),
		zstd.WithSingleSegment(true),
		zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return enc, nil
}

// stored returns the bytes to write to the file.
func (p *packer) stored() []byte {
	if p.coding == codingZstd {
		return p.packed
	}
	return p.raw
}

// pack reads and compresses a chunk. It stays raw unless zstd saves more than 1/16:
// a smaller saving is not worth the decompression, and raw chunks can be mapped.
// enc is nil if all chunks stay raw.
func (p *packer) pack(s *source, enc *zstd.Encoder, i int) (err error) {
	p.raw = s.chunk(p.raw[:0], i)
	p.sum = xxh3.Hash(p.raw)
	p.coding = codingRaw
	if enc == nil {
		return nil
	}
	how := general
	if s.kind != KindExact && s.part == nil {
		how = methodFor(p.raw)
	}
	if s.kind == KindCounting && how == none { // counters have fewer values than bits in them suggest
		how = literals
	}
	switch how {
	case none:
		return nil
	case literals:
		p.packed, err = appendLiterals(p.packed[:0], p.raw, &p.huff)
	case general:
		p.packed = enc.EncodeAll(p.raw, p.packed[:0])
	}
	if len(p.packed) < len(p.raw)-len(p.raw)/16 {
		p.coding = codingZstd
	}
	return err
}

// method is a way to compress the bits of a Bloom filter. Set bits are random, so
// their share determines the entropy and thereby the possible saving. The method
// depends on the bytes alone.
type method int

const (
	none     method = iota // not at all
	literals               // zstd without a search for repetitions, which random bits do not have
	general                // full zstd
)

// Shares of set or unset bits, whichever are rarer, in 256ths of all bits.
const (
	// Independent bits with this share have an entropy of 0.9387: no code saves
	// 1/16 of them.
	denseShare = 91
	// With a smaller share, runs of zero bytes are so long that a code of at least
	// one bit per byte loses to one with repetitions.
	literalShare = 3
)

// methodFor examines each page by itself, so that an empty and an overfull half do
// not pass for two good ones.
func methodFor(chunk []byte) method {
	dense, total := true, 0
	for page := chunk; len(page) > 0; {
		n := min(len(page), pageBytes)
		set := ones(page[:n])
		set = min(set, 8*n-set)
		dense = dense && set*256 >= denseShare*n*8
		total += set
		page = page[n:]
	}
	switch {
	case dense:
		return none
	case len(chunk) >= pageBytes && total*256 >= literalShare*len(chunk)*8:
		return literals
	}
	return general // or too short for a table of its own
}

// ones counts the set bits in whole words, which blocks consist of.
func ones(b []byte) (n int) {
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b))
	}
	return n
}

// Parts of a zstd frame (RFC 8878, section 3.1.1).
const (
	zstdMagic       = 0xfd2fb528
	zstdHead        = 0xa0 // single segment, followed by its size as a u32; no checksum
	zstdBlockBytes  = 128 << 10
	blockRaw        = 0
	blockRLE        = 1
	blockCompressed = 2
	// A section of Huffman-coded literals in four streams, with sizes of 18 bits.
	literalsHuffman = 2 | 3<<2
	literalsHead    = 5
)

// appendLiterals appends a zstd frame of src whose blocks contain only
// Huffman-coded literals. For random bits it is smaller than the output of an
// encoder that looks for repetitions, and takes a fraction of the time.
func appendLiterals(dst, src []byte, huff *huff0.Scratch) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(dst, zstdMagic)
	dst = append(dst, zstdHead)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(src)))
	huff.Reuse = huff0.ReusePolicyNone // each block has its own table
	for len(src) > 0 {
		block := src[:min(len(src), zstdBlockBytes)]
		src = src[len(block):]
		coded, _, err := huff0.Compress4X(block, huff)
		switch {
		case errors.Is(err, huff0.ErrIncompressible):
			dst = appendBlockHead(dst, len(src) == 0, blockRaw, len(block))
			dst = append(dst, block...)
		case errors.Is(err, huff0.ErrUseRLE):
			dst = appendBlockHead(dst, len(src) == 0, blockRLE, len(block))
			dst = append(dst, block[0])
		case err != nil:
			return dst, fmt.Errorf("zstd: %w", err)
		default:
			dst = appendBlockHead(dst, len(src) == 0, blockCompressed, literalsHead+len(coded)+1)
			head := literalsHuffman | uint64(len(block))<<4 | uint64(len(coded))<<22
			dst = append(dst, byte(head), byte(head>>8), byte(head>>16), byte(head>>24), byte(head>>32))
			dst = append(dst, coded...)
			dst = append(dst, 0) // no sequences
		}
	}
	return dst, nil
}

func appendBlockHead(dst []byte, last bool, kind, size int) []byte {
	head := kind<<1 | size<<3
	if last {
		head |= 1
	}
	return append(dst, byte(head), byte(head>>8), byte(head>>16))
}
