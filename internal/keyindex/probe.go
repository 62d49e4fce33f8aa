package keyindex

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

const (
	mostNeeds = 1 << 16  // chunks that are looked up at once
	gapRead   = 64 << 10 // bytes between chunks that are read rather than skipped
	mostRead  = 1 << 20  // bytes read at once
)

// need is a chunk that may have some of the hashes.
type need struct {
	unit   int
	at     int64
	size   int // of the blocks
	hashes []uint64
}

// MostKeys is the number of keys up to which asking an index about files is worth it: with that
// many, false positives let 19 of 20 files pass that hold none of them. It also bounds the memory
// of hashes and, if there are many files, the work.
func (x *Index) MostKeys() int {
	const most, work = 1 << 18, 1 << 26 // keys: a few MiB; keys times inputs: about a second
	return int(min(3/x.FPR, most, work/float64(max(x.Inputs, 1))))
}

// Probe reports for each of the units, which must be in ascending order and may repeat, whether
// it may hold a key of one of the hashes. It reads and verifies the blocks that these hashes belong to.
func (x *Index) Probe(ctx context.Context, units []Unit, hashes []uint64) (may []bool, err error) {
	hashes = slices.Clone(hashes)
	slices.Sort(hashes) // so that blocks ascend, too
	hashes = slices.Compact(hashes)
	may = make([]bool, len(units))
	var needs []need
	for i, u := range units {
		if i == 0 || u != units[i-1] {
			needs = u.needs(needs, i, hashes)
		}
		if len(needs) < mostNeeds && i < len(units)-1 {
			continue
		}
		if err := x.look(ctx, units, needs, may); err != nil {
			return nil, err
		}
		needs = needs[:0]
	}
	for i := 1; i < len(units); i++ {
		may[i] = may[i] || units[i] == units[i-1] && may[i-1]
	}
	return may, objects.Changed(x.r)
}

// needs appends the chunks of the filter that hashes, in ascending order, belong to.
func (u Unit) needs(needs []need, number int, hashes []uint64) []need {
	if u.blocks == 0 {
		return needs
	}
	for lo := 0; lo < len(hashes); {
		chunk := bloom.Block(hashes[lo], uint64(u.blocks)) / chunkBlocks
		hi := lo + 1
		for hi < len(hashes) && bloom.Block(hashes[hi], uint64(u.blocks))/chunkBlocks == chunk {
			hi++
		}
		at, size := u.chunk(chunk)
		needs = append(needs, need{number, at, size, hashes[lo:hi]})
		lo = hi
	}
	return needs
}

// end returns where the chunk ends, with its checksum.
func (n *need) end() int64 { return n.at + int64(n.size) + sumBytes }

// look reads chunks and sets may of the units that may hold one of their hashes.
func (x *Index) look(ctx context.Context, units []Unit, needs []need, may []bool) error {
	found := make([]bool, len(needs))
	var buffers sync.Pool // of [mostRead]byte
	var work errgroup.Group
	work.SetLimit(max(objects.Concurrency(x.store, x.name), runtime.GOMAXPROCS(0)))
	for lo := 0; lo < len(needs); {
		hi := lo + 1
		for hi < len(needs) && needs[hi].at-needs[hi-1].end() <= gapRead && needs[hi].end()-needs[lo].at <= mostRead {
			hi++
		}
		some, is := needs[lo:hi], found[lo:hi]
		work.Go(func() error {
			buf, ok := buffers.Get().(*[mostRead]byte)
			if !ok {
				buf = new([mostRead]byte)
			}
			defer buffers.Put(buf)
			return x.lookIn(ctx, units, some, is, buf)
		})
		lo = hi
	}
	err := work.Wait()
	for i, n := range needs {
		may[n.unit] = may[n.unit] || found[i]
	}
	return err
}

// lookIn reads chunks at once, into buf, and sets found of those that may hold one of their
// hashes.
func (x *Index) lookIn(ctx context.Context, units []Unit, needs []need, found []bool, buf *[mostRead]byte) error {
	if err := stopped.Err(ctx); err != nil {
		return err
	}
	from := needs[0].at
	b := buf[:needs[len(needs)-1].end()-from]
	if err := x.read(b, x.filters+from); err != nil {
		return err
	}
	for i, n := range needs {
		chunk := b[n.at-from : n.end()-from]
		if err := x.verify(chunk, n.at); err != nil {
			return err
		}
		u := units[n.unit]
		for _, h := range n.hashes {
			block := bloom.Block(h, uint64(u.blocks)) % chunkBlocks * blockBytes
			if bloom.InBlock256((*[blockBytes]byte)(chunk[block:]), h) {
				found[i] = true
				break
			}
		}
	}
	return nil
}
