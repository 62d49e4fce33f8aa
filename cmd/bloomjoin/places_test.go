package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneFileTwoNames: a second run that reads files of the first one under other names is
// refused, and with --force takes their place. Other spellings of their names are the same run, and
// other files with the same content are other inputs.
func TestOneFileTwoNames(t *testing.T) {
	const refused, done = "refused", "already done"
	for what, c := range map[string]struct {
		first, second string
		want          string // refused, done, or empty: it adds or replaces
		rows          int    // in the end
		cd            string // for the second run
	}{
		"a directory above":              {first: "logs/monday", second: "logs", want: refused, rows: 5},
		"a directory below":              {first: "logs", second: "logs/monday", want: refused, rows: 5},
		"a file":                         {first: "logs", second: "logs/monday/a.parquet", want: refused, rows: 5},
		"its directory":                  {first: "logs/monday/a.parquet", second: "logs/monday", want: done, rows: 3},
		"a base":                         {first: "logs", second: "--base . logs", want: refused, rows: 5},
		"another base":                   {first: "--base . logs", second: "--base logs logs/monday", want: refused, rows: 5},
		"an absolute path":               {first: "logs", second: "HERE/logs", want: done, rows: 5},
		"an absolute path and a base":    {first: "logs", second: "--base HERE HERE/logs", want: refused, rows: 5},
		"dots and slashes":               {first: "logs", second: "./logs/../logs//", want: done, rows: 5},
		"a file URL":                     {first: "logs", second: "file://HERE/logs", want: done, rows: 5},
		"a file URL below":               {first: "logs", second: "file://HERE/logs/monday", want: refused, rows: 5},
		"another working directory":      {first: "logs", second: "../logs", cd: "logs", want: done, rows: 5},
		"a name in another directory":    {first: "logs", second: "monday", cd: "logs", want: refused, rows: 5},
		"a linked directory":             {first: "logs", second: "linked", want: done, rows: 5},
		"a linked directory and a base":  {first: "logs", second: "--base . linked", want: refused, rows: 5},
		"a link to a file":               {first: "logs", second: "link.parquet", want: refused, rows: 5},
		"a pattern":                      {first: "logs", second: "logs/*/*.parquet", want: refused, rows: 5},
		"a pattern with directories":     {first: "logs", second: "logs/**/*.parquet", want: done, rows: 5},
		"a list of names":                {first: "logs", second: "--files-from names.txt", want: refused, rows: 5},
		"a list of inputs":               {first: "logs", second: "--files-from logs.jsonl", want: done, rows: 5},
		"a list of inputs with a base":   {first: "logs", second: "--files-from based.jsonl", want: refused, rows: 5},
		"after a list of inputs":         {first: "--files-from based.jsonl", second: "logs", want: refused, rows: 5},
		"files that share outputs":       {first: "--target-file-size 1MiB flat", second: "--target-file-size 1MiB --base . flat", want: refused, rows: 5},
		"gone by --prune":                {first: "logs/monday", second: "--prune logs", rows: 5},
		"a partition, then all":          {first: "hive/dt=1", second: "hive", rows: 6}, // dt=2 has a link to the file of dt=1
		"all, then the linked partition": {first: "hive", second: "hive/dt=2", want: done, rows: 6},
		"partitions and a base":          {first: "hive", second: "--base . hive", want: refused, rows: 6},
		"a partition as the base":        {first: "hive/dt=1", second: "--base hive/dt=1 hive/dt=1", want: refused, rows: 3},
		"no partition columns":           {first: "hive/dt=1", second: "--hive-partitioning off --base . hive/dt=1", want: refused, rows: 3},
		"a copy":                         {first: "logs/monday", second: "copies", rows: 6},
		"a copy in its place":            {first: "logs/monday", second: "copies/of", want: done, rows: 3},
		"a hard link":                    {first: "logs/monday", second: "hard", rows: 6},
		"another case":                   {first: "logs/monday", second: "upper", rows: 4},
	} {
		t.Run(what, func(t *testing.T) {
			here := t.TempDir()
			if real, err := filepath.EvalSymlinks(here); err == nil {
				here = real
			}
			t.Chdir(here)
			putLogs(t)
			var msg bytes.Buffer
			command := func(args ...string) int {
				msg.Reset()
				return run(args, nil, &msg, &msg)
			}
			join := func(args string) int {
				join := []string{"join", "--ids", filepath.Join(here, "ids.csv"), "--on", "k", "-o", filepath.Join(here, "out") + "/"}
				return command(append(join, strings.Fields(strings.ReplaceAll(args, "HERE", filepath.ToSlash(here)))...)...)
			}
			for list, base := range map[string]string{"logs.jsonl": "", "based.jsonl": "--base ."} {
				if code := command(append([]string{"inputs", "-o", list, "logs"}, strings.Fields(base)...)...); code != 0 {
					t.Fatal(msg.String())
				}
			}
			if code := join(c.first); code != 0 {
				t.Fatal(msg.String())
			}
			t.Chdir(filepath.Join(here, c.cd))
			code := join(c.second)
			said := msg.String()
			switch {
			case c.want == refused && (code != 1 || !strings.Contains(said, "E601")):
				t.Errorf("exit %d: %s", code, said)
			case c.want == refused && !strings.HasPrefix(what, "no ") && !strings.HasPrefix(what, "a partition as") && !strings.Contains(said, "are one file"):
				t.Errorf("the error does not name both: %s", said)
			case c.want != refused && (code != 0 || c.want == "" == strings.Contains(said, done)):
				t.Errorf("exit %d: %s", code, said)
			}
			if c.want == refused {
				if code := join("--force " + c.second); code != 0 {
					t.Errorf("with --force: exit %d: %s", code, msg.String())
				}
			}
			if code := join(c.second); code != 0 || !strings.Contains(msg.String(), done) {
				t.Errorf("once more: exit %d: %s", code, msg.String())
			}
			if code := command("inspect", "--check", filepath.Join(here, "out")); code != 0 {
				t.Error(msg.String())
			}
			if _, err := os.Stat(filepath.Join(here, "out", "_SUCCESS")); err != nil {
				t.Error(err)
			}
			rows := 0
			err := filepath.WalkDir(filepath.Join(here, "out"), func(name string, _ os.DirEntry, err error) error {
				if strings.HasSuffix(name, ".parquet") {
					for _, rec := range recordsOf(t, name) {
						rows += int(rec.NumRows())
					}
				}
				return err
			})
			if err != nil || rows != c.rows {
				t.Errorf("%d rows, %v; want %d", rows, err, c.rows)
			}
		})
	}
}

// putLogs writes logs into the working directory.
func putLogs(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"logs/monday", "logs/tuesday", "flat", "hive/dt=1", "hive/dt=2", "copies/of", "hard/of", "upper/Monday"} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	once := func(int64) int { return 1 }
	for name, rows := range map[string]int64{"logs/monday/a": 3, "logs/tuesday/b": 2, "flat/a": 3, "flat/b": 2, "hive/dt=1/a": 3, "copies/of/a": 3, "upper/Monday/A": 1} {
		putKeys(t, name+".parquet", once, rows)
	}
	err := os.WriteFile("ids.csv", []byte("k\n0\n1\n2\n"), 0o666)
	if err == nil {
		err = os.WriteFile("names.txt", []byte("logs/monday/a.parquet\n"), 0o666)
	}
	for link, target := range map[string]string{"linked": "logs", "link.parquet": "logs/monday/a.parquet", "hive/dt=2/a.parquet": "../dt=1/a.parquet"} {
		if err == nil {
			err = os.Symlink(target, link)
		}
	}
	if err == nil {
		err = os.Link("logs/monday/a.parquet", "hard/of/a.parquet")
	}
	if err != nil {
		t.Fatal(err)
	}
}
