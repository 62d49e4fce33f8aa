package joins

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/answer"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Type selects the rows that a join returns.
type Type string

// The types. The log is the left side.
const (
	Semi  Type = "semi"  // log rows whose key is in an ID, each once
	Anti  Type = "anti"  // log rows whose key is in no ID, including those with a NULL key
	Inner Type = "inner" // pairs of log row and ID with equal keys
	Left  Type = "left"  // Inner, and log rows without an ID
	Right Type = "right" // Inner, and IDs without a log row
	Full  Type = "full"  // Left and Right
)

// columnsOfIDs reports whether the answer has the ID set's columns.
func (t Type) columnsOfIDs() bool { return t != Semi && t != Anti }

// keepsLog reports whether log rows without an ID are in the answer.
func (t Type) keepsLog() bool { return t == Anti || t == Left || t == Full }

// keepsIDs reports whether IDs without a log row are in the answer.
func (t Type) keepsIDs() bool { return t == Right || t == Full }

// rows returns which rows the answer has.
func (t Type) rows() answer.Type {
	return answer.Type{Name: string(t), ColumnsOfIDs: t.columnsOfIDs(), KeepsLog: t.keepsLog(), KeepsIDs: t.keepsIDs()}
}

// Strategy selects how a join is carried out. The answer does not depend on it.
type Strategy = plan.Strategy

// The strategies; see the text of package join.
const (
	Auto      = plan.Auto
	Exact     = plan.Exact
	Lookup    = plan.Lookup
	Broadcast = plan.Broadcast
	Reverse   = plan.Reverse
	Shuffle   = plan.Shuffle
)

// strategies are all strategies.
var strategies = []Strategy{Auto, Exact, Lookup, Broadcast, Reverse, Shuffle}

// Options configure a join. Package join documents them.
type Options struct {
	On       string   // pairs of key columns
	Type     Type     // empty: Semi
	Strategy Strategy // empty: Auto
	// Normalize names rules for strings in the keys of both sides.
	Normalize   string
	IgnoreCase  bool            // of column names
	NullMisfits bool            // a value that does not fit its cast is NULL, not an error
	Filter      *filters.Filter // of these IDs; nil: one is built if it helps
	FPR         float64         // of a filter that is built; 0: by the number of IDs
	KeepTypes   bool            // of key columns of text ID files
	Shard       dataset.Shard   // of the log
	// Pieces, if not nil, are the pieces of the log to join, in place of the shard's.
	Pieces []source.Piece
	// UnreadRows counts log rows outside Pieces that are known to have no ID, and UnreadNulls the
	// ones without a key. They count as rows of the log in figures and requirements.
	UnreadRows, UnreadNulls int64
	// Memory bounds the bytes of filters, held IDs and buffers for what goes to disk,
	// together; 0: no bound. A given Filter is not counted, except with Exact.
	Memory int64
	// Columns of the answer, in order. Nil: all. Empty but not nil: none.
	Columns []string
	Suffix  string // of names that both sides have; empty: "_ids"
	Schema  dataset.SchemaMode
	Pinned  *dataset.PinnedSchema
	Limit   int64            // rows of the answer; 0: all
	Threads int              // workers; 0: GOMAXPROCS
	TempDir string           // empty: os.TempDir
	Mem     memory.Allocator // of records; nil: Arrow's default
	Require dataset.Require  // of the answer
	// Progress, if not nil, is called with the number of rows of each batch, from several
	// goroutines at once.
	Progress func(rows int64)
	// Prepares, if not nil, is called like Progress with rows that are read beforehand:
	// of the IDs, or else keys of the log. They may be read more than once.
	Prepares func(ids bool, rows int64)
}

// CheckColumns returns an error if Columns do not suit the Type, whatever the
// inputs.
func (o *Options) CheckColumns() error {
	return answer.CheckColumns(o.Columns, cmp.Or(o.Type, Semi).rows())
}

// defaultSuffix is the default of Options.Suffix.
const defaultSuffix = "_ids"

// filled returns the options with defaults in place of zeros, or an error if they
// contradict each other.
func (o Options) filled() (Options, error) {
	if o.Type == "" {
		o.Type = Semi
	}
	if o.Strategy == "" {
		o.Strategy = Auto
	}
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	if !slices.Contains([]Type{Semi, Anti, Inner, Left, Right, Full}, o.Type) {
		return o, fmt.Errorf("join type %q: want semi, anti, inner, left, right or full", o.Type)
	}
	if !slices.Contains(strategies, o.Strategy) {
		return o, fmt.Errorf("strategy %q: want one of %v", o.Strategy, strategies)
	}
	if err := cmp.Or(
		options.AtLeastZero("Threads", o.Threads, "GOMAXPROCS"),
		options.AtLeastZero("Memory", o.Memory, "no bound"),
		options.AtLeastZero("Limit", o.Limit, "no limit"),
		options.Shard(o.Shard.Index, o.Shard.Of),
	); err != nil {
		return o, err
	}
	if o.Type.keepsIDs() && !o.Shard.Whole() {
		return o, faults.Unsupported(fault.At{}, "a %s join of a shard of the log, since an ID without a row here may have one elsewhere", o.Type).
			WithHint("run it without {Shard}, or use inner or left")
	}
	if r := o.Require; o.Limit > 0 && (o.Type.keepsIDs() || !o.Shard.Whole() || r.IDsMatched > 0 || r.MaxKept > 0) {
		return o, faults.Unsupported(fault.At{}, "{Limit} in a right or full join, of a shard, or with shares that are required").WithHint("leave one of them out")
	}
	if err := o.CheckColumns(); err != nil {
		return o, fmt.Errorf("columns of the answer: %w", err)
	}
	switch {
	case o.Suffix != "" && !o.Type.columnsOfIDs():
		return o, fmt.Errorf("suffix %q: the answer of type %s has no columns of the IDs", o.Suffix, o.Type)
	case o.Suffix == "":
		o.Suffix = defaultSuffix
	}
	if o.Filter != nil && !o.Filter.Sealed() {
		return o, faults.Of(cause.Partial, faults.Mismatch(fault.At{}, "filter", "a finished filter", "a partial one")).WithHint("merge all partial filters of the build first")
	}
	return o, checkRequire(o.Require, o.Type)
}

// ofAnswer returns the options on which the answer depends.
func (o *Options) ofAnswer() *answer.Options {
	return &answer.Options{
		Type: o.Type.rows(), On: o.On, Normalize: o.Normalize, IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits, KeepTypes: o.KeepTypes, Filter: o.Filter,
		Columns: o.Columns, Suffix: o.Suffix, Schema: o.Schema, Pinned: o.Pinned, Threads: o.Threads, Mem: o.Mem, Progress: o.Progress,
	}
}
