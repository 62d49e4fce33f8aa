package avro_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/lake/avro"
)

// Kinds of schemas alone: values of a union have one of its kinds, and a map is a list of records.
const (
	union = avro.Rec + 1 + iota
	pairs
)

// kind is a type of a drawn schema.
type kind struct {
	avro.Kind
	name   string // with its namespace
	size   int    // bytes, or symbols
	of     []*kind
	ids    []int // of fields; -1: none
	record *kind // the record around it
}

// chosen is a value of a union.
type chosen struct {
	branch int
	value  any
}

// model draws schemas, values and their bytes.
type model struct {
	*rand.Rand
	named []*kind
	b     []byte
}

func (m *model) kind(depth int, outer *kind) *kind {
	k := &kind{Kind: avro.Kind(m.IntN(int(pairs) + 1)), record: outer}
	if depth > 5 {
		k.Kind %= avro.Enum
	}
	switch k.Kind {
	case avro.Fixed, avro.Enum, avro.Rec:
		if len(m.named) > 0 && m.IntN(4) == 0 {
			if of := m.named[m.IntN(len(m.named))]; of.Kind != avro.Rec {
				return of
			}
		}
		m.name(k)
		if k.size = m.IntN(5) + int(k.Kind-avro.Fixed); k.Kind == avro.Rec {
			m.fields(k, depth)
		}
	case avro.Array:
		k.of = []*kind{m.kind(depth+1, outer)}
	case pairs:
		ids := [][]int{{60, 70}, {60, -1}, {-1, 70}, {-1, -1}}[m.IntN(4)]
		k.of = []*kind{{Kind: avro.Rec, of: []*kind{{Kind: avro.String}, m.kind(depth+1, outer)}, ids: ids}}
	case union:
		k.of = []*kind{{Kind: avro.Null}}
		for range m.IntN(4) {
			if outer != nil && m.IntN(5) == 0 {
				k.of = append(k.of, outer) // a record in itself
				continue
			}
			k.of = append(k.of, m.kind(depth+1, outer))
		}
		m.Shuffle(len(k.of), func(i, j int) { k.of[i], k.of[j] = k.of[j], k.of[i] })
	}
	return k
}

func (m *model) name(k *kind) {
	k.name = fmt.Sprintf("%sN%d", []string{"", "a.", "a.b."}[m.IntN(3)], len(m.named))
	m.named = append(m.named, k)
}

func (m *model) fields(k *kind, depth int) {
	for i := range m.IntN(6) {
		id := i * 10
		if m.IntN(3) == 0 {
			id = -1
		}
		k.ids, k.of = append(k.ids, id), append(k.of, m.kind(depth+1, k))
	}
}

// schema returns the JSON of a type, in a namespace.
func (m *model) schema(k *kind, space string, seen map[*kind]bool) any {
	within, short := "", k.name
	if i := strings.LastIndexByte(k.name, '.'); i >= 0 {
		within, short = k.name[:i], k.name[i+1:]
	}
	if seen[k] {
		if within == space && m.IntN(2) == 0 {
			return short
		}
		return k.name
	}
	o := map[string]any{"type": k.String()}
	switch k.Kind {
	case union:
		list := []any{}
		for _, of := range k.of {
			list = append(list, m.schema(of, space, seen))
		}
		return list
	case avro.Array:
		o["items"] = m.schema(k.of[0], space, seen)
	case pairs:
		o["values"] = m.schema(k.of[0].of[1], space, seen)
		for i, name := range []string{"key-id", "value-id"} {
			if id := k.of[0].ids[i]; id >= 0 {
				o[name] = id
			}
		}
	case avro.Fixed, avro.Enum, avro.Rec:
		seen[k] = true
		if o["name"] = k.name; within == "" || m.IntN(2) == 0 {
			o["name"], o["namespace"] = short, within
		}
		m.parts(o, k, within, seen)
	default:
		if m.IntN(3) > 0 {
			return k.String()
		}
	}
	if m.IntN(9) == 0 {
		return map[string]any{"type": o}
	}
	return o
}

