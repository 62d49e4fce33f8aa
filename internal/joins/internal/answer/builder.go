package answer

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// Builder collects the columns of a record, up to the first error.
type Builder struct {
	Mem  memory.Allocator
	cols []arrow.Array
	Err  error
}

// Release releases the columns; records keep their own reference.
func (c *Builder) Release() {
	for _, a := range c.cols {
		a.Release()
	}
}

// Add adds a column, unless err is not nil.
func (c *Builder) Add(a arrow.Array, err error) {
	switch {
	case err != nil && c.Err == nil:
		c.Err = err
	case err == nil:
		c.cols = append(c.cols, a)
	}
}

// Take adds the rows of an array.
func (c *Builder) Take(a arrow.Array, rows []int) {
	if c.Err == nil {
		c.Add(take.Array(c.Mem, a, rows))
	}
}

// Values is take, with values in place of dictionaries.
func (c *Builder) Values(a arrow.Array, rows []int) {
	if c.Err != nil {
		return
	}
	taken, err := take.Array(c.Mem, a, rows)
	if err != nil {
		c.Err = err
		return
	}
	c.Add(take.Plain(c.Mem, taken))
	taken.Release()
}

// Null adds a column of n NULLs.
func (c *Builder) Null(t arrow.DataType, n int) {
	if c.Err == nil {
		c.Add(table.Nulls(c.Mem, t, n))
	}
}

// Record returns the columns as a record of n rows.
func (c *Builder) Record(schema *arrow.Schema, n int) (arrow.Record, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	return array.NewRecord(schema, c.cols, int64(n)), nil
}
