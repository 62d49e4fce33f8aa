package filters

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
)

// DefaultMaxBytes is the limit where Limits gives none: 64 GiB, enough for
// 40 billion keys at 1 %.
const DefaultMaxBytes = 64 << 30

// Limits limits what a reader accepts from a file.
type Limits struct {
	// MaxBytes limits the payload in memory, in bytes; 0: DefaultMaxBytes, or
	// the address space of a 32-bit machine. A larger payload is refused with
	// ErrLimit before it is allocated.
	MaxBytes uint64
	// MaxBits replaces MaxBytes for the bits of a Bloom filter; 0: MaxBytes. The command
	// sets it, as an exact filter needs more than its payload while it is read.
	MaxBits uint64
	// Counters loads the counters of a counting filter beside its bits.
	Counters bool
	// Unread makes Load return a mapped filter before its payload was read; see
	// [Header.LoadUnread].
	Unread bool
}

// max limits an exact filter.
func (l Limits) max() uint64 {
	if l.MaxBytes == 0 {
		return min(DefaultMaxBytes, math.MaxInt)
	}
	return min(l.MaxBytes, math.MaxInt)
}

// of returns the limit for a kind of filter.
func (l Limits) of(k Kind) uint64 {
	if k != KindExact && l.MaxBits > 0 {
		return min(l.MaxBits, math.MaxInt)
	}
	return l.max()
}

// Header is a filter's file without its payload, opened with [DecodeHeader].
type Header struct {
	// Filter is the header: Bloom and Exact return nil. It must not be changed.
	Filter *Filter

	Version       uint16   // of the format
	Skipped       []uint16 // types of sections that this reader does not know and need not
	FileBytes     int64
	PayloadOffset int64  // of the first chunk in the file
	PayloadBytes  uint64 // before compression
	StoredBytes   uint64 // after compression, without padding
	// Contiguous is true if no chunk is compressed: the payload is in the file
	// as it is, PayloadBytes long, from PayloadOffset, which is a multiple of
	// 4096.
	Contiguous bool

	r      io.ReaderAt
	name   string
	meta   meta
	head   []byte // the file up to the end of the header
	tail   []byte // the file from the chunk table on
	chunks []chunk
	mapped []byte // the file, where it is verified in place
}

// chunk is an entry of the chunk table, and the chunk's position.
type chunk struct {
	start, end int64 // in the file; before start there may be padding
	coding     byte
	sum        uint64 // of the chunk before compression
}

// Decode reads a whole filter from the size bytes of r, and verifies all
// checksums. name is for errors. Memory holds the payload, less than 32 MiB in
// addition and, while an exact set is read, its bytes.
func Decode(r io.ReaderAt, size int64, name string, lim Limits) (*Filter, error) {
	h, err := DecodeHeader(r, size, name)
	if err != nil {
		return nil, err
	}
	return h.Load(lim)
}

// DecodeHeader reads everything except the payload from the size bytes of r,
// which is kept for Load, OrInto and Verify. It verifies the checksums of what
// it reads and every size, but neither the payload nor the checksum over all.
func DecodeHeader(r io.ReaderAt, size int64, name string) (*Header, error) {
	return (*Other)(nil).DecodeHeader(r, size, name)
}

// DecodeHeader is [DecodeHeader] for files of kind o. Unless these are filters, only Digest,
// Verify, Own and LoadOther may be called.
func (o *Other) DecodeHeader(r io.ReaderAt, size int64, name string) (*Header, error) {
	if r == nil {
		return nil, fmt.Errorf("%s: no file to read: want an io.ReaderAt, got nil", name)
	}
	h := &Header{Filter: new(Filter), FileBytes: size, r: r, name: name}
	h.meta.Filter, h.meta.other = h.Filter, o
	for _, step := range []func() (*problem, error){h.readHead, h.readTail} {
		p, err := step()
		if err != nil {
			return nil, err
		}
		if p != nil {
			return nil, p.inFile(name)
		}
	}
	return h, nil
}

// decoded returns an error unless DecodeHeader made the header.
func (h *Header) decoded() error {
	if h == nil || h.Filter == nil || len(h.chunks) == 0 {
		return (&problem{what: "the header is nil or empty", want: "one from DecodeHeader"}).inProgram()
	}
	return nil
}

// readAt reads n bytes; the caller has compared them with the file's size.
func (h *Header) readAt(dst []byte, at int64) error {
	n, err := h.r.ReadAt(dst, at)
	if n == len(dst) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		p := bad("file", fmt.Sprintf("%d bytes", h.FileBytes), fmt.Sprintf("%d", at+int64(n)))
		p.err = io.ErrUnexpectedEOF
		return p.inFile(h.name)
	}
	return fmt.Errorf("%s: read at byte %d: %w", h.name, at, err)
}

