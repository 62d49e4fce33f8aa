package keyindex

import (
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// collector collects the distinct keys of a file or a row group, and makes a filter of exactly
// the blocks that they need.
type collector struct {
	file   string
	fpr    float64
	memory int64 // 0: no bound
	share  int64 // of the memory: hashes may take 1/share, a filter as much
	hashes []uint64
	sorted int // the first ones are sorted and distinct
}

const fewHashes = 1 << 16

func (b *building) collector(file string) *collector {
	// Hashes and a filter, of a file and a row group.
	return &collector{file: file, fpr: b.FPR, memory: b.options.Memory, share: 4 * int64(b.files)}
}

// add adds keys.
func (c *collector) add(hashes []uint64) error {
	c.hashes = append(c.hashes, hashes...)
	if len(c.hashes) < max(2*c.sorted, fewHashes) {
		return nil
	}
	c.sort()
	return c.fits("its distinct keys", 16*uint64(c.sorted)) // with room for as many again
}

// fits returns an error unless the collector may take so many bytes.
func (c *collector) fits(what string, bytes uint64) error {
	if c.memory == 0 || bytes <= max(uint64(c.memory/c.share), 16*fewHashes) {
		return nil
	}
	return faults.Memory(fault.At{File: c.file}, what, int64(min(bytes, math.MaxInt64)), c.memory, c.share)
}

func (c *collector) sort() {
	slices.Sort(c.hashes)
	c.hashes = slices.Compact(c.hashes)
	c.sorted = len(c.hashes)
}

// filter returns the filter of all keys; nil: there are none.
func (c *collector) filter() (*bloom.Filter, error) {
	c.sort()
	if c.sorted == 0 {
		return nil, nil
	}
	p := bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: bloom.Split256.BlocksFor(uint64(c.sorted), c.fpr)}
	if p.Blocks > math.MaxUint32 {
		return nil, faults.Unsupported(fault.At{File: c.file}, "a filter of its keys with %d blocks", p.Blocks)
	}
	if err := c.fits("the filter of its keys", p.Bytes()); err != nil {
		return nil, err
	}
	f, err := bloom.New(p)
	if err == nil {
		f.Add(c.hashes)
	}
	return f, err
}
