package parquet

import (
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

const (
	bloomBlock      = 32 // bytes
	maxBloomSize    = 128 << 20
	bloomHeaderSize = 256 // more than the four fields of a header take
)

// BloomFilter returns the bitset of a column chunk's Parquet Bloom filter: N blocks
// of 32 bytes, each eight little-endian 32-bit lanes, keyed by XXH64 with seed 0 of
// the PLAIN-encoded value (a byte array without its length). ok is false if the
// chunk has none. rowGroup and leaf count from 0.
func (f *File) BloomFilter(rowGroup, leaf int) (bits []byte, ok bool, err error) {
	defer panics.Recover(f.at(rowGroup, leaf), &err)
	pos, head, size, err := f.findBloom(rowGroup, leaf)
	if err != nil || size == 0 {
		return nil, false, err
	}
	bits = make([]byte, size)
	if err := f.readFull(bits, pos+head); err != nil {
		return nil, false, err
	}
	return bits, true, nil
}

// findBloom returns the position of a column chunk's Bloom filter and the bytes of
// its header and of its bitset, 0 if the chunk has none.
func (f *File) findBloom(rowGroup, leaf int) (pos, head, size int64, err error) {
	at := f.at(rowGroup, leaf)
	md := &f.Metadata.RowGroups[rowGroup].Columns[leaf].MetaData
	if pos = md.BloomFilterOffset; pos == 0 {
		return 0, 0, 0, nil
	}
	if pos < int64(len(magic)) || pos >= f.footerPos {
		return 0, 0, 0, fault.Corrupt(at, "the Bloom filter lies outside the file's data")
	}
	b := make([]byte, min(bloomHeaderSize, f.footerPos-pos))
	if err := f.readFull(b, pos); err != nil {
		return 0, 0, 0, err
	}
	var h format.BloomFilterHeader
	n, err := meta.Decode(b, &h)
	if err != nil {
		return 0, 0, 0, &fault.Error{Kind: fault.ErrCorrupt, At: at, What: "no valid header of the Bloom filter", Err: err}
	}
	if err := checkBloomHeader(at, &h); err != nil {
		return 0, 0, 0, err
	}
	head, size = int64(n), int64(h.NumBytes)
	if size > f.footerPos-pos-head || md.BloomFilterLength > 0 && int64(md.BloomFilterLength) != size+head {
		return 0, 0, 0, fault.Corrupt(at, "the Bloom filter's size, %d bytes, does not fit", size)
	}
	return pos, head, size, nil
}

func checkBloomHeader(at fault.At, h *format.BloomFilterHeader) error {
	if _, ok := h.Algorithm.Value.(*format.SplitBlockAlgorithm); !ok {
		return fault.Unsupported(at, "a Bloom filter of an unknown algorithm")
	}
	if _, ok := h.Hash.Value.(*format.XxHash); !ok {
		return fault.Unsupported(at, "a Bloom filter of an unknown hash")
	}
	if _, ok := h.Compression.Value.(*format.BloomFilterUncompressed); !ok {
		return fault.Unsupported(at, "a compressed Bloom filter")
	}
	switch {
	case h.NumBytes <= 0 || h.NumBytes%bloomBlock != 0:
		return fault.Corrupt(at, "a Bloom filter of %d bytes", h.NumBytes)
	case h.NumBytes > maxBloomSize:
		return fault.Unsupported(at, "a Bloom filter of %d bytes", h.NumBytes)
	}
	return nil
}