func (m *model) parts(o map[string]any, k *kind, within string, seen map[*kind]bool) {
	switch k.Kind {
	case avro.Fixed:
		o["size"] = k.size
	case avro.Enum:
		o["symbols"] = strings.Fields(strings.Repeat("A ", k.size))
	case avro.Rec:
		fields := []any{}
		for i, of := range k.of {
			f := map[string]any{"name": fmt.Sprint("f", i), "type": m.schema(of, within, seen)}
			if k.ids[i] >= 0 {
				f["field-id"] = k.ids[i]
			}
			fields = append(fields, f)
		}
		o["fields"] = fields
	}
}

// String is that of avro.Kind, which lacks some.
func (k *kind) String() string {
	switch k.Kind {
	case union:
		return "union"
	case pairs:
		return "map"
	}
	return k.Kind.String()
}

func (m *model) long(v int64) { m.b = binary.AppendVarint(m.b, v) }

// value draws a value and appends its bytes.
func (m *model) value(k *kind, depth int) any {
	switch k.Kind {
	case avro.Null:
		return nil
	case avro.Boolean:
		m.b = append(m.b, byte(m.IntN(2)))
		return int64(m.b[len(m.b)-1])
	case avro.Int:
		v := int64(int32(m.Uint32()) >> m.IntN(32))
		m.long(v)
		return v
	case avro.Long:
		v := int64(m.Uint64()) >> m.IntN(64)
		m.long(v)
		return v
	case avro.Enum:
		v := m.Int64N(int64(k.size))
		m.long(v)
		return v
	case avro.Float:
		v := m.Float32()
		m.b = binary.LittleEndian.AppendUint32(m.b, math.Float32bits(v))
		return float64(v)
	case avro.Double:
		v := m.Float64()
		m.b = binary.LittleEndian.AppendUint64(m.b, math.Float64bits(v))
		return v
	case avro.Bytes, avro.String, avro.Fixed:
		v := bytes.Repeat([]byte{byte(m.Uint32())}, m.IntN(70))
		if k.Kind == avro.Fixed {
			v = bytes.Repeat([]byte{7}, k.size)
		} else {
			m.long(int64(len(v)))
		}
		m.b = append(m.b, v...)
		return v
	case union:
		v := chosen{branch: m.IntN(len(k.of))}
		if null := slices.IndexFunc(k.of, func(of *kind) bool { return of.Kind == avro.Null }); depth > 8 {
			v.branch = null
		}
		m.long(int64(v.branch))
		v.value = m.value(k.of[v.branch], depth+1)
		return v
	case avro.Rec:
		values := []any{}
		for _, of := range k.of {
			values = append(values, m.value(of, depth+1))
		}
		return values
	}
	return m.list(k, depth)
}

// list draws the items of a list or a map, in blocks, some of which state their bytes.
func (m *model) list(k *kind, depth int) any {
	all := []any{}
	for m.IntN(2) == 0 && depth < 8 {
		n := 1 + m.IntN(3)
		before := m.b
		m.b = nil
		for range n {
			all = append(all, m.value(k.of[0], depth+1))
		}
		items := m.b
		if m.b = before; m.IntN(2) == 0 {
			m.long(int64(n))
		} else {
			m.long(int64(-n))
			m.long(int64(len(items)))
		}
		m.b = append(m.b, items...)
	}
	m.long(0)
	return all
}

// compare returns where a value differs.
func compare(k *kind, want any, got *avro.Value, wanted func(int) bool) string {
	if k.Kind == union {
		of := want.(chosen)
		return compare(k.of[of.branch], of.value, got, wanted)
	}
	if got.Kind != k.Kind && (k.Kind != pairs || got.Kind != avro.Array) {
		return fmt.Sprintf("got %v, want %v", got.Kind, k)
	}
	switch want := want.(type) {
	case nil:
	case int64:
		if got.Int != want {
			return fmt.Sprintf("got %d, want %d", got.Int, want)
		}
	case float64:
		if got.Float != want {
			return fmt.Sprintf("got %v, want %v", got.Float, want)
		}
	case []byte:
		if !bytes.Equal(got.Bytes, want) {
			return fmt.Sprintf("got %q, want %q", got.Bytes, want)
		}
	case []any:
		if k.Kind == avro.Rec {
			return compareRecord(k, want, got, wanted)
		}
		if len(got.List) != len(want) {
			return fmt.Sprintf("got %d items, want %d", len(got.List), len(want))
		}
		for i := range want {
			if problem := compare(k.of[0], want[i], &got.List[i], wanted); problem != "" {
				return fmt.Sprint(i, ": ", problem)
			}
		}
	}
	return ""
}

