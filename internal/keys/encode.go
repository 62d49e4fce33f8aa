package keys

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// Encoder turns the key columns of record batches of one schema into normal
// form. It is immutable: many goroutines may share one.
type Encoder struct {
	fields  []Field
	paths   []Path
	classes []Class // under the rules
	rule    Rule
	rules   []Rule // what of rule is applied to each column
}

// NewEncoder resolves the key columns in the schema, whose strings become keys
// under the rule. A rule that concerns none of the columns is an error.
func NewEncoder(schema *arrow.Schema, paths []Path, rule Rule) (*Encoder, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("no key column is named")
	}
	e := &Encoder{paths: paths, rule: rule}
	var stored []Class
	for _, p := range paths {
		f, err := p.Resolve(schema)
		if err != nil {
			return nil, err
		}
		c, err := ClassOf(f.Type)
		if err != nil {
			return nil, fault.Unsupported(fault.At{Column: p.String()}, "a key of type %s", f.Type)
		}
		e.fields = append(e.fields, f)
		e.classes = append(e.classes, rule.Class(c))
		e.rules = append(e.rules, rule.Of(c))
		stored = append(stored, c)
	}
	if rule != 0 && !rule.Concerns(stored) && !slices.Contains(stored, Null) {
		return nil, fault.Unsupported(fault.At{Column: PathsString(paths)}, "--normalize %s of a key of class %s", rule, joined(stored)).
			WithHint("the rule is for strings: leave it out, or cast the column")
	}
	return e, nil
}

// joined lists classes for a message.
func joined(classes []Class) string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

// Classes returns the class of each key column, under the rule.
func (e *Encoder) Classes() []Class { return e.classes }

// Index returns the field numbers, from the schema's top down, that lead to the
// key column; nil if there are several.
func (e *Encoder) Index() []int {
	if len(e.fields) > 1 {
		return nil
	}
	return e.fields[0].Index
}

// Columns returns the top-level columns that hold the key, ascending, each
// once.
func (e *Encoder) Columns() []int {
	var cols []int
	for i, f := range e.fields {
		seen := false
		for _, g := range e.fields[:i] {
			seen = seen || g.Index[0] == f.Index[0]
		}
		if !seen {
			cols = append(cols, f.Index[0])
		}
	}
	for i := range cols { // insertion sort of a few
		for j := i; j > 0 && cols[j-1] > cols[j]; j-- {
			cols[j-1], cols[j] = cols[j], cols[j-1]
		}
	}
	return cols
}

// Encode fills b with the keys of the record. b may share the record's memory:
// it is good until the record is released.
func (e *Encoder) Encode(rec arrow.Record, b *Batch) error {
	b.reset(int(rec.NumRows()))
	parts := make([]part, len(e.fields))
	for i, f := range e.fields {
		p, err := newPart(rec.Column(f.Index[0]), f.Index[1:])
		if err != nil {
			return fmt.Errorf("column %s: %w", e.paths[i], err)
		}
		parts[i] = p
	}
	b.findRows(parts)
	switch {
	case len(parts) == 1:
		encodeOne(&parts[0], b, e.rules[0])
	case e.rule == 0:
		encodeComposite(parts, b)
	default:
		encodeNormalised(parts, e.rules, b)
	}
	return nil
}

// EncodeIDs is Encode for IDs of a file, which errors name: a value that no ID
// may have is one.
func (e *Encoder) EncodeIDs(file string, rec arrow.Record, b *Batch) error {
	if err := e.Encode(rec, b); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return b.IDs(fault.At{File: file, Column: PathsString(e.paths)})
}

// findRows lists the rows that have a key.
func (b *Batch) findRows(parts []part) {
	if !slices.ContainsFunc(parts, (part).mayBeNull) {
		b.Rows = slices.Grow(b.Rows, b.Len)[:b.Len]
		for row := range b.Rows {
			b.Rows[row] = uint32(row)
		}
		return
	}
	for row := range b.Len {
		if hasKey(parts, row) {
			b.Rows = append(b.Rows, uint32(row))
		}
	}
}

func hasKey(parts []part, row int) bool {
	for i := range parts {
		if parts[i].isNull(row) {
			return false
		}
	}
	return true
}

