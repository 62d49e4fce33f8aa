package pagecopy

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/adapt"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// PairLayout says how pages of a log file and of a table become an output with [tables.Pairs].
// It is immutable.
type PairLayout struct {
	log     *arrow.Schema // of the file; files share it with their schema and metadata
	columns []tables.PairColumn

	Schema []meta.Element
	Orders []format.ColumnOrder
	Leaves []pairLeaf      // one per leaf of schema
	Arrow  *arrow.Schema   // the columns as records would have them
	Kept   []meta.KeyValue // metadata, other than what the output says of itself
}

// pairLeaf is the source of a leaf of the output: a leaf of the log file or of the
// table.
type pairLeaf struct {
	Log   int               // leaf of the file; -1: none
	Adapt *adapt.LeafSource // of a leaf of the file: changes levels; nil: pages stay as they are
	Table int               // leaf of the table; -1: none
	As    leaves.Shape      // of a leaf of the table
	Rest  restLeaf
}

// NewPairLayout returns the layout of an output of the pairs of a Parquet file. An
// error says why there can be none. like, if not nil, is the layout of another file
// with the same p. If its schema and metadata equal f's, the layouts share everything
// that does not depend on the file.
func NewPairLayout(f *source.File, p *tables.Pairs, like *PairLayout) (_ *PairLayout, err error) {
	columns, view := p.Columns(f), p.Log(f)
	if like == nil || like.log != view.Schema() || !slices.Equal(like.columns, columns) {
		if like, err = newPairLayout(view, p, columns); err != nil || view == f {
			return like, err
		}
	}
	if view == f {
		return like.of(f.Parquet().File()), nil
	}
	return like.adapted(f.Parquet().File())
}

// newPairLayout returns the layout of an output of the pairs of a file's columns.
func newPairLayout(f *source.File, p *tables.Pairs, columns []tables.PairColumn) (*PairLayout, error) {
	a := pairPlan{f: f, p: p, from: f.Parquet().File()}
	a.log, a.columns = f.Schema(), columns
	a.Schema = []meta.Element{a.from.Metadata.Schema[0]}
	a.Schema[0].NumChildren = thrift.New(int32(len(a.columns)))
	a.changed = len(a.columns) != f.StoredColumns()
	a.own = a.from.Project(nil)
	a.spans = tables.SpansOf(a.own.Schema)
	fields := make([]arrow.Field, len(a.columns))
	for i, c := range a.columns {
		var err error
		if c.Log >= 0 {
			fields[i], err = a.ofLog(c)
			a.changed = a.changed || c.Log != i
		} else {
			fields[i], err = a.ofTable(c)
			a.changed = true
		}
		if err != nil {
			return nil, f.Failed(err)
		}
	}
	md := f.Schema().Metadata()
	if a.Arrow = arrow.NewSchema(fields, &md); a.changed {
		a.Arrow = take.WithoutKeys(a.Arrow, take.Describing...)
	}
	if err := a.complete(); err != nil {
		return nil, f.Failed(err)
	}
	l := a.PairLayout // without what was needed to make it
	return &l, nil
}

// of returns the layout for another file.
func (l *PairLayout) of(f *parquet.File) *PairLayout {
	own := *l
	own.Leaves = slices.Clone(l.Leaves)
	for i, leaf := range own.Leaves {
		if leaf.Adapt != nil {
			own.Leaves[i].Adapt = adapt.Optional(f, leaf.Log)
		}
	}
	return &own
}

// adapted returns the layout of a union's columns for a file, whose pages are converted to them.
func (l *PairLayout) adapted(f *parquet.File) (*PairLayout, error) {
	own := *l
	own.Leaves = slices.Clone(l.Leaves)
	schema, top := []meta.Element{l.Schema[0]}, int32(0)
	for i, span := range tables.SpansOf(l.Schema) {
		if l.columns[i].Log >= 0 {
			schema = append(schema, l.Schema[span.Element:span.EndElement]...)
			top++
		}
	}
	schema[0].NumChildren = thrift.New(top)
	to, err := adapt.NewPicked(f, schema)
	if err != nil {
		return nil, err
	}
	next := 0
	for i := range own.Leaves {
		if leaf := &own.Leaves[i]; leaf.Table < 0 {
			leaf.Log, leaf.Adapt = to.Leaves[next].Leaf, &to.Leaves[next]
			next++
		}
	}
	return &own, nil
}

// pairPlan is a PairLayout that is being made.
type pairPlan struct {
	PairLayout
	f       *source.File
	p       *tables.Pairs
	from    *parquet.File
	own     parquet.Projection // all columns of the file
	spans   []tables.TableSpan // of these
	changed bool               // the columns are not exactly the file's
	ofIDs   []int              // elements of schema that come from the table
}

