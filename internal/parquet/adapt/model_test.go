package adapt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// The model: rows as trees of values, shredded into entries by the rule of the
// Dremel paper (Melnik et al., VLDB 2010), one row at a time. A value of an
// optional node is nil or its contents; a value of a repeated node is an []any of
// contents. The contents of a group are an []any with a value per child, those of a
// leaf a PLAIN value.

// stream is a leaf's entries.
type stream struct {
	rep, def []uint8
	values   [][]byte // PLAIN, one each
}

func shred(root *meta.Node, leaves int, rows []any) []stream {
	out := make([]stream, leaves)
	for _, row := range rows {
		shredInside(out, root, row, 0, 0, 0)
	}
	return out
}

// shredNode appends the entries of v. rep is the level at which v repeats, depth
// the number of repeated nodes on the path.
func shredNode(out []stream, n *meta.Node, v any, rep, depth, def uint8) {
	switch n.Repetition {
	case format.Required:
		shredInside(out, n, v, rep, depth, def)
	case format.Optional:
		if v == nil {
			shredNothing(out, n, rep, def)
			return
		}
		shredInside(out, n, v, rep, depth, def+1)
	case format.Repeated:
		list := v.([]any)
		if len(list) == 0 {
			shredNothing(out, n, rep, def)
		}
		for i, item := range list {
			if i > 0 {
				rep = depth + 1
			}
			shredInside(out, n, item, rep, depth+1, def+1)
		}
	}
}

func shredInside(out []stream, n *meta.Node, v any, rep, depth, def uint8) {
	if n.Leaf >= 0 {
		s := &out[n.Leaf]
		s.rep, s.def, s.values = append(s.rep, rep), append(s.def, def), append(s.values, v.([]byte))
		return
	}
	for i, c := range n.Children {
		shredNode(out, c, v.([]any)[i], rep, depth, def)
	}
}

func shredNothing(out []stream, n *meta.Node, rep, def uint8) {
	if n.Leaf >= 0 {
		out[n.Leaf].rep, out[n.Leaf].def = append(out[n.Leaf].rep, rep), append(out[n.Leaf].def, def)
	}
	for _, c := range n.Children {
		shredNothing(out, c, rep, def)
	}
}

// recast converts a row's value to the target's structure.
func recast(src, dst *field, v any) any {
	switch {
	case v == nil:
		return nil
	case dst.Repetition == format.Repeated && dst.Name != "schema":
		out := []any{}
		for _, item := range v.([]any) {
			out = append(out, recastInside(src, dst, item))
		}
		return out
	}
	return recastInside(src, dst, v)
}

func recastInside(src, dst *field, v any) any {
	if dst.Leaf >= 0 {
		return v
	}
	out := make([]any, len(dst.children))
	for i, d := range dst.children {
		j := slices.IndexFunc(src.children, func(s *field) bool { return s.Name == d.Name })
		if dst.byPosition() {
			j = i
		}
		switch {
		case j >= 0:
			out[i] = recast(src.children[j], d, v.([]any)[j])
		case d.Repetition == format.Repeated:
			out[i] = []any{}
		}
	}
	return out
}

