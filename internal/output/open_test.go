package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A file's first bytes determine its format, whatever its name; if they do not, its
// name does.
func TestOpenFormats(t *testing.T) {
	dir := t.TempDir()
	ids := func() arrow.Record {
		return sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1, 2, 3}})
	}
	parquet := sourcetest.Get(t, sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 2, ids()))
	arrowFile := sourcetest.Get(t, sourcetest.Write(t, filepath.Join(dir, "a.arrow"), 2, ids()))
	stream := roomtest.StreamOf(t, ids())
	for _, c := range []struct {
		name, content string
		format        dataset.Format
		rows          int64 // -1: not known in advance
		groups        int
	}{
		{"a.parquet", parquet, dataset.Parquet, 3, 2},
		{"part-00000", parquet, dataset.Parquet, 3, 2},
		{"a.csv", parquet, dataset.Parquet, 3, 2},
		{"a.arrow", arrowFile, dataset.ArrowFile, 3, 2},
		{"a.parquet", arrowFile, dataset.ArrowFile, 3, 2},
		{"a.feather", arrowFile, dataset.ArrowFile, 3, 2},
		{"a.arrows", stream, dataset.ArrowStream, -1, 1},
		{"a.parquet", stream, dataset.ArrowStream, -1, 1},
		{"a.csv", "id\n1\n", dataset.CSV, -1, 1},
		{"a.CSV", "id\n1\n", dataset.CSV, -1, 1},
		{"a.tsv", "id\tx\n1\t2\n", dataset.TSV, -1, 1},
		{"a.ndjson", "{\"id\":1}\n", dataset.NDJSON, -1, 1},
		{"a.jsonl", "{\"id\":1}\n", dataset.NDJSON, -1, 1},
		{"a.txt", "1\n", dataset.Lines, -1, 1},
		{"a.ids", "1\n", dataset.Lines, -1, 1},
		{"a", "1\n", dataset.Lines, -1, 1},
		{"b", "1", dataset.Lines, -1, 1},
		{"empty.txt", "", dataset.Lines, -1, 1},
	} {
		name := sourcetest.Put(t, filepath.Join(t.TempDir(), c.name), c.content)
		f := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Mem: sourcetest.Checked(t)}}, name)[0]
		if f.Format() != c.format || f.Rows() != c.rows || f.NumGroups() != c.groups || f.Size() != int64(len(c.content)) || f.Rel() != c.name || f.Once() {
			t.Errorf("%s: %s, %d rows in %d groups, %d bytes", c.name, f.Format(), f.Rows(), f.NumGroups(), f.Size())
		}
		_, err := source.Open(t.Context(), []string{name}, source.Opening{OpenOptions: source.OpenOptions{}})
		if source.IsText(c.format) {
			sourcetest.Says(t, c.name+" as a log", err, nil, c.name, "neither a Parquet nor an Arrow file")
		}
	}
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	parquet := sourcetest.Get(t, sourcetest.Write(t, filepath.Join(dir, "whole.parquet"), 2, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1, 2, 3}})))
	for name, content := range map[string]string{
		"cut.parquet": parquet[:len(parquet)-7], "head.parquet": parquet[:20], "empty.parquet": "", "text.parquet": "1\n2\n",
		"encrypted.parquet": "PARE" + parquet[4:], "cut.arrow": "ARROW1\x00\x00", "no.arrow": "hello",
		"other-head": "par1" + parquet[4:], "other-head-arrow": "xxxxxx\nARROW1",
	} {
		path := sourcetest.Put(t, filepath.Join(dir, name), content)
		for _, text := range []bool{false, true} {
			files, err := source.Open(t.Context(), []string{path}, source.Opening{OpenOptions: source.OpenOptions{Text: text}})
			if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) && (text || !errors.Is(err, source.ErrNoData)) || files != nil {
				t.Errorf("%s, text allowed: %v: %v", name, text, err)
				continue
			}
			sourcetest.Says(t, name, err, nil, path)
		}
	}
	_, err := source.Open(t.Context(), []string{filepath.Join(dir, "nowhere.parquet")}, source.Opening{OpenOptions: source.OpenOptions{}})
	sourcetest.Says(t, "no file", err, fs.ErrNotExist, "nowhere.parquet")
	_, err = source.Open(t.Context(), []string{"s3://bucket/logs/"}, source.Opening{OpenOptions: source.OpenOptions{}})
	sourcetest.Says(t, "an object store", err, fault.ErrUnsupported, "unsupported", "s3://")
	_, err = source.Open(t.Context(), []string{"-"}, source.Opening{OpenOptions: source.OpenOptions{}})
	sourcetest.Says(t, "standard input as a log", err, nil, "standard input", "name a file")
}

