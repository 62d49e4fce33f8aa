package meta

import (
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The footer's structures, limited to the fields used here. Fields have the names of the
// format's definition, and most types do. A field is a Null if its zero value differs from its
// absence.

// Footer is what the end of a file says about the file.
type Footer struct {
	Version             int32                            `thrift:"1,required"`
	Schema              thrift.Slice[Element]            `thrift:"2,required"`
	NumRows             int64                            `thrift:"3,required"`
	RowGroups           thrift.Slice[RowGroup]           `thrift:"4,required"`
	KeyValueMetadata    thrift.Slice[KeyValue]           `thrift:"5,optional"`
	CreatedBy           string                           `thrift:"6,optional"`
	ColumnOrders        thrift.Slice[format.ColumnOrder] `thrift:"7,optional"`
	EncryptionAlgorithm thrift.Null[struct{}]            `thrift:"8,optional"`
}

// Element is a node of the schema, which is stored depth first.
type Element struct {
	Type           thrift.Null[format.Type]                `thrift:"1,optional"`
	TypeLength     thrift.Null[int32]                      `thrift:"2,optional"`
	RepetitionType thrift.Null[format.FieldRepetitionType] `thrift:"3,optional"`
	Name           string                                  `thrift:"4,required"`
	NumChildren    thrift.Null[int32]                      `thrift:"5,optional"`
	ConvertedType  thrift.Null[deprecated.ConvertedType]   `thrift:"6,optional"`
	Scale          thrift.Null[int32]                      `thrift:"7,optional"`
	Precision      thrift.Null[int32]                      `thrift:"8,optional"`
	FieldID        thrift.Null[int32]                      `thrift:"9,optional"`
	LogicalType    thrift.Null[format.LogicalType]         `thrift:"10,optional"`

	annotation annotation // LogicalType in its stored form
}

// KeyValue is an entry of the key-value metadata.
type KeyValue struct {
	Key   string `thrift:"1,required"`
	Value string `thrift:"2,optional,writezero"` // Java readers fail if it is absent
}

// RowGroup is the footer's metadata of a row group.
type RowGroup struct {
	Columns             thrift.Slice[ColumnChunk]          `thrift:"1,required"`
	TotalByteSize       int64                              `thrift:"2,required"`
	NumRows             int64                              `thrift:"3,required"`
	SortingColumns      thrift.Slice[format.SortingColumn] `thrift:"4,optional"`
	FileOffset          int64                              `thrift:"5,optional"`
	TotalCompressedSize int64                              `thrift:"6,optional"`
	Ordinal             thrift.Null[int16]                 `thrift:"7,optional"`
}

// ColumnChunk locates a column chunk and its indexes.
type ColumnChunk struct {
	FilePath                string                `thrift:"1,optional"`
	FileOffset              int64                 `thrift:"2"`
	MetaData                ColumnMetaData        `thrift:"3,optional"`
	OffsetIndexOffset       int64                 `thrift:"4,optional"`
	OffsetIndexLength       int32                 `thrift:"5,optional"`
	ColumnIndexOffset       int64                 `thrift:"6,optional"`
	ColumnIndexLength       int32                 `thrift:"7,optional"`
	CryptoMetadata          thrift.Null[struct{}] `thrift:"8,optional"`
	EncryptedColumnMetadata []byte                `thrift:"9,optional"`
}

// ColumnMetaData describes a column chunk.
type ColumnMetaData struct {
	Type                  format.Type                            `thrift:"1,required"`
	Encodings             thrift.Slice[format.Encoding]          `thrift:"2,required"`
	PathInSchema          thrift.Slice[string]                   `thrift:"3,required"`
	Codec                 format.CompressionCodec                `thrift:"4,required"`
	NumValues             int64                                  `thrift:"5,required"`
	TotalUncompressedSize int64                                  `thrift:"6,required"`
	TotalCompressedSize   int64                                  `thrift:"7,required"`
	DataPageOffset        int64                                  `thrift:"9,required"`
	DictionaryPageOffset  int64                                  `thrift:"11,optional"`
	Statistics            Statistics                             `thrift:"12,optional"`
	EncodingStats         thrift.Slice[format.PageEncodingStats] `thrift:"13,optional"`
	BloomFilterOffset     int64                                  `thrift:"14,optional"`
	BloomFilterLength     int32                                  `thrift:"15,optional"`
}

// Statistics are the statistics of a column chunk. Min and Max are the deprecated
// bounds, whose order is undefined for some types.
type Statistics struct {
	Max             thrift.Null[[]byte] `thrift:"1,optional"`
	Min             thrift.Null[[]byte] `thrift:"2,optional"`
	NullCount       thrift.Null[int64]  `thrift:"3,optional"`
	DistinctCount   thrift.Null[int64]  `thrift:"4,optional"`
	MaxValue        thrift.Null[[]byte] `thrift:"5,optional"`
	MinValue        thrift.Null[[]byte] `thrift:"6,optional"`
	IsMaxValueExact thrift.Null[bool]   `thrift:"7,optional"`
	IsMinValueExact thrift.Null[bool]   `thrift:"8,optional"`
}

// PageHeader is the header of a page.
type PageHeader struct {
	Type                 format.PageType                          `thrift:"1,required"`
	UncompressedPageSize int32                                    `thrift:"2,required"`
	CompressedPageSize   int32                                    `thrift:"3,required"`
	CRC                  thrift.Null[int32]                       `thrift:"4,optional"`
	DataPageHeader       thrift.Null[DataPageHeader]              `thrift:"5,optional"`
	DictionaryPageHeader thrift.Null[format.DictionaryPageHeader] `thrift:"7,optional"`
	DataPageHeaderV2     thrift.Null[DataPageHeaderV2]            `thrift:"8,optional"`
}

// DataPageHeader is the header of a V1 page without its statistics: they are not
// read, and the format package's type would write them even if empty.
type DataPageHeader struct {
	NumValues               int32           `thrift:"1,required"`
	Encoding                format.Encoding `thrift:"2,required"`
	DefinitionLevelEncoding format.Encoding `thrift:"3,required"`
	RepetitionLevelEncoding format.Encoding `thrift:"4,required"`
}

// DataPageHeaderV2 is the header of a V2 page without its statistics, like
// DataPageHeader.
type DataPageHeaderV2 struct {
	NumValues                  int32             `thrift:"1,required"`
	NumNulls                   int32             `thrift:"2,required"`
	NumRows                    int32             `thrift:"3,required"`
	Encoding                   format.Encoding   `thrift:"4,required"`
	DefinitionLevelsByteLength int32             `thrift:"5,required"`
	RepetitionLevelsByteLength int32             `thrift:"6,required"`
	IsCompressed               thrift.Null[bool] `thrift:"7,optional"`
}

// DecodeFooter decodes the footer at the start of b and returns its length. Only its form
// is checked.
func DecodeFooter(b []byte) (m *Footer, n int, err error) {
	m = new(Footer)
	if n, err = Decode(b, m); err != nil {
		return nil, 0, err
	}
	m.keepAnnotations(b)
	return m, n, nil
}

// DecodeRest is DecodeFooter without the fields in [Described], which the caller sets.
func DecodeRest(b []byte) (m *Footer, n int, err error) {
	var r struct {
		Version             int32                  `thrift:"1,required"`
		NumRows             int64                  `thrift:"3,required"`
		RowGroups           thrift.Slice[RowGroup] `thrift:"4,required"`
		CreatedBy           string                 `thrift:"6,optional"`
		EncryptionAlgorithm thrift.Null[struct{}]  `thrift:"8,optional"`
	}
	n, err = Decode(b, &r)
	return &Footer{Version: r.Version, NumRows: r.NumRows, RowGroups: r.RowGroups, CreatedBy: r.CreatedBy, EncryptionAlgorithm: r.EncryptionAlgorithm}, n, err
}

// Encode serialises the footer. Fields that its types do not have are lost.
func (m *Footer) Encode() ([]byte, error) {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), m)
	if err != nil {
		return nil, err
	}
	return m.withAnnotations(b)
}

