package parquet

import (
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/parquet-go/parquet-go/format"
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
	at := f.at(rowGroup, leaf)
	defer panics.Recover(at, &err)
	md := &f.Metadata.RowGroups[rowGroup].Columns[leaf].MetaData
	pos := md.BloomFilterOffset
	if pos == 0 {
		return nil, false, nil
	}
	if pos < int64(len(magic)) || pos >= f.footerPos {
		return nil, false, fault.Corrupt(at, "the Bloom filter lies outside the file's data")
	}
	head := make([]byte, min(bloomHeaderSize, f.footerPos-pos))
	if err := f.readFull(head, pos); err != nil {
		return nil, false, err
	}
	var h format.BloomFilterHeader
	n, err := decodeThrift(head, &h)
	if err != nil {
		return nil, false, &fault.Error{Kind: fault.ErrCorrupt, At: at, What: "no valid header of the Bloom filter", Err: err}
	}
	if err := checkBloomHeader(at, &h); err != nil {
		return nil, false, err
	}
	size := int64(h.NumBytes)
	if size > f.footerPos-pos-int64(n) || md.BloomFilterLength > 0 && int64(md.BloomFilterLength) != size+int64(n) {
		return nil, false, fault.Corrupt(at, "the Bloom filter's size, %d bytes, does not fit", size)
	}
	bits = make([]byte, size)
	if err := f.readFull(bits, pos+int64(n)); err != nil {
		return nil, false, err
	}
	return bits, true, nil
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
