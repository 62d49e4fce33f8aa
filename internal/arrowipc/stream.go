package arrowipc

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// maxMeta is the largest metadata of a message in a stream, in bytes.
const maxMeta = 256 << 20

// StreamOptions describe a stream. The zero value is valid.
type StreamOptions struct {
	// Once means that open can be called only once, as for standard input. The
	// table can then be read only once.
	Once bool
	// Size in bytes, 0 if unknown.
	Size int64
	// Memory is the process's memory budget in bytes, which limits the schema; 0:
	// unlimited.
	Memory int64
}

// streamSource reads an IPC stream.
type streamSource struct {
	at     fault.At
	open   func() (io.ReadCloser, error)
	mem    memory.Allocator
	opts   StreamOptions
	tree   *schemaTree
	digest []byte // of the schema message
	strict atomic.Bool

	mu    sync.Mutex
	first *pass // if Once: the pass that has read the schema, until it is used
}

// OpenStream opens a stream. It calls open to read the schema, and again for each
// Read, unless opts.Once is set. name is used in error messages. mem allocates the
// memory of records; nil: the Go heap. Concurrent Reads use a pass each.
//
// A stream that ends without its end marker is an error: its writer may have failed
// between two messages. So are non-zero bytes after the marker, which may be a second
// stream.
func OpenStream(open func() (io.ReadCloser, error), name string, mem memory.Allocator, opts StreamOptions) (*Table, error) {
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	s := &streamSource{at: fault.At{File: name}, open: open, mem: mem, opts: opts}
	p, err := s.pass()
	if err != nil {
		return nil, err
	}
	s.tree, s.digest = p.tree, p.digest
	if opts.Once {
		s.first = p
	} else if err := p.close(); err != nil {
		return nil, err
	}
	return &Table{s.at, s.tree, s}, nil
}

// pass is one reading of the stream, positioned after the schema.
type pass struct {
	at     fault.At
	rc     io.ReadCloser
	r      *bufio.Reader
	mem    memory.Allocator
	memory int64 // budget; 0: unlimited
	left   int64 // upper bound on the remaining bytes; -1: unknown
	tree   *schemaTree
	digest []byte
}

// pass opens the stream and reads its schema.
func (s *streamSource) pass() (*pass, error) {
	rc, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.at, err)
	}
	p := &pass{at: s.at, rc: rc, r: bufio.NewReaderSize(rc, 64<<10), mem: s.mem, memory: s.opts.Memory, left: -1}
	if s.opts.Size > 0 {
		p.left = s.opts.Size
	}
	if err := p.schema(s.tree); err != nil {
		rc.Close()
		return nil, err
	}
	return p, nil
}

// schema reads the first message. known is the tree of an earlier pass, if any.
func (p *pass) schema(known *schemaTree) error {
	meta, err := p.metadata()
	if err != nil {
		return err
	}
	if meta == nil {
		return faults.Corrupt(p.at, "an Arrow stream without a schema").
			WithHint("check that the program that writes it has not failed")
	}
	sum := sha256.Sum256(meta)
	p.digest = sum[:]
	m, err := parseMessage(p.at, meta)
	if err != nil {
		return err
	}
	if m.kind != headerSchema || m.body != 0 {
		return faults.Corrupt(p.at, "the first message of the stream is not a schema")
	}
	if known != nil {
		p.tree = known
		return nil
	}
	p.tree, err = parseSchema(p.at, m.header, p.memory)
	return err
}

func (p *pass) close() error { return p.rc.Close() }

// full reads exactly len(b) bytes.
func (p *pass) full(b []byte) error {
	n, err := io.ReadFull(p.r, b)
	p.count(int64(n))
	return err
}

func (p *pass) count(n int64) {
	if p.left >= 0 {
		p.left = max(0, p.left-n)
	}
}

// metadata returns the next message's metadata, nil at the end of the stream.
func (p *pass) metadata() ([]byte, error) {
	var b [4]byte
	switch err := p.full(b[:]); {
	case err == io.EOF && p.tree != nil:
		return nil, faults.Corrupt(p.at, "the Arrow stream ends without its end marker, so that rows may be missing").
			WithHint("check that the program that writes it has not failed, and that it closes its writer at the end")
	case err == io.EOF:
		return nil, nil
	case err != nil:
		return nil, wrapRead(p.at, "a message's length", err)
	}
	n := binary.LittleEndian.Uint32(b[:])
	if n == continuation {
		if err := p.full(b[:]); err != nil {
			return nil, wrapRead(p.at, "a message's length", err)
		}
		n = binary.LittleEndian.Uint32(b[:])
	}
	if n == 0 {
		return nil, p.end()
	}
	if string(b[:]) == magic[:4] {
		return nil, faults.Corrupt(p.at, "an Arrow IPC file where an Arrow stream is expected").
			WithHint("name the file, or write a stream")
	}
	if n > maxMeta {
		return nil, faults.Corrupt(p.at, "not an Arrow stream, or a damaged one: metadata of %d bytes", n)
	}
	if err := fits(p.at, "a message's metadata", int64(n), p.memory); err != nil {
		return nil, err
	}
	// The buffer grows as bytes arrive, because n is not trusted.
	meta, err := io.ReadAll(io.LimitReader(p.r, int64(n)))
	p.count(int64(len(meta)))
	if err == nil && len(meta) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, wrapRead(p.at, "a message", err)
	}
	return meta, nil
}

// end checks that only zeros follow the end marker.
func (p *pass) end() error {
	buf := make([]byte, 4096)
	for {
		n, err := p.r.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return faults.Corrupt(p.at, "bytes after the end of the stream").
				WithHint("if it is several streams, separate them")
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return wrapRead(p.at, "the end", err)
		}
	}
}

