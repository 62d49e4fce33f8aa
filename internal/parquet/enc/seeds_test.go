package enc

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// seedPage is a page of a real file, split into its parts.
type seedPage struct {
	seedLeaf
	stored []byte // without V2's levels
	codec  format.CompressionCodec
	size   int // decompressed size of stored
	rep    []byte
	def    []byte
	n      int // entries
	enc    format.Encoding
	values []byte
	count  int // values other than NULL
}

// seedLeaf is a column of a real file.
type seedLeaf struct {
	kind           kind
	maxRep, maxDef int
}

const maxSeed = 8 << 10 // bytes; larger pages have too many mutations

// seedPages calls visit for some pages of the test files, and of the corpora if
// present. Files are parsed by parquet-go.
func seedPages(f *testing.F, visit func(p *seedPage)) {
	paths, err := filepath.Glob("../testdata/*.parquet")
	if err != nil || len(paths) < 10 {
		f.Fatalf("%d files in testdata, %v", len(paths), err)
	}
	if shared := os.Getenv("BLOOMJOIN_SHARED"); shared != "" {
		more, err := filepath.Glob(filepath.Join(shared, "corpora/parquet-testing/data/*.parquet"))
		if err != nil || len(more) < 50 {
			f.Fatalf("%d files in the corpora, %v", len(more), err)
		}
		paths = append(paths, more...)
	}
	pages := 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		_ = guarded(func() error { // encrypted or corrupt files end early
			pages += seedFile(b, visit)
			return nil
		})
	}
	if pages < 50 {
		f.Fatalf("only %d pages for seeds", pages)
	}
}

// seedFile visits the first three pages of each column, and returns their number.
func seedFile(b []byte, visit func(p *seedPage)) (pages int) {
	end := len(b) - 8
	var meta format.FileMetaData
	footer := b[end-int(binary.LittleEndian.Uint32(b[end:])) : end]
	if string(b[end+4:]) != "PAR1" || thrift.Unmarshal(new(thrift.CompactProtocol), footer, &meta) != nil || len(meta.RowGroups) == 0 {
		return 0
	}
	for i, leaf := range seedLeaves(meta.Schema) {
		md := &meta.RowGroups[0].Columns[i].MetaData
		at := md.DataPageOffset
		if d := md.DictionaryPageOffset; d > 0 && d < at {
			at = d
		}
		chunk := b[at : at+md.TotalCompressedSize]
		for k := 0; k < 3 && len(chunk) > 0; k++ {
			r := bytes.NewReader(chunk)
			var h format.PageHeader
			if thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r)).Decode(&h) != nil {
				break
			}
			body := chunk[len(chunk)-r.Len():]
			chunk = body[h.CompressedPageSize:]
			p := &seedPage{seedLeaf: leaf, codec: md.Codec, size: int(h.UncompressedPageSize), stored: body[:h.CompressedPageSize]}
			if p.size > MaxPageSize || !p.take(&h) {
				break
			}
			if pages++; len(p.values) <= maxSeed {
				visit(p)
			}
		}
	}
	return pages
}

// seedLeaves returns the columns of a schema.
func seedLeaves(schema []format.SchemaElement) (leaves []seedLeaf) {
	at := 0
	var walk func(rep, def int)
	walk = func(rep, def int) {
		e := &schema[at]
		if at > 0 && e.RepetitionType.V != format.Required {
			def++
		}
		if at > 0 && e.RepetitionType.V == format.Repeated {
			rep++
		}
		at++
		if e.NumChildren.V > 0 {
			for range e.NumChildren.V {
				walk(rep, def)
			}
			return
		}
		widths := map[format.Type]int{
			format.Int32: 4, format.Int64: 8, format.Int96: 12, format.Float: 4, format.Double: 8,
			format.FixedLenByteArray: int(e.TypeLength.V),
		}
		leaves = append(leaves, seedLeaf{kind{e.Type.V, widths[e.Type.V]}, rep, def})
	}
	walk(0, 0)
	return leaves
}

// take splits the stored page into its parts. It returns false if it does not
// decompress.
func (p *seedPage) take(h *format.PageHeader) bool {
	if h.DataPageHeaderV2.Valid {
		v2 := &h.DataPageHeaderV2.V
		rep, def := int(v2.RepetitionLevelsByteLength), int(v2.DefinitionLevelsByteLength)
		p.rep, p.def, p.stored = p.stored[:rep], p.stored[rep:rep+def], p.stored[rep+def:]
		p.size -= rep + def
		p.n, p.enc, p.count = int(v2.NumValues), v2.Encoding, int(v2.NumValues-v2.NumNulls)
		if v2.IsCompressed.Valid && !v2.IsCompressed.V {
			p.codec = format.Uncompressed
		}
	}
	var err error
	if p.values, err = new(Decompressor).Decompress(p.codec, nil, p.stored, p.size); err != nil {
		return false
	}
	switch {
	case h.DictionaryPageHeader.Valid:
		p.n, p.enc = int(h.DictionaryPageHeader.V.NumValues), format.Plain
		p.count = p.n
	case h.DataPageHeader.Valid:
		p.n, p.enc = int(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding
		p.count = p.n
		if p.maxRep > 0 {
			p.rep, p.values = cutLevels(p.values)
		}
		if p.maxDef > 0 {
			p.def, p.values = cutLevels(p.values)
			def := make([]uint8, p.n)
			if err := DecodeHybrid(def, p.def, LevelWidth(p.maxDef), uint32(p.maxDef)); err != nil {
				return false
			}
			p.count = CountLevels(def, uint8(p.maxDef))
		}
	}
	return true
}

func cutLevels(b []byte) (levels, rest []byte) {
	n := binary.LittleEndian.Uint32(b)
	return b[4 : 4+n], b[4+n:]
}
