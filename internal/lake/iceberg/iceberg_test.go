package iceberg_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/deletes"
	"github.com/bloomjoin/bloomjoin/internal/lake/iceberg"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/internal/lake/roaring"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String},
	{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us}, {Name: "day", Type: arrow.FixedWidthTypes.Date32},
	{Name: "sum", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}}, {Name: "of", Type: arrow.FixedWidthTypes.Boolean},
}, nil)

// described returns the version of a table, its columns, if they are asked for, and its files: paths
// below the table, values and deleted rows.
func described(ctx context.Context, src storage.Source, name string, holds func([]lake.Bound) bool, columns bool) (string, error) {
	n, err := lake.ParseName(name)
	if err != nil {
		return "", err
	}
	s, err := iceberg.Open(ctx, src, n, holds != nil)
	if err != nil {
		return "", err
	}
	var files []string
	reader := new(deletes.Reader)
	skipped, err := s.Files(ctx, holds, func(f *lake.File) error {
		text := strings.TrimPrefix(f.Object.Name, s.Table().Location)
		for _, v := range f.Values {
			text += fmt.Sprintf(" %s=%s", v.Name, map[bool]string{true: "NULL", false: v.Text}[v.Null])
		}
		if f.Deleted != nil {
			m, err := reader.Rows(ctx, src, nil, f.Deleted)
			if err != nil {
				return err
			}
			if m != nil {
				text += fmt.Sprint(" without ", values(m))
			}
			for _, set := range f.Deleted.Keys {
				text += fmt.Sprint(" without keys ", s.Table().Keys[set].Columns, " of")
				for _, k := range s.Table().Keys[set].Files {
					if k.Seq > f.Deleted.Seq {
						text += " " + path.Base(k.Place)
					}
				}
			}
		}
		files = append(files, text)
		return nil
	})
	slices.Sort(files)
	text := s.Table().Version + ": "
	if columns {
		for _, c := range s.Table().Columns {
			text += fmt.Sprintf("%s %d %s, ", c.Name, c.ID, c.Type)
		}
	}
	if text += strings.Join(files, "; "); skipped > 0 {
		text += fmt.Sprintf(" (%d skipped)", skipped)
	}
	return text, err
}

func check(t *testing.T, name, want string) {
	t.Helper()
	checkIn(t, storage.Local(), name, want)
}

func checkIn(t *testing.T, src storage.Source, name, want string) {
	t.Helper()
	got, err := described(t.Context(), src, name, nil, false)
	if err != nil {
		got = err.Error()
	}
	if !strings.Contains(got+"\n", want) {
		t.Errorf("%s: %s, want %s", name, got, want)
	}
}

// inMetadata edits the metadata of a table, as it is written next.
func inMetadata(d *laketest.Iceberg, change func(m map[string]any)) {
	d.Edit = func(what string, of map[string]any) {
		if what == "metadata" {
			change(of)
		}
	}
}

// onEntry edits the entries of manifests whose file has a name.
func onEntry(d *laketest.Iceberg, name string, change func(e, file map[string]any)) {
	d.Edit = func(what string, of map[string]any) {
		if what != "entry" {
			return
		}
		if file := of["data_file"].(map[string]any); strings.HasSuffix(file["file_path"].(string), name) {
			change(of, file)
		}
	}
}

