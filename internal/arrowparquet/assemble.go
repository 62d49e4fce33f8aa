package arrowparquet

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// leafBatch is the entries of a leaf in some rows: their levels, and a sink with its
// values.
type leafBatch struct {
	col  *column
	leaf *meta.Leaf
	at   fault.At // for errors

	rep, def []uint8 // empty if the leaf has none
	entries  int
	sink     sink     // nil once its data is taken
	places   []uint32 // of a page's values among its slots
}

// begin begins a batch of rows.
func (b *leafBatch) begin(mem memory.Allocator, rows int) {
	b.drop()
	b.rep, b.def, b.entries = b.rep[:0], b.def[:0], 0
	b.sink = b.col.sink(mem, rows)
}

// drop releases the values if they were not taken.
func (b *leafBatch) drop() {
	if b.sink != nil {
		b.sink.release()
		b.sink = nil
	}
}

// add adds the entries of a page.
func (b *leafBatch) add(p *parquet.Page, dict *parquet.Dictionary) error {
	b.entries += p.Values
	b.rep, b.def = append(b.rep, p.Rep...), append(b.def, p.Def...)
	err := b.sink.add(p, dict)
	if err != nil || p.NonNull == p.Values {
		return err
	}
	b.places = slices.Grow(b.places[:0], p.Values)[:p.Values]
	full, slot := uint8(b.leaf.MaxDef), uint8(b.col.slot)
	values, slots := 0, 0
	for _, d := range p.Def {
		b.places[values] = uint32(slots)
		if d == full {
			values++
		}
		if d >= slot {
			slots++
		}
	}
	b.sink.spread(b.places[:values], slots)
	return nil
}

// misfit adds the place to a sink's error about a value.
func misfit(at fault.At, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		f.At = at
		return f
	}
	return &fault.Error{Kind: fault.ErrCorrupt, At: at, What: "a value does not fit its column", Err: err}
}

// assembler builds the arrays of one batch from its leaves' entries.
type assembler struct {
	mem    memory.Allocator
	leaves map[int]*leafBatch
}

// build returns the data of a node. Its slots follow from the levels of any leaf
// under it; the first one's are used.
func (a *assembler) build(c *column) (arrow.ArrayData, error) {
	r := a.leaves[c.leaf]
	bitmap, slots, nulls := a.valid(c, r)
	defer release(bitmap)
	switch {
	case c.sink != nil:
		s := r.sink
		r.sink = nil
		return s.data(c.field.Type, slots, nulls, bitmap), nil
	case c.elemDef > 0:
		return a.buildList(c, r, bitmap, slots, nulls)
	}
	return a.buildStruct(c, r, bitmap, slots, nulls)
}

// valid returns the validity bitmap of a node, nil if no slot is NULL, and the
// numbers of slots and NULLs.
func (a *assembler) valid(c *column, r *leafBatch) (bitmap *memory.Buffer, slots, nulls int) {
	if len(r.def) == 0 || len(r.rep) == 0 && bytes.Count(r.def, []byte{uint8(r.leaf.MaxDef)}) == len(r.def) {
		return nil, r.entries, 0
	}
	bitmap = memory.NewResizableBuffer(a.mem)
	bitmap.Resize((len(r.def) + 7) / 8)
	bits := bitmap.Bytes()
	clear(bits)
	valid := 0
	for i, d := range r.def {
		if len(r.rep) > 0 && !c.begins(r, i) {
			continue
		}
		if int(d) >= c.def {
			bits[slots/8] |= 1 << (slots % 8)
			valid++
		}
		slots++
	}
	if valid == slots {
		bitmap.Release()
		return nil, slots, 0
	}
	bitmap.Resize((slots + 7) / 8)
	return bitmap, slots, slots - valid
}

// begins reports whether entry i starts a slot of the node.
func (c *column) begins(r *leafBatch, i int) bool {
	return (len(r.rep) == 0 || int(r.rep[i]) <= c.rep) && int(r.def[i]) >= c.slot
}

func release(b *memory.Buffer) {
	if b != nil {
		b.Release()
	}
}

func (a *assembler) buildStruct(c *column, r *leafBatch, bitmap *memory.Buffer, slots, nulls int) (arrow.ArrayData, error) {
	children := make([]arrow.ArrayData, 0, len(c.children))
	defer func() {
		for _, d := range children {
			d.Release()
		}
	}()
	for _, cc := range c.children {
		d, err := a.build(cc)
		if err != nil {
			return nil, err
		}
		children = append(children, d)
		if d.Len() != slots {
			return nil, faults.Corrupt(r.at, "the parts of a struct differ in length: %d and %d", slots, d.Len())
		}
	}
	return array.NewData(c.field.Type, slots, []*memory.Buffer{bitmap}, children, nulls, 0), nil
}

