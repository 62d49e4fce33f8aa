package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// A Repeater ends a page at the first row, or copy of a row, with which the page reaches
// one of these limits.
const (
	repeatedEntries = 1 << 16
	repeatedBytes   = 1 << 20 // of values, or of indices
)

// Repeater repeats rows of a sequence of pages. It is not safe for concurrent use.
type Repeater struct {
	leaf  *meta.Leaf
	times []uint32
	rows  int  // that were looked at
	ended bool // there are no more input pages

	in   *Page // nil: all of it was used
	dict *Dictionary
	at   cursor // in the page
	left uint32 // copies still to be made of the row at at; 0: it was not looked at
	due  uint64 // rows of the result that the page's rows make

	open   openRow
	closed bool // the open row is complete
	out    entryBuffer
	sel    []uint32 // entries to be copied
	values []uint32 // values to be copied
	page   Page
}

// entryBuffer holds entries.
type entryBuffer struct {
	rep, def []uint8
	plain    []byte
	indices  []uint32
	entries  int
	values   int
	rows     int
}

func (b *entryBuffer) reset() {
	*b = entryBuffer{rep: b.rep[:0], def: b.def[:0], plain: b.plain[:0], indices: b.indices[:0]}
}

// openRow is a row, to be repeated, that may continue in the next page.
type openRow struct {
	entryBuffer
	coded    bool
	dict     *Dictionary
	encoding format.Encoding
	left     uint32 // copies to be made; 0: there is no such row
}

// NewRepeater returns a Repeater for pages of the leaf with len(times) rows in total. Row i
// appears times[i] times in the result, at least once.
func NewRepeater(l *meta.Leaf, times []uint32) *Repeater { return &Repeater{leaf: l, times: times} }

// Next returns the next page of the result, with its dictionary, or io.EOF after the
// last one. next returns the input pages in the same way; it is called when the previous page
// was used. A page without a repeated row is passed on as it is. Other pages have a
// bounded size unless a single row exceeds it, and keep the form
// of their values: indices stay indices. The result is valid until the next call. An
// error is final.
func (r *Repeater) Next(next func() (*Page, *Dictionary, error)) (*Page, *Dictionary, error) {
	for {
		if r.closed {
			return r.copies(), r.open.dict, nil
		}
		if r.in != nil {
			if p, err := r.more(); err != nil || p != nil {
				return p, r.dict, err
			}
		}
		if r.ended {
			return nil, nil, io.EOF
		}
		p, dict, err := next()
		switch {
		case err == io.EOF && r.rows != len(r.times):
			return nil, nil, r.fail("%d rows to be repeated, not %d", r.rows, len(r.times))
		case err == io.EOF:
			r.ended, r.closed = true, r.open.left > 0
			continue
		case err != nil:
			return nil, nil, err
		}
		repeats, err := r.admit(p, dict)
		if err != nil {
			return nil, nil, err
		}
		if !repeats {
			r.rows += p.Rows
			return p, dict, nil
		}
	}
}

func (r *Repeater) fail(format string, args ...any) error {
	return fmt.Errorf("column %s: "+format, append([]any{r.leaf.Dotted}, args...)...)
}

// admit takes the next input page. It returns false if nothing of it is repeated.
func (r *Repeater) admit(p *Page, dict *Dictionary) (repeats bool, err error) {
	midRow := p.Values > 0 && p.Rep != nil && p.Rep[0] != 0
	switch {
	case p.Rows > len(r.times)-r.rows:
		return false, r.fail("more than %d rows to be repeated", len(r.times))
	case midRow && r.rows == 0:
		return false, r.fail("rows to be repeated begin in the middle of a row")
	}
	r.due = 0
	for _, n := range r.times[r.rows : r.rows+p.Rows] {
		if n == 0 {
			return false, r.fail("a row to be repeated 0 times")
		}
		r.due += uint64(n)
	}
	repeats = r.open.left > 0 || r.due > uint64(p.Rows)
	if !repeats || p.Values == 0 {
		return false, nil
	}
	if err := r.check(p); err != nil {
		return false, err
	}
	r.in, r.dict, r.at, r.left = p, dict, cursor{}, 0
	if r.open.left == 0 {
		return true, nil
	}
	if midRow {
		end, err := r.rowEnd(r.at)
		if err == nil {
			err = r.open.add(r.leaf, p, dict, r.at, end)
		}
		if err != nil {
			return false, err
		}
		r.at = end
	}
	r.closed = r.at.entry < p.Values
	return true, nil
}

