package arrowparquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// wide returns a record of incompressible pages: columns of numbers, strings and
// lists, with NULLs.
func wide(columns, rows int) arrow.Record {
	var fields []arrow.Field
	for i := range columns {
		t := []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.ListOf(arrow.PrimitiveTypes.Int64)}[i%3]
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: t, Nullable: true})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	rng := rand.New(rand.NewPCG(1, 2))
	for c, f := range b.Fields() {
		for range rows {
			if rng.IntN(20) == 0 {
				f.AppendNull()
				continue
			}
			switch f := f.(type) {
			case *array.Int64Builder:
				f.Append(rng.Int64())
			case *array.StringBuilder:
				f.Append(strings.Repeat(string(rune('a'+c)), rng.IntN(4)) + fmt.Sprint(rng.Uint64()))
			case *array.ListBuilder:
				f.Append(true)
				for range rng.IntN(4) {
					f.ValueBuilder().(*array.Int64Builder).Append(rng.Int64())
				}
			}
		}
	}
	return b.NewRecord()
}

// If the pages of many columns do not fit the budget together, they are read one at
// a time, batch by batch, and the rows are the same.
func TestPagesBeyondTheBudget(t *testing.T) {
	const columns, rows = 14, 120_000
	b := written(t, wide(columns, rows), rows, WriterOptions{Codec: "zstd"})
	some := func(every uint32) (picked []uint32) {
		for i := uint32(3); i < rows; i += every {
			picked = append(picked, i)
		}
		return picked
	}
	for name, picked := range map[string][]uint32{"all": nil, "every second": some(2), "few": some(5000)} {
		if len(picked) > 1000 && cases.Count(0, 1, 1) == 0 {
			continue // few rows and all
		}
		tables := map[bool][]arrow.Record{}
		for _, bound := range []bool{false, true} {
			p := open(t, b, nil)
			if bound {
				p = openIn(t, b, parquet.NewPageBudget(32<<20)) // 8 MiB for pages
			}
			read := p.Read(t.Context(), 0, nil)
			if picked != nil {
				read = p.ReadRows(t.Context(), 0, nil, picked)
			}
			for rec, err := range read {
				if err != nil {
					t.Fatalf("%s, bound %v: %v", name, bound, err)
				}
				rec.Retain()
				tables[bound] = append(tables[bound], rec)
			}
		}
		want := array.NewTableFromRecords(tables[false][0].Schema(), tables[false])
		got := array.NewTableFromRecords(want.Schema(), tables[true])
		if got.NumRows() != want.NumRows() {
			t.Errorf("%s: %d rows, want %d", name, got.NumRows(), want.NumRows())
		}
		for c := range columns {
			if !array.ChunkedEqual(got.Column(c).Data(), want.Column(c).Data()) {
				t.Errorf("%s: column %d differs", name, c)
			}
		}
		if name == "all" && len(tables[true]) < 2*len(tables[false]) {
			t.Errorf("%d records with the bound, %d without", len(tables[true]), len(tables[false]))
		}
	}
}

// A row that is longer than the budget allows is refused before it is built.
func TestRowBeyondTheBudget(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)}}, nil))
	l := b.Field(0).(*array.ListBuilder)
	l.Append(true)
	for range 3_000_000 {
		l.ValueBuilder().(*array.Int64Builder).Append(7)
	}
	file := written(t, b.NewRecord(), 1, WriterOptions{})
	for memory, ok := range map[int64]bool{32 << 20: false, 1 << 30: true} {
		p := openIn(t, file, parquet.NewPageBudget(memory))
		var err error
		for _, e := range p.Read(t.Context(), 0, nil) {
			err = e
		}
		if ok != (err == nil) || !ok && (!errors.Is(err, fault.ErrMemory) || !strings.Contains(err.Error(), "column l") || !strings.Contains(err.Error(), "Memory")) {
			t.Errorf("in %d bytes: %v", memory, err)
		}
	}
}

// A reader without a turn does not wait for itself when it measures pages while it
// holds dictionaries.
func TestReaderDoesNotWaitForItself(t *testing.T) {
	const rows = 40_000
	type row struct {
		A string `parquet:"a,dict"`
		B string `parquet:"b,dict"`
	}
	var b bytes.Buffer
	w := pq.NewGenericWriter[row](&b, pq.PageBufferSize(16<<20))
	for i := range rows {
		if _, err := w.Write([]row{{fmt.Sprintf("%040d", i), fmt.Sprintf("%050d", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var picked []uint32
	for i := uint32(0); i < rows; i += 2 {
		picked = append(picked, i)
	}
	p := openIn(t, b.Bytes(), parquet.NewPageBudget(32<<20))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	n := int64(0)
	for rec, err := range p.InBatches(100<<10).ReadKeys(parquet.WithTurn(ctx, nil), 0, []int{0, 1}, picked) {
		if err != nil {
			t.Fatal(err)
		}
		n += rec.NumRows()
	}
	if n != rows/2 {
		t.Errorf("%d rows", n)
	}
}
