package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// constantsOf returns a string, a NULL and a boolean.
func constantsOf(text string) []Constant {
	element := func(name string, t format.Type) meta.Element {
		return meta.Element{Name: name, Type: thrift.New(t), RepetitionType: thrift.New(format.Optional)}
	}
	s := element("s", format.ByteArray)
	s.LogicalType = thrift.New(format.LogicalType{Value: new(format.StringType)})
	return []Constant{
		{s, append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)},
		{element("n", format.Int64), nil},
		{element("b", format.Boolean), []byte{1}},
	}
}

// TestConstants: constants are columns like others: read whole, read for some rows,
// and copied as they are stored, with statistics; they count no pages.
func TestConstants(t *testing.T) {
	const rows = 150_000 // three pages of a constant
	in := manyPages(t, rows, 64<<10)
	f, err := openBytes(in, "input")
	if err != nil {
		t.Fatal(err)
	}
	held := f.footer
	if err := f.AddConstants(constantsOf("NO"), nil); err != nil {
		t.Fatal(err)
	}
	if f.StoredColumns() != 1 || f.Constant(0) || !f.Constant(1) || !f.Constant(3) || len(f.Leaves) != 4 || f.footer <= held {
		t.Fatalf("%d columns stored, %d leaves", f.StoredColumns(), len(f.Leaves))
	}
	unmap := mapBytes(t, f, &Mapping{Bytes: in, Read: func(int64) { t.Error("bytes of a constant count as read") }, Passed: func(lo, hi int64) { t.Errorf("%d to %d released", lo, hi) }})
	for leaf := 1; leaf <= 3; leaf++ {
		for _, pick := range [][]uint32{nil, {0, 1, 70_000, rows - 1}} {
			c := f.Chunk(1, leaf)
			want := rows
			if pick != nil {
				c.Select(pick)
				want = len(pick)
			}
			got := 0
			for {
				p, err := c.Next(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got += p.Rows
				switch {
				case leaf == 1 && (!p.Coded || p.NonNull != p.Rows || string(p.Bytes(0, c.Dictionary())) != "NO"),
					leaf == 2 && p.NonNull != 0, leaf == 3 && (p.NonNull != p.Rows || p.Plain[0]&1 != 1):
					t.Fatalf("leaf %d: page %+v", leaf, p)
				}
			}
			if seen, skipped := c.Pages(); got != want || seen != 0 || skipped != 0 {
				t.Errorf("leaf %d: %d rows, want %d; %d pages, %d skipped", leaf, got, want, seen, skipped)
			}
			if f.Need(1, leaf) == 0 {
				t.Error("no memory is needed")
			}
			c.Close()
		}
	}
	unmap()
	for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Zstd} {
		var n copies
		out, err := copyWhole(f, WriterOptions{Compression: enc.Compression{Codec: codec}}, &n)
		if err != nil {
			t.Fatal(err)
		}
		if codec == format.Uncompressed && n.whole != n.chunks {
			t.Errorf("%d of %d chunks copied as they are", n.whole, n.chunks)
		}
		g, err := openBytes(out, "output")
		if err != nil {
			t.Fatal(err)
		}
		if s := g.Metadata.RowGroups[1].Columns[1].MetaData.Statistics; string(s.MinValue.V) != "NO" || s.NullCount.V != 0 {
			t.Errorf("%v: statistics %+v", codec, s)
		}
		if leaves := g.Leaves; len(leaves) != 4 || leaves[1].Logical.Kind != meta.String {
			t.Errorf("%v: leaves %+v", codec, leaves)
		}
	}
}

// Files of a log share the schema with their constants, even if the values differ.
func TestConstantsShare(t *testing.T) {
	in := manyPages(t, 10, 4<<10)
	var first *File
	for i, text := range []string{"NO", "SE"} {
		f, err := Open(nil, bytes.NewReader(in), int64(len(in)), text)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && !f.Share(first) {
			t.Fatal("not shared")
		}
		if err := f.AddConstants(constantsOf(text), first); err != nil {
			t.Fatal(err)
		}
		if i > 0 && (&f.Leaves[0] != &first.Leaves[0] || f.Root != first.Root || &f.Metadata.Schema[0] != &first.Metadata.Schema[0]) {
			t.Error("the schema is not shared")
		}
		s := f.Metadata.RowGroups[0].Columns[1].MetaData.Statistics
		if string(s.MinValue.V) != text || string(s.MaxValue.V) != text || s.NullCount.V != 0 || !f.BoundsBelieved(&f.Leaves[1]) {
			t.Errorf("statistics %+v", s)
		}
		if n := f.Metadata.RowGroups[0].Columns[2].MetaData.Statistics.NullCount; !n.Valid || n.V != 10 {
			t.Errorf("NULLs %+v", n)
		}
		first = f
	}
}

// Columns of a view that the file lacks are charged as they are made: a small file may have many rows.
func TestAbsentCharged(t *testing.T) {
	in := manyPages(t, 10, 4<<10)
	f, err := Open(NewPageBudget(1<<20), bytes.NewReader(in), int64(len(in)), "input")
	if err != nil {
		t.Fatal(err)
	}
	v := View{Elements: []meta.Element{{Name: "root", NumChildren: thrift.New(int32(100))}}}
	for range 100 {
		v.Elements = append(v.Elements, meta.Element{Name: fmt.Sprint(len(v.Leaves)), Type: thrift.New(format.Int64), RepetitionType: thrift.New(format.Optional)})
		v.Leaves = append(v.Leaves, -1)
	}
	f.Metadata.RowGroups[0].NumRows = 1 << 31
	if err := f.Adopt(&v, nil); err == nil || len(f.extra) > 24<<20 {
		t.Errorf("%d bytes, error %v", len(f.extra), err)
	}
}
