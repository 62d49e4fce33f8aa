package delta

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/lake"
)

// known are the features of readers that need nothing more than what is here, or nothing unless a
// column has the type.
var known = []string{"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview"}

// newestReader is the newest version of readers; it is the one with features.
const newestReader = 3

// mapping says how columns are found in files.
type mapping string

const (
	byName mapping = "none"
	mapped mapping = "name"
	byID   mapping = "id"
)

// check refuses a table that needs what is not here.
func (s *Snapshot) check() error {
	at := fault.At{File: s.dir}
	if s.protocol == nil || s.metadata == nil {
		return faults.Corrupt(at, "the log of a Delta table without a protocol or without metadata")
	}
	if s.protocol.Reader > newestReader {
		return faults.Unsupported(at, "a Delta table for readers of version %d, which is newer than %d", s.protocol.Reader, newestReader)
	}
	for _, f := range s.protocol.Features {
		if !slices.Contains(known, f) {
			return faults.Unsupported(at, "the feature %s of a Delta table", strconv.Quote(f)).
				WithHint("write the table's current rows to Parquet with an engine that knows it")
		}
	}
	if f := s.metadata.Format.Provider; f != "" && f != "parquet" {
		return faults.Unsupported(at, "a Delta table of %s files", strconv.Quote(f))
	}
	mode, err := s.mapping()
	if err != nil {
		return err
	}
	columns, err := columnsOf(s.metadata.Schema, mode)
	if errors.Is(err, fault.ErrUnsupported) {
		return fmt.Errorf("%s: %w", s.dir, err)
	}
	if err != nil {
		e := faults.Corrupt(at, "the schema of a Delta table")
		e.Err = err
		return e
	}
	s.table = &lake.Table{
		Kind: "delta", Location: s.dir, Version: strconv.FormatInt(s.version, 10),
		Columns: columns,
	}
	return s.partitions()
}

// partitions finds the columns whose values are in the log.
func (s *Snapshot) partitions() error {
	for _, name := range s.metadata.Partitions {
		i := slices.IndexFunc(s.table.Columns, func(c lake.Column) bool { return c.Name == name })
		if i < 0 {
			return faults.Corrupt(fault.At{File: s.dir, Column: name}, "the table is divided by a column that it lacks")
		}
		s.table.Partitions = append(s.table.Partitions, i)
	}
	return nil
}

// mapping returns how columns are found. The property counts only with the feature: there are
// writers that set it alone, and use no other names in files.
func (s *Snapshot) mapping() (mapping, error) {
	at := fault.At{File: s.dir}
	switch mode := mapping(s.metadata.Configuration["delta.columnMapping.mode"]); mode {
	case "", byName:
		return byName, nil
	case mapped, byID:
		if s.protocol.Reader != 2 && !slices.Contains(s.protocol.Features, "columnMapping") {
			return "", faults.Unsupported(at, "column mapping that the protocol of the Delta table does not list")
		}
		return mode, nil
	default:
		return "", faults.Unsupported(at, "column mapping by %s", strconv.Quote(string(mode)))
	}
}

// structType is a struct in the schema of a table; the table itself is one.
type structType struct {
	Fields []struct {
		Name     string                     `json:"name"`
		Type     json.RawMessage            `json:"type"`
		Metadata map[string]json.RawMessage `json:"metadata"`
	} `json:"fields"`
}

// nestedType is a type with parts.
type nestedType struct {
	Type    string          `json:"type"`
	Element json.RawMessage `json:"elementType"`
	Key     json.RawMessage `json:"keyType"`
	Value   json.RawMessage `json:"valueType"`
	structType
}

// deepest bounds the nesting of types.
const deepest = 64

// columnsOf parses the schema of a table.
func columnsOf(schema string, mode mapping) ([]lake.Column, error) {
	var t nestedType
	if err := json.Unmarshal([]byte(schema), &t); err != nil {
		return nil, err
	}
	if t.Type != "struct" {
		return nil, fmt.Errorf("%q in place of a struct", t.Type)
	}
	return fieldsOf(&t.structType, mode, deepest)
}

func fieldsOf(t *structType, mode mapping, depth int) (columns []lake.Column, err error) {
	seen := map[string]bool{}
	for _, f := range t.Fields {
		c, err := columnOf(f.Type, mode, depth-1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if c.Name = f.Name; mode != byName {
			if err := json.Unmarshal(f.Metadata["delta.columnMapping.physicalName"], &c.Stored); err != nil || c.Stored == "" {
				return nil, fmt.Errorf("%s: it has no name in files", f.Name)
			}
			if mode == byID {
				if err := json.Unmarshal(f.Metadata["delta.columnMapping.id"], &c.ID); err != nil || c.ID <= 0 {
					return nil, fmt.Errorf("%s: it has no id", f.Name)
				}
			}
		}
		for _, name := range []string{"name " + strings.ToLower(c.Name), "stored " + c.Stored} {
			if name != "stored " && seen[name] {
				return nil, fmt.Errorf("%s: two fields of that name", f.Name)
			}
			seen[name] = true
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// columnOf parses a type.
func columnOf(raw json.RawMessage, mode mapping, depth int) (c lake.Column, err error) {
	if depth == 0 {
		return c, fmt.Errorf("types within more than %d others", deepest)
	}
	var name string
	if err := json.Unmarshal(raw, &name); err == nil {
		c.Type, err = typeOf(name)
		return c, err
	}
	var t nestedType
	if err := json.Unmarshal(raw, &t); err != nil {
		return c, err
	}
	var parts []json.RawMessage
	switch t.Type {
	case "struct":
		c.Type = "struct"
		c.Children, err = fieldsOf(&t.structType, mode, depth)
		return c, err
	case "array":
		c.Type, parts = "list", []json.RawMessage{t.Element}
	case "map":
		c.Type, parts = "map", []json.RawMessage{t.Key, t.Value}
	default:
		return c, fmt.Errorf("a type %q with parts", t.Type)
	}
	for _, p := range parts {
		child, err := columnOf(p, mode, depth-1)
		if err != nil {
			return c, err
		}
		c.Children = append(c.Children, child)
	}
	return c, nil
}

// types are the names of types here, by those of Delta.
var types = map[string]string{
	"byte": "tinyint", "short": "int16", "integer": "int32", "long": "int64", "float": "float", "double": "double",
	"string": "string", "binary": "binary", "boolean": "boolean", "date": "date",
	"timestamp": "timestamptz", "timestamp_ntz": "timestamp",
}

// typeOf returns the name of a type without parts.
func typeOf(name string) (string, error) {
	if t := types[name]; t != "" {
		return t, nil
	}
	if strings.HasPrefix(name, "decimal") {
		if t, err := keys.ParseType(name); err == nil {
			return keys.TypeName(t), nil
		}
	}
	return "", faults.Unsupported(fault.At{}, "columns of type %s", strconv.Quote(name))
}
