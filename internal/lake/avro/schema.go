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
	Array
	Map
	Rec
	union // of kinds: a value has one of them
)

var (
	kindNames = []string{"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum", "array", "map", "record", "union"}
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
	of   []*node // items of an Array, keys and values of a Map, fields of a Rec, branches of a union
	at   []int   // Rec: which value each field is; -1: it is skipped
	ids  []int   // Rec: of its values
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
	if list, ok := v.([]any); ok {
		return s.nest(&node{kind: union}, space, depth, list...)
	} else if of, ok := v.(map[string]any); ok {
		if name, ok = of["type"].(string); !ok {
			return s.parse(of["type"], space, depth+1)
		}
		n := &node{kind: Kind(max(slices.Index(kindNames, name), 0))}
		switch n.kind {
		case Array:
			return s.nest(n, space, depth, of["items"])
		case Map:
			return s.nest(n, space, depth, "string", of["values"])
		case Rec, Enum, Fixed:
			return s.define(n, of, space, depth)
		}
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
func (s *schema) define(n *node, of map[string]any, space string, depth int) *node {
	name, _ := of["name"].(string)
	if own, ok := of["namespace"].(string); ok {
		space = own
	}
	name = within(space, name)
	if s.named[name] != nil {
		return s.fail("the type %q is there twice", name)
	}
	s.named[name] = n
	size, ok := of["size"].(float64)
	symbols, isEnum := of["symbols"].([]any)
	fields, isRecord := of["fields"].([]any)
	switch {
	case n.kind == Fixed && ok && size >= 0 && size <= maxBlock:
		n.size = int(size)
	case n.kind == Enum && isEnum:
		n.size = len(symbols)
	case n.kind == Rec && isRecord:
		s.fields(n, fields, name[:max(strings.LastIndexByte(name, '.'), 0)], depth)
	default:
		s.fail("want the size, symbols or fields of the type %q", name)
	}
	return n
}

// fields adds the fields of a record.
func (s *schema) fields(n *node, list []any, space string, depth int) {
	seen := map[float64]bool{}
	for _, v := range list {
		of, _ := v.(map[string]any)
		s.nest(n, space, depth, of["type"])
		id, ok := of["field-id"].(float64)
		if ok && seen[id] {
			s.fail("two fields of a record have the id %v", id)
		}
		if seen[id] = ok || seen[id]; ok && s.wanted(int(id)) {
			n.at, n.ids = append(n.at, len(n.ids)), append(n.ids, int(id))
		} else {
			n.at = append(n.at, -1)
		}
	}
}
