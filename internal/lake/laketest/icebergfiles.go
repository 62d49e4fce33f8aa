package laketest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// snapshot writes the list of manifests and the metadata.
func (d *Iceberg) snapshot() {
	fields := []any{"manifest_path", "string", 500, "manifest_length", "long", 501, "partition_spec_id", "int", 502}
	if d.Format > 1 {
		fields = append(fields, "content", "int", 517, "sequence_number", "long", 515, "min_sequence_number", "long", 516)
	}
	summary := record("r508", "contains_null", "boolean", 509, "contains_nan", optional("boolean"), 518, "lower_bound", optional("bytes"), 510, "upper_bound", optional("bytes"), 511)
	fields = append(fields, "added_snapshot_id", optional("long"), 503, "added_files_count", optional("int"), 504, "existing_files_count", optional("int"), 505,
		"deleted_files_count", optional("int"), 506, "partitions", optional(map[string]any{"type": "array", "items": summary, "element-id": 508}), 507, "key_metadata", optional("bytes"), 519)
	schema := record("manifest_file", fields...)
	d.edit("list schema", schema)
	var records []map[string]any
	for _, m := range d.manifests {
		r := map[string]any{"manifest_path": d.path(m.name), "manifest_length": m.len, "partition_spec_id": m.spec, "content": map[bool]int{true: 1}[m.deletes],
			"sequence_number": m.seq, "min_sequence_number": 0, "added_snapshot_id": d.Snapshot(), "partitions": d.summaries(m)}
		count := func(is func(*entry) bool) (n int) {
			for _, e := range m.entries {
				n += map[bool]int{true: 1}[is(e)]
			}
			return n
		}
		r["added_files_count"] = count(func(e *entry) bool { return e.now })
		r["existing_files_count"], r["deleted_files_count"] = count(func(e *entry) bool { return !e.now && !e.old }), count(func(e *entry) bool { return e.old })
		d.edit("list", r)
		records = append(records, r)
	}
	list := fmt.Sprintf("metadata/snap-%d.avro", d.version)
	d.Put(list, string(Avro(d.t, schema, map[string]string{"format-version": fmt.Sprint(d.Format)}, records...)))
	at := 1795946400000 + int64(d.version)*60000 // 2026-11-29T10:00:00Z, and minutes
	d.snapshots = append(d.snapshots, map[string]any{"snapshot-id": d.Snapshot(), "manifest-list": d.path(list), "timestamp-ms": at, "sequence-number": d.version,
		"schema-id": len(d.schemas) - 1, "summary": map[string]string{"operation": "overwrite", "total-data-files": strconv.Itoa(len(d.files))}})
	d.log = append(d.log, map[string]any{"snapshot-id": d.Snapshot(), "timestamp-ms": at})
	d.metadata()
}

// metadata writes a metadata file and the hint.
func (d *Iceberg) metadata() {
	d.remember()
	m := map[string]any{"format-version": d.Format, "location": d.Location, "current-schema-id": len(d.schemas) - 1, "schemas": d.schemas, "partition-specs": d.specs,
		"default-spec-id": len(d.specs) - 1, "current-snapshot-id": int64(-1), "snapshots": slices.Clone(d.snapshots), "snapshot-log": slices.Clone(d.log),
		"properties": maps.Clone(d.Properties), "refs": map[string]any{}, "last-sequence-number": d.version}
	if d.version > 0 {
		m["current-snapshot-id"] = d.Snapshot()
		m["refs"] = map[string]any{"main": map[string]any{"snapshot-id": d.Snapshot(), "type": "branch"}}
	}
	d.edit("metadata", m)
	text, err := json.Marshal(m)
	if err != nil {
		d.t.Fatal(err)
	}
	name := fmt.Sprintf("metadata/v%d.metadata.json", d.version)
	if d.Gzip {
		name = strings.Replace(name, ".meta", ".gz.meta", 1)
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(text); err != nil || w.Close() != nil {
			d.t.Fatal(err)
		}
		text = b.Bytes()
	}
	d.Put(name, string(text))
	d.Put("metadata/version-hint.text", fmt.Sprint(d.version))
}

// manifest writes a manifest.
func (d *Iceberg) manifest(deletes bool, spec int, entries []*entry) *manifest {
	schema := d.entrySchema(spec)
	d.edit("entry schema", schema)
	var records []map[string]any
	for _, e := range entries {
		r := map[string]any{"status": 0, "snapshot_id": e.by, "sequence_number": e.seq, "file_sequence_number": e.seq, "data_file": maps.Clone(e.file)}
		if e.now {
			r["status"], r["sequence_number"], r["file_sequence_number"] = 1, nil, nil
		} else if e.old {
			r["status"] = 2
		}
		d.edit("entry", r)
		records = append(records, r)
	}
	b := Avro(d.t, schema, map[string]string{"format-version": fmt.Sprint(d.Format), "partition-spec-id": fmt.Sprint(spec)}, records...)
	m := &manifest{deletes: deletes, spec: spec, seq: int64(d.version), len: int64(len(b)), entries: entries}
	m.name = fmt.Sprintf("metadata/m%d-%08x.avro", d.version, crc32.ChecksumIEEE(b))
	d.Put(m.name, string(b))
	return m
}

