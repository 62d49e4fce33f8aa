package arrowparquet

import (
	"bytes"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Constant is a column that the file does not store, because all of its rows have one
// value.
type Constant struct {
	Name  string
	Value arrow.Array // of length 1
}

// absent returns the constants that the file does not have as top-level columns.
func absent(f *parquet.File, constants []Constant, ignoreCase bool) (left []Constant) {
	for _, c := range constants {
		has := func(n *parquet.Node) bool {
			return n.Name == c.Name || ignoreCase && strings.EqualFold(n.Name, c.Name)
		}
		if !slices.ContainsFunc(f.Root.Children, has) {
			left = append(left, c)
		}
	}
	return left
}

// ofLeaves converts constants to leaves of a Parquet schema.
func ofLeaves(constants []Constant) (leaves []parquet.Constant, err error) {
	if len(constants) == 0 {
		return nil, nil
	}
	fields, values := make([]arrow.Field, len(constants)), make([]arrow.Array, len(constants))
	for i, c := range constants {
		fields[i], values[i] = arrow.Field{Name: c.Name, Type: c.Value.DataType(), Nullable: true}, c.Value
	}
	schema := arrow.NewSchema(fields, nil)
	s, err := NewShredder(schema)
	if err != nil {
		return nil, err
	}
	rec := array.NewRecord(schema, values, 1)
	defer rec.Release()
	err = s.Shred(rec, func(leaf int, p *parquet.Page) error {
		c := parquet.Constant{Element: s.Schema()[1+leaf]}
		if p.NonNull > 0 {
			c.Plain = bytes.Clone(p.Plain)
		}
		leaves = append(leaves, c)
		return nil
	})
	return leaves, err
}

// Holds reports whether statistics prove that all rows of a row group have the value,
// an array of length 1, in a top-level column of its type.
func (p *Parquet) Holds(group, column int, value arrow.Array) bool {
	c := p.columns[column]
	chunk := &p.f.Metadata.RowGroups[group].Columns[c.leaf].MetaData
	stats := &chunk.Statistics
	if c.sink == nil || !stats.NullCount.Valid {
		return false
	}
	if value.IsNull(0) {
		return stats.NullCount.V == chunk.NumValues
	}
	leaves, err := ofLeaves([]Constant{{c.field.Name, value}})
	l := &p.f.Leaves[c.leaf]
	if err != nil || leaves[0].Element.Type.V != l.Type || int(leaves[0].Element.TypeLength.V) != l.TypeLength {
		return false
	}
	plain := leaves[0].Plain
	if l.Type == format.ByteArray {
		plain = plain[4:] // without its length
	}
	return stats.NullCount.V == 0 && l.Type != format.Float && l.Type != format.Double && p.f.BoundsBelieved(l) &&
		stats.MinValue.Valid && bytes.Equal(stats.MinValue.V, plain) && stats.MaxValue.Valid && bytes.Equal(stats.MaxValue.V, plain)
}