// meaning returns what a value represents, whatever its type: numbers, decimals,
// times and timestamps as fractions, in seconds; else the bytes.
func meaning(t *valueType, v []byte) string {
	x := new(big.Int)
	switch {
	case t.float():
		f := 0.0
		if t.physical == format.Float {
			f = float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))
		} else {
			f = math.Float64frombits(binary.LittleEndian.Uint64(v))
		}
		if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 && math.Signbit(f) {
			return fmt.Sprint(f, math.Signbit(f))
		}
		r, _ := new(big.Rat).SetString(new(big.Float).SetFloat64(f).Text('f', 1100))
		return r.String()
	case t.logical.Kind == meta.Int && !t.logical.Signed && t.physical == format.Int64:
		x.SetUint64(binary.LittleEndian.Uint64(v))
	case t.logical.Kind == meta.Int && !t.logical.Signed:
		x.SetUint64(uint64(binary.LittleEndian.Uint32(v)))
	case t.physical == format.Int32:
		x.SetInt64(int64(int32(binary.LittleEndian.Uint32(v))))
	case t.physical == format.Int64:
		x.SetInt64(int64(binary.LittleEndian.Uint64(v)))
	case t.logical.Kind == meta.Decimal:
		if t.physical == format.ByteArray {
			v = v[4:]
		}
		x.SetBytes(v)
		if len(v) > 0 && v[0] >= 128 {
			x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
		}
	default:
		return string(v)
	}
	scale := int64(0)
	switch t.logical.Kind {
	case meta.Decimal:
		scale = int64(t.logical.Scale)
	case meta.Time, meta.Timestamp:
		scale = 3 + 3*int64(t.logical.Unit)
	}
	return new(big.Rat).SetFrac(x, new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)).String()
}

// values splits PLAIN values.
func (t *valueType) values(plain []byte) (out [][]byte) {
	for len(plain) > 0 {
		n := (&meta.Leaf{Type: t.physical, TypeLength: t.length}).Width()
		if t.physical == format.ByteArray {
			n = 4 + int(binary.LittleEndian.Uint32(plain))
		}
		out = append(out, plain[:n])
		plain = plain[n:]
	}
	return out
}

// evolving describes a schema that evolves: the alternatives for a column in each
// file.
type evolving struct {
	name     string
	types    []string // of a leaf: any of these
	children []*evolving
	kind     string // leaf, struct, list, map, repeated
}

var families = [][]string{
	{"int32 %s (INT 8)", "int32 %s (UINT 8)", "int32 %s (INT 16)", "int32 %s (UINT 16)", "int32 %s", "int32 %s (UINT 32)", "int64 %s"},
	{"int32 %s (INT 8)", "int32 %s (UINT 16)", "int32 %s", "int32 %s (UINT 32)", "float %s", "double %s"},
	{"int32 %s (INT 8)", "int32 %s (INT 16)", "float %s"},
	{"int32 %s (DECIMAL 5 2)", "int64 %s (DECIMAL 14 2)", "fixed(3) %s (DECIMAL 6 2)", "fixed(9) %s (DECIMAL 20 2)"},
	{"int32 %s (DECIMAL 9 3)", "fixed(5) %s (DECIMAL 11 3)", "binary %s (DECIMAL 15 3)", "int64 %s (DECIMAL 18 3)"},
	{"int64 %s (TIMESTAMP MILLIS)", "int64 %s (TIMESTAMP MICROS)", "int64 %s (TIMESTAMP NANOS)"},
	{"int32 %s (TIME MILLIS)", "int64 %s (TIME MICROS)", "int64 %s (TIME NANOS)"},
	{"binary %s (STRING)"}, {"fixed(16) %s (UUID)"}, {"int96 %s"},
}

func randomColumn(rng *rand.Rand, name string, depth int) *evolving {
	e := &evolving{name: name, kind: "leaf"}
	if depth < 4 {
		e.kind = []string{"leaf", "leaf", "struct", "list", "map", "repeated"}[rng.IntN(6)]
	}
	switch e.kind {
	case "struct":
		for i := range 1 + rng.IntN(3) {
			e.children = append(e.children, randomColumn(rng, fmt.Sprintf("f%d", i), depth+1))
		}
	case "list", "repeated":
		e.children = []*evolving{randomColumn(rng, "element", depth+1)}
	case "map":
		e.children = []*evolving{{name: "key", kind: "leaf", types: families[rng.IntN(len(families))]}, randomColumn(rng, "value", depth+1)}
	}
	if e.kind == "list" || e.kind == "map" {
		for _, c := range e.children { // their nodes have a repetition of their own
			if c.kind == "repeated" {
				*c = evolving{name: c.name, kind: "leaf"}
			}
			if c.kind == "leaf" && c.types == nil {
				c.types = families[rng.IntN(len(families))]
			}
		}
	}
	if e.kind == "leaf" {
		e.types = families[rng.IntN(len(families))]
	}
	return e
}

