// Package parquet reads the parts of a Parquet file: its footer, the pages of
// a column chunk, and what a page holds. Nothing that a file says is believed
// before it is checked: sizes are compared with the bytes that are there
// before anything is allocated, and every rule of the format that a reader
// relies on is either enforced or reported.
//
// The layers, bottom up: [Open] checks the whole footer and yields a [File];
// [File.Chunk] walks the pages of one column chunk; [Chunk.Next] decompresses
// and decodes them one at a time into levels and values; [File.Measure] and
// [File.ValidateChunk] do so for a whole chunk and keep nothing.
//
// Errors are *fault.Error: Corrupt when the bytes break the format,
// Unsupported when they use something that is not read here. I/O errors of
// the underlying reader come through wrapped, as neither.
//
// The format is specified at https://github.com/apache/parquet-format.
package parquet
