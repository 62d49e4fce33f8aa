package parquet

import (
	"fmt"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// checkRowGroups checks the footer's row groups and sets f.RowGroups.
func (f *File) checkRowGroups(at fault.At) error {
	total := int64(0)
	f.RowGroups = make([]RowGroup, len(f.Metadata.RowGroups))
	for g := range f.Metadata.RowGroups {
		rg := &f.Metadata.RowGroups[g]
		gat := at
		gat.RowGroup = g + 1
		if rg.NumRows < 0 || rg.NumRows > math.MaxInt64-total {
			return fault.Corrupt(gat, "a row group of %d rows", rg.NumRows)
		}
		if rg.NumRows > math.MaxUint32 { // rows are numbered with 32 bits
			return fault.Unsupported(gat, "a row group of %d rows", rg.NumRows).WithHint("write the file with row groups of at most 2^32-1 rows")
		}
		total += rg.NumRows
		if len(rg.Columns) != len(f.Leaves) {
			return fault.Corrupt(gat, "column chunks of the row group").Wanted(fmt.Sprintf("%d, one for each column", len(f.Leaves)), fmt.Sprint(len(rg.Columns)))
		}
		f.RowGroups[g].Rows = rg.NumRows
		for c := range rg.Columns {
			if err := f.checkChunk(g, c); err != nil {
				return err
			}
			trim(&rg.Columns[c].MetaData)
			n := rg.Columns[c].MetaData.TotalCompressedSize
			if n > math.MaxInt64-f.RowGroups[g].CompressedBytes {
				return fault.Corrupt(gat, "the row groups take more bytes than a file can have")
			}
			f.RowGroups[g].CompressedBytes += n
		}
	}
	if n := f.Metadata.NumRows; n != total && n != 0 { // some writers leave it 0
		return fault.Corrupt(at, "rows of the file").Wanted(fmt.Sprintf("%d, as the row groups have", total), fmt.Sprint(f.Metadata.NumRows))
	}
	return nil
}

// trim drops metadata that is not used after the checks, because a log may have
// many files and all footers stay in memory.
func trim(md *meta.ColumnMetaData) {
	md.PathInSchema = nil // the leaf has it too
	md.Statistics.Min, md.Statistics.Max = thrift.Null[[]byte]{}, thrift.Null[[]byte]{}
}

func (f *File) checkChunk(g, c int) error {
	at, leaf := f.at(g, c), &f.Leaves[c]
	chunk := &f.Metadata.RowGroups[g].Columns[c]
	md := &chunk.MetaData
	switch {
	case chunk.CryptoMetadata.Valid || len(chunk.EncryptedColumnMetadata) > 0:
		return fault.Unsupported(at, "the column is encrypted").
			WithHint("write the file again without Parquet encryption")
	case chunk.FilePath != "":
		return fault.Unsupported(at, "the column's data is in another file").
			WithHint("write the columns into one file")
	case !slices.Equal(md.PathInSchema, leaf.Path):
		return fault.Corrupt(at, "the column chunk belongs to another column")
	case md.Type != leaf.Type:
		return fault.Corrupt(at, "type of the column chunk").Wanted(fmt.Sprintf("%v, as in the schema", leaf.Type), fmt.Sprint(md.Type))
	case md.Codec < format.Uncompressed || md.Codec > format.Lz4Raw:
		return fault.Unsupported(at, "compression codec %d", int32(md.Codec)).
			WithHint("write the file again with snappy, zstd, gzip, brotli or lz4")
	case md.NumValues < 0 || md.TotalCompressedSize < 0 || md.TotalUncompressedSize < 0:
		return fault.Corrupt(at, "negative counts or sizes")
	}
	rows := f.Metadata.RowGroups[g].NumRows
	if md.NumValues < rows || leaf.MaxRep == 0 && md.NumValues != rows {
		return fault.Corrupt(at, "%d values in %d rows", md.NumValues, rows)
	}
	if rows == 0 && md.NumValues > 0 {
		return fault.Corrupt(at, "%d values in a row group without rows", md.NumValues)
	}
	if md.NumValues == 0 {
		return nil // nothing will be read
	}
	if md.NumValues/(MaxPageValues/8) > md.TotalCompressedSize { // a page takes at least 8 bytes
		return fault.Corrupt(at, "%d values in %d bytes", md.NumValues, md.TotalCompressedSize)
	}
	start := chunkStart(md)
	if start < int64(len(magic)) || md.TotalCompressedSize == 0 ||
		start > f.footerPos || md.TotalCompressedSize > f.footerPos-start {
		return fault.Corrupt(at, "the column chunk, %d bytes at %d, lies outside the file's data",
			md.TotalCompressedSize, start)
	}
	return nil
}

// chunkStart returns the offset of a chunk's first page. Some writers use 0 for "no
// dictionary page".
func chunkStart(md *meta.ColumnMetaData) int64 {
	if d := md.DictionaryPageOffset; d > 0 && d < md.DataPageOffset {
		return d
	}
	return md.DataPageOffset
}

// Codec returns the compression codec of a column chunk.
func (f *File) Codec(rowGroup, leaf int) format.CompressionCodec {
	return f.Metadata.RowGroups[rowGroup].Columns[leaf].MetaData.Codec
}