func (h *Header) readHead() (*problem, error) {
	var pro [prologueBytes]byte
	n := max(0, min(h.FileBytes, prologueBytes))
	if err := h.readAt(pro[:n], 0); err != nil {
		return nil, err
	}
	if p := h.meta.checkMagic(pro[:n]); p != nil {
		return p, nil
	}
	least := int64(prologueBytes + sectionBytes + trailerBytes)
	if h.FileBytes < least {
		return cutShort(least, h.FileBytes), nil
	}
	if want, got := binary.LittleEndian.Uint64(pro[16:]), xxh3.Hash(pro[:16]); want != got {
		return bad("prologue: checksum", hex64(want), hex64(got)), nil
	}
	h.Version = binary.LittleEndian.Uint16(pro[8:])
	reader := binary.LittleEndian.Uint16(pro[10:])
	if reader > readerVersion {
		return bad("format version needed to read it", fmt.Sprintf("at most %d", readerVersion), reader).newer(), nil
	}
	if reader == 0 || h.Version < reader {
		return bad("prologue: versions", "1 ≤ reader ≤ format", fmt.Sprintf("%d, %d", reader, h.Version)), nil
	}
	size := int64(binary.LittleEndian.Uint32(pro[12:]))
	if room := min(maxHeader, h.FileBytes-least); size > room {
		return bad("prologue: header size", fmt.Sprintf("at most %d", room), size), nil
	}
	if size%8 != 0 {
		return bad("prologue: header size", "a multiple of 8", size), nil
	}
	h.head = make([]byte, prologueBytes+size)
	copy(h.head, pro[:])
	if err := h.readAt(h.head[prologueBytes:], prologueBytes); err != nil {
		return nil, err
	}
	var p *problem
	if h.Skipped, p = parseSections(h.head[prologueBytes:], &h.meta); p != nil {
		return p, nil
	}
	return h.meta.check(), nil
}

// checkMagic distinguishes a damaged filter from a file of another kind.
func (m *meta) checkMagic(b []byte) *problem {
	magic, want, hint := m.magic(), "that of a bloomjoin filter", fault.Text("bloomjoin build makes a filter of a file of IDs")
	if m.other != nil {
		want, hint = "that of "+m.other.Kind, m.other.Hint
	}
	if strings.HasPrefix(string(b), magic) {
		return nil
	}
	got := string(b[:min(len(b), len(magic))])
	kind := sniff.Kind([]byte(got))
	if kind == "" {
		kind = fmt.Sprintf("%q", got)
	}
	p := bad("magic", want, kind)
	switch {
	case strings.HasPrefix(magic, got):
		return cutShort(prologueBytes, int64(len(b)))
	case sniff.Kind([]byte(got)) == "" && len(got) > 3 && got[1:4] == magic[1:4]:
		p.hint = "a transfer in text mode changed line ends or high bits: copy the file again, as binary"
	default:
		p.kind, p.hint = errOther, hint
	}
	return p
}

func cutShort(want, got int64) *problem {
	return bad("cut short", fmt.Sprintf("at least %d bytes", want), got)
}

// readTail reads the chunk table and the trailer.
func (h *Header) readTail() (*problem, error) {
	h.PayloadBytes = h.meta.payloadBytes()
	count := chunkCount(h.PayloadBytes)
	// The sum is far from overflow: check bounds the payload by 2^38 bytes.
	size := int64(sectionBytes+trailerBytes) + int64(count)*chunkEntry
	if room := h.FileBytes - int64(len(h.head)); size > room {
		p := bad("cut short", fmt.Sprintf("%d bytes for the table of %d chunks", size, count), room)
		return p, nil
	}
	h.tail = make([]byte, size)
	if err := h.readAt(h.tail, h.FileBytes-size); err != nil {
		return nil, err
	}
	trailer := h.tail[size-trailerBytes:]
	if want := binary.LittleEndian.Uint64(trailer); want != uint64(h.FileBytes) {
		p := bad("file size at the end of the file", h.FileBytes, want)
		p.hint = "the file was cut short, or has extra bytes at its end: copy it again, or build it again"
		return p, nil
	}
	// Its place and size follow from the header, so its first bytes are known.
	if want := appendSectionHead(nil, secChunks, flagCritical, count*chunkEntry); string(h.tail[:8]) != string(want) {
		return bad(fmt.Sprintf("section chunks: start of a table of %d chunks", count),
			fmt.Sprintf("%x", want), fmt.Sprintf("%x", h.tail[:8])), nil
	}
	s, _, p := nextSection(h.tail[:size-trailerBytes])
	if p != nil {
		return p, nil
	}
	if p := h.parseChunks(s.body); p != nil {
		return p.in("chunks"), nil
	}
	return nil, nil
}

