// Package arrowparquet reads and writes whole tables: Parquet files as Arrow
// records, and Arrow records as Parquet files. It handles everything that the
// page-level scan does not. It therefore supports every encoding, codec and nesting
// that internal/parquet validates, and prefers correctness to speed.
//
// Reading decodes pages with internal/parquet and assembles Arrow arrays from
// levels and values. The Parquet reader of arrow/go v15 is not used: it decodes in
// goroutines of its own, where a panic ends the process; it loses the absence of a
// time zone, the sign of some decimals and the pages after an empty one; and it
// lacks several codecs and encodings. Tests compare with it where it is right.
//
// Writing splits arrays into levels and values, page by page, and passes these to
// the writer of internal/parquet, which encodes, compresses and writes the file.
package arrowparquet
