package filters

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// pieces is a file taken apart, so that a test can break one thing in it and
// recompute all checksums.
type pieces struct {
	version, reader uint16
	sections        []piece
	payload         []byte // from the first chunk, with the padding after the last
	raw             bool   // the first chunk is raw: padding goes before it
	padding         byte   // the padding byte; should be 0
	table           piece
	size            int64 // added to the real size in the trailer
}

type piece struct {
	id, flags uint16
	body      []byte
}

func dismantle(t testing.TB, b []byte) *pieces {
	t.Helper()
	h, err := DecodeHeader(bytes.NewReader(b), int64(len(b)), "x")
	if err != nil {
		t.Fatal(err)
	}
	d := &pieces{version: formatVersion, reader: readerVersion}
	take := func(b []byte) (piece, []byte) {
		s, rest, p := nextSection(b)
		if p != nil {
			t.Fatal(p)
		}
		x := piece{id: s.id, body: bytes.Clone(s.body)}
		if s.critical {
			x.flags = flagCritical
		}
		return x, rest
	}
	for rest := h.head[prologueBytes:]; len(rest) > 0; {
		var s piece
		s, rest = take(rest)
		d.sections = append(d.sections, s)
	}
	d.payload = bytes.Clone(b[h.PayloadOffset : len(b)-len(h.tail)])
	d.raw = h.chunks[0].coding == codingRaw
	d.table, _ = take(h.tail[:len(h.tail)-trailerBytes])
	return d
}

func (d *pieces) assemble() []byte {
	le := binary.LittleEndian
	var head []byte
	for _, s := range d.sections {
		head = appendSection(head, s.id, s.flags, s.body)
	}
	b := []byte(magic)
	b = le.AppendUint16(b, d.version)
	b = le.AppendUint16(b, d.reader)
	b = le.AppendUint32(b, uint32(len(head)))
	b = le.AppendUint64(b, xxh3.Hash(b))
	b = append(b, head...)
	if d.raw {
		b = append(b, bytes.Repeat([]byte{d.padding}, -len(b)&(pageBytes-1))...)
	}
	b = append(b, d.payload...)
	b = appendSection(b, d.table.id, d.table.flags, d.table.body)
	b = le.AppendUint64(b, uint64(int64(len(b))+trailerBytes+d.size))
	return le.AppendUint64(b, xxh3.Hash(b))
}

// section returns the section with the given id.
func (d *pieces) section(id uint16) *piece {
	for i := range d.sections {
		if d.sections[i].id == id {
			return &d.sections[i]
		}
	}
	panic("no such section")
}

// remove drops the section with the given id.
func (d *pieces) remove(id uint16) {
	for i := range d.sections {
		if d.sections[i].id == id {
			d.sections = append(d.sections[:i], d.sections[i+1:]...)
			return
		}
	}
}

// resum recomputes the checksum over all.
func resum(b []byte) []byte {
	at := len(b) - 8
	binary.LittleEndian.PutUint64(b[at:], xxh3.Hash(b[:at]))
	return b
}

// repair recomputes all checksums that it finds in b, so that a fuzzer gets past
// them.
func repair(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < prologueBytes+sectionBytes+trailerBytes {
		return b
	}
	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint64(b[16:], xxh3.Hash(b[:16]))
	end := int(min(int64(len(b)), prologueBytes+int64(le.Uint32(b[12:]))))
	resumSections(b[prologueBytes:end])
	at := len(b) - trailerBytes
	le.PutUint64(b[at:], uint64(len(b)))
	// The position of the chunk table follows from the header.
	var m meta
	m.Filter = new(Filter)
	if _, p := parseSections(b[prologueBytes:end], &m); p == nil && m.checkParts() == nil {
		n := chunkCount(m.payloadBytes())
		if table := at - sectionBytes - n*chunkEntry; n < at/chunkEntry && table >= end {
			repairChunks(b, int64(end), b[table+8:], n, &m)
			resumSections(b[table:at])
		}
	}
	return resum(b)
}

func resumSections(b []byte) {
	for len(b) >= sectionBytes {
		size := int64(binary.LittleEndian.Uint32(b[4:]))
		end := 8 + size + (-size & 7)
		if end > int64(len(b))-8 {
			return
		}
		binary.LittleEndian.PutUint64(b[end:], xxh3.Hash(b[:end]))
		b = b[end+8:]
	}
}

// repairChunks recomputes the checksums of raw chunks.
func repairChunks(b []byte, at int64, table []byte, n int, m *meta) {
	for i := range n {
		e := table[i*chunkEntry:]
		stored := int64(binary.LittleEndian.Uint32(e))
		if e[4] == codingRaw {
			at = align(at, pageBytes)
			if stored == int64(m.chunkSize(i)) && at+stored <= int64(len(b)) {
				binary.LittleEndian.PutUint64(e[8:], xxh3.Hash(b[at:at+stored]))
			}
		}
		at += stored
	}
}

// parquetBloom is a filter with the hash of Parquet's own filters.
func parquetBloom(t testing.TB) *bloom.Filter {
	t.Helper()
	hash := bloom.Hash{ID: bloom.XXH64}
	b, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: 3})
	if err != nil {
		t.Fatal(err)
	}
	b.Add([]uint64{hash.Sum([]byte("")), hash.Sum([]byte("parquet")), hash.Sum([]byte("z"))})
	return b
}
