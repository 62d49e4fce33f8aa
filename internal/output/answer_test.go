package output

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// Schemas as text: a line per element, indented by depth, with repetition, physical
// type, name, and then any of: @annotation, encoded in hexadecimal or as one of the
// names below; ~converted type; p,s of decimals; =field id.

var annotationNames = map[string]format.LogicalTypeValue{
	"STRING": &format.StringType{}, "JSON": &format.JsonType{}, "UUID": &format.UUIDType{}, "DATE": &format.DateType{},
	"LIST": &format.ListType{}, "MAP": &format.MapType{}, "NULL": &format.NullType{},
	"INT8": &format.IntType{BitWidth: 8, IsSigned: true}, "UINT32": &format.IntType{BitWidth: 32}, "UINT64": &format.IntType{BitWidth: 64},
	"DECIMAL(9,2)": &format.DecimalType{Precision: 9, Scale: 2}, "DECIMAL(20,2)": &format.DecimalType{Precision: 20, Scale: 2},
	"INSTANT(us)": &format.TimestampType{IsAdjustedToUTC: true, Unit: format.TimeUnit{Value: new(format.MicroSeconds)}},
	"INSTANT(ms)": &format.TimestampType{IsAdjustedToUTC: true, Unit: format.TimeUnit{Value: new(format.MilliSeconds)}},
}

var physicalNames = map[string]format.Type{
	"boolean": format.Boolean, "int32": format.Int32, "int64": format.Int64, "int96": format.Int96,
	"float": format.Float, "double": format.Double, "binary": format.ByteArray, "fixed": format.FixedLenByteArray,
}

// schemaOf parses a schema.
func schemaOf(t testing.TB, text string) []meta.Element {
	t.Helper()
	elements := []meta.Element{{Name: "root", NumChildren: thrift.New[int32](0)}}
	parents := []int{0} // by depth
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		depth := strings.IndexFunc(line, func(r rune) bool { return r != ' ' }) / 2
		var e meta.Element
		e.RepetitionType = thrift.New(format.FieldRepetitionType(slices.Index([]string{"required", "optional", "repeated"}, words[0])))
		kind, length, _ := strings.Cut(words[1], ":")
		if kind == "group" {
			e.NumChildren = thrift.New[int32](0)
		} else if e.Type = thrift.New(physicalNames[kind]); length != "" {
			e.TypeLength = thrift.New(number(t, length))
		}
		e.Name = words[2]
		for _, w := range words[3:] {
			switch w[0] {
			case '=':
				e.FieldID = thrift.New(number(t, w[1:]))
			case '~':
				e.ConvertedType = thrift.New(deprecated.ConvertedType(number(t, w[1:])))
			case '@':
				if v, ok := annotationNames[w[1:]]; ok {
					e.LogicalType = thrift.New(format.LogicalType{Value: v})
				} else if b, err := hex.DecodeString(w[1:]); err != nil || e.SetAnnotation(b) != nil {
					t.Fatalf("annotation %s", w)
				}
			default:
				p, s, _ := strings.Cut(w, ",")
				e.Precision, e.Scale = thrift.New(number(t, p)), thrift.New(number(t, s))
			}
		}
		elements[parents[depth]].NumChildren.V++
		parents = append(parents[:depth+1], len(elements))
		elements = append(elements, e)
	}
	return elements
}

func number(t testing.TB, s string) int32 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(n)
}

