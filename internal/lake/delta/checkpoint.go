package delta

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/storage"
)

// rowsOf calls each for the rows of a checkpoint, or of a sidecar of one, in Parquet: they are actions.
func rowsOf(ctx context.Context, src storage.Source, name string, each func(*action) error) (err error) {
	r, err := src.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return err
	}
	defer faults.Join(&err, r.Close)
	p, err := arrowparquet.OpenParquet(r, r.Object().Size, name, arrowparquet.ParquetOptions{})
	if err != nil {
		return err
	}
	defer faults.Join(&err, p.Close)
	var columns []int
	for i, f := range p.Schema().Fields() {
		switch f.Name {
		case "add", "protocol", "metaData", "sidecar": // removes are for those who delete files
			columns = append(columns, i)
		}
	}
	for g := range p.NumGroups() {
		for rec, err := range p.Read(ctx, g, columns) {
			if err == nil {
				err = eachOf(rec, name, each)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// eachOf calls each for the rows of a record.
func eachOf(rec arrow.Record, name string, each func(*action) error) error {
	for i, f := range rec.Schema().Fields() {
		column, ok := rec.Column(i).(*array.Struct)
		if !ok {
			return faults.Mismatch(fault.At{File: name, Column: f.Name}, "an action", "a struct", f.Type.String())
		}
		for row := range column.Len() {
			if column.IsNull(row) {
				continue
			}
			a, err := actionOf(f.Name, cell{column, row})
			if err != nil {
				return faults.Mismatch(fault.At{File: name, Column: f.Name}, "an action", "values as the protocol has them", err.Error())
			}
			if err := each(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// actionOf returns the action that a row of a column is.
func actionOf(name string, c cell) (a *action, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case otherType:
			err = r
		default:
			panic(r)
		}
	}()
	switch a = new(action); name {
	case "add":
		a.Add = &add{
			Path: c.text("path"), Partition: c.field("partitionValues").texts(), Size: c.integer("size"),
			Time: c.integer("modificationTime"), Stats: c.text("stats"),
		}
		if v := c.field("deletionVector"); v.is() {
			a.Add.Vector = &vector{Storage: v.text("storageType"), Text: v.text("pathOrInlineDv"), Size: int32(v.integer("sizeInBytes")), Count: v.integer("cardinality")}
			if v.field("offset").is() {
				offset := int32(v.integer("offset"))
				a.Add.Vector.Offset = &offset
			}
		}
		if !c.field("path").is() { // a struct of NULLs
			return new(action), nil
		}
	case "protocol":
		if c.field("minReaderVersion").is() {
			a.Protocol = &protocol{Reader: int32(c.integer("minReaderVersion")), Features: c.field("readerFeatures").list()}
		}
	case "metaData":
		if c.field("schemaString").is() {
			a.Metadata = &metadata{Schema: c.text("schemaString"), Partitions: c.field("partitionColumns").list(), Configuration: map[string]string{}}
			a.Metadata.Format.Provider = c.field("format").text("provider")
			for k, v := range c.field("configuration").texts() {
				if v != nil {
					a.Metadata.Configuration[k] = *v
				}
			}
		}
	case "sidecar":
		if c.field("path").is() {
			a.Sidecar = &sidecar{Path: c.text("path"), Size: c.integer("sizeInBytes")}
		}
	}
	return a, nil
}

// cell is a value of a column of a checkpoint; the zero value is NULL, and so is each of its fields.
type cell struct {
	of  arrow.Array
	row int
}

// otherType says that a value has another type than the protocol demands.
type otherType struct{ want, got string }

func (e otherType) Error() string { return fmt.Sprintf("%s in place of %s", e.got, e.want) }

func (c cell) is() bool { return c.of != nil && c.of.IsValid(c.row) }

// wrong ends the reading of an action.
func (c cell) wrong(want string) { panic(otherType{want, c.of.DataType().String()}) }

// field returns a field of a struct.
func (c cell) field(name string) cell {
	if !c.is() {
		return cell{}
	}
	s, ok := c.of.(*array.Struct)
	if !ok {
		c.wrong("a struct")
	}
	if i, ok := s.DataType().(*arrow.StructType).FieldIdx(name); ok {
		return cell{s.Field(i), c.row}
	}
	return cell{}
}

// text returns a field that is a string, empty for NULL.
func (c cell) text(name string) string {
	f := c.field(name)
	if !f.is() {
		return ""
	}
	return f.string()
}

func (c cell) string() string {
	switch a := c.of.(type) {
	case *array.String:
		return strings.Clone(a.Value(c.row)) // not the whole array
	case *array.Binary:
		return string(a.Value(c.row))
	}
	c.wrong("a string")
	return ""
}

// integer returns a field that is one, 0 for NULL.
func (c cell) integer(name string) int64 {
	f := c.field(name)
	if !f.is() {
		return 0
	}
	switch a := f.of.(type) {
	case *array.Int32:
		return int64(a.Value(f.row))
	case *array.Int64:
		return a.Value(f.row)
	}
	f.wrong("an integer")
	return 0
}

// list returns the strings of a list.
func (c cell) list() (all []string) {
	if !c.is() {
		return nil
	}
	l, ok := c.of.(*array.List)
	if !ok {
		c.wrong("a list")
	}
	from, to := l.ValueOffsets(c.row)
	for i := from; i < to; i++ {
		if v := (cell{l.ListValues(), int(i)}); v.is() {
			all = append(all, v.string())
		}
	}
	return all
}

// texts returns a map of strings; values may be NULL. Writers disagree about the names of its
// parts, so these are found by position.
func (c cell) texts() map[string]*string {
	if !c.is() {
		return nil
	}
	m, ok := c.of.(*array.Map)
	if !ok {
		c.wrong("a map")
	}
	all := map[string]*string{}
	from, to := m.ValueOffsets(c.row)
	for i := from; i < to; i++ {
		k, v := cell{m.Keys(), int(i)}, cell{m.Items(), int(i)}
		if all[k.string()] = nil; v.is() {
			text := v.string()
			all[k.string()] = &text
		}
	}
	return all
}
