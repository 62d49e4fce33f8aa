package deletes

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// coder makes keys of the records of one file, in which NULL equals NULL.
type coder struct {
	columns []keys.Column
	nulls   bool // keys with NULLs are wanted, too

	encoders    map[uint64]*keys.Encoder // without the columns of these bits
	batch, some keys.Batch
	masks       []uint64 // by row
	at          []uint32
}

// each calls fn with the rows of a record that have the same columns NULL, bit i of nulls for column i: with keys of
// the others, and the positions of these rows in Rows of the keys, nil for all. If all columns are NULL, it has no
// keys, but the rows.
func (c *coder) each(rec arrow.Record, fn func(nulls uint64, b *keys.Batch, at []uint32) error) error {
	if err := c.encode(rec, 0, &c.batch); err != nil {
		return err
	}
	if err := fn(0, &c.batch, nil); err != nil || !c.nulls || len(c.batch.Rows) == c.batch.Len {
		return err
	}
	if err := c.findNulls(rec); err != nil {
		return err
	}
	kinds := slices.Clone(c.masks)
	slices.Sort(kinds)
	all := uint64(1)<<len(c.columns) - 1
	for _, nulls := range slices.Compact(kinds) {
		b := &c.some
		switch {
		case nulls == 0:
			continue
		case nulls == all:
			b = nil
		default:
			if err := c.encode(rec, nulls, b); err != nil {
				return err
			}
		}
		c.at = c.at[:0]
		for i := range c.masks {
			row := uint32(i)
			if b != nil && i < len(b.Rows) {
				row = b.Rows[i]
			}
			if (b == nil || i < len(b.Rows)) && c.masks[row] == nulls {
				c.at = append(c.at, uint32(i))
			}
		}
		if err := fn(nulls, b, c.at); err != nil {
			return err
		}
	}
	return nil
}

// findNulls finds which columns of each row are NULL.
func (c *coder) findNulls(rec arrow.Record) error {
	c.masks = slices.Grow(c.masks[:0], int(rec.NumRows()))[:rec.NumRows()]
	for row := range c.masks {
		c.masks[row] = 1<<len(c.columns) - 1
	}
	for i := range c.columns {
		bit := uint64(1) << i
		if err := c.encode(rec, (1<<len(c.columns)-1)&^bit, &c.some); err != nil {
			return err
		}
		for _, row := range c.some.Rows {
			c.masks[row] &^= bit
		}
	}
	return nil
}

// encode makes keys of the columns that are not NULL.
func (c *coder) encode(rec arrow.Record, nulls uint64, b *keys.Batch) (err error) {
	enc := c.encoders[nulls]
	if enc == nil {
		var of []keys.Column
		for i, column := range c.columns {
			if nulls>>i&1 == 0 {
				of = append(of, column)
			}
		}
		if enc, err = keys.NewEncoder(rec.Schema(), of, keys.Options{}); err != nil {
			return err
		}
		if c.encoders == nil {
			c.encoders = map[uint64]*keys.Encoder{}
		}
		c.encoders[nulls] = enc
	}
	return enc.Encode(rec, b)
}
