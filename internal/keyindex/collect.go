package keyindex

import (
	"errors"
	"io"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/spill"
)

// collector collects the distinct keys of a file or a row group, and makes a filter of exactly
// the blocks that they need. Hashes that do not fit in its memory wait on disk, divided by
// their upper bits, and each part is counted by itself.
type collector struct {
	file   string
	fpr    float64
	share  int64 // of the memory: hashes may take 1/share, a filter as much
	memory int64 // 0: no bound
	most   int   // hashes in memory
	sorted int   // the first ones are sorted and distinct
	hashes []uint64
	disk   *spill.File // nil: hashes has all
	parts  []*spill.Stream
	buf    []byte
}

const (
	fewHashes = 1 << 16
	partBits  = 6
)

// waitingKeys describes hashes on disk in errors.
const waitingKeys fault.Text = "the keys that wait on disk (raise {Memory}, or let TMPDIR name a directory with room)"

func (b *building) collector(file string) *collector {
	c := &collector{
		file: file, fpr: b.FPR, most: math.MaxInt, memory: b.options.Memory,
		share: 4 * int64(b.files), // hashes and a filter, of a file and a row group
	}
	if c.memory > 0 {
		c.most = max(int(c.memory/c.share/8), fewHashes)
	}
	return c
}

// close frees the disk space.
func (c *collector) close() error {
	if c.disk == nil {
		return nil
	}
	return c.disk.Close()
}

// add adds keys.
func (c *collector) add(hashes []uint64) error {
	for len(hashes) > 0 {
		room := min(max(2*c.sorted, fewHashes), c.most)
		n := min(len(hashes), room-len(c.hashes))
		c.hashes, hashes = append(c.hashes, hashes[:n]...), hashes[n:]
		if len(c.hashes) < room {
			continue
		}
		c.sort()
		if c.sorted > c.most/2 {
			if err := c.spill(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *collector) sort() {
	slices.Sort(c.hashes)
	c.hashes = slices.Compact(c.hashes)
	c.sorted = len(c.hashes)
}

// spill moves the hashes, which are sorted, to disk.
func (c *collector) spill() error {
	if c.disk == nil {
		c.disk = spill.New("", waitingKeys)
		c.parts = c.disk.Streams(1 << partBits)
	}
	for left := c.hashes; len(left) > 0; {
		part := left[0] >> (64 - partBits)
		n := 1
		for n < len(left) && n < fewHashes && left[n]>>(64-partBits) == part {
			n++
		}
		c.buf = spill.AppendInts(c.buf[:0], left[:n])
		if err := c.parts[part].Write(c.buf, false); err != nil {
			return err
		}
		left = left[n:]
	}
	c.hashes, c.sorted = c.hashes[:0], 0
	return nil
}

// filter returns the filter of all keys; nil: there are none.
func (c *collector) filter() (f *bloom.Filter, err error) {
	c.sort()
	if c.disk == nil && c.sorted == 0 {
		return nil, nil
	}
	distinct := c.sorted
	if c.disk != nil {
		if err := c.spill(); err != nil {
			return nil, err
		}
		if distinct, err = c.eachPart(func([]uint64) {}); err != nil {
			return nil, err
		}
	}
	p := bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: bloom.Split256.BlocksFor(uint64(distinct), c.fpr)}
	if p.Blocks > math.MaxUint32 || c.memory > 0 && p.Bytes() > max(uint64(c.memory/c.share), fewHashes*8) {
		return nil, faults.Memory(fault.At{File: c.file}, "the filter of its keys", int64(p.Bytes()), c.memory, c.share)
	}
	if f, err = bloom.New(p); err != nil {
		return nil, err
	}
	if c.disk != nil {
		_, err = c.eachPart(f.Add)
	} else {
		f.Add(c.hashes)
	}
	return f, err
}

// eachPart calls fn with the distinct hashes of each part, and counts them.
func (c *collector) eachPart(fn func(hashes []uint64)) (distinct int, err error) {
	var some []uint64
	for _, part := range c.parts {
		c.hashes = c.hashes[:0]
		for r := part.Reader(); ; {
			if c.buf, err = r.Next(c.buf); errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				some, err = spill.Ints(some, c.buf)
			}
			if err != nil {
				return 0, err
			}
			if c.hashes = append(c.hashes, some...); len(c.hashes) <= c.most {
				continue
			}
			if c.sort(); len(c.hashes) > c.most/2 {
				return 0, faults.Memory(fault.At{File: c.file}, "a part of its keys", int64(len(c.hashes))*16, c.memory, c.share)
			}
		}
		c.sort()
		distinct += len(c.hashes)
		fn(c.hashes)
	}
	return distinct, nil
}
