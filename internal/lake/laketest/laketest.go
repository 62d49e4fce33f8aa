// Package laketest writes Delta and Iceberg tables for tests: files, which rows of them are deleted,
// and the log or metadata. It shares no code with the reader. It is for tests only.
package laketest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
)

// Table is a Delta table that is being written.
type Table struct {
	Dir     string
	t       testing.TB
	version int
	schema  *arrow.Schema
	by      []string
	mapped  map[string]string // names in files
	vectors []byte            // the file of vectors of the next commit
}

// Type returns Delta's name of a type, a string or an object in JSON; ok is false if it has none.
func Type(dt arrow.DataType) (name any, ok bool) {
	switch t := dt.(type) {
	case *arrow.TimestampType:
		if t.Unit != arrow.Microsecond || t.TimeZone != "" && t.TimeZone != "UTC" {
			return nil, false
		}
		return map[bool]string{true: "timestamp", false: "timestamp_ntz"}[t.TimeZone != ""], true
	case *arrow.Decimal128Type:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale), t.Scale >= 0
	case *arrow.StructType:
		fields, ok := fieldsOf(t.Fields(), nil)
		return map[string]any{"type": "struct", "fields": fields}, ok
	case *arrow.ListType:
		of, ok := Type(t.Elem())
		return map[string]any{"type": "array", "elementType": of, "containsNull": true}, ok
	}
	s, ok := map[arrow.Type]string{
		arrow.INT8: "byte", arrow.INT16: "short", arrow.INT32: "integer", arrow.INT64: "long", arrow.FLOAT32: "float", arrow.FLOAT64: "double",
		arrow.STRING: "string", arrow.BINARY: "binary", arrow.BOOL: "boolean", arrow.DATE32: "date",
	}[dt.ID()]
	return s, ok
}

func fieldsOf(fields []arrow.Field, mapped map[string]string) (out []any, ok bool) {
	out, ok = []any{}, true
	for i, f := range fields {
		t, has := Type(f.Type)
		ok = ok && has
		md := map[string]any{}
		if mapped[f.Name] != "" {
			md = map[string]any{"delta.columnMapping.physicalName": mapped[f.Name], "delta.columnMapping.id": i + 1}
		}
		out = append(out, map[string]any{"name": f.Name, "type": t, "nullable": true, "metadata": md})
	}
	return out, ok
}

// Drawn is a table of either format.
type Drawn interface {
	Name() string
	Add(name, content string, deleted []int64, values ...any) any
	Commit(actions ...any)
}

// Draw returns a table without files that is not divided, whose format depends on a seed, and on what
// formats have the types of its columns.
func Draw(t testing.TB, schema *arrow.Schema, seed uint64) Drawn {
	t.Helper()
	if _, _, ok := icebergColumns(schema.Fields(), new(int)); ok && seed%2 == 0 {
		return NewIceberg(t, 2+int(seed/2%2), schema)
	}
	return New(t, schema, nil)
}

// New returns a table without files in a new directory, divided by columns. If mapped is not nil, it
// has the names that columns have in files.
func New(t testing.TB, schema *arrow.Schema, mapped map[string]string, by ...string) *Table {
	t.Helper()
	d := &Table{Dir: t.TempDir(), t: t, schema: schema, by: by, mapped: mapped}
	d.Commit(d.Metadata()...)
	return d
}

