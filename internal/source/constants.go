package source

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// constantTable is a table with columns that have one value in all rows, after those
// that are stored, which may have other names. (Parquet files have theirs as leaves.)
type constantTable struct {
	Table
	mem    memory.Allocator
	schema *arrow.Schema
	values []arrow.Array // of length 1
}

// withConstants returns the table with the constants that it does not store.
func withConstants(t Table, mem memory.Allocator, constants []arrowparquet.Constant, ignoreCase bool) Table {
	var values []arrow.Array
	own := t.Schema().Fields()
	fields := slices.Clone(own)
	for _, c := range constants {
		same := func(f arrow.Field) bool { return f.Name == c.Name || ignoreCase && strings.EqualFold(f.Name, c.Name) }
		if slices.ContainsFunc(own, same) {
			continue
		}
		values = append(values, c.Value)
		fields = append(fields, arrow.Field{Name: c.Name, Type: c.Value.DataType(), Nullable: true})
	}
	if len(values) == 0 {
		return t
	}
	md := t.Schema().Metadata()
	return &constantTable{Table: Stored(t), mem: mem, schema: arrow.NewSchema(fields, &md), values: values}
}

// Stored returns the table without constants.
func Stored(t Table) Table {
	if c, ok := t.(*constantTable); ok {
		return c.Table
	}
	return t
}

// restored returns a table with the constants of t.
func restored(t, inner Table) Table {
	c, ok := t.(*constantTable)
	if !ok {
		return inner
	}
	own := *c
	own.Table = inner
	fields := slices.Concat(inner.Schema().Fields(), c.schema.Fields()[c.stored():])
	for i := range c.stored() {
		fields[i].Name = c.schema.Field(i).Name
	}
	md := c.schema.Metadata()
	own.schema = arrow.NewSchema(fields, &md)
	return &own
}

// stored is the number of columns that are stored.
func (c *constantTable) stored() int { return c.schema.NumFields() - len(c.values) }

func (c *constantTable) Schema() *arrow.Schema { return c.schema }

func (c *constantTable) Read(ctx context.Context, group int, columns []int) iter.Seq2[arrow.Record, error] {
	if columns == nil {
		columns = []int{}
		for i := range c.schema.NumFields() {
			columns = append(columns, i)
		}
	}
	own := []int{} // to read, in any case without constants
	for _, i := range columns {
		if i < c.stored() {
			own = append(own, i)
		}
	}
	schema := Project(c.schema, columns)
	return func(yield func(arrow.Record, error) bool) {
		for rec, err := range c.Table.Read(ctx, group, own) {
			if err == nil {
				rec, err = c.complete(rec, schema, columns)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			more := yield(rec, nil)
			rec.Release()
			if !more {
				return
			}
		}
	}
}

// complete returns a record of the columns; rec has the stored ones.
func (c *constantTable) complete(rec arrow.Record, schema *arrow.Schema, columns []int) (arrow.Record, error) {
	arrays := make([]arrow.Array, len(columns))
	var made []arrow.Array
	defer func() {
		for _, a := range made {
			a.Release()
		}
	}()
	n := 0
	for i, column := range columns {
		if column < c.stored() {
			arrays[i] = rec.Column(n)
			n++
			continue
		}
		a, err := take.Array(c.mem, c.values[column-c.stored()], make([]int, rec.NumRows()))
		if err != nil {
			return nil, err
		}
		arrays[i], made = a, append(made, a)
	}
	return array.NewRecord(schema, arrays, rec.NumRows()), nil
}

func Project(schema *arrow.Schema, cols []int) *arrow.Schema {
	fields := each.Slice(cols, schema.Field)
	md := schema.Metadata()
	return take.WithoutKeys(arrow.NewSchema(fields, &md), take.Describing...)
}

func UpTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// same reports whether two names mean one column.
func (o *Opening) same(a, b string) bool { return a == b || o.IgnoreCase && strings.EqualFold(a, b) }

// rename returns the names that columns of a file are read by; see OpenOptions.OtherNames.
func (o *Opening) rename(file string, names []string) ([]string, error) {
	to := slices.Clone(names)
	for _, g := range o.others {
		at := -1
		for i, name := range names {
			if !slices.ContainsFunc(g, func(other string) bool { return o.same(other, name) }) {
				continue
			}
			if at >= 0 && names[at] != name {
				return nil, faults.Of(cause.NoColumn, faults.Mismatch(fault.At{File: file}, "columns that are read as "+g[0], "one", names[at]+" and "+name)).
					WithHint("leave one of them out of {OtherNames}")
			}
			if at = i; !o.same(name, g[0]) {
				to[i] = g[0]
			}
		}
	}
	return to, nil
}

// renamed returns a table, which is not Parquet, with the names that its columns are read by.
func (o *Opening) renamed(file string, t Table) (Table, error) {
	fields := slices.Clone(t.Schema().Fields())
	names := each.Slice(fields, func(f arrow.Field) string { return f.Name })
	to, err := o.rename(file, names)
	if err != nil || slices.Equal(to, names) {
		return t, err
	}
	for i := range fields {
		fields[i].Name = to[i]
	}
	md := t.Schema().Metadata()
	return &constantTable{Table: t, schema: take.WithoutKeys(arrow.NewSchema(fields, &md), take.Describing...)}, nil
}
