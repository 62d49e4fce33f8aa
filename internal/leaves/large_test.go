package leaves

import (
	"errors"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// TestTooLarge: a segment whose positions would overflow is an error. The values are
// not there: nothing is read before their sizes are added up.
func TestTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		leaf meta.Leaf
		col  column
	}{
		"bytes":    {meta.Leaf{Type: format.ByteArray}, column{starts: []uint32{0, 3 << 30}}},
		"fixed":    {meta.Leaf{Type: format.FixedLenByteArray, TypeLength: 100}, column{starts: []uint32{0, 3 << 30}}},
		"entries":  {meta.Leaf{Type: format.Int32, MaxDef: 1, MaxRep: 1}, column{starts: []uint32{0, 0}, entries: []uint32{0, 3 << 30}}},
		"repeated": {meta.Leaf{Type: format.Int32, MaxDef: 1, MaxRep: 1}, column{starts: []uint32{0, 3 << 30}, entries: []uint32{0, 0}}},
	} {
		of := []meta.Leaf{c.leaf}
		taken := int64(0)
		s := New(of, func(n int64) error { taken += n; return nil })
		b := &Block{rows: 1, kinds: kindsOf(of), cols: []column{c.col}}
		if err := s.Append(b, []uint32{0, 0}); !errors.Is(err, fault.ErrMemory) || s.Len() != 0 || taken > 1<<20 {
			t.Errorf("%s: %v, %d rows, %d bytes", name, err, s.Len(), taken)
		}
	}
}