// textOf is the inverse of SchemaOf.
func textOf(t testing.TB, elements []meta.Element) string {
	t.Helper()
	var out strings.Builder
	at := 1
	var walk func(depth int)
	walk = func(depth int) {
		e := &elements[at]
		at++
		kind := "group"
		for name, p := range physicalNames {
			if e.Type.Valid && e.Type.V == p {
				kind = name
			}
		}
		if e.TypeLength.Valid {
			kind += fmt.Sprintf(":%d", e.TypeLength.V)
		}
		fmt.Fprintf(&out, "%s%s %s %s", strings.Repeat("  ", depth), strings.ToLower(e.RepetitionType.V.String()), kind, e.Name)
		stored, err := e.Annotation()
		if err != nil {
			t.Fatal(err)
		}
		if stored != nil {
			text := hex.EncodeToString(stored)
			for name, v := range annotationNames {
				b, err := thrift.Marshal(new(thrift.CompactProtocol), &format.LogicalType{Value: v})
				if err == nil && string(b) == string(stored) {
					text = name
				}
			}
			out.WriteString(" @" + text)
		}
		if e.ConvertedType.Valid {
			fmt.Fprintf(&out, " ~%d", e.ConvertedType.V)
		}
		if e.Precision.Valid {
			fmt.Fprintf(&out, " %d,%d", e.Precision.V, e.Scale.V)
		}
		if e.FieldID.Valid {
			fmt.Fprintf(&out, " =%d", e.FieldID.V)
		}
		out.WriteString("\n")
		for range e.NumChildren.V {
			walk(depth + 1)
		}
	}
	for range elements[0].NumChildren.V {
		walk(0)
	}
	if at != len(elements) {
		t.Errorf("a schema of %d elements, whose tree has %d", len(elements), at)
	}
	return out.String()
}

// emptyFile opens a new Parquet file without rows.
func emptyFile(t testing.TB, schema []meta.Element, orders []format.ColumnOrder, kv []meta.KeyValue) *source.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "empty.parquet")
	w, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := parquet.NewWriter(w, schema, orders, parquet.WriterOptions{KeyValue: kv})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return roomtest.Open(t, source.Opening{}, name)[0]
}

