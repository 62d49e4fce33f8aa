// Package cursor reads little-endian fields from bytes that may be too short, as the
// headers of filter files and exact sets are read.
package cursor

// Cursor reads fields one after the other from Rest. Once Rest is too short for a
// field, Short is set and every field is zero.
type Cursor struct {
	Rest  []byte
	Short bool
}

// Take returns the next n bytes, without copying them; nil if there are fewer.
func (c *Cursor) Take(n uint64) []byte {
	if c.Short || n > uint64(len(c.Rest)) {
		c.Short = true
		return nil
	}
	v := c.Rest[:n:n]
	c.Rest = c.Rest[n:]
	return v
}

// Uint returns an unsigned integer of n bytes, which is 8 or less.
func (c *Cursor) Uint(n uint64) (v uint64) {
	for i, x := range c.Take(n) {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// U8 returns an unsigned integer of 8 bits.
func (c *Cursor) U8() uint8 { return uint8(c.Uint(1)) }

// U16 returns an unsigned integer of 16 bits.
func (c *Cursor) U16() uint16 { return uint16(c.Uint(2)) }

// U32 returns an unsigned integer of 32 bits.
func (c *Cursor) U32() uint32 { return uint32(c.Uint(4)) }

// U64 returns an unsigned integer of 64 bits.
func (c *Cursor) U64() uint64 { return c.Uint(8) }
