// Package parquet reads and writes Parquet files by their pages: levels and
// values go from one file to another as they are, without rows or arrays being
// made of them.
//
// Reading, bottom up: [Open] checks the whole footer and yields a [File];
// [File.Chunk] walks the pages of one column chunk; [Chunk.Next] decompresses
// and decodes them one at a time into levels and values, a [Page].
// [Chunk.Select] restricts the walk to some rows: pages without any are not
// decompressed, of the others only the entries of these rows are decoded.
// [File.OffsetIndex], [File.ColumnIndex] and [File.BloomFilter] tell what need
// not be read; [File.Measure] and [File.ValidateChunk] decode a whole chunk and
// keep nothing.
//
// Between files: [File.Project] and [Union] make the schema of an output,
// [NewAdapter] says how its leaves are made of a file's.
//
// Writing: a [ChunkWriter] collects pages, whatever chunks they come from, into
// pages of its own, with a dictionary of the values in use; a [Writer] puts
// chunks into a file, with statistics, checksums and a page index that are its
// own.
//
// Nothing that a file says is believed before it is checked: sizes are compared
// with the bytes that are there before anything is allocated, and every rule of
// the format that a reader relies on is either enforced or reported.
//
// Errors are *fault.Error: Corrupt when the bytes break the format,
// Unsupported when they use something that is not read here. I/O errors of
// the underlying reader come through wrapped, as neither.
//
// The format is specified at https://github.com/apache/parquet-format.
package parquet