// pairsOf returns Pairs of all columns of a log and of IDs, except that shared names
// the key that both have. ID columns have the suffix _ids.
func pairsOf(t testing.TB, log *source.File, shared string, ids ...*source.File) *tables.Pairs {
	t.Helper()
	of, err := tables.NewColumns(ids, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return &tables.Pairs{Of: of, Log: func(f *source.File) *source.File { return f }, Columns: func(f *source.File) (list []tables.PairColumn) {
		key := -1
		for i, c := range of.Schema.Fields() {
			if c.Name == shared {
				key = i
			}
		}
		for i, c := range f.Schema().Fields() {
			col := tables.PairColumn{Log: i, Table: -1, Name: c.Name}
			if c.Name == shared {
				col.Table = key
			}
			list = append(list, col)
		}
		for i, c := range of.Schema.Fields() {
			if i != key {
				list = append(list, tables.PairColumn{Log: -1, Table: i, Name: c.Name + "_ids"})
			}
		}
		return list
	}}
}

// layoutOf returns the layout of pairs, and an output without rows that has it.
func layoutOf(t testing.TB, log *source.File, p *tables.Pairs) (*pagecopy.PairLayout, *source.File) {
	t.Helper()
	l, err := pagecopy.NewPairLayout(log, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "why", Destination{Output: Output{Name: "out.parquet"}}.PairsFit(t.Context(), p, []*source.File{log}), "")
	o := Destination{Result: source.ResultExact}
	if err := o.prepare(t.Context(), []*source.File{log}); err != nil {
		t.Fatal(err)
	}
	return l, emptyFile(t, l.Schema, l.Orders, o.keyValues(l.Kept))
}

// TestAnswerSchema: columns of the log keep all that their schema says, and columns of
// the IDs all but field ids.
func TestAnswerSchema(t *testing.T) {
	annotation := func(v format.LogicalTypeValue) string {
		b, err := thrift.Marshal(new(thrift.CompactProtocol), &format.LogicalType{Value: v})
		if err != nil {
			t.Fatal(err)
		}
		return "@" + hex.EncodeToString(b)
	}
	geo := annotation(&format.GeometryType{CRS: "srid:5070"})
	variant := annotation(&format.VariantType{SpecificationVersion: 1})

	const key = "required int64 k =1\n"
	rest := strings.Join([]string{
		"required binary s @STRING ~0 =2",
		"optional binary old ~0",
		"optional int96 when =3",
		"required fixed:5 price @DECIMAL(9,2) ~5 9,2 =4",
		"optional binary shape " + geo + " =5",
		"required group v " + variant + " =6",
		"  required binary metadata",
		"  optional binary value",
		"optional binary place " + annotation(&format.GeographyType{CRS: "OGC:CRS84"}),
		"required group l @LIST ~3 =7",
		"  repeated group list",
		"    optional int32 element @INT8 ~15 =8",
		"optional group legacy ~3 =9",
		"  repeated int32 array",
		"optional group m @MAP ~1",
		"  repeated group key_value",
		"    required binary key @STRING ~0",
		"    optional double value",
		"optional group st",
		"  required group in",
		"    required boolean b",
		"  repeated float bare",
		"",
	}, "\n")
	log := emptyFile(t, schemaOf(t, key+rest), nil, nil)
	ids := emptyFile(t, schemaOf(t, key+rest), nil, nil)
	sourcetest.Equal(t, "the log", textOf(t, log.Parquet().File().Metadata.Schema), key+rest)

	noIDs := func(s string) string { // without field ids, and under other names
		var out strings.Builder
		for line := range strings.Lines(s) {
			line, _, _ = strings.Cut(line, " =")
			if words := strings.SplitN(strings.TrimSpace(line), " ", 4); line[0] != ' ' {
				words[2] += "_ids"
				line = strings.Join(words, " ")
			}
			out.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
		return out.String()
	}
	optional := func(s string) string { // at the top level
		return strings.TrimPrefix(strings.ReplaceAll("\n"+s, "\nrequired", "\noptional"), "\n")
	}
	for _, c := range []struct {
		name     string
		log, ids bool // KeepLog, KeepTable
		want     string
	}{
		{"inner", false, false, key + rest + noIDs(rest)},
		{"left", true, false, key + rest + optional(noIDs(rest))},
		{"right", false, true, optional(key+rest) + noIDs(rest)},
		{"full", true, true, optional(key+rest) + optional(noIDs(rest))},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pairsOf(t, log, "k", ids)
			p.KeepLog, p.KeepTable = c.log, c.ids
			l, out := layoutOf(t, log, p)
			sourcetest.Equal(t, "schema", textOf(t, l.Schema), c.want)
			sourcetest.Equal(t, "schema as written", textOf(t, out.Parquet().File().Metadata.Schema), c.want)
			if !out.Schema().Equal(l.Arrow) {
				t.Errorf("the output reads as %s\nwant %s", out.Schema(), l.Arrow)
			}
			checkLeaves(t, l, out.Parquet().File(), log.Parquet().File(), p)
		})
	}
}

// checkLeaves compares the sources of a layout's leaves with the leaves of the schema.
func checkLeaves(t *testing.T, l *pagecopy.PairLayout, out, log *parquet.File, p *tables.Pairs) {
	t.Helper()
	sourcetest.Equal(t, "leaves", len(l.Leaves), len(out.Leaves))
	sourcetest.Equal(t, "column orders", len(l.Orders), len(out.Leaves))
	for i, leaf := range l.Leaves {
		to := out.Leaves[i]
		if (leaf.Log < 0) == (leaf.Table < 0) {
			t.Errorf("%s: leaf %d of the log and %d of the table", to.Dotted, leaf.Log, leaf.Table)
			continue
		}
		var from meta.Leaf
		shift := 0
		if leaf.Log >= 0 {
			from = log.Leaves[leaf.Log]
			if leaf.Adapt != nil {
				shift = 1
			}
			if p.KeepTable {
				sourcetest.Equal(t, to.Dotted+": may be NULL", to.MaxDef > 0, true)
			}
		} else {
			from, shift = p.Of.Leaves[leaf.Table], int(leaf.As.Shift)
			sourcetest.Equal(t, to.Dotted+": levels", leaf.As.MaxDef, to.MaxDef)
			sourcetest.Equal(t, to.Dotted+": the rest", leaf.Rest.Table, leaf.Table)
		}
		sourcetest.Equal(t, to.Dotted+": levels", to.MaxDef, from.MaxDef+shift)
		sourcetest.Equal(t, to.Dotted+": repetition", to.MaxRep, from.MaxRep)
		sourcetest.Equal(t, to.Dotted+": type", to.Type, from.Type)
		sourcetest.Equal(t, to.Dotted+": repeated", leaf.Rest.Repeated, to.MaxRep > 0)
	}
}

