package answer

import (
	"errors"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Pairing says which columns of both sides are the key, and how their values
// become comparable. It is immutable.
type Pairing struct {
	Log, IDs []keys.Column
	LogText  string // log and ids as text
	IDsText  string
	Rule     keys.Rule
	Classes  []keys.Class // in which both sides are compared

	IgnoreCase  bool
	NullMisfits bool
}

// NewPairing finds the keys in the files of both sides. Unless the options say
// otherwise, it gives the key columns of text ID files the type of the log's.
func NewPairing(o *Options, ids, logs []*source.File) (*Pairing, error) {
	p := &Pairing{IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits}
	var err error
	if p.Log, p.IDs, err = keys.ParsePairs(o.On); err != nil {
		return nil, err
	}
	if p.Rule, err = keys.ParseRule(o.Normalize); err != nil {
		return nil, err
	}
	if p.Rule&keys.URLHost != 0 {
		return nil, faults.Unsupported(fault.At{}, "{Normalize url-host} in a join: a host may have parent domains among the IDs, and is equal to none").
			WithHint("build a filter with the rule, and scan the log with it")
	}
	p.LogText, p.IDsText = keys.ColumnsString(p.Log), keys.ColumnsString(p.IDs)
	if !o.KeepTypes {
		if err := p.typeText(ids, logs); err != nil {
			return nil, err
		}
	}
	p.Classes, err = p.meet(o, ids, logs)
	return p, err
}

// Options returns how columns of either side become keys.
func (p *Pairing) Options() keys.Options {
	return keys.Options{Rule: p.Rule, Classes: p.Classes, IgnoreCase: p.IgnoreCase, NullMisfits: p.NullMisfits}
}

// Match returns a filter and the key columns, p.LogText or p.IDsText, that it is
// applied to.
func (p *Pairing) Match(f *filters.Filter, columns string) dataset.Match {
	return dataset.Match{Filter: (*codec.Filter)(f), Key: columns, IgnoreCase: p.IgnoreCase, NullMisfits: p.NullMisfits}
}

// Integers reports whether the key is one column of integers.
func (p *Pairing) Integers() bool { return len(p.Classes) == 1 && p.Classes[0] == keys.Integer }

// KeyColumns returns the positions of the columns of an ID file that the key needs.
func (p *Pairing) KeyColumns(f *source.File) ([]int, error) {
	enc, err := keys.NewEncoder(f.Schema(), p.IDs, p.Options())
	if err != nil {
		return nil, f.Failed(err)
	}
	return enc.Columns(), nil
}

// meet returns the classes in which the keys are compared: those of the given
// filter, or else those that [keys.Meet] finds for the files of both sides.
func (p *Pairing) meet(o *Options, ids, logs []*source.File) ([]keys.Class, error) {
	ofIDs, err := p.classesOf(ids, p.IDs)
	if err != nil {
		return nil, err
	}
	ofLogs, err := p.classesOf(logs, p.Log)
	if err != nil {
		return nil, err
	}
	all := make([]keys.Class, len(p.Log))
	for c := range all {
		var ok bool
		if all[c], ok = keys.Meet(classesIn(ofIDs, c), classesIn(ofLogs, c)); !ok {
			return nil, p.mismatch(o.Type, c, classed{ids, ofIDs}, classed{logs, ofLogs})
		}
	}
	if o.Filter == nil {
		return all, nil
	}
	of := keys.ClassesOf(o.Filter.KeyClasses())
	for i, f := range ids {
		at := fault.At{File: f.Name(), Column: p.IDsText}
		if err := keys.Match(at, keys.Side{Classes: of}, keys.Side{Columns: p.IDs, Classes: ofIDs[i], IDs: true}); err != nil {
			return nil, err
		}
	}
	return of, nil
}

// classed are the files of one side with the classes of their key columns.
type classed struct {
	files   []*source.File
	classes [][]keys.Class
}

// mismatch returns an error that names the first two files in which key column c
// cannot be compared.
func (p *Pairing) mismatch(t Type, c int, ids, logs classed) error {
	for _, of := range ids.classes {
		for k, log := range logs.classes {
			at := fault.At{File: logs.files[k].Name(), Column: p.LogText}
			if err := p.matchColumn(at, t, c, of[c], log[c]); err != nil {
				return err
			}
		}
	}
	at := fault.At{File: ids.files[0].Name(), Column: p.IDsText} // files of one side disagree, and the other has only NULLs
	return faults.Of(cause.KeyTypes, faults.Mismatch(at, "key class", "one for all files of a side", append(classesIn(ids.classes, c), classesIn(logs.classes, c)...))).
		WithHint("name files that have one type of key")
}

// matchColumn compares the classes of key column c. If one column of the answer
// holds the keys of both sides, a cast alone does not help.
func (p *Pairing) matchColumn(at fault.At, t Type, c int, ids, log keys.Class) error {
	left, right := p.Log[c], p.IDs[c]
	once := t.KeepsIDs && slices.Equal(left.Path, right.Path)
	if once {
		right.Path = keys.Path{"NAME"}
	}
	err := keys.Match(at, keys.Side{Columns: []keys.Column{right}, Classes: []keys.Class{ids}}, keys.Side{Columns: []keys.Column{left}, Classes: []keys.Class{log}})
	var e *fault.Error
	if once && errors.As(err, &e) {
		e.Hint = "give the ID's column another name, so that each side keeps its own, and " + e.Hint
	}
	return err
}

// classesOf returns the classes of the key in each file.
func (p *Pairing) classesOf(files []*source.File, columns []keys.Column) ([][]keys.Class, error) {
	options := p.Options()
	options.Classes = nil
	var out [][]keys.Class
	for _, f := range files {
		enc, err := keys.NewEncoder(f.Schema(), columns, options)
		if err != nil {
			return nil, f.Failed(err)
		}
		out = append(out, enc.Classes())
	}
	return out, nil
}

// classesIn returns the class that column c has in each file.
func classesIn(files [][]keys.Class, c int) (classes []keys.Class) {
	for _, f := range files {
		classes = append(classes, f[c])
	}
	return classes
}

// typeText replaces text files among the IDs by views in which the key columns have the
// type of the log's. A column that is cast stays text: the cast determines its type.
func (p *Pairing) typeText(ids, logs []*source.File) error {
	types := map[string]arrow.DataType{}
	for i, c := range p.Log {
		t := c.Cast
		if t == nil {
			var err error
			if t, err = p.logType(c, logs); err != nil {
				return err
			}
		}
		if t := textType(t); t != nil && p.IDs[i].Cast == nil && !p.readsAsUUID(t) {
			types[p.IDs[i].Flat()] = t
		}
	}
	for i, f := range ids {
		var err error
		if ids[i], err = f.WithTypes(types, p.IgnoreCase); err != nil {
			return err
		}
	}
	return nil
}

// logType returns the type of a key column of the log: an integer type if some file has
// one, else the type in the first file in which it is not null, but float64 rather than
// float32. If some files have signed and some unsigned 64-bit integers, which no integer
// type covers, it is a decimal.
func (p *Pairing) logType(c keys.Column, logs []*source.File) (t arrow.DataType, err error) {
	var signed, unsigned bool
	for _, f := range logs {
		field, err := c.Resolve(f.Schema(), p.IgnoreCase)
		if err != nil {
			return nil, f.Failed(err)
		}
		if isInteger(field.Type) {
			wide := textType(field.Type).ID() == arrow.UINT64
			signed, unsigned = signed || !wide, unsigned || wide
		}
		if t == nil || t.ID() == arrow.NULL || isInteger(field.Type) && !isInteger(t) || isFloat(t) && textType(field.Type) == arrow.PrimitiveTypes.Float64 {
			t = field.Type
		}
	}
	if signed && unsigned {
		t = &arrow.Decimal128Type{Precision: 20}
	}
	return t, nil
}

func isInteger(t arrow.DataType) bool {
	c, err := keys.ClassOf(t)
	return err == nil && c == keys.Integer
}

func isFloat(t arrow.DataType) bool {
	c, err := keys.ClassOf(t)
	return err == nil && c == keys.Float
}

// readsAsUUID reports whether text compared with columns of type t stays text,
// because the rule turns it into UUIDs.
func (p *Pairing) readsAsUUID(t arrow.DataType) bool {
	c, err := keys.ClassOf(t)
	return err == nil && c == keys.Fixed(16) && p.Rule&keys.UUID != 0
}

// textType returns the type as which text is read to be compared with a column of
// type t: the widest of its class, but float32 for float32, since 0.1 is another number
// in each width. For binary, text is bytes that need not be UTF-8. Nil: text stays text.
func textType(t arrow.DataType) arrow.DataType {
	for {
		if d, ok := t.(*arrow.DictionaryType); ok {
			t = d.ValueType
		} else if e, ok := t.(arrow.ExtensionType); ok {
			t = e.StorageType()
		} else {
			break
		}
	}
	switch c, err := keys.ClassOf(t); {
	case c == keys.Bytes && t.ID() != arrow.STRING && t.ID() != arrow.LARGE_STRING && t.ID() != arrow.STRING_VIEW:
		return arrow.BinaryTypes.Binary
	case err != nil, c == keys.Bytes, c == keys.Null:
		return nil
	case c == keys.Integer && t.ID() == arrow.UINT64:
		return t
	case c == keys.Integer:
		return arrow.PrimitiveTypes.Int64
	case c == keys.Float && t.ID() == arrow.FLOAT32:
		return t
	case c == keys.Float:
		return arrow.PrimitiveTypes.Float64
	case c == keys.Date:
		return arrow.FixedWidthTypes.Date32
	}
	return t
}