func TestOpenDirectory(t *testing.T) {
	dir := t.TempDir()
	ids := func() arrow.Record {
		return sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}})
	}
	sourcetest.Write(t, filepath.Join(dir, "y=1/b.parquet"), 1, ids())
	sourcetest.Write(t, filepath.Join(dir, "a.arrow"), 1, ids())
	for _, name := range []string{"README.md", "license", "y=1/NOTICE.txt", ".a.arrow.crc", "a.arrow.crc", "y=1_$folder$"} {
		sourcetest.Put(t, filepath.Join(dir, name), "not data")
	}
	sourcetest.Put(t, filepath.Join(dir, "nothing.dat"), "")
	sourcetest.Put(t, filepath.Join(dir, "_SUCCESS"), "")
	sourcetest.Put(t, filepath.Join(dir, ".x.parquet.0123.tmp"), "PAR1")
	var got []string
	for _, f := range roomtest.Open(t, source.Opening{}, dir) {
		got = append(got, f.Rel())
	}
	sourcetest.Equal(t, "files", got, []string{"a.arrow", "y=1/b.parquet"})
	// Files that may be data are not skipped: they may have rows.
	for _, name := range []string{"part-00001", "rest.csv", "more.orc", "day2.txt", "notes.md", "x.xml", "y=1/make.py", "page.html", "README2", "license.csv", "y=1/Notice.jsonl.gz"} {
		sourcetest.Put(t, filepath.Join(dir, name), "damaged, or in another format")
		_, err := source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{}})
		sourcetest.Says(t, "a stray file", err, nil, name, "Exclude "+filepath.Base(name))
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// As an ID set, a file with the name of a text file is one.
	sourcetest.Put(t, filepath.Join(dir, "c.csv"), "id\n1\n")
	sourcetest.Put(t, filepath.Join(dir, "license.csv"), "id\n2\n")
	sourcetest.Put(t, filepath.Join(dir, "license.txt"), "not data")
	got = nil
	for _, f := range roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true}}, dir) {
		got = append(got, f.Rel())
	}
	sourcetest.Equal(t, "files with text", got, []string{"a.arrow", "c.csv", "license.csv", "y=1/b.parquet"})

	none := t.TempDir()
	for _, name := range []string{"readme.md", "b.x", "c", "d", "e"} {
		sourcetest.Put(t, filepath.Join(none, name), "no data")
	}
	_, err := source.Open(t.Context(), []string{none}, source.Opening{OpenOptions: source.OpenOptions{}})
	sourcetest.Says(t, "a directory without data", err, nil, none, "Parquet or Arrow", "b.x, c, d, …")
	_, err = source.Open(t.Context(), []string{none}, source.Opening{OpenOptions: source.OpenOptions{Text: true}})
	sourcetest.Says(t, "a directory without IDs", err, nil, none, "CSV")
	if err := os.WriteFile(filepath.Join(dir, "y=1/bad.parquet"), []byte("PAR1 cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{}})
	sourcetest.Says(t, "a damaged file in a directory", err, fault.ErrCorrupt, "bad.parquet")
}

// Include and Exclude select files of directories and patterns; they do not apply to files that are
// named.
func TestIncludeExclude(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.parquet", "b.arrow", "y=1/c.parquet", "y=2/c.parquet", "y=2/LICENSE.parquet"} {
		sourcetest.Write(t, filepath.Join(dir, name), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
	}
	for _, name := range []string{"notes.txt", "y=1/rest.csv", "README"} {
		sourcetest.Put(t, filepath.Join(dir, name), "1\n")
	}
	for _, c := range []struct{ include, exclude, want, passed []string }{
		{[]string{"*.parquet"}, nil, []string{"a.parquet", "y=1/c.parquet", "y=2/LICENSE.parquet", "y=2/c.parquet"}, []string{"README", "b.arrow", "notes.txt", "y=1/rest.csv"}},
		{[]string{"y=2/*.parquet", "a*"}, []string{"L*"}, []string{"a.parquet", "y=2/c.parquet"}, []string{"README", "b.arrow", "notes.txt", "y=1/c.parquet", "y=1/rest.csv", "y=2/LICENSE.parquet"}},
		{nil, []string{"*.txt", "y=1/*"}, []string{"a.parquet", "b.arrow", "y=2/LICENSE.parquet", "y=2/c.parquet"}, []string{"README", "notes.txt", "y=1/c.parquet", "y=1/rest.csv"}},
		{[]string{"*.zip"}, nil, nil, []string{"README", "a.parquet", "b.arrow", "notes.txt", "y=1/c.parquet", "y=1/rest.csv", "y=2/LICENSE.parquet", "y=2/c.parquet"}},
	} {
		var passed, got []string
		opts := source.Opening{OpenOptions: source.OpenOptions{Include: c.include, Exclude: c.exclude, PassedOver: func(name, why string) {
			rel, err := filepath.Rel(dir, name)
			if err != nil || why == "" {
				t.Error(err, why)
			}
			passed = append(passed, rel)
		}}, AllowEmpty: c.want == nil}
		for _, f := range roomtest.Open(t, opts, dir) {
			got = append(got, f.Rel())
		}
		sourcetest.Equal(t, fmt.Sprint(c.include, c.exclude), got, c.want)
		slices.Sort(passed)
		sourcetest.Equal(t, fmt.Sprint(c.include, c.exclude, ": passed over"), passed, c.passed)
	}
	_, err := source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{Include: []string{"*.csv"}}})
	sourcetest.Says(t, "text that is included", err, nil, "rest.csv", "Parquet or Arrow")
	_, err = source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{Exclude: []string{"*"}}})
	sourcetest.Says(t, "all is excluded", err, storage.ErrNoFiles, dir)
	_, err = source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{Exclude: []string{"["}}})
	sourcetest.Says(t, "no pattern", err, path.ErrBadPattern, "[")
	if files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Exclude: []string{"*"}}}, filepath.Join(dir, "a.parquet")); len(files) != 1 {
		t.Error("a file that was named is left out by a pattern")
	}
}