// TestAnswerOfCorpora lays out pairs of each file of the corpora with itself.
func TestAnswerOfCorpora(t *testing.T) {
	shared := os.Getenv("BLOOMJOIN_SHARED")
	if shared == "" {
		t.Skip("BLOOMJOIN_SHARED is not set: the corpora are not at hand")
	}
	files, laid := 0, 0
	err := filepath.WalkDir(filepath.Join(shared, "corpora"), func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".parquet" {
			return err
		}
		opened, err := source.Open(t.Context(), []string{name}, source.Opening{OpenOptions: source.OpenOptions{}})
		if err != nil {
			return nil // other tests see that broken files are refused
		}
		files++
		laid += answersOf(t, opened[0])
		return opened[0].Close()
	})
	if err != nil || files < 80 || laid < 300 {
		t.Errorf("%d files, %d layouts: %v", files, laid, err)
	}
}

// answersOf lays out pairs of a file with itself, and returns the number of layouts.
func answersOf(t *testing.T, f *source.File) (n int) {
	own := f.Parquet().File()
	for i := range 4 {
		p := pairsOf(t, f, "", f)
		p.KeepLog, p.KeepTable = i&1 != 0, i&2 != 0
		if why := (Destination{Output: Output{Name: "out.parquet"}}).PairsFit(t.Context(), p, []*source.File{f}); why != "" {
			t.Log(why)
			continue
		}
		n++
		l, out := layoutOf(t, f, p)
		checkLeaves(t, l, out.Parquet().File(), own, p)
		if !out.Schema().Equal(l.Arrow) {
			t.Errorf("%s: the output reads as %s\nwant %s", f.Name(), out.Schema(), l.Arrow)
		}
		log, all := textOf(t, own.Metadata.Schema), textOf(t, l.Schema)
		if !p.KeepTable && !strings.HasPrefix(all, log) {
			t.Errorf("%s: the output has the schema\n%s\nwant first\n%s", f.Name(), all, log)
		}
	}
	return n
}

// TestSharedLayout: files with one schema and metadata share their layout, except for
// what names the file in errors.
func TestSharedLayout(t *testing.T) {
	schema := schemaOf(t, "required int64 k\noptional int32 n\n")
	names := []string{emptyFile(t, schema, nil, nil).Name(), emptyFile(t, schema, nil, nil).Name(), emptyFile(t, schemaOf(t, "required int64 k\n"), nil, nil).Name()}
	logs := roomtest.Open(t, source.Opening{}, names...)
	p := pairsOf(t, logs[0], "k", logs[0])
	p.KeepTable = true
	var layouts []*pagecopy.PairLayout
	var like *pagecopy.PairLayout
	for _, f := range logs {
		l, err := pagecopy.NewPairLayout(f, p, like)
		if err != nil {
			t.Fatal(err)
		}
		layouts, like = append(layouts, l), l
	}
	sourcetest.Equal(t, "the same schema", &layouts[0].Schema[0] == &layouts[1].Schema[0], true)
	sourcetest.Equal(t, "the same leaf", layouts[0].Leaves[0].Adapt == layouts[1].Leaves[0].Adapt, false)
	sourcetest.Equal(t, "leaves of another file", len(layouts[2].Leaves), 2)
	sourcetest.Equal(t, "leaves", len(layouts[1].Leaves), 3)
}

// openBytes opens a Parquet file with the given content.
func openBytes(t testing.TB, b []byte) *source.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.parquet")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return roomtest.Open(t, source.Opening{}, name)[0]
}
