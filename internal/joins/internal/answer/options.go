package answer

import (
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// Type says which rows the answer of a join has.
type Type struct {
	Name         string // as the options of the join name it
	ColumnsOfIDs bool   // the answer has the ID set's columns
	KeepsLog     bool   // log rows without an ID are in the answer
	KeepsIDs     bool   // IDs without a log row are in the answer
}

// String returns the name.
func (t Type) String() string { return t.Name }

// Options are the options of a join on which the answer depends, with those of the
// scans that make it. They have defaults in place of zeros.
type Options struct {
	Type Type

	On, Normalize                      string
	IgnoreCase, NullMisfits, KeepTypes bool
	Filter                             *filters.Filter

	Columns []string
	Suffix  string
	Schema  dataset.SchemaMode
	Pinned  *dataset.PinnedSchema

	Threads  int
	Mem      memory.Allocator
	Progress func(rows int64)
}