// in returns the column as one file declares it.
func (e *evolving) in(rng *rand.Rand, name string) string {
	repetition := pickOf(rng, "optional ", "required ")
	if e.kind != "repeated" && rng.IntN(12) == 0 {
		return "optional int32 " + name + " (NULL); "
	}
	switch e.kind {
	case "struct":
		return repetition + "group " + name + " { " + fieldsIn(rng, e.children) + "} "
	case "list":
		return repetition + "group " + name + " (LIST) { repeated group " + pickOf(rng, "list", "bag") + " { " +
			e.children[0].in(rng, pickOf(rng, "element", "item")) + "} } "
	case "map":
		return repetition + "group " + name + " (MAP) { repeated group " + pickOf(rng, "key_value", "map") + " { " +
			e.children[0].in(rng, "key") + e.children[1].in(rng, pickOf(rng, "value", "v")) + "} } "
	case "repeated":
		if c := e.children[0]; c.kind != "leaf" {
			return "repeated group " + name + " { " + fieldsIn(rng, e.children) + "} "
		}
		return "repeated " + fmt.Sprintf(pickOf(rng, e.children[0].types...), name) + "; "
	}
	return repetition + fmt.Sprintf(pickOf(rng, e.types...), name) + "; "
}

// fieldsIn omits some children and shuffles the rest.
func fieldsIn(rng *rand.Rand, children []*evolving) string {
	var s []string
	for i, c := range children {
		if rng.IntN(4) > 0 || i == len(children)-1 && len(s) == 0 {
			s = append(s, c.in(rng, c.name))
		}
	}
	rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return strings.Join(s, "")
}

// randomRow returns a random value of a node.
func randomRow(rng *rand.Rand, d *field) any {
	switch {
	case d.Repetition == format.Optional && (d.allNull() || rng.IntN(3) == 0):
		return nil
	case d.Repetition == format.Repeated:
		list := []any{}
		for range rng.IntN(4) {
			list = append(list, randomInside(rng, d))
		}
		return list
	}
	return randomInside(rng, d)
}

func randomInside(rng *rand.Rand, d *field) any {
	if d.Leaf >= 0 {
		return randomValue(rng, &d.value)
	}
	out := make([]any, len(d.children))
	for i, c := range d.children {
		out[i] = randomRow(rng, c)
	}
	return out
}

func randomValue(rng *rand.Rand, t *valueType) []byte {
	x := int64(rng.Uint64()) >> rng.IntN(64)
	switch bits, signed, ok := t.integer(); {
	case ok && signed:
		x = x << (64 - bits) >> (64 - bits)
	case ok:
		x = int64(uint64(x) << (64 - bits) >> (64 - bits))
	case t.float():
		f := float64(x) / float64(int64(1)<<rng.IntN(40))
		f = pickOf(rng, f, f, f, f, math.NaN(), math.Inf(-1), math.Copysign(0, -1), 5e-324)
		if t.physical == format.Float {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f)))
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
	case t.logical.Kind == meta.Decimal:
		most := int64(math.Pow10(min(t.logical.Precision, 18)))
		x %= most
	default: // times and timestamps: within the range of all units
		x %= math.MaxInt32
	}
	switch t.physical {
	case format.Int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(x))
	case format.Int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(x))
	case format.FixedLenByteArray:
		b := binary.BigEndian.AppendUint64(bytes.Repeat([]byte{byte(x >> 63)}, 16), uint64(x))
		return b[len(b)-t.length:]
	case format.Int96:
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(x)), 5)
	}
	v := binary.BigEndian.AppendUint64(nil, uint64(x))
	if t.logical.Kind != meta.Decimal {
		v = v[rng.IntN(9):]
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(v))), v...)
}

