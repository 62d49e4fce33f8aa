package join

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// How the keys of both sides become comparable.

// keyOptions returns how columns of either side become keys.
func (j *Join) keyOptions() key.Options {
	return key.Options{Rule: j.rule, Classes: j.classes, IgnoreCase: j.opts.IgnoreCase, NullMisfits: j.opts.NullMisfits}
}

// matchOf returns a filter and the key columns of the side that it is applied
// to.
func (j *Join) matchOf(f *codec.Filter, key string) partition.Match {
	return partition.Match{Filter: f, Key: key, IgnoreCase: j.opts.IgnoreCase, NullMisfits: j.opts.NullMisfits}
}

// filterOptions returns the options of filters over the keys of a side.
func (j *Join) filterOptions(key string) filterbuild.Options {
	o := filterbuild.Options{Key: key, IgnoreCase: j.opts.IgnoreCase, NullMisfits: j.opts.NullMisfits}
	for _, c := range j.classes {
		o.Classes = append(o.Classes, string(c))
	}
	return o
}

// meet returns the classes in which the keys are compared: those of the filter,
// if one is given, else those that [key.Meet] finds for the files of both sides.
func (j *Join) meet() ([]key.Class, error) {
	ids, err := j.classesOf(j.ids, j.right)
	if err != nil {
		return nil, err
	}
	logs, err := j.classesOf(j.logs, j.left)
	if err != nil {
		return nil, err
	}
	all := make([]key.Class, len(j.left))
	for c := range all {
		var ok bool
		if all[c], ok = key.Meet(classesIn(ids, c), classesIn(logs, c)); !ok {
			return nil, j.mismatch(c, ids, logs)
		}
	}
	if j.opts.Filter == nil {
		return all, nil
	}
	of := key.ClassesOf(j.opts.Filter.KeyClasses())
	for i, f := range j.ids {
		at := fault.At{File: f.Name, Column: j.idKey}
		if err := key.Match(at, key.Side{Classes: of}, key.Side{Columns: j.right, Classes: ids[i], IDs: true}); err != nil {
			return nil, err
		}
	}
	return of, nil
}

// mismatch names the first two files in which key column c cannot be compared.
func (j *Join) mismatch(c int, ids, logs [][]key.Class) error {
	for _, of := range ids {
		for k, log := range logs {
			at := fault.At{File: j.logs[k].Name, Column: j.logKey}
			if err := j.matchPart(at, c, of[c], log[c]); err != nil {
				return err
			}
		}
	}
	at := fault.At{File: j.ids[0].Name, Column: j.idKey} // files of one side, where the other has only NULLs
	return fault.Mismatch(at, "key class", "one for all files of a side", fmt.Sprint(append(classesIn(ids, c), classesIn(logs, c)...))).
		WithHint("name files that have one type of key")
}

// matchPart compares the classes of key column c. Where one column holds the keys of
// both sides, a cast alone does not help.
func (j *Join) matchPart(at fault.At, c int, ids, log key.Class) error {
	left, right := j.left[c], j.right[c]
	once := j.opts.Type.keepsIDs() && slices.Equal(left.Path, right.Path)
	if once {
		right.Path = key.Path{"NAME"}
	}
	err := key.Match(at, key.Side{Columns: []key.Column{right}, Classes: []key.Class{ids}}, key.Side{Columns: []key.Column{left}, Classes: []key.Class{log}})
	var e *fault.Error
	if once && errors.As(err, &e) {
		e.Hint = "give the ID's column another name, so that each side keeps its own, and " + e.Hint
	}
	return err
}

// classesOf returns the classes of the key in each file.
func (j *Join) classesOf(files []*partition.File, columns []key.Column) ([][]key.Class, error) {
	options := j.keyOptions()
	options.Classes = nil
	var out [][]key.Class
	for _, f := range files {
		enc, err := key.NewEncoder(f.Schema(), columns, options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		out = append(out, enc.Classes())
	}
	return out, nil
}

// classesIn returns the class that column c has in each file.
func classesIn(files [][]key.Class, c int) (classes []key.Class) {
	for _, f := range files {
		classes = append(classes, f[c])
	}
	return classes
}

// typeText gives the key columns of text ID files the type of the log's. A
// column that is cast stays text: the cast decides what it is.
func (j *Join) typeText() error {
	types := map[string]arrow.DataType{}
	for i, c := range j.left {
		t := c.Cast
		if t == nil {
			var err error
			if t, err = j.logType(c); err != nil {
				return err
			}
		}
		if t := textType(t); t != nil && j.right[i].Cast == nil && !j.readsAsUUID(t) {
			types[j.right[i].Name()] = t
		}
	}
	for _, f := range j.ids {
		f.SetTypes(types, j.opts.IgnoreCase)
	}
	return nil
}

// logType returns the type of a key column of the log: an integer type, if some
// file has one, else that of the first file in which it is not null. Where some
// files have signed integers and some those of 64 bits without a sign, no integer
// type holds all of them, but a decimal does.
func (j *Join) logType(c key.Column) (t arrow.DataType, err error) {
	var signed, unsigned bool
	for _, f := range j.logs {
		field, err := c.Resolve(f.Schema(), j.opts.IgnoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if isInteger(field.Type) {
			wide := textType(field.Type).ID() == arrow.UINT64
			signed, unsigned = signed || !wide, unsigned || wide
		}
		if t == nil || t.ID() == arrow.NULL || isInteger(field.Type) && !isInteger(t) {
			t = field.Type
		}
	}
	if signed && unsigned {
		t = &arrow.Decimal128Type{Precision: 20}
	}
	return t, nil
}

func isInteger(t arrow.DataType) bool {
	c, err := key.ClassOf(t)
	return err == nil && c == key.Integer
}

// readsAsUUID reports whether text that meets columns of type t is left as it
// is, since the rule makes of it what t has.
func (j *Join) readsAsUUID(t arrow.DataType) bool {
	c, err := key.ClassOf(t)
	return err == nil && c == key.Fixed(16) && j.rule&key.UUID != 0
}

// textType returns the type as which a text is read to be compared with a
// column of type t: the widest of its class; nil: as it is.
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
	switch c, err := key.ClassOf(t); {
	case err != nil, c == key.Bytes, c == key.Null:
		return nil
	case c == key.Integer && t.ID() == arrow.UINT64:
		return t
	case c == key.Integer:
		return arrow.PrimitiveTypes.Int64
	case c == key.Float:
		return arrow.PrimitiveTypes.Float64
	case c == key.Date:
		return arrow.FixedWidthTypes.Date32
	}
	return t
}
