package output

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// hiveTree writes Parquet files with a column id below a new directory.
func hiveTree(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		sourcetest.Write(t, filepath.Join(dir, name), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))
	}
	return dir
}

func TestPartitions(t *testing.T) {
	dir := hiveTree(t, "log/dt=2024-01-01/c=NO/a.parquet", "log/dt=2024-01-02/c=__HIVE_DEFAULT_PARTITION__/a.parquet", "log/c=1/dt=2024-01-03/a.parquet")
	sourcetest.Put(t, filepath.Join(dir, "log/README"), "")
	for _, c := range []struct{ types, want string }{
		{"", "[{c utf8 1 false} {dt date32 2024-01-03 false}] [{c utf8 NO false} {dt date32 2024-01-01 false}] [{c utf8  true} {dt date32 2024-01-02 false}]"},
		{"dt:string,other:date", "[{c utf8 1 false} {dt utf8 2024-01-03 false}] [{c utf8 NO false} {dt utf8 2024-01-01 false}] [{c utf8  true} {dt utf8 2024-01-02 false}]"},
	} {
		got := ""
		for _, f := range roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto, HiveTypes: c.types}}, dir) {
			got += " " + fmt.Sprint(f.Partitions())
		}
		sourcetest.Equal(t, "types "+c.types, got[1:], c.want)
	}
	for _, f := range roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff}}, dir) {
		sourcetest.Equal(t, "off", f.Partitions(), []dataset.PartitionValue(nil))
	}
	for _, c := range []struct {
		opts  source.Opening
		names []string
		words []string
	}{
		{source.Opening{}, []string{dir, filepath.Join(hiveTree(t, "x.parquet"), "x.parquet")}, []string{"x.parquet: mismatch: name=value directories: want c, dt as in", "got none (", "Hive off"}},
		{source.Opening{OpenOptions: source.OpenOptions{HiveTypes: "c:int64"}}, []string{dir}, []string{"c=NO/a.parquet: column c", `want a value of type int64, got "NO"`, "HiveTypes"}},
		{source.Opening{}, []string{hiveTree(t, "a=1/b=2/a=3/x.parquet")}, []string{"a=1/b=2/a=3/x.parquet: column a", "two directories"}},
	} {
		_, err := source.Open(t.Context(), c.names, c.opts)
		sourcetest.Says(t, fmt.Sprint(c.names), err, nil, c.words...)
	}
	sourcetest.Put(t, filepath.Join(dir, "log/notes.html"), "<html>")
	_, err := source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{}})
	sourcetest.Says(t, "a file that is no data", err, source.ErrNoData, "notes.html")
	_, err = source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{HiveTypes: "c"}})
	sourcetest.Says(t, "bad types", err, nil, "HiveTypes", "NAME:TYPE")
	_, err = source.Open(t.Context(), []string{dir}, source.Opening{OpenOptions: source.OpenOptions{Hive: "on"}})
	sourcetest.Says(t, "bad mode", err, nil, "want auto or off")
}

// The manifest has the values of the columns of paths as text without escapes. NULL is
// absent however a directory of the column's type says it, and a directory that is no
// column has no value.
func TestValuesInManifest(t *testing.T) {
	null := "__HIVE_DEFAULT_PARTITION__"
	dir := t.TempDir()
	for i, path := range []string{
		"dt=2024-01-01/c=a%20b%2F/n=null", "dt=" + null + "/c=NULL/n=-7", "dt=NULL/c=/n=", "dt=2024-01-02/c=" + null + "/n=" + null,
	} {
		sourcetest.Write(t, filepath.Join(dir, path, fmt.Sprintf("%d.parquet", i)), 10, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{0, 2}}))
	}
	for _, c := range []struct {
		what string
		opts source.Opening
		want []string
	}{
		{"types found", source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto}}, []string{ // an empty value makes n a string
			"map[c:a b/ dt:2024-01-01 n:null]", "map[c:NULL n:-7]", "map[c: n:]", "map[dt:2024-01-02]",
		}},
		{"an integer", source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto, HiveTypes: "n:int64"}}, []string{
			"map[c:a b/ dt:2024-01-01]", "map[c:NULL n:-7]", "map[c:]", "map[dt:2024-01-02]",
		}},
		{"text", source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto, HiveTypes: "n:string,dt:binary,c:binary"}}, []string{
			"map[c:a b/ dt:2024-01-01 n:null]", "map[c:NULL n:-7]", "map[c: dt:NULL n:]", "map[dt:2024-01-02]",
		}},
		{"off", source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveOff}}, []string{"map[]", "map[]", "map[]", "map[]"}},
		{"above the base", source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto, Base: dir + "/dt=2024-01-01/c=a%20b%2F", HiveTypes: "n:int64"}}, []string{"map[]"}},
	} {
		name := dir
		if c.opts.Base != "" {
			name = c.opts.Base
		}
		for _, size := range []int64{0, 1 << 20} {
			out := filepath.Join(t.TempDir(), "out")
			scanTo(t, Destination{Output: Output{Name: out + "/", TargetSize: size}}, keyscan.Options{}, roomtest.Open(t, c.opts, name))
			got := map[string]string{}
			for _, f := range stateOf(t, out).Files {
				got[filepath.Base(f.Name)] = fmt.Sprint(f.Values)
			}
			want := map[string]string{}
			for i, values := range c.want {
				want[fmt.Sprintf("%d.parquet", i)] = values
			}
			sourcetest.Equal(t, fmt.Sprintf("%s, files of %d bytes", c.what, size), got, want)
		}
	}
}
