package leaves

import (
	"encoding/binary"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// locate returns the column of a row of a store, and its number there.
func locate(cols []column, row uint32) (c *column, i uint32) {
	return &cols[row>>segmentShift], row & (segmentRows - 1)
}

// gatherSlots copies the slots of rows of a store, width bytes each, to dst, which has
// their size. The loops are short, so that the processor waits for many rows at once.
func gatherSlots(dst []byte, cols []column, width int, rows []uint32) {
	switch width {
	case 1:
		gather1(dst, cols, rows)
	case 4:
		gather4(dst, cols, rows)
	case 8:
		gather8(dst, cols, rows)
	case 16:
		gather16(dst, cols, rows)
	default:
		for n, row := range rows {
			c, i := locate(cols, row)
			copy(dst[n*width:(n+1)*width], c.values[int(i)*width:])
		}
	}
}

func gather1(dst []byte, cols []column, rows []uint32) {
	dst = dst[:len(rows)]
	for n, row := range rows {
		dst[n] = cols[row>>segmentShift].values[row&(segmentRows-1)]
	}
}

func gather4(dst []byte, cols []column, rows []uint32) {
	for n, row := range rows {
		from := 4 * int(row&(segmentRows-1))
		v := binary.LittleEndian.Uint32(cols[row>>segmentShift].values[from : from+4])
		binary.LittleEndian.PutUint32(dst[4*n:4*n+4], v)
	}
}

func gather8(dst []byte, cols []column, rows []uint32) {
	for n, row := range rows {
		from := 8 * int(row&(segmentRows-1))
		v := binary.LittleEndian.Uint64(cols[row>>segmentShift].values[from : from+8])
		binary.LittleEndian.PutUint64(dst[8*n:8*n+8], v)
	}
}

func gather16(dst []byte, cols []column, rows []uint32) {
	for n, row := range rows {
		from := 16 * int(row&(segmentRows-1))
		*(*[16]byte)(dst[16*n:]) = *(*[16]byte)(cols[row>>segmentShift].values[from : from+16])
	}
}

// appendValues appends the values of rows of a store whose leaf is not dense to dst,
// until it has most bytes. It returns the number of rows that it has taken, at least
// one.
func appendValues(dst []byte, cols []column, rows []uint32, most int) (_ []byte, taken int) {
	for n, row := range rows {
		if len(dst) >= most && n > 0 {
			return dst, n
		}
		if n%warmed == 0 {
			warm(cols, rows[n:min(n+warmed, len(rows))])
		}
		c, i := locate(cols, row)
		dst = appendShort(dst, c.values, c.starts[i], c.starts[i+1])
	}
	return dst, len(rows)
}

const warmed = 64 // rows that are read before they are needed

// warm reads where rows of a leaf that is not dense start, and the first bytes there,
// so that their cache misses overlap. The result has no meaning.
//
//go:noinline
func warm(cols []column, rows []uint32) (x uint32) {
	for _, row := range rows {
		if row != None {
			x |= cols[row>>segmentShift].starts[row&(segmentRows-1)]
		}
	}
	for _, row := range rows {
		if row == None {
			continue
		}
		c, i := locate(cols, row)
		if from := c.starts[i]; from < uint32(len(c.values)) {
			x |= uint32(c.values[from])
		}
	}
	return x
}

// warmEntries is warm for the entries of a repeated leaf.
//
//go:noinline
func warmEntries(cols []column, rows []uint32) (x uint32) {
	for _, row := range rows {
		if row != None {
			x |= cols[row>>segmentShift].entries[row&(segmentRows-1)]
		}
	}
	for _, row := range rows {
		if row != None {
			c, i := locate(cols, row)
			from := c.entries[i]
			x |= uint32(c.rep[from]) | uint32(c.def[from])
		}
	}
	return x
}

// appendSlots appends the slots of rows of a block.
func appendSlots(dst, src []byte, width int, rows []uint32) []byte {
	dst = slices.Grow(dst, len(rows)*width)
	switch width {
	case 4:
		for _, r := range rows {
			dst = append(dst, src[4*int(r):4*int(r)+4]...)
		}
	case 8:
		for _, r := range rows {
			dst = append(dst, src[8*int(r):8*int(r)+8]...)
		}
	default:
		for _, r := range rows {
			dst = append(dst, src[int(r)*width:(int(r)+1)*width]...)
		}
	}
	return dst
}

// appendShort appends src[from:to]. It copies up to 32 bytes as 32 if there is room,
// which takes no call and no loop.
func appendShort(dst, src []byte, from, to uint32) []byte {
	n, end := int(to-from), len(dst)
	if n <= 32 && cap(dst)-end >= 32 && uint64(len(src)) >= uint64(from)+32 {
		enc.Copy32((*[32]byte)(dst[end:end+32]), (*[32]byte)(src[from:]))
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
