package avro

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Kind is the type of a value, as it is stored.
type Kind uint8

// Kinds, in the order of kindNames.
const (
	Null Kind = iota
	Boolean
	Int
	Long
	Float
	Double
	Bytes
	String
	Fixed
	Enum
	Array // in schemas also a map: of records of its keys and values
	Rec
	union // of kinds: a value has one of them
)

var (
	kindNames = []string{"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum", "array", "record", "union"}
	kindSizes = [union]int{Boolean: 1, Float: 4, Double: 8}
)

// String returns the name of the kind in schemas.
func (k Kind) String() string { return kindNames[k] }

const (
	maxDepth  = 64       // of types in types, and values in values
	maxSchema = 16 << 20 // bytes
)

// node decodes a type.
type node struct {
	kind Kind
	size int     // Fixed: bytes; Enum: symbols; others: see kindSizes
	of   []*node // the items of an Array, fields of a Rec, branches of a union
	ids  []int   // Rec: of its fields; -1: the field is skipped
}

// schema is what is known in the course of parsing one.
type schema struct {
	wanted func(id int) bool
	named  map[string]*node
	err    error // the first
}

// parse returns the decoder of the records of a file.
func parse(text []byte, wanted func(id int) bool) (*node, error) {
	s := &schema{wanted: wanted, named: map[string]*node{}}
	var v any
	if len(text) > maxSchema {
		return nil, faults.Unsupported(fault.At{}, "an Avro schema of %d bytes: want at most %d", len(text), maxSchema)
	} else if err := json.Unmarshal(text, &v); err != nil {
		e := faults.Corrupt(fault.At{}, "the Avro schema")
		e.Err = err
		return nil, e
	}
	n := s.parse(v, "", 0)
	if n.kind != Rec {
		s.fail("want record, got %s", n.kind)
	}
	return n, s.err
}

func (s *schema) fail(format string, args ...any) *node {
	if s.err == nil {
		s.err = faults.Corrupt(fault.At{}, "the Avro schema: "+format, args...)
	}
	return new(node)
}

// parse returns the decoder of the type v, whose names are in a namespace.
func (s *schema) parse(v any, space string, depth int) *node {
	if depth > maxDepth {
		return s.fail("want at most %d types in each other", maxDepth)
	}
	name, _ := v.(string)
	switch of := v.(type) {
	case []any:
		return s.nest(&node{kind: union}, space, depth, of...)
	case map[string]any:
		switch of["type"] {
		case "array":
			return s.nest(&node{kind: Array}, space, depth, of["items"])
		case "map":
			key, value := map[string]any{"type": "string", "field-id": of["key-id"]}, map[string]any{"type": of["values"], "field-id": of["value-id"]}
			return &node{kind: Array, of: []*node{s.fields(new(node), []any{key, value}, space, depth)}}
		case "record", "enum", "fixed":
			return s.define(of, space, depth)
		}
		return s.parse(of["type"], space, depth+1)
	}
	if k := slices.Index(kindNames[:Fixed], name); k >= 0 {
		return &node{kind: Kind(k), size: kindSizes[k]}
	} else if n := cmp.Or(s.named[within(space, name)], s.named[name]); n != nil {
		return n
	}
	return s.fail("the type %q is unknown", name)
}

// within returns a name with its namespace.
func within(space, name string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

// nest adds types to one that consists of them.
func (s *schema) nest(n *node, space string, depth int, types ...any) *node {
	for _, v := range types {
		n.of = append(n.of, s.parse(v, space, depth+1))
	}
	return n
}

// define completes a type that has a name, by which it may be in itself.
func (s *schema) define(of map[string]any, space string, depth int) *node {
	name, _ := of["name"].(string)
	if own, ok := of["namespace"].(string); ok {
		space = own
	}
	name = within(space, name)
	if s.named[name] != nil {
		return s.fail("the type %q is there twice", name)
	}
	n := new(node)
	s.named[name] = n
	size, isFixed := of["size"].(float64)
	symbols, isEnum := of["symbols"].([]any)
	fields, isRecord := of["fields"].([]any)
	switch {
	case of["type"] == "fixed" && isFixed && size >= 0 && size <= maxBlock:
		n.kind, n.size = Fixed, int(size)
	case of["type"] == "enum" && isEnum:
		n.kind, n.size = Enum, len(symbols)
	case of["type"] == "record" && isRecord:
		s.fields(n, fields, name[:max(strings.LastIndexByte(name, '.'), 0)], depth)
	default:
		s.fail("want the size, symbols or fields of the type %q", name)
	}
	return n
}

// fields makes n a record of fields.
func (s *schema) fields(n *node, list []any, space string, depth int) *node {
	n.kind = Rec
	seen := map[float64]bool{}
	for _, v := range list {
		of, _ := v.(map[string]any)
		s.nest(n, space, depth, of["type"])
		id, ok := of["field-id"].(float64)
		if ok && seen[id] {
			s.fail("two fields of a record have the id %v", id)
		}
		if seen[id] = ok || seen[id]; !ok || id < 0 || !s.wanted(int(id)) {
			id = -1
		}
		n.ids = append(n.ids, int(id))
	}
	return n
}
