package arrowipc

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/flat"
)

const (
	magic        = "ARROW1"
	continuation = 0xFFFFFFFF // precedes the length of a message since Arrow 0.15
	fileHead     = 8          // bytes of the magic and its padding
	fileTail     = 10         // bytes of the footer's length and the magic
)

// block is the position of a message in a file.
type block struct {
	off  int64
	meta int64 // bytes of metadata, including the prefix
	body int64
}

// fileSource reads an IPC file. Only lengths and strict change after opening.
type fileSource struct {
	at         fault.At
	budget     int64 // memory budget in bytes; 0: unlimited
	r          io.ReaderAt
	mem        memory.Allocator
	tree       *schemaTree
	blocks     []block // record batches
	dictBlocks []block
	sorted     []block // all of them by position, and the footer's
	dicts      *fileDicts
	lengths    []atomic.Int64 // rows of each batch plus one; 0: not known yet
	strict     atomic.Bool
}

// OpenFile opens the IPC file of size bytes in r. name is used in error messages.
// It reads and checks the footer; batches are checked when they are read. budget is
// the process's memory budget in bytes, which limits the footer; 0: unlimited. mem
// allocates the memory of records; nil: the Go heap.
func OpenFile(budget int64, r io.ReaderAt, size int64, name string, mem memory.Allocator) (*Table, error) {
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	f := &fileSource{at: fault.At{File: name}, budget: budget, r: r, mem: mem}
	footer, err := f.readFooter(size)
	if err != nil {
		return nil, err
	}
	if err := f.parseFooter(footer, size-fileTail-int64(len(footer))); err != nil {
		return nil, err
	}
	f.lengths = make([]atomic.Int64, len(f.blocks))
	f.dicts = &fileDicts{f: f, store: newDictStore(f.at, mem), busy: map[int64]bool{}, done: map[int64]bool{}}
	return &Table{f.at, f.tree, f}, nil
}

// readFooter checks both magics and returns the footer's flatbuffer.
func (f *fileSource) readFooter(size int64) ([]byte, error) {
	if size < fileHead+fileTail {
		return nil, faults.Wanted(faults.Corrupt(f.at, "too short for an Arrow IPC file"), fmt.Sprintf("%d bytes or more", fileHead+fileTail), size)
	}
	var head [len(magic)]byte
	var tail [fileTail]byte
	if err := readAt(f.r, head[:], 0); err != nil {
		return nil, wrapRead(f.at, "the head", err)
	}
	if err := readAt(f.r, tail[:], size-fileTail); err != nil {
		return nil, wrapRead(f.at, "the tail", err)
	}
	if string(head[:]) != magic {
		return nil, faults.Wanted(faults.Corrupt(f.at, "not an Arrow IPC file"), fmt.Sprintf("%q at its beginning", magic), "other bytes")
	}
	if string(tail[4:]) != magic {
		return nil, faults.Wanted(faults.Corrupt(f.at, "the file was cut off, or not finished"), fmt.Sprintf("%q at its end", magic), "other bytes")
	}
	n := int64(int32(binary.LittleEndian.Uint32(tail[:])))
	if n < 4 || n > size-fileHead-fileTail {
		return nil, faults.Wanted(faults.Corrupt(f.at, "the footer's length"), fmt.Sprintf("4 to %d bytes, the rest of the file", size-fileHead-fileTail), n)
	}
	if err := fits(f.at, "the footer", n, f.budget); err != nil {
		return nil, err
	}
	footer := make([]byte, n)
	if err := readAt(f.r, footer, size-fileTail-n); err != nil {
		return nil, wrapRead(f.at, "the footer", err)
	}
	return footer, nil
}

// parseFooter reads the schema and the positions of the messages, which must all
// end before end.
func (f *fileSource) parseFooter(buf []byte, end int64) (err error) {
	t := flat.Root(buf)
	defer outside(f.at, t, &err)
	// Old Java writers omit the version; each message has its own.
	if v := t.Int16(footerVersion, 0); v < 0 || v > metadataV5 {
		return faults.Corrupt(f.at, "metadata version %d", v)
	}
	schema, ok := t.Table(footerSchema)
	if !ok {
		return faults.Corrupt(f.at, "a footer without a schema")
	}
	if f.tree, err = parseSchema(f.at, schema, f.budget); err != nil {
		return err
	}
	if f.dictBlocks, err = f.readBlocks(t, footerDicts, end); err != nil {
		return err
	}
	if f.blocks, err = f.readBlocks(t, footerBatches, end); err != nil {
		return err
	}
	all := append(slices.Clone(f.blocks), f.dictBlocks...)
	slices.SortFunc(all, func(a, b block) int { return cmp.Compare(a.off, b.off) })
	for i := 1; i < len(all); i++ {
		if p := all[i-1]; p.off+p.meta+p.body > all[i].off {
			return faults.Corrupt(f.at, "messages at %d and %d overlap", p.off, all[i].off)
		}
	}
	f.sorted = append(all, block{off: end})
	return nil
}

