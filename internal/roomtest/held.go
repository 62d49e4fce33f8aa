package roomtest

import (
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// Held returns columns of a schema as a table holds them for arrays.
func Held(t testing.TB, schema *arrow.Schema) *tables.Columns {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	name := sourcetest.Write(t, filepath.Join(t.TempDir(), "held.arrow"), 1, b.NewRecord())
	c, err := tables.NewArrayColumns(Open(t, source.Opening{}, name), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// HeldBatch returns the rows of a record, whose columns are those of c, with their keys.
func HeldBatch(t testing.TB, c *tables.Columns, rec arrow.Record, k *keys.Batch) *tables.Batch {
	t.Helper()
	shred, err := arrowparquet.NewHolder(c.Schema)
	if err != nil {
		t.Fatal(err)
	}
	b := leaves.NewBuilder(c.Leaves)
	if err := shred.Shred(rec, func(leaf int, p *parquet.Page) error { return b.Add(leaf, p, nil) }); err != nil {
		t.Fatal(err)
	}
	block, err := b.Block(int(rec.NumRows()))
	if err != nil {
		t.Fatal(err)
	}
	return &tables.Batch{Keys: k, Block: block}
}
