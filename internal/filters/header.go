package filters

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cursor"
)

// meta is the contents of a file's header: a filter without its payload, and the
// sizes of the payload's parts in bytes. An exact set has two parts, the negative
// members and the others; other kinds have one.
type meta struct {
	*Filter
	parts []uint64
	other *Other // nil: the file is a filter
	own   []byte // of another file: the body of its own section
}

// Section types of the header, in file order.
const (
	secKey       = 1
	secParams    = 2
	secSet       = 3
	secPayload   = 4
	secPartial   = 5
	secBuild     = 6
	secRange     = 7
	secRegisters = 8
	secParents   = 9
	secChunks    = 10 // comes after the payload
	secCapacity  = 11
	secRule      = 12
	secDivision  = 13
	secExcept    = 14
	secCounting  = 15
)

// section describes how one type of section is written and read. If put returns
// nothing, the section is left out of the file.
type section struct {
	id       uint16
	name     string
	critical bool
	required bool
	put      func(m *meta, dst []byte) []byte
	get      func(m *meta, c *cursor.Cursor) *problem
}

// sections returns the sections of the header in ascending order of type.
func sections() []section {
	return []section{
		{secKey, "key", true, true, putKey, getKey},
		{secParams, "parameters", true, true, putParams, getParams},
		{secSet, "set", true, true, putSet, getSet},
		{secPayload, "payload", true, true, putPayload, getPayload},
		{secPartial, "partial", true, false, putPartial, getPartial},
		{secBuild, "build id", false, false, putBuild, getBuild},
		{secRange, "key range", false, false, putRange, getRange},
		{secRegisters, "registers", false, false, putRegisters, getRegisters},
		{secParents, "parents", false, false, putParents, getParents},
		{secCapacity, "capacity", false, false, putCapacity, getCapacity},
		{secRule, "rule", true, false, putRule, getRule},
		{secDivision, "division", true, false, putDivision, getDivision},
		{secExcept, "exceptions", true, false, putExceptions, getExceptions},
		{secCounting, "counting", true, false, putCounting, getCounting},
	}
}

// sectionName returns a name for errors.
func sectionName(id uint16) string {
	switch id {
	case secChunks:
		return "chunks"
	case secOwn:
		return "counters"
	}
	for _, s := range sections() {
		if s.id == id {
			return s.name
		}
	}
	return fmt.Sprintf("of type %d", id)
}

// appendSections appends all header sections of m.
func appendSections(dst []byte, m *meta) []byte {
	var body []byte
	for _, s := range m.sections() {
		if body = s.put(m, body[:0]); len(body) == 0 {
			continue
		}
		var flags uint16
		if s.critical {
			flags = flagCritical
		}
		dst = appendSection(dst, s.id, flags, body)
	}
	return dst
}

// parseSections reads the header sections in b into m. It returns the types of
// unknown sections that are not critical.
func parseSections(b []byte, m *meta) (skipped []uint16, p *problem) {
	known := m.sections()
	last := uint16(0)
	for len(b) > 0 {
		var s rawSection
		if s, b, p = nextSection(b); p != nil {
			return nil, p
		}
		if s.id <= last {
			what := "order: types ascend"
			if s.id == last {
				what = "stands twice"
			}
			return nil, bad(what, "", "").in(sectionName(s.id))
		}
		last = s.id
		for len(known) > 0 && known[0].id < s.id {
			if p = missing(known[0]); p != nil {
				return nil, p
			}
			known = known[1:]
		}
		if len(known) > 0 && known[0].id == s.id {
			if p = known[0].read(m, s); p != nil {
				return nil, p.in(known[0].name)
			}
			known = known[1:]
			continue
		}
		if p = unknown(s); p != nil {
			return nil, p
		}
		skipped = append(skipped, s.id)
	}
	for _, k := range known {
		if p = missing(k); p != nil {
			return nil, p
		}
	}
	return skipped, nil
}

func missing(s section) *problem {
	if !s.required {
		return nil
	}
	return bad("missing", "", "").in(s.name)
}

// unknown handles a section whose type this version does not define.
func unknown(s rawSection) *problem {
	if s.id == secChunks {
		return bad("stands before the payload", "", "").in(sectionName(s.id))
	}
	if s.critical {
		return bad("unknown, and needed to read the file", "", "").in(sectionName(s.id)).newer()
	}
	return nil
}

