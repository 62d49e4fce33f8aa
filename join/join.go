package join

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/join/internal/budget"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Type says which rows a join gives.
type Type string

// The types. The log is the left side.
const (
	Semi  Type = "semi"  // log rows whose key is in an ID, each once
	Anti  Type = "anti"  // log rows whose key is in no ID, those with a NULL key among them
	Inner Type = "inner" // pairs of log row and ID with equal keys
	Left  Type = "left"  // Inner, and log rows without an ID
	Right Type = "right" // Inner, and IDs without a log row
	Full  Type = "full"  // Left and Right
)

// columnsOfIDs reports whether the answer has the ID set's columns.
func (t Type) columnsOfIDs() bool { return t != Semi && t != Anti }

// keepsLog reports whether log rows without an ID are kept.
func (t Type) keepsLog() bool { return t == Anti || t == Left || t == Full }

// keepsIDs reports whether IDs without a log row are kept.
func (t Type) keepsIDs() bool { return t == Right || t == Full }

// Strategy says how a join is carried out.
type Strategy string

// The strategies.
const (
	// Auto takes the one that the plan says is fastest within the memory.
	Auto      Strategy = "auto"
	Exact     Strategy = "exact"     // semi and anti: the filter is exact, what it lets through is the answer
	Lookup    Strategy = "lookup"    // all IDs in a table, the log past it
	Broadcast Strategy = "broadcast" // a filter of the IDs finds the candidates, and of the IDs those are held that some candidate has
	Reverse   Strategy = "reverse"   // a filter of the log's keys finds the IDs to hold
	// Shuffle: neither side fits; both are divided by hash, on disk. Where the
	// IDs of a single row group of the log exceed the memory, its rows come in
	// another order: those of one block of IDs after those of another.
	Shuffle Strategy = "shuffle"
)

// Strategies returns all strategies, Auto first.
func Strategies() []Strategy { return []Strategy{Auto, Exact, Lookup, Broadcast, Reverse, Shuffle} }

// Options says how to join. Only On is needed.
type Options struct {
	// On pairs the key columns, LOG=ID or one name for both, separated by
	// commas: "user_id", "user.id=id,region=region".
	// Each may be cast, as in "user_id::int64=uid"; a cast never rounds. Numbers
	// of all types are compared by value.
	On       string
	Type     Type     // empty: Semi
	Strategy Strategy // empty: Auto
	// Normalize names the rule by which strings in the keys of both sides are
	// made alike before they are compared: some of trim, lower and uuid,
	// separated by commas; see FORMAT.md of package codec. The rows of the
	// answer are as they were. Under uuid, an ID that is none is an error, and a
	// log key that is none has no ID.
	Normalize string
	// IgnoreCase finds columns by names whose letters may differ in case.
	IgnoreCase bool
	// NullMisfits makes a value that does not fit its cast a NULL. Otherwise it
	// is an error that wraps [fault.ErrMismatch].
	NullMisfits bool
	// Filter is a sealed filter that was built from these IDs; nil: one is
	// built. An ID that it does not hold is an error.
	Filter *codec.Filter
	FPR    float64 // of the filter that is built; 0: by the number of IDs
	// KeepTypes leaves the key columns of text ID files as they were opened.
	// Otherwise they take the type of the log's.
	KeepTypes bool
	// Shard is the part of the log to join. The ID set is always read whole.
	Shard partition.Shard
	// Memory is the most bytes that filters, the IDs that are held, and buffers
	// for what goes to disk may take together; 0: no bound. A Filter that is
	// given comes on top, but with Exact.
	Memory int64
	// Columns are the columns of the answer, in order: NAME, or log.NAME and
	// ids.NAME where both sides have a column of that name that is not a shared
	// key. A name with a dot, comma or quote stands in double quotes. Only
	// top-level columns can be chosen. Nil: all; empty but not nil: none, for a
	// join whose rows are only counted, see [Join.Count].
	Columns []string
	// Suffix is appended to the name of an ID column where the answer has a log
	// column of that name, repeatedly until the name is unique. Empty: "_ids".
	// Semi and anti joins take none.
	Suffix string
	// Schema and Pinned are those of [partition.ScanOptions], for semi and anti
	// joins, whose rows are the log's.
	Schema  partition.SchemaMode
	Pinned  *partition.PinnedSchema
	Threads int // workers; 0: GOMAXPROCS
	// TempDir is where keys and rows wait on disk that exceed Memory; empty:
	// [os.TempDir].
	TempDir string
	Mem     memory.Allocator
	// Require says what the answer must be like, or else nothing is published.
	Require Require
	// Progress, if not nil, is called with the number of rows of each batch,
	// from many goroutines.
	Progress func(rows int64)
}

