// Package meta has what a Parquet file says about itself: footer, schema, page headers
// and statistics, and which programs are known to get them wrong.
//
// In come the bytes of Thrift structures; out come structures, a schema as a tree with
// its leaves, and the order and bounds of their values. In the other direction, footers
// are encoded with annotations as they were read, known or not.
//
// Nothing is allocated that the bytes present cannot mean. A [Schema] that was built is
// valid, and does not change. Errors of schemas are *fault.Error: Corrupt if they break
// the format, Unsupported if they use a feature that is not read. Whether row groups and
// pages are where the footer says is checked by readers.
//
// Everything that reads or writes Parquet may use meta; files and pages are
// internal/parquet's.
package meta
