package delta_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/deletes"
	"github.com/bloomjoin/bloomjoin/internal/lake/delta"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/storage"
)

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String},
	{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us}, {Name: "day", Type: arrow.FixedWidthTypes.Date32},
}, nil)

// shown describes the files of a version: paths below the table, values and deleted rows.
func shown(t *testing.T, name string) (string, error) {
	t.Helper()
	n, err := lake.ParseName(name)
	if err != nil {
		return "", err
	}
	s, err := delta.Open(t.Context(), storage.Local(), n, true)
	if err != nil {
		return "", err
	}
	var files []string
	_, err = s.Files(t.Context(), nil, func(f *lake.File) error {
		text := strings.TrimPrefix(f.Object.Name, s.Table().Location)
		for _, v := range f.Parts {
			text += fmt.Sprintf(" %s,%t", v.Text, v.Null)
		}
		if f.Deleted != nil {
			m, err := new(deletes.Reader).Rows(t.Context(), storage.Local(), nil, f.Deleted)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" without %d", m.Count())
		}
		files = append(files, text)
		return nil
	})
	return s.Table().Version + ": " + strings.Join(files, "; "), err
}

func check(t *testing.T, name, want string) {
	t.Helper()
	got, err := shown(t, name)
	if err != nil {
		got = err.Error()
	}
	if !strings.Contains(got, want) {
		t.Errorf("%s: %s, want %s", name, got, want)
	}
}

