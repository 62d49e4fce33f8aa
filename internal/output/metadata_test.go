package output

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

const geoMetadata = `{"version":"1.1.0","primary_column":"g","columns":{"g":{"encoding":"WKB"},"h":{"encoding":"WKB","x":[1.50]}}}`

// aLog is metadata as programs write it.
func aLog() []meta.KeyValue {
	return []meta.KeyValue{
		{Key: "owner", Value: "me"},
		{Key: "pandas", Value: "{}"},
		{Key: "org.apache.spark.version", Value: "2.4.0"},
		{Key: "org.apache.spark.timeZone", Value: "America/Los_Angeles"},
		{Key: "org.apache.spark.legacyDateTime", Value: ""},
		{Key: "org.apache.spark.legacyINT96", Value: ""},
		{Key: "org.apache.spark.sql.parquet.row.metadata", Value: "{}"},
		{Key: "iceberg.schema", Value: "{}"},
		{Key: "parquet.avro.schema", Value: "{}"},
		{Key: "avro.schema", Value: "{}"},
		{Key: "geo", Value: geoMetadata},
		{Key: source.MetaResult, Value: source.ResultCandidates},
	}
}

func keyNames(kv []meta.KeyValue) string {
	var keys []string
	for _, e := range kv {
		keys = append(keys, e.Key)
	}
	return strings.Join(keys, " ")
}

// TestAnswerMetadata: what programs say of the columns is dropped where these change,
// and what they say of values is kept.
func TestAnswerMetadata(t *testing.T) {
	const (
		all   = "owner pandas org.apache.spark.version org.apache.spark.timeZone org.apache.spark.legacyDateTime org.apache.spark.legacyINT96 org.apache.spark.sql.parquet.row.metadata iceberg.schema parquet.avro.schema avro.schema geo bloomjoin.result"
		some  = "owner org.apache.spark.version org.apache.spark.timeZone org.apache.spark.legacyDateTime org.apache.spark.legacyINT96"
		ofGeo = some + " geo bloomjoin.result"
	)
	log := emptyFile(t, schemaOf(t, "required int64 k\noptional binary g\noptional binary h\n"), nil, aLog())
	nullable := emptyFile(t, schemaOf(t, "optional int64 k\noptional binary g\noptional binary h\n"), nil, aLog())
	ids := emptyFile(t, schemaOf(t, "required int64 k\noptional binary g\n"), nil, []meta.KeyValue{{Key: "owner", Value: "you"}, {Key: "of ids", Value: ""}})
	for _, c := range []struct {
		name      string
		log       *source.File
		columns   []tables.PairColumn
		keepTable bool
		want, geo string
	}{
		{"columns of the log", log, []tables.PairColumn{{Log: 0, Table: -1, Name: "k"}, {Log: 1, Table: -1, Name: "g"}, {Log: 2, Table: -1, Name: "h"}}, false, all, geoMetadata},
		{"that are optional anyway", nullable, []tables.PairColumn{{Log: 0, Table: 0, Name: "k"}, {Log: 1, Table: -1, Name: "g"}, {Log: 2, Table: -1, Name: "h"}}, true, all, geoMetadata},
		{"that become optional", log, []tables.PairColumn{{Log: 0, Table: 0, Name: "k"}, {Log: 1, Table: -1, Name: "g"}, {Log: 2, Table: -1, Name: "h"}}, true, ofGeo, geoMetadata},
		{"in another order", log, []tables.PairColumn{{Log: 1, Table: -1, Name: "g"}, {Log: 0, Table: -1, Name: "k"}, {Log: 2, Table: -1, Name: "h"}}, false, ofGeo, geoMetadata},
		{"with one of the IDs", log, []tables.PairColumn{{Log: 0, Table: -1, Name: "k"}, {Log: 1, Table: -1, Name: "g"}, {Log: 2, Table: -1, Name: "h"}, {Log: -1, Table: 1, Name: "g_ids"}}, false, ofGeo, geoMetadata},
		{"without a shape", log, []tables.PairColumn{{Log: 0, Table: -1, Name: "k"}, {Log: 1, Table: -1, Name: "g"}}, false, ofGeo, `{"columns":{"g":{"encoding":"WKB"}},"primary_column":"g","version":"1.1.0"}`},
		{"without the primary shape", log, []tables.PairColumn{{Log: 0, Table: -1, Name: "k"}, {Log: 2, Table: -1, Name: "h"}, {Log: -1, Table: 1, Name: "g"}}, false, some + " bloomjoin.result", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pairsOf(t, c.log, "k", ids)
			p.Columns, p.KeepTable = func(*source.File) []tables.PairColumn { return c.columns }, c.keepTable
			l, out := layoutOf(t, c.log, p)
			o := Destination{Result: source.ResultExact}
			if err := o.prepare(t.Context(), []*source.File{c.log}); err != nil {
				t.Fatal(err)
			}
			kv := o.keyValues(l.Kept)
			sourcetest.Equal(t, "keys", keyNames(kv), c.want)
			sourcetest.Equal(t, "result", kv[len(kv)-1].Value, source.ResultExact)
			sourcetest.Equal(t, "owner", kv[0].Value, "me")
			got := ""
			for _, e := range kv {
				if e.Key == "geo" {
					got = e.Value
				}
			}
			sourcetest.Equal(t, "geo", got, c.geo)
			if !out.Schema().Equal(l.Arrow) {
				t.Errorf("the output reads as %s\nwant %s", out.Schema(), l.Arrow)
			}
		})
	}
	for _, value := range []string{"", "{}", "[]", `{"columns":{}}`, `{"primary_column":"g"}`, `{"primary_column":"g","columns":[]}`} {
		if kv := pagecopy.KeptMetadata([]meta.KeyValue{{Key: "geo", Value: value}}, map[string]bool{"g": true}); len(kv) > 0 {
			t.Errorf("%q is kept as %v", value, kv)
		}
	}
}

