package arrowipc

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// dictStore holds the dictionaries received so far. Nested dictionaries are
// resolved when their parent is received: writers send the inner one first, and
// replacing the inner one later does not change the parent's values. It is not safe
// for concurrent use.
type dictStore struct {
	at    fault.At
	mem   memory.Allocator
	parts map[int64][]arrow.ArrayData // a dictionary and its deltas, not concatenated yet
}

func newDictStore(at fault.At, mem memory.Allocator) *dictStore {
	return &dictStore{at: at, mem: mem, parts: map[int64][]arrow.ArrayData{}}
}

func (s *dictStore) drop(id int64) {
	for _, d := range s.parts[id] {
		d.Release()
	}
	delete(s.parts, id)
}

func (s *dictStore) release() {
	for id := range s.parts {
		s.drop(id)
	}
}

// values implements dictSource.
func (s *dictStore) values(d *dictionary) (arrow.ArrayData, error) {
	parts := s.parts[d.id]
	if len(parts) == 0 {
		return nil, errNoDictionary
	}
	if len(parts) > 1 {
		joined, err := s.join(parts)
		if err != nil {
			return nil, err
		}
		s.drop(d.id)
		s.parts[d.id] = []arrow.ArrayData{joined}
	}
	data := s.parts[d.id][0]
	data.Retain()
	return data, nil
}

// join concatenates a dictionary and its deltas.
func (s *dictStore) join(parts []arrow.ArrayData) (data arrow.ArrayData, err error) {
	defer panics.Recover(s.at, &err)
	arrs := make([]arrow.Array, len(parts))
	for i, p := range parts {
		arrs[i] = array.MakeFromData(p)
		defer arrs[i].Release()
	}
	joined, err := array.Concatenate(arrs, s.mem)
	if err != nil {
		e := faults.Unsupported(s.at, "delta to a dictionary of %s", parts[0].DataType())
		e.Err = err
		return nil, e
	}
	defer joined.Release()
	joined.Data().Retain()
	return joined.Data(), nil
}

// loadDict reads a dictionary batch and adds it to s.
func (s *dictStore) loadDict(l *loader, tree *schemaTree, d dictBatch) (err error) {
	defer panics.Recover(l.at, &err)
	dict := tree.dicts[d.id]
	if dict == nil {
		return faults.Corrupt(l.at, "dictionary %d is not in the schema", d.id)
	}
	nodes, err := layout(l.at, d.data, []*field{dict.values})
	if err != nil {
		return err
	}
	data, err := l.load(nodes[0])
	if err != nil {
		return err
	}
	if !d.delta {
		s.drop(d.id)
	} else if len(s.parts[d.id]) == 0 {
		data.Release()
		return faults.Corrupt(s.at, "a delta to dictionary %d, which is not there yet", d.id)
	}
	s.parts[d.id] = append(s.parts[d.id], data)
	return nil
}

// fileDicts are the dictionaries of an IPC file. Each is read when a column first
// needs it and kept until close. It is safe for concurrent use.
type fileDicts struct {
	f  *fileSource
	mu sync.Mutex
	// guarded by mu:
	indexed bool
	batches map[int64][]fileDict // in the order of the footer
	store   *dictStore
	busy    map[int64]bool // being read, to detect a dictionary that contains itself
	done    map[int64]bool
}

type fileDict struct {
	block block
	batch dictBatch
}

// values implements dictSource.
func (d *fileDicts) values(dict *dictionary) (arrow.ArrayData, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return lockedDicts{d}.values(dict)
}

func (d *fileDicts) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.store.release()
	d.done = map[int64]bool{}
	return nil
}

// lockedDicts is fileDicts for a caller that holds the lock.
type lockedDicts struct{ *fileDicts }

// values implements dictSource.
func (d lockedDicts) values(dict *dictionary) (arrow.ArrayData, error) {
	if err := d.index(); err != nil {
		return nil, err
	}
	if !d.done[dict.id] {
		if d.busy[dict.id] {
			return nil, faults.Corrupt(d.f.at, "dictionary %d holds itself", dict.id)
		}
		d.busy[dict.id] = true
		defer delete(d.busy, dict.id)
		for _, b := range d.batches[dict.id] {
			if err := d.read(b); err != nil {
				d.store.drop(dict.id)
				return nil, err
			}
		}
		d.done[dict.id] = true
	}
	return d.store.values(dict)
}

// index finds the blocks of each dictionary.
func (d lockedDicts) index() error {
	if d.indexed {
		return nil
	}
	found := map[int64][]fileDict{}
	for _, blk := range d.f.dictBlocks {
		m, err := d.f.message(d.f.at, blk, headerDict)
		if err != nil {
			return err
		}
		b, err := parseDict(d.f.at, m)
		if err != nil {
			return err
		}
		if !b.delta && len(found[b.id]) > 0 {
			return faults.Unsupported(d.f.at, "dictionary %d is replaced within an IPC file", b.id)
		}
		found[b.id] = append(found[b.id], fileDict{blk, b})
	}
	d.batches, d.indexed = found, true
	return nil
}

func (d lockedDicts) read(b fileDict) error {
	l := d.f.loader(d.f.at, b.block, b.batch.data, d)
	defer l.unpk.close()
	return d.store.loadDict(l, d.f.tree, b.batch)
}

// wrapRead adds the file to a read error. A file that ends early is corrupt; other
// errors keep their kind.
func wrapRead(at fault.At, what string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		e := faults.Corrupt(at, "the input ends inside %s", what)
		e.Err = io.ErrUnexpectedEOF
		return e
	}
	return fmt.Errorf("%s: reading %s: %w", at, what, err)
}