// read fills in m from a section of a known type.
func (s section) read(m *meta, raw rawSection) *problem {
	if raw.critical != s.critical {
		return bad("critical flag", s.critical, raw.critical)
	}
	if len(raw.body) == 0 {
		return bad("empty", "", "")
	}
	c := &cursor.Cursor{Rest: raw.body}
	p := s.get(m, c)
	switch {
	case c.Short:
		return bad("too short", "", fmt.Sprintf("%d bytes", len(raw.body)))
	case p != nil:
		return p
	case len(c.Rest) > 0:
		return bad("too long", fmt.Sprintf("%d bytes", len(raw.body)-len(c.Rest)), len(raw.body))
	}
	return nil
}

func appendText(dst []byte, s string) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

func putKey(m *meta, dst []byte) []byte {
	dst = appendText(dst, m.facts.NormalForm)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(m.facts.Key)))
	for _, k := range m.facts.Key {
		dst = appendText(dst, k.Name)
		dst = appendText(dst, k.Class)
	}
	return dst
}

func getKey(m *meta, c *cursor.Cursor) *problem {
	m.facts.NormalForm = text(c)
	n := c.U16()
	for i := uint16(0); i < n && !c.Short; i++ {
		m.facts.Key = append(m.facts.Key, KeyColumn{Name: text(c), Class: text(c)})
	}
	return nil
}

func putParams(m *meta, dst []byte) []byte {
	dst = append(dst, byte(m.facts.Params.Geometry), byte(m.facts.Params.Hash.ID), 0, 0, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, m.facts.Params.Hash.Seed)
	return binary.LittleEndian.AppendUint64(dst, m.facts.Params.Blocks)
}

func getParams(m *meta, c *cursor.Cursor) *problem {
	m.facts.Params.Geometry = bloom.Geometry(c.U8())
	m.facts.Params.Hash.ID = bloom.HashID(c.U8())
	if p := zero(c, 6); p != nil {
		return p
	}
	m.facts.Params.Hash.Seed = c.U64()
	m.facts.Params.Blocks = c.U64()
	return nil
}

// The file's values for exact sets: as gaps, and as Roaring bitmaps, which are no longer read.
const (
	kindGaps    = 3
	kindRoaring = 2
)

func putSet(m *meta, dst []byte) []byte {
	kind := byte(m.kind)
	if m.kind == KindExact {
		kind = kindGaps
	}
	dst = append(dst, kind, byte(m.facts.Want), 0, 0, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, m.facts.Keys)
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(m.facts.FPRAsked))
}

func getSet(m *meta, c *cursor.Cursor) *problem {
	switch kind := c.U8(); {
	case kind == kindGaps:
		m.kind = KindExact
	case kind == kindRoaring:
		return &problem{what: "kind", got: "an exact set as a Roaring bitmap", kind: ErrVersion, hint: "build the filter again"}
	default:
		m.kind = Kind(kind)
	}
	m.facts.Want = Kind(c.U8())
	if p := zero(c, 6); p != nil {
		return p
	}
	m.facts.Keys = c.U64()
	m.facts.FPRAsked = math.Float64frombits(c.U64())
	return nil
}

func putPayload(m *meta, dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, chunkBytes)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(m.parts)))
	for _, n := range m.parts {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return dst
}

func getPayload(m *meta, c *cursor.Cursor) *problem {
	if n := c.U32(); n != chunkBytes && !c.Short {
		return bad("chunk size", chunkBytes, n)
	}
	n := c.U32()
	for i := uint32(0); i < n && !c.Short; i++ {
		m.parts = append(m.parts, c.U64())
	}
	return nil
}

func putPartial(m *meta, dst []byte) []byte {
	if m.facts.Partial == nil {
		return dst
	}
	dst = binary.LittleEndian.AppendUint32(dst, m.facts.Partial.Of)
	at := len(dst)
	dst = append(dst, make([]byte, (m.facts.Partial.Of+7)/8)...)
	for _, i := range m.facts.Partial.Held {
		dst[at+int(i/8)] |= 1 << (i % 8)
	}
	return dst
}

