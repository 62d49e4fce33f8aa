// Package join joins a log with an ID set exactly, behind a filter that drops
// most of the log before it is read.
//
//	IDs ──► filter, and a table of the IDs that are needed
//	log ── keys ── filter ──► candidates ── table ──► the answer's rows ── other columns ──► records, or pages
//
// [New] looks at the inputs, [Join.Plan] estimates, [Join.Run] yields the answer
// as Arrow records, [Join.Write] writes it and [Join.Count] counts its rows;
// [Join.Report] says what it came to. The inputs are files of package partition,
// or records that a program has: see [Records].
//
// # What is equal
//
// Keys are equal if their values are: an int32 5 is a uint64 5, a timestamp in
// seconds equals one in nanoseconds, 1.5 is 1.50, NaN is NaN, -0 is 0. Text
// equals by its bytes, unless Options.Normalize says otherwise. Classes of keys
// that cannot be equal, such as text and integers, are an error that names both.
// Equality is decided by the values themselves, never by a hash of them.
//
// A key with a NULL in any of its columns equals nothing. So semi, inner and
// right joins drop log rows with such a key, anti, left and full joins keep them,
// and right and full joins keep IDs with one.
//
// # The answer
//
// The log is the left side. Semi and anti joins give rows of the log, each once,
// with the log's columns. The other types give the log's columns, in order, and
// then those of the IDs. A key column that has one name on both sides stands
// there once, with the log's type; for an ID without a log row it holds the ID's
// key. Another ID column gets Options.Suffix if the answer has a log column of
// its name.
//
// Options.Columns chooses columns of the answer, from both sides, and their
// order. Other columns are neither read nor held, and how often a row stands in
// the answer does not depend on the choice. [Join.Count] returns the number of
// rows from the keys alone.
//
// Rows come in the log's order, file after file, and those of one log row in the
// IDs' order; in right and full joins the IDs without a log row follow, in theirs.
// Neither the strategy nor the number of workers changes that, but for one case:
// where the IDs that a single row group of the log needs exceed the memory, its
// rows come IDs by IDs (see Shuffle), each time in the log's order.
//
// # Strategies
//
// They differ in which IDs are held, and so in memory and in how often the inputs
// are read.
//
//   - [Exact], for semi and anti joins: the filter is an exact set of integers.
//     What it lets through is the answer, and nothing else is held but a bit for each
//     integer between the least and the greatest, to tell which IDs have rows.
//   - [Lookup]: all IDs in a table, candidates looked up as they come.
//   - [Broadcast]: a filter of the IDs finds candidates by their keys alone; of
//     these a filter is made, past which the IDs are read. Those that pass are
//     held, then it goes on as Lookup. Memory follows the candidates.
//   - [Reverse]: the same with a filter of all the log's keys, for more IDs than
//     the log has keys. The log is then read behind a filter of the IDs held.
//   - [Shuffle]: the same, where even these IDs exceed the memory. Keys of both
//     sides, and the rows of the IDs, go to Options.TempDir by the hash of the key;
//     never rows of the log. Bucket by bucket it is found out which IDs each
//     stretch of the log needs; then, stretch by stretch, it goes on as Lookup. The
//     IDs of a row group that exceed the memory by themselves are taken in blocks,
//     for each of which the row group is read once.
//   - [Auto] takes the one that the plan says is fastest within the memory; where
//     it turns out to need more, one that needs less.
//
// But in left and full joins, which keep every row, keys are read before anything
// else, and then only what belongs to rows that stay; in semi and anti joins from
// Parquet to Parquet no rows are made of it at all: pages' entries are copied.
// Where the filter drops too few rows to be worth asking, it is not asked any
// more: the answer does not depend on it.
//
// Broadcast, Reverse and Shuffle read both sides, or the log, more than once, so
// that none of these may be standard input or an [Input] with Once.
//
// # Memory
//
// Options.Memory bounds what filters, tables, the IDs' rows that are held and the
// buffers of what goes to disk take together. What exceeds it is an error that
// wraps [fault.ErrMemory], unless Auto finds another way; Shuffle finds none where the
// distinct keys of a single row group of the log exceed it. Beside that there are
// pages and batches in flight, some for each worker, whatever the sizes of the
// files: [partition.OpenOptions].InFlight bounds them. What is on disk has no name, where the system knows such files, so that
// nothing of it is left, however the process ends.
//
// # Trust
//
// An answer that is right may still not be the one that was meant.
// Options.Require makes an error of one that is too small or too large, before
// anything of it is published. [Report.Warnings] says what is remarkable:
// no ID with a row, hardly more rows than false positives, a filter whose
// measured rate is outside of what its bits predict.
package join
