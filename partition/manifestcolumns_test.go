package partition

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/publish"
)

// The manifest has the bounds of the rows that were written, whether as whole chunks,
// as pages or as records, over all row groups; of Arrow files it has none.
func TestColumnsInManifest(t *testing.T) {
	in, members := t.TempDir(), []int64{3, 5, 16}
	for name, from := range map[string]int64{"pages.parquet": 0, "records.arrow": 0, "whole.parquet": 3, "none.parquet": 100} {
		step := int64(1)
		if name == "whole.parquet" {
			step = 0
		}
		write(t, filepath.Join(in, name), 7, record(t, checked(t),
			col{"id", numbers(20, func(i int) int64 { return from + step*int64(i) })},
			col{"text", numbers(20, func(i int) string { return fmt.Sprintf("t%02d", i) })}))
	}
	var names []string
	for _, name := range tree(t, in) {
		names = append(names, filepath.Join(in, name))
	}
	for format, want := range map[Format]map[string]string{
		Parquet: {
			"pages.parquet":   `id int 0 3 16; text string 0 "t03" "t16"; `,
			"records.parquet": `id int 0 3 16; text string 0 "t03" "t16"; `,
			"whole.parquet":   `id int 0 3 3; text string 0 "t00" "t19"; `,
			"none.parquet":    `id int 0  ; text string 0  ; `,
		},
		ArrowFile: {"pages.arrow": "", "records.arrow": "", "whole.arrow": "", "none.arrow": ""},
	} {
		out := filepath.Join(t.TempDir(), "out") + "/"
		files := open(t, OpenOptions{Mem: checked(t)}, names...)
		s, err := NewScanner(ScanOptions{Match: []Match{{Filter: exactOf("id", members...)}}, Mem: checked(t)})
		if err != nil {
			t.Fatal(err)
		}
		pieces := Split(files, Shard{})
		o := Output{Name: out, Format: format, Result: ResultExact, WriteEmpty: true}
		if _, err := o.WriteScan(t.Context(), s, pieces, files, func(w *ScanWriter) error { return w.Scan(t.Context(), s, pieces) }); err != nil {
			t.Fatal(err)
		}
		var m struct{ Files []publish.File }
		if err := json.Unmarshal([]byte(get(t, strings.TrimSuffix(out, "/")+".bloomjoin/manifest.json")), &m); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, f := range m.Files {
			var columns []publish.Column
			if f.Columns != "" {
				if err := json.Unmarshal([]byte(f.Columns), &columns); err != nil {
					t.Fatal(err)
				}
			}
			got[f.Name] = ""
			for _, c := range columns {
				got[f.Name] += fmt.Sprintf("%s %s %d %s %s; ", c.Path[0], c.Type, *c.Nulls, c.Lower, c.Upper)
			}
		}
		equal(t, string(format), got, want)
	}
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
		write(t, filepath.Join(dir, path, fmt.Sprintf("%d.parquet", i)), 10, record(t, checked(t), col{"id", []int64{0, 2}}))
	}
	for _, c := range []struct {
		what string
		opts OpenOptions
		want []string
	}{
		{"types found", OpenOptions{Hive: HiveAuto}, []string{ // an empty value makes n a string
			"map[c:a b/ dt:2024-01-01 n:null]", "map[c:NULL n:-7]", "map[c: n:]", "map[dt:2024-01-02]",
		}},
		{"an integer", OpenOptions{Hive: HiveAuto, HiveTypes: "n:int64"}, []string{
			"map[c:a b/ dt:2024-01-01]", "map[c:NULL n:-7]", "map[c:]", "map[dt:2024-01-02]",
		}},
		{"text", OpenOptions{Hive: HiveAuto, HiveTypes: "n:string,dt:binary,c:binary"}, []string{
			"map[c:a b/ dt:2024-01-01 n:null]", "map[c:NULL n:-7]", "map[c: dt:NULL n:]", "map[dt:2024-01-02]",
		}},
		{"off", OpenOptions{Hive: HiveOff}, []string{"map[]", "map[]", "map[]", "map[]"}},
		{"above the base", OpenOptions{Hive: HiveAuto, Base: dir + "/dt=2024-01-01/c=a%20b%2F", HiveTypes: "n:int64"}, []string{"map[]"}},
	} {
		name := dir
		if c.opts.Base != "" {
			name = c.opts.Base
		}
		for _, size := range []int64{0, 1 << 20} {
			out := filepath.Join(t.TempDir(), "out")
			scanTo(t, Output{Name: out + "/", TargetSize: size}, ScanOptions{}, open(t, c.opts, name))
			got := map[string]string{}
			for _, f := range stateOf(t, out).Files {
				got[filepath.Base(f.Name)] = fmt.Sprint(f.Values)
			}
			want := map[string]string{}
			for i, values := range c.want {
				want[fmt.Sprintf("%d.parquet", i)] = values
			}
			equal(t, fmt.Sprintf("%s, files of %d bytes", c.what, size), got, want)
		}
	}
}
