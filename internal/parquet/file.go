package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

const (
	magic          = "PAR1"
	magicEncrypted = "PARE"
	tailSize       = 8 // footer length and magic

	// maxFooterSize bounds the memory that Open needs: a decoded footer is several
	// times larger than the stored one.
	maxFooterSize = 128 << 20
)

// File is an opened Parquet file with a checked footer. It is immutable, and safe
// for concurrent use if the underlying reader is.
type File struct {
	Name     string // as the user gave it, for errors
	Size     int64  // bytes
	Metadata *meta.Footer

	meta.Schema
	RowGroups []RowGroup // in file order

	described *meta.Described // as stored; shared with the file whose schema is shared
	view      *View           // nil: the file has the columns that it stores
	own       *storedSchema   // as decoded, if there is a view
	absent    []bool          // leaves of the view that are not stored
	wider     []*widening     // of leaves of the view; nil: none
	bare      *storedSchema   // nil: the file has no constants
	extra     []byte          // the constants' pages, as if they followed the file
	r         io.ReaderAt
	room      *PageBudget
	footer    int64                   // bytes charged for the footer
	readSize  int64                   // smallest read in bytes
	mapping   atomic.Pointer[Mapping] // used by walks that begin now; see Map
	mapLock   sync.Mutex              // of Map
	remote    *remote                 // nil: reads are cheap
	footerPos int64                   // start of the footer, which is after all column chunks
	digest    [16]byte
}

// BoundsBelieved reports whether the leaf's bounds in statistics and column indexes are
// to be believed, see [meta.Footer.BoundsBelieved]. Those of constants always are.
func (f *File) BoundsBelieved(l *meta.Leaf) bool {
	return f.Constant(l.Index) || len(f.Metadata.ColumnOrders) == len(f.Leaves) && f.Metadata.BoundsBelieved(l)
}

// Nulls returns the number of NULLs of a leaf that is not repeated in a row group, -1 if statistics
// do not say it, or are not believed.
func (f *File) Nulls(rowGroup, leaf int) int64 {
	n := f.chunk(rowGroup, leaf).MetaData.Statistics.NullCount
	switch {
	case f.Leaves[leaf].MaxDef == 0:
		return 0
	case !n.Valid || n.V < 0 || n.V > f.RowGroups[rowGroup].Rows || !f.Metadata.NullsBelieved():
		return -1
	}
	return n.V
}

// Starts returns where the row groups with rows begin.
func (f *File) Starts() (all []int64) {
	for g, group := range f.RowGroups {
		if group.Rows > 0 {
			all = append(all, chunkStart(&f.chunk(g, 0).MetaData))
		}
	}
	return all
}

// RowGroup summarises a row group.
type RowGroup struct {
	Rows            int64
	CompressedBytes int64 // of all its column chunks
}

// Open reads the footer of a file of the given size and checks its whole structure.
// name is only used in errors. The File keeps r, which must stay readable. Open
// reads the first four bytes and the end of the file. The footer and pages are
// charged to room, which may be nil; Close returns the footer's share.
func Open(room *PageBudget, r io.ReaderAt, size int64, name string) (f *File, err error) {
	return open(room, r, size, name, true, nil)
}

// OpenLike is Open for one of many files. It does not decode again what the footer shares with
// like's, see [File.Share]; like may be nil. A far file is over a network: its end is read
// alone, which takes one request instead of two.
func OpenLike(like *File, room *PageBudget, r io.ReaderAt, size int64, name string, far bool) (f *File, err error) {
	return open(room, r, size, name, !far, like)
}

// OpenFooter returns a file that has a footer and no pages, for the schema of other files.
func OpenFooter(footer []byte, name string) (*File, error) {
	b := slices.Concat([]byte(magic), footer, binary.LittleEndian.AppendUint32(nil, uint32(len(footer))), []byte(magic))
	return Open(nil, bytes.NewReader(b), int64(len(b)), name)
}

func open(room *PageBudget, r io.ReaderAt, size int64, name string, head bool, like *File) (f *File, err error) {
	at := fault.At{File: name}
	defer panics.Recover(at, &err)
	f = &File{Name: name, Size: size, r: r, room: room}
	opened := f
	defer func() {
		if err != nil {
			opened.Close()
		}
	}()
	footer, err := f.readFooter(at, head)
	if err != nil {
		return nil, err
	}
	if err := f.decodeFooter(at, footer, like); err != nil {
		return nil, err
	}
	_ = f.charge(at, -int64(len(footer))) // returning memory does not fail
	f.digest = xxh3.Hash128(binary.LittleEndian.AppendUint64(footer, uint64(size))).Bytes()
	return f, nil
}

// Room returns the budget given to Open, nil if memory is unbounded.
func (f *File) Room() *PageBudget { return f.room }

// Close returns the memory charged for the footer.
func (f *File) Close() {
	_ = f.charge(fault.At{}, -f.footer) // returning memory does not fail
}

