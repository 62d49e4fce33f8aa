package join

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
)

// columns collects the columns of a record, up to the first error.
type columns struct {
	mem  memory.Allocator
	cols []arrow.Array
	err  error
}

// release releases the columns; records keep their own reference.
func (c *columns) release() {
	for _, a := range c.cols {
		a.Release()
	}
}

// add adds a column, unless err is not nil.
func (c *columns) add(a arrow.Array, err error) {
	switch {
	case err != nil && c.err == nil:
		c.err = err
	case err == nil:
		c.cols = append(c.cols, a)
	}
}

// take adds the rows of an array.
func (c *columns) take(a arrow.Array, rows []int) {
	if c.err == nil {
		c.add(take.Array(c.mem, a, rows))
	}
}

// values is take, with values in place of dictionaries.
func (c *columns) values(a arrow.Array, rows []int) {
	if c.err != nil {
		return
	}
	taken, err := take.Array(c.mem, a, rows)
	if err != nil {
		c.err = err
		return
	}
	c.add(take.Plain(c.mem, taken))
	taken.Release()
}

// null adds a column of n NULLs.
func (c *columns) null(t arrow.DataType, n int) {
	if c.err == nil {
		c.add(table.Nulls(c.mem, t, n))
	}
}

// record returns the columns as a record of n rows.
func (c *columns) record(schema *arrow.Schema, n int) (arrow.Record, error) {
	if c.err != nil {
		return nil, c.err
	}
	return array.NewRecord(schema, c.cols, int64(n)), nil
}
