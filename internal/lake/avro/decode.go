package avro

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

const (
	// Nearly all values take a byte or more; NULLs alone and records around others take none.
	// Without a bound on these, a few bytes could stand for any number of them.
	perByte, spare = 16, 4096
	maxValues      = 1 << 18 // of a record
)

// Value is a value of a record.
type Value struct {
	Kind  Kind
	Int   int64   // Boolean: 0 or 1; Int, Long; Enum: the index of the symbol
	Float float64 // Float, Double
	Bytes []byte  // Bytes, String, Fixed
	List  []Value // Array: its items; Rec: its fields, which [Value.Value] finds
	of    *node   // Rec: its type
}

// Value returns the value of the field with an id, nil if the schema has none or it was not asked
// for. What is not a record, as nil, has no fields.
func (v *Value) Value(id int) *Value {
	if v != nil && v.of != nil && id >= 0 {
		if i := slices.Index(v.of.ids, id); i >= 0 {
			return &v.List[i]
		}
	}
	return nil
}

// decoder reads values from b. After an error, it reads zeros and empty lists.
type decoder struct {
	b     []byte
	at    int   // in b
	left  int64 // values that may follow
	none  Value // takes what is skipped
	block int   // from 1, for errors
	err   error

	values, free []Value // memory for one record, used again for the next; what is free of it
}

// fresh returns memory for n values.
func (d *decoder) fresh(n int) []Value {
	if n > len(d.free) {
		d.values = make([]Value, max(n, 2*len(d.values)))
		d.free = d.values
	}
	v := d.free[:n:n]
	d.free = d.free[n:]
	return v
}

// all reads count records, which are the whole block.
func (d *decoder) all(root *node, count int64, each func(*Value) error) error {
	var v Value
	most := d.most()
	if count < 0 || count > most {
		d.fail("%d records in %d bytes", count, len(d.b))
	}
	for ; count > 0 && d.err == nil; count-- {
		d.free = d.values
		d.left = min(most, maxValues)
		most -= d.left
		if d.value(root, &v, 0); d.err == nil {
			if err := each(&v); err != nil {
				return err
			}
		}
		most += d.left
	}
	if d.at < len(d.b) {
		d.fail("%d bytes follow the last record", len(d.b)-d.at)
	}
	return d.err
}

// most returns how many values b may have.
func (d *decoder) most() int64 { return perByte*int64(len(d.b)) + spare }

// fail keeps the first error.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = faults.Corrupt(fault.At{}, "Avro block %d: byte %d: %s", d.block, d.at, faults.Textf(format, args...))
	}
	d.b, d.at, d.left = nil, 0, 0
}

// long reads an integer: seven bits a byte, the sign in the first.
func (d *decoder) long() int64 {
	if d.at < len(d.b) && d.b[d.at] < 0x80 {
		u := d.b[d.at]
		d.at++
		return int64(u>>1) ^ -int64(u&1)
	}
	v, n := binary.Varint(d.b[d.at:])
	if n < 0 {
		d.fail("want an integer of 64 bits, got more")
	} else if n == 0 {
		d.fail("it ends early")
	}
	d.at += max(n, 0)
	return v
}

// length reads the number of bytes of what follows.
func (d *decoder) length() int {
	n := d.long()
	if n < 0 || n > int64(len(d.b)-d.at) {
		d.fail("want a length of at most %d, got %d", len(d.b)-d.at, n)
		return 0
	}
	return int(n)
}

// take returns the next n bytes.
func (d *decoder) take(n int) []byte {
	if n > len(d.b)-d.at {
		d.fail("it ends early")
		return nil
	}
	d.at += n
	return d.b[d.at-n : d.at : d.at]
}

// claim reports whether n more values may follow at a depth.
func (d *decoder) claim(n int64, depth int) bool {
	if most := min(d.left, int64(len(d.b)-d.at)+spare); depth >= maxDepth || n < 0 || n > most {
		d.fail("want at most %d values here, and %d in each other, got %d", most, maxDepth, n)
	}
	d.left -= n
	return d.err == nil
}

// value reads a value of the type n into v. If v is &d.none, the value is skipped.
func (d *decoder) value(n *node, v *Value, depth int) {
	*v = Value{Kind: n.kind}
	switch n.kind {
	case Int, Long, Enum:
		v.Int = d.long()
		if n.kind == Int && v.Int != int64(int32(v.Int)) || n.kind == Enum && uint64(v.Int) >= uint64(n.size) {
			d.fail("%s %d", n.kind, v.Int)
		}
	case Bytes, String:
		v.Bytes = d.take(d.length())
	case union:
		if i := d.long(); uint64(i) >= uint64(len(n.of)) {
			d.fail("branch %d of a union of %d", i, len(n.of))
		} else if d.claim(0, depth) {
			d.value(n.of[i], v, depth+1)
		}
	case Array:
		d.list(n, v, depth)
	case Rec:
		d.record(n, v, depth)
	default:
		v.Bytes = d.take(n.size)
		d.number(v)
	}
}

// number makes a number of the bytes of one.
func (d *decoder) number(v *Value) {
	switch c := (cursor.Cursor{Rest: v.Bytes}); v.Kind {
	case Boolean:
		if v.Int = int64(c.U8()); v.Int > 1 {
			d.fail("boolean %d", v.Int)
		}
	case Float:
		v.Float = float64(math.Float32frombits(c.U32()))
	case Double:
		v.Float = math.Float64frombits(c.U64())
	}
}

func (d *decoder) record(n *node, v *Value, depth int) {
	if !d.claim(int64(len(n.of)), depth) {
		return
	}
	if v != &d.none {
		v.List, v.of = d.fresh(len(n.of)), n
	}
	for i, of := range n.of {
		to := &d.none
		if v != to && n.ids[i] >= 0 {
			to = &v.List[i]
		}
		d.value(of, to, depth+1)
	}
}

// list reads an Array.
func (d *decoder) list(n *node, v *Value, depth int) {
	for {
		c, end := d.long(), -1
		if c < 0 {
			c, end = -c, d.length()
			end += d.at
		}
		if c == 0 || !d.claim(c, depth) {
			return
		}
		from, count := len(v.List), int(c)
		switch {
		case v == &d.none && end >= 0:
			d.at = end
			continue
		case v == &d.none:
		case from == 0:
			v.List = d.fresh(count)
		default:
			v.List = slices.Grow(v.List, count)[:from+count]
		}
		for i := range count {
			to := v
			if to != &d.none {
				to = &v.List[from+i]
			}
			d.value(n.of[0], to, depth+1)
		}
		if end >= 0 && d.at != end {
			d.fail("want the items of a list to end at byte %d", end)
		}
	}
}