// Report is what a join came to. It is complete when Run's sequence has ended.
type Report struct {
	RowsIn, RowsOut int64
	KeysNull        int64 // log rows with a NULL in the key
	RowGroups       int64

	// Of joins that copy pages:
	RowGroupsSkipped, Pages, PagesSkipped int64

	Candidates   int64 // log rows that the filter let through, or was not asked about
	RowsMatched  int64 // of them, those whose key is in an ID
	RowsUnasked  int64 // log rows that the filter was not asked about, since it dropped too few
	IDsTotal     int64 // ID rows with a key that is not NULL
	IDsMatched   int64 // of them, those whose key a log row has
	FPRAsked     float64
	FPRPredicted float64
	FPRMeasured  MeasuredFPR
	Strategy     Strategy
	SpilledBytes int64 // written to TempDir
	DiskBytes    int64 // the most that Shuffle had there at one time
	Plan         *Plan // that chose the strategy; nil if none was made

	scanned bool // the log is what a scan or join let through
}

// Join is a join whose inputs have been looked at, and nothing read yet. It
// runs once.
type Join struct {
	opts    Options
	ids     []*partition.File
	logs    []*partition.File
	rule    key.Rule
	left    []key.Column // of the log
	right   []key.Column // of the IDs
	logKey  string       // left and right as text
	idKey   string
	classes []key.Class // in which both sides are compared
	wanted  []wanted    // columns of the answer; nil: all
	counts  bool        // rows of the answer are counted, not made
	plan    *filterbuild.Plan
	idCols  *idColumns
	layouts map[*partition.File]*layout
	pieces  []partition.Piece

	batchBytes int64 // of the answer, see batchBytesOf

	model    model
	filter   *codec.Filter
	account  *budget.Account
	side     *table.Side  // that the log, or the leg at hand, is joined with
	whole    bool         // all IDs are in side
	marks    *table.Marks // in place of side, if the filter is exact
	shuffled *shuffled
	spilled  int64              // bytes of keys that waited on disk for the size of a filter
	block    *block             // of IDs that side is, if it is not all that a row could have
	scanned  *partition.Scanner // if the scan makes the answer, or finds its rows
	end      func() error

	rowsIn, rowsOut, keysNull, candidates, matched, falsePositives, unasked, idsTotal atomic.Int64
	idsNull                                                                           atomic.Int64 // ID rows without a key
	mu                                                                                sync.Mutex
	spreads                                                                           []*spread // one for each worker
	report                                                                            Report
}

// New looks at the inputs: it finds the keys, compares their classes and
// settles the schema of the answer for each log file.
func New(ids, logs []*partition.File, opts Options) (*Join, error) {
	if len(ids) == 0 || len(logs) == 0 {
		return nil, fmt.Errorf("a join needs files of IDs and of a log, got %d and %d", len(ids), len(logs))
	}
	j := &Join{opts: opts, ids: ids, logs: logs, layouts: map[*partition.File]*layout{}, account: budget.New(opts.Memory)}
	if err := j.options(); err != nil {
		return nil, err
	}
	var err error
	if j.left, j.right, err = key.ParsePairs(opts.On); err != nil {
		return nil, err
	}
	if j.rule, err = key.ParseRule(opts.Normalize); err != nil {
		return nil, err
	}
	j.logKey, j.idKey = key.ColumnsString(j.left), key.ColumnsString(j.right)
	if !opts.KeepTypes {
		if err := j.typeText(); err != nil {
			return nil, err
		}
	}
	if j.classes, err = j.meet(); err != nil {
		return nil, err
	}
	if j.plan, err = j.newPlan(0); err != nil {
		return nil, err
	}
	if j.idCols, err = j.newIDColumns(logs[0].Schema()); err != nil {
		return nil, err
	}
	for _, f := range logs {
		if err := j.look(f); err != nil {
			return nil, err
		}
	}
	j.pieces = partition.Split(logs, opts.Shard)
	j.batchBytes = batchBytesOf(partition.InFlight(j.pieces))
	return j, nil
}

