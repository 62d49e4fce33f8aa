// Package join joins a log with an ID set exactly. A filter drops most of the log
// before it is read.
//
//	IDs ──► filter, and a table of the IDs that are needed
//	log ── keys ── filter ──► candidates ── table ──► rows of the answer ── other columns ──► pages, or records
//
// [New] examines the inputs. [Join.Plan] estimates, [Join.Run] yields the answer as
// Arrow records, [Join.Write] writes it, [Join.Count] counts its rows, and
// [Join.Report] returns the figures. The inputs are files of package partition, or
// records of a program: see [Seq].
//
// # Which keys are equal
//
// Keys are equal if their values are: an int32 5 and a uint64 5, a timestamp in
// seconds and one in nanoseconds, 1.5 and 1.50, NaN and NaN, -0 and 0. Text is
// compared by its bytes, unless Options.Normalize says otherwise. Keys of classes
// that cannot be equal, such as text and integers, are an error. Equality is decided
// by the values themselves, never by a hash of them.
//
// A key with a NULL in any of its columns equals nothing. So semi, inner and right
// joins drop log rows with such a key, anti, left and full joins keep them, and right
// and full joins keep IDs with one.
//
// # The answer
//
// The log is the left side. Semi and anti joins return rows of the log, each once,
// with the log's columns. The other types return the log's columns, in order, and
// then those of the IDs. A key column with one name on both sides appears once, with
// the log's type; for an ID without a log row it holds the ID's key. Any other ID
// column gets Options.Suffix if the answer has a log column of its name.
//
// Options.Columns chooses columns of the answer from both sides, and their order.
// Other columns are neither read nor held. The choice does not change how often a
// row appears. [Join.Count] reads keys alone.
//
// Rows are in the log's order, file after file, and the pairs of one log row in the
// IDs' order. In right and full joins the IDs without a log row follow, in their
// order. Neither the strategy nor the number of workers changes that, with one
// exception: if the IDs that a single row group of the log needs exceed the memory,
// its rows come in portions, one for each portion of the IDs, and each portion is in
// the log's order.
//
// # Strategies
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
// Keys are read first, and other columns only of rows that are in the answer. If the
// filter drops too few rows to be worthwhile, it is no longer probed; the answer does
// not depend on it.
//
// # Pages and records
//
// From Parquet to Parquet no rows are made. Write copies the log's columns from page
// to page, and the IDs, whatever they were read from, are held, kept on disk and
// written leaf by leaf, as Parquet stores them. So every column of the log, and of IDs
// in Parquet files, keeps its type, even one that Arrow does not have.
//
// Records are made if something else is written or joined: by Run, for an Arrow
// output, of a log that is not Parquet, and if a column of the answer has no form as
// pages. Left and full joins then read every column of every row.
//
// Broadcast, Reverse and Shuffle read both sides, or the log, more than once. So
// neither may be standard input or an [Input] with Once.
//
// # Memory
//
// Options.Memory bounds the bytes of filters, tables, ID rows held and buffers for
// what goes to disk, together. Exceeding it is an error that wraps
// [fault.ErrMemory], unless Auto finds another strategy. Shuffle has none left if
// the distinct keys of a single row group of the log exceed it. In addition there are
// pages and batches in flight, a few for each worker, whatever the sizes of the
// files; [partition.OpenOptions].Memory bounds them. Spill files are anonymous
// where the OS supports it, so a crash leaves nothing behind.
//
// # Checks
//
// A correct answer may not be the one that was meant. Options.Require makes an
// answer that is too small or too large an error, before any of it is published.
// Report.Warnings reports suspicious figures: no ID with a row, hardly more rows
// than false positives, a filter whose measured rate is outside what its bits
// predict.
package join
