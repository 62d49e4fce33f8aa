package text

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/scalar"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// Values are some of a column's values in Parquet's PLAIN encoding.
type Values struct {
	Rows    int    // including NULLs
	NonNull int    // values other than NULL
	Plain   []byte // integers: 8 bytes each, little-endian; byte strings: each preceded by its length in 4 bytes
}

// Sizes of Values, which fit in a processor's cache.
const (
	valueRows  = 16 << 10
	valueBytes = 1 << 20
)

// Kind is the form in which ReadPlain reads a column.
type Kind int

// The kinds. Columns of kind Other can only be read as records.
const (
	Other Kind = iota
	Signed
	Unsigned
	Bytes
)

// Kind returns the kind of a column: integers of any width, strings and binaries
// have one.
func (t *Table) Kind(column int) Kind {
	k, _ := kindOf(t.schema.Field(column).Type)
	return k
}

// kindOf returns the kind of a type, and the width of integers in bits.
func kindOf(t arrow.DataType) (k Kind, bits int) {
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64:
		return Signed, t.(arrow.FixedWidthDataType).BitWidth()
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return Unsigned, t.(arrow.FixedWidthDataType).BitWidth()
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY:
		return Bytes, 0
	}
	return Other, 0
}

// ReadPlain reads one column, whose Kind is not Other, of the groups lo to hi, exclusive.
// Groups that are read as one are read at less cost. ReadPlain yields the same values in
// the same order, and the same error, as Read. Values are valid until yield
// returns. If threads is more than one, that many goroutines parse lines, except
// for CSV, where the quotes of earlier lines decide how a line is read.
func (t *Table) ReadPlain(ctx context.Context, lo, hi, column, threads int) iter.Seq2[Values, error] {
	return func(yield func(Values, error) bool) {
		r, err := t.plainReader(column)
		if err == nil {
			err = t.checkGroups(lo, hi)
		}
		if err != nil {
			yield(Values{}, err)
			return
		}
		p, err := t.begin(ctx, lo, hi)
		if err != nil {
			yield(Values{}, err)
			return
		}
		defer p.close()
		p.texts = t.skipTexts()
		hand := func(v Values) bool { return yield(v, nil) }
		if s, ok := p.rows.(splitter); ok && threads > 1 {
			r.whole = true
			err = p.fillParts(ctx, r, s, threads, hand)
		} else {
			err = p.fillAll(ctx, r, hand)
		}
		if err == io.EOF {
			err = t.end(ctx, p, r.parses)
		}
		if err != nil {
			yield(Values{}, t.numbered(ctx, p, p.explain(err)))
		}
	}
}

// fillAll passes an input's values to yield. It returns io.EOF at the end, and nil
// once yield has returned false.
func (p *pass) fillAll(ctx context.Context, r *plainReader, yield func(Values) bool) error {
	for {
		err := r.fill(ctx, p)
		if err != nil && err != io.EOF {
			return err
		}
		if r.Rows > 0 && !yield(r.Values) {
			return nil
		}
		if err == io.EOF {
			return err
		}
	}
}

// plainReader fills Values.
type plainReader struct {
	Values
	column int
	name   string
	want   fault.Text
	kind   Kind
	bits   int
	ok     func(string) bool // condition on byte strings; nil: none
	text   bool              // byte strings must be UTF-8
	whole  bool              // fill reads all lines at once
}

func (t *Table) plainReader(column int) (*plainReader, error) {
	if err := cmp.Or(t.err, t.doubt); err != nil {
		return nil, err
	}
	if column < 0 || column >= t.schema.NumFields() {
		return nil, fmt.Errorf("%s: column %d of %d", t.at, column, t.schema.NumFields())
	}
	f := t.schema.Field(column)
	r := &plainReader{column: column, name: f.Name, want: t.wanted(column), ok: t.wants[f.Name].ok}
	r.text = isText(f.Type) && t.opts.Format != NDJSON // whose lines were checked
	if r.kind, r.bits = kindOf(f.Type); r.kind == Other {
		return nil, fmt.Errorf("%s: column %s of type %s has no plain values", t.at, f.Name, f.Type)
	}
	return r, nil
}

