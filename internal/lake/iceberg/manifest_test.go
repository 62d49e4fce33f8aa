package iceberg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/iceberg"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// broken writes a table with a file in a partition, and returns what is read of it.
func broken(t *testing.T, format int, edit func(what string, of map[string]any)) string {
	t.Helper()
	d := laketest.NewIceberg(t, format, schema, "day")
	d.Edit = edit
	d.Commit(d.Add("a.parquet", "A", nil, 3))
	got, err := described(t.Context(), storage.Local(), d.Name(), nil, false)
	if err != nil {
		got = err.Error()
	}
	return strings.ReplaceAll(got, d.Dir, "DIR") + "\n"
}

// without removes a field from a schema, or from the record in the last of its fields.
func withoutField(of map[string]any, name string) bool {
	fields := of["fields"].([]any)
	for i, f := range fields {
		f := f.(map[string]any)
		if f["name"] == name {
			of["fields"] = append(fields[:i:i], fields[i+1:]...)
			return true
		}
		if r, ok := f["type"].(map[string]any); ok && r["type"] == "record" && withoutField(r, name) {
			return true
		}
	}
	return false
}

// What a list or a manifest says that a reader can't follow is refused; what it need not say is not missed.
func TestManifests(t *testing.T) {
	const whole = "7000000001: a.parquet day=1970-01-04\n"
	for name, c := range map[string]struct {
		of, field string
		v         any
		want      string
	}{
		"no path":         {"list", "manifest_path", "", "snap-1.avro: corrupt: a list of manifests, one of which has no path (get"},
		"missing":         {"list", "manifest_path", "DIR/none.avro", "DIR/none.avro: no such file"},
		"length":          {"list", "manifest_length", int64(5), whole},
		"fewer":           {"list", "added_files_count", 0, ".avro: corrupt: files of a manifest: want 0, got 1 ("},
		"more":            {"list", "added_files_count", 2, ".avro: corrupt: files of a manifest: want 2, got 1 ("},
		"more that exist": {"list", "existing_files_count", 1, ".avro: corrupt: files of a manifest: want 2, got 1 ("},
		"added or not":    {"list", "existing_files_count", nil, whole},
		"removed before":  {"list", "deleted_files_count", 7, whole},
		"spec":            {"list", "partition_spec_id", 1, "snap-1.avro: corrupt: files divided by the specification 1, which the table lacks"},
		"content":         {"list", "content", 2, "snap-1.avro: unsupported: a manifest of content 2"},
		"deletes":         {"list", "content", 1, "a file of content 0 that the list of manifests contradicts"},
		"key":             {"list", "key_metadata", []byte("k"), "snap-1.avro: unsupported: an encrypted manifest"},
		"counts":          {"list", "added_files_count", nil, whole},
		"negative":        {"list", "added_files_count", -9, whole},
		"summaries":       {"list", "partitions", nil, whole},
		"no summary":      {"list", "partitions", []any{}, whole},
		"sequence":        {"list", "sequence_number", int64(0), whole},
		"status":          {"entry", "status", 3, "a manifest, with an entry of status 3"},
		"no status":       {"entry", "status", -1, "a manifest, with an entry of status -1"},
		"existing":        {"entry", "status", 0, "a manifest, with an old file without its sequence number"},
		"removed":         {"entry", "status", 2, ".avro: corrupt: files of a manifest: want 1, got 0 ("},
		"empty path":      {"file", "file_path", "", `a manifest, with a file of path "", 1 rows and 1 bytes`},
		"rows":            {"file", "record_count", -1, `/a.parquet", -1 rows and 1 bytes`},
		"size":            {"file", "file_size_in_bytes", -1, `/a.parquet", 1 rows and -1 bytes`},
		"keys":            {"file", "content", 2, "a file of content 2 that the list of manifests contradicts"},
		"encrypted":       {"file", "key_metadata", []byte{1}, `unsupported: the encrypted file "file:DIR/a.parquet"`},
		"orc":             {"file", "file_format", "orc", `file:DIR/a.parquet: unsupported: a data file of format "ORC" (rewrite the table's files as Parquet)`},
		"no format":       {"file", "file_format", "", `a data file of format ""`},
		"null":            {"file", "partition", map[string]any{"by 0": nil}, "7000000001: a.parquet day=NULL\n"},
		"no count":        {"list schema", "added_files_count", nil, whole},
		"no content":      {"list schema", "content", nil, whole},
		"no length":       {"list schema", "manifest_length", nil, whole},
		"no spec":         {"list schema", "partition_spec_id", nil, whole},
		"no manifest":     {"list schema", "manifest_path", nil, "one of which has no path"},
		"no file content": {"entry schema", "content", nil, whole},
		"no partition":    {"entry schema", "partition", nil, "a manifest, with a file without the value of partition field 1000"},
		"no value":        {"entry schema", "by 0", nil, "a manifest, with a file without the value of partition field 1000"},
		"no file":         {"entry schema", "data_file", nil, "or without a file"},
		"no entry status": {"entry schema", "status", nil, "a manifest, with an entry of status -1"},
		"no name":         {"entry schema", "file_path", nil, `a manifest, with a file of path ""`},
		"no rows":         {"entry schema", "record_count", nil, `-1 rows and 1 bytes`},
		"no sequence":     {"entry schema", "sequence_number", nil, whole},
	} {
		t.Run(name, func(t *testing.T) {
			got := broken(t, 2, func(what string, of map[string]any) {
				switch {
				case c.of == "file" && what == "entry":
					of["data_file"].(map[string]any)[c.field] = c.v
				case c.of != what:
				case strings.HasSuffix(what, "schema"):
					if !withoutField(of, c.field) {
						t.Fatal(of)
					}
				default:
					of[c.field] = c.v
				}
			})
			if !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Metadata that a reader can't follow is refused.
func TestMetadata(t *testing.T) {
	const whole = "7000000001: a.parquet day=1970-01-04\n"
	huge := map[string]any{"x": 1}
	for name, c := range map[string]struct {
		field string
		v     any
		want  string
	}{
		"version":         {"format-version", 4, "v1.metadata.json: unsupported: version 4 of the Iceberg format (want 1 to 3)"},
		"no version":      {"format-version", nil, "version 0 of the Iceberg format"},
		"old":             {"format-version", 0, "version 0 of the Iceberg format"},
		"current":         {"current-snapshot-id", 5, "the snapshot: want one that the table has, got 5"},
		"none":            {"current-snapshot-id", -1, "none: \n"},
		"wide id":         {"current-snapshot-id", uint64(1 << 63), `"current-snapshot-id" in the metadata of an Iceberg table: want an integer of 64 bits, got number 9223372036854775808`},
		"fraction":        {"current-snapshot-id", 1.5, "want an integer of 64 bits, got number 1.5"},
		"text":            {"current-snapshot-id", "1", "want an integer of 64 bits, got string"},
		"schema":          {"current-schema-id", 7, "corrupt: the metadata of an Iceberg table without its schema 7"},
		"no schemas":      {"schemas", nil, "without its schema 0"},
		"no specs":        {"partition-specs", nil, "v1.metadata.json: corrupt: the metadata of an Iceberg table without partition-specs"},
		"empty specs":     {"partition-specs", []any{}, "v1.metadata.json: corrupt: the metadata of an Iceberg table without partition-specs"},
		"old spec":        {"partition-spec", []any{}, whole},
		"other schemas":   {"schemas", []any{huge}, whole[:0]},
		"snapshots":       {"snapshots", nil, "the snapshot: want one that the table has, got 7000000001"},
		"properties":      {"properties", map[string]any{"x": nil}, whole},
		"mapping":         {"properties", map[string]any{"schema.name-mapping.default": "{"}, "the property schema.name-mapping.default: unexpected end"},
		"location":        {"location", "s3://b/t", "in another place"},
		"no location":     {"location", nil, "7000000001: "},
		"object":          {"snapshots", huge, `the member "snapshots" in the metadata of an Iceberg table: want an array, got object (`},
		"statistics":      {"statistics", huge, whole},
		"more":            {"encryption-keys", []any{huge}, whole},
		"key of snapshot": {"key-id", "k", "unsupported: an encrypted table"},
		"no list":         {"manifest-list", nil, "corrupt: snapshot 7000000001 without a list of manifests"},
		"list":            {"manifest-list", "DIR", "DIR: no such file"},
		"list elsewhere":  {"manifest-list", "hdfs://h/l.avro", `in another place: "hdfs://h/l.avro"`},
		"own schema":      {"schema-id", 9, whole}, // which the current snapshot does not need
		"summary":         {"summary", huge, `the member "snapshots.summary" in the metadata of an Iceberg table: want a string, got number (`},
	} {
		t.Run(name, func(t *testing.T) {
			got := broken(t, 2, func(what string, of map[string]any) {
				if what != "metadata" {
					return
				}
				if list := of["snapshots"].([]any); len(list) > 0 {
					if s := list[0].(map[string]any); s[c.field] != nil || c.field == "key-id" {
						of = s
					}
				}
				if of[c.field] = c.v; c.v == nil {
					delete(of, c.field)
				}
			})
			if !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	for text, want := range map[string]string{"": "unexpected end of JSON input", "{": "corrupt: the metadata of an Iceberg table", "[]": `the member "" in the metadata of an Iceberg table: want an object, got array`, "null": "version 0", "\x1f\x8b\x08": "compressed metadata"} {
		d := laketest.NewIceberg(t, 2, schema)
		d.Put("metadata/v0.metadata.json", text)
		check(t, d.Name(), want)
	}
}

// A list that is cut between two blocks is one without manifests; the snapshot says how many files it has.
func TestCutList(t *testing.T) {
	d := laketest.NewIceberg(t, 2, schema)
	d.Commit(d.Add("a.parquet", "A", nil))
	list := filepath.Join(d.Dir, "metadata/snap-1.avro")
	b, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	end := strings.Index(string(b), "0123456789abcdef") + 16
	d.Put("metadata/snap-1.avro", string(b[:end]))
	check(t, d.Name(), `snap-1.avro: corrupt: a list without manifests of a snapshot with "1" files`)
	for _, at := range []int{0, 3, 100, end - 1, end + 1, len(b) - 1} {
		d.Put("metadata/snap-1.avro", string(b[:at]))
		check(t, d.Name(), "snap-1.avro: ")
	}
	d.Put("metadata/snap-1.avro", string(b))
	manifests, err := filepath.Glob(filepath.Join(d.Dir, "metadata/m*.avro"))
	if err != nil || len(manifests) != 1 {
		t.Fatal(manifests, err)
	}
	if b, err = os.ReadFile(manifests[0]); err != nil {
		t.Fatal(err)
	}
	name := "metadata/" + filepath.Base(manifests[0])
	end = strings.Index(string(b), "0123456789abcdef") + 16
	d.Put(name, string(b[:end]))
	check(t, d.Name(), name+": corrupt: files of a manifest: want 1, got 0")
	d.Put(name, string(b[:len(b)-1]))
	check(t, d.Name(), name+": corrupt: Avro block ")
	if err := os.Remove(manifests[0]); err != nil {
		t.Fatal(err)
	}
	check(t, d.Name(), "no such file")
}

// A file that is there twice would give its rows twice.
func TestTwice(t *testing.T) {
	d := laketest.NewIceberg(t, 2, schema)
	onEntry(d, "b.parquet", func(_, file map[string]any) { file["file_path"] = d.Location + "/a.parquet" })
	d.Commit(d.Add("a.parquet", "A", nil), d.Add("b.parquet", "A", nil))
	check(t, d.Name(), d.Dir+"/: corrupt: \"file:"+d.Dir+"/a.parquet\" is twice in snapshot 7000000001 of the table")
}

// Schemas have types, ids and names; of what they can't be, the column is named.
func TestSchemas(t *testing.T) {
	field := func(id int, name string, typ any, more ...any) map[string]any {
		f := map[string]any{"id": id, "name": name, "type": typ, "required": false}
		for i := 0; i < len(more); i += 2 {
			f[more[i].(string)] = more[i+1]
		}
		return f
	}
	list := func(id int, of any) any {
		return map[string]any{"type": "list", "element-id": id, "element": of, "element-required": true}
	}
	pair := map[string]any{"type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": list(10, "int"), "value-required": false}
	deep := any("int")
	for i := range 70 {
		deep = list(100+i, deep)
	}
	for name, c := range map[string]struct {
		fields []any
		want   string
	}{
		"types": {[]any{field(1, "a", "decimal(9, 2)"), field(2, "b", "fixed[16]"), field(3, "c", "uuid"), field(4, "d", "timestamp_ns"), field(5, "e", "time")},
			"[{a  1 [] decimal(9,2) false []} {b  2 [] fixed[16] false []} {c  3 [] uuid false []} {d  4 [] timestamp_ns false []} {e  5 [] time false []}]"},
		"nested": {[]any{field(1, "a", map[string]any{"type": "struct", "fields": []any{field(2, "x", "int"), field(3, "y", list(4, "long"), "initial-default", []int{1})}}), field(7, "m", pair)},
			"[{a  1 [] struct false [{x  2 [] int32 false []} {y  3 [] list true [{element  4 [] int64 false []}]}]} {m  7 [] map false [{key  8 [] string false []} {value  9 [] list false [{element  10 [] int32 false []}]}]}]"},
		"defaults":  {[]any{field(1, "a", "int", "initial-default", 5), field(2, "b", "int", "initial-default", nil), field(3, "c", "int", "write-default", 5)}, "[{a  1 [] int32 true []} {b  2 [] int32 false []} {c  3 [] int32 false []}]"},
		"like":      {[]any{field(1, "a", "int"), field(2, "A", "int")}, "[{a  1 [] int32 false []} {A  2 [] int32 false []}]"},
		"same name": {[]any{field(1, "a", "int"), field(2, "a", "int")}, "corrupt: the schema of an Iceberg table: a: two fields of that name"},
		"same id":   {[]any{field(1, "a", "int"), field(2, "b", list(1, "int"))}, "b: element: the id 1, which is not positive or that of another field"},
		"no id":     {[]any{field(0, "a", "int")}, "a: the id 0, which is not positive"},
		"wide id":   {[]any{field(1<<31, "a", "int")}, "want an integer of 32 bits, got number 2147483648"},
		"variant":   {[]any{field(1, "a", "variant")}, `v0.metadata.json: a: unsupported: columns of type "variant"`},
		"geometry":  {[]any{field(1, "g", list(2, "geometry(srid:4326)"))}, `g: element: unsupported: columns of type "geometry(srid:4326)"`},
		"unknown":   {[]any{field(1, "a", "unknown")}, `columns of type "unknown"`},
		"tuple":     {[]any{field(1, "a", map[string]any{"type": "tuple"})}, `columns of type "tuple"`},
		"digits":    {[]any{field(1, "a", "decimal(99, 2)")}, `columns of type "decimal(99, 2)"`},
		"fixed":     {[]any{field(1, "a", "fixed[-1]")}, `columns of type "fixed[-1]"`},
		"number":    {[]any{field(1, "a", 5)}, `a: want the type as a name or an object, got "5"`},
		"no type":   {[]any{map[string]any{"id": 1, "name": "a"}}, "a: "},
		"deep":      {[]any{field(1, "a", deep)}, "types within more than 64 others"},
		"empty":     {[]any{}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			d := laketest.NewIceberg(t, 3, schema)
			inMetadata(d, func(m map[string]any) {
				m["schemas"] = []any{map[string]any{"schema-id": 0, "type": "struct", "fields": c.fields}}
				m["properties"] = map[string]any{}
			})
			d.Commit()
			if got := strings.ReplaceAll(columnsOf(t, d), "v1.m", "v0.m"); !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func columnsOf(t *testing.T, d *laketest.Iceberg) string {
	t.Helper()
	n, err := lake.ParseName(d.Name())
	if err != nil {
		t.Fatal(err)
	}
	s, err := iceberg.Open(t.Context(), storage.Local(), n, false)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(s.Table().Columns)
}

// A mapping has the names of columns, and of their parts, in files without ids.
func TestMapping(t *testing.T) {
	d := laketest.NewIceberg(t, 2, arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32})}, {Name: "k", Type: arrow.BinaryTypes.String}}, nil))
	d.Properties["schema.name-mapping.default"] = `[{"field-id":1,"names":["s","t"],"fields":[{"field-id":3,"names":["x"]},{"names":["none"]}]},{"field-id":2,"names":[]},{"field-id":9,"names":["gone"]}]`
	d.Commit()
	if got, want := columnsOf(t, d), "[{s  1 [s t] struct false [{x  3 [x] int32 false []}]} {k  2 [] string false []}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