// ofLog adds a column of the log file.
func (a *pairPlan) ofLog(c tables.PairColumn) (arrow.Field, error) {
	span, raised := a.spans[c.Log], false
	elements := a.own.Schema[span.Element:span.EndElement]
	if a.p.KeepTable {
		switch elements[0].RepetitionType.V {
		case format.Repeated:
			return arrow.Field{}, cannotBeNull(elements[0].Name, "the log")
		case format.Required:
			elements[0].RepetitionType, raised = thrift.New(format.Optional), true
		}
		a.changed = a.changed || raised
	}
	for l := span.Leaf; l < span.EndLeaf; l++ {
		leaf := pairLeaf{Log: l, Table: -1, Rest: restLeaf{Table: -1}}
		if raised {
			leaf.Adapt = adapt.Optional(a.from, l)
		}
		a.Leaves = append(a.Leaves, leaf)
	}
	a.Schema, a.Orders = append(a.Schema, elements...), append(a.Orders, a.own.Orders[span.Leaf:span.EndLeaf]...)

	field := a.f.Schema().Field(c.Log)
	if !a.p.KeepTable {
		return field, nil
	}
	if c.Table >= 0 {
		if err := a.shareKey(c, field); err != nil {
			return field, err
		}
	}
	field.Nullable, field.Type = true, take.PlainType(field.Type)
	return field, nil
}

// ofTable adds a column of the table. It has no field ids: they are unique within one
// schema only.
func (a *pairPlan) ofTable(c tables.PairColumn) (arrow.Field, error) {
	of := a.p.Of
	span := of.Spans[c.Table]
	elements := slices.Clone(of.Elements[span.Element:span.EndElement])
	elements[0].Name = c.Name
	for i := range elements {
		elements[i].FieldID = thrift.Null[int32]{}
	}
	shift := uint8(0)
	if a.p.KeepLog {
		switch elements[0].RepetitionType.V {
		case format.Repeated:
			return arrow.Field{}, cannotBeNull(c.Name, "the IDs")
		case format.Required:
			elements[0].RepetitionType, shift = thrift.New(format.Optional), 1
		}
	}
	for l := span.Leaf; l < span.EndLeaf; l++ {
		as := leaves.Shape{Shift: shift, MaxDef: of.Leaves[l].MaxDef + int(shift)}
		a.Leaves = append(a.Leaves, pairLeaf{Log: -1, Table: l, As: as, Rest: restLeaf{Table: l, As: as}})
		a.Orders = append(a.Orders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	for i := range elements {
		a.ofIDs = append(a.ofIDs, len(a.Schema)+i)
	}
	a.Schema = append(a.Schema, elements...)

	field := take.WithoutFieldKeys(of.Schema.Field(c.Table), take.FieldID)
	field.Name, field.Nullable = c.Name, field.Nullable || a.p.KeepLog
	return field, nil
}

// cannotBeNull is the error for a column that has no NULL.
func cannotBeNull(column, side string) error {
	return fmt.Errorf("column %s of %s is repeated without being a list, so it cannot be NULL", column, side)
}

// complete checks the schema and sets the metadata.
func (a *pairPlan) complete() error {
	of, err := meta.LeavesOf(a.Schema)
	if err != nil {
		return err
	}
	for i := range a.Leaves {
		a.Leaves[i].Rest.Repeated = of[i].MaxRep > 0
	}
	return a.keepMetadata()
}

// keepMetadata sets the metadata that holds for the output. The Arrow schema is stored
// anew if a file of either side has one, or if a column of the table needs it.
func (a *pairPlan) keepMetadata() error {
	own := a.from.Metadata.KeyValueMetadata
	if !a.changed {
		a.Kept = KeptMetadata(own, nil)
		return nil
	}
	names := map[string]bool{}
	for _, c := range a.columns {
		if c.Log >= 0 {
			names[c.Name] = true
		}
	}
	a.Kept = KeptMetadata(own, names)
	a.keepSystems()
	fields, more, err := arrowparquet.Infer(a.Schema, a.Kept, a.Arrow.Fields())
	if err != nil {
		return err
	}
	stored, ofIDs := a.f.StoredSchema(), len(a.ofIDs) > 0 && a.tableStores()
	if stored == "" && !ofIDs && !more {
		return nil
	}
	list := make([]arrowparquet.StoredField, len(fields))
	for i, c := range a.columns {
		list[i].Field = fields[i]
		switch {
		case c.Log >= 0:
			list[i].Stored, list[i].At = stored, c.Log
		case ofIDs:
			list[i].Field = a.Arrow.Field(i)
		}
	}
	md := own // which is what Arrow readers show without a stored schema
	if stored != "" {
		md = a.f.Parquet().StoredMetadata()
	}
	encoded, err := arrowparquet.StoreFields(list, KeptMetadata(md, names))
	a.Kept = append(a.Kept, meta.KeyValue{Key: arrowparquet.SchemaKey, Value: encoded})
	return err
}

// tableStores reports whether a file of the table stores an Arrow schema.
func (a *pairPlan) tableStores() bool {
	for f := range a.p.Of.Sources {
		if f.StoredSchema() != "" {
			return true
		}
	}
	return false
}