// Versions and times: a file that gets another vector stays, and an action's place in its commit does not matter.
func TestVersions(t *testing.T) {
	d := laketest.New(t, schema, nil, "day")
	a, b := d.Add("day=1/a b%.parquet", "AA", nil, "2024-01-01"), d.Add("b.parquet", "B", nil, nil)
	d.Commit(a, b)
	again := d.Again("day=1/a b%.parquet", 2, []int64{0, 5, 1 << 33}, "2024-01-01")
	d.Commit(again, laketest.Remove(a)) // the remove comes last, and before in effect
	d.Commit(laketest.Remove(b), d.Again("b.parquet", 1, []int64{7, 8}, ""))
	check(t, d.Name(), "3: b.parquet ,true without 2; day=1/a b%.parquet 2024-01-01,false without 3")
	check(t, d.Name()+"@v1", "1: b.parquet ,true; day=1/a b%.parquet 2024-01-01,false")
	check(t, d.Name()+"@v0", "0: ")
	check(t, d.Name()+"@v4", "the version of the table: want up to 3, got 4")
	for i := range 4 {
		at := time.Date(2026, 11, 29, 10, i, 0, 0, time.UTC)
		if i == 2 {
			at = at.Add(-time.Hour) // another machine's clock: it counts as 1 ms after the commit before
		}
		if err := os.Chtimes(filepath.Join(d.Dir, fmt.Sprintf("_delta_log/%020d.json", i)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[string]string{"10:00:00Z": "0: ", "10:01:00Z": "1: ", "10:01:00.001Z": "2: ", "11:02:59+01:00": "2: ", "23:00:00Z": "3: "} {
		check(t, d.Name()+"@2026-11-29T"+at, want)
	}
	check(t, d.Name()+"@2026-11-29T09:59:59Z", "want one after the first commit")
	check(t, d.Name()+"@2026-11-29", "a time with a zone")
	check(t, d.Name()+"@0001-01-01T00:00:00Z", "a time with a zone") // which is not the newest
	check(t, "delta:", "want delta:DIRECTORY, got no directory")
	d.Put("_delta_log/00000000000000000004.json", `{"commitInfo":{"inCommitTimestamp":1900000000000}}`+"\n")
	check(t, d.Name()+"@2030-03-17T17:46:39.999Z", "3: ")
	check(t, d.Name()+"@2030-03-17T17:46:40Z", "4: ")
	if err := os.Remove(filepath.Join(d.Dir, "_delta_log/00000000000000000002.json")); err != nil {
		t.Fatal(err)
	}
	check(t, d.Name(), "the log lacks version 2")
}

// A file that is removed and added with the same vector, or none, in one commit stays.
func TestAddedAgain(t *testing.T) {
	d := laketest.New(t, schema, nil, "day")
	a, b := d.Add("a.parquet", "A", nil, nil), d.Add("b.parquet", "B", []int64{1, 2}, nil)
	d.Commit(a, b)
	d.Commit(a, laketest.Remove(b), laketest.Remove(a), b)
	check(t, d.Name(), "2: a.parquet ,true; b.parquet ,true without 2")
	d.Commit(laketest.Remove(d.Again("a.parquet", 1, []int64{1, 2}, nil)), laketest.Remove(d.Again("b.parquet", 1, []int64{1, 4}, nil)))
	check(t, d.Name(), "3: a.parquet ,true; b.parquet ,true without 2") // other vectors are other files
}

// row is a row of a checkpoint in Parquet.
type row struct {
	Protocol *struct {
		Reader   int32    `parquet:"minReaderVersion"`
		Features []string `parquet:"readerFeatures,list"`
	} `parquet:"protocol,optional"`
	Metadata *struct {
		ID         string            `parquet:"id"`
		Schema     string            `parquet:"schemaString"`
		Partitions []string          `parquet:"partitionColumns,list"`
		Config     map[string]string `parquet:"configuration"`
	} `parquet:"metaData,optional"`
	Add *struct {
		Path   string             `parquet:"path"`
		Values map[string]*string `parquet:"partitionValues"`
		Size   int64              `parquet:"size"`
	} `parquet:"add,optional"`
	Remove *struct {
		Path string `parquet:"path"`
	} `parquet:"remove,optional"`
	Sidecar *struct {
		Path string `parquet:"path"`
		Size int64  `parquet:"sizeInBytes"`
	} `parquet:"sidecar,optional"`
}

func checkpoint(t testing.TB, rows ...row) string {
	t.Helper()
	var b bytes.Buffer
	if err := pq.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// heads are the rows of a checkpoint that say what a table is.
func heads(d *laketest.Table) []row {
	var p, m row
	p.Protocol = &struct {
		Reader   int32    `parquet:"minReaderVersion"`
		Features []string `parquet:"readerFeatures,list"`
	}{3, []string{"deletionVectors", "v2Checkpoint", "timestampNtz"}}
	md := d.Metadata()[1].(map[string]any)["metaData"].(map[string]any)
	m.Metadata = &struct {
		ID         string            `parquet:"id"`
		Schema     string            `parquet:"schemaString"`
		Partitions []string          `parquet:"partitionColumns,list"`
		Config     map[string]string `parquet:"configuration"`
	}{"x", md["schemaString"].(string), md["partitionColumns"].([]string), map[string]string{}}
	return []row{p, m}
}

func adding(path string, day *string) (r row) {
	r.Add = &struct {
		Path   string             `parquet:"path"`
		Values map[string]*string `parquet:"partitionValues"`
		Size   int64              `parquet:"size"`
	}{path, map[string]*string{"day": day}, 1}
	return r
}

// Checkpoints of all forms replace the commits before them. Unfinished ones, and the hint at the
// last, do not count.
func TestCheckpoints(t *testing.T) {
	day := "2024-02-03"
	v1 := func(d *laketest.Table) map[string]string {
		gone := row{}
		gone.Remove = &struct {
			Path string `parquet:"path"`
		}{"a.parquet"} // for those who delete files
		return map[string]string{"00000000000000000001.checkpoint.parquet": checkpoint(t, append(heads(d), adding("a.parquet", &day), gone)...)}
	}
	parts := func(d *laketest.Table) map[string]string {
		return map[string]string{
			"00000000000000000001.checkpoint.0000000001.0000000002.parquet": checkpoint(t, heads(d)...),
			"00000000000000000001.checkpoint.0000000002.0000000002.parquet": checkpoint(t, adding("a.parquet", &day)),
		}
	}
	v2 := func(d *laketest.Table) map[string]string {
		side := row{}
		side.Sidecar = &struct {
			Path string `parquet:"path"`
			Size int64  `parquet:"sizeInBytes"`
		}{"s.parquet", 1}
		return map[string]string{
			"00000000000000000001.checkpoint.11111111-1111-1111-1111-111111111111.parquet": checkpoint(t, append(heads(d), side)...),
			"_sidecars/s.parquet": checkpoint(t, adding("a.parquet", &day)),
		}
	}
	text := func(d *laketest.Table) map[string]string {
		commit, err := os.ReadFile(filepath.Join(d.Dir, "_delta_log/00000000000000000000.json"))
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{
			"00000000000000000001.checkpoint.11111111-1111-1111-1111-111111111111.json": string(commit) + `{"sidecar":{"path":"s.parquet","sizeInBytes":1}}` + "\n",
			"_sidecars/s.parquet": checkpoint(t, adding("a.parquet", &day)),
		}
	}
	for name, files := range map[string]func(*laketest.Table) map[string]string{"v1": v1, "parts": parts, "v2": v2, "json": text} {
		t.Run(name, func(t *testing.T) {
			d := laketest.New(t, schema, nil, "day")
			d.Commit(d.Add("a.parquet", "A", nil, day))
			d.Commit(d.Add("b.parquet", "B", nil, nil))
			made := files(d)
			for _, f := range slices.Sorted(maps.Keys(made)) {
				d.Put("_delta_log/"+f, made[f])
			}
			d.Put("_delta_log/_last_checkpoint", "{damaged")
			d.Put("_delta_log/00000000000000000002.checkpoint.parquet", "")
			d.Put("_delta_log/00000000000000000002.checkpoint.0000000001.0000000002.parquet", "half")
			for _, commit := range []string{"0", "1"} {
				if err := os.Remove(filepath.Join(d.Dir, "_delta_log/0000000000000000000"+commit+".json")); err != nil {
					t.Fatal(err)
				}
			}
			check(t, d.Name(), "2: a.parquet 2024-02-03,false; b.parquet ,true")
			check(t, d.Name()+"@v1", "1: a.parquet 2024-02-03,false")
			check(t, d.Name()+"@v0", "the log lacks version 0")
		})
	}
}

// What a reader would have to know of is refused by name.
func TestRefused(t *testing.T) {
	meta := func(schema, configuration string) string {
		return `{"metaData":{"id":"x","format":{"provider":"parquet"},"schemaString":"{\"type\":\"struct\",\"fields\":[` + strings.ReplaceAll(schema, `"`, `\"`) + `]}","partitionColumns":[],"configuration":{` + configuration + `}}}`
	}
	protocol := func(features string) string {
		return `{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[` + features + `]}}`
	}
	field := `{"name":"a","type":"long","nullable":true,"metadata":{}}`
	for name, c := range map[string]struct{ commit, want string }{
		"version":  {`{"protocol":{"minReaderVersion":4}}` + "\n" + meta(field, ""), "readers of version 4"},
		"feature":  {protocol(`"typeWidening"`) + "\n" + meta(field, ""), `the feature "typeWidening"`},
		"catalog":  {protocol(`"catalogManaged"`) + "\n" + meta(field, ""), `the feature "catalogManaged"`},
		"variant":  {protocol(`"variantType"`) + "\n" + meta(`{"name":"v","type":"variant","metadata":{}}`, ""), `columns of type "variant"`},
		"listed":   {protocol(`"variantType"`) + "\n" + meta(field, ""), "0: "}, // no column has the type
		"mapping":  {protocol("") + "\n" + meta(field, `"delta.columnMapping.mode":"name"`), "does not list"},
		"mode":     {protocol(`"columnMapping"`) + "\n" + meta(field, `"delta.columnMapping.mode":"other"`), `by "other"`},
		"unnamed":  {protocol(`"columnMapping"`) + "\n" + meta(field, `"delta.columnMapping.mode":"name"`), "no name in files"},
		"twice":    {protocol("") + "\n" + meta(field+","+strings.Replace(field, "a", "A", 1), ""), "two fields of that name"},
		"schema":   {protocol("") + "\n" + meta(`{"name":"a","type":{"type":"tuple"}}`, ""), "tuple"},
		"protocol": {meta(field, ""), "without a protocol"},
		"metadata": {protocol(""), "without metadata"},
		"no json":  {"{", "line 1 is no action"},
		"storage":  {protocol("") + "\n" + meta(field, "") + "\n" + `{"add":{"path":"p","size":1,"partitionValues":{},"deletionVector":{"storageType":"q","pathOrInlineDv":"x","sizeInBytes":9,"cardinality":1}}}`, `stored as "q"`},
		"z85":      {protocol("") + "\n" + meta(field, "") + "\n" + `{"add":{"path":"p","size":1,"partitionValues":{},"deletionVector":{"storageType":"i","pathOrInlineDv":"~~~~~","sizeInBytes":4,"cardinality":1}}}`, "Z85"},
		"untyped":  {protocol("") + "\n" + meta(field, "") + "\n" + `{"add":{"path":"p","size":1,"partitionValues":{},"deletionVector":{"pathOrInlineDv":"x","sizeInBytes":9,"cardinality":1}}}`, `stored as ""`},
		"path":     {protocol("") + "\n" + meta(field, "") + "\n" + `{"add":{"path":"%zz","size":1,"partitionValues":{}}}`, "no URL"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "_delta_log"), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "_delta_log", fmt.Sprintf("%020d.json", 0)), []byte(c.commit), 0o600); err != nil {
				t.Fatal(err)
			}
			check(t, "delta:"+dir, c.want)
		})
	}
	check(t, "delta:"+t.TempDir(), "want _delta_log/ with commits, got none")
}

