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
package join