func compareRecord(k *kind, want []any, got *avro.Value, wanted func(int) bool) string {
	for i, of := range k.of {
		if k.ids[i] < 0 {
			continue
		}
		v := got.Value(k.ids[i])
		if (v != nil) != wanted(k.ids[i]) {
			return fmt.Sprintf("field %d: got %v", k.ids[i], v)
		}
		if v != nil {
			if problem := compare(of, want[i], v, wanted); problem != "" {
				return fmt.Sprintf("field %d: %s", k.ids[i], problem)
			}
		}
	}
	return ""
}

var marker = []byte("0123456789abcdef")

// file returns a file of blocks, each with its number of records.
func file(schema any, codec string, counts []int64, blocks [][]byte) []byte {
	text, err := json.Marshal(schema)
	if err != nil {
		panic(err)
	}
	b := []byte("Obj\x01")
	put := func(v []byte) { b = append(binary.AppendVarint(b, int64(len(v))), v...) }
	b = binary.AppendVarint(b, 2)
	put([]byte("avro.codec"))
	put([]byte(codec))
	put([]byte("avro.schema"))
	put(text)
	b = append(append(b, 0), marker...)
	for i, block := range blocks {
		b = binary.AppendVarint(b, counts[i])
		put(pack(codec, block))
		b = append(b, marker...)
	}
	return b
}

func pack(codec string, b []byte) []byte {
	switch codec {
	case "deflate":
		var out bytes.Buffer
		w, _ := flate.NewWriter(&out, 1)
		w.Write(b)
		w.Close()
		return out.Bytes()
	case "snappy":
		return binary.BigEndian.AppendUint32(s2.EncodeSnappy(nil, b), crc32.ChecksumIEEE(b))
	case "zstandard":
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		return w.EncodeAll(b, nil)
	}
	return b
}

var codecs = []string{"null", "deflate", "snappy", "zstandard"}

// draw returns a file, its type, its values, and their blocks.
func draw(seed uint64) (b []byte, root *kind, all []any) {
	m := &model{Rand: rand.New(rand.NewPCG(seed, 1))}
	root = &kind{Kind: avro.Rec}
	m.name(root)
	for len(root.of) == 0 {
		m.fields(root, 0)
	}
	schema := m.schema(root, "", map[*kind]bool{})
	var counts []int64
	var blocks [][]byte
	for range m.IntN(4) {
		m.b = nil
		n := m.IntN(20)
		for range n {
			all = append(all, m.value(root, 0))
		}
		counts, blocks = append(counts, int64(n)), append(blocks, m.b)
	}
	return file(schema, codecs[m.IntN(4)], counts, blocks), root, all
}

// Values of any schema are read back, whichever fields are asked for.
func TestModel(t *testing.T) {
	lists, files := 0, cases.Count(300, 3000, 100000)
	for seed := range uint64(files) {
		b, root, all := draw(seed)
		mask := seed * 0x9e3779b97f4a7c15
		wanted := func(id int) bool { return seed%3 == 0 || mask>>(id/10)&1 != 0 }
		at := 0
		err := new(avro.Reader).Read(b, wanted, func(r *avro.Value) error {
			if problem := compareRecord(root, all[at].([]any), r, wanted); problem != "" {
				t.Fatalf("seed %d: record %d: %s", seed, at, problem)
			}
			at++
			return nil
		})
		if err != nil || at != len(all) {
			t.Fatalf("seed %d: %d of %d records: %v", seed, at, len(all), err)
		}
		lists += bytes.Count(b, []byte(`"array"`))
	}
	if lists < files/5 {
		t.Errorf("only %d arrays", lists)
	}
}
