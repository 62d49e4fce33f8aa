package arrowparquet

import (
	"bytes"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Constant is a column that a file does not store, because all of its rows have one
// value. Files may share it.
type Constant struct {
	Name  string
	Value arrow.Array // of length 1
	leaf  parquet.Constant
}

// NewConstant returns a constant with the value in an array of length 1, which the
// Constant keeps without retaining it.
func NewConstant(name string, value arrow.Array) (Constant, error) {
	c := Constant{Name: name, Value: value}
	schema := arrow.NewSchema([]arrow.Field{{Name: name, Type: value.DataType(), Nullable: true}}, nil)
	s, err := NewShredder(schema)
	if err != nil {
		return c, err
	}
	rec := array.NewRecord(schema, []arrow.Array{value}, 1)
	defer rec.Release()
	err = s.Shred(rec, func(leaf int, p *parquet.Page) error {
		c.leaf.Element = s.Schema()[1+leaf]
		if p.NonNull > 0 {
			c.leaf.Plain = bytes.Clone(p.Plain)
		}
		return nil
	})
	return c, err
}

// absent returns the constants that the file does not have as top-level columns.
func absent(f *parquet.File, constants []Constant, ignoreCase bool) (leaves []parquet.Constant) {
	for _, c := range constants {
		has := func(n *meta.Node) bool {
			return n.Name == c.Name || ignoreCase && strings.EqualFold(n.Name, c.Name)
		}
		if !slices.ContainsFunc(f.Root.Children, has) {
			leaves = append(leaves, c.leaf)
		}
	}
	return leaves
}

// Holds reports whether statistics prove that all rows of a row group have the value,
// an array of length 1, in a top-level column of its type.
func (p *Parquet) Holds(group, column int, value arrow.Array) bool {
	c := p.columns[column]
	chunk := &p.f.Metadata.RowGroups[group].Columns[c.leaf].MetaData
	stats, l := &chunk.Statistics, &p.f.Leaves[c.leaf]
	nulls := p.f.Nulls(group, c.leaf)
	if c.sink == nil || nulls < 0 || !p.f.BoundsBelieved(l) {
		return false
	}
	if value.IsNull(0) {
		return nulls == chunk.NumValues
	}
	as, err := NewConstant(c.field.Name, value)
	if err != nil || as.leaf.Element.Type.V != l.Type || int(as.leaf.Element.TypeLength.V) != l.TypeLength {
		return false
	}
	plain := as.leaf.Plain
	if l.Type == format.ByteArray {
		plain = plain[4:] // without its length
		if len(plain) > 0 && !p.f.Metadata.BoundsCoverEmpty() {
			return false
		}
	}
	return nulls == 0 && l.Type != format.Float && l.Type != format.Double &&
		stats.MinValue.Valid && bytes.Equal(stats.MinValue.V, plain) && stats.MaxValue.Valid && bytes.Equal(stats.MaxValue.V, plain)
}
