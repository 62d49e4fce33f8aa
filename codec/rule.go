package codec

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/key"
)

// rules are those that this version knows. Their bits in the file are those of
// key.Rule.
const rules = key.Trim | key.Lower | key.UUID

// ruleBits returns the bits of a rule; ok is false unless its names are known and
// in their order.
func ruleBits(rule string) (bits uint32, ok bool) {
	r, err := key.ParseRule(rule)
	return uint32(r), err == nil && r.String() == rule
}

func putRule(m *meta, dst []byte) []byte {
	bits, _ := ruleBits(m.Rule) // already checked
	if bits == 0 {
		return dst
	}
	return binary.LittleEndian.AppendUint32(dst, bits)
}

func getRule(m *meta, c *cursor.Cursor) *problem {
	bits := c.U32()
	if bits == 0 && !c.Short {
		return bad("says nothing", "", "")
	}
	if bits&^uint32(rules) != 0 {
		return bad("unknown, and the keys mean nothing without it", "", fmt.Sprintf("%#x", bits)).newer()
	}
	m.Rule = key.Rule(bits).String()
	return nil
}

// checkRule checks that the rule applies to the key: it needs a string column or,
// if strings became UUIDs, a UUID column and no string column.
func (m *meta) checkRule() *problem {
	bits, ok := ruleBits(m.Rule)
	if !ok {
		return bad("rule", "some of "+rules.String(), fmt.Sprintf("%q", m.Rule))
	}
	if bits == 0 {
		return nil
	}
	want, none := string(key.Bytes), ""
	if key.Rule(bits)&key.UUID != 0 {
		want, none = string(key.Fixed(16)), string(key.Bytes)
	}
	classes := m.KeyClasses()
	if !slices.Contains(classes, want) || slices.Contains(classes, none) {
		return bad("key under the rule "+m.Rule, "a column of class "+want, strings.Join(classes, ", "))
	}
	return nil
}
