package table

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
)

// arena holds keys of any length in chunks, each key preceded by its length.
// Several goroutines may add keys, each into a chunk of its own.
type arena struct {
	share  *budget.Share
	mu     sync.Mutex
	chunks atomic.Pointer[[][]byte]
}

// openChunk is the chunk that a range of a table is filling.
type openChunk struct {
	buf  []byte // the unused rest
	at   uint64 // place of buf[0], from 0
	size int    // of the chunk
}

// A slot holds a tag, 24 bits of the key's hash, and the key's place in the arena,
// from 1: the number of its chunk and the offset in it.
const (
	placeBits  = 40
	chunkBits  = 15
	chunkBytes = 1 << chunkBits
	maxChunks  = 1 << (placeBits - chunkBits - 1)
	chunkSlice = 24 // bytes of a chunk's slice header
)

// tag returns the part of a mixed hash that is stored in the slot: its low bits,
// which do not determine the slot's number.
func tag(h uint64) uint64 { return h & (1<<(64-placeBits) - 1) }

// dir returns the chunks.
func (a *arena) dir() [][]byte {
	if d := a.chunks.Load(); d != nil {
		return *d
	}
	return nil
}

// keyAt returns the key of a slot.
func keyAt(dir [][]byte, word uint64) []byte {
	b := chunkAt(dir, word)
	n, w := binary.Uvarint(b)
	return b[w : w+int(n)]
}

// chunkAt returns the chunk of a slot's key, starting at the key.
func chunkAt(dir [][]byte, word uint64) []byte {
	place := word&(1<<placeBits-1) - 1
	return dir[place>>chunkBits][place&(chunkBytes-1):]
}

// warmKeys reads the first bytes of the keys of slots, except empty ones, so that
// their cache misses overlap. The result has no meaning.
//
//go:noinline
func warmKeys(dir [][]byte, words []uint64) (x byte) {
	for _, w := range words {
		if w != 0 {
			x |= chunkAt(dir, w)[0]
		}
	}
	return x
}

// put stores a key in the open chunk, or in a chunk of its own, and returns its
// place. The error wraps [fault.ErrMemory].
func (a *arena) put(p *openChunk, key []byte) (place uint64, err error) {
	need := binary.MaxVarintLen64 + len(key) // at most
	if need > chunkBytes/4 {
		var own openChunk
		if err := a.begin(&own, need); err != nil {
			return 0, err
		}
		return own.add(key), nil
	}
	if need > len(p.buf) {
		if err := a.begin(p, min(max(2*p.size, 1<<10, need), chunkBytes)); err != nil {
			return 0, err
		}
	}
	return p.add(key), nil
}

// add appends a key that fits, and returns its place, from 1.
func (p *openChunk) add(key []byte) uint64 {
	place := p.at + 1
	n := binary.PutUvarint(p.buf, uint64(len(key)))
	n += copy(p.buf[n:], key)
	p.buf = p.buf[n:]
	p.at += uint64(n)
	return place
}

// begin makes p a new chunk of size bytes.
func (a *arena) begin(p *openChunk, size int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	dir := a.dir()
	if len(dir) == maxChunks {
		return fmt.Errorf("%w: more than %d GiB of keys in a table", fault.ErrMemory, maxChunks>>30<<chunkBits)
	}
	if len(dir) == cap(dir) {
		wider := max(2*cap(dir), 8)
		if err := a.share.Take(int64(wider * chunkSlice)); err != nil {
			return err
		}
		a.share.Give(int64(cap(dir) * chunkSlice))
		dir = append(make([][]byte, 0, wider), dir...)
	}
	if err := a.share.Take(int64(size)); err != nil {
		a.chunks.Store(&dir)
		return err
	}
	chunk := make([]byte, size)
	*p = openChunk{buf: chunk, at: uint64(len(dir)) << chunkBits, size: len(chunk)}
	dir = append(dir, chunk)
	a.chunks.Store(&dir)
	return nil
}
