package arrowparquet

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Shredder converts records to pages of the leaves of a Parquet schema: the one that
// [NewParquetWriter] writes. It is not safe for concurrent use.
type Shredder struct {
	schema *arrow.Schema
	plan   *schemaPlan
	page   leafPage
}

// NewShredder returns a shredder of records with the given schema. A column that
// Parquet cannot represent correctly is an error that names it.
func NewShredder(sc *arrow.Schema) (*Shredder, error) {
	plan, err := planSchema(sc)
	if err != nil {
		return nil, err
	}
	return &Shredder{schema: sc, plan: plan}, nil
}

// Schema returns the Parquet schema: elements depth first, the root first.
func (s *Shredder) Schema() []meta.Element { return s.plan.elements }

// Shred calls emit with one page for each leaf, which has the entries of all rows of
// rec. A page is valid until emit returns. The columns of rec must have the types of
// the schema's; a NULL in a column that the schema declares without NULLs is an error.
func (s *Shredder) Shred(rec arrow.Record, emit func(leaf int, p *parquet.Page) error) error {
	if err := s.check(rec); err != nil {
		return err
	}
	return s.shred(rec, emit)
}

// shred is Shred for a record that was checked.
func (s *Shredder) shred(rec arrow.Record, emit func(leaf int, p *parquet.Page) error) (err error) {
	defer recovered("writing rows", &err)
	of := shredder{emit: func(l *leafShape, arr arrow.Array, slots []slot) error {
		if err := s.page.fill(l, arr, slots); err != nil {
			return fmt.Errorf("column %s: %w", l.path, err)
		}
		return emit(l.index, &s.page.Page)
	}}
	for i, sh := range s.plan.shapes {
		arr := rec.Column(i)
		if err := of.column(sh, arr, rows(arr.Len())); err != nil {
			return fmt.Errorf("column %s: %w", s.schema.Field(i).Name, err)
		}
	}
	return nil
}

// check compares the types of the record's columns with the schema's.
func (s *Shredder) check(rec arrow.Record) error {
	if int(rec.NumCols()) != s.schema.NumFields() {
		return faults.Mismatch(fault.At{}, "columns of a record",
			s.schema.NumFields(), rec.NumCols())
	}
	for i, f := range s.schema.Fields() {
		if got := rec.Column(i).DataType(); !arrow.TypeEqual(f.Type, got) {
			return faults.Mismatch(fault.At{Column: f.Name}, "type of a column", f.Type, got)
		}
	}
	return nil
}
