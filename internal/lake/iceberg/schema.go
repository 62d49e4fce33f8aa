package iceberg

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/lake"
)

type schema struct {
	ID     int     `json:"schema-id"`
	Fields []field `json:"fields"`
}

// field is a column of a table, or a field of a struct.
type field struct {
	ID      int32           `json:"id"`
	Name    string          `json:"name"`
	Type    json.RawMessage `json:"type"`
	Default json.RawMessage `json:"initial-default"`
}

// nested is a type with parts.
type nested struct {
	Type      string          `json:"type"`
	Fields    []field         `json:"fields"`
	ElementID int32           `json:"element-id"`
	Element   json.RawMessage `json:"element"`
	KeyID     int32           `json:"key-id"`
	Key       json.RawMessage `json:"key"`
	ValueID   int32           `json:"value-id"`
	Value     json.RawMessage `json:"value"`
}

// mapped is the name mapping of a column, for files without ids.
type mapped struct {
	ID     int32    `json:"field-id"`
	Names  []string `json:"names"`
	Fields []mapped `json:"fields"`
}

// deepest bounds the nesting of types.
const deepest = 64

// columns returns the columns of a schema. mapping is the property of the table.
func (s *schema) columns(mapping string) ([]lake.Column, error) {
	var all []mapped
	if mapping != "" {
		if err := json.Unmarshal([]byte(mapping), &all); err != nil {
			return nil, fmt.Errorf("the property schema.name-mapping.default: %w", err)
		}
	}
	c := columns{seen: map[int32]bool{}, names: map[int32][]string{}}
	c.name(all, deepest)
	return c.of(s.Fields, deepest)
}

// columns makes the columns of a table.
type columns struct {
	seen  map[int32]bool
	names map[int32][]string
}

// name notes the names of a mapping.
func (c *columns) name(all []mapped, depth int) {
	for _, m := range all {
		if c.names[m.ID] = m.Names; depth > 0 {
			c.name(m.Fields, depth-1)
		}
	}
}

func (c *columns) of(fields []field, depth int) (all []lake.Column, err error) {
	names := map[string]bool{}
	for _, f := range fields {
		col, err := c.column(f.ID, f.Type, depth-1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if names[f.Name] {
			return nil, fmt.Errorf("%s: two fields of that name", f.Name)
		}
		names[f.Name] = true
		col.Name, col.Default = f.Name, len(f.Default) > 0 && string(f.Default) != "null"
		all = append(all, col)
	}
	return all, nil
}

// column parses the type of a column.
func (c *columns) column(id int32, raw json.RawMessage, depth int) (col lake.Column, err error) {
	if id <= 0 || c.seen[id] {
		return col, fmt.Errorf("the id %d, which is not positive or that of another field", id)
	}
	c.seen[id] = true
	if depth == 0 {
		return col, fmt.Errorf("types within more than %d others", deepest)
	}
	col.ID, col.Names = id, c.names[id]
	var name string
	if err := json.Unmarshal(raw, &name); err == nil {
		col.Type, err = typeOf(name)
		return col, err
	}
	var t nested
	if json.Unmarshal(raw, &t) != nil {
		return col, fmt.Errorf("want the type as a name or an object, got %s", strconv.Quote(string(raw[:min(len(raw), 100)])))
	}
	var parts []field
	switch col.Type = t.Type; t.Type {
	case "struct":
		col.Children, err = c.of(t.Fields, depth)
		return col, err
	case "list":
		parts = []field{{ID: t.ElementID, Name: "element", Type: t.Element}}
	case "map":
		parts = []field{{ID: t.KeyID, Name: "key", Type: t.Key}, {ID: t.ValueID, Name: "value", Type: t.Value}}
	default:
		return col, faults.Unsupported(fault.At{}, "columns of type %s", strconv.Quote(t.Type))
	}
	col.Children, err = c.of(parts, depth)
	return col, err
}

// types are the names of types here, by those of Iceberg.
var types = map[string]string{
	"boolean": "boolean", "int": "int32", "long": "int64", "float": "float", "double": "double", "date": "date", "time": "time",
	"timestamp": "timestamp", "timestamptz": "timestamptz", "timestamp_ns": "timestamp_ns", "timestamptz_ns": "timestamptz_ns",
	"string": "string", "uuid": "uuid", "binary": "binary",
}

// typeOf returns the name of a type without parts.
func typeOf(name string) (string, error) {
	if t := types[name]; t != "" {
		return t, nil
	}
	if kind, _, _ := strings.Cut(name, "("); kind == "decimal" || strings.HasPrefix(name, "fixed[") {
		if t, err := keys.ParseType(name); err == nil && kind == "decimal" {
			return keys.TypeName(t), nil
		} else if err == nil {
			return name, nil // of 16 bytes, it is no UUID
		}
	}
	return "", faults.Unsupported(fault.At{}, "columns of type %s", strconv.Quote(name))
}

// typeOf returns the type of the column with an id: that of the newest schema that has it, since the
// columns of old partitions may have been dropped. Empty: it has parts, or none has it.
func (m *metadata) typeOf(id int32) string {
	for _, s := range slices.Backward(m.Schemas) {
		for _, f := range s.Fields {
			var name string
			if f.ID == id && json.Unmarshal(f.Type, &name) == nil {
				t, _ := typeOf(name)
				return t
			}
		}
	}
	return ""
}
