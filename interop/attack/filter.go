package main

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/zeebo/xxh3"
)

// section is a section of a filter file, see codec/FORMAT.md.
type section struct {
	kind, flags uint16
	body        []byte
}

type filterModel struct {
	version [4]byte // format and reader version
	header  []section
	payload [][]byte // chunks, plain
	zstd    []bool
	chunks  section
}

const (
	sectionKey      = 1
	sectionParams   = 2
	sectionSet      = 3
	sectionPartial  = 5
	sectionRange    = 7
	sectionCapacity = 11
	sectionRule     = 12
	rawAt           = 4096
)

func takeFilter(b []byte) (mutable, error) {
	if len(b) < 56 {
		return nil, errors.New("short")
	}
	m := &filterModel{version: [4]byte(b[8:12])}
	end := 24 + int(binary.LittleEndian.Uint32(b[12:]))
	at := 24
	for at < end {
		s, n := takeSection(b[at:])
		m.header = append(m.header, s)
		at += n
	}
	// Section chunks ends before the trailer. Its size follows from the payload's.
	var plain uint64
	for _, s := range m.header {
		if s.kind == 4 {
			for i := range binary.LittleEndian.Uint32(s.body[4:]) {
				plain += binary.LittleEndian.Uint64(s.body[8+8*i:])
			}
		}
	}
	count := int((plain + 1<<20 - 1) >> 20)
	m.chunks, _ = takeSection(b[len(b)-16-16-16*count:])
	if m.chunks.kind != 10 || len(m.chunks.body) != 16*count {
		return nil, errors.New("no chunks")
	}
	for i := range count {
		e := m.chunks.body[16*i:]
		size, zip := int(binary.LittleEndian.Uint32(e)), e[4] == 1
		if !zip {
			at = (at + rawAt - 1) / rawAt * rawAt
		}
		chunk := slices.Clone(b[at : at+size])
		if zip {
			var err error
			if chunk, err = zstdReader.DecodeAll(chunk, nil); err != nil {
				return nil, err
			}
		}
		m.payload, m.zstd = append(m.payload, chunk), append(m.zstd, zip)
		at += size
	}
	return m, nil
}

func takeSection(b []byte) (s section, n int) {
	size := int(binary.LittleEndian.Uint32(b[4:]))
	s = section{binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:]), slices.Clone(b[8 : 8+size])}
	return s, (8+size+7)/8*8 + 8
}

func (s section) append(out []byte) []byte {
	from := len(out)
	out = binary.LittleEndian.AppendUint16(out, s.kind)
	out = binary.LittleEndian.AppendUint16(out, s.flags)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(s.body)))
	out = append(out, s.body...)
	for (len(out)-from)%8 != 0 {
		out = append(out, 0)
	}
	return binary.LittleEndian.AppendUint64(out, xxh3.Hash(out[from:]))
}

// bytes returns the file with correct sizes and checksums. Chunks in stored are
// written in that form.
func (m *filterModel) bytes(stored map[int][]byte, change func(chunks []byte)) []byte {
	var header []byte
	for _, s := range m.header {
		header = s.append(header)
	}
	out := append([]byte("\x89BJF\r\n\x1a\n"), m.version[:]...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	out = binary.LittleEndian.AppendUint64(out, xxh3.Hash(out))
	out = append(out, header...)
	var chunks []byte
	for i, plain := range m.payload {
		b, coding := plain, byte(0)
		if m.zstd[i] {
			if z := zstdWriter.EncodeAll(plain, nil); len(z) < len(plain) {
				b, coding = z, 1
			}
		}
		if s, ok := stored[i]; ok && coding == 1 {
			b = s
		}
		for coding == 0 && len(out)%rawAt != 0 {
			out = append(out, 0)
		}
		out = append(out, b...)
		chunks = binary.LittleEndian.AppendUint32(chunks, uint32(len(b)))
		chunks = append(chunks, coding, 0, 0, 0)
		chunks = binary.LittleEndian.AppendUint64(chunks, xxh3.Hash(plain))
	}
	for len(out)%8 != 0 {
		out = append(out, 0)
	}
	change(chunks)
	s := m.chunks
	s.body = chunks
	out = s.append(out)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(out)+16))
	return binary.LittleEndian.AppendUint64(out, xxh3.Hash(out))
}