// A vector whose length, checksum or number of rows is another than the log says is refused.
func TestDamagedVectors(t *testing.T) {
	for name, c := range map[string]struct {
		at   int // of the file of vectors, -1: none
		was  string
		now  string // in the commit
		want string
	}{
		"whole":    {-1, "", "", "1: a.parquet ,true without 3"},
		"length":   {4, "", "", "bytes of a deletion vector"},
		"magic":    {5, "", "", "the checksum of a deletion vector"},
		"value":    {40, "", "", "the checksum of a deletion vector"},
		"checksum": {-2, "", "", "the checksum of a deletion vector"},
		"fewer":    {-1, `"cardinality":3`, `"cardinality":2`, "rows of a deletion vector: want 2, got 3"},
		"more":     {-1, `"cardinality":3`, `"cardinality":4`, "rows of a deletion vector: want 4, got 3"},
		"offset":   {-1, `"offset":1`, `"offset":2`, "a deletion vector of "},
		"negative": {-1, `"offset":1`, `"offset":-1`, "a deletion vector of "},
	} {
		t.Run(name, func(t *testing.T) {
			d := laketest.New(t, schema, nil, "day")
			d.Commit(d.Add("a.parquet", "A", []int64{1, 5, 9}, nil))
			change := func(name string, change func(b []byte) []byte) {
				name = filepath.Join(d.Dir, name)
				b, err := os.ReadFile(name)
				if err == nil {
					err = os.WriteFile(name, change(b), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			change("vectors 1.bin", func(b []byte) []byte {
				if at := c.at; at == -2 {
					b[len(b)-1] ^= 1
				} else if at >= 0 {
					b[at] ^= 1
				}
				return b
			})
			change("_delta_log/00000000000000000001.json", func(b []byte) []byte {
				if c.was != "" && !bytes.Contains(b, []byte(c.was)) {
					t.Fatalf("%s is not in %s", c.was, b)
				}
				return bytes.Replace(b, []byte(c.was), []byte(c.now), 1)
			})
			check(t, d.Name(), c.want)
		})
	}
}

// A commit may be a link: without it, the version would be an older one.
func TestLinkedCommit(t *testing.T) {
	d := laketest.New(t, schema, nil, "day")
	d.Commit(d.Add("a.parquet", "A", nil, nil))
	at := filepath.Join(d.Dir, "_delta_log/00000000000000000001.json")
	if err := os.Rename(at, filepath.Join(d.Dir, "commit")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(d.Dir, "commit"), at); err != nil {
		t.Skip(err)
	}
	check(t, d.Name(), "1: a.parquet")
}

// A checkpoint names sidecars in the table's own storage, or nothing is read.
func TestSidecarElsewhere(t *testing.T) {
	for path, want := range map[string]string{"http://localhost:1/s.parquet": "in another place", "s3://b/s.parquet": "in another place", "_delta_log/_sidecars/s%20.parquet": "1: a.parquet"} {
		d := laketest.New(t, schema, nil, "day")
		d.Commit(d.Add("a.parquet", "A", nil, nil))
		side := row{}
		side.Sidecar = &struct {
			Path string `parquet:"path"`
			Size int64  `parquet:"sizeInBytes"`
		}{path, 1}
		d.Put("_delta_log/00000000000000000001.checkpoint.11111111-1111-1111-1111-111111111111.parquet", checkpoint(t, append(heads(d), side)...))
		d.Put("_delta_log/_sidecars/s .parquet", checkpoint(t, adding("a.parquet", nil)))
		check(t, d.Name(), want)
	}
}
