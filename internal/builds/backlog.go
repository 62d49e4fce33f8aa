package builds

import (
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/spill"
)

// If the number of keys is known only at the end, as with text, keys wait until
// then, because a filter cannot grow: integers as they are, since the set may
// become exact, other keys as hashes. Keys that exceed a part of the budget wait
// on disk.

// blockKeys is the number of keys in a block.
const blockKeys = 1 << 17

// backlogPart is the share of the memory budget for waiting keys, as 1/n. The
// filter needs the rest.
const backlogPart = 4

// backlog holds the waiting keys that one worker has read.
type backlog struct {
	spec      Spec
	spill     *spill.File
	most      uint64      // bytes in memory; 0: no limit
	open      [2][]uint64 // unsigned integers and signed ones; hashes are in the first
	blocks    []block
	registers bloom.Registers // of the keys in closed blocks
	bounds    *keys.Bounds    // of all keys; nil: do not collect them
	hashes    []uint64
	share     share
}

// block is waiting keys, in memory or on disk.
type block struct {
	values []uint64 // nil: on disk
	signed bool
	disk   *spill.Stream
}

// add adds the keys of a batch.
func (l *backlog) add(batch *keys.Batch) error {
	if l.bounds != nil {
		l.bounds.Add(batch)
	}
	if _, ok := batch.Ints(); ok {
		return batch.BySign(func(values []uint64, signed bool, _ []uint32) error { return l.append(values, signed) })
	}
	l.hashes = batch.Hash(l.spec.Hash, l.hashes)
	return l.append(l.hashes, false)
}

// append adds integers, or hashes of keys of other classes.
func (l *backlog) append(values []uint64, signed bool) error {
	which := 0
	if signed {
		which = 1
	}
	for len(values) > 0 {
		if l.open[which] == nil {
			l.open[which] = make([]uint64, 0, blockKeys)
		}
		n := min(blockKeys-len(l.open[which]), len(values))
		l.open[which] = append(l.open[which], values[:n]...)
		values = values[n:]
		if len(l.open[which]) == blockKeys {
			if err := l.close(which); err != nil {
				return err
			}
		}
	}
	return nil
}

// close closes the open block.
func (l *backlog) close(which int) error {
	values := l.open[which]
	l.open[which] = nil
	hashes := values
	if l.spec.integer() {
		l.hashes = l.spec.Hash.AppendInts(l.hashes[:0], values)
		hashes = l.hashes
	}
	l.registers.Add(hashes)
	l.blocks = append(l.blocks, block{values: values, signed: which == 1})
	_, ok := l.share.hold(l.share.held + 8*uint64(cap(values)))
	if l.most > 0 && (!ok || l.share.held > l.most) {
		return l.toDisk()
	}
	return nil
}

// end closes the open blocks when there are no more keys.
func (l *backlog) end() error {
	for which := range l.open {
		if len(l.open[which]) > 0 {
			if err := l.close(which); err != nil {
				return err
			}
		}
	}
	return nil
}

// toDisk writes the blocks in memory to disk.
func (l *backlog) toDisk() error {
	var raw []byte
	for i := range l.blocks {
		x := &l.blocks[i]
		if x.values == nil {
			continue
		}
		x.disk = l.spill.Stream()
		raw = spill.AppendInts(raw[:0], x.values)
		if err := x.disk.Write(raw, false); err != nil {
			return err
		}
		x.values = nil
	}
	l.share.release()
	return nil
}

// waitsOnDisk describes the file in errors.
const waitsOnDisk fault.Text = "keys that wait on disk until their number is known (say {Expect N}, raise {Memory}, or name a directory with room by {TempDir})"

// load returns the keys of a block. Those on disk are read into buf.
func (x block) load(buf *[]uint64, raw *[]byte) ([]uint64, error) {
	if x.values != nil {
		return x.values, nil
	}
	var err error
	if *raw, err = x.disk.Reader().Next(*raw); err != nil {
		return nil, err
	}
	if *buf, err = spill.Ints(*buf, *raw); err != nil {
		return nil, faults.Errorf("%s: %w", waitsOnDisk, err)
	}
	return *buf, nil
}
