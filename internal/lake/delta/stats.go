package delta

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/scalar"
)

// stats are the statistics of a file: of its stored rows, whichever are deleted.
type stats struct {
	Rows  *int64                     `json:"numRecords"`
	Least map[string]json.RawMessage `json:"minValues"`
	Most  map[string]json.RawMessage `json:"maxValues"`
	Nulls map[string]json.RawMessage `json:"nullCount"`
}

// boundsOf returns what statistics say of columns without parts. Damaged ones say nothing.
func boundsOf(t *lake.Table, text string) (list []lake.Bound) {
	var of stats
	if json.Unmarshal([]byte(text), &of) != nil {
		return nil
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		name := cmp.Or(c.Stored, c.Name)
		if len(c.Children) > 0 || slices.Contains(t.Partitions, i) {
			continue
		}
		b := lake.Bound{Column: i}
		least, ok := boundOf(c.Type, of.Least[name], -time.Millisecond)
		most, too := boundOf(c.Type, of.Most[name], time.Millisecond)
		if ok && too && (c.Type != "string" || utf8.RuneCountInString(most) < shortened) {
			b.Least, b.Most = least, most
		}
		var nulls int64
		if json.Unmarshal(of.Nulls[name], &nulls) == nil {
			b.NoNulls, b.AllNulls = nulls == 0, of.Rows != nil && nulls == *of.Rows
		}
		if b != (lake.Bound{Column: i}) {
			list = append(list, b)
		}
	}
	return list
}

// shortened is the number of characters to which writers cut strings. What they make of the last
// one, so that it is an upper bound, differs.
const shortened = 32

// boundOf returns a value of the statistics as text. Timestamps are cut to milliseconds there, so
// they are widened.
func boundOf(typ string, raw json.RawMessage, wider time.Duration) (string, bool) {
	if len(raw) == 0 || raw[0] == 'n' {
		return "", false
	}
	if raw[0] != '"' {
		return string(raw), typ != "string" && typ != "binary"
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", false
	}
	switch typ {
	case "string", "date":
		return text, true
	case "timestamptz", "timestamp":
		sec, nanos, _, ok := scalar.Moment(text)
		layout := "2006-01-02T15:04:05.000000Z"
		if typ == "timestamp" {
			layout = layout[:len(layout)-1]
		}
		return time.Unix(sec, int64(nanos)).UTC().Add(wider).Format(layout), ok
	}
	return "", false
}
