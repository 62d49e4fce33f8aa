package parquet

import "sync"

// Pool is memory that Writers use one after the other. The zero value is ready,
// and safe for concurrent use.
type Pool struct {
	mu     sync.Mutex
	blocks blockPool
	spaces []*workspace  // free
	states []*chunkState // free
}

// storage holds bytes in blocks from the Writer's Pool.
type storage struct {
	blocks [][]byte
	n      int64 // bytes
	held   int64 // bytes of the blocks
}

const (
	blockClasses  = 5
	smallestBlock = 4 << 10 // each class four times the one before
)

// blockPool keeps blocks that are free. Small chunks take small blocks, large
// ones few.
type blockPool [blockClasses][][]byte

// store appends b to s.
func (w *Writer) store(s *storage, b []byte) {
	s.n += int64(len(b))
	for len(b) > 0 {
		last := len(s.blocks) - 1
		if last < 0 || len(s.blocks[last]) == cap(s.blocks[last]) {
			block := w.takeBlock(min(len(s.blocks), blockClasses-1))
			s.blocks = append(s.blocks, block)
			s.held += int64(cap(block))
			last++
		}
		block := s.blocks[last]
		n := copy(block[len(block):cap(block)], b)
		s.blocks[last] = block[:len(block)+n]
		b = b[n:]
	}
}

func (w *Writer) takeBlock(class int) []byte {
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	free := &p.blocks[class]
	if n := len(*free); n > 0 {
		b := (*free)[n-1]
		*free = (*free)[:n-1]
		return b
	}
	return make([]byte, 0, smallestBlock<<(2*class))
}

// release gives the memory of a chunk that is written back.
func (w *Writer) release(e *EncodedChunk) {
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range [...]*storage{&e.dict, &e.pages} {
		for i, b := range s.blocks {
			p.blocks[min(i, blockClasses-1)] = append(p.blocks[min(i, blockClasses-1)], b[:0])
		}
		*s = storage{}
	}
	e.written = true
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
		ws.codec = compressor{}
	}
	ws.level = w.opts.Compression.Level
	return ws
}

// keptPages is how many pages' worth of bytes a buffer may have to be used
// again; larger ones are of rare, large rows.
const keptPages = 8

func (w *Writer) putSpace(ws *workspace) {
	if most := keptPages * w.opts.PageBytes; cap(ws.body) > most || cap(ws.packed) > most || cap(ws.values) > most {
		ws.body, ws.packed, ws.values = nil, nil, nil
	}
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spaces = append(p.spaces, ws)
}

func (w *Writer) putState(s *chunkState) {
	s.page.reset()
	s.dict.release()
	if most := keptPages * w.opts.PageBytes; cap(s.page.plain) > most || cap(s.spare) > most {
		s.page.plain, s.spare = nil, nil
	}
	p := w.opts.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = append(p.states, s)
}
