package join

import (
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Type selects the rows that a join returns.
type Type string

// The types. The log is the left side.
const (
	Semi  = Type(joins.Semi)  // log rows whose key is in an ID, each once
	Anti  = Type(joins.Anti)  // log rows whose key is in no ID, including those with a NULL key
	Inner = Type(joins.Inner) // pairs of log row and ID with equal keys
	Left  = Type(joins.Left)  // Inner, and log rows without an ID
	Right = Type(joins.Right) // Inner, and IDs without a log row
	Full  = Type(joins.Full)  // Left and Right
)

// Strategy selects how a join is carried out. The answer does not depend on it.
//
// Strategies differ in which IDs they hold, and so in memory and in how often they
// read the inputs.
//
//   - [Exact], for semi and anti joins: the filter is an exact set of integers, and
//     its members are the answer. Nothing else is held but one bit for each integer
//     between the least and the greatest, to determine which IDs have rows.
//   - [Lookup] holds all IDs in a table and looks candidates up as they are read.
//   - [Broadcast] finds candidates with a filter of the IDs, by their keys alone. A
//     second filter, of these keys, selects the IDs to hold; then it continues as
//     Lookup. Memory follows the candidates.
//   - [Reverse] does the same with a filter of all the log's keys, for more IDs than
//     the log has keys. The log is then read through a filter of the IDs held.
//   - [Shuffle] does the same if even these IDs exceed the memory. Keys of both
//     sides, and rows of the IDs, go to Options.TempDir, divided by the hash of the
//     key; rows of the log never do. It then determines which IDs each piece of the
//     log needs, and continues as Lookup piece by piece. If the IDs of a single row
//     group exceed the memory, the row group is read once for each portion of them.
//   - [Auto] takes the fastest one within the memory according to the plan, and
//     falls back to one that needs less if the estimate was too low.
//
// Broadcast, Reverse and Shuffle read both sides, or the log, more than once. So
// neither may be standard input, or records that can be read only once.
//
// Keys are read first, and other columns only of rows that are in the answer. If the
// filter drops too few rows to be worthwhile, it is no longer probed; the answer does
// not depend on it.
type Strategy string

// The strategies.
const (
	Auto      = Strategy(joins.Auto)      // the fastest one within the memory, by the plan
	Exact     = Strategy(joins.Exact)     // semi and anti: the filter is an exact set, and its members are the answer
	Lookup    = Strategy(joins.Lookup)    // hold all IDs in a table
	Broadcast = Strategy(joins.Broadcast) // find candidates with a filter of the IDs, hold the IDs that they have
	Reverse   = Strategy(joins.Reverse)   // hold the IDs that pass a filter of the log's keys
	Shuffle   = Strategy(joins.Shuffle)   // divide both sides by hash, on disk
)

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
	// normalised before they are compared: some of trim and lower and one of
	// uuid and url, separated by commas; see FORMAT.md of package codec. The rows of the answer
	// keep their values. Under uuid, an ID that is not a UUID is an error, and a
	// log key that is not one matches nothing.
	Normalize string
	// IgnoreCase matches column names without regard to case.
	IgnoreCase bool
	// NullMisfits turns a value that does not fit its cast into NULL. Otherwise
	// it is an error that wraps fault.ErrMismatch.
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
	// Pieces, if not nil, are the pieces of the log to join, in ascending order. They
	// replace those that Shard selects; see [partition.Inputs.Open].
	Pieces []partition.Piece
	// Memory bounds the bytes of filters, tables, ID rows held and buffers for what goes to
	// disk, together; 0: no bound. A given Filter is not counted, except with Exact.
	// Exceeding it is an error that wraps fault.ErrMemory, unless Auto finds another
	// strategy; Shuffle has none left if the distinct keys of a single row group of the log
	// exceed it. Pages and batches in flight come in addition, a few for each worker,
	// whatever the sizes of the files; [partition.OpenOptions].Memory bounds them.
	Memory int64
	// Columns are the columns of the answer, in order: NAME, or log.NAME and
	// ids.NAME where both sides have a column of that name that is not a shared
	// key. A name with a dot, comma or quote is written in double quotes. Fields of
	// structs and stars are those of --columns. Nil: all. Empty but not nil: none, for
	// [Join.Count].
	Columns []string
	// Suffix is appended to the name of an ID column if the answer has a log
	// column of that name, repeatedly until the name is unique. Empty: "_ids". Semi
	// and anti joins take none.
	Suffix string
	// Schema and Pinned are those of [partition.ScanOptions].
	Schema  dataset.SchemaMode
	Pinned  *dataset.PinnedSchema
	Limit   int64 // maximum number of rows, as [partition.ScanOptions].Limit; not for right and full joins, and shards
	Threads int   // workers; 0: GOMAXPROCS
	// TempDir is the directory for keys and rows that exceed Memory; empty: os.TempDir.
	// Its files are anonymous where the OS supports it: a crash leaves nothing behind.
	TempDir string
	Mem     memory.Allocator // of records; nil: Arrow's default
	// Require makes an answer that is too small or too large an error, once all input has
	// been read. If a condition is not met, [Join.Write] publishes nothing, not a single
	// file of a directory, and [Join.Run] ends with an error that wraps
	// [partition.ErrRequire]. IDsMatched is about Report.IDsTotal, and is not met if there
	// are no IDs; left and full joins take no MaxKept, since they keep all rows of the log.
	//
	// If the answer is a directory, the conditions are about all inputs that the run names,
	// also those that were joined before, and all of its shards: they are checked when the
	// last shard is done, and without _SUCCESS the answer is not published. Elsewhere a
	// shard's conditions are about its part of the log.
	Require dataset.Require
	// Progress, if not nil, is called with the number of rows of each batch,
	// from several goroutines at once.
	Progress func(rows int64)
}

// in returns the options as the room has them. TestOptions tries each field.
func (o Options) in() joins.Options {
	return joins.Options{
		On: o.On, Type: joins.Type(o.Type), Strategy: joins.Strategy(o.Strategy), Normalize: o.Normalize,
		IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits, Filter: (*filters.Filter)(o.Filter), FPR: o.FPR, KeepTypes: o.KeepTypes,
		Shard: o.Shard, Pieces: door.PiecesIn(o.Pieces), Memory: o.Memory, Columns: o.Columns, Suffix: o.Suffix,
		Schema: o.Schema, Pinned: o.Pinned, Limit: o.Limit, Threads: o.Threads, TempDir: o.TempDir, Mem: o.Mem, Require: o.Require, Progress: o.Progress,
	}
}