// TestAnswerKeepsSystems: the coordinate reference system of an ID column that its file
// has in its metadata is in the output's, under a name that means nothing else there.
func TestAnswerKeepsSystems(t *testing.T) {
	const here, there = `{"here":1}`, `{"there":1}`
	shapes := func(name, crs, value string) *source.File {
		schema := schemaOf(t, "optional binary "+name+"\n")
		schema[1].LogicalType = thrift.New(format.LogicalType{Value: &format.GeometryType{CRS: crs}})
		return emptyFile(t, schema, nil, []meta.KeyValue{{Key: "crs", Value: value}})
	}
	for _, c := range []struct {
		log, ids  *source.File
		crs, keys string
	}{
		{shapes("g", "projjson:crs", here), shapes("g", "projjson:crs", here), "projjson:crs", "crs"},
		{shapes("g", "projjson:crs", here), shapes("g", "projjson:crs", there), "projjson:crs_ids", "crs crs_ids"},
		{emptyFile(t, schemaOf(t, "optional int32 g\n"), nil, nil), shapes("g", "projjson:crs", there), "projjson:crs", "crs"},
		{shapes("g", "srid:1", here), shapes("g", "srid:2", there), "srid:2", "crs"},
		{shapes("g", "srid:1", here), shapes("g", "projjson:missing", there), "projjson:missing", "crs"},
	} {
		l, out := layoutOf(t, c.log, pairsOf(t, c.log, "", c.ids))
		sourcetest.Equal(t, "keys", keyNames(l.Kept), c.keys)
		sourcetest.Equal(t, "system", pagecopy.CrsOf(&l.Schema[2]), c.crs)
		shape := func(f arrow.Field) string {
			v, _ := f.Metadata.GetValue("ARROW:extension:metadata")
			return v
		}
		sourcetest.Equal(t, "the log's system", shape(out.Schema().Field(0)), shape(c.log.Schema().Field(0)))
		sourcetest.Equal(t, "the IDs' system", shape(out.Schema().Field(1)), shape(c.ids.Schema().Field(0)))
	}
}