// Metadata returns the actions that say what the table is.
func (d *Table) Metadata() []any {
	d.t.Helper()
	fields, ok := fieldsOf(d.schema.Fields(), d.mapped)
	if !ok {
		d.t.Fatalf("no Delta table has the schema %s", d.schema)
	}
	text, err := json.Marshal(map[string]any{"type": "struct", "fields": fields})
	if err != nil {
		d.t.Fatal(err)
	}
	features, configuration := []string{"deletionVectors", "timestampNtz"}, map[string]string{}
	if d.mapped != nil {
		features, configuration["delta.columnMapping.mode"] = append(features, "columnMapping"), "name"
	}
	return []any{
		map[string]any{"protocol": map[string]any{"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}},
		map[string]any{"metaData": map[string]any{
			"id": "laketest", "format": map[string]any{"provider": "parquet", "options": map[string]string{}}, "schemaString": string(text),
			"partitionColumns": append([]string{}, d.by...), "configuration": configuration, "createdTime": 0,
		}},
	}
}

// Name returns the name of the newest version.
func (d *Table) Name() string { return "delta:" + d.Dir }

// Commit adds a version.
func (d *Table) Commit(actions ...any) {
	d.t.Helper()
	var b strings.Builder
	for _, a := range actions {
		line, err := json.Marshal(a)
		if err != nil {
			d.t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	d.Put(fmt.Sprintf("_delta_log/%020d.json", d.version), b.String())
	if len(d.vectors) > 0 {
		d.Put(d.vectorFile(), string(d.vectors))
	}
	d.version, d.vectors = d.version+1, nil
}

func (d *Table) vectorFile() string { return fmt.Sprintf("vectors %d.bin", d.version) }

// Put writes a file of the table.
func (d *Table) Put(name, content string) {
	d.t.Helper()
	name = filepath.Join(d.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// Add writes a file and returns the action that adds it. values are those of the columns that the
// table is divided by, nil for NULL.
func (d *Table) Add(name, content string, deleted []int64, values ...any) any {
	d.t.Helper()
	d.Put(name, content)
	return d.Again(name, len(content), deleted, values...)
}

// Again returns the action that adds a file that is there.
func (d *Table) Again(name string, size int, deleted []int64, values ...any) any {
	of := map[string]any{}
	for i, c := range d.by {
		if d.mapped[c] != "" {
			c = d.mapped[c]
		}
		of[c] = values[i]
	}
	add := map[string]any{"path": strings.ReplaceAll(strings.ReplaceAll(name, "%", "%25"), " ", "%20"), "size": size, "partitionValues": of, "modificationTime": 0, "dataChange": true}
	if len(deleted) > 0 {
		add["deletionVector"] = d.vector(deleted)
	}
	return map[string]any{"add": add}
}

// Remove returns the action that removes a file, which an action has added.
func Remove(added any) any {
	if f, ok := added.(*IcebergFile); ok {
		return removed{f}
	}
	add := added.(map[string]any)["add"].(map[string]any)
	remove := map[string]any{"path": add["path"], "dataChange": true}
	if v, ok := add["deletionVector"]; ok {
		remove["deletionVector"] = v
	}
	return map[string]any{"remove": remove}
}

// vector stores rows in the file of vectors, or inline.
func (d *Table) vector(rows []int64) any {
	b := binary.LittleEndian.AppendUint32(nil, 1681511377)
	b = append(b, Roaring(rows)...)
	of := map[string]any{"sizeInBytes": len(b), "cardinality": len(rows)}
	if len(rows)%2 == 0 {
		of["storageType"], of["pathOrInlineDv"] = "i", z85(b)
		return of
	}
	if d.vectors == nil {
		d.vectors = []byte{1}
	}
	of["storageType"], of["pathOrInlineDv"], of["offset"] = "p", "file://"+strings.ReplaceAll(d.Dir+"/"+d.vectorFile(), " ", "%20"), len(d.vectors)
	d.vectors = binary.BigEndian.AppendUint32(d.vectors, uint32(len(b)))
	d.vectors = append(d.vectors, b...)
	d.vectors = binary.BigEndian.AppendUint32(d.vectors, crc32.ChecksumIEEE(b))
	return of
}

// Roaring encodes ascending values as a bitmap in the portable format: containers with many values
// as words, others with few ranges as runs.
func Roaring(values []int64) []byte {
	chunks := map[int64][]uint16{}
	for _, v := range values {
		chunks[v>>16] = append(chunks[v>>16], uint16(v))
	}
	highs := map[int64][]int64{}
	for k := range chunks {
		highs[k>>16] = append(highs[k>>16], k)
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(highs)))
	for _, high := range slices.Sorted(maps.Keys(highs)) {
		slices.Sort(highs[high])
		b = appendBitmap(binary.LittleEndian.AppendUint32(b, uint32(high)), highs[high], chunks)
	}
	return b
}

func appendBitmap(b []byte, keys []int64, chunks map[int64][]uint16) []byte {
	var flags, heads, offsets, bodies []byte
	flags = make([]byte, (len(keys)+7)/8)
	anyRuns := false
	for i, k := range keys {
		values := chunks[k]
		heads = binary.LittleEndian.AppendUint16(heads, uint16(k))
		heads = binary.LittleEndian.AppendUint16(heads, uint16(len(values)-1))
		offsets = binary.LittleEndian.AppendUint32(offsets, 0)
		if ranges := rangesOf(values); 2*len(ranges) < len(values) {
			anyRuns = true
			flags[i/8] |= 1 << (i % 8)
			bodies = binary.LittleEndian.AppendUint16(bodies, uint16(len(ranges)))
			for _, r := range ranges {
				bodies = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(bodies, r[0]), r[1])
			}
			continue
		}
		if len(values) > 4096 {
			words := make([]byte, 8192)
			for _, v := range values {
				words[v/8] |= 1 << (v % 8)
			}
			bodies = append(bodies, words...)
			continue
		}
		for _, v := range values {
			bodies = binary.LittleEndian.AppendUint16(bodies, v)
		}
	}
	if anyRuns {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(keys)-1)<<16|12347), flags...)
	} else {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, 12346), uint32(len(keys)))
	}
	b = append(b, heads...)
	if !anyRuns || len(keys) >= 4 {
		b = append(b, offsets...)
	}
	return append(b, bodies...)
}

// rangesOf returns ranges of values: the first, and the number of those after it.
func rangesOf(values []uint16) (ranges [][2]uint16) {
	for i, v := range values {
		if n := len(ranges); i > 0 && values[i-1]+1 == v {
			ranges[n-1][1]++
		} else {
			ranges = append(ranges, [2]uint16{v, 0})
		}
	}
	return ranges
}

func z85(b []byte) string {
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
	var out strings.Builder
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	for ; len(b) > 0; b = b[4:] {
		var digits [5]byte
		v := binary.BigEndian.Uint32(b)
		for i := 4; i >= 0; i-- {
			digits[i], v = alphabet[v%85], v/85
		}
		out.Write(digits[:])
	}
	return out.String()
}