// Snapshots are named by what they are, and read with the right schema.
func TestSnapshots(t *testing.T) {
	d := laketest.NewIceberg(t, 2, schema)
	check(t, d.Name(), "none: \n")
	a, b := d.Add("a.parquet", "A", nil), d.Add("b.parquet", "BB", []int64{1, 5})
	d.Commit(a)
	d.Columns[1].Name = "renamed"
	d.Commit(b)
	d.Columns = d.Columns[:2]
	refs := map[string]any{}
	inMetadata(d, func(m map[string]any) {
		refs["main"] = m["refs"].(map[string]any)["main"]
		m["refs"] = refs
	})
	refs["old"] = map[string]any{"snapshot-id": 7_000_000_001, "type": "tag"}
	refs["work"] = map[string]any{"snapshot-id": 7_000_000_002, "type": "branch"}
	refs["gone"] = map[string]any{"snapshot-id": 1, "type": "tag"}
	d.Commit(laketest.Remove(a), laketest.Remove(b))
	all := "id 1 int64, %s 2 string, at 3 timestamptz, day 4 date, sum 5 decimal(9,2), of 6 boolean, "
	first, second := "7000000001: "+fmt.Sprintf(all, "name")+"a.parquet\n", "7000000002: "+fmt.Sprintf(all, "renamed")+"a.parquet; b.parquet without [0 4]\n"
	for which, want := range map[string]string{
		"": "7000000003: id 1 int64, renamed 2 string, \n", "@branch=main": "7000000003: id 1 int64, renamed 2 string, \n",
		"@snapshot=7000000003": "7000000003: id 1 int64, renamed 2 string, \n",
		"@snapshot=7000000002": second, "@snapshot=7000000001": first, "@tag=old": first,
		"@branch=work":              "7000000002: id 1 int64, renamed 2 string, a.parquet; b.parquet without [0 4]\n", // with the current schema
		"@2026-11-29T10:01:59.999Z": first, "@2026-11-29T11:02:00+01:00": second, "@2030-01-01T00:00:00Z": "7000000003: ",
		"@2026-11-29T10:00:59Z":          "the time: want one after the first snapshot in the table's log, got 2026-11-29T10:00:59Z",
		"@snapshot=7":                    "the snapshot: want one that the table has, got 7 (it may have expired: name a newer one)",
		"@snapshot=x":                    "the id of a snapshot: want an integer of 64 bits, got x",
		"@snapshot=99999999999999999999": "the id of a snapshot: want an integer of 64 bits",
		"@tag=gone":                      "the snapshot: want one that the table has, got 1", "@tag=work": `the tag: want one of the table, got "work"`, "@branch=old": `the branch: want one of the table, got "old"`,
	} {
		want = strings.Replace(want, "[0 4]", "[1 5]", 1)
		got, err := described(t.Context(), storage.Local(), d.Name()+which, nil, true)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got+"\n", want) {
			t.Errorf("%s: got  %s\nwant %s", which, got, want)
		}
	}
	inMetadata(d, func(m map[string]any) { delete(m, "refs"); delete(m, "snapshot-log") })
	d.Commit()
	check(t, d.Name()+"@branch=main", "7000000004: \n") // which tables without names have, too
	check(t, d.Name()+"@branch=other", `the branch: want one of the table, got "other"`)
	check(t, d.Name()+"@2030-01-01T00:00:00Z", "want one after the first snapshot")
	inMetadata(d, func(m map[string]any) { delete(m, "current-snapshot-id") })
	d.Commit()
	check(t, d.Name(), "none: \n")
}

// The log says which snapshot was current, not the times of snapshots; of two, the later in the log.
func TestTimes(t *testing.T) {
	d := laketest.NewIceberg(t, 1, schema)
	d.Commit()
	d.Commit()
	d.Commit()
	inMetadata(d, func(m map[string]any) {
		at := func(id, ms int64) any { return map[string]any{"snapshot-id": id, "timestamp-ms": ms} }
		m["snapshot-log"] = []any{at(7_000_000_002, 1000), at(7_000_000_001, 3000), at(7_000_000_003, 2500)}
	})
	d.Commit()
	for at, want := range map[string]string{"00.999": "want one after the first", "01": "7000000002: ", "02.499": "7000000002: ", "02.5": "7000000003: ", "03": "7000000003: "} {
		check(t, d.Name()+"@1970-01-01T00:00:"+at+"Z", want)
	}
}

// Tables of all versions, plain and compressed, divided and not.
func TestFormats(t *testing.T) {
	for format := 1; format <= 3; format++ {
		for _, gz := range []bool{false, true} {
			t.Run(fmt.Sprint(format, gz), func(t *testing.T) {
				d := laketest.NewIceberg(t, format, schema, "id", "day", "day(at)", "truncate[3](name)", "bucket[4](id)", "sum", "of")
				d.Gzip = gz
				gone, without := []int64{0, 5, 1 << 33}, " without [0 5 8589934592]"
				if format == 1 {
					gone, without = nil, ""
				}
				a := d.Add("x=1/a b%20.parquet", "A", gone, 7, 19000, 19001, "abc", 3, []byte{0, 0, 1, 0}, true)
				d.Commit(a, d.Add("b.parquet", "B", nil, nil, nil, nil, nil, nil, nil, nil))
				b := "b.parquet id=NULL day=NULL sum=NULL of=NULL"
				check(t, d.Name(), "7000000001: "+b+"; x=1/a b%20.parquet id=7 day=2022-01-08 sum=2.56 of=true"+without+"\n")
				d.Commit(laketest.Remove(a))
				check(t, d.Name(), "7000000002: "+b+"\n")
				d.Commit()
				check(t, d.Name(), "7000000003: "+b+"\n")
			})
		}
	}
}