func pickOf[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// pagesOf divides a stream into pages, also within rows if the leaf repeats.
func pagesOf(rng *rand.Rand, d *field, s stream) (pages []*parquet.Page, dict *parquet.Dictionary) {
	index := map[string]uint32{}
	if rng.IntN(2) == 0 {
		dict = &parquet.Dictionary{}
		for i, v := range append(slices.Clone(s.values), s.values...) {
			if _, ok := index[string(v)]; !ok || i%7 == 0 { // entries may be duplicated or unused
				index[string(v)] = uint32(dict.Len)
				dict.Plain = append(dict.Plain, v...)
				dict.Len++
			}
		}
		if d.value.physical == format.ByteArray {
			dict = parquet.NewDictionary(format.ByteArray, dict.Len, dict.Plain)
		}
	}
	for from, value := 0, 0; from < len(s.def); {
		n := min(1+rng.IntN(1+len(s.def)), len(s.def)-from)
		p := &parquet.Page{Number: len(pages) + 1, Values: n, Stored: new(parquet.StoredPage)}
		p.Coded = dict != nil && rng.IntN(8) > 0
		for i := from; i < from+n; i++ {
			if s.rep[i] == 0 {
				p.Rows++
			}
			if int(s.def[i]) == d.maxDef {
				if p.NonNull++; p.Coded {
					p.Indices = append(p.Indices, index[string(s.values[value])])
				} else {
					p.Plain = append(p.Plain, s.values[value]...)
				}
				value++
			}
		}
		if d.maxRep > 0 {
			p.Rep = slices.Clone(s.rep[from : from+n])
		}
		if d.maxDef > 0 {
			p.Def = slices.Clone(s.def[from : from+n])
		}
		pages = append(pages, p)
		from += n
	}
	return pages, dict
}

// gatherPage checks an adapted page and appends it to a stream.
func gatherPage(t testing.TB, d *field, s *stream, p *parquet.Page, dict *parquet.Dictionary) {
	t.Helper()
	rep, def := p.Rep, p.Def
	if (rep != nil) != (d.maxRep > 0) || (def != nil) != (d.maxDef > 0) {
		t.Fatalf("%v, %v levels of a leaf with at most %d, %d", rep, def, d.maxRep, d.maxDef)
	}
	if rep == nil {
		rep = make([]uint8, p.Values)
	}
	if def == nil {
		def = make([]uint8, p.Values)
	}
	rows, values := 0, 0
	for i := range rep {
		if rep[i] == 0 {
			rows++
		}
		if int(def[i]) == d.maxDef {
			values++
		}
	}
	if len(rep) != p.Values || len(def) != p.Values || rows != p.Rows || values != p.NonNull {
		t.Fatalf("a page of %d values, %d rows, %d not null has %d, %d, %d", p.Values, p.Rows, p.NonNull, len(rep), rows, values)
	}
	s.rep, s.def = append(s.rep, rep...), append(s.def, def...)
	var got [][]byte
	if p.Coded && p.NonNull > 0 {
		entries := d.value.values(dict.Plain)
		if len(entries) != dict.Len {
			t.Fatalf("%d entries in a dictionary of %d", len(entries), dict.Len)
		}
		for _, i := range p.Indices {
			got = append(got, entries[i])
		}
	} else if !p.Coded {
		got = d.value.values(p.Plain)
	}
	if len(got) != p.NonNull {
		t.Fatalf("%d values for %d", len(got), p.NonNull)
	}
	for i := range got {
		if d.value.physical == format.ByteArray && !bytes.Equal(p.Bytes(i, dict), got[i][4:]) {
			t.Fatalf("byte array %d is another", i)
		}
		s.values = append(s.values, bytes.Clone(got[i]))
	}
}

// leafFields returns the leaves in order.
func (d *field) leafFields() (out []*field) {
	if d.Leaf >= 0 {
		return []*field{d}
	}
	for _, c := range d.children {
		out = append(out, c.leafFields()...)
	}
	return out
}

// evolve makes files of one evolving schema and compares their rows, adapted to the
// union, with the model's. It returns the number of leaves that needed conversion.
func evolve(t testing.TB, seed uint64) (adapted int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 9))
	var columns []*evolving
	for i := range 1 + rng.IntN(4) {
		columns = append(columns, randomColumn(rng, fmt.Sprintf("c%d", i), 0))
	}
	var files []*parquet.File
	for i := range 1 + rng.IntN(4) {
		files = append(files, schemaFileOf(t, fmt.Sprintf("f%d", i), fieldsIn(rng, columns)))
	}
	schema, err := Union(files, nil)
	if err != nil {
		if strings.Contains(err.Error(), "NULL") && strings.Contains(err.Error(), "repeated") {
			return 0
		}
		t.Fatal(err)
	}
	target, err := parquet.SchemaFile(schema, "union")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := Covers(schema, f, nil); err != nil {
			t.Fatal(err)
		}
		adapted += compareWithModel(t, rng, f, target, schema)
	}
	return adapted
}

