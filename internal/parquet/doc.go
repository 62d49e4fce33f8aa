// Package parquet reads and writes Parquet files page by page: levels and values
// are copied from one file to another without being converted to rows or arrays.
//
// Reading, from file to page: [Open] checks the whole footer and returns a [File];
// [File.Chunk] walks the pages of one column chunk; [Chunk.Next] decompresses and
// decodes the next page into levels and values, a [Page]. [Chunk.Select] restricts
// the walk to some rows: pages without any of them are not decompressed, and in the
// others only the entries of these rows are decoded. [File.OffsetIndex],
// [File.ColumnIndex] and [File.BloomFilter] help to decide what need not be read.
// [File.Audit] decodes a whole chunk and compares what the file says of it.
//
// Between files: [File.Project] makes the schema of an output from some columns; a
// [Repeater] repeats rows of pages. Package adapt converts pages to other schemas.
//
// Writing: a [ChunkWriter] collects pages from any chunks into pages of its own,
// with a dictionary of the values in use. A [Writer] writes chunks to a file, with
// its own statistics, checksums and page index.
//
// Copying: [Writer.CopyChunk] writes a chunk as it is stored, without decoding it.
// If it loses few rows, [Chunk.Undecoded] and [ChunkWriter.KeepDictionary] do the
// same with its pages. Statistics and indexes are copied from writers that are
// known to be right ([File.BoundsBelieved], [meta.Footer.BloomBelieved]).
//
// Nothing in a file is trusted before it is checked: sizes are compared with the
// bytes present before anything is allocated, and every rule of the format that a
// reader relies on is either enforced or reported.
//
// The bytes of pages are decoded and encoded by package enc; footers, schemas and the
// faults of other writers are known to package meta. Rooms and Arrow's readers call all
// four.
//
// Errors are *fault.Error: Corrupt if the bytes break the format, Unsupported if
// they use a feature that this package does not read. I/O errors of the underlying
// reader are wrapped and are neither.
//
// The format is specified at https://github.com/apache/parquet-format.
package parquet