// Outputs mirror the path from the first name=value directory on, or below the base.
func TestBase(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"logs/dt=1/a.parquet", "logs/dt=2/h=3/a.parquet", "logs/plain/b.parquet"} {
		sourcetest.Write(t, name, 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
	}
	if err := os.Symlink("logs", "alias"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, base, want string }{
		{"logs/dt=1", "", "dt=1/a.parquet"},
		{"logs/dt=1/", "", "dt=1/a.parquet"},
		{"./logs/plain/../dt=1", "", "dt=1/a.parquet"},
		{filepath.Join(dir, "logs/dt=2"), "", "dt=2/h=3/a.parquet"},
		{"logs/dt=2/h=3/a.parquet", "", "dt=2/h=3/a.parquet"},
		{"logs/dt=*/*.parquet", "", "dt=1/a.parquet"},
		{"logs/dt=*", "", "dt=1/a.parquet dt=2/h=3/a.parquet"},
		{"logs/plain", "", "b.parquet"},
		{"logs/plain/b.parquet", "", "b.parquet"},
		{"logs/plain", "logs", "plain/b.parquet"},
		{"logs/plain/b.parquet", ".", "logs/plain/b.parquet"},
		{"logs/dt=2", "logs/dt=2", "h=3/a.parquet"},
		{"logs/dt=1", dir, "logs/dt=1/a.parquet"},
		{"alias/plain", "alias", "plain/b.parquet"},
		{"logs/plain", "alias/", "plain/b.parquet"},
	} {
		var got []string
		for _, f := range roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Base: c.base}}, c.name) {
			got = append(got, f.Rel())
		}
		sourcetest.Equal(t, c.name+" from "+c.base, strings.Join(got, " "), c.want)
	}
	for _, base := range []string{"logs/dt=2", "elsewhere", "logs/dt=1/a.parquet"} {
		_, err := source.Open(t.Context(), []string{"logs/dt=1"}, source.Opening{OpenOptions: source.OpenOptions{Base: base}})
		sourcetest.Says(t, base, err, nil, "logs/dt=1/a.parquet", "Base "+base)
	}
}

