package leaves

import "encoding/binary"

// segments are the columns of a leaf, one after the other. Row r is row r&(1<<shift-1)
// of column r>>shift.
type segments struct {
	cols  []column
	shift uint
}

// at returns the column of a row, and its number there.
func (s segments) at(row uint32) (c *column, i uint32) {
	return &s.cols[uint64(row)>>(s.shift&63)], uint32(uint64(row) & (1<<(s.shift&63) - 1))
}

// dense copies the slots of rows, width bytes each, to dst, which has their size.
func (s segments) dense(dst []byte, width int, rows []uint32) {
	switch width {
	case 1:
		s.dense1(dst, rows)
	case 4:
		s.dense4(dst, rows)
	case 8:
		s.dense8(dst, rows)
	case 12:
		s.dense12(dst, rows)
	case 16:
		s.dense16(dst, rows)
	default:
		for n, row := range rows {
			c, i := s.at(row)
			copy(dst[n*width:(n+1)*width], c.values[int(i)*width:])
		}
	}
}

func (s segments) dense1(dst []byte, rows []uint32) {
	dst = dst[:len(rows)]
	for n, row := range rows {
		c, i := s.at(row)
		dst[n] = c.values[i]
	}
}

func (s segments) dense4(dst []byte, rows []uint32) {
	for n, row := range rows {
		c, i := s.at(row)
		*(*[4]byte)(dst[4*n:]) = *(*[4]byte)(c.values[4*int(i):])
	}
}

func (s segments) dense8(dst []byte, rows []uint32) {
	for n, row := range rows {
		c, i := s.at(row)
		*(*[8]byte)(dst[8*n:]) = *(*[8]byte)(c.values[8*int(i):])
	}
}

func (s segments) dense12(dst []byte, rows []uint32) {
	for n, row := range rows {
		c, i := s.at(row)
		*(*[12]byte)(dst[12*n:]) = *(*[12]byte)(c.values[12*int(i):])
	}
}

func (s segments) dense16(dst []byte, rows []uint32) {
	for n, row := range rows {
		c, i := s.at(row)
		*(*[16]byte)(dst[16*n:]) = *(*[16]byte)(c.values[16*int(i):])
	}
}

// ragged appends the values of rows of leaves that are not dense to dst, until it
// has most bytes. It returns the number of rows that it has taken, at least one.
func (s segments) ragged(dst []byte, rows []uint32, most int) (_ []byte, taken int) {
	for n, row := range rows {
		if len(dst) >= most && n > 0 {
			return dst, n
		}
		c, i := s.at(row)
		dst = appendShort(dst, c.values, c.starts[i], c.starts[i+1])
	}
	return dst, len(rows)
}

// appendShort appends src[from:to]. It copies up to 32 bytes as 32 if there is room,
// which takes no call and no loop.
func appendShort(dst, src []byte, from, to uint32) []byte {
	n, end := int(to-from), len(dst)
	if n <= 32 && cap(dst)-end >= 32 && uint64(len(src)) >= uint64(from)+32 {
		d, s := (*[32]byte)(dst[end:end+32]), (*[32]byte)(src[from:])
		v0, v1 := binary.LittleEndian.Uint64(s[:]), binary.LittleEndian.Uint64(s[8:])
		v2, v3 := binary.LittleEndian.Uint64(s[16:]), binary.LittleEndian.Uint64(s[24:])
		binary.LittleEndian.PutUint64(d[:], v0)
		binary.LittleEndian.PutUint64(d[8:], v1)
		binary.LittleEndian.PutUint64(d[16:], v2)
		binary.LittleEndian.PutUint64(d[24:], v3)
		return dst[:end+n]
	}
	return append(dst, src[from:to]...)
}

// spread copies values of the given width to the slots of the rows whose level is
// full, and zeros the other slots.
func spread(dst, values []byte, width int, def []uint8, full uint8) {
	clear(dst)
	switch width {
	case 4:
		for i, d := range def {
			if d == full {
				*(*[4]byte)(dst[4*i:]) = *(*[4]byte)(values)
				values = values[4:]
			}
		}
	case 8:
		for i, d := range def {
			if d == full {
				*(*[8]byte)(dst[8*i:]) = *(*[8]byte)(values)
				values = values[8:]
			}
		}
	default:
		for i, d := range def {
			if d == full {
				copy(dst[i*width:(i+1)*width], values)
				values = values[width:]
			}
		}
	}
}

// pack appends booleans of a byte each, eight to a byte.
func pack(dst, bools []byte) []byte {
	for ; len(bools) >= 8; bools = bools[8:] {
		// The product gathers the lowest bits of all bytes in the highest byte.
		dst = append(dst, byte(binary.LittleEndian.Uint64(bools)*0x0102040810204080>>56))
	}
	if len(bools) > 0 {
		var b byte
		for i, v := range bools {
			b |= v << i
		}
		dst = append(dst, b)
	}
	return dst
}