func getPartial(m *meta, c *cursor.Cursor) *problem {
	t := &Partial{Of: c.U32()}
	m.facts.Partial = t
	if t.Of == 0 || t.Of > MaxShards {
		return bad("shards of the build", fmt.Sprintf("1 to %d", MaxShards), t.Of)
	}
	for i, b := range c.Take(uint64(t.Of+7) / 8) {
		for j := range 8 {
			if b>>j&1 != 0 {
				t.Held = append(t.Held, uint32(8*i+j))
			}
		}
	}
	return nil
}

func putDivision(m *meta, dst []byte) []byte {
	if m.facts.Partial == nil || m.facts.Partial.Division == [32]byte{} {
		return dst
	}
	return append(dst, m.facts.Partial.Division[:]...)
}

func getDivision(m *meta, c *cursor.Cursor) *problem {
	if m.facts.Partial == nil {
		return bad("filter", "a partial one", "a sealed one")
	}
	return getDigest(&m.facts.Partial.Division, c)
}

func getDigest(to *[32]byte, c *cursor.Cursor) *problem {
	copy(to[:], c.Take(32))
	if *to == [32]byte{} {
		return bad("value", "not all zero", "zero")
	}
	return nil
}

func putBuild(m *meta, dst []byte) []byte {
	if m.facts.BuildID == [32]byte{} {
		return dst
	}
	return append(dst, m.facts.BuildID[:]...)
}

func getBuild(m *meta, c *cursor.Cursor) *problem { return getDigest(&m.facts.BuildID, c) }

// Flags of a column in the key range.
const (
	rangeBounds = 1
	rangeNaN    = 2
)

func putRange(m *meta, dst []byte) []byte {
	any := false
	for _, k := range m.facts.Key {
		var flags byte
		if k.Min != nil {
			flags |= rangeBounds
		}
		if k.HasNaN {
			flags |= rangeNaN
		}
		any = any || flags != 0
		dst = append(dst, flags)
		if k.Min != nil {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(k.Min)))
			dst = append(dst, k.Min...)
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(k.Max)))
			dst = append(dst, k.Max...)
		}
	}
	if !any {
		return dst[:0]
	}
	return dst
}

func getRange(m *meta, c *cursor.Cursor) *problem {
	any := false
	for i := range m.facts.Key {
		k, flags := &m.facts.Key[i], c.U8()
		if flags&^(rangeBounds|rangeNaN) != 0 {
			return bad("flags", "0 to 3", flags)
		}
		any = any || flags != 0
		k.HasNaN = flags&rangeNaN != 0
		if flags&rangeBounds != 0 {
			k.Min = append([]byte{}, c.Take(uint64(c.U32()))...)
			k.Max = append([]byte{}, c.Take(uint64(c.U32()))...)
		}
	}
	if !any {
		return bad("says nothing", "", "")
	}
	return nil
}

func putRegisters(m *meta, dst []byte) []byte { return append(dst, m.facts.Registers...) }

func getRegisters(m *meta, c *cursor.Cursor) *problem {
	m.facts.Registers = append([]byte{}, c.Take(uint64(len(c.Rest)))...)
	return nil
}

func putParents(m *meta, dst []byte) []byte {
	for _, d := range m.facts.Parents {
		dst = append(dst, d[:]...)
	}
	return dst
}

func getParents(m *meta, c *cursor.Cursor) *problem {
	for len(c.Rest) > 0 && !c.Short {
		m.facts.Parents = append(m.facts.Parents, [32]byte(append(c.Take(32), make([]byte, 32)...)[:32]))
	}
	return nil
}

func putCapacity(m *meta, dst []byte) []byte {
	if m.facts.Capacity == (Capacity{}) {
		return dst
	}
	dst = binary.LittleEndian.AppendUint64(dst, m.facts.Capacity.Keys)
	return binary.LittleEndian.AppendUint64(dst, m.facts.Capacity.Blocks)
}

func getCapacity(m *meta, c *cursor.Cursor) *problem {
	m.facts.Capacity = Capacity{Keys: c.U64(), Blocks: c.U64()}
	if m.facts.Capacity == (Capacity{}) {
		return bad("says nothing", "", "")
	}
	return nil
}