// The Parquet files of Delta, Hudi and Iceberg tables may hold rows that were deleted, however
// they are named.
func TestTableFormats(t *testing.T) {
	for mark, format := range map[string]string{"_delta_log/0.json": "Delta", "metadata/v1.metadata.json": "Iceberg", ".hoodie/hoodie.properties": "Hudi"} {
		dir := t.TempDir()
		for _, name := range []string{"t/dt=1/a.parquet", "t/data/a.parquet", "t/data/dt=1/x=2/a.parquet", "t/data/0110/1010/a.parquet", "plain/metadata/a.parquet", "plain/data/a.parquet"} {
			sourcetest.Write(t, filepath.Join(dir, name), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
		}
		sourcetest.Put(t, filepath.Join(dir, "t", mark), "{}")
		refused := []string{
			"/t", "", "/t/", "/t/dt=1", "/*", "/t/dt=*/*.parquet", "/t/dt=1/a.parquet", "/t/dt=1/../dt=1/a.parquet", "/**/*.parquet",
			"/t/data", "/t/data/", "/t/data/*.parquet", "/t/data/a.parquet", "/t/d*/*.parquet", "/t/data/dt=1", "/t/data/dt=1/**/*.parquet", "/t/data/dt=1/x=2/a.parquet", "/t/data/*/*/a.parquet",
		}
		for i := range refused {
			refused[i] = dir + refused[i]
		}
		if link := filepath.Join(t.TempDir(), "link"); os.Symlink(filepath.Join(dir, "t", "data"), link) == nil {
			refused = append(refused, link, link+"/a.parquet", link+"/*.parquet")
		}
		for _, name := range refused {
			open := source.Opening{OpenOptions: source.OpenOptions{Exclude: []string{"*.json"}, Hive: dataset.HiveOff}}
			_, err := source.Open(t.Context(), []string{name}, open)
			sourcetest.Says(t, name, err, fault.ErrUnsupported, format, dir+"/t", "RawFiles")
			if files, err := source.Open(hive.Looking(t.Context(), true), []string{name}, open); err != nil || len(files) == 0 {
				t.Errorf("%s, raw: %d files, %v", name, len(files), err)
			} else if err := source.Close(files); err != nil {
				t.Error(err)
			}
		}
		roomtest.Open(t, source.Opening{}, dir+"/plain", dir+"/plain/data", dir+"/plain/data/*.parquet", dir+"/plain/metadata/a.parquet")
		t.Chdir(filepath.Join(dir, "t", "data"))
		for _, name := range []string{".", "a.parquet", "*.parquet", "./a.parquet", "dt=1"} {
			_, err := source.Open(t.Context(), []string{name}, source.Opening{})
			sourcetest.Says(t, name, err, fault.ErrUnsupported, format, "..: ")
		}
		t.Chdir(t.TempDir())
	}
}

// The order of the files, and so the shards, do not depend on how the files were named
// or mounted.
func TestOpenOrder(t *testing.T) {
	var orders []string
	for range 2 {
		dir := t.TempDir()
		for _, name := range []string{"c.parquet", "a.parquet", "b/x.parquet"} {
			sourcetest.Write(t, filepath.Join(dir, name), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
		}
		for _, names := range [][]string{{dir}, {dir + "/c.parquet", dir + "/b", dir + "/a.parquet"}} {
			var order []string
			for _, f := range roomtest.Open(t, source.Opening{}, names...) {
				order = append(order, filepath.Base(f.Name()))
			}
			orders = append(orders, strings.Join(order, " "))
		}
	}
	if orders[0] != orders[2] || orders[1] != orders[3] || orders[0] != "a.parquet x.parquet c.parquet" {
		t.Errorf("orders %q", orders)
	}
}

func TestOpenStandardInput(t *testing.T) {
	ids := sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1, 2, 3}})
	stream := roomtest.StreamOf(t, ids)
	for _, c := range []struct {
		name, content string
		opts          source.Opening
		rows          int
		column        string
	}{
		{"lines", "1\n2\n\n3", source.Opening{OpenOptions: source.OpenOptions{Text: true}}, 3, "id"},
		{"lines of a named column", "1\n2\n", source.Opening{OpenOptions: source.OpenOptions{Text: true, Column: "user"}}, 2, "user"},
		{"nothing", "", source.Opening{OpenOptions: source.OpenOptions{Text: true}}, 0, "id"},
		{"csv", "id,x\n1,2\n", source.Opening{OpenOptions: source.OpenOptions{Text: true, TextFormat: dataset.CSV}}, 1, "id"},
		{"a stream", stream, source.Opening{OpenOptions: source.OpenOptions{Text: true}}, 3, "id"},
		{"a stream without text", stream, source.Opening{}, 3, "id"},
	} {
		c.opts.Stdin, c.opts.Mem = strings.NewReader(c.content), sourcetest.Checked(t)
		f := roomtest.Open(t, c.opts, "-")[0]
		rows := 0
		for r, err := range roomtest.Map(t.Context(), source.Split([]*source.File{f}, dataset.Shard{}), 0, nil, roomtest.Pass) {
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			rows += int(r.Record.NumRows())
			sourcetest.Equal(t, c.name+": column", r.Record.ColumnName(0), c.column)
			r.Record.Release()
		}
		if rows != c.rows || !f.Once() || f.BytesRead() != int64(len(c.content)) {
			t.Errorf("%s: %d rows, read once: %v, %d bytes read of %d", c.name, rows, f.Once(), f.BytesRead(), len(c.content))
		}
		if fp, err := f.Fingerprint(); fp != nil || err != nil {
			t.Errorf("%s: has a fingerprint", c.name)
		}
	}
	_, err := source.Open(t.Context(), []string{"-"}, source.Opening{OpenOptions: source.OpenOptions{Text: true, Stdin: strings.NewReader("PAR1....")}})
	sourcetest.Says(t, "Parquet on standard input", err, fault.ErrUnsupported, "name the file")
	_, err = source.Open(t.Context(), []string{"-"}, source.Opening{OpenOptions: source.OpenOptions{Stdin: strings.NewReader("1\n")}})
	sourcetest.Says(t, "text on standard input as a log", err, nil, "standard input")
}

