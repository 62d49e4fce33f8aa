package codec

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// ruleNames are the bits of a rule, lowest first, which is also their order of
// application and their order in a Filter.
var ruleNames = []string{"trim", "lower", "uuid"}

// ruleBits returns the bits of a rule. ok is false for anything but known names in
// their order.
func ruleBits(rule string) (bits uint32, ok bool) {
	if rule == "" {
		return 0, true
	}
	last := -1
	for name := range strings.SplitSeq(rule, ",") {
		i := slices.Index(ruleNames, name)
		if i <= last {
			return 0, false
		}
		bits, last = bits|1<<i, i
	}
	return bits, true
}

func putRule(m *meta, dst []byte) []byte {
	bits, _ := ruleBits(m.Rule) // already checked
	if bits == 0 {
		return dst
	}
	return binary.LittleEndian.AppendUint32(dst, bits)
}

func getRule(m *meta, c *cursor) *problem {
	bits := c.u32()
	if bits == 0 && !c.short {
		return bad("says nothing", "", "")
	}
	if bits>>len(ruleNames) != 0 {
		return bad("unknown, and the keys mean nothing without it", "", fmt.Sprintf("%#x", bits)).newer()
	}
	var names []string
	for i, name := range ruleNames {
		if bits>>i&1 != 0 {
			names = append(names, name)
		}
	}
	m.Rule = strings.Join(names, ",")
	return nil
}

// checkRule checks that the rule applies to the key: it needs a string column or,
// if strings became UUIDs, a UUID column and no string column.
func (m *meta) checkRule() *problem {
	bits, ok := ruleBits(m.Rule)
	if !ok {
		return bad("rule", "some of "+strings.Join(ruleNames, ","), fmt.Sprintf("%q", m.Rule))
	}
	if bits == 0 {
		return nil
	}
	want, none := "bytes", ""
	if bits&4 != 0 {
		want, none = "fixed[16]", "bytes"
	}
	classes := m.KeyClasses()
	if !slices.Contains(classes, want) || slices.Contains(classes, none) {
		return bad("key under the rule "+m.Rule, "a column of class "+want, strings.Join(classes, ", "))
	}
	return nil
}