func (d *Iceberg) entrySchema(spec int) map[string]any {
	var of []any
	for _, f := range d.by(spec) {
		of = append(of, f.Name, optional(avroType(d.result(f))), f.ID)
	}
	fields := []any{"status", "int", 0, "snapshot_id", optional("long"), 1}
	file := []any{"file_path", "string", 100, "file_format", "string", 101, "partition", record("r102", of...), 102, "record_count", "long", 103, "file_size_in_bytes", "long", 104}
	if d.Format > 1 {
		fields = append(fields, "sequence_number", optional("long"), 3, "file_sequence_number", optional("long"), 4)
		file = append(file, "content", "int", 134)
	} else {
		file = append(file, "block_size_in_bytes", "long", 105)
	}
	file = append(file, "null_value_counts", pairs(121, 122, "long"), 110, "lower_bounds", pairs(126, 127, "bytes"), 125, "upper_bounds", pairs(129, 130, "bytes"), 128,
		"key_metadata", optional("bytes"), 131, "split_offsets", optional(map[string]any{"type": "array", "items": "long", "element-id": 133}), 132,
		"equality_ids", optional(map[string]any{"type": "array", "items": "int", "element-id": 136}), 135, "referenced_data_file", optional("string"), 143,
		"content_offset", optional("long"), 144, "content_size_in_bytes", optional("long"), 145)
	return record("manifest_entry", append(fields, "data_file", record("r2", file...), 2)...)
}

// result returns the type of a field's values.
func (d *Iceberg) result(f By) string {
	switch kind, _, _ := strings.Cut(f.Transform, "["); kind {
	case "identity", "truncate":
		for _, s := range slices.Backward(d.schemas) {
			for _, c := range s.(map[string]any)["fields"].([]Column) {
				if c.ID == f.Source {
					return c.Type.(string)
				}
			}
		}
	case "day":
		return "date"
	}
	return "int"
}

// avroType returns the type of partition values.
func avroType(name string) any {
	var p, s, n int
	if _, err := fmt.Sscanf(name, "decimal(%d, %d)", &p, &s); err == nil {
		for n = 1; math.Floor(float64(8*n-1)*math.Log10(2)) < float64(p); {
			n++
		}
		return map[string]any{"type": "fixed", "name": "d" + strconv.Itoa(p), "size": n, "logicalType": "decimal", "precision": p, "scale": s}
	}
	if _, err := fmt.Sscanf(name, "fixed[%d]", &n); err == nil {
		return map[string]any{"type": "fixed", "name": "f", "size": n}
	}
	switch name {
	case "date":
		return map[string]any{"type": "int", "logicalType": "date"}
	case "time", "timestamp", "timestamptz", "timestamp_ns":
		return map[string]any{"type": "long", "logicalType": name}
	case "uuid":
		return map[string]any{"type": "fixed", "name": "u", "size": 16}
	case "binary":
		return "bytes"
	}
	return name
}

// summaries returns what a list says of the partitions of a manifest.
func (d *Iceberg) summaries(m *manifest) []any {
	all := []any{}
	for _, f := range d.by(m.spec) {
		s, typ := map[string]any{"contains_null": false}, d.result(f)
		var least, most any
		for _, e := range m.entries {
			v := e.file["partition"].(map[string]any)[f.Name]
			switch {
			case e.old:
			case v == nil:
				s["contains_null"] = true
			case least == nil:
				least, most = v, v
			case compareValues(v, least) < 0:
				least = v
			case compareValues(v, most) > 0:
				most = v
			}
		}
		if lo := SingleValue(typ, least); lo != nil {
			s["lower_bound"], s["upper_bound"] = lo, SingleValue(typ, most)
		}
		all = append(all, s)
	}
	return all
}

func compareValues(a, b any) int {
	switch a := a.(type) {
	case int:
		return cmp.Compare(a, b.(int))
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	case string:
		return cmp.Compare(a, b.(string))
	}
	return 0
}

// SingleValue returns a value as bounds have it, nil if it has none here.
func SingleValue(typ string, v any) []byte {
	n := int64(0)
	switch v := v.(type) {
	case string:
		return []byte(v)
	case float64:
		if typ == "float" {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v)))
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case int:
		n = int64(v)
	case int64:
		n = v
	default:
		return nil
	}
	if typ == "int" || typ == "date" {
		return binary.LittleEndian.AppendUint32(nil, uint32(n))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(n))
}
