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

// Values are without escapes, and NULL is absent however a directory says it.
func TestValuesInManifest(t *testing.T) {
	o := Output{owner: &publish.Owner{Hive: []string{"dt:date", "c:string", "n:int64"}}}
	got := o.valuesIn("dt=2024-01-01/c=a%20b%2F/n=null/x.parquet")
	equal(t, "values", got, map[string]string{"dt": "2024-01-01", "c": "a b/"})
	got = o.valuesIn("dt=__HIVE_DEFAULT_PARTITION__/c=NULL/n=-7/x.parquet")
	equal(t, "with NULL", got, map[string]string{"c": "NULL", "n": "-7"})
	equal(t, "without columns of paths", (Output{owner: new(publish.Owner)}).valuesIn("dt=1/x.parquet"), map[string]string(nil))
}
