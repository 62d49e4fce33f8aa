package parquet

import (
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// Pool is memory that Writers reuse. The zero value is ready to use. It is safe for
// concurrent use.
type Pool struct {
	// Most is the number of bytes of encoded pages to hold in memory. Pages beyond
	// it go to Overflow. It must not change once a Writer uses the Pool.
	Most int64
	// Overflow returns storage outside memory for one column chunk; nil: all
	// encoded pages stay in memory.
	Overflow func() Overflow

	mu     sync.Mutex
	used   int64 // bytes of blocks in use
	spare  int64 // bytes of free blocks
	blocks blockPool
	spaces []*workspace   // free
	states []*chunkState  // free
	dicts  []*dictBuilder // free
	recode []*recoding    // free
}

// Overflow stores bytes outside memory. It need not be safe for concurrent use.
type Overflow interface {
	// Write appends a copy of b.
	Write(b []byte) error
	// Each calls fn with everything written, in order, in pieces that are valid
	// until fn returns.
	Each(fn func(b []byte) error) error
	// Free discards everything written.
	Free()
}

// pageBytes holds bytes in blocks from the Writer's Pool. Bytes before those of the
// blocks are in the Overflow.
type pageBytes struct {
	blocks [][]byte
	n      int64    // total bytes
	held   int64    // capacity of the blocks in bytes
	moved  Overflow // nil: nothing was moved
}

const (
	blockClasses  = 5
	smallestBlock = 4 << 10 // each class is four times the one before

	// minMoved is the smallest part of a chunk, in bytes, worth moving to the
	// Overflow; minOfMany is used if there are very many chunks.
	minMoved  = 64 << 10
	minOfMany = 16 << 10
)

// blockPool holds free blocks. Small chunks use small blocks; large chunks use few
// blocks.
type blockPool [blockClasses][][]byte

// store appends b to s.
func (w *Writer) store(s *pageBytes, b []byte) error {
	s.n += int64(len(b))
	for len(b) > 0 {
		last := len(s.blocks) - 1
		if last < 0 || len(s.blocks[last]) == cap(s.blocks[last]) {
			// The smaller parts of all leaves together hardly exceed the Pool's memory.
			if s.held >= min(max(w.opts.Pool.Most/int64(len(w.leaves)), minOfMany), minMoved) && w.opts.Pool.full() {
				if err := w.move(s); err != nil {
					return err
				}
			}
			block := w.takeBlock(min(len(s.blocks), blockClasses-1))
			s.blocks = append(s.blocks, block)
			s.held += int64(cap(block))
			last = len(s.blocks) - 1
		}
		block := s.blocks[last]
		n := copy(block[len(block):cap(block)], b)
		s.blocks[last] = block[:len(block)+n]
		b = b[n:]
	}
	return nil
}

// full reports whether encoded pages have reached their memory limit.
func (p *Pool) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Overflow != nil && p.used >= p.Most
}

// move moves the bytes of s to the Overflow.
func (w *Writer) move(s *pageBytes) error {
	if s.moved == nil {
		s.moved = w.opts.Pool.Overflow()
	}
	for _, b := range s.blocks {
		if err := s.moved.Write(b); err != nil {
			return err
		}
	}
	w.opts.Pool.putBlocks(s)
	return nil
}

// each calls fn with the bytes of s, in order.
func (s *pageBytes) each(fn func(b []byte) error) error {
	if s.moved != nil {
		if err := s.moved.Each(fn); err != nil {
			return err
		}
	}
	for _, b := range s.blocks {
		if err := fn(b); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) takeBlock(class int) []byte {
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used += smallestBlock << (2 * class)
	free := &p.blocks[class]
	if n := len(*free); n > 0 {
		p.spare -= smallestBlock << (2 * class)
		b := (*free)[n-1]
		*free = (*free)[:n-1]
		return b
	}
	return make([]byte, 0, smallestBlock<<(2*class))
}

// putBlocks returns the blocks of s to the pool.
func (p *Pool) putBlocks(s *pageBytes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, b := range s.blocks {
		class := min(i, blockClasses-1)
		p.used -= smallestBlock << (2 * class)
		if p.Overflow == nil || p.used+p.spare < p.Most {
			p.spare += smallestBlock << (2 * class)
			p.blocks[class] = append(p.blocks[class], b[:0])
		}
	}
	s.blocks, s.held = nil, 0
}

// release returns the memory of a written chunk to the pool.
func (w *Writer) release(e *EncodedChunk) {
	for _, s := range [...]*pageBytes{&e.dict, &e.pages} {
		w.opts.Pool.putBlocks(s)
		if s.moved != nil {
			s.moved.Free()
		}
		*s = pageBytes{}
	}
	e.stored, e.index, e.written = nil, pageIndex{}, true
}

// Used returns the bytes of encoded pages in memory.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Held returns the bytes of memory that the Pool holds for encoded pages.
func (p *Pool) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used + p.spare
}

func (w *Writer) takeSpace() *workspace {
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.spaces)
	if n == 0 {
		return &workspace{level: w.opts.Compression.Level}
	}
	ws := p.spaces[n-1]
	p.spaces = p.spaces[:n-1]
	if ws.level != w.opts.Compression.Level {
		ws.codec = enc.Compressor{}
	}
	ws.level = w.opts.Compression.Level
	return ws
}

// keptPages is the largest buffer worth reusing, in pages. Larger ones come from
// rare, large rows.
const keptPages = 8

func (w *Writer) putSpace(ws *workspace) {
	most := keptPages * w.opts.PageBytes
	if cap(ws.body) > most || cap(ws.values) > most || 4*cap(ws.entries) > most {
		ws.body, ws.values, ws.entries = nil, nil, nil
	}
	ws.enc.Trim(most)
	ws.codec.Trim(most)
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spaces = append(p.spaces, ws)
}

func (w *Writer) takeRecoding() *recoding {
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.recode)
	if n == 0 {
		return new(recoding)
	}
	r := p.recode[n-1]
	p.recode = p.recode[:n-1]
	return r
}

func (w *Writer) putRecoding(r *recoding) {
	if cap(r.plain) > keptPages*w.opts.PageBytes {
		r.plain = nil
	}
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recode = append(p.recode, r)
}

// keptDicts is the number of free dictBuilders that a Pool with an Overflow keeps.
const keptDicts = 1

// takeDict returns a dictBuilder to be started.
func (w *Writer) takeDict() *dictBuilder {
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.dicts); n > 0 {
		d := p.dicts[n-1]
		p.dicts = p.dicts[:n-1]
		return d
	}
	return new(dictBuilder)
}

// putDict returns a dictBuilder, which may be nil, to the pool.
func (w *Writer) putDict(d *dictBuilder) {
	if d == nil {
		return
	}
	// Memory that is larger than most dictionaries need is freed.
	d.from = nil
	if len(d.slots) > 1<<19 {
		d.slots = nil
	}
	if cap(d.dict.Plain) > 2*DefaultDictBytes {
		d.dict = Dictionary{}
	}
	if cap(d.remap) > 1<<18 {
		d.remap = nil
	}
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Overflow == nil || len(p.dicts) < keptDicts {
		p.dicts = append(p.dicts, d)
	}
}

func (w *Writer) putState(s *chunkState) {
	s.page.reset()
	w.putDict(s.dict)
	s.dict = nil
	p := w.opts.Pool
	if p.Overflow != nil {
		s.page = pending{}
	} else if cap(s.page.plain) > keptPages*w.opts.PageBytes {
		s.page.plain = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = append(p.states, s)
}
