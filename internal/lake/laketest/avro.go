package laketest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

// Avro returns an Avro file of one block. Its schema is that of JSON: values of records are
// map[string]any, of arrays []any, of unions with null nil or of the other type.
func Avro(t testing.TB, schema any, head map[string]string, records ...map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	head = maps.Clone(head)
	head["avro.schema"], head["avro.codec"] = string(text), "null"
	b := binary.AppendVarint([]byte("Obj\x01"), int64(len(head)))
	for _, k := range slices.Sorted(maps.Keys(head)) {
		b = appendAvro(appendAvro(b, "string", k), "string", head[k])
	}
	sync := "0123456789abcdef"
	b = append(append(b, 0), sync...)
	var block []byte
	for _, r := range records {
		block = appendAvro(block, schema, r)
	}
	if len(records) == 0 {
		return b
	}
	b = binary.AppendVarint(binary.AppendVarint(b, int64(len(records))), int64(len(block)))
	return append(append(b, block...), sync...)
}

// appendAvro appends a value of a type.
func appendAvro(b []byte, typ, v any) []byte {
	switch typ := typ.(type) {
	case []any:
		if v == nil {
			return append(b, 0)
		}
		return appendAvro(append(b, 2), typ[1], v)
	case map[string]any:
		switch typ["type"] {
		case "record":
			for _, f := range typ["fields"].([]any) {
				f := f.(map[string]any)
				b = appendAvro(b, f["type"], v.(map[string]any)[f["name"].(string)])
			}
			return b
		case "array":
			if list := v.([]any); len(list) > 0 {
				b = binary.AppendVarint(b, int64(len(list)))
				for _, item := range list {
					b = appendAvro(b, typ["items"], item)
				}
			}
			return append(b, 0)
		}
		return appendAvro(b, typ["type"], v)
	}
	switch v := v.(type) {
	case bool:
		return append(b, map[bool]byte{true: 1}[v])
	case int:
		return binary.AppendVarint(b, int64(v))
	case int64:
		return binary.AppendVarint(b, v)
	case float64:
		if typ == "float" {
			return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		}
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	case string:
		return append(binary.AppendVarint(b, int64(len(v))), v...)
	case []byte:
		if typ != "fixed" {
			b = binary.AppendVarint(b, int64(len(v)))
		}
		return append(b, v...)
	}
	panic(fmt.Sprintf("%T as %v in Avro", v, typ))
}

// record returns the schema of a record. fields are name, type and id in turns.
func record(name string, fields ...any) map[string]any {
	list := []any{}
	for f := range slices.Chunk(fields, 3) {
		list = append(list, map[string]any{"name": f[0], "type": f[1], "field-id": f[2]})
	}
	return map[string]any{"type": "record", "name": name, "fields": list}
}

// optional returns the type of values or null.
func optional(typ any) any { return []any{"null", typ} }

// pairs returns the type of a map with integers as keys.
func pairs(key, value int, of string) any {
	return optional(map[string]any{"type": "array", "logicalType": "map", "items": record(fmt.Sprintf("k%d_v%d", key, value), "key", "int", key, "value", of, value)})
}
