// Package arrowparquet reads and writes whole tables: Parquet files as Arrow
// records, and Arrow records as Parquet files. It takes what the page-level
// scan does not, so it covers every encoding, codec and nesting that
// internal/parquet validates, and puts being right before being fast.
//
// Reading decodes pages with internal/parquet and assembles the Arrow arrays
// here, from levels and values. It does not go through the Parquet reader of
// arrow/go v15, which decodes in goroutines of its own, where a panic ends the
// process, drops the time zone's absence, the sign of some decimals and the
// pages behind an empty one, and lacks several codecs and encodings. Tests
// compare with it where it is right.
//
// Writing cuts the arrays into levels and values here, page by page, and gives
// those to the writer of internal/parquet, which encodes, compresses and lays
// out the file.
package arrowparquet