// Runs with different options or inputs have different digests, wherever the inputs are.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	a := sourcetest.Write(t, filepath.Join(dir, "a.arrow"), 10, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1, 2}}))
	b := sourcetest.Write(t, filepath.Join(dir, "b.arrow"), 10, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1, 3}}))
	elsewhere := filepath.Join(t.TempDir(), "a.arrow")
	sourcetest.Put(t, elsewhere, sourcetest.Get(t, a))
	digest := func(words []string, names ...string) [32]byte {
		run := Run{Options: words, Log: roomtest.Open(t, source.Opening{}, names...)}
		sum, ok, err := run.Digest()
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return sum
	}
	seen := map[[32]byte]string{}
	for name, sum := range map[string][32]byte{
		"a": digest(nil, a), "b": digest(nil, b), "a, b": digest(nil, a, b), "word a": digest([]string{"x"}, a),
		"words a": digest([]string{"x", ""}, a), "two words": digest([]string{"x", "y"}, a), "one of both": digest([]string{"xy"}, a),
	} {
		if other, ok := seen[sum]; ok {
			t.Errorf("%q and %q have one digest", name, other)
		}
		seen[sum] = name
	}
	if digest(nil, a) != digest(nil, elsewhere) {
		t.Error("the digest depends on the directory")
	}
	// The same name and size but other rows, which Arrow's footer would not show.
	sourcetest.Put(t, elsewhere, sourcetest.Get(t, b))
	if digest(nil, a) == digest(nil, elsewhere) {
		t.Error("other rows of the same size have the same digest")
	}
}