// TestAnswerStoresTypes: the Arrow schema that is stored has the log's types as they
// were stored, those of the IDs, and the metadata that holds.
func TestAnswerStoresTypes(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}
	note := arrow.NewMetadata([]string{"note"}, []string{"a note"})
	nested := arrow.Field{Name: "x", Type: arrow.FixedWidthTypes.Duration_ns, Nullable: true, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"5"})}
	logFields := []arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64, Metadata: note},
		{Name: "d", Type: dict, Nullable: true},
		{Name: "l", Type: arrow.LargeListOf(arrow.BinaryTypes.LargeString)},
		{Name: "t", Type: arrow.FixedWidthTypes.Date64, Nullable: true},
	}
	idFields := []arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "p", Type: dict},
		{Name: "s", Type: arrow.StructOf(nested), Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"4"})},
	}
	md := arrow.NewMetadata([]string{"owner", "pandas", "geo"}, []string{"me", "{}", "{}"})
	withSchema := func(fields []arrow.Field, md *arrow.Metadata) *source.File {
		var out bytes.Buffer
		schema := arrow.NewSchema(fields, md)
		w, err := arrowparquet.NewParquetWriter(&out, schema, arrowparquet.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return openBytes(t, out.Bytes())
	}
	plain := func(f *source.File) *source.File { // the same without a stored schema
		var kv []meta.KeyValue
		for _, e := range f.Parquet().File().Metadata.KeyValueMetadata {
			if e.Key != arrowparquet.SchemaKey {
				kv = append(kv, e)
			}
		}
		return emptyFile(t, f.Parquet().File().Metadata.Schema, nil, kv)
	}
	log, ids := withSchema(logFields, &md), withSchema(idFields, nil)
	of := func(fields []arrow.Field, nullable bool, names ...string) (list []arrow.Field) {
		for _, f := range fields {
			if i := slices.Index(names, f.Name); i >= 0 {
				f.Nullable = f.Nullable || nullable
				list = append(list, f)
			}
		}
		return list
	}
	ofIDs := []arrow.Field{
		{Name: "p_ids", Type: arrow.BinaryTypes.String},
		{Name: "s_ids", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.FixedWidthTypes.Duration_ns, Nullable: true})},
	}
	inferred := []arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "d", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOfField(arrow.Field{Name: "item", Type: arrow.BinaryTypes.String, Nullable: true})},
		{Name: "t", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	}
	noDuration := []arrow.Field{ofIDs[0], {Name: "s_ids", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true})}}
	for _, c := range []struct {
		name     string
		log, ids *source.File
		outer    bool
		want     []arrow.Field
	}{
		{"both", log, ids, false, slices.Concat(logFields, ofIDs)},
		{"both of a full join", log, ids, true, slices.Concat(of(logFields, true, "k", "d", "l", "t"), of(ofIDs, true, "p_ids", "s_ids"))},
		{"the log", log, plain(ids), false, slices.Concat(logFields, noDuration)},
		{"the IDs", plain(log), ids, false, slices.Concat(inferred, ofIDs)},
		{"records", plain(log), source.Records("ids", arrow.NewSchema(idFields, nil), nil, source.RecordsOptions{}), false, slices.Concat(inferred, ofIDs)},
		{"neither", plain(log), plain(ids), false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pairsOf(t, c.log, "k", c.ids)
			p.KeepLog, p.KeepTable = c.outer, c.outer
			l, out := layoutOf(t, c.log, p)
			if !out.Schema().Equal(l.Arrow) {
				t.Errorf("the output reads as %s\nwant %s", out.Schema(), l.Arrow)
			}
			stored := out.StoredSchema()
			if c.want == nil {
				sourcetest.Equal(t, "stored schema", stored, "")
				return
			}
			b, err := base64.StdEncoding.DecodeString(stored)
			if err != nil {
				t.Fatal(err)
			}
			r, err := ipc.NewReader(bytes.NewReader(append(b, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0))) // without Release, which panics on 386
			if err != nil {
				t.Fatal(err)
			}
			if want := arrow.NewSchema(c.want, nil); !r.Schema().Equal(want) {
				t.Errorf("stored %s\nwant %s", r.Schema(), want)
			}
			got := r.Schema().Metadata()
			sourcetest.Equal(t, "metadata", strings.Join(got.Keys(), " "), "owner")
		})
	}
}
