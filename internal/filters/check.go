package filters

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// check returns the first rule of the format that m breaks. The reader and the
// writer both use it, so everything that is written can be read.
func (m *meta) check() *problem {
	rules := []func() *problem{
		m.checkKey, m.checkRule, m.checkSet, m.checkParams, m.checkParts, m.checkPartial, m.checkRegisters, m.checkCapacity, m.checkCounting, m.checkExceptions,
	}
	if m.other != nil {
		rules = []func() *problem{m.checkKey, m.checkRule, m.checkOwn, m.checkPartial}
	}
	for _, rule := range rules {
		if p := rule(); p != nil {
			return p
		}
	}
	return nil
}

const (
	maxText = math.MaxUint16
	maxPart = 1 << 38 // bytes of a payload part: bloom.MaxBlocks of the larger geometry
)

func (m *meta) checkKey() *problem {
	if m.facts.NormalForm == "" || len(m.facts.NormalForm) > maxText {
		return bad("normal form", "1 to 65535 bytes", len(m.facts.NormalForm))
	}
	if len(m.facts.Key) == 0 || len(m.facts.Key) > maxText {
		return bad("key columns", "1 to 65535", len(m.facts.Key))
	}
	for i, k := range m.facts.Key {
		if len(k.Name) > maxText {
			return bad("key column name", "at most 65535 bytes", len(k.Name))
		}
		if !keys.Class(k.Class).Stored() {
			return bad("key class", "", fmt.Sprintf("%q", k.Class)).newer()
		}
		if p := k.checkRange(); p != nil {
			p.what = faults.Textf("key column %d: %s", i+1, p.what)
			return p
		}
	}
	return nil
}

func (k KeyColumn) checkRange() *problem {
	if k.HasNaN && k.Class != string(keys.Float) {
		return bad("NaN among keys", "class float", k.Class)
	}
	if (k.Min == nil) != (k.Max == nil) {
		return bad("key range", "both bounds or none", "one")
	}
	if k.Min == nil {
		return nil
	}
	for _, b := range [][]byte{k.Min, k.Max} {
		if !validBound(k.Class, b) {
			return bad("key bound", "the form of class "+k.Class, fmt.Sprintf("%d bytes", len(b)))
		}
	}
	return nil
}

// validBound reports whether b is a valid form of a value as a part of a key.
func validBound(class string, b []byte) bool {
	switch keys.Class(class) {
	case keys.Integer:
		return len(b) == 9 && (b[8] == 0 || b[8] == 1 && b[7] >= 0x80)
	case keys.Bytes:
		return true
	case keys.Boolean:
		return len(b) == 1 && b[0] <= 1
	case keys.Date, keys.Time:
		return len(b) == 8
	case keys.Instant, keys.Timestamp, keys.Duration:
		return len(b) == 12 && binary.LittleEndian.Uint32(b[8:]) < 1e9
	case keys.Decimal:
		// Four bytes of scale, then two's complement without a superfluous byte.
		return len(b) == 5 || len(b) > 5 && !(b[4] == 0 && b[5] < 0x80) && !(b[4] == 0xff && b[5] >= 0x80)
	case keys.Float:
		return len(b) == 8 && validFloat(binary.LittleEndian.Uint64(b))
	}
	w, ok := keys.FixedWidth(keys.Class(class))
	return ok && len(b) == w
}

func validFloat(b uint64) bool { return b != 1<<63 && !math.IsNaN(math.Float64frombits(b)) }

func (m *meta) checkSet() *problem {
	switch {
	case m.kind != KindBloom && m.kind != KindExact && m.kind != KindCounting:
		return bad("kind", "", uint8(m.kind)).newer()
	case m.facts.Want > KindExact && m.facts.Want != KindCounting:
		return bad("wanted kind", "", uint8(m.facts.Want)).newer()
	case !(m.facts.FPRAsked > 0 && m.facts.FPRAsked < 1):
		return bad("fpr asked", "between 0 and 1", m.facts.FPRAsked)
	case m.kind == KindExact && (len(m.facts.Key) != 1 || m.facts.Key[0].Class != string(keys.Integer)):
		return bad("key of an exact set", "one column of class integer", strings.Join(m.KeyClasses(), ", "))
	}
	return nil
}

func (m *meta) checkParams() *problem {
	p := m.facts.Params
	if m.kind == KindExact && m.Sealed() {
		if p.Blocks != 0 {
			return bad("blocks of a sealed exact filter", "0", p.Blocks)
		}
		p.Blocks = 1
	}
	check := p.Check
	if m.kind == KindCounting {
		check = func() error { return counting.Check(p) }
	}
	if err := check(); err != nil {
		return from(err)
	}
	if bits := m.Bloom(); bits != nil && bits.Params() != m.facts.Params {
		return bad("parameters", fmt.Sprintf("those of the bits: %+v", bits.Params()), fmt.Sprintf("%+v", m.facts.Params))
	}
	return nil
}

func (m *meta) checkParts() *problem {
	want := 1
	if m.kind == KindExact {
		want = 2
	}
	if len(m.parts) != want {
		return bad("payload parts", want, len(m.parts))
	}
	if want := payloadOf(m.kind, m.facts.Params); m.kind != KindExact && m.parts[0] != want {
		return bad("payload of the "+m.kind.name(), fmt.Sprintf("%d bytes", want), m.parts[0])
	}
	for _, n := range m.parts {
		if n > maxPart {
			return bad("payload part", fmt.Sprintf("at most %d bytes", uint64(maxPart)), n)
		}
	}
	return nil
}

func (m *meta) checkPartial() *problem {
	t := m.facts.Partial
	if t == nil {
		return nil
	}
	if t.Of == 0 || t.Of > MaxShards {
		return bad("shards of the build", fmt.Sprintf("1 to %d", MaxShards), t.Of)
	}
	if len(t.Held) == 0 {
		return bad("shards held", "at least one", 0)
	}
	for i, s := range t.Held {
		if s >= t.Of {
			return bad("shard held", fmt.Sprintf("below %d", t.Of), s)
		}
		if i > 0 && s <= t.Held[i-1] {
			return bad("shards held", "ascending, each once", fmt.Sprintf("%d after %d", s, t.Held[i-1]))
		}
	}
	if m.facts.BuildID == [32]byte{} {
		return bad("build id of a partial", "one", "none")
	}
	return nil
}

func (m *meta) checkRegisters() *problem {
	if m.facts.Registers == nil {
		return nil
	}
	if len(m.facts.Registers) != RegisterCount {
		return bad("registers", RegisterCount, len(m.facts.Registers))
	}
	for _, r := range m.facts.Registers {
		if r > MaxRegister {
			return bad("register", fmt.Sprintf("at most %d", MaxRegister), r)
		}
	}
	return nil
}

func (m *meta) checkCapacity() *problem {
	c := m.facts.Capacity
	if c == (Capacity{}) {
		return nil
	}
	if c.Keys == 0 {
		return bad("capacity", "at least 1 key", 0)
	}
	if c.Blocks == 0 || c.Blocks > bloom.MaxBlocks {
		return bad("blocks for the capacity", fmt.Sprintf("1 to %d", uint64(bloom.MaxBlocks)), c.Blocks)
	}
	if n := m.facts.Params.Blocks; n != 0 && n != c.Blocks {
		return bad("blocks for the capacity", fmt.Sprintf("%d as in the parameters", n), c.Blocks)
	}
	return nil
}
