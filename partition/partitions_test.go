package partition

import (
	"fmt"
	"path/filepath"
	"testing"
)

// hiveTree writes Parquet files with a column id below a new directory.
func hiveTree(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		write(t, filepath.Join(dir, name), 1, record(t, checked(t), col{"id", []int64{1}}))
	}
	return dir
}

func TestPartitions(t *testing.T) {
	dir := hiveTree(t, "log/dt=2024-01-01/c=NO/a.parquet", "log/dt=2024-01-02/c=__HIVE_DEFAULT_PARTITION__/a.parquet", "log/c=1/dt=2024-01-03/a.parquet")
	put(t, filepath.Join(dir, "log/README"), "")
	for _, c := range []struct{ types, want string }{
		{"", "[{c utf8 1 false} {dt date32 2024-01-03 false}] [{c utf8 NO false} {dt date32 2024-01-01 false}] [{c utf8  true} {dt date32 2024-01-02 false}]"},
		{"dt:string,other:date", "[{c utf8 1 false} {dt utf8 2024-01-03 false}] [{c utf8 NO false} {dt utf8 2024-01-01 false}] [{c utf8  true} {dt utf8 2024-01-02 false}]"},
	} {
		got := ""
		for _, f := range open(t, OpenOptions{Hive: HiveAuto, HiveTypes: c.types}, dir) {
			got += " " + fmt.Sprint(f.Partitions())
		}
		equal(t, "types "+c.types, got[1:], c.want)
	}
	for _, f := range open(t, OpenOptions{Hive: HiveOff}, dir) {
		equal(t, "off", f.Partitions(), []PartitionValue(nil))
	}
	for _, c := range []struct {
		opts  OpenOptions
		names []string
		words []string
	}{
		{OpenOptions{}, []string{dir, filepath.Join(hiveTree(t, "x.parquet"), "x.parquet")}, []string{"x.parquet: mismatch: name=value directories: want c, dt as in", "got none (", "Hive off"}},
		{OpenOptions{HiveTypes: "c:int64"}, []string{dir}, []string{"c=NO/a.parquet: column c", `want a value of type int64, got "NO"`, "HiveTypes"}},
		{OpenOptions{}, []string{hiveTree(t, "a=1/b=2/a=3/x.parquet")}, []string{"a=1/b=2/a=3/x.parquet: column a", "two directories"}},
	} {
		_, err := Open(t.Context(), c.names, c.opts)
		says(t, fmt.Sprint(c.names), err, nil, c.words...)
	}
	put(t, filepath.Join(dir, "log/notes.html"), "<html>")
	_, err := Open(t.Context(), []string{dir}, OpenOptions{})
	says(t, "a file that is no data", err, ErrNoData, "notes.html")
	_, err = Open(t.Context(), []string{dir}, OpenOptions{HiveTypes: "c"})
	says(t, "bad types", err, nil, "HiveTypes", "NAME:TYPE")
	_, err = Open(t.Context(), []string{dir}, OpenOptions{Hive: "on"})
	says(t, "bad mode", err, nil, "want auto or off")
}
