package keys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Options control how key columns become keys.
type Options struct {
	Rule Rule // for string columns
	// Classes, one per column, are the classes of the other side. Numbers are
	// converted to them. A column that cannot be compared is not an error here; see
	// [Match]. nil: the columns' own classes.
	Classes []Class
	// IgnoreCase matches column names regardless of case.
	IgnoreCase bool
	// NullMisfits makes a value that does not fit its cast NULL instead of an
	// error.
	NullMisfits bool
	// NullsEqual makes a NULL a part of a key of several columns that equals another NULL. Such a key has
	// neither cast nor rule.
	NullsEqual bool
}

// Encoder turns the key columns of record batches of one schema into normal form.
// It is immutable, so goroutines may share one.
type Encoder struct {
	columns []Column
	fields  []Field
	options Options
	classes []Class // after casts and rules, before conversion
	keys    []Class // after conversion to Options.Classes
	rules   []Rule  // the part of the rule that applies to each column
	steps   []steps
}

// steps describes how a column's values become keys.
type steps struct {
	from arrow.DataType // the column's type
	cast arrow.DataType // nil: no cast
	of   Class          // class before the conversion
	to   Class          // class of the keys
}

// asStored reports whether the keys are the normal forms of the stored values,
// apart from a rule.
func (s steps) asStored() bool {
	cast, _ := s.caster()
	return cast == nil && s.converter() == nil
}

func (s steps) caster() (c convert, ok bool) {
	if s.cast == nil {
		return nil, true
	}
	return caster(s.from, s.cast)
}

func (s steps) converter() convert {
	if !s.of.Numeric() || !s.to.Numeric() {
		return nil
	}
	return converter(s.of, s.to)
}

// NewEncoder resolves the key columns in the schema. Unknown columns, unsupported
// types and casts are errors, and so is a rule that applies to none of the columns.
func NewEncoder(schema *arrow.Schema, columns []Column, o Options) (*Encoder, error) {
	if len(columns) == 0 {
		return nil, fmt.Errorf("no key column is named")
	}
	if err := o.Rule.Check(len(columns)); err != nil {
		return nil, err
	}
	if schema == nil {
		return nil, errors.New("no schema: want that of the records, got nil")
	}
	e := &Encoder{columns: columns, options: o}
	var stored []Class // before the rule
	for i, col := range columns {
		f, err := col.Resolve(schema, o.IgnoreCase)
		if err != nil {
			return nil, err
		}
		at := fault.At{Column: col.String()}
		c, err := ClassOf(f.Type)
		if err != nil {
			return nil, faults.Of(cause.KeyColumn, faults.Unsupported(at, "a key of type %s", f.Type)).WithHint("name a column of numbers, text or another plain type; fields of a struct are named a.b")
		}
		s := steps{from: f.Type, cast: col.Cast}
		if _, ok := s.caster(); !ok {
			e := faults.Unsupported(at, "a cast from %s to %s", f.Type, TypeName(col.Cast))
			back := steps{from: col.Cast, cast: f.Type}
			if _, ok := back.caster(); ok {
				e = e.WithHint("cast the other side to %s instead", TypeName(f.Type))
			}
			return nil, e
		}
		if col.Cast != nil {
			c, _ = ClassOf(col.Cast)
		}
		s.of = o.Rule.Class(c)
		s.to = s.of
		if i < len(o.Classes) && (s.of == Null || s.of.Numeric() && o.Classes[i].Numeric()) {
			s.to = o.Classes[i]
		}
		e.fields = append(e.fields, f)
		e.steps = append(e.steps, s)
		e.classes = append(e.classes, s.of)
		e.keys = append(e.keys, s.to)
		e.rules = append(e.rules, o.Rule.Of(c))
		stored = append(stored, c)
	}
	if o.Rule != 0 && !o.Rule.Concerns(stored) && !slices.Contains(stored, Null) {
		return nil, faults.Unsupported(fault.At{Column: ColumnsString(columns)}, "{Normalize %s} of a key of class %s", o.Rule, joined(stored)).
			WithHint("the rule is for strings: leave it out, or cast the column to string")
	}
	return e, nil
}

// Classes returns the class of each key column after its cast and rule, before its
// conversion to [Options.Classes].
func (e *Encoder) Classes() []Class {
	if e == nil {
		return nil
	}
	return e.classes
}

// Side returns the key columns and their classes.
func (e *Encoder) Side() Side {
	if e == nil {
		return Side{}
	}
	return Side{Columns: e.columns, Classes: e.classes}
}

// AsStored reports whether the key is one column whose values are neither cast nor
// converted; a rule may apply.
func (e *Encoder) AsStored() bool {
	return e != nil && len(e.steps) == 1 && e.steps[0].asStored()
}

// Index returns the field numbers that lead from the top of the schema to the key
// column, or nil unless there is exactly one key column.
func (e *Encoder) Index() []int {
	if e == nil || len(e.fields) != 1 {
		return nil
	}
	return e.fields[0].Index
}

// Columns returns the top-level columns that contain the key, in ascending order
// and without duplicates.
func (e *Encoder) Columns() []int {
	if e == nil {
		return nil
	}
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
	for i := range cols { // insertion sort: there are few
		for j := i; j > 0 && cols[j-1] > cols[j]; j-- {
			cols[j-1], cols[j] = cols[j], cols[j-1]
		}
	}
	return cols
}

