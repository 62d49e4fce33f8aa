package arrowparquet

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go/format"

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
	full uint8    // definition level of a value
	at   fault.At // for errors

	rep, def []uint8 // empty if the leaf has none
	entries  int
	sink     sink // nil once its data is taken
}

// begin begins a batch.
func (b *leafBatch) begin(mem memory.Allocator) {
	b.drop()
	b.rep, b.def, b.entries = b.rep[:0], b.def[:0], 0
	b.sink = b.col.sink(mem)
}

// drop releases the values if they were not taken.
func (b *leafBatch) drop() {
	if b.sink != nil {
		b.sink.release()
		b.sink = nil
	}
}

// add adds entries from to to of a page, whose first value is the page's value first, and
// returns the number of values among them.
func (b *leafBatch) add(p *parquet.Page, from, to, first int, dict *parquet.Dictionary) (values int, err error) {
	n := to - from
	b.entries += n
	if p.Rep != nil {
		b.rep = append(b.rep, p.Rep[from:to]...)
	}
	if p.Def == nil {
		return n, b.sink.add(p, first, n, dict)
	}
	def := p.Def[from:to]
	b.def = append(b.def, def...)
	slot := uint8(b.col.slot)
	for i := 0; i < n; {
		j := i + 1
		switch {
		case def[i] == b.full:
			for j < n && def[j] == b.full {
				j++
			}
			if err := b.sink.add(p, first+values, j-i, dict); err != nil {
				return values, err
			}
			values += j - i
		case def[i] >= slot:
			for j < n && def[j] >= slot && def[j] != b.full {
				j++
			}
			b.sink.null(j - i)
		}
		i = j
	}
	return values, nil
}

// leafReader divides the pages of one column chunk into batches of rows.
type leafReader struct {
	leafBatch
	leaf  *meta.Leaf
	chunk *parquet.Chunk
	p     *Parquet
	buf   *parquet.Buffers // used by chunk

	group int
	// again means that the chunk is reopened for each batch, in memory shared with
	// other leaves.
	again bool

	most int64 // limit on the total bytes of the pages' values; 0: they were measured
	took int64

	page  *parquet.Page // nil before the first and after the last page
	entry int           // index of the next entry in the page
	value int           // index of the next value in the page, not counting NULLs
}

// newLeafReader returns a reader of a column whose pages are charged to the claim.
func newLeafReader(p *Parquet, group int, col *column, claim *parquet.Claim) *leafReader {
	f, buf := p.f, p.takeBuffers(claim)
	leaf := &f.Leaves[col.leaf]
	return &leafReader{
		leafBatch: leafBatch{col: col, full: uint8(leaf.MaxDef), at: fault.At{File: f.Name, RowGroup: group + 1, Column: leaf.Dotted}},
		group:     group, p: p, buf: buf, leaf: leaf, chunk: f.ChunkIn(buf, group, col.leaf),
	}
}

func (r *leafReader) close() {
	r.drop()
	r.page = nil
	r.p.putBuffers(r.buf)
}

// rest frees the pages, but not the batch.
func (r *leafReader) rest() {
	if !r.again {
		r.chunk.Close()
	}
	r.again, r.page = true, nil
}

// reopen restarts the chunk with only the given rows, using buf.
func (r *leafReader) reopen(f *parquet.File, buf *parquet.Buffers, rows []uint32) {
	r.chunk, r.page = f.ChunkIn(buf, r.group, r.col.leaf), nil
	r.chunk.Select(rows)
}

// advance makes sure that the page has an entry left. It returns false at the end
// of the chunk.
func (r *leafReader) advance(ctx context.Context) (bool, error) {
	if r.page != nil && r.entry < r.page.Values {
		return true, nil
	}
	p, err := r.chunk.Next(ctx)
	r.page, r.entry, r.value = p, 0, 0
	if errors.Is(err, io.EOF) {
		r.page = nil
		return false, nil
	}
	if err == nil && r.most > 0 {
		if r.took += int64(len(p.Plain)); r.took > r.most {
			return false, faults.Corrupt(r.at, "the pages have more than the %d bytes that the footer says", r.chunk.FooterBytes())
		}
	}
	return err == nil, err
}