// check checks that the page is decoded and consistent.
func (r *Repeater) check(p *Page) error {
	l := r.leaf
	rows, there := p.Values, p.Values
	if p.Rep != nil {
		rows = enc.CountLevels(p.Rep, 0)
	}
	if p.Def != nil {
		there = enc.CountLevels(p.Def, uint8(l.MaxDef))
	}
	size, want := p.sizes(l)
	if (l.MaxDef > 0) != (p.Def != nil) || (l.MaxRep > 0) != (p.Rep != nil) || p.Def != nil && len(p.Def) != p.Values ||
		p.Rep != nil && len(p.Rep) != p.Values || rows != p.Rows || there != p.NonNull || size != want {
		return r.fail("a page of %d rows to be repeated is not decoded, or not consistent", p.Rows)
	}
	return nil
}

// more returns the next page of repeated rows of the input page; nil: the next input
// page is needed.
func (r *Repeater) more() (*Page, error) {
	r.out.reset()
	var err error
	if r.in.Rep != nil || r.leaf.Type == format.ByteArray && !r.in.Coded && r.in.NonNull > 0 {
		err = r.ragged()
	} else {
		r.even()
	}
	if err != nil {
		return nil, err
	}
	p := r.in
	if r.at.entry == p.Values {
		r.in = nil
	}
	if r.out.entries == 0 {
		return nil, nil
	}
	return r.result(p, p.Coded), nil
}

// result returns what r.out holds as a page.
func (r *Repeater) result(like *Page, coded bool) *Page {
	o := &r.out
	r.page = Page{
		Number: like.Number, Offset: like.Offset, FirstRow: like.FirstRow, Encoding: like.Encoding,
		Values: o.entries, Rows: o.rows, NonNull: o.values, Coded: coded,
	}
	if coded {
		r.page.Indices = o.indices
	} else {
		r.page.Plain = o.plain
	}
	if r.leaf.MaxDef > 0 {
		r.page.Def = o.def
	}
	if r.leaf.MaxRep > 0 {
		r.page.Rep = o.rep
	}
	return &r.page
}

// even copies rows of one entry each whose values have the same size, or are indices.
func (r *Repeater) even() {
	p, o := r.in, &r.out
	size := max(r.leaf.Width(), 1)
	if p.Coded {
		size = 4
	}
	from := r.at
	r.choose(min(repeatedEntries, max(1, repeatedBytes/size), int(min(r.due, repeatedEntries))))
	o.entries, o.rows = len(r.sel), len(r.sel)
	values := r.sel
	switch {
	case p.NonNull == p.Values:
		r.at.value = r.at.entry
	case p.NonNull == 0:
		values = nil
	default:
		r.chooseValues(from)
		values = r.values
	}
	if p.Def != nil {
		o.def = enc.SelectLevels(o.def, p.Def, r.sel)
	}
	o.values = len(values)
	switch {
	case p.Coded:
		o.indices = enc.Reuse(o.indices, len(values))
		for i, v := range values {
			o.indices[i] = p.Indices[v]
		}
	case r.leaf.Type == format.Boolean:
		o.plain = enc.GatherBools(o.plain, p.Plain, values)
	default:
		o.plain = enc.GatherFixed(o.plain, p.Plain, r.leaf.Width(), values)
	}
}

// choose sets r.sel to the entries from r.at on, repeated, but at most most of them,
// and moves past those that are repeated often enough.
func (r *Repeater) choose(most int) {
	r.sel = enc.Reuse(r.sel, most)
	n, entry := 0, r.at.entry
	times := r.times[r.rows:]
	for entry < r.in.Values && n < most {
		left := r.left
		if left == 0 {
			left = times[0]
		}
		if left == 1 {
			r.sel[n] = uint32(entry)
			n++
		} else {
			k := min(int(left), most-n)
			enc.Fill(r.sel[n:n+k], uint32(entry))
			n += k
			if r.left = left - uint32(k); r.left > 0 {
				break
			}
		}
		r.left = 0
		entry, times = entry+1, times[1:]
	}
	r.sel = r.sel[:n]
	r.at.entry, r.rows = entry, len(r.times)-len(times)
}

