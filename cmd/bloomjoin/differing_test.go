package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Files of a partitioned log may have their columns in another order, or more of them.
// Pairs of each have its own columns, as if it was joined alone.
func TestPairsOfFilesThatDiffer(t *testing.T) {
	dir := t.TempDir()
	ids := flights + "/airports-tx.csv"
	for day, columns := range map[string]string{"1": "origin,destination", "2": "destination,origin", "3": "origin,destination,delay", "4": "delay,destination,origin,distance"} {
		at := filepath.Join(dir, "log", "day="+day)
		if err := os.MkdirAll(at, 0o777); err != nil {
			t.Fatal(err)
		}
		works(t, "", "join", "--quiet", "--ids", ids, "--on", "origin=iata", "--columns", columns, "-o", at+"/a.parquet", flights+"/logs/2001-04.parquet")
	}
	for _, format := range []string{"arrow", "parquet"} {
		for _, typ := range []string{"inner", "left"} {
			join := []string{"join", "--quiet", "--ids", ids, "--on", "origin=iata", "--type", typ, "--format", format, "--base", dir + "/log", "-o"}
			all := filepath.Join(dir, typ+"-"+format)
			works(t, "", append(join, all+"/", dir+"/log")...)
			for _, day := range []string{"1", "2", "3", "4"} {
				one := filepath.Join(dir, typ+"-"+format+"-"+day)
				works(t, "", append(join, one+"/", dir+"/log/day="+day)...)
				name := "/day=" + day + "/a." + format
				if string(read(t, all+name)) != string(read(t, one+name)) {
					t.Errorf("%s join: %s differs", typ, name)
				}
			}
		}
	}
}