// fill reads the next values. It returns io.EOF at the end, with the last of them.
func (r *plainReader) fill(ctx context.Context, p *pass) error {
	r.Rows, r.NonNull, r.Plain = 0, 0, r.Plain[:0]
	if err := stopped.Err(ctx); err != nil {
		return err
	}
	for r.whole || r.Rows < valueRows && len(r.Plain) < valueBytes {
		if err := p.next(); err != nil {
			return err
		}
		v, ok := p.rows.value(r.column)
		if !ok {
			r.Rows++
			continue
		}
		if !r.put(v) {
			if err := p.refuse(r.column, r.name, r.want, r.parses); err != nil {
				return err
			}
			continue
		}
		r.Rows++
		r.NonNull++
	}
	return nil
}

// parses reports whether a text is a value of the column.
func (r *plainReader) parses(s string) bool {
	other := plainReader{kind: r.kind, bits: r.bits, ok: r.ok, text: r.text}
	return other.put([]byte(s))
}

// put appends the value of v. It returns false, and appends nothing, if v does not
// parse.
func (r *plainReader) put(v []byte) bool {
	if r.kind == Bytes {
		if len(v) > math.MaxInt32 || r.text && !validUTF8(v) || r.ok != nil && !r.ok(view(v)) {
			return false
		}
		r.Plain = append(binary.LittleEndian.AppendUint32(r.Plain, uint32(len(v))), v...)
		return true
	}
	n, ok := parseInt(v, r.kind == Signed, r.bits)
	if ok {
		r.Plain = binary.LittleEndian.AppendUint64(r.Plain, n)
	}
	return ok
}

// parseInt returns the integer value of s, an optional sign and digits with blanks around
// them, in two's complement. It returns false if it does not fit in bits.
func parseInt(s []byte, signed bool, bits int) (uint64, bool) {
	s, negative := scalar.Trim(s), false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative, s = s[0] == '-', s[1:]
	}
	var n uint64
	if len(s) == 0 {
		return 0, false
	}
	if len(s) > 19 { // may exceed 64 bits, or have leading zeros
		var err error
		if n, err = strconv.ParseUint(view(s), 10, 64); err != nil {
			return 0, false
		}
	} else {
		for len(s) >= 8 {
			eight, ok := parseEight(s)
			if !ok {
				return 0, false
			}
			n, s = 100_000_000*n+eight, s[8:]
		}
		for _, c := range s {
			if c -= '0'; c > 9 {
				return 0, false
			}
			n = 10*n + uint64(c)
		}
	}
	switch limit := uint64(1) << (bits - 1); {
	case !signed:
		return n, !(negative && n != 0) && n>>(bits-1)>>1 == 0
	case negative:
		return -n, n <= limit
	default:
		return n, n < limit
	}
}

// parseEight returns the number written in the first eight bytes, false if not all
// are digits. It combines neighbours: digits to pairs, pairs to fours, fours to
// eight (D. Lemire, "Quickly parsing eight digits", 2018).
func parseEight(s []byte) (uint64, bool) {
	v := binary.LittleEndian.Uint64(s)
	const zeros = 0x3030303030303030
	if v&0xF0F0F0F0F0F0F0F0 != zeros || (v+0x0606060606060606)&0xF0F0F0F0F0F0F0F0 != zeros {
		return 0, false
	}
	v -= zeros
	v = v*10 + v>>8
	v = v&0x000000FF000000FF*(100+1_000_000<<32) + v>>16&0x000000FF000000FF*(1+10_000<<32)
	return v >> 32, true
}

// view returns b as a string that is valid until b changes.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
