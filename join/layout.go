package join

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/partition"
)

// The columns of an answer are the log's, in order, and then, unless the join
// is semi or anti, the ID set's. A key column that has one name on both sides
// stands there once, with the log's type, or the ID's if the log's is null; for
// an ID without a log row it holds the ID's key. Another ID column whose name the log also has gets the ending
// "_ids".

// idColumns are the columns of the ID files. Their dictionaries, which differ
// from file to file, give way to their values.
type idColumns struct {
	schema  *arrow.Schema // nil if the answer has none of them
	payload []int         // those that stand in the answer
	shared  []sharedKey   // key columns of one name on both sides
}

// sharedKey is a key column of one name on both sides.
type sharedKey struct {
	name  string
	idCol int
}

func newIDColumns(ids []*partition.File, left, right []keys.Path, t Type) (*idColumns, error) {
	c := &idColumns{}
	if !t.columnsOfIDs() {
		return c, nil
	}
	c.schema = take.PlainSchema(ids[0].Schema())
	fields := slices.Clone(c.schema.Fields())
	for _, f := range ids[1:] {
		if !sameColumns(take.PlainSchema(f.Schema()), c.schema) {
			return nil, fault.Mismatch(fault.At{File: f.Name}, "columns of the ID files",
				fmt.Sprintf("%v as in %s", c.schema.Fields(), ids[0].Name), fmt.Sprint(f.Schema().Fields())).
				WithHint("give the files the same columns; a semi or anti join needs only the key")
		}
		for i, g := range f.Schema().Fields() {
			fields[i].Nullable = fields[i].Nullable || g.Nullable
		}
	}
	md := c.schema.Metadata()
	c.schema = arrow.NewSchema(fields, &md)
	for i, p := range right {
		if len(p) == 1 && slices.Equal(p, left[i]) {
			f, err := p.Resolve(c.schema)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ids[0].Name, err)
			}
			c.shared = append(c.shared, sharedKey{p[0], f.Index[0]})
		}
	}
	for i := range c.schema.Fields() {
		if !slices.ContainsFunc(c.shared, func(s sharedKey) bool { return s.idCol == i }) {
			c.payload = append(c.payload, i)
		}
	}
	return c, nil
}

// sameColumns compares names and types, not metadata.
func sameColumns(a, b *arrow.Schema) bool {
	return slices.EqualFunc(a.Fields(), b.Fields(), func(x, y arrow.Field) bool {
		return x.Name == y.Name && arrow.TypeEqual(x.Type, y.Type)
	})
}

// layout is how the rows of one log file become rows of the answer.
type layout struct {
	schema *arrow.Schema
	log    *arrow.Schema
	// shared holds, for each log column that is a shared key, the ID column.
	shared map[int]int
	// plain: the log's dictionaries give way to their values. They have no
	// entry for the key of an ID without a row, and a NULL column that another
	// part of the answer has in a dictionary fits in no Arrow file.
	plain bool
}

func newLayout(log *arrow.Schema, ids *idColumns, left []keys.Path, t Type) (*layout, error) {
	l := &layout{log: log, shared: map[int]int{}, plain: t.keepsIDs()}
	var fields []arrow.Field
	for _, s := range ids.shared {
		f, err := keys.Path{s.name}.Resolve(log)
		if err != nil {
			return nil, err
		}
		l.shared[f.Index[0]] = s.idCol
		if t.keepsIDs() && !sameClass(f.Type, ids.schema.Field(s.idCol).Type) {
			return nil, fault.Unsupported(fault.At{Column: s.name}, "a %s join whose key column has one name, but is %s in the log and %s in the IDs", t, f.Type, ids.schema.Field(s.idCol).Type).
				WithHint("rename the ID's column and write --on %s=NAME, so that each side keeps its own", s.name)
		}
	}
	for i, f := range log.Fields() {
		if t.keepsIDs() {
			f.Nullable, f.Type = true, take.PlainType(f.Type)
			if c, ok := l.shared[i]; ok && f.Type.ID() == arrow.NULL { // which could not hold the ID's key
				f.Type = ids.schema.Field(c).Type
			}
		}
		fields = append(fields, f)
	}
	for _, c := range ids.payload {
		f := ids.schema.Field(c)
		f.Metadata = withoutFieldID(f.Metadata)
		f.Nullable = f.Nullable || t == Left || t == Full
		for slices.ContainsFunc(fields, func(g arrow.Field) bool { return g.Name == f.Name }) {
			f.Name += "_ids"
		}
		fields = append(fields, f)
	}
	md := log.Metadata()
	l.schema = arrow.NewSchema(fields, &md)
	switch {
	case !t.columnsOfIDs():
		l.schema = log
	case len(fields) > len(log.Fields()):
		l.schema = partition.Reshaped(l.schema)
	}
	return l, nil
}

// sameClass reports whether keys of two types are of one class as they are
// stored: under a rule, those of others may be equal, too.
func sameClass(a, b arrow.DataType) bool {
	c, err := keys.ClassOf(a)
	d, err2 := keys.ClassOf(b)
	return err == nil && err2 == nil && (c == d || c == keys.Null || d == keys.Null)
}

// withoutFieldID drops the number by which Parquet knows a column, which is
// unique within one schema only.
func withoutFieldID(md arrow.Metadata) arrow.Metadata {
	var ks, vs []string
	for i, k := range md.Keys() {
		if k != "PARQUET:field_id" {
			ks, vs = append(ks, k), append(vs, md.Values()[i])
		}
	}
	return arrow.NewMetadata(ks, vs)
}
