package arrowparquet

import (
	"bytes"
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// again writes all rows of p to a file with its schema and opens that.
func again(t *testing.T, p *Parquet) *Parquet {
	t.Helper()
	var out bytes.Buffer
	w, err := NewParquetWriter(&out, p.Schema(), WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for g := range p.NumGroups() {
		for rec, err := range p.Read(t.Context(), g, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, out.Bytes(), memory.NewGoAllocator())
}

func openVector(t *testing.T, name string) *Parquet {
	t.Helper()
	b, err := os.ReadFile("../../testdata/vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, b, memory.NewGoAllocator())
}

// A repeated field outside a list is a list whose elements have the annotation, in
// records and in the file written from them.
func TestAnnotatedRepeatedField(t *testing.T) {
	schema := pq.NewSchema("root", pq.Group{"j": pq.Repeated(pq.JSON()), "k": pq.Required(pq.Int(64)), "u": pq.Repeated(pq.UUID())})
	var b bytes.Buffer
	w := pq.NewWriter(&b, schema)
	id := pq.FixedLenByteArrayValue([]byte("0123456789abcdef"))
	rows := []pq.Row{
		{pq.ByteArrayValue([]byte("{}")).Level(0, 1, 0), pq.ByteArrayValue([]byte("[1]")).Level(1, 1, 0), pq.Int64Value(1).Level(0, 0, 1), id.Level(0, 1, 2)},
		{pq.NullValue().Level(0, 0, 0), pq.Int64Value(2).Level(0, 0, 1), pq.NullValue().Level(0, 0, 2)},
	}
	if _, err := w.WriteRows(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Parquet{open(t, b.Bytes(), memory.NewGoAllocator()), again(t, open(t, b.Bytes(), memory.NewGoAllocator()))} {
		for name, extension := range map[string]string{"j": "arrow.json", "u": "arrow.uuid"} {
			f := p.Schema().Field(p.Schema().FieldIndices(name)[0])
			list, ok := f.Type.(*arrow.ListType)
			if !ok || value(f.Metadata, extensionKey) != "" || value(list.ElemField().Metadata, extensionKey) != extension {
				t.Errorf("%s: %v, want a list of %s", name, f, extension)
			}
		}
		kinds := map[string]meta.Kind{}
		for _, l := range p.File().Leaves {
			kinds[l.Path[0]] = l.Logical.Kind
		}
		if kinds["j"] != meta.JSON || kinds["u"] != meta.UUID {
			t.Errorf("annotations %v, want JSON of j and UUID of u", kinds)
		}
		tbl := all(t, p, nil)
		if got := tbl.Column(0).Data().Chunk(0).String(); got != `[["{}" "[1]"] []]` {
			t.Errorf("j: %s", got)
		}
		tbl.Release()
	}
}

// Annotations for which Arrow has no type pass through records unchanged.
func TestAnnotationsThroughRecords(t *testing.T) {
	p := openVector(t, "duckdb_annotated.parquet")
	out := again(t, p)
	for name, extension := range map[string]string{"point": "geoarrow.wkb", "variant": "arrow.parquet.variant"} {
		i := p.Schema().FieldIndices(name)[0]
		for _, f := range []*Parquet{p, out} {
			if got := value(f.Schema().Field(i).Metadata, extensionKey); got != extension {
				t.Errorf("%s is %q, want %s", name, got, extension)
			}
		}
		want, err := p.File().Root.Children[i].Element.Annotation()
		got, err2 := out.File().Root.Children[i].Element.Annotation()
		if err != nil || err2 != nil || len(want) == 0 || !bytes.Equal(got, want) {
			t.Errorf("%s: annotation %x, want %x (%v, %v)", name, got, want, err, err2)
		}
	}

	unknown := []byte{0xf6, 0x27, 0x15, 6, 0, 0}
	unknown = append([]byte{0x0c}, unknown...) // type 2555, with one parameter
	for _, dt := range []arrow.DataType{arrow.BinaryTypes.Binary, arrow.PrimitiveTypes.Int32, &arrow.FixedSizeBinaryType{ByteWidth: 5}} {
		f := arrow.Field{Name: "c", Type: dt, Nullable: true}
		f.Metadata = arrow.NewMetadata([]string{logicalKey}, []string{"UNKNOWN:" + base64.StdEncoding.EncodeToString(unknown)})
		rec := record(t, memory.NewGoAllocator(), arrow.NewSchema([]arrow.Field{f}, nil), `[{"c":null}]`)
		p := again(t, open(t, written(t, rec, 1, WriterOptions{}), memory.NewGoAllocator()))
		rec.Release()
		if got, err := p.File().Root.Children[0].Element.Annotation(); err != nil || !bytes.Equal(got, unknown) {
			t.Errorf("%s: annotation %x, %v, want %x", dt, got, err, unknown)
		}
	}
}

func TestBrokenAnnotations(t *testing.T) {
	for _, a := range []string{"GEOMETRY:!", "GEOMETRY:DCA=", "UNKNOWN:" + base64.StdEncoding.EncodeToString([]byte{0x0c, 0xf6}), "NEW"} {
		for _, dt := range []arrow.DataType{arrow.BinaryTypes.Binary, arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8})} {
			f := arrow.Field{Name: "c", Type: dt, Metadata: arrow.NewMetadata([]string{logicalKey}, []string{a})}
			_, err := planSchema(arrow.NewSchema([]arrow.Field{f}, nil))
			if err == nil || !strings.Contains(err.Error(), "unsupported") || !strings.Contains(err.Error(), "annotation") {
				t.Errorf("%s of %s: %v", a, dt, err)
			}
		}
	}
}

// The forms of Parquet's crs in the metadata of geoarrow.wkb, according to its
// specification.
func TestGeoArrow(t *testing.T) {
	f := &parquet.File{Metadata: &meta.Footer{KeyValueMetadata: []meta.KeyValue{{Key: "mine", Value: `{"type": "GeographicCRS"}`}}}}
	p := planner{f: f}
	for _, c := range []struct{ crs, edges, want string }{
		{"", "", `{"crs":"OGC:CRS84","crs_type":"authority_code"}`},
		{"srid:5070", "", `{"crs":"5070","crs_type":"srid"}`},
		{"projjson:mine", "", `{"crs":{"type":"GeographicCRS"},"crs_type":"projjson"}`},
		{"projjson:other", "", `{"crs":"projjson:other"}`},
		{`{"a":1}`, "", `{"crs":{"a":1}}`},
		{`EPSG "x"`, "vincenty", `{"crs":"EPSG \"x\"","edges":"vincenty"}`},
	} {
		if got := p.geoArrow(c.crs, c.edges); got != c.want {
			t.Errorf("%q: %s, want %s", c.crs, got, c.want)
		}
	}
}

// The hints in the stored Arrow schema of pyarrow_hints.parquet apply to records
// and to files written from them. The expected types are those that pyarrow reads.
func TestStoredHints(t *testing.T) {
	p := openVector(t, "pyarrow_hints.parquet")
	for _, p := range []*Parquet{p, again(t, p)} {
		types := map[string]string{}
		for _, f := range p.Schema().Fields() {
			types[f.Name] = f.Type.String()
		}
		for name, want := range map[string]string{
			"fixed":  "fixed_size_list<element: int32, nullable>[2]",
			"nested": "list<element: fixed_size_list<element: int16, nullable>[2], nullable>",
			"large":  "list<element: large_utf8, nullable>",
			"map":    "map<utf8, large_utf8, keys_sorted, items_nullable>",
			"tensor": "fixed_size_list<element: int32, nullable>[2]",
			"wide":   "decimal256(50, 2)",
			"second": "timestamp[ms]",
		} {
			if types[name] != want {
				t.Errorf("%s is %s, want %s", name, types[name], want)
			}
		}
		i := p.Schema().FieldIndices("time")[0]
		if e := p.File().Root.Children[i].Element; !e.LogicalType.V.Value.(*format.TimeType).IsAdjustedToUTC {
			t.Error("the time is not adjusted to UTC any more")
		}
	}
}
