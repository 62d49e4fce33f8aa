package arrowparquet

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// slot is an entry on its way to a leaf: its levels so far, and the index of its
// value in the current array, or -1 once a NULL or an empty list has ended it.
type slot struct {
	rep, def uint8
	index    int32
}

// shredder converts the arrays of a top-level column to entries of its leaves, one
// leaf at a time.
type shredder struct {
	emit func(leaf *leafShape, arr arrow.Array, slots []slot) error
}

// rows returns the slots of an array's rows.
func rows(n int) []slot {
	slots := make([]slot, n)
	for i := range slots {
		slots[i].index = int32(i)
	}
	return slots
}

// column passes a node's slots on to its leaves. It modifies slots.
func (s *shredder) column(sh *shape, arr arrow.Array, slots []slot) error {
	arr, err := s.presence(sh, arr, slots)
	if err != nil {
		return err
	}
	switch {
	case sh.leaf != nil:
		return s.emit(sh.leaf, arr, slots)
	case sh.list:
		return s.list(sh, arr, slots)
	}
	st, ok := arr.(*array.Struct)
	if !ok {
		return fmt.Errorf("a column of type %s where the schema has a struct", arr.DataType())
	}
	return s.fields(sh.children, st, slots)
}

func (s *shredder) fields(children []*shape, st *array.Struct, slots []slot) error {
	for i, child := range children {
		own := slots
		if i < len(children)-1 {
			own = append([]slot(nil), slots...)
		}
		if err := s.column(child, st.Field(i), own); err != nil {
			return err
		}
	}
	return nil
}

// presence unpacks extension and dictionary arrays, and ends the slots of NULLs.
func (s *shredder) presence(sh *shape, arr arrow.Array, slots []slot) (arrow.Array, error) {
	for {
		switch a := arr.(type) {
		case array.ExtensionArray:
			arr = a.Storage()
			continue
		case *array.Dictionary:
			for i, sl := range slots {
				if sl.index < 0 {
					continue
				}
				if a.IsNull(int(sl.index)) {
					if !sh.optional {
						return nil, errNull
					}
					slots[i].index = -1
				} else {
					slots[i].index = int32(a.GetValueIndex(int(sl.index)))
				}
			}
			arr = a.Dictionary()
			continue
		}
		break
	}
	_, none := arr.(*array.Null)
	check := none || arr.NullN() > 0
	for i := range slots {
		sl := &slots[i]
		if sl.index < 0 {
			continue
		}
		if check && (none || arr.IsNull(int(sl.index))) {
			if !sh.optional {
				return nil, errNull
			}
			sl.index = -1
		} else if sh.optional {
			sl.def++
		}
	}
	return arr, nil
}

var errNull = fmt.Errorf("a NULL in a column that the schema says has none")

// list replaces the slots of lists by those of their elements.
func (s *shredder) list(sh *shape, arr arrow.Array, slots []slot) error {
	l, ok := arr.(array.ListLike)
	if !ok {
		return fmt.Errorf("a column of type %s where the schema has a list", arr.DataType())
	}
	elems := make([]slot, 0, len(slots))
	for _, sl := range slots {
		if sl.index < 0 {
			elems = append(elems, sl)
			continue
		}
		from, to := l.ValueOffsets(int(sl.index))
		if to > math.MaxInt32 {
			return fmt.Errorf("unsupported: a batch with lists of more than 2^31 elements")
		}
		if from == to {
			sl.index = -1
			elems = append(elems, sl)
			continue
		}
		rep := sl.rep
		for i := from; i < to; i++ {
			elems = append(elems, slot{rep, sl.def + 1, int32(i)})
			rep = sh.rep
		}
	}
	if !sh.pair {
		return s.column(sh.children[0], l.ListValues(), elems)
	}
	st, ok := l.ListValues().(*array.Struct)
	if !ok || st.NumField() != 2 {
		return fmt.Errorf("a map without keys and values")
	}
	return s.fields(sh.children, st, elems)
}

// bigEndian converts a little-endian two's complement number to len(dst) big-endian
// bytes. It returns an error if the number does not fit.
func bigEndian(dst []byte, words ...uint64) error {
	src := make([]byte, 0, 32)
	for _, w := range words { // least significant word first
		src = binary.LittleEndian.AppendUint64(src, w)
	}
	n := len(dst)
	if n > len(src) {
		return fmt.Errorf("a decimal of %d bytes for %d", len(src), n)
	}
	sign := byte(int8(src[n-1]) >> 7)
	for _, c := range src[n:] {
		if c != sign {
			return fmt.Errorf("a decimal that has more digits than its type")
		}
	}
	for i := range dst {
		dst[i] = src[n-1-i]
	}
	return nil
}
