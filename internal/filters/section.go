package filters

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
)

// Sizes and marks of the format; see FORMAT.md.
const (
	magic         = sniff.Filter
	formatVersion = 1 // of files that this package writes
	readerVersion = 1 // lowest version that can read them
	prologueBytes = 24
	trailerBytes  = 16
	sectionBytes  = 8 + 8   // bytes of a section in addition to its body: head and checksum
	maxHeader     = 1 << 24 // bytes of all header sections
	chunkBytes    = 1 << 20 // bytes of uncompressed payload
	chunkEntry    = 16      // bytes of a chunk's entry in the chunk table
	pageBytes     = 4096    // alignment of raw chunks
	flagCritical  = 1
)

// IsFilter reports whether a file that starts with the given bytes is a filter
// file, complete or not. Eight bytes are enough.
func IsFilter(first []byte) bool {
	return len(first) >= len(magic) && string(first[:len(magic)]) == magic
}

// align returns n rounded up to a multiple of to.
func align(n, to int64) int64 { return (n + to - 1) / to * to }

// appendSection appends a section with the given body.
func appendSection(dst []byte, id, flags uint16, body []byte) []byte {
	start := len(dst)
	dst = appendSectionHead(dst, id, flags, len(body))
	dst = append(dst, body...)
	dst = append(dst, make([]byte, -len(body)&7)...)
	return binary.LittleEndian.AppendUint64(dst, xxh3.Hash(dst[start:]))
}

// appendSectionHead appends the eight bytes before a section's body.
func appendSectionHead(dst []byte, id, flags uint16, size int) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, id)
	dst = binary.LittleEndian.AppendUint16(dst, flags)
	return binary.LittleEndian.AppendUint32(dst, uint32(size))
}

// rawSection is a section of a file with a verified checksum.
type rawSection struct {
	id       uint16
	critical bool
	body     []byte
}

// nextSection returns the section at the start of b and the bytes after it.
func nextSection(b []byte) (s rawSection, rest []byte, p *problem) {
	if len(b) < sectionBytes {
		return s, nil, bad("section", fmt.Sprintf("at least %d bytes", sectionBytes), len(b))
	}
	s.id = binary.LittleEndian.Uint16(b)
	flags := binary.LittleEndian.Uint16(b[2:])
	size := uint64(binary.LittleEndian.Uint32(b[4:]))
	name := sectionName(s.id)
	if room := uint64(len(b) - sectionBytes); size > room || size+(-size&7) > room {
		return s, nil, bad("length", fmt.Sprintf("at most %d bytes", room), size).in(name)
	}
	end := 8 + size + (-size & 7)
	if want, got := binary.LittleEndian.Uint64(b[end:]), xxh3.Hash(b[:end]); want != got {
		return s, nil, bad("checksum", hex64(want), hex64(got)).in(name)
	}
	if flags&^flagCritical != 0 {
		return s, nil, bad("flags", "0 or 1", flags).in(name)
	}
	if !isZero(b[8+size : end]) {
		return s, nil, bad("padding", "zero bytes", "others").in(name)
	}
	s.critical = flags&flagCritical != 0
	s.body = b[8 : 8+size]
	return s, b[end+8:], nil
}

func hex64(v uint64) string { return fmt.Sprintf("%016x", v) }

func isZero(b []byte) bool {
	return len(bytes.Trim(b, "\x00")) == 0
}

// text reads a string preceded by its 16-bit length.
func text(c *cursor.Cursor) string { return string(c.Take(uint64(c.U16()))) }

// zero reads n bytes that must be zero.
func zero(c *cursor.Cursor, n uint64) *problem {
	if b := c.Take(n); !isZero(b) {
		return bad("reserved bytes", "zero", fmt.Sprintf("%x", b))
	}
	return nil
}