func compareWithModel(t testing.TB, rng *rand.Rand, f, target *parquet.File, schema []meta.Element) (adapted int) {
	t.Helper()
	from, to := fieldsOf(f), fieldsOf(target)
	rows, want := make([]any, rng.IntN(30)), []any{}
	for i := range rows {
		rows[i] = randomInside(rng, from)
		want = append(want, recastInside(from, to, rows[i]))
	}
	src, dst := shred(f.Root, len(f.Leaves), rows), shred(target.Root, len(target.Leaves), want)
	a, err := New(f, schema)
	if err != nil {
		t.Fatal(err)
	}
	sources := from.leafFields()
	for i, d := range to.leafFields() {
		s := &a.Leaves[i]
		pages := s.Pages(0)
		var got stream
		if s.Missing {
			for left := len(rows); left > 0; {
				n := 1 + rng.IntN(left)
				gatherPage(t, d, &got, pages.Nulls(n), nil)
				left -= n
			}
		} else {
			in, dict := pagesOf(rng, sources[s.Leaf], src[s.Leaf])
			for _, p := range in {
				rep, def := slices.Clone(p.Rep), slices.Clone(p.Def)
				out, outDict, err := pages.Adapt(p, dict)
				if err != nil {
					t.Fatalf("%s: %v", target.Leaves[i].Dotted, err)
				}
				if !slices.Equal(rep, p.Rep) || !slices.Equal(def, p.Def) || s.Identity() != (out.Stored != nil) {
					t.Fatal("the page was changed, or its stored form was kept")
				}
				gatherPage(t, d, &got, out, outDict)
			}
		}
		if !s.Identity() {
			adapted++
		}
		if !slices.Equal(got.rep, dst[i].rep) || !slices.Equal(got.def, dst[i].def) {
			t.Fatalf("%s: levels\n%v\n%v, want\n%v\n%v", target.Leaves[i].Dotted, got.rep, got.def, dst[i].rep, dst[i].def)
		}
		if len(got.values) != len(dst[i].values) {
			t.Fatalf("%s: %d values, want %d", target.Leaves[i].Dotted, len(got.values), len(dst[i].values))
		}
		for k, v := range got.values {
			if g, w := meaning(&d.value, v), meaning(&sources[s.Leaf].value, dst[i].values[k]); g != w {
				t.Fatalf("%s: value %d is %s, was %s", target.Leaves[i].Dotted, k, g, w)
			}
		}
	}
	return adapted
}

func TestAdaptedRowsAreTheModels(t *testing.T) {
	adapted := 0
	for seed := range uint64(600) {
		adapted += evolve(t, seed)
	}
	if adapted < 2000 {
		t.Errorf("only %d leaves were adapted", adapted)
	}
}

func FuzzAdapt(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { evolve(t, seed) })
}