// charge adds to the memory charged for the footer.
func (f *File) charge(at fault.At, bytes int64) error {
	err := f.room.ChargeFooter(at, bytes)
	if err == nil {
		f.footer += bytes
	}
	return err
}

// ReadAtLeast makes page reads fetch at least n bytes at a time, for files over a
// network whose storage cannot fetch ahead. It must be called before any page is read.
func (f *File) ReadAtLeast(n int64) { f.readSize = n }

// windowSize is the number of bytes that a walk reads at once if pages are smaller.
func (f *File) windowSize() int64 {
	if f.remote != nil {
		return farWindow
	}
	return f.readSize
}

// Fingerprint returns 16 bytes (XXH3-128) that identify the file by its size and
// the bytes of its footer. It is not a cryptographic digest.
func (f *File) Fingerprint() []byte { return bytes.Clone(f.digest[:]) }

// readFooter checks the magic numbers and returns the bytes of the footer. It checks the magic
// number at the start of the file only if first is set.
func (f *File) readFooter(at fault.At, first bool) ([]byte, error) {
	if f.Size < int64(len(magic)+tailSize) {
		return nil, faults.Wanted(faults.Corrupt(at, "too short for a Parquet file"), fmt.Sprintf("%d bytes or more", len(magic)+tailSize), f.Size)
	}
	head := []byte(magic)
	if first {
		if err := f.readFull(head, 0); err != nil {
			return nil, err
		}
	}
	tail := make([]byte, tailSize)
	if err := f.readFull(tail, f.Size-tailSize); err != nil {
		return nil, err
	}
	switch {
	case string(tail[4:]) == magicEncrypted || string(head) == magicEncrypted:
		return nil, faults.Unsupported(at, "the file is encrypted").
			WithHint("write the file again without Parquet encryption")
	case string(tail[4:]) != magic:
		return nil, faults.Wanted(faults.Corrupt(at, "not a Parquet file, or cut off"), fmt.Sprintf("%q at its end", magic), "other bytes")
	case string(head) != magic:
		return nil, faults.Wanted(faults.Corrupt(at, "not a Parquet file"), fmt.Sprintf("%q at its beginning", magic), "other bytes")
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n == 0 || n > f.Size-int64(len(magic)+tailSize) {
		return nil, faults.Wanted(faults.Corrupt(at, "the footer's length"), fmt.Sprintf("1 to %d bytes, the rest of the file", f.Size-int64(len(magic)+tailSize)), n)
	}
	if n > maxFooterSize {
		return nil, faults.Unsupported(at, "a footer of %s; the limit is %s", show.Size(n), show.Size(maxFooterSize)).
			WithHint("divide the file into several, each with fewer row groups or columns")
	}
	if err := f.charge(at, n); err != nil {
		return nil, err
	}
	f.footerPos = f.Size - tailSize - n
	footer := make([]byte, n, n+8) // room for the size, see open
	return footer, f.readFull(footer, f.footerPos)
}

func (f *File) decodeFooter(at fault.At, footer []byte, like *File) error {
	size, described := meta.Skim(footer)
	if err := f.charge(at, size); err != nil {
		return err
	}
	decode := meta.DecodeFooter
	alike := like != nil && like.described != nil && described != nil && described.Same(like.described)
	if alike {
		decode = meta.DecodeRest
	}
	m, n, err := decode(footer)
	if err != nil {
		return &fault.Error{Kind: fault.ErrCorrupt, At: at, What: "the footer does not decode", Err: err}
	}
	f.Metadata = m
	if f.Metadata.EncryptionAlgorithm.Valid {
		return faults.Unsupported(at, "the file has encrypted columns").
			WithHint("write the file again without Parquet encryption")
	}
	if n != len(footer) {
		return faults.Corrupt(at, "%d extra bytes after the footer", len(footer)-n)
	}
	switch {
	case alike:
		f.share(like)
	case like != nil && f.Share(like):
	default:
		if f.Schema, err = f.Metadata.Tree(at); err != nil {
			return err
		}
		f.described = described.Clone() // without the footer
	}
	return f.checkRowGroups(at)
}

// readFull reads len(b) bytes at off. If the file ends early, it is corrupt: its
// size was given to Open.
func (f *File) readFull(b []byte, off int64) error {
	if at := off - f.Size; at >= 0 && at+int64(len(b)) <= int64(len(f.extra)) {
		copy(b, f.extra[at:])
		return nil
	}
	n, err := f.r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return faults.Corrupt(fault.At{File: f.Name}, "the file ends %d bytes early", len(b)-n)
	}
	return fmt.Errorf("%s: reading %d bytes at %d: %w", f.Name, len(b), off, err)
}

// at returns the place of a column chunk, for errors; rowGroup and leaf count from
// 0.
func (f *File) at(rowGroup, leaf int) fault.At {
	return fault.At{File: f.Name, RowGroup: rowGroup + 1, Column: f.Leaves[leaf].Dotted}
}

