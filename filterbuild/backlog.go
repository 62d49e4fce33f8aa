package filterbuild

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// How many keys there are, text tells only at its end, and a filter cannot grow.
// So keys wait: integers as they are, as the set may become exact, others as
// their hashes. What exceeds a part of the budget waits on disk.

// blockKeys is the number of keys in a block.
const blockKeys = 1 << 17

// backlogPart is the part of the memory budget that keys may wait in: the
// filter needs the rest.
const backlogPart = 4

// backlog holds the keys that one worker has read.
type backlog struct {
	spec      Spec
	spill     *spillFile
	most      uint64      // bytes in memory; 0: no bound
	open      [2][]uint64 // of unsigned and of signed integers, or of hashes
	blocks    []block
	registers bloom.Registers // of the keys in blocks
	bounds    *keys.Bounds    // of all keys; nil if they are not to be kept
	hashes    []uint64
	share     share
}

// block is keys that wait, in memory or on disk.
type block struct {
	values []uint64 // nil: on disk
	signed bool
	place  place
}

func newBacklog(b *Builder) *backlog {
	return &backlog{
		spec: b.spec, spill: &b.spill, bounds: b.spec.newBounds(), share: share{of: &b.memory},
		most: b.memory.most / backlogPart / b.memory.workers,
	}
}

// add puts in the keys of a batch.
func (l *backlog) add(batch *keys.Batch) error {
	if l.bounds != nil {
		l.bounds.Add(batch)
	}
	values, signed, ok := batch.Ints()
	if !ok {
		l.hashes = batch.Hash(l.spec.Hash, l.hashes)
		values = l.hashes
	}
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

// close ends the open block.
func (l *backlog) close(which int) error {
	values := l.open[which]
	l.open[which] = nil
	hashes := values
	if l.spec.integer() {
		l.hashes = slices.Grow(l.hashes[:0], len(values))[:len(values)]
		l.spec.Hash.Sum64(l.hashes, values)
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

// end closes the open blocks, when there are no more keys.
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
	for i := range l.blocks {
		x := &l.blocks[i]
		if x.values == nil {
			continue
		}
		var err error
		if x.place, err = l.spill.write(x.values); err != nil {
			return err
		}
		x.values = nil
	}
	l.share.release()
	return nil
}

// load returns the keys of a block, those on disk in buf.
func (x block) load(s *spillFile, buf *[]uint64) ([]uint64, error) {
	if x.values != nil {
		return x.values, nil
	}
	*buf = slices.Grow((*buf)[:0], x.place.keys)[:x.place.keys]
	return *buf, s.read(x.place, *buf)
}

// spillFile is a temporary file of keys, which has no name where the system
// lets it be: then it is gone with the process, however that ends. It may be
// written and read by many goroutines at once.
type spillFile struct {
	dir string

	mu   sync.Mutex
	file *os.File // nil until something is written
	name string   // if it still has one
	size int64
}

// place is where a block stands in the file.
type place struct {
	offset int64
	keys   int
	sum    uint64
}

// write appends a block.
func (s *spillFile) write(values []uint64) (place, error) {
	raw := make([]byte, 0, 8*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		if err := s.create(); err != nil {
			return place{}, err
		}
	}
	p := place{offset: s.size, keys: len(values), sum: xxh3.Hash(raw)}
	n, err := s.file.WriteAt(raw, s.size)
	if err != nil {
		return p, s.fault(err)
	}
	s.size += int64(n)
	return p, nil
}

func (s *spillFile) fault(err error) error {
	return fmt.Errorf("keys that wait on disk until their number is known (say --expect N, raise --memory, or name a directory with room by --temp-dir): %w", err)
}

func (s *spillFile) create() (err error) {
	if s.file, err = os.CreateTemp(s.dir, "bloomjoin-keys-*"); err != nil {
		return s.fault(err)
	}
	s.name = s.file.Name()
	if os.Remove(s.name) == nil {
		s.name = ""
	}
	return nil
}

// read reads a block into values, and checks it.
func (s *spillFile) read(p place, values []uint64) error {
	raw := make([]byte, 8*p.keys)
	if _, err := s.file.ReadAt(raw, p.offset); err != nil {
		return s.fault(err)
	}
	if xxh3.Hash(raw) != p.sum {
		return s.fault(fault.Corrupt(fault.At{File: s.file.Name()}, "other bytes were read than written"))
	}
	for i := range values {
		values[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return nil
}

func (s *spillFile) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	s.file = nil
	return err
}