// bound returns an upper bound on the size of some rows of the chunk, from its
// footer and its dictionary. ok is false if these give none.
func (r *leafReader) bound(ctx context.Context, rows int64) (bytes int64, ok bool, err error) {
	const levels = 16 // levels and offsets, per entry
	switch l := r.leaf; {
	case l.MaxRep > 0:
		return 0, false, nil
	case l.Type == format.FixedLenByteArray:
		return rows * (int64(l.TypeLength) + levels), true, nil
	case l.Type == format.Int96:
		return rows * (12 + levels), true, nil
	case l.Type != format.ByteArray:
		return rows * (8 + levels), true, nil
	}
	if !r.chunk.PlainOrCoded() { // other encodings may share bytes between values
		return 0, false, nil
	}
	d, err := r.chunk.ReadDictionary(ctx)
	if err != nil {
		return 0, false, err
	}
	return rows*(levels+d.Longest()) + r.chunk.FooterBytes(), true, nil
}

// read reads the next rows rows.
func (r *leafReader) read(ctx context.Context, mem memory.Allocator, rows int) error {
	r.begin(mem)
	begun := 0
	for begun < rows || r.leaf.MaxRep > 0 { // the last row may continue in the next page
		ok, err := r.advance(ctx)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		n, b := r.span(rows - begun)
		if n == 0 {
			break
		}
		begun += b
		if err := r.take(n); err != nil {
			at := r.at
			at.Page = r.page.Number
			return misfit(at, err)
		}
	}
	if begun < rows {
		return faults.Corrupt(r.at, "the column ends %d rows early", rows-begun)
	}
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

// span returns how many of the page's next entries belong to the next rows rows,
// and how many rows begin among them.
func (r *leafReader) span(rows int) (entries, begun int) {
	if r.leaf.MaxRep == 0 {
		n := min(rows, r.page.Values-r.entry)
		return n, n
	}
	for _, rep := range r.page.Rep[r.entry:] {
		if rep == 0 {
			if begun == rows {
				break
			}
			begun++
		}
		entries++
	}
	return entries, begun
}

// take moves the page's next n entries to the batch.
func (r *leafReader) take(n int) error {
	values, err := r.add(r.page, r.entry, r.entry+n, r.value, r.chunk.Dictionary())
	r.entry, r.value = r.entry+n, r.value+values
	return err
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
	switch {
	case c.sink != nil:
		return a.buildLeaf(c, r)
	case c.elemDef > 0:
		return a.buildList(c, r)
	}
	return a.buildStruct(c, r)
}

// valid returns the validity bitmap of a node, nil if no slot is NULL, and the
// numbers of slots and NULLs.
func (a *assembler) valid(c *column, r *leafBatch) (bitmap *memory.Buffer, slots, nulls int) {
	if len(r.def) == 0 {
		return nil, r.entries, 0
	}
	for i, d := range r.def {
		if c.begins(r, i) {
			slots++
			if int(d) < c.def {
				nulls++
			}
		}
	}
	if nulls == 0 {
		return nil, slots, 0
	}
	bitmap = memory.NewResizableBuffer(a.mem)
	bitmap.Resize((slots + 7) / 8)
	bits := bitmap.Bytes()
	clear(bits)
	at := 0
	for i, d := range r.def {
		if c.begins(r, i) {
			if int(d) >= c.def {
				bits[at/8] |= 1 << (at % 8)
			}
			at++
		}
	}
	return bitmap, slots, nulls
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

func (a *assembler) buildLeaf(c *column, r *leafBatch) (arrow.ArrayData, error) {
	bitmap, slots, nulls := a.valid(c, r)
	defer release(bitmap)
	s := r.sink
	r.sink = nil
	return s.data(c.field.Type, slots, nulls, bitmap), nil
}

func (a *assembler) buildStruct(c *column, r *leafBatch) (arrow.ArrayData, error) {
	bitmap, slots, nulls := a.valid(c, r)
	defer release(bitmap)
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

func (a *assembler) buildList(c *column, r *leafBatch) (arrow.ArrayData, error) {
	bitmap, slots, nulls := a.valid(c, r)
	defer release(bitmap)
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
	if fixed, ok := c.field.Type.(*arrow.FixedSizeListType); ok {
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
	if int64(slots)*int64(size) > maxRowSize/elementBytes {
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
	b := buf.Bytes()
	at, elements := 0, 0
	for i, d := range r.def {
		if int(r.rep[i]) > c.rep+1 || int(d) < c.slot {
			continue // continues an element, or is in no slot of this list
		}
		if int(r.rep[i]) <= c.rep {
			putOffset(b[at*w:], O(elements))
			at++
		}
		if int(d) >= c.elemDef {
			elements++
		}
	}
	putOffset(b[at*w:], O(elements))
	if w == 4 && elements > math.MaxInt32 {
		buf.Release()
		return nil, faults.Unsupported(r.at, "lists of more than 2^31 elements in one batch")
	}
	return buf, nil
}