// checkRowGroups checks the footer's row groups and sets f.RowGroups.
func (f *File) checkRowGroups(at fault.At) error {
	total := int64(0)
	f.RowGroups = make([]RowGroup, len(f.Metadata.RowGroups))
	for g := range f.Metadata.RowGroups {
		rg := &f.Metadata.RowGroups[g]
		gat := at
		gat.RowGroup = g + 1
		if rg.NumRows < 0 || rg.NumRows > math.MaxInt64-total {
			return faults.Corrupt(gat, "a row group of %d rows", rg.NumRows)
		}
		if rg.NumRows > math.MaxUint32 { // rows are numbered with 32 bits
			return faults.Unsupported(gat, "a row group of %d rows", rg.NumRows).WithHint("write the file with row groups of at most 2^32-1 rows")
		}
		total += rg.NumRows
		if len(rg.Columns) != len(f.Leaves) {
			return faults.Wanted(faults.Corrupt(gat, "column chunks of the row group"), fmt.Sprintf("%d, one for each column", len(f.Leaves)), len(rg.Columns))
		}
		f.RowGroups[g].Rows = rg.NumRows
		for c := range rg.Columns {
			if err := f.checkChunk(g, c); err != nil {
				return err
			}
			trim(&rg.Columns[c].MetaData)
			n := rg.Columns[c].MetaData.TotalCompressedSize
			if n > math.MaxInt64-f.RowGroups[g].CompressedBytes {
				return faults.Corrupt(gat, "the row groups take more bytes than a file can have")
			}
			f.RowGroups[g].CompressedBytes += n
		}
	}
	if n := f.Metadata.NumRows; n != total && n != 0 { // some writers leave it 0
		return faults.Wanted(faults.Corrupt(at, "rows of the file"), fmt.Sprintf("%d, as the row groups have", total), f.Metadata.NumRows)
	}
	return nil
}

// trim drops metadata that is not used after the checks, because a log may have
// many files and all footers stay in memory.
func trim(md *meta.ColumnMetaData) {
	md.PathInSchema = nil // the leaf has it too
	md.Statistics.Min, md.Statistics.Max = thrift.Null[[]byte]{}, thrift.Null[[]byte]{}
}

// chunk returns the metadata of a chunk.
func (f *File) chunk(rowGroup, leaf int) *meta.ColumnChunk {
	return &f.Metadata.RowGroups[rowGroup].Columns[leaf]
}

func (f *File) checkChunk(g, c int) error {
	at, leaf := f.at(g, c), &f.Leaves[c]
	chunk := f.chunk(g, c)
	md := &chunk.MetaData
	switch {
	case chunk.CryptoMetadata.Valid || len(chunk.EncryptedColumnMetadata) > 0:
		return faults.Unsupported(at, "the column is encrypted").
			WithHint("write the file again without Parquet encryption")
	case chunk.FilePath != "":
		return faults.Unsupported(at, "the column's data is in another file").
			WithHint("write the columns into one file")
	case !slices.Equal(md.PathInSchema, leaf.Path):
		return faults.Corrupt(at, "the column chunk belongs to another column")
	case md.Type != leaf.Type:
		return faults.Wanted(faults.Corrupt(at, "type of the column chunk"), fmt.Sprintf("%v, as in the schema", leaf.Type), md.Type)
	case md.Codec < format.Uncompressed || md.Codec > format.Lz4Raw:
		return faults.Unsupported(at, "compression codec %d", int32(md.Codec)).
			WithHint("write the file again with snappy, zstd, gzip, brotli or lz4")
	case md.NumValues < 0 || md.TotalCompressedSize < 0 || md.TotalUncompressedSize < 0:
		return faults.Corrupt(at, "negative counts or sizes")
	}
	rows := f.Metadata.RowGroups[g].NumRows
	if md.NumValues < rows || leaf.MaxRep == 0 && md.NumValues != rows {
		return faults.Corrupt(at, "%d values in %d rows", md.NumValues, rows)
	}
	if rows == 0 && md.NumValues > 0 {
		return faults.Corrupt(at, "%d values in a row group without rows", md.NumValues)
	}
	if md.NumValues == 0 {
		return nil // nothing will be read
	}
	if md.NumValues/(MaxPageValues/8) > md.TotalCompressedSize { // a page takes at least 8 bytes
		return faults.Corrupt(at, "%d values in %d bytes", md.NumValues, md.TotalCompressedSize)
	}
	start := chunkStart(md)
	if start < int64(len(magic)) || md.TotalCompressedSize == 0 ||
		start > f.footerPos || md.TotalCompressedSize > f.footerPos-start {
		return faults.Corrupt(at, "the column chunk, %d bytes at %d, lies outside the file's data",
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
	return f.chunk(rowGroup, leaf).MetaData.Codec
}