// body reads n bytes. The buffer grows as bytes arrive, unless the stream's size is
// known to cover n.
func (p *pass) body(n int64) (*memory.Buffer, error) {
	if p.left >= 0 && n > p.left {
		return nil, wrapRead(p.at, "a message's body", io.ErrUnexpectedEOF)
	}
	buf := memory.NewResizableBuffer(p.mem)
	for have := int64(0); have < n; {
		step := max(1<<20, have)
		if p.left >= 0 {
			step = n
		}
		next := min(n, have+step)
		buf.Resize(int(next))
		if err := p.full(buf.Bytes()[have:next]); err != nil {
			buf.Release()
			return nil, wrapRead(p.at, "a message's body", err)
		}
		have = next
	}
	return buf, nil
}

// skip skips a body.
func (p *pass) skip(n int64) error {
	got, err := io.CopyN(io.Discard, p.r, n)
	p.count(got)
	if err != nil {
		return wrapRead(p.at, "a message's body", err)
	}
	return nil
}

func (s *streamSource) groups() int             { return 1 }
func (s *streamSource) rows(int) (int64, error) { return -1, nil }
func (s *streamSource) bytes(int) int64 {
	if s.opts.Size > 0 {
		return s.opts.Size
	}
	return -1
}

func (s *streamSource) check() error {
	s.strict.Store(true)
	return nil
}

func (s *streamSource) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		return nil
	}
	err := s.first.close()
	s.first = nil
	return err
}

// begin returns the pass for a Read.
func (s *streamSource) begin() (*pass, error) {
	if s.opts.Once {
		s.mu.Lock()
		defer s.mu.Unlock()
		p := s.first
		s.first = nil
		if p == nil {
			return nil, fmt.Errorf("%s: a stream that cannot be opened again was read a second time", s.at)
		}
		return p, nil
	}
	p, err := s.pass()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(p.digest, s.digest) {
		_ = p.close()
		return nil, faults.Of(cause.Changed, faults.Mismatch(s.at, "the stream's schema has changed since it was opened", "", ""))
	}
	return p, nil
}

func (s *streamSource) read(ctx context.Context, _ int, proj projection, yield func(arrow.Record, error) bool) {
	p, err := s.begin()
	if err != nil {
		yield(nil, err)
		return
	}
	r := &streamRead{pass: p, proj: proj, dicts: newDictStore(s.at, s.mem), need: map[int64]bool{}, strict: s.strict.Load()}
	for _, c := range proj.columns {
		r.needs(p.tree.fields[c])
	}
	defer r.dicts.release()
	defer func() { _ = p.close() }() // nothing was written
	for {
		rec, err := r.next(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		if rec == nil {
			return
		}
		if !each.Lend(rec, yield) {
			return
		}
	}
}

// streamRead is a Read of a stream.
type streamRead struct {
	*pass
	proj  projection
	dicts *dictStore
	need  map[int64]bool // ids of the dictionaries that the columns use

	strict bool
	batch  int // record batches so far
}

func (r *streamRead) needs(f *field) {
	if f.dict != nil && !r.need[f.dict.id] {
		r.need[f.dict.id] = true
		r.needs(f.dict.values)
	}
	for _, c := range f.children {
		r.needs(c)
	}
}

// next returns the next record batch, nil at the end.
func (r *streamRead) next(ctx context.Context) (arrow.Record, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		meta, err := r.metadata()
		if err != nil || meta == nil {
			return nil, err
		}
		m, err := parseMessage(r.at, meta)
		if err != nil {
			return nil, err
		}
		switch m.kind {
		case headerDict:
			if err := r.dictionary(m); err != nil {
				return nil, err
			}
		case headerBatch:
			return r.record(m)
		default:
			return nil, faults.Corrupt(r.at, "a second schema in the stream")
		}
	}
}

func (r *streamRead) dictionary(m message) error {
	d, err := parseDict(r.at, m)
	if err != nil {
		return err
	}
	if r.tree.dicts[d.id] == nil {
		return faults.Corrupt(r.at, "dictionary %d is not in the schema", d.id)
	}
	if !r.need[d.id] {
		return r.skip(m.body)
	}
	l, done, err := r.loader(r.at, m, d.data)
	if err != nil {
		return err
	}
	defer done()
	return r.dicts.loadDict(l, r.tree, d)
}

// loader reads the body of m. The caller calls done after loading.
func (r *streamRead) loader(at fault.At, m message, b batch) (l *loader, done func(), err error) {
	buf, err := r.body(m.body)
	if err != nil {
		return nil, nil, err
	}
	u := &unpacker{codec: b.codec, mem: r.mem}
	return &loader{at: at, body: memBody{buf}, unpk: u, dicts: r.dicts, mem: r.mem, strict: r.strict}, func() {
		u.close()
		buf.Release()
	}, nil
}

func (r *streamRead) record(m message) (arrow.Record, error) {
	r.batch++
	at := r.at
	at.RowGroup = r.batch
	b, err := parseBatch(at, m.header, m)
	if err != nil {
		return nil, err
	}
	nodes, err := layout(at, b, r.tree.fields)
	if err != nil {
		return nil, err
	}
	if len(r.proj.columns) == 0 {
		if err := r.skip(m.body); err != nil {
			return nil, err
		}
		m.body = 0
	}
	l, done, err := r.loader(at, m, b)
	if err != nil {
		return nil, err
	}
	defer done()
	return l.record(r.proj.schema, r.proj.of(nodes), b.length)
}