func encodeOne(p *part, b *Batch, rule Rule) {
	if p.ints != nil {
		b.isInt, b.signed = true, p.signed
		if p.dict == nil {
			b.ints = gatherInts(b.ints, unwrapped(p.leaf), b.Rows)
			return
		}
		for _, row := range b.Rows {
			b.ints = append(b.ints, p.ints(int(row)))
		}
		return
	}
	if rule == 0 && p.dict == nil && len(b.Rows) == b.Len && b.share(unwrapped(p.leaf)) {
		return
	}
	for _, row := range b.Rows {
		b.data = p.put(b.data, int(row))
		b.ends = append(b.ends, len(b.data))
	}
	if rule != 0 {
		b.normalise(rule)
	}
}

// encodeComposite puts the length of each part before it, so that ("ab","c")
// and ("a","bc") differ.
func encodeComposite(parts []part, b *Batch) {
	var tmp []byte
	for _, row := range b.Rows {
		for i := range parts {
			p := &parts[i]
			if p.ints != nil {
				v := p.ints(int(row))
				tmp = appendInt(tmp[:0], v, p.signed && int64(v) < 0)
			} else {
				tmp = p.put(tmp[:0], int(row))
			}
			b.data = binary.AppendUvarint(b.data, uint64(len(tmp)))
			b.data = append(b.data, tmp...)
		}
		b.ends = append(b.ends, len(b.data))
	}
}

// encodeNormalised is encodeComposite under a rule for each part.
func encodeNormalised(parts []part, rules []Rule, b *Batch) {
	var tmp []byte
	kept := b.Rows[:0]
rows:
	for _, row := range b.Rows {
		start := len(b.data)
		for i := range parts {
			p := &parts[i]
			if p.ints != nil {
				v := p.ints(int(row))
				tmp = appendInt(tmp[:0], v, p.signed && int64(v) < 0)
			} else {
				tmp = p.put(tmp[:0], int(row))
			}
			value, ok := rules[i].apply(tmp)
			if !ok {
				b.data, b.void = b.data[:start], append(b.void, row)
				continue rows
			}
			b.data = binary.AppendUvarint(b.data, uint64(len(value)))
			b.data = append(b.data, value...)
		}
		kept = append(kept, row)
		b.ends = append(b.ends, len(b.data))
	}
	b.Rows = kept
}

// part reads one key column of one record batch.
type part struct {
	above  []arrow.Array // the structs that the column stands in
	leaf   arrow.Array   // the column
	null   bool          // it has no type and only NULLs
	dict   *array.Dictionary
	signed bool
	ints   func(row int) uint64             // integers
	put    func(dst []byte, row int) []byte // all other classes
}

// newPart descends from a top-level column to the key column.
func newPart(col arrow.Array, index []int) (part, error) {
	var p part
	for _, i := range index {
		col = unwrapped(col)
		st, ok := col.(*array.Struct)
		if !ok {
			return p, fmt.Errorf("want a struct, got %s", col.DataType())
		}
		p.above = append(p.above, st)
		col = st.Field(i)
	}
	p.leaf = col
	if raw, ok := col.(*Int96Array); ok {
		p.put = putInt96(raw.Storage().(*array.FixedSizeBinary))
		return p, nil
	}
	col = unwrapped(col)
	if d, ok := col.(*array.Dictionary); ok {
		p.dict, col = d, unwrapped(d.Dictionary())
	}
	p.null = col.DataType().ID() == arrow.NULL
	p.ints, p.signed = intsOf(col)
	if p.ints == nil {
		if p.put = putOf(col); p.put == nil {
			return p, fault.Unsupported(fault.At{}, "a key of type %s", col.DataType())
		}
	}
	if d := p.dict; d != nil {
		if ints := p.ints; ints != nil {
			p.ints = func(row int) uint64 { return ints(d.GetValueIndex(row)) }
		} else {
			put := p.put
			p.put = func(dst []byte, row int) []byte { return put(dst, d.GetValueIndex(row)) }
		}
	}
	return p, nil
}

// unwrapped returns the array below any extensions.
func unwrapped(a arrow.Array) arrow.Array {
	for {
		ext, ok := a.(array.ExtensionArray)
		if !ok {
			return a
		}
		a = ext.Storage()
	}
}

// mayBeNull reports whether some row may be without a value.
func (p part) mayBeNull() bool {
	return p.null || p.leaf.NullN() > 0 || p.dict != nil && p.dict.Dictionary().NullN() > 0 ||
		slices.ContainsFunc(p.above, func(a arrow.Array) bool { return a.NullN() > 0 })
}

func (p *part) isNull(row int) bool {
	if p.null {
		return true
	}
	for _, a := range p.above {
		if a.IsNull(row) {
			return true
		}
	}
	if p.leaf.IsNull(row) {
		return true
	}
	return p.dict != nil && p.dict.Dictionary().IsNull(p.dict.GetValueIndex(row))
}