// TestRecipe: options, filters and IDs tell runs apart. The recipe, which identifies
// outputs in a directory, does not depend on the log; the digest of a run does.
func TestRecipe(t *testing.T) {
	dir := t.TempDir()
	a := sourcetest.Write(t, filepath.Join(dir, "a.arrow"), 10, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1, 2}}))
	b := sourcetest.Write(t, filepath.Join(dir, "b.arrow"), 10, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1, 3}}))
	of := func(run Run, log string) (digest, recipe [32]byte) {
		run.Log = roomtest.Open(t, source.Opening{}, log)
		digest, known, err := run.Digest()
		if err != nil || !known {
			t.Fatal(known, err)
		}
		if recipe, known, err = run.recipe(); err != nil || !known {
			t.Fatal(known, err)
		}
		return digest, recipe
	}
	digests, recipes := map[[32]byte]string{}, map[[32]byte]string{}
	for name, run := range map[string]Run{
		"nothing": {}, "options": {Options: []string{"x"}}, "other options": {Options: []string{"y"}},
		"a filter": {Filters: [][32]byte{{1}}}, "another filter": {Filters: [][32]byte{{2}}}, "two filters": {Filters: [][32]byte{{1}, {2}}},
		"IDs": {IDs: roomtest.Open(t, source.Opening{}, a)}, "other IDs": {IDs: roomtest.Open(t, source.Opening{}, b)}, "both IDs": {IDs: roomtest.Open(t, source.Opening{}, a, b)},
	} {
		digest, recipe := of(run, a)
		if other, ok := digests[digest]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		if other, ok := recipes[recipe]; ok {
			t.Errorf("%s and %s have one recipe", name, other)
		}
		digests[digest], recipes[recipe] = name, name
		otherDigest, same := of(run, b)
		if otherDigest == digest || same != recipe {
			t.Errorf("%s: another log has the same digest: %t, recipe: %t", name, otherDigest == digest, same == recipe)
		}
	}
}

