package join

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/join/internal/answer"
	"github.com/bloomjoin/bloomjoin/partition"
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
type Strategy string

// The strategies; see the package documentation.
const (
	Auto      Strategy = "auto"      // the fastest one within the memory, by the plan
	Exact     Strategy = "exact"     // semi and anti: the filter is an exact set, and its members are the answer
	Lookup    Strategy = "lookup"    // hold all IDs in a table
	Broadcast Strategy = "broadcast" // find candidates with a filter of the IDs, hold the IDs that they have
	Reverse   Strategy = "reverse"   // hold the IDs that pass a filter of the log's keys
	Shuffle   Strategy = "shuffle"   // divide both sides by hash, on disk
)

// strategies are all strategies.
var strategies = []Strategy{Auto, Exact, Lookup, Broadcast, Reverse, Shuffle}

// Options configure a join. Only On is required.
type Options struct {
	// On pairs the key columns, LOG=ID or one name for both, separated by
	// commas: "user_id", "user.id=id,region=region". Each may be cast, as in
	// "user_id::int64=uid"; a cast never rounds. Numbers of all types are
	// compared by value.
	On       string
	Type     Type     // empty: Semi
	Strategy Strategy // empty: Auto
	// Normalize names the rule by which strings in the keys of both sides are
	// normalised before they are compared: some of trim, lower and uuid,
	// separated by commas; see FORMAT.md of package codec. The rows of the answer
	// keep their values. Under uuid, an ID that is not a UUID is an error, and a
	// log key that is not one matches nothing.
	Normalize string
	// IgnoreCase matches column names without regard to case.
	IgnoreCase bool
	// NullMisfits turns a value that does not fit its cast into NULL. Otherwise
	// it is an error that wraps [fault.ErrMismatch].
	NullMisfits bool
	// Filter is a sealed filter of these IDs. Nil: one is built if it helps. An
	// ID that is not in it is an error.
	Filter *codec.Filter
	// FPR is the false-positive rate of a filter that is built. 0: by the number
	// of IDs.
	FPR float64
	// KeepTypes keeps the types of key columns of text ID files. Otherwise they
	// take the type of the log's columns.
	KeepTypes bool
	// Shard is the part of the log to join. The ID set is always read whole.
	Shard dataset.Shard
	// Pieces, if not nil, are the pieces of the log to join, in ascending order, in place
	// of those that Shard has of the files; see [partition.Inputs.Open].
	Pieces []partition.Piece
	// Memory bounds the bytes of filters, held IDs and buffers for what goes to
	// disk, together; 0: no bound. A given Filter is not counted, except with
	// Exact.
	Memory int64
	// Columns are the columns of the answer, in order: NAME, or log.NAME and
	// ids.NAME where both sides have a column of that name that is not a shared
	// key. A name with a dot, comma or quote is written in double quotes. Only
	// top-level columns can be chosen. Nil: all. Empty but not nil: none, for
	// [Join.Count].
	Columns []string
	// Suffix is appended to the name of an ID column if the answer has a log
	// column of that name, repeatedly until the name is unique. Empty: "_ids". Semi
	// and anti joins take none.
	Suffix string
	// Schema and Pinned are those of [partition.ScanOptions], for semi and anti
	// joins.
	Schema  dataset.SchemaMode
	Pinned  *dataset.PinnedSchema
	Threads int // workers; 0: GOMAXPROCS
	// TempDir is the directory for keys and rows that exceed Memory; empty:
	// [os.TempDir].
	TempDir string
	Mem     memory.Allocator // of records; nil: Arrow's default
	// Require makes an answer that is too small or too large an error, once all input has
	// been read. If a condition is not met, [Join.Write] publishes nothing, not a single
	// file of a directory, and [Join.Run] ends with an error that wraps
	// [partition.ErrRequire]. IDsMatched is about Report.IDsTotal, and is not met if there
	// are no IDs; left and full joins take no MaxKept, since they keep all rows of the log.
	//
	// Of an answer in a directory, the conditions are about all inputs that the run names,
	// also those that were joined before, and all of its shards: they are checked when the
	// last shard is done, and without _SUCCESS the answer is not published. Elsewhere a
	// shard's conditions are about its part of the log.
	Require dataset.Require
	// Progress, if not nil, is called with the number of rows of each batch,
	// from several goroutines at once.
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

// defaultSuffix is that of Options.Suffix.
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
		options.Shard(o.Shard.Index, o.Shard.Of),
	); err != nil {
		return o, err
	}
	if o.Type.keepsIDs() && !o.Shard.Whole() {
		return o, faults.Unsupported(fault.At{}, "a %s join of a shard of the log, since an ID without a row here may have one elsewhere", o.Type).
			WithHint("run it without {Shard}, or use inner or left")
	}
	if o.Type.columnsOfIDs() && o.Schema == dataset.Union {
		return o, faults.Unsupported(fault.At{}, "a union of schemas in a %s join", o.Type).
			WithHint("only semi and anti joins have it; or do it before, with a scan")
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
		return o, faults.Mismatch(fault.At{}, "filter", "a finished filter", "a partial one").WithHint("merge all partial filters of the build first")
	}
	return o, checkRequire(o.Require, o.Type)
}

// ofAnswer returns the options on which the answer depends.
func (o *Options) ofAnswer() *answer.Options {
	return &answer.Options{
		Type: o.Type.rows(), On: o.On, Normalize: o.Normalize, IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits, KeepTypes: o.KeepTypes, Filter: o.filter(),
		Columns: o.Columns, Suffix: o.Suffix, Schema: o.Schema, Pinned: o.Pinned, Threads: o.Threads, Mem: o.Mem, Progress: o.Progress,
	}
}

// filter returns the given filter as rooms have it.
func (o *Options) filter() *filters.Filter { return (*filters.Filter)(o.Filter) }
