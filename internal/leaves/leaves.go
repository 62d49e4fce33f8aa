package leaves

import "github.com/bloomjoin/bloomjoin/internal/parquet"

// Append appends the given rows of the block, all if rows is nil, to dst in a form
// that Parse reads.
func (b *Block) Append(dst []byte, rows []uint32) []byte { panic("unwritten") }

// Parse reads a block that Append wrote. It checks all sizes. The block refers to src.
func Parse(of []parquet.Leaf, src []byte) (*Block, error) { panic("unwritten") }
