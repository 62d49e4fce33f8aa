package parquet

import (
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// A constant is a column that the file does not store: all of its rows have one value, known
// from elsewhere. Its chunks are pages in memory, at offsets after the end of the file, so
// that readers treat it like any other column.

// Constant is a column with one value in all rows.
type Constant struct {
	Element meta.Element // of a column that may be NULL, without children
	Plain   []byte       // the value in PLAIN encoding; nil: NULL
}

// constantRows is the maximum number of rows in a page of a constant.
const constantRows = 64 << 10

// storedSchema is the schema of a file without its constants.
type storedSchema struct {
	elements thrift.Slice[meta.Element]
	orders   thrift.Slice[format.ColumnOrder]
	entries  thrift.Slice[meta.KeyValue]
	meta.Schema
}

// stored returns the schema without constants.
func (f *File) stored() *storedSchema {
	if f.bare != nil {
		return f.bare
	}
	return &storedSchema{f.Metadata.Schema, f.Metadata.ColumnOrders, f.Metadata.KeyValueMetadata, f.Schema}
}

// Constant reports whether the file does not store a leaf.
func (f *File) Constant(leaf int) bool {
	return f.bare != nil && leaf >= len(f.bare.Leaves) || leaf < len(f.absent) && f.absent[leaf]
}

// StoredColumns returns the number of top-level columns that the file stores. Those
// that follow are constants.
func (f *File) StoredColumns() int { return len(f.stored().Root.Children) }

// AddConstants adds columns after those of the file. It must be called once, after
// Share, before anything else. If like is a file whose schema f shares and which has
// the same constants with any values, f shares its schema with them.
func (f *File) AddConstants(constants []Constant, like *File) error {
	if len(constants) == 0 {
		return nil
	}
	at := fault.At{File: f.Name}
	bare := f.stored()
	if like.hasConstants(bare, constants) {
		f.Metadata.Schema, f.Metadata.ColumnOrders = like.Metadata.Schema, like.Metadata.ColumnOrders
		f.Schema, bare = like.Schema, like.bare
	} else {
		if err := f.charge(at, meta.ElementBytes*int64(len(bare.elements)+len(constants))); err != nil {
			return err
		}
		f.Metadata.Schema = slices.Clone(bare.elements)
		f.Metadata.Schema[0].NumChildren = thrift.New(int32(len(bare.Root.Children) + len(constants)))
		for _, c := range constants {
			f.Metadata.Schema = append(f.Metadata.Schema, c.Element)
		}
		if len(bare.orders) == len(bare.Leaves) {
			f.Metadata.ColumnOrders = slices.Clone(bare.orders)
			for range constants {
				f.Metadata.ColumnOrders = append(f.Metadata.ColumnOrders, format.ColumnOrder{Value: new(format.TypeDefinedOrder)})
			}
		}
		tree, err := f.Metadata.Tree(at)
		if err != nil {
			return err
		}
		f.Schema = tree
	}
	f.bare = bare
	return f.addConstantChunks(at, constants)
}

// hasConstants reports whether the file has the stored schema and the constants.
func (f *File) hasConstants(bare *storedSchema, constants []Constant) bool {
	if f == nil || f.bare == nil || f.bare.Root != bare.Root || len(f.Leaves) != len(bare.Leaves)+len(constants) {
		return false
	}
	added := f.Metadata.Schema[len(bare.elements):]
	for i := range constants {
		if !reflect.DeepEqual(added[i], constants[i].Element) {
			return false
		}
	}
	return true
}

// addConstantChunks adds the chunks of the constants. Row groups of as many rows share
// theirs.
func (f *File) addConstantChunks(at fault.At, constants []Constant) error {
	made := map[int64][]meta.ColumnChunk{}
	var buf thriftBuffer
	for g := range f.Metadata.RowGroups {
		rg := &f.Metadata.RowGroups[g]
		chunks := made[rg.NumRows]
		for i := len(chunks); i < len(constants); i++ {
			c, err := f.constantChunk(&buf, &f.Leaves[len(f.bare.Leaves)+i], constants[i].Plain, rg.NumRows)
			if err != nil {
				return err
			}
			chunks = append(chunks, c)
		}
		made[rg.NumRows] = chunks
		rg.Columns = slices.Concat(rg.Columns, chunks)
	}
	f.extra = slices.Clone(f.extra)
	return f.charge(at, meta.ChunkBytes*int64(len(constants)*len(f.RowGroups))+int64(len(f.extra)))
}

// constantChunk adds the pages of a chunk to f.extra, and returns its metadata.
func (f *File) constantChunk(buf *thriftBuffer, l *meta.Leaf, plain []byte, rows int64) (c meta.ColumnChunk, err error) {
	put := func(h *meta.PageHeader, body []byte) (int64, error) {
		h.UncompressedPageSize, h.CompressedPageSize = int32(len(body)), int32(len(body))
		h.CRC = thrift.New(int32(crc32.ChecksumIEEE(body)))
		head, err := buf.marshal(h)
		f.extra = append(append(f.extra, head...), body...)
		return int64(len(head) + len(body)), err
	}
	start := f.Size + int64(len(f.extra))
	e := EncodedChunk{leaf: l.Index, rows: rows, entries: rows}
	encoding, level, nulls := format.RLEDictionary, uint32(1), int64(0)
	var b meta.Bounds
	order := meta.OrderOf(l)
	switch {
	case plain == nil:
		encoding, level, nulls = format.Plain, 0, rows
	case l.Type == format.Boolean: // has no dictionary
		encoding = format.RLE
	case rows > 0:
		h := meta.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: 1, Encoding: format.Plain})}
		if e.dict.n, err = put(&h, plain); err != nil {
			return c, err
		}
		countKind(&e.kinds, format.DictionaryPage, format.Plain)
	}
	if plain != nil {
		if b, err = order.BoundsOf(plain, 1); err != nil {
			return c, err
		}
	}
	e.stats = order.Statistics(b, nulls)
	for left := rows; left > 0; left -= constantRows {
		n := int(min(left, constantRows))
		var body []byte
		if l.MaxRep > 0 {
			body = appendCountedRun(body, 0, n)
		}
		body = appendCountedRun(body, level, n)
		switch {
		case encoding == format.RLE:
			body = appendCountedRun(body, uint32(plain[0]), n)
		case level == 1:
			const width = 1
			body = enc.AppendRun(append(body, width), 0, n, width)
		}
		h := meta.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(meta.DataPageHeader{
			NumValues: int32(n), Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		})}
		size, err := put(&h, body)
		if err != nil {
			return c, err
		}
		e.pages.n += size
		countKind(&e.kinds, format.DataPage, encoding)
	}
	e.plainSize = e.dict.n + e.pages.n
	c = e.place(start, l, format.Uncompressed)
	trim(&c.MetaData)
	return c, nil
}

// appendCountedRun appends n times a bit, after the number of bytes that this takes.
func appendCountedRun(dst []byte, bit uint32, n int) []byte {
	at := len(dst)
	dst = enc.AppendRun(append(dst, 0, 0, 0, 0), bit, n, 1)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}
