package keys

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// Select copies the keys at the positions, of integers and of bytes, shared with a
// page or not, also into a used batch.
func TestSelect(t *testing.T) {
	var ints, text []byte
	for i := range 100 {
		ints = binary.LittleEndian.AppendUint64(ints, uint64(i*i))
		s := fmt.Sprint("key ", i)
		text = append(binary.LittleEndian.AppendUint32(text, uint32(len(s))), s...)
	}
	var from, to Batch
	for _, fill := range []func(){
		func() { from.SetInts(ints, 100, 8, true) },
		func() { from.SetBytes(text, 100, 0) },
		func() { from.SetBytes(text, 100, Trim) },
		func() { from.SetInts(ints, 100, 8, false) },
	} {
		fill()
		for _, positions := range [][]uint32{nil, {0}, {99, 3, 3, 50}, {1, 2, 3}} {
			from.Select(&to, positions)
			if len(to.Rows) != len(positions) || to.Len != len(positions) || to.Nulls() != 0 {
				t.Fatalf("%d keys of %d rows, want %d", len(to.Rows), to.Len, len(positions))
			}
			for i, p := range positions {
				got, want := to.Append(nil, i), from.Append(nil, int(p))
				if string(got) != string(want) {
					t.Errorf("position %d: got %q, want %q", i, got, want)
				}
			}
		}
	}
}
