package arrowparquet

import (
	"iter"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Assembly makes arrays of a column from pages of its leaves. It is immutable and safe for
// concurrent use.
type Assembly struct {
	col    *column
	leaves []meta.Leaf
}

// Assembly returns how arrays of a top-level column of the file are made.
func (p *Parquet) Assembly(column int) Assembly {
	c := p.columns[column]
	return Assembly{c, p.f.Leaves[c.leaf : c.leaf+c.leaves]}
}

// LeafAssembly returns how arrays are made of a column that is one leaf.
func LeafAssembly(l meta.Leaf) (Assembly, error) {
	dt, sink, err := leafType(&l, origin{}, int96Micros)
	c := &column{field: arrow.Field{Name: l.Dotted, Type: dt, Nullable: l.MaxDef > 0}, def: l.MaxDef, leaf: l.Index, leaves: 1, sink: sink}
	return Assembly{c, []meta.Leaf{l}}, err
}

// Optional returns the assembly for pages whose definition levels are greater by one, since
// the column became optional: level 0 is NULL.
func (a Assembly) Optional() Assembly {
	out := Assembly{col: a.col.raised()}
	out.col.field.Nullable = true
	for _, l := range a.leaves {
		l.MaxDef++
		out.leaves = append(out.leaves, l)
	}
	return out
}

// raised returns the column with greater levels.
func (c *column) raised() *column {
	r := *c
	r.def++
	if r.slot > 0 {
		r.slot++
	}
	if r.elemDef > 0 {
		r.elemDef++
	}
	r.children = nil
	for _, cc := range c.children {
		r.children = append(r.children, cc.raised())
	}
	return &r
}

// Array returns the array of rows in pages, none of which has a dictionary. pages yields
// those of a leaf of the column, counted from its first one. The caller releases the array.
func (a Assembly) Array(mem memory.Allocator, rows int, pages func(leaf int) iter.Seq2[*parquet.Page, error]) (arrow.Array, error) {
	asm := assembler{mem: mem, leaves: map[int]*leafBatch{}}
	defer func() {
		for _, b := range asm.leaves {
			b.drop()
		}
	}()
	if err := a.fill(&asm, a.col, rows, pages); err != nil {
		return nil, err
	}
	d, err := asm.build(a.col)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

// fill reads the pages of the leaves below a column.
func (a Assembly) fill(asm *assembler, c *column, rows int, pages func(leaf int) iter.Seq2[*parquet.Page, error]) error {
	for _, cc := range c.children {
		if err := a.fill(asm, cc, rows, pages); err != nil {
			return err
		}
	}
	if c.sink == nil {
		return nil
	}
	i := c.leaf - a.col.leaf
	b := &leafBatch{col: c, leaf: &a.leaves[i], at: fault.At{Column: a.leaves[i].Dotted}}
	b.begin(asm.mem, rows)
	asm.leaves[c.leaf] = b
	for p, err := range pages(i) {
		if err == nil {
			err = b.add(p, nil)
		}
		if err != nil {
			return misfit(b.at, err)
		}
	}
	return nil
}

// NewHolder returns a shredder whose leaves hold values of every type without loss, also
// NULLs in columns that are declared to have none. Its schema is not one for files.
func NewHolder(sc *arrow.Schema) (*Shredder, error) {
	plan, err := planFor(sc, true)
	if err != nil {
		return nil, err
	}
	return &Shredder{schema: sc, plan: plan}, nil
}

// Assemblies returns how arrays of a holder's columns are made of its pages again.
func (s *Shredder) Assemblies() ([]Assembly, error) {
	leaves, err := meta.LeavesOf(s.plan.elements)
	if err != nil {
		return nil, err
	}
	all := make([]Assembly, len(s.plan.shapes))
	for i, sh := range s.plan.shapes {
		c := heldColumn(s.schema.Field(i), sh, levels{})
		all[i] = Assembly{c, leaves[c.leaf : c.leaf+c.leaves]}
	}
	return all, nil
}

// heldColumn returns the column of a holder's node. Each node is optional.
func heldColumn(f arrow.Field, sh *shape, l levels) *column {
	l.def++
	c := &column{field: f, rep: l.rep, slot: l.slot, def: l.def}
	dt := storage(f.Type)
	if sh.leaf != nil {
		_, c.sink = heldAs(dt)
		c.leaf, c.leaves = sh.leaf.index, 1
		return c
	}
	inner := l.element()
	switch dt := dt.(type) {
	case *arrow.StructType:
		for i, child := range sh.children {
			c.children = append(c.children, heldColumn(dt.Field(i), child, l))
		}
	case *arrow.MapType:
		pair := &column{field: arrow.Field{Type: dt.Elem()}, rep: inner.rep, slot: inner.slot, def: inner.def, leaf: sh.firstLeaf(), leaves: sh.countLeaves()}
		for i, f := range []arrow.Field{dt.KeyField(), dt.ItemField()} {
			pair.children = append(pair.children, heldColumn(f, sh.children[i], inner))
		}
		c.elemDef, c.children = inner.def, []*column{pair}
	case arrow.ListLikeType:
		c.elemDef, c.children = inner.def, []*column{heldColumn(dt.ElemField(), sh.children[0], inner)}
	}
	c.leaf, c.leaves = sh.firstLeaf(), sh.countLeaves()
	return c
}

func (sh *shape) firstLeaf() int {
	for sh.leaf == nil {
		sh = sh.children[0]
	}
	return sh.leaf.index
}

func (sh *shape) countLeaves() (n int) {
	if sh.leaf != nil {
		return 1
	}
	for _, c := range sh.children {
		n += c.countLeaves()
	}
	return n
}

// heldAs returns the element in which a holder has values of a type, and what makes arrays of
// them; a nil sink: it cannot hold the type.
func heldAs(dt arrow.DataType) (e meta.Element, sink sinkFunc) {
	switch dt := dt.(type) {
	case *arrow.NullType:
		return logically(ofType(format.Int32), &format.NullType{}), nullSink
	case *arrow.BooleanType:
		return ofType(format.Boolean), boolSink
	case *arrow.StringType, *arrow.BinaryType:
		return ofType(format.ByteArray), bytesSink[int32]
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return ofType(format.ByteArray), bytesSink[int64]
	case *arrow.StringViewType, *arrow.BinaryViewType:
		return ofType(format.ByteArray), newViewSink
	case *arrow.StructType:
		if dt.NumFields() == 0 {
			return ofType(format.Boolean), newEmptySink(1)
		}
	case arrow.FixedWidthDataType:
		switch w := dt.BitWidth() / 8; w {
		case 0:
			return ofType(format.Boolean), newEmptySink(2)
		case 4:
			return ofType(format.Int32), copySink(w)
		case 8:
			return ofType(format.Int64), copySink(w)
		default:
			return fixedLength(w), copySink(w)
		}
	}
	return e, nil
}

// heldField adds the element of a leaf of a holder.
func (s *shaper) heldField(f arrow.Field, name string, leaf *leafShape) error {
	e, sink := heldAs(storage(f.Type))
	if sink == nil {
		return s.fail(f.Type, "its layout")
	}
	e.Name, e.RepetitionType = name, thrift.New(format.Optional)
	leaf.raw, leaf.length = true, int(e.TypeLength.V)
	s.elements = append(s.elements, e)
	return nil
}

// raw appends values as Arrow has them.
func (p *leafPage) raw(arr arrow.Array, slots []slot) error {
	dt, fixed := arr.DataType().(arrow.FixedWidthDataType)
	_, bits := arr.(*array.Boolean)
	_, empty := arr.(*array.Struct)
	switch {
	case empty || fixed && dt.BitWidth() == 0: // a bit each, so that their number is known
		p.plain = append(p.plain, make([]byte, (p.NonNull+7)/8)...)
		return nil
	case bits || !fixed:
		return p.values(arr, slots, 0)
	case p.NonNull == 0:
		return nil
	}
	w := dt.BitWidth() / 8
	b := arr.Data().Buffers()[1].Bytes()[arr.Data().Offset()*w:]
	each(slots, func(i int) { p.plain = append(p.plain, b[i*w:(i+1)*w]...) })
	return nil
}

// viewSink collects byte arrays for an array of views.
type viewSink struct {
	varSink[int64]
	mem memory.Allocator
}

func newViewSink(mem memory.Allocator, values int) sink {
	return &viewSink{*bytesSink[int64](mem, values).(*varSink[int64]), mem}
}

func (s *viewSink) data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData {
	defer s.release()
	b := array.NewBinaryViewBuilder(s.mem)
	defer b.Release()
	ends, values := offsetsIn[int64](s.offsets.mem.Bytes()[:s.offsets.n]), s.bytes.mem.Bytes()
	for i := range slots {
		b.Append(values[ends[i]:ends[i+1]])
	}
	a := b.NewArray()
	defer a.Release()
	return array.NewData(dt, slots, append([]*memory.Buffer{validity}, a.Data().Buffers()[1:]...), nil, nulls, 0)
}

// emptySink counts values without bytes, in arrays of one buffer or two.
type emptySink struct{ buffers int }

func newEmptySink(buffers int) sinkFunc {
	return func(memory.Allocator, int) sink { return emptySink{buffers} }
}

func (emptySink) release()                                     {}
func (emptySink) spread([]uint32, int)                         {}
func (emptySink) add(*parquet.Page, *parquet.Dictionary) error { return nil }

func (s emptySink) data(dt arrow.DataType, slots, nulls int, validity *memory.Buffer) arrow.ArrayData {
	return array.NewData(dt, slots, []*memory.Buffer{validity, nil}[:s.buffers], nil, nulls, 0)
}