// newPlan plans the filter of the IDs. capacity bounds their number; 0: as far
// as the files tell.
func (j *Join) newPlan(capacity uint64) (*filterbuild.Plan, error) {
	opts := j.filterOptions(j.idKey)
	opts.Normalize, opts.FPR, opts.Capacity = j.opts.Normalize, j.opts.FPR, capacity
	opts.Threads, opts.Memory, opts.TempDir, opts.Mem = j.opts.Threads, j.filterBudget(), j.opts.TempDir, j.opts.Mem
	return filterbuild.NewPlan(j.ids, opts)
}

// options fills in and checks what needs no file.
func (j *Join) options() error {
	o := &j.opts
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
		return fmt.Errorf("join type %q: want semi, anti, inner, left, right or full", o.Type)
	}
	if !slices.Contains(Strategies(), o.Strategy) {
		return fmt.Errorf("strategy %q: want one of %v", o.Strategy, Strategies())
	}
	if o.Type.keepsIDs() && !o.Shard.Whole() {
		return fault.Unsupported(fault.At{}, "a %s join of a shard of the log, since an ID without a row here may have one elsewhere", o.Type).
			WithHint("run it without {Shard}, or use inner or left")
	}
	if o.Type.columnsOfIDs() && o.Schema == partition.Union {
		return fault.Unsupported(fault.At{}, "a union of schemas in a %s join", o.Type).
			WithHint("only semi and anti joins have it; or do it before, with a scan")
	}
	var err error
	if j.wanted, err = parseColumns(o.Columns, o.Type); err != nil {
		return fmt.Errorf("columns of the answer: %w", err)
	}
	j.counts = o.Columns != nil && len(o.Columns) == 0
	switch {
	case o.Suffix != "" && !o.Type.columnsOfIDs():
		return fmt.Errorf("suffix %q: the answer of type %s has no columns of the IDs", o.Suffix, o.Type)
	case o.Suffix == "":
		o.Suffix = defaultSuffix
	}
	if o.Filter != nil && !o.Filter.Sealed() {
		return fault.Mismatch(fault.At{}, "filter", "a finished filter", "a partial one").WithHint("merge all partial filters of the build first")
	}
	return o.Require.valid(o.Type)
}

// look lays out the answer of a log file.
func (j *Join) look(f *partition.File) error {
	l, err := j.newLayout(f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if j.rowsOfLog() && j.opts.Schema != partition.Union {
		kept := j.kept()
		if l.schema, err = kept.SchemaOf(f); err != nil {
			return err
		}
	}
	j.layouts[f] = l
	return nil
}

// Parts returns the stretches of the answer, in order: one for each piece of
// the log, and for right and full joins one for the IDs without a log row.
// [partition.Rows].Piece of what Run yields is an index into them.
func (j *Join) Parts() []partition.Part {
	var parts []partition.Part
	for _, p := range j.pieces {
		parts = append(parts, partition.Part{Piece: p, Schema: j.layouts[p.File].schema})
	}
	switch {
	case j.opts.Type.keepsIDs():
		parts = append(parts, partition.Part{Name: "ids-without-rows", Schema: j.layouts[j.logs[0]].schema})
	case len(parts) == 0: // a shard without input
		parts = append(parts, partition.Part{Schema: j.layouts[j.logs[0]].schema})
	}
	return parts
}

// neverScanned reports whether a file is no output of a scan or join.
func neverScanned(f *partition.File) bool {
	md := f.Schema().Metadata()
	_, ok := md.GetValue(partition.MetaResult)
	return !ok
}

// match is the filter as the scan applies it to the log.
func (j *Join) match() partition.Match { return j.matchOf(j.filter, j.logKey) }