// Versions 1 as old writers left them: one schema, one list of fields without ids, manifests in the metadata.
func TestOldMetadata(t *testing.T) {
	d := laketest.NewIceberg(t, 1, schema, "day")
	inMetadata(d, func(m map[string]any) {
		fields := m["schemas"].([]any)[0].(map[string]any)["fields"]
		m["schema"], m["partition-spec"] = map[string]any{"type": "struct", "fields": fields}, []any{map[string]any{"source-id": 4, "transform": "identity", "name": "day"}}
		for _, s := range m["snapshots"].([]any) {
			s := s.(map[string]any)
			list, err := filepath.Glob(filepath.Join(d.Dir, "metadata/m*.avro"))
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			s["manifests"] = []string{d.Location + "/metadata/" + filepath.Base(list[0])}
			delete(s, "manifest-list")
			delete(s, "schema-id")
		}
		for _, name := range []string{"schemas", "current-schema-id", "partition-specs", "default-spec-id", "refs"} {
			delete(m, name)
		}
	})
	d.Commit(d.Add("a.parquet", "A", nil, 3))
	check(t, d.Name(), "7000000001: a.parquet day=1970-01-04\n")
	b, err := os.ReadFile(filepath.Join(d.Dir, "metadata/v1.metadata.json"))
	if err != nil {
		t.Fatal(err)
	}
	specs := ""
	for i, want := range []string{"7000000001: a.parquet day=1970-01-04\n", "unsupported: a snapshot without a list of manifests, of a table with several partition specifications (let "} {
		specs += []string{"", ","}[i] + fmt.Sprintf(`{"spec-id":%d,"fields":[{"source-id":4,"field-id":1000,"transform":"identity"}]}`, i)
		d.Put("metadata/v1.metadata.json", strings.Replace(string(b), `"partition-spec":`, `"partition-specs":[`+specs+`],"partition-spec":`, 1))
		check(t, d.Name(), want)
	}
}

// A directory has a hint, which may be older than the table, or name a file.
func TestHints(t *testing.T) {
	d := laketest.NewIceberg(t, 2, schema)
	for range 3 {
		d.Commit()
	}
	hint := "metadata/version-hint.text"
	for text, want := range map[string]string{
		"3": "7000000003: ", " 2\n": "7000000003: ", "v1": "7000000003: ", "v3.metadata.json": "7000000003: ", "v2": "7000000003: ", "v2.metadata.json": "7000000002: ",
		"/elsewhere/v1.metadata.json": "7000000001: ",
		"4":                           `version-hint.text: mismatch: the hint: want the version of a metadata file beside it, got "4" (name the metadata file)`,
		"":                            `got ""`, "..": `got ".."`, "-1": `got "-1"`, "9223372036854775807": `got "92`, "99999999999999999999": `got "99`, "../../x": `got "../../x"`,
		strings.Repeat("x", 150): strings.Repeat("x", 100) + `" (`,
	} {
		d.Put(hint, text)
		check(t, d.Name(), want)
	}
	d.Put(hint, "1")
	for from, to := range map[string]string{"v1.metadata.json": "v1.gz.metadata.json", "v2.metadata.json": "v2.metadata.json.gz", "v3.metadata.json": "3.metadata.json"} {
		rename(t, d, "metadata/"+from, "metadata/"+to)
	}
	check(t, d.Name(), "7000000003: ")
	check(t, d.Name()+"/metadata/v2.metadata.json.gz", "7000000002: ")
	if err := os.Remove(filepath.Join(d.Dir, hint)); err != nil {
		t.Fatal(err)
	}
	check(t, d.Name(), "want metadata/version-hint.text, got none (name the metadata file that the table's catalog has; the newest is iceberg:"+d.Dir+"/metadata/")
	check(t, "iceberg:"+t.TempDir(), "want metadata/version-hint.text, got none")
	check(t, "iceberg:"+d.Dir+"/metadata/v9.metadata.json", "no such file")
	check(t, "iceberg:"+d.Dir+"/metadata", "want metadata/version-hint.text, got none")
}

func rename(t *testing.T, d *laketest.Iceberg, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(d.Dir, from), filepath.Join(d.Dir, to)); err != nil {
		t.Fatal(err)
	}
}

