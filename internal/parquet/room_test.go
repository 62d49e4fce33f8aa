package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"weak"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// manyColumns returns a file with n columns and no rows.
func manyColumns(t *testing.T, n int) []byte {
	t.Helper()
	m := &meta.Footer{Version: 1, RowGroups: []meta.RowGroup{}}
	m.Schema = append(m.Schema, meta.Element{Name: "root"})
	m.Schema[0].NumChildren.V, m.Schema[0].NumChildren.Valid = int32(n), true
	for i := range n {
		e := meta.Element{Name: fmt.Sprint(i)}
		e.Type.Valid, e.RepetitionType.Valid = true, true
		e.Type.V = 1
		m.Schema = append(m.Schema, e)
	}
	footer, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	b := append([]byte(magic), footer...)
	b = append(b, byte(len(footer)), byte(len(footer)>>8), byte(len(footer)>>16), byte(len(footer)>>24))
	return append(b, magic...)
}

// A footer's decoded size is charged before it is decoded, and returned when the
// file is closed.
func TestFootersAreCharged(t *testing.T) {
	b := manyColumns(t, 100_000)
	room := NewPageBudget(64 << 20)
	_, err := Open(room, bytes.NewReader(b), int64(len(b)), "wide")
	if !errors.Is(err, fault.ErrMemory) || room.footers.Load() != 0 {
		t.Errorf("%v, with %d bytes held", err, room.footers.Load())
	}
	room = NewPageBudget(1 << 30)
	f, err := Open(room, bytes.NewReader(b), int64(len(b)), "wide")
	if err != nil {
		t.Fatal(err)
	}
	if held := room.footers.Load(); held < 100_000*meta.ElementBytes {
		t.Errorf("%d bytes held", held)
	}
	if f.Close(); room.footers.Load() != 0 {
		t.Errorf("%d bytes held after closing", room.footers.Load())
	}
}

// Files of one schema share it, and the total of all footers is limited.
func TestFootersShareSchemas(t *testing.T) {
	b := manyColumns(t, 1000)
	room := NewPageBudget(32 << 20)
	var first *File
	for i := range cases.Count(60, 200, 1000) { // 1 MiB each without the schema
		f, err := Open(room, bytes.NewReader(b), int64(len(b)), "wide")
		if err != nil {
			if i < 2 || !errors.Is(err, fault.ErrMemory) {
				t.Fatalf("file %d: %v", i, err)
			}
			return
		}
		if first == nil {
			first = f
		} else if !f.Share(first) || &f.Leaves[0] != &first.Leaves[0] {
			t.Fatal("the schema is not shared")
		}
	}
	if most := int64(16 << 20); room.footers.Load() > most {
		t.Errorf("%d bytes held", room.footers.Load())
	}
	other := manyColumns(t, 999)
	f, err := Open(nil, bytes.NewReader(other), int64(len(other)), "other")
	if err != nil {
		t.Fatal(err)
	}
	if f.Share(first) || len(f.Leaves) != 999 {
		t.Error("another schema is shared")
	}
}

// A million columns with very short names are not a corrupt footer.
func TestColumnsWithShortNames(t *testing.T) {
	if testing.Short() || os.Getenv("GOARCH") == "386" {
		t.Skip("takes 1 GiB")
	}
	b := manyColumns(t, 300_000)
	if _, err := Open(nil, bytes.NewReader(b), int64(len(b)), "wide"); err != nil {
		t.Error(err)
	}
}

// Nothing keeps a large page after it is freed, not even the decoder.
func TestLargePagesAreLetGo(t *testing.T) {
	const size = 8 << 20
	var z enc.Compressor
	stored, err := z.Compress(make([]byte, size), enc.Compression{Codec: format.Zstd})
	if err != nil {
		t.Fatal(err)
	}
	var b Buffers
	b.own.room = NewPageBudget(64 << 20)
	if err := b.charge(t.Context(), fault.At{}, "the page", size); err != nil {
		t.Fatal(err)
	}
	if b.raw, err = b.codec.Decompress(format.Zstd, nil, stored, size); err != nil {
		t.Fatal(err)
	}
	page := weak.Make(&b.raw[0])
	b.Rest()
	runtime.GC()
	if page.Value() != nil {
		t.Error("the page is still in memory")
	}
	if len(b.own.room.large) > 0 || b.own.held != 0 {
		t.Errorf("%d bytes are still claimed", b.own.held)
	}
	runtime.KeepAlive(&b)
}