func (m *filterModel) mutate(rng *rand.Rand) mutation {
	c := &filterModel{version: m.version, chunks: m.chunks, zstd: slices.Clone(m.zstd)}
	for _, s := range m.header {
		c.header = append(c.header, section{s.kind, s.flags, slices.Clone(s.body)})
	}
	for _, p := range m.payload {
		c.payload = append(c.payload, slices.Clone(p))
	}
	var out mutation
	stored := map[int][]byte{}
	change := func([]byte) {}
	for range 1 + rng.IntN(3)/2 {
		what := ""
		i := rng.IntN(len(c.header))
		s := &c.header[i]
		switch k := rng.IntN(20); {
		case k < 8: // a number of a section
			what = "section"
			out.loses = out.loses || decides(s.kind)
			if len(s.body) < 4 {
				s.body = damage(rng, s.body)
				break
			}
			size := []int{1, 2, 4, 8}[rng.IntN(4)]
			if size > len(s.body) {
				size = 1
			}
			at := rng.IntN(len(s.body)-size+1) / size * size
			var v [8]byte
			copy(v[:], s.body[at:at+size])
			binary.LittleEndian.PutUint64(v[:], uint64(oddNumber(rng, int64(binary.LittleEndian.Uint64(v[:])))))
			copy(s.body[at:], v[:size])
		case k < 10:
			out.loses = out.loses || decides(s.kind)
			s.body = append(damage(rng, s.body), make([]byte, max(0, 1-len(s.body)))...)
			what = "section's bytes"
		case k == 10:
			out.loses = true
			if rng.IntN(2) == 0 {
				s.kind = uint16(oddNumber(rng, int64(s.kind)))
			} else {
				s.flags = uint16(oddNumber(rng, int64(s.flags)))
			}
			what = "section's type"
		case k == 11:
			j := rng.IntN(len(c.header))
			switch rng.IntN(3) {
			case 0:
				c.header[i], c.header[j] = c.header[j], c.header[i]
			case 1:
				out.loses = out.loses || decides(s.kind)
				c.header = slices.Delete(c.header, i, i+1)
			case 2:
				out.loses = true
				c.header = slices.Insert(c.header, j, section{s.kind + uint16(rng.IntN(3)), s.flags, slices.Clone(s.body)})
			}
			if len(c.header) == 0 {
				c.header = m.header
			}
			what = "sections"
		case k == 12:
			v := binary.LittleEndian.Uint16(c.version[:])
			binary.LittleEndian.PutUint16(c.version[2*rng.IntN(2):], uint16(oddNumber(rng, int64(v))))
			what = "version"
		case k < 17 && len(c.payload) > 0:
			out.loses = true
			j := rng.IntN(len(c.payload))
			size := len(c.payload[j])
			if rng.IntN(2) == 0 {
				changeWords(rng, c.payload[j][:min(size, 256)]) // the headers of an exact set
			} else {
				c.payload[j] = damage(rng, c.payload[j])
				if rng.IntN(3) > 0 { // keep the right size
					c.payload[j] = append(c.payload[j], make([]byte, size)...)[:size]
				}
			}
			if rng.IntN(2) == 0 {
				c.resize()
			}
			what = "payload"
		case k == 17 && len(c.payload) > 0:
			j := rng.IntN(len(c.payload))
			if z := zstdWriter.EncodeAll(c.payload[j], nil); len(z) > 0 {
				stored[j] = damage(rng, z)
			}
			what = "stored chunk"
		case k == 18 && len(c.payload) > 0:
			j := rng.IntN(len(c.payload))
			c.zstd[j] = !c.zstd[j]
			what = "coding"
		default:
			seed := rng.Uint64()
			change = func(b []byte) { changeWords(rand.New(rand.NewPCG(seed, 1)), b) }
			what = "chunks"
		}
		if out.what != "" {
			out.what += ", "
		}
		out.what += what
	}
	out.bytes = c.bytes(stored, change)
	return out
}

// decides reports whether valid changes in the section may make the file another
// filter, which may lack keys of the original.
func decides(kind uint16) bool {
	switch kind {
	case sectionKey, sectionParams, sectionSet, 4, sectionPartial, sectionRange, sectionCapacity, sectionRule:
		return true
	}
	return false
}

// resize sets the last part of section 4 so that it matches the payload's size.
func (m *filterModel) resize() {
	total := uint64(0)
	for _, p := range m.payload {
		total += uint64(len(p))
	}
	for _, s := range m.header {
		if s.kind != 4 || len(s.body) < 16 {
			continue
		}
		last := len(s.body) - 8
		for at := 8; at < last; at += 8 {
			total -= binary.LittleEndian.Uint64(s.body[at:])
		}
		binary.LittleEndian.PutUint64(s.body[last:], total)
	}
}
