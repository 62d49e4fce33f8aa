package cursor

import (
	"bytes"
	"testing"
)

func TestCursor(t *testing.T) {
	c := &Cursor{Rest: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}}
	if a, b, d, e := c.U8(), c.U16(), c.U32(), c.U64(); a != 1 || b != 0x302 || d != 0x7060504 || e != 0xf0e0d0c0b0a0908 || c.Short {
		t.Errorf("%x, %x, %x, %x, short %v", a, b, d, e, c.Short)
	}
	if b := c.Take(2); !bytes.Equal(b, []byte{16, 17}) || cap(b) != 2 {
		t.Errorf("%v, capacity %d", b, cap(b))
	}
	if v := c.U16(); v != 0 || !c.Short || len(c.Rest) != 1 {
		t.Errorf("%d of one byte, short %v, left %v", v, c.Short, c.Rest)
	}
	if v := c.U8(); v != 0 || !c.Short {
		t.Errorf("%d after the end, short %v", v, c.Short)
	}
}