// Some writers are known to store something other than what they declare.

// ShortChunks reports whether the writer excluded the dictionary page's header from
// a chunk's size (PARQUET-816: parquet-mr before 1.2.9).
func (m *Footer) ShortChunks() bool {
	v, ok := strings.CutPrefix(m.CreatedBy, "parquet-mr")
	v = strings.TrimPrefix(v, " version ")
	if !ok {
		return false
	}
	for _, old := range []string{"1.0.", "1.1.", "1.2.0", "1.2.1", "1.2.2", "1.2.3", "1.2.4", "1.2.5", "1.2.6", "1.2.7", "1.2.8"} {
		if strings.HasPrefix(v, old) {
			return true
		}
	}
	return v == ""
}

// LowBitsFirst reports whether levels in the BIT_PACKED encoding start with the
// lowest bit of each byte, as Impala writes and reads them.
func (m *Footer) LowBitsFirst() bool { return strings.HasPrefix(m.CreatedBy, "impala") }

// FalseFlags reports whether the writer compressed V2 pages and declared them
// uncompressed (PARQUET-1937: parquet-cpp before 2.0).
func (m *Footer) FalseFlags() bool {
	return strings.HasPrefix(m.CreatedBy, "parquet-cpp version 1.")
}

// FalseNulls reports whether the writer miscounts the nulls of V2 pages, giving the
// chunk's total or zero (Arrow C++ before 12).
func (m *Footer) FalseNulls() bool {
	version, ok := strings.CutPrefix(m.CreatedBy, "parquet-cpp-arrow version ")
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return ok && err == nil && n < 12
}

// FalseRows reports whether the writer miscounts the rows of V2 pages: hangxie/parquet-go gives
// none, fraugster/parquet-go counts a row with the page before or after its own.
func (m *Footer) FalseRows() bool {
	return m.CreatedBy == "parquet-go" || strings.HasPrefix(m.CreatedBy, "github.com/hangxie/")
}

// SharedDeltas reports whether the writer's DELTA_BYTE_ARRAY pages depend on the
// page before them (PARQUET-246: parquet-mr before 1.8).
func (m *Footer) SharedDeltas() bool {
	name, v := writerOf(m.CreatedBy)
	return name == "parquet-mr" && v.before(1, 8)
}

// PadsPages reports whether the writer may put bytes after a V1 page's values.
func (m *Footer) PadsPages() bool { return strings.HasPrefix(m.CreatedBy, "fastparquet") }
