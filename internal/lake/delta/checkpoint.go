package delta

import (
	"context"
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
		var wrong error
		note := func(want, got string) {
			wrong = faults.Mismatch(fault.At{File: name, Column: f.Name}, "an action", want, got)
		}
		column := rec.Column(i)
		for row := range column.Len() {
			if column.IsNull(row) {
				continue // another action
			}
			a := actionOf(f.Name, cell{column, row, note})
			if wrong == nil {
				wrong = each(a)
			}
			if wrong != nil {
				return wrong
			}
		}
	}
	return nil
}

// actionOf returns the action that a row of a column is.
func actionOf(name string, c cell) *action {
	a := new(action)
	switch name {
	case "add":
		if !c.field("path").is() { // a struct of NULLs
			return a
		}
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
	return a
}

// cell is a value of a column of a checkpoint; the zero value is NULL, and so is each of its fields.
type cell struct {
	of    arrow.Array
	row   int
	wrong func(want, got string) // receives the types of a value that has another than the protocol demands; it counts as NULL
}

// at returns a value of another array.
func (c cell) at(of arrow.Array, row int) cell { return cell{of, row, c.wrong} }

func (c cell) is() bool { return c.of != nil && c.of.IsValid(c.row) }

// as returns the array of a value that is not NULL, and whether the value is there and of that type.
func as[T arrow.Array](c cell, want string) (of T, ok bool) {
	if !c.is() {
		return of, false
	}
	if of, ok = c.of.(T); !ok {
		c.wrong(want, c.of.DataType().String())
	}
	return of, ok
}

// field returns a field of a struct.
func (c cell) field(name string) cell {
	if s, ok := as[*array.Struct](c, "a struct"); ok {
		if i, ok := s.DataType().(*arrow.StructType).FieldIdx(name); ok {
			return c.at(s.Field(i), c.row)
		}
	}
	return cell{}
}

// text returns a field that is a string, empty for NULL.
func (c cell) text(name string) string { return c.field(name).string() }

// string returns a string, empty for NULL.
func (c cell) string() string {
	if b, ok := c.of.(*array.Binary); ok && c.is() {
		return string(b.Value(c.row))
	}
	if s, ok := as[*array.String](c, "a string"); ok {
		return strings.Clone(s.Value(c.row)) // not the whole array
	}
	return ""
}

// integer returns a field that is one, 0 for NULL.
func (c cell) integer(name string) int64 {
	f := c.field(name)
	if n, ok := f.of.(*array.Int32); ok && f.is() {
		return int64(n.Value(f.row))
	}
	if n, ok := as[*array.Int64](f, "an integer"); ok {
		return n.Value(f.row)
	}
	return 0
}

// list returns the strings of a list.
func (c cell) list() (all []string) {
	l, ok := as[*array.List](c, "a list")
	if !ok {
		return nil
	}
	from, to := l.ValueOffsets(c.row)
	for i := from; i < to; i++ {
		if v := c.at(l.ListValues(), int(i)); v.is() {
			all = append(all, v.string())
		}
	}
	return all
}

// texts returns a map of strings; values may be NULL. Writers disagree about the names of its
// parts, so these are found by position.
func (c cell) texts() map[string]*string {
	m, ok := as[*array.Map](c, "a map")
	if !ok {
		return nil
	}
	all := map[string]*string{}
	from, to := m.ValueOffsets(c.row)
	for i := from; i < to; i++ {
		k, v := c.at(m.Keys(), int(i)), c.at(m.Items(), int(i))
		if all[k.string()] = nil; v.is() {
			text := v.string()
			all[k.string()] = &text
		}
	}
	return all
}
