package filters

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// Options says how a filter is written. The content does not depend on them.
type Options struct {
	// Uncompressed stores every chunk raw: the payload is contiguous and
	// starts on a page boundary, so that processes can share one mapped copy.
	Uncompressed bool
	// Replace lets Save replace a file of the same name, whatever it holds.
	Replace bool
}

// Encode writes the file of a filter and returns its size, or the number of
// bytes written before an error. The same filter and options give the same
// bytes, whatever the number of processors. In addition to the filter, Encode
// needs less than 64 MiB (about 6 MiB for each of at most 8 goroutines) and,
// for an exact set, its bytes.
//
// It does not sync or close the file, nor remove an incomplete one.
func Encode(w io.Writer, f *Filter, opts Options) (int64, error) {
	release, err := f.KeepOpen()
	if err != nil {
		return 0, err
	}
	defer release()
	return encodeHeld(w, f, opts)
}

// encodeHeld is Encode inside a call that holds the mapping.
func encodeHeld(w io.Writer, f *Filter, opts Options) (int64, error) {
	if w == nil {
		return 0, errors.New("write filter: the writer is nil")
	}
	src, err := newSource(f)
	if err != nil {
		return 0, err
	}
	n, sums, err := src.encode(w, opts)
	if err == nil {
		f.held.mu.Lock()
		defer f.held.mu.Unlock()
		f.held.stamp = &stamp{parts: src.parts, sums: sums}
	}
	return n, err
}

// encode writes the file of a checked payload. It returns its size, or the number of bytes
// written before an error, and the checksums of the chunks.
func (s *source) encode(w io.Writer, opts Options) (n int64, sums []uint64, err error) {
	head := appendHead(nil, &s.meta)
	if len(head)-prologueBytes > maxHeader {
		return 0, nil, bad("header", fmt.Sprintf("at most %d bytes", maxHeader), len(head)-prologueBytes).inProgram()
	}
	out := &summer{w: w}
	if err := out.write(head); err != nil {
		return out.n, nil, err
	}
	table, sums, err := s.writeChunks(out, opts)
	if err != nil {
		return out.n, nil, err
	}
	if err := out.pad(8); err != nil {
		return out.n, nil, err
	}
	if err := out.write(appendSection(nil, secChunks, flagCritical, table)); err != nil {
		return out.n, nil, err
	}
	size := binary.LittleEndian.AppendUint64(nil, uint64(out.n)+trailerBytes)
	if err := out.write(size); err != nil {
		return out.n, nil, err
	}
	err = out.write(binary.LittleEndian.AppendUint64(nil, out.sum.Sum64()))
	return out.n, sums, err
}

// MostFileBytes returns the size of a file with an incompressible payload, if its header but for the
// registers fits into a page.
func MostFileBytes(payload uint64) uint64 {
	return payload + RegisterCount + pageBytes + sectionBytes + trailerBytes + (payload+chunkBytes-1)/chunkBytes*chunkEntry
}

// appendHead appends the prologue and the header sections.
func appendHead(dst []byte, m *meta) []byte {
	sections := appendSections(nil, m)
	dst = append(dst, m.magic()...)
	dst = binary.LittleEndian.AppendUint16(dst, formatVersion)
	dst = binary.LittleEndian.AppendUint16(dst, readerVersion)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(sections)))
	dst = binary.LittleEndian.AppendUint64(dst, xxh3.Hash(dst))
	return append(dst, sections...)
}

// summer is a writer that counts and sums what goes through it.
type summer struct {
	w     io.Writer
	n     int64
	sum   xxh3.Hasher
	zeros [pageBytes]byte // for padding
}

func (s *summer) write(b []byte) error {
	n, err := s.w.Write(b)
	s.n += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write filter: %w", err)
	}
	_, err = s.sum.Write(b)
	return err
}

// pad writes zero bytes up to the next multiple of to.
func (s *summer) pad(to int64) error {
	if n := align(s.n, to) - s.n; n > 0 {
		return s.write(s.zeros[:n])
	}
	return nil
}

// source is a payload that can be read in chunks.
type source struct {
	meta
	bits *bloom.Filter // or
	data [2][]byte     // of an exact set, or counters, or
	part Payload       // of another file
}

// newSource checks f and makes its payload readable.
func newSource(f *Filter) (*source, error) {
	s := &source{meta: meta{Filter: f}, bits: f.Bloom()}
	switch set := f.Exact(); {
	case f.kind == KindCounting && s.bits != nil:
		if s.bits = nil; f.Counters() == nil {
			p := bad("payload", "counters", "the bits that were made of them")
			p.hint = "load the filter with Limits.Counters"
			return nil, p.inProgram()
		}
		s.data[0] = f.Counters().Counters()
		s.parts = []uint64{uint64(len(s.data[0]))}
	case s.bits != nil:
		s.parts = []uint64{s.bits.Params().Bytes()}
	case set != nil:
		s.data[0], s.data[1] = set.Marshal()
		s.parts = []uint64{uint64(len(s.data[0])), uint64(len(s.data[1]))}
	default:
		return nil, errNoPayload()
	}
	if p := s.check(); p != nil {
		return nil, p.inProgram()
	}
	return s, nil
}

