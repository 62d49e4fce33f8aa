package bloom

import (
	"encoding/binary"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// AppendBlocks appends blocks lo to hi (exclusive) to dst, lanes in order, each
// lane little-endian. This is the layout of Parquet's bitset and of the filter
// file. Blocks that the filter does not have are left out.
func (f *Filter) AppendBlocks(dst []byte, lo, hi uint64) []byte {
	n := f.Params().Blocks
	if lo, hi = min(lo, n), min(hi, n); lo >= hi {
		return dst
	}
	w := f.params.Geometry.words()
	words := f.words[lo*w : hi*w]
	if len(words) == 0 {
		return dst
	}
	// All supported machines are little-endian, so words in memory have the file's
	// bytes.
	return append(dst, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)...)
}

// OrBlocks ORs src, in the layout of AppendBlocks, into the filter starting at
// block lo. The same call thus loads a file into an empty filter and merges a file
// into a full one. src must be whole blocks within the filter; otherwise the error
// wraps fault.ErrCorrupt. Calls for different blocks may run concurrently, unless
// the filter is a View, which the first call copies.
func (f *Filter) OrBlocks(lo uint64, src []byte) error {
	if f.blank() {
		return errBlank()
	}
	size := f.params.Geometry.BlockBytes()
	n := uint64(len(src)) / size
	if uint64(len(src))%size != 0 || lo > f.params.Blocks || n > f.params.Blocks-lo {
		return faults.Corrupt(fault.At{}, "%d bytes at block %d do not fit a filter of %d blocks", len(src), lo, f.params.Blocks)
	}
	w := f.params.Geometry.words()
	f.changes()
	words := f.words[lo*w : (lo+n)*w]
	for len(words) >= 4 && len(src) >= 32 {
		words[0] |= binary.LittleEndian.Uint64(src)
		words[1] |= binary.LittleEndian.Uint64(src[8:])
		words[2] |= binary.LittleEndian.Uint64(src[16:])
		words[3] |= binary.LittleEndian.Uint64(src[24:])
		words, src = words[4:], src[32:]
	}
	return nil
}