// Encode fills b with the keys of the record. b may share the record's memory, so
// it is valid until the record is released.
func (e *Encoder) Encode(rec arrow.Record, b *Batch) error {
	switch {
	case e == nil || len(e.fields) == 0:
		return errors.New("the key encoder is nil or empty: want one from NewEncoder")
	case rec == nil:
		return errors.New("no record to encode keys of: got nil")
	case b == nil:
		return errors.New("no batch for the keys: got nil")
	}
	b.reset(int(rec.NumRows()))
	b.lenient = e.options.NullMisfits
	b.classes, b.rule = e.keys, e.options.Rule
	parts := make([]part, len(e.fields))
	for i, f := range e.fields {
		if most := int(rec.NumCols()); f.Index[0] >= most {
			return fmt.Errorf("column %s: want a record of the encoder's schema, got one of %d columns", e.columns[i], most)
		}
		p, err := newPart(rec.Column(f.Index[0]), f.Index[1:])
		if err != nil {
			return fmt.Errorf("column %s: %w", e.columns[i], err)
		}
		p.rule, p.class = e.rules[i], e.steps[i].to
		p.cast, _ = e.steps[i].caster()
		p.convert = e.steps[i].converter()
		parts[i] = p
	}
	if e.options.NullsEqual && len(parts) > 1 {
		b.numberRows(b.Len)
		encodeComposite(parts, true, b)
		return nil
	}
	b.encode(parts)
	return nil
}

// encode fills the batch, which was reset, with the keys of the parts.
func (b *Batch) encode(parts []part) {
	b.findRows(parts)
	changed := slices.ContainsFunc(parts, func(p part) bool { return p.rule != 0 || p.cast != nil || p.convert != nil })
	switch one := &parts[0]; {
	case len(parts) == 1 && one.null:
		b.isInt = one.class == Integer
	case len(parts) == 1 && one.cast == nil && one.convert == nil:
		encodeOne(one, b)
	case len(parts) == 1 && one.class == Integer:
		encodeIntegers(one, b)
	case len(parts) == 1:
		encodeChanged(one, b)
	case !changed:
		encodeComposite(parts, false, b)
	default:
		encodeChangedComposite(parts, b)
	}
}

// EncodeKeys is Encode for rows of a file, which errors name. A value that does not
// fit its cast is an error.
func (e *Encoder) EncodeKeys(file string, rec arrow.Record, b *Batch) error {
	if err := e.Encode(rec, b); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return b.Fit(fault.At{File: file}, e.columns)
}

// EncodeIDs is EncodeKeys for IDs: a value that cannot be an ID is an error too.
func (e *Encoder) EncodeIDs(file string, rec arrow.Record, b *Batch) error {
	if err := e.EncodeKeys(file, rec, b); err != nil {
		return err
	}
	return b.IDs(fault.At{File: file, Column: ColumnsString(e.columns)})
}

// findRows lists the rows without a NULL in the key.
func (b *Batch) findRows(parts []part) {
	if !slices.ContainsFunc(parts, (part).mayBeNull) {
		b.numberRows(b.Len)
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

// encodeOne encodes a key of one column that is neither cast nor converted.
func encodeOne(p *part, b *Batch) {
	if p.ints != nil {
		b.isInt, b.signed = true, p.signed
		if p.dict == nil {
			b.ints = p.gather(b.ints, b.Rows)
			return
		}
		for _, row := range b.Rows {
			b.ints = append(b.ints, p.ints(int(row)))
		}
		return
	}
	if p.rule == 0 && p.dict == nil && len(b.Rows) == b.Len && b.share(unwrapped(p.leaf)) {
		return
	}
	for _, row := range b.Rows {
		b.data = p.put(b.data, int(row))
		b.ends = append(b.ends, len(b.data))
	}
	if p.rule != 0 {
		b.normalise(p.rule)
	}
}

// encodeComposite encodes keys of several columns. It writes the length before each
// part, so that ("ab","c") and ("a","bc") differ. nulls: parts may be NULL.
func encodeComposite(parts []part, nulls bool, b *Batch) {
	var tmp []byte
	for _, row := range b.Rows {
		for i := range parts {
			if nulls && parts[i].isNull(int(row)) {
				b.data, b.nullParts = binary.AppendUvarint(b.data, nullPart), true
				continue
			}
			tmp = parts[i].stored(tmp[:0], int(row))
			b.data = binary.AppendUvarint(b.data, uint64(len(tmp)))
			b.data = append(b.data, tmp...)
		}
		b.ends = append(b.ends, len(b.data))
	}
}

// nullPart stands for a NULL, in place of a length, which is never as large.
const nullPart = 1 << 63

// part reads one key column of one record batch.
type part struct {
	above  []arrow.Array // the structs that contain the column, outermost first
	leaf   arrow.Array   // the column itself
	null   bool          // the column has Arrow's null type
	dict   *array.Dictionary
	signed bool
	ints   func(row int) uint64              // reads an integer; nil for all other classes
	gather func([]uint64, []uint32) []uint64 // reads integers of a column without a dictionary
	put    func(dst []byte, row int) []byte  // appends the normal form of any other class

	cast    convert // nil: none
	rule    Rule
	convert convert // nil: none
	class   Class   // class of the resulting key

	tmp [4][]byte // buffers for value
}

// stored appends the normal form of a row's stored value as a part of a composite
// key.
func (p *part) stored(dst []byte, row int) []byte {
	if p.ints != nil {
		v := p.ints(row)
		return appendInt(dst, v, p.signed && int64(v) < 0)
	}
	return p.put(dst, row)
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
	p.ints, p.gather, p.signed = intsOf(col)
	if p.ints == nil {
		if p.put = putOf(col); p.put == nil {
			return p, faults.Of(cause.KeyColumn, faults.Unsupported(fault.At{}, "a key of type %s", col.DataType()))
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

// unwrapped returns the storage array of an extension array, or a itself.
func unwrapped(a arrow.Array) arrow.Array {
	for {
		ext, ok := a.(array.ExtensionArray)
		if !ok {
			return a
		}
		a = ext.Storage()
	}
}

// mayBeNull reports whether any row may be NULL.
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