// chooseValues sets r.values to the values of the entries in r.sel, and r.at.value to
// the first value from r.at on. from is the cursor at the first of the entries.
func (r *Repeater) chooseValues(from cursor) {
	def, full := r.in.Def, uint8(r.leaf.MaxDef)
	r.values = enc.Reuse(r.values, len(r.sel))
	n, entry, value := 0, uint32(from.entry), uint32(from.value)
	for _, e := range r.sel { // e is entry, or the next one
		if e != entry && def[entry] == full {
			value++
		}
		entry = e
		r.values[n] = value
		if def[e] == full {
			n++
		}
	}
	if r.at.entry > int(entry) && def[entry] == full {
		value++
	}
	r.at.value = int(value)
	r.values = r.values[:n]
}

// ragged copies rows of any number of entries, or of values of any size. Rows that
// are not repeated are copied together.
func (r *Repeater) ragged() error {
	p, o := r.in, &r.out
	run := r.at // the rows from here to r.at stand once and were not copied yet
	for r.at.entry < p.Values && o.entries+r.at.entry-run.entry < repeatedEntries && r.size(run) < repeatedBytes {
		if some := r.single(); some > 0 {
			if err := r.skip(some); err != nil {
				return err
			}
			continue
		}
		end, err := r.rowEnd(r.at)
		if err != nil {
			return err
		}
		switch {
		case r.left > 0:
		case p.Rep != nil && p.Rep[r.at.entry] != 0:
			r.left = 1 // the rest of a row that is not repeated
		default:
			r.left = r.times[r.rows]
			r.rows++
		}
		if r.left == 1 {
			r.at, r.left = end, 0
			continue
		}
		o.add(r.leaf, p, run, r.at)
		run = r.at
		if p.Rep != nil && end.entry == p.Values {
			r.open.begin(r.left, p.Encoding)
			if err := r.open.add(r.leaf, p, r.dict, r.at, end); err != nil {
				return err
			}
			r.at, run, r.left = end, end, 0
			break
		}
		for r.left > 0 && o.entries < repeatedEntries && r.size(run) < repeatedBytes {
			o.add(r.leaf, p, r.at, end)
			r.left--
		}
		if r.left > 0 {
			break
		}
		r.at, run = end, end
	}
	o.add(r.leaf, p, run, r.at)
	return nil
}

// single returns the number of rows from r.at on that have one entry each and are not repeated.
// It stops early enough that a page hardly exceeds its limits.
func (r *Repeater) single() (n int) {
	p := r.in
	if p.Rep != nil || r.left > 0 {
		return 0
	}
	most := min(64, p.Values-r.at.entry, max(1, p.NonNull*(repeatedBytes/64)/(len(p.Plain)+1)))
	for _, times := range r.times[r.rows : r.rows+most] {
		if times > 1 {
			break
		}
		n++
	}
	return n
}

// skip moves past n byte arrays or NULLs that are rows.
func (r *Repeater) skip(n int) error {
	p, values := r.in, n
	if p.Def != nil {
		values = enc.CountLevels(p.Def[r.at.entry:r.at.entry+n], uint8(r.leaf.MaxDef))
	}
	w := enc.ByteArrays{Src: p.Plain, Pos: uint64(r.at.pos)}
	if !w.Skip(values) {
		return r.fail("to be repeated: %w", enc.ErrByteArrays)
	}
	r.at = cursor{entry: r.at.entry + n, value: r.at.value + values, pos: int(w.Pos)}
	r.rows += n
	return nil
}

// size returns the bytes of the values in r.out and of those from run to r.at.
func (r *Repeater) size(run cursor) int {
	if r.in.Coded {
		return 4 * (r.out.values + r.at.value - run.value)
	}
	return len(r.out.plain) + r.at.pos - run.pos
}

// rowEnd returns the position after the entries, in the input page, of the row at at.
func (r *Repeater) rowEnd(at cursor) (cursor, error) {
	p := r.in
	for {
		if p.Def == nil || p.Def[at.entry] == uint8(r.leaf.MaxDef) {
			at.value++
			switch {
			case p.Coded:
			case r.leaf.Type == format.ByteArray:
				_, next, err := enc.ByteArrayAt(p.Plain, at.pos)
				if err != nil {
					return at, r.fail("to be repeated: %w", err)
				}
				at.pos = next
			default:
				at.pos += r.leaf.Width()
			}
		}
		at.entry++
		if at.entry == p.Values || p.Rep == nil || p.Rep[at.entry] == 0 {
			return at, nil
		}
	}
}

