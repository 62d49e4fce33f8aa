package leaves

import (
	"iter"
	"math"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// None stands for no row where row numbers are expected.
const None = math.MaxUint32

// Block holds consecutive rows. It is immutable and safe for concurrent use.
type Block struct{}

// Len returns the number of rows.
func (b *Block) Len() int { panic("unwritten") }

// Bytes returns the memory that the block takes.
func (b *Block) Bytes() int64 { panic("unwritten") }

// Append appends the given rows of the block, all if rows is nil, to dst in a form
// that Parse reads.
func (b *Block) Append(dst []byte, rows []uint32) []byte { panic("unwritten") }

// Parse reads a block that Append wrote. It checks all sizes. The block refers to src.
func Parse(of []parquet.Leaf, src []byte) (*Block, error) { panic("unwritten") }

// Builder makes a block from pages.
type Builder struct{}

// NewBuilder returns a builder of blocks with the given leaves.
func NewBuilder(of []parquet.Leaf) *Builder { panic("unwritten") }

// Add adds the entries of a page of a leaf. dict is its dictionary. It keeps no
// memory of either. A page may begin and end within a row.
func (b *Builder) Add(leaf int, p *parquet.Page, dict *parquet.Dictionary) error { panic("unwritten") }

// Block returns what was added, which must be the same number of rows for each leaf,
// and starts anew.
func (b *Builder) Block(rows int) (*Block, error) { panic("unwritten") }

// Store holds rows, numbered from 0. Append must not be concurrent with anything
// else; the other methods are safe for concurrent use.
type Store struct{}

// New returns an empty store of rows with the given leaves. take, if not nil, is
// called before memory is allocated; its error is Append's.
func New(of []parquet.Leaf, take func(bytes int64) error) *Store { panic("unwritten") }

// Append appends the given rows of the block, all if rows is nil.
func (s *Store) Append(b *Block, rows []uint32) error { panic("unwritten") }

// Len returns the number of rows.
func (s *Store) Len() int { panic("unwritten") }

// Bytes returns the bytes that were passed to take.
func (s *Store) Bytes() int64 { panic("unwritten") }

// Shape says how a leaf's entries become those of another leaf.
type Shape struct {
	Shift  uint8 // added to definition levels, since an ancestor became optional
	MaxDef int   // of the other leaf
}

// Pages yields the entries of a leaf at the given rows, in that order, as pages of
// bounded size without dictionary. None stands for a NULL: one entry of levels 0. A
// page is valid until the next one.
func (s *Store) Pages(leaf int, rows []uint32, as Shape) iter.Seq2[*parquet.Page, error] { panic("unwritten") }