// parseChunks lays the chunks out in the file: end to end, each raw one on the
// next page boundary.
func (h *Header) parseChunks(table []byte) *problem {
	at := int64(len(h.head))
	h.chunks = make([]chunk, len(table)/chunkEntry)
	h.Contiguous = true
	for i := range h.chunks {
		c := cursor.Cursor{Rest: table[i*chunkEntry : (i+1)*chunkEntry]}
		stored := int64(c.U32())
		coding := c.U8()
		if p := zero(&c, 3); p != nil {
			return p
		}
		size := int64(h.meta.chunkSize(i))
		switch {
		case coding == codingRaw && stored == size:
			at = align(at, pageBytes)
		case coding == codingRaw:
			return bad(fmt.Sprintf("size of raw chunk %d", i), size, stored)
		case coding == codingZstd && (stored == 0 || stored >= size):
			return bad(fmt.Sprintf("size of zstd chunk %d", i), fmt.Sprintf("1 to %d", size-1), stored)
		case coding == codingZstd:
			h.Contiguous = false
		default:
			return bad(fmt.Sprintf("coding of chunk %d", i), "0 or 1", coding)
		}
		if i == 0 {
			h.PayloadOffset = at
		}
		h.chunks[i] = chunk{start: at, end: at + stored, coding: coding, sum: c.U64()}
		h.StoredBytes += uint64(stored)
		at += stored
	}
	if want := align(at, 8) + int64(len(h.tail)); want != h.FileBytes {
		return bad("file", fmt.Sprintf("%d bytes", want), h.FileBytes)
	}
	return nil
}

// Digest returns what Filter.Digest returns after Load, at no cost. Until Load,
// OrInto or Verify has succeeded, the payload may differ from it. A header that does
// not come from DecodeHeader has the zero digest.
func (h *Header) Digest() [32]byte {
	if h.decoded() != nil {
		return [32]byte{}
	}
	return digest(&h.meta, h.sums())
}

// stamp returns what the file says of the payload, which has been verified.
func (h *Header) stamp() *stamp {
	return &stamp{parts: h.meta.parts, sums: h.sums()}
}

// sums returns the checksums of the chunks.
func (h *Header) sums() []uint64 {
	return each.Slice(h.chunks, func(c chunk) uint64 { return c.sum })
}

// Load reads the payload and returns the whole filter.
func (h *Header) Load(lim Limits) (*Filter, error) {
	if err := h.decoded(); err != nil {
		return nil, err
	}
	if most, need := lim.of(h.Filter.kind), h.memory(lim); need > most {
		return nil, tooLarge(need, most).inFile(h.name)
	}
	f := h.Filter.clone()
	if f.kind == KindCounting {
		if err := h.loadCounting(f, lim.Counters); err != nil {
			return nil, err
		}
		return f, nil
	}
	if f.kind == KindBloom {
		bits, err := bloom.New(f.facts.Params)
		if err != nil {
			return nil, from(err).inFile(h.name)
		}
		if err := OrInto(context.Background(), bits, h); err != nil {
			return nil, err
		}
		f.SetBloom(bits)
		f.held.stamp = h.stamp()
		return f, nil
	}
	set, err := h.loadExact(lim)
	if err != nil {
		return nil, err
	}
	f.SetExact(set)
	f.held.stamp = h.stamp()
	return f, nil
}

func tooLarge(n, most uint64) *problem {
	p := bad("bits or members of the filter", "at most "+show.Size(int64(most)), show.Size(int64(min(n, math.MaxInt64))))
	p.kind, p.hint = ErrLimit, "raise the memory budget"
	return p
}

func (h *Header) loadExact(lim Limits) (*exact.Set, error) {
	var data []byte // grows with what has been verified, not with what is claimed
	err := readPayloads(context.Background(), []*Header{h}, take{ordered: func(raw []byte) {
		data = append(data, raw...)
	}})
	if err != nil {
		return nil, err
	}
	negative, natural := data[:h.meta.parts[0]], data[h.meta.parts[0]:]
	memory, err := exact.Check(negative, natural)
	if err != nil {
		return nil, from(err).in("payload").inFile(h.name)
	}
	if memory > lim.max() {
		return nil, tooLarge(memory, lim.max()).inFile(h.name)
	}
	set, err := exact.Unmarshal(negative, natural)
	if err != nil {
		return nil, from(err).inFile(h.name)
	}
	return set, nil
}

// clone returns a copy of f without payload that shares nothing with it.
func (f *Filter) clone() *Filter {
	g := *f
	g.facts.Key = slices.Clone(f.facts.Key)
	for i, k := range f.facts.Key {
		if k.Min != nil {
			g.facts.Key[i].Min = slices.Clone(k.Min)
			g.facts.Key[i].Max = slices.Clone(k.Max)
		}
	}
	if f.facts.Partial != nil {
		g.facts.Partial = &Partial{Of: f.facts.Partial.Of, Held: slices.Clone(f.facts.Partial.Held), Division: f.facts.Partial.Division}
	}
	g.facts.Registers = slices.Clone(f.facts.Registers)
	g.facts.Parents = slices.Clone(f.facts.Parents)
	if c := f.facts.Counting; c != nil {
		g.facts.Counting = &Counting{c.Multiset, c.Saturated}
	}
	if e := f.facts.Exceptions; e != nil {
		copied := *e // but for the hashes, which do not change
		g.facts.Exceptions = &copied
	}
	return &g
}