// add appends entries of a page.
func (b *entryBuffer) add(l *meta.Leaf, p *Page, from, to cursor) {
	n := to.value - from.value
	switch {
	case n == 0:
	case p.Coded:
		b.indices = append(b.indices, p.Indices[from.value:to.value]...)
	case l.Type == format.Boolean:
		b.plain = enc.AppendBits(b.plain, b.values, p.Plain, from.value, n)
	default:
		b.plain = append(b.plain, p.Plain[from.pos:to.pos]...)
	}
	b.values += n
	b.addLevels(p, from.entry, to.entry)
}

func (b *entryBuffer) addLevels(p *Page, from, to int) {
	b.entries += to - from
	if p.Def != nil {
		b.def = append(b.def, p.Def[from:to]...)
	}
	if p.Rep == nil {
		b.rows += to - from
		return
	}
	b.rep = append(b.rep, p.Rep[from:to]...)
	b.rows += enc.CountLevels(p.Rep[from:to], 0)
}

// begin starts a row to be repeated.
func (o *openRow) begin(times uint32, encoding format.Encoding) {
	o.reset()
	o.coded, o.dict, o.encoding, o.left = false, nil, encoding, times
}

// add appends entries of the row. Its values become plain if they come in several
// forms.
func (o *openRow) add(l *meta.Leaf, p *Page, dict *Dictionary, from, to cursor) error {
	var err error
	switch {
	case to.value > from.value && o.values == 0:
		o.coded, o.dict = p.Coded, dict
		o.entryBuffer.add(l, p, from, to)
	case to.value == from.value, o.coded == p.Coded && (!p.Coded || o.dict == dict):
		o.entryBuffer.add(l, p, from, to)
	default:
		if o.coded {
			if o.plain, err = decodeTo(o.plain, l, o.dict, o.indices); err != nil {
				return err
			}
			o.coded, o.dict, o.indices, o.encoding = false, nil, o.indices[:0], format.Plain
		}
		if !p.Coded {
			o.entryBuffer.add(l, p, from, to)
			break
		}
		if o.plain, err = decodeTo(o.plain, l, dict, p.Indices[from.value:to.value]); err != nil {
			return err
		}
		o.values += to.value - from.value
		o.addLevels(p, from.entry, to.entry)
	}
	if o.entries > MaxPageValues {
		return faults.Unsupported(fault.At{Column: l.Dotted}, "a row with more than %d values in one column", MaxPageValues)
	}
	if len(o.plain) > enc.MaxPageSize {
		return tooWide(l)
	}
	return nil
}

// decodeTo appends the values of indices.
func decodeTo(dst []byte, l *meta.Leaf, dict *Dictionary, indices []uint32) ([]byte, error) {
	if dict == nil {
		return nil, errors.New("indices without a dictionary")
	}
	dst, n := dict.AppendValues(dst, indices, l.Width(), enc.MaxPageSize+1)
	if n < len(indices) || len(dst) > enc.MaxPageSize {
		return nil, tooWide(l)
	}
	return dst, nil
}

func tooWide(l *meta.Leaf) error {
	return faults.Unsupported(fault.At{Column: l.Dotted}, "a row with more than %s in one column", show.Size(enc.MaxPageSize))
}

// copies returns the next page of copies of the open row.
func (r *Repeater) copies() *Page {
	o, row := &r.out, &r.open
	o.reset()
	p := Page{Rep: row.rep, Def: row.def, Plain: row.plain, Indices: row.indices, Coded: row.coded, Encoding: row.encoding}
	end := cursor{entry: row.entries, value: row.values, pos: len(row.plain)}
	for more := true; more; more = row.left > 0 && o.entries < repeatedEntries && 4*len(o.indices)+len(o.plain) < repeatedBytes {
		o.add(r.leaf, &p, cursor{}, end)
		row.left--
	}
	r.closed = row.left > 0
	return r.result(&p, row.coded)
}