// readBlocks reads a vector of blocks, which must lie between the head and end.
func (f *fileSource) readBlocks(t flat.Table, slot int, end int64) ([]block, error) {
	mem, n := t.Vector(slot, 24)
	out := make([]block, n)
	for i := range out {
		mem := mem[24*i:]
		b := block{
			off:  int64(binary.LittleEndian.Uint64(mem)),
			meta: int64(int32(binary.LittleEndian.Uint32(mem[8:]))),
			body: int64(binary.LittleEndian.Uint64(mem[16:])),
		}
		if b.off < fileHead || b.meta < 8 || b.body < 0 || b.off > end || b.meta > end-b.off || b.body > end-b.off-b.meta {
			return nil, faults.Corrupt(f.at, "message %d lies outside the file", i)
		}
		if b.off%8 != 0 || b.meta%8 != 0 || b.body%8 != 0 {
			return nil, faults.Corrupt(f.at, "message %d is not aligned to 8 bytes", i)
		}
		out[i] = b
	}
	return out, nil
}

// message reads the metadata of a block, which must have the given kind.
func (f *fileSource) message(at fault.At, b block, kind byte) (message, error) {
	buf := make([]byte, b.meta)
	if err := readAt(f.r, buf, b.off); err != nil {
		return message{}, wrapRead(at, "a message", err)
	}
	n := binary.LittleEndian.Uint32(buf)
	rest := buf[4:]
	if n == continuation {
		n = binary.LittleEndian.Uint32(buf[4:])
		rest = buf[8:]
	}
	if n > math.MaxInt32 || int(n) > len(rest) || len(rest)-int(n) > 7 { // the body begins where the block says
		return message{}, faults.Corrupt(at, "metadata of %d bytes in a block of %d", n, b.meta)
	}
	m, err := parseMessage(at, rest[:n])
	if err != nil {
		return m, err
	}
	if m.kind != kind || m.body != b.body {
		return m, faults.Corrupt(at, "the footer and the message disagree")
	}
	return m, nil
}

// loader returns a loader for the body of a block.
func (f *fileSource) loader(at fault.At, blk block, b batch, dicts dictSource) *loader {
	return &loader{
		at:    at,
		body:  fileBody{f.r, blk.off + blk.meta, f.mem},
		unpk:  &unpacker{codec: b.codec, mem: f.mem},
		dicts: dicts,
		mem:   f.mem,

		strict: f.strict.Load(),
	}
}

func (f *fileSource) groups() int           { return len(f.blocks) }
func (f *fileSource) bytes(group int) int64 { return f.blocks[group].meta + f.blocks[group].body }

func (f *fileSource) rows(group int) (int64, error) {
	if n := f.lengths[group].Load(); n > 0 {
		return n - 1, nil
	}
	b, err := f.batch(group)
	if err != nil {
		return -1, err
	}
	return b.length, nil
}

func (f *fileSource) place(group int) fault.At {
	at := f.at
	at.RowGroup = group + 1
	return at
}

// batch reads the header of a record batch.
func (f *fileSource) batch(group int) (batch, error) {
	at := f.place(group)
	m, err := f.message(at, f.blocks[group], headerBatch)
	if err != nil {
		return batch{}, err
	}
	b, err := parseBatch(at, m.header, m)
	if err == nil {
		f.lengths[group].Store(b.length + 1)
	}
	return b, err
}

func (f *fileSource) read(ctx context.Context, group int, p projection, yield func(arrow.Record, error) bool) {
	rec, err := f.record(ctx, group, p)
	if err != nil {
		yield(nil, err)
		return
	}
	defer rec.Release()
	yield(rec, nil)
}

// record reads a batch. The caller releases it.
func (f *fileSource) record(ctx context.Context, group int, p projection) (arrow.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	at := f.place(group)
	b, err := f.batch(group)
	if err != nil {
		return nil, err
	}
	nodes, err := layout(at, b, f.tree.fields)
	if err != nil {
		return nil, err
	}
	l := f.loader(at, f.blocks[group], b, f.dicts)
	defer l.unpk.close()
	return l.record(p.schema, p.of(nodes), b.length)
}

// maxGap is the most bytes between messages: padding, and the end marker.
const maxGap = 64 + 8

// checkWhole compares the footer with what only readers of streams use: the schema in
// the first message, and the messages that are there. Polars writes the first one
// without its length, so it is not found, and JavaScript writes none.
func (f *fileSource) checkWhole() error {
	next, size := f.sorted[0].off, int64(math.MaxInt64-fileHead)
	p := &pass{at: f.at, r: bufio.NewReader(io.NewSectionReader(f.r, fileHead, size)), memory: f.budget, left: size}
	if head, err := p.r.Peek(4); err != nil {
		return wrapRead(f.at, "the schema", err)
	} else if next > fileHead && binary.LittleEndian.Uint32(head) == continuation {
		if err := p.schema(nil); err != nil {
			return err
		}
		if !p.tree.schema.Equal(f.tree.schema) {
			return faults.Corrupt(f.at, "the schemas of the footer and of the first message differ")
		}
		next = fileHead + size - p.left
	}
	for _, b := range f.sorted {
		if b.off-next > maxGap {
			return faults.Corrupt(f.at, "%d bytes at %d belong to no message of the footer", b.off-next, next)
		}
		next = b.off + b.meta + b.body
	}
	return nil
}

func (f *fileSource) check() error {
	if f.strict.Swap(true) {
		return nil
	}
	if err := f.checkWhole(); err != nil {
		return fmt.Errorf("for readers of streams: %w", err)
	}
	return nil
}

func (f *fileSource) close() error { return f.dicts.close() }