// payloadBytes returns the size of the payload before compression.
func (m *meta) payloadBytes() (n uint64) {
	for _, p := range m.parts {
		n += p
	}
	return n
}

// chunkCount returns the number of chunks of n bytes of payload.
func chunkCount(n uint64) int { return int((n + chunkBytes - 1) / chunkBytes) }

// chunkSize returns the size of chunk i before compression.
func (m *meta) chunkSize(i int) int {
	return int(min(chunkBytes, m.payloadBytes()-uint64(i)*chunkBytes))
}

// chunk appends chunk i of the payload to dst.
func (s *source) chunk(dst []byte, i int) []byte {
	lo := uint64(i) * chunkBytes
	hi := lo + uint64(s.chunkSize(i))
	if s.part != nil {
		return s.part(dst, lo, hi)
	}
	if s.bits != nil {
		size := s.facts.Params.Geometry.BlockBytes()
		return s.bits.AppendBlocks(dst, lo/size, hi/size)
	}
	cut := uint64(len(s.data[0]))
	dst = append(dst, s.data[0][min(lo, cut):min(hi, cut)]...)
	return append(dst, s.data[1][max(lo, cut)-cut:max(hi, cut)-cut]...)
}

// writeChunks writes the payload and returns the body of the chunk table, and
// the checksums that stand in it.
func (s *source) writeChunks(out *summer, opts Options) (table []byte, sums []uint64, err error) {
	var enc *zstd.Encoder
	if !opts.Uncompressed {
		if enc, err = newZstd(); err != nil {
			return nil, nil, err
		}
	}
	pack := func(p *packer, i int) error { return p.pack(s, enc, i) }
	write := func(p *packer, _ int) error {
		if p.coding == codingRaw {
			if err := out.pad(pageBytes); err != nil {
				return err
			}
		}
		table = appendEntry(table, len(p.stored()), p.coding, p.sum)
		sums = append(sums, p.sum)
		return out.write(p.stored())
	}
	err = inOrder(context.Background(), chunkCount(s.payloadBytes()), pack, write)
	return table, sums, err
}

// appendEntry appends a chunk's entry in the chunk table.
func appendEntry(dst []byte, stored int, coding byte, sum uint64) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(stored))
	dst = append(dst, coding, 0, 0, 0)
	return binary.LittleEndian.AppendUint64(dst, sum)
}

// stamp is what a file says of a payload before compression. It follows from the
// payload alone.
type stamp struct {
	parts []uint64
	sums  []uint64 // of the chunks
}

// Digest returns the identity of the filter. Two filters have the same digest
// exactly if their files say the same, apart from compression. It does not
// protect against a filter that was forged to have the same digest.
//
// The first call reads the payload, unless the filter was loaded from a file or
// written to one before.
func (f *Filter) Digest() ([32]byte, error) {
	release, err := f.KeepOpen()
	if err != nil {
		return [32]byte{}, err
	}
	defer release()
	return f.digest()
}

// digest is Digest inside a call that holds the mapping.
func (f *Filter) digest() ([32]byte, error) {
	if f.held == nil {
		return [32]byte{}, errNoPayload()
	}
	f.held.mu.Lock()
	defer f.held.mu.Unlock()
	if f.held.stamp == nil {
		st, err := f.newStamp()
		if err != nil {
			return [32]byte{}, err
		}
		f.held.stamp = st
	}
	m := meta{Filter: f, parts: f.held.stamp.parts}
	if p := m.check(); p != nil {
		return [32]byte{}, p.inProgram()
	}
	return digest(&m, f.held.stamp.sums), nil
}

// newStamp reads the payload.
func (f *Filter) newStamp() (*stamp, error) {
	src, err := newSource(f)
	if err != nil {
		return nil, err
	}
	sums, err := src.sums()
	return &stamp{parts: src.parts, sums: sums}, err
}

// sums returns the checksums of the payload's chunks.
func (s *source) sums() (sums []uint64, err error) {
	sum := func(p *packer, i int) error { return p.pack(s, nil, i) }
	keep := func(p *packer, _ int) error {
		sums = append(sums, p.sum)
		return nil
	}
	return sums, inOrder(context.Background(), chunkCount(s.payloadBytes()), sum, keep)
}

// digest is the SHA-256 of the header sections and the chunks' checksums.
func digest(m *meta, sums []uint64) [32]byte {
	b := appendSections(nil, m)
	for _, s := range sums {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	return sha256.Sum256(b)
}
