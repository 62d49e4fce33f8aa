package filters

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// rules are all that this version knows. The file has the bits of keys.Rule.
const rules = keys.Trim | keys.Lower | keys.UUID | keys.URL | keys.URLHost | keys.Unicode

// ruleBits returns the bits of a rule; ok is false unless its names are known and
// in their order.
func ruleBits(rule string) (bits uint32, ok bool) {
	r, err := keys.ParseRule(rule)
	return uint32(r), err == nil && r.String() == rule
}

func putRule(m *meta, dst []byte) []byte {
	bits, _ := ruleBits(m.facts.Rule) // already checked
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
	m.facts.Rule = keys.Rule(bits).String()
	return nil
}

// checkRule checks that the rule applies to the key: it needs a string column or,
// if strings became UUIDs, a UUID column and no string column.
func (m *meta) checkRule() *problem {
	bits, ok := ruleBits(m.facts.Rule)
	if !ok {
		return bad("rule", "some of "+rules.String(), fmt.Sprintf("%q", m.facts.Rule))
	}
	if bits == 0 {
		return nil
	}
	want, none := string(keys.Bytes), ""
	if keys.Rule(bits)&keys.UUID != 0 {
		want, none = string(keys.Fixed(16)), string(keys.Bytes)
	}
	classes := m.KeyClasses()
	if keys.Rule(bits).Check(len(classes)) != nil {
		return bad("key under the rule "+m.facts.Rule, "one column", len(classes))
	}
	if !slices.Contains(classes, want) || slices.Contains(classes, none) {
		return bad("key under the rule "+m.facts.Rule, "a column of class "+want, strings.Join(classes, ", "))
	}
	return nil
}