func (a *assembler) buildList(c *column, r *leafBatch, bitmap *memory.Buffer, slots, nulls int) (arrow.ArrayData, error) {
	var offsets *memory.Buffer
	var err error
	if storage(c.field.Type).ID() == arrow.LARGE_LIST {
		offsets, err = listOffsets[int64](a, c, r, slots)
	} else {
		offsets, err = listOffsets[int32](a, c, r, slots)
	}
	if err != nil {
		return nil, err
	}
	defer offsets.Release()
	elem, err := a.build(c.children[0])
	if err != nil {
		return nil, err
	}
	defer elem.Release()
	if fixed, ok := storage(c.field.Type).(*arrow.FixedSizeListType); ok {
		if elem, err = a.fixedElements(r.at, int(fixed.Len()), elem, offsets, bitmap, slots); err != nil {
			return nil, err
		}
		defer elem.Release()
		return array.NewData(c.field.Type, slots, []*memory.Buffer{bitmap}, []arrow.ArrayData{elem}, nulls, 0), nil
	}
	return array.NewData(c.field.Type, slots, []*memory.Buffer{bitmap, offsets}, []arrow.ArrayData{elem}, nulls, 0), nil
}

// elementBytes is the approximate size of an element of a fixed-size list, NULL or
// not.
const elementBytes = 8

// padding returns the approximate size of a row's fixed-size lists, which take that
// much even if they are NULL.
func (c *column) padding() (n int64) {
	if fixed, ok := storage(c.field.Type).(*arrow.FixedSizeListType); ok {
		n = int64(fixed.Len()) * elementBytes
	}
	for _, cc := range c.children {
		n += cc.padding()
	}
	return n
}

// fixedElements returns the elements of lists in the layout of fixed-size lists:
// size elements per slot, which are NULLs if the slot is NULL.
func (a *assembler) fixedElements(at fault.At, size int, elem arrow.ArrayData, offsets, bitmap *memory.Buffer, slots int) (arrow.ArrayData, error) {
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	valid := func(i int) bool { return bitmap == nil || bitmap.Bytes()[i/8]>>(i%8)&1 != 0 }
	nulls := 0
	for i := range slots {
		switch n := int(ends[i+1] - ends[i]); {
		case !valid(i):
			nulls++
		case n != size:
			return nil, faults.Corrupt(at, "a list of %d elements where the Arrow schema in the file says %d", n, size)
		}
	}
	if nulls == 0 {
		elem.Retain()
		return elem, nil
	}
	if int64(slots)*int64(size) > parquet.MaxRow/elementBytes {
		return nil, faults.Unsupported(at, "%d fixed-size lists of %d elements, %d of them NULL, in one batch", slots, size, nulls)
	}
	rows := make([]int, 0, slots*size)
	for i := range slots {
		for j := range size {
			if row := int(ends[i]) + j; valid(i) {
				rows = append(rows, row)
			} else {
				rows = append(rows, -1)
			}
		}
	}
	values := array.MakeFromData(elem)
	defer values.Release()
	padded, err := take.Array(a.mem, values, rows)
	if err != nil {
		return nil, err
	}
	defer padded.Release()
	padded.Data().Retain()
	return padded.Data(), nil
}

// listOffsets returns the offsets of a list's slots.
func listOffsets[O int32 | int64](a *assembler, c *column, r *leafBatch, slots int) (*memory.Buffer, error) {
	w := offsetSize[O]()
	buf := memory.NewResizableBuffer(a.mem)
	buf.Resize((slots + 1) * w)
	offsets := offsetsIn[O](buf.Bytes())
	at, elements := 0, 0
	for i, d := range r.def {
		if int(r.rep[i]) > c.rep+1 || int(d) < c.slot {
			continue // continues an element, or is in no slot of this list
		}
		if int(r.rep[i]) <= c.rep {
			offsets[at] = O(elements)
			at++
		}
		if int(d) >= c.elemDef {
			elements++
		}
	}
	offsets[at] = O(elements)
	if w == 4 && elements > math.MaxInt32 {
		buf.Release()
		return nil, faults.Unsupported(r.at, "lists of more than 2^31 elements in one batch")
	}
	return buf, nil
}