// A table that was copied is read where it is, if its metadata is there; else where it was.
func TestMoved(t *testing.T) {
	d := laketest.NewIceberg(t, 3, schema)
	d.Commit(d.Add("data/a.parquet", "A", []int64{2}))
	to := filepath.Join(t.TempDir(), "a b%20")
	if err := os.CopyFS(to, os.DirFS(d.Dir)); err != nil {
		t.Fatal(err)
	}
	n, err := lake.ParseName("iceberg:" + to)
	if err != nil {
		t.Fatal(err)
	}
	places := func(want string) {
		t.Helper()
		s, err := iceberg.Open(t.Context(), storage.Local(), n, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Files(t.Context(), nil, func(f *lake.File) error {
			if f.Object.Name != want+"/data/a.parquet" || f.Deleted.Place != want+"/deletes 1.puffin" {
				t.Errorf("%s, %s, want %s", f.Object.Name, f.Deleted.Place, want)
			}
			return nil
		})
		if err != nil || s.Table().Location != want+"/" {
			t.Errorf("%s, %v", s.Table().Location, err)
		}
	}
	places(to)
	if err := os.RemoveAll(d.Dir); err != nil {
		t.Fatal(err)
	}
	places(to)
	check(t, "iceberg:"+to, "7000000001: data/a.parquet without [2]\n")
	t.Chdir(filepath.Dir(to))
	check(t, "iceberg:"+filepath.Base(to)+"/metadata/v1.metadata.json", "7000000001: data/a.parquet without [2]\n")
	check(t, "iceberg:file://"+strings.ReplaceAll(strings.ReplaceAll(to, "%", "%25"), " ", "%20"), "7000000001: data/a.parquet without [2]\n")
	if err := os.Symlink(to, d.Dir); err == nil { // it is the same place: names are those of the metadata
		places(d.Dir)
	}
	rename(t, &laketest.Iceberg{Table: laketest.Table{Dir: to}}, "metadata/v1.metadata.json", "v1.metadata.json")
	check(t, "iceberg:"+to+"/v1.metadata.json", "7000000001: data/a.parquet without [2]\n")
}

// A table that was made at a URL and copied is found beside its metadata, in whatever place.
func TestCopied(t *testing.T) {
	for _, location := range []string{"hdfs://h:8020/w/t", "hdfs:///w/t", "s3://b/t", "s3a://b/t", "gs://b/t", "abfss://c@a.dfs.core.windows.net/t", "s3://b", "https://h/t", "/w//t", "file:/w/t"} {
		d := laketest.NewIceberg(t, 3, schema)
		d.Location = location
		d.Commit(d.Add("data/k=%20 é/a.parquet", "A", []int64{2}))
		const files = "data/k=%20 é/a.parquet without [2]"
		check(t, d.Name(), "7000000001: "+files+"\n")
		check(t, d.Name()+"/metadata/v1.metadata.json", "7000000001: "+files+"\n")
		d.Location = "s3://other/dir"
		if s := stored(t, d); !strings.HasPrefix(location, "s3") { // as in a store
			checkIn(t, s, "iceberg:s3://other/dir", "7000000001: "+files+"\n")
		}
		// Files that are not below the directory are not looked for in the copy.
		d.Location = location
		onEntry(d, "b.parquet", func(_, file map[string]any) { file["file_path"] = location + "2/b.parquet" })
		d.Commit(d.Add("b.parquet", "B", nil))
		if want := `a file of a table in another place: "` + location + `2/b.parquet"`; strings.Contains(location, "://") {
			check(t, d.Name(), want)
		}
		// If only the metadata was copied, the list is where it was.
		if err := os.Remove(filepath.Join(d.Dir, "metadata/snap-1.avro")); err != nil {
			t.Fatal(err)
		}
		if want := "/metadata/snap-1.avro: unsupported: "; strings.Contains(location, "://") {
			check(t, d.Name()+"@snapshot=7000000001", want)
		} else {
			check(t, d.Name()+"@snapshot=7000000001", "/metadata/snap-1.avro: no such file")
		}
	}
}

// Paths are those of files, whatever their characters; the directory may be spelled in other ways.
func TestPaths(t *testing.T) {
	for _, how := range []func(dir string) string{
		func(dir string) string { return dir }, func(dir string) string { return "file:" + dir },
		func(dir string) string { return "file://" + dir }, func(dir string) string { return dir + "/." },
		func(string) string { return "." }, func(string) string { return "file:." }, func(string) string { return "file://./" },
	} {
		d := laketest.NewIceberg(t, 2, schema)
		t.Chdir(d.Dir)
		d.Location = how(d.Dir)
		d.Commit(d.Add("k=%20 +é?#/a b%41.parquet", "A", []int64{3}))
		check(t, d.Name(), "k=%20 +é?#/a b%41.parquet without [3]\n")
	}
}

// Metadata names files in its own kind of storage, or none is read.
func TestElsewhere(t *testing.T) {
	d := laketest.NewIceberg(t, 2, schema)
	for path, want := range map[string]string{
		"http://localhost:1/a.parquet": `a file of a table in another place: "http://localhost:1/a.parquet" (copy the table with its files)`,
		"s3://b/a.parquet":             "in another place", "s3a://b/a.parquet": "in another place", "https://u:pw@h/a?sig=x": `"https://`, "/etc/a.parquet": ": /etc/a.parquet\n",
	} {
		onEntry(d, "a.parquet", func(_, file map[string]any) { file["file_path"] = path })
		d.Commit(d.Add("a.parquet", "A", nil))
		check(t, d.Name(), want)
		if got, err := described(t.Context(), storage.Local(), d.Name(), nil, false); strings.Contains(got+fmt.Sprint(err), "pw") || strings.Contains(got+fmt.Sprint(err), "sig=x") {
			t.Errorf("%s, %v", got, err)
		}
		d.Edit = nil
		d.Commit(laketest.Remove(d.Again("a.parquet", 1, nil)))
	}
	d.Edit = func(what string, of map[string]any) {
		if what == "list" {
			of["manifest_path"] = "gs://b/m.avro"
		}
	}
	d.Commit(d.Add("a.parquet", "A", nil))
	check(t, d.Name(), `in another place: "gs://b/m.avro"`)
}

// stored copies a table of another place into memory.
func stored(t testing.TB, d *laketest.Iceberg) *teststore.Memory {
	t.Helper()
	s := teststore.NewMemory()
	err := filepath.WalkDir(d.Dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		s.Put(d.Location+strings.TrimPrefix(name, d.Dir), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Metadata in a store names no local files, and none on another kind of server, whatever it says of itself.
func TestFromStore(t *testing.T) {
	d := laketest.NewIceberg(t, 3, schema)
	d.Location = "s3://b/t"
	d.Commit(d.Add("a.parquet", "A", []int64{4}))
	checkIn(t, stored(t, d), "iceberg:s3://b/t", "7000000001: a.parquet without [4]\n")
	d.Location = "s3a://b/t"
	d.Commit(d.Add("b.parquet", "B", nil))
	d.Location = "s3://b/t"
	checkIn(t, stored(t, d), "iceberg:s3://b/t", "7000000002: a.parquet without [4]; b.parquet\n")
	for _, location := range []string{"/etc", "file:///etc", "http://localhost/t", "relative"} {
		d := laketest.NewIceberg(t, 2, schema)
		d.Location = location
		d.Commit(d.Add("a.parquet", "A", nil))
		s := stored(t, d)
		for _, dir := range []string{"s3://b/other", "https://h/other"} {
			b, _ := s.Get(location + "/metadata/v1.metadata.json")
			s.Put(dir+"/v1.metadata.json", b)
			if want := "in another place"; dir[:4] != location[:4] {
				checkIn(t, s, "iceberg:"+dir+"/v1.metadata.json", want)
			}
		}
	}
}

// catalog is a source with a catalog.
type catalog struct {
	storage.Source
	metadata []byte
	asked    []string
}

func (c *catalog) LoadTable(_ context.Context, catalog, table string, _ bool) (*objects.CatalogTable, error) {
	c.asked = append(c.asked, catalog+" "+table)
	return &objects.CatalogTable{MetadataLocation: "s3://elsewhere/v1.metadata.json", Metadata: c.metadata, Grants: true}, nil
}

// A catalog gives the metadata itself.
func TestCatalog(t *testing.T) {
	d := laketest.NewIceberg(t, 3, schema)
	d.Location = "s3://b/t"
	d.Commit(d.Add("a.parquet", "A", []int64{4}))
	s := stored(t, d)
	b, ok := s.Get("s3://b/t/metadata/v1.metadata.json")
	if !ok {
		t.Fatal(s.Names())
	}
	c := &catalog{Source: s, metadata: b}
	name := "rest:https://catalog/api#web.events"
	checkIn(t, c, name+"@branch=main", "7000000001: a.parquet without [4]\n")
	checkIn(t, c, name+"@tag=x", name+`@tag=x: mismatch: the tag: want one of the table, got "x"`)
	if want := []string{"https://catalog/api web.events", "https://catalog/api web.events"}; !slices.Equal(c.asked, want) {
		t.Errorf("%q", c.asked)
	}
	n, err := lake.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := iceberg.Open(t.Context(), c, n, false)
	if err != nil || opened.Table().Catalog != "https://catalog/api#web.events" || opened.Table().Location != "s3://b/t/" {
		t.Errorf("%+v, %v", opened.Table(), err)
	}
	c.metadata = []byte("{")
	checkIn(t, c, name, name+": corrupt: the metadata of an Iceberg table")
	checkIn(t, s, name, "names of catalogs need storage/cloud")
}

// A table that is divided in another way, and whose columns have got wider types, keeps its values.
func TestEvolution(t *testing.T) {
	narrow := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int32}, {Name: "f", Type: arrow.PrimitiveTypes.Float32}, {Name: "d", Type: &arrow.Decimal128Type{Precision: 5, Scale: 1}}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	d := laketest.NewIceberg(t, 2, narrow, "n", "f", "d", "s")
	a := d.Add("a.parquet", "A", nil, -1, 0.1, []byte{0xff, 0xff, 0xf6}, "x")
	d.Commit(a)
	d.Columns[0].Type, d.Columns[1].Type, d.Columns[2].Type = "long", "double", "decimal(30, 1)"
	d.Commit(d.Add("b.parquet", "B", nil, int64(-1), 0.1, append(slices.Repeat([]byte{0xff}, 12), 0xf6), "x"))
	check(t, d.Name(), "a.parquet n=-1 f=0.10000000149011612 d=-1.0 s=x; b.parquet n=-1 f=0.1 d=-1.0 s=x\n")
	check(t, d.Name()+"@snapshot=7000000001", "a.parquet n=-1 f=0.10000000149011612 d=-1.0 s=x\n")
	// A column that was dropped has no value.
	d.Edit = nil
	d.Columns = slices.Delete(d.Columns, 2, 3)
	d.Commit(d.Add("e.parquet", "E", nil, nil, nil, nil, nil))
	check(t, d.Name(), "a.parquet n=-1 f=0.10000000149011612 s=x; b.parquet n=-1 f=0.1 s=x; e.parquet n=NULL f=NULL s=NULL\n")
}

// Rows of a partition are deleted by a file that has its values in a wider type.
func TestWiderPartition(t *testing.T) {
	d := laketest.NewIceberg(t, 2, schema, "sum")
	d.Commit(d.Add("a.parquet", "A", nil, []byte{0xff, 0xff, 0xff, 0xf6}), d.Add("b.parquet", "B", nil, []byte{0, 0, 0, 0xf6}))
	d.Columns[4].Type = "decimal(30, 2)"
	for _, c := range []struct {
		first byte
		want  string
	}{{0xff, "a.parquet sum=-0.10 without [9]; b.parquet sum=2.46\n"}, {0, "a.parquet sum=-0.10; b.parquet sum=2.46 without []\n"}} {
		onEntry(d, ".parquet", func(_, file map[string]any) {
			if file["content"] == 1 {
				file["partition"] = map[string]any{"by 0": append(bytes.Repeat([]byte{c.first}, 12), 0xf6)}
				file["lower_bounds"], file["referenced_data_file"] = nil, nil
				file["upper_bounds"] = nil
			}
		})
		again := d.Again("a.parquet", 1, []int64{9}, make([]byte, 13))
		d.Commit(again)
		check(t, d.Name(), c.want)
		d.Commit(d.Again("a.parquet", 1, nil, make([]byte, 13)))
	}
}

// parquetOf returns a Parquet file of rows.
func parquetOf[T any](t testing.TB, rows ...T) string {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// values returns the values of a bitmap.
func values(m *roaring.Bitmap) (all []int64) {
	at := int64(0)
	for _, gap := range append(m.Without(0, m.End()), [2]int64{m.End(), 0}) {
		for ; at < gap[0]; at++ {
			all = append(all, at)
		}
		at = gap[1]
	}
	return all
}