// The error about an unreadable format names it. Text that merely begins like another
// format is text.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"users.bjf", "\x89BJF\r\n\x1a\n\x01\x00\x01\x00", []string{"got a bloomjoin filter", "scan and join"}},
		{"users.txt", "\x89BJF\r\n\x1a\n\x01\x00\x01\x00", []string{"got a bloomjoin filter", "scan and join"}},
		{"a.orc", "ORC\n\x0b\n\x03\x00\x00\x00", []string{"an ORC file", "docs/stdin.md"}},
		{"a.avro", "Obj\x01\x04\x16avro.schema", []string{"an Avro file", "docs/stdin.md"}},
		{"a.xlsx", "PK\x03\x04\x14\x00", []string{"a ZIP archive"}},
		{"a.txt", "BZh91AY&SY\x00", []string{"bzip2", "decompress it first"}},
	} {
		path := write(c.name, c.text)
		for _, text := range []bool{false, true} {
			_, err := source.Open(t.Context(), []string{path}, source.Opening{OpenOptions: source.OpenOptions{Text: text}})
			sourcetest.Says(t, c.name, err, nil, append(c.want, path)...)
		}
		_, err := source.Open(t.Context(), []string{"-"}, source.Opening{OpenOptions: source.OpenOptions{Text: true, Stdin: strings.NewReader(c.text)}})
		sourcetest.Says(t, c.name, err, nil, append(c.want, "standard input")...)
	}
	for _, text := range []string{"ORCHID\nORC-7\n", "ORC\nElf\n", "BZh9\n", "PK\n"} {
		files, err := source.Open(t.Context(), []string{write("ids", text)}, source.Opening{OpenOptions: source.OpenOptions{Text: true}})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		source.Close(files)
	}
	// --ids-format applies to .txt too, but not to names that determine a format.
	csv := "user_id,name\n7,a\n"
	files, err := source.Open(t.Context(), []string{write("a.txt", csv), write("b.csv", csv)}, source.Opening{OpenOptions: source.OpenOptions{Text: true, TextFormat: dataset.CSV}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	for _, f := range files {
		if f.Format() != dataset.CSV || f.Schema().NumFields() != 2 {
			t.Errorf("%s: %s with %v", f.Name(), f.Format(), f.Schema())
		}
	}
	_, err = source.Open(t.Context(), []string{write("c.txt", csv)}, source.Opening{OpenOptions: source.OpenOptions{Text: true, Column: "user_id"}})
	sourcetest.Says(t, "c.txt", err, fault.ErrMismatch, "c.txt: line 1", "looks like a CSV header", "TextFormat csv")
}

// A list without names is an error, unless a log may be empty. The share of a worker
// may always be.
func TestNoNames(t *testing.T) {
	ctx := t.Context()
	for _, names := range [][]string{nil, {}} {
		_, err := source.Open(ctx, names, source.Opening{OpenOptions: source.OpenOptions{}})
		sourcetest.Says(t, "Open", err, storage.ErrNoFiles, "no inputs were named")
		_, err = inputs.Find(ctx, names, source.Opening{}, nil)
		sourcetest.Says(t, "ListInputs", err, storage.ErrNoFiles, "no inputs were named")
		if files, err := source.Open(ctx, names, source.Opening{AllowEmpty: true}); err != nil || len(files) > 0 {
			t.Errorf("Open with AllowEmpty: %v, %v", files, err)
		}
		if in, err := inputs.Find(ctx, names, source.Opening{AllowEmpty: true}, nil); err != nil || in.Len() > 0 {
			t.Errorf("ListInputs with AllowEmpty: %v, %v", in, err)
		}
	}
	scanner, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.Between(0, 100)), Key: "id"}}}})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	_, err = Destination{Output: Output{Name: out + ".parquet"}}.WriteScan(ctx, scanner, nil, nil, nil)
	sourcetest.Says(t, "a file for a log without files", err, storage.ErrNoFiles, "the log has no files")
	if w, err := (Destination{Output: Output{Name: out + "/"}}).WriteScan(ctx, scanner, nil, nil, nil); err != nil || w.Rows != 0 {
		t.Errorf("a directory for a log without files: %v, %v", w, err)
	}
}

// Numbers that mean nothing are refused by the name of their option.
func TestNegativeOptions(t *testing.T) {
	dir := t.TempDir()
	mem := sourcetest.Checked(t)
	rec := sourcetest.Record(t, mem, sourcetest.Col{Name: "id", Values: []int64{1}})
	defer rec.Release()
	name := sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 8, rec)
	match := []dataset.Match{{Filter: (*codec.Filter)(roomtest.Between(0, 100)), Key: "id"}}
	for want, opts := range map[string]source.Opening{
		"Memory: want 0 (no bound) or more, got -1":   {OpenOptions: source.OpenOptions{Memory: -1}},
		"InFlight: want 0 (no bound) or more, got -2": {InFlight: -2},
		`Hive "on": want auto or off`:                 {OpenOptions: source.OpenOptions{Hive: "on"}},
	} {
		_, err := source.Open(t.Context(), []string{name}, opts)
		sourcetest.Says(t, "Open", err, nil, want)
		_, err = inputs.Find(t.Context(), []string{name}, opts, nil)
		sourcetest.Says(t, "ListInputs", err, nil, want)
	}
	_, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: match, Threads: -3}})
	sourcetest.Says(t, "NewScanner", err, nil, "Threads: want 0 (GOMAXPROCS) or more, got -3")
	_, _, err = keyscan.Read(t.Context(), source.Split(roomtest.Open(t, source.Opening{}, name), dataset.Shard{}), keyscan.ReadOptions{Key: "id", Threads: -3}, func() (func(*keyscan.Keys) error, error) { return func(*keyscan.Keys) error { return nil }, nil })
	sourcetest.Says(t, "ReadKeys", err, nil, "Threads: want 0 (GOMAXPROCS) or more, got -3")
}
