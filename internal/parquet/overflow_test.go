package parquet

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// held is an Overflow that counts.
type held struct {
	b     []byte
	freed *int
}

func (h *held) Write(b []byte) error { h.b = append(h.b, b...); return nil }
func (h *held) Free()                { *h.freed++ }
func (h *held) Each(fn func(b []byte) error) error {
	for part := range slices.Chunk(h.b, 1000) {
		if err := fn(part); err != nil {
			return err
		}
	}
	return nil
}

// Encoded pages above Pool.Most are moved out of memory, and the file is the same.
func TestPoolOverflow(t *testing.T) {
	schema := []meta.Element{
		{Name: "root", NumChildren: thrift.New(int32(1))},
		{Name: "v", Type: thrift.New(format.Int64), RepetitionType: thrift.New(format.Required)},
	}
	write := func(pool *Pool) (file []byte, most int64) {
		var out bytes.Buffer
		w, err := NewWriter(&out, schema, nil, WriterOptions{PageBytes: 16 << 10, Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		for group := range 3 {
			c := w.Chunk(0)
			for p := range 100 {
				var plain []byte
				for i := range 1000 {
					plain = binary.LittleEndian.AppendUint64(plain, uint64(group*p*i)*0x9e3779b97f4a7c15)
				}
				if err := c.Add(&Page{Values: 1000, Rows: 1000, NonNull: 1000, Plain: plain}, nil); err != nil {
					t.Fatal(err)
				}
				most = max(most, pool.Held())
			}
			e, err := c.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if err := w.RowGroup(100_000, []*EncodedChunk{e}); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes(), most
	}
	want, all := write(new(Pool))
	moved, freed := 0, 0
	got, most := write(&Pool{Most: 100 << 10, Overflow: func() Overflow { moved++; return &held{freed: &freed} }})
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes, not the same as the %d without an overflow", len(got), len(want))
	}
	if moved != 3 || freed != 3 || most > 400<<10 || all < 700<<10 {
		t.Errorf("%d of 3 chunks moved, %d freed, at most %d bytes held of %d", moved, freed, most, all)
	}
}
