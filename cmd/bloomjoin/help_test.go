package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/docs"
	"github.com/bloomjoin/bloomjoin/internal/house"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// verb returns the words that call a command, after the program's name.
func verb(cmd *cobra.Command) []string { return strings.Fields(cmd.CommandPath())[1:] }

// eachVerb calls f with every public command of this program.
func eachVerb(t *testing.T, f func(cmd *cobra.Command)) {
	all := (&cli{}).root().Commands()
	for _, cmd := range all {
		all = append(all, cmd.Commands()...)
	}
	n := 0
	for _, cmd := range all {
		if cmd.Annotations[flags.GuideMark] != "" {
			f(cmd)
			n++
		}
	}
	if n < 6 {
		t.Errorf("%d commands, want build, merge, scan, join, plan, inspect", n)
	}
}

// Every command's help fits a screen: a summary line, three examples, a guide that is
// there, and flags, which --help-all has in groups. No line is too wide.
func TestHelp(t *testing.T) {
	words := 0
	count := func(t *testing.T, args ...string) string {
		t.Helper()
		var out, said bytes.Buffer
		if code := run(args, nil, &out, &said); code != session.ExitDone || said.Len() > 0 {
			t.Errorf("%s: exit code %d: %s", args, code, &said)
		}
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(line) > 81 {
				t.Errorf("%s: a line of more than 80 characters: %s", args, line)
			}
		}
		words += len(strings.Fields(out.String()))
		return out.String()
	}
	eachVerb(t, func(cmd *cobra.Command) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			if n := strings.Count(cmd.Example, "\n") + 1; n != 3 {
				t.Errorf("%d examples, want 3", n)
			}
			if _, err := docs.Pages.ReadFile(cmd.Annotations[flags.GuideMark] + ".md"); err != nil {
				t.Error(err)
			}
			shown := count(t, append(verb(cmd), "--help")...)
			if n := strings.Count(shown, "\n"); n > 40 {
				t.Errorf("%d lines, want a screen of 40 at most (name fewer flags in flags.Help)", n)
			}
			for _, want := range []string{"\nUsage:\n  " + cmd.CommandPath() + " ", "\nExamples:\n" + cmd.Example + "\n", " help flags\nGuide: bloomjoin help "} {
				if !strings.Contains(shown, want) {
					t.Errorf("no %q in\n%s", want, shown)
				}
			}
			first := strings.Fields(cmd.Annotations[flags.RequiredMark] + " " + cmd.Annotations[flags.CommonMark])
			all := shown
			if len(first) > 0 {
				all = count(t, append(verb(cmd), "--help-all")...)
			}
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if strings.HasPrefix(f.Name, "help") || f.Hidden {
					return
				}
				value, what := flags.Value(f)
				if h := flags.Heading(f); h == flags.GroupOthers || !slices.Contains(flags.Groups, h) {
					t.Errorf("--%s: group %q", f.Name, h)
				}
				if (value == "") != (f.Value.Type() == "bool") || what == "" || len(what) > 70 || strings.ContainsAny(what, "`\n") {
					t.Errorf("--%s: value %q, description %q", f.Name, value, what)
				}
				has := regexp.MustCompile(`(?m)^ .* --` + regexp.QuoteMeta(strings.TrimSuffix(f.Name+" "+value, " ")) + `(  |$)`).MatchString
				if !has(all) || has(shown) != (len(first) == 0 || slices.Contains(first, f.Name)) {
					t.Errorf("--%s: want it in --help-all, and in --help if it is required or common", f.Name)
				}
			})
			for _, name := range first {
				if cmd.Flags().Lookup(name) == nil {
					t.Errorf("there is no flag --%s", name)
				}
			}
		})
	})
	count(t, "--help")
	if shown := count(t, "help", "flags"); !strings.Contains(shown, "--memory SIZE") {
		t.Errorf("help flags: %s", shown)
	}
	house.Check(t, house.HelpWords, words)
}

// The flags in a command's examples exist.
func TestHelpExamples(t *testing.T) {
	eachVerb(t, func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			_, line, _ = strings.Cut(line, cmd.CommandPath()+" ")
			line = line[:strings.IndexAny(line+"|", "|<>")]
			fresh, rest, err := (&cli{}).root().Find(verb(cmd))
			if err != nil || len(rest) > 0 {
				t.Fatal(rest, err)
			}
			if err := fresh.ParseFlags(strings.Fields(line)); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if err := fresh.ValidateArgs(fresh.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}

// Values of flags and columns of the named files are completed.
func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	ids, list := filepath.Join(dir, "users.csv"), filepath.Join(dir, "list")
	for name, text := range map[string]string{ids: "uid,name,full.name\n7,a,b\n", list: "code;x\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logs := flights + "/logs/2001-04.parquet"
	for _, c := range []struct {
		args []string
		want string // values that must be proposed
	}{
		{[]string{"jo"}, "join"},
		{[]string{"comp"}, "completion"},
		{[]string{"join", "--ty"}, "--type"},
		{[]string{"join", "--type", ""}, "semi anti inner left right full"},
		{[]string{"join", "--strategy", ""}, "auto exact lookup broadcast reverse shuffle"},
		{[]string{"plan", "--type", ""}, "semi full"},
		{[]string{"join", "--compression", ""}, "snappy zstd none"},
		{[]string{"scan", "--schema", ""}, "per-file strict union"},
		{[]string{"scan", "--format", ""}, "parquet arrow"},
		{[]string{"probe", "--format", ""}, "arrow csv lines ndjson tsv"},
		{[]string{"build", "--kind", ""}, "auto bloom exact counting"},
		{[]string{"update", "--add", ids, "--key", ""}, "uid name"},
		{[]string{"build", "--geometry", ""}, "split-256 split-512"},
		{[]string{"build", "--ids-format", ""}, "lines csv tsv ndjson"},
		{[]string{"build", "--encoding", ""}, strings.Join(text.Encodings(), " ")},
		{[]string{"build", "--key-type", ""}, "int64 uuid"},
		{[]string{"build", "--normalize", "trim,"}, "trim,lower trim,uuid"},
		{[]string{"build", ids, "--key", ""}, "uid name"},
		{[]string{"build", ids, "--key", "uid,"}, "uid,name"},
		{[]string{"scan", logs, "--key", ""}, "origin destination"},
		{[]string{"scan", logs, "--columns", "origin,"}, "origin,date"},
		{[]string{"scan", logs, "--match", ""}, "origin destination"},
		{[]string{"join", "--ids", ids, logs, "--on", ""}, "origin"},
		{[]string{"join", "--ids", ids, logs, "--on", "origin="}, "origin=uid origin=name"},
		{[]string{"join", "--ids", ids, "--on", ""}, "uid name"},
		{[]string{"join", "--ids", filepath.Join(dir, "nowhere"), "--on", ""}, ""},
		{[]string{"join", "--progress", ""}, "auto lines none"},
	} {
		var out, said bytes.Buffer
		code := run(append([]string{"__complete"}, c.args...), nil, &out, &said)
		var got []string
		for line := range strings.Lines(out.String()) {
			value, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if got = append(got, value); strings.HasSuffix(value, "full.name") {
				t.Errorf("%q: %q, which is another column without quotes", c.args, value)
			}
		}
		for _, want := range strings.Fields(c.want) {
			if code != session.ExitDone || !slices.Contains(got, want) {
				t.Errorf("%q: exit code %d, %q, want %q among them", c.args, code, got, want)
			}
		}
	}
	var out, said bytes.Buffer
	if code := run([]string{"completion", "bash"}, nil, &out, &said); code != session.ExitDone || !strings.Contains(out.String(), "__complete") {
		t.Errorf("completion bash: exit code %d: %s", code, &said)
	}
}

// Mistyped commands, flags and values are usage errors that suggest the right one.
func TestSuggestions(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"joim", "unknown command joim (did you mean join?)"},
		{"inspet x", "did you mean inspect?"},
		{"frobnicate", "there are "},
		{"join --idz x", "unknown flag --idz (did you mean --ids?)"},
		{"join --stratgy auto", "did you mean --strategy?"},
		{"join --require 3", "did you mean --require-rows?"},
		{"join --xyzzy", "bloomjoin join --help-all lists the flags"},
		{"join -x", "unknown flag -x (bloomjoin join --help-all lists the flags)"},
		{"-help", "need two dashes, as --help"},
		{"join -type inner", "need two dashes"},
		{"joim --ids x", "unknown command joim (did you mean join?)"},
		{"joim --help", "unknown command joim (did you mean join?)"},
		{"help joim", "unknown command or topic joim (did you mean join?)"},
		{"help guide joim", "unknown command or topic joim (did you mean join?)"},
		{"help wher", "unknown command or topic wher (did you mean where?)"},
		{"help frobnicate", "bloomjoin help topics the guides"},
		{"join --help-al", "did you mean --help-all?"},
		{"join --key k", "unknown flag --key (did you mean --on?)"},
		{"scan --on k", "unknown flag --on (did you mean --key?)"},
		{"scan --require-rows 3", "unknown flag --require-rows (it belongs to bloomjoin join; bloomjoin scan --help-all lists the flags)"},
		{"size -x", "bloomjoin size --help lists the flags"},
		{"join --type inne --ids a --on k -o o.parquet l", "--type inne: want semi, anti, inner, left, right or full (did you mean inner?)"},
		{"build --kind blom --key k -o f i.csv", "did you mean bloom?"},
		{"join --ids", "--ids needs a value: --ids IDS"},
		{"build --fpr much --key k -o f i.csv", "--fpr much: want a number"},
		{"plan --workers x", "--workers x: want a whole number"},
		{"join", "no LOGS given (usage: bloomjoin join --ids IDS --on "},
		{"build --key k -o f", "no IDS given"},
		{"inspect", "no FILE given"},
		{"version now", "bloomjoin version takes no arguments"},
		{"join --on user_id users.csv logs/ more/", "bloomjoin join --ids users.csv --on user_id -o OUT logs/ more/"},
		{"join users.csv logs/", "bloomjoin join --ids users.csv --on LOGCOL=IDCOL -o OUT logs/"},
		{"join --on user_id --type inner -o out.parquet users.csv logs/", "bloomjoin join --ids users.csv --on user_id --type inner -o out.parquet logs/"},
		{"join --on user_id -o out.parquet logs/", "--ids IDS is required: name the IDs to join with"},
		{"plan --on user_id users.csv logs/", "bloomjoin plan --ids users.csv --on user_id logs/"},
		{"scan -o out.parquet users.bjf logs/", "bloomjoin scan --filter users.bjf -o out.parquet logs/"},
		{"join --ids i.csv --on k -o /dev/null l", "-o /dev/null: want a regular file, got a device"},
		{"build --key k -o /dev/null i.csv", "-o /dev/null: want a regular file"},
		{"join --ids i.csv --on k -o rows l", "-o rows: want a file as rows.parquet or rows.arrow, or a directory as rows/"},
		{"join --ids i.csv --on k --progress bar -o o.parquet l", "--progress bar: want auto, lines or none"},
		{"join --ids i.parquet --key-type int64 --on k -o o.parquet l", "i.parquet: --key-type int64 is for text IDs"},
		{"join --ids i.arrow --skip-bad --on k -o o.parquet l", "i.arrow: --skip-bad is for text IDs"},
		{"join --ids i.arrow --encoding latin1 --on k -o o.parquet l", "i.arrow: --encoding latin1 is for text IDs"},
		{"build --ids-format csv --key k -o f i.pq", "i.pq: --ids-format csv is for text IDs"},
	} {
		var out, said bytes.Buffer
		code := run(strings.Fields(c.args), nil, &out, &said)
		if code != session.ExitUsage || !strings.Contains(said.String(), c.want) {
			t.Errorf("%s: exit code %d: %s: want %q", c.args, code, &said, c.want)
		}
		if strings.Count(said.String(), "\n") != 1 || out.Len() > 0 {
			t.Errorf("%s: %s%s: want one line on standard error", c.args, &out, &said)
		}
	}
}

// A bad value of any flag is detected before any input is opened: the exit code is
// 64 although the inputs do not exist.
func TestBadValues(t *testing.T) {
	args := map[string]string{
		"build":        "build --key k -o f.bjf nowhere",
		"merge":        "merge -o f.bjf nowhere",
		"scan":         "scan --filter nowhere -o o.parquet nowhere",
		"probe":        "probe --filter nowhere",
		"dedup":        "dedup --key k -o o.parquet nowhere",
		"size":         "size --keys 1e6",
		"update":       "update --key k --add nowhere -o f.bjf nowhere",
		"sketch query": "sketch query --value 1 nowhere",
		"sketch":       "sketch --key k -o f.bjs nowhere",
		"join":         "join --ids nowhere --on k -o o.parquet nowhere",
		"plan":         "plan --ids nowhere --on k nowhere",
		"inspect":      "inspect nowhere",
		"inputs":       "inputs -o list.jsonl nowhere",
		"commit":       "commit nowhere/",
	}
	bad := map[string][]string{
		"key": {"a,", `"a`}, "key-type": {"money", "int64,int64"}, "normalize": {"upper", "trim,"},
		"max-size": {"much", "1B"}, "kind": {"roaring", ""}, "geometry": {"512"}, "fpr": {"0", "1", "-1", "NaN", "x"},
		"range": {"5", "5..", "..5"}, "heavy": {"0", "1", "-1", "NaN"}, "weight": {"a,", "a,b", `"a`}, "epsilon": {"0", "1", "-1", "NaN", "1e-12"}, "delta": {"0", "1", "-1", "NaN", "1e-40"},
		"expect": {"-1", "0", "x", "1.5"}, "keys": {"-1", "0", "x"}, "capacity": {"0", "-1"}, "ids-format": {"xml"}, "delimiter": {"ab", "é", "\""}, "key-range": {"never"}, "encoding": {"ebcdic"}, "shard": {"2/2", "x", "1", "auto/0", "1/0"},
		"head": {"-1", "10001", "x"}, "include": {"[", ""}, "exclude": {"[", ""}, "output": {"", "-", "/dev/null"}, "match": {"nowhere", "=x", "a,=x"}, "no-match": {"nowhere"},
		"columns": {"a,", "a,a"}, "schema": {"loose"}, "compression": {"zip", "zstd:x"}, "missing-key": {"skip"}, "int96": {"ms"},
		"target-file-size": {"much", "0", "1MiB"}, "empty": {"keep", "write"}, // also right ones, since the output is a file
		"format": {"xml"}, "type": {"sideways", ""}, "strategy": {"guess"}, "on": {"a=b=c", "a,", ""},
		"require-rows": {"-1", "x"}, "require-ids-matched": {"0.5", "0%", "101%"}, "max-kept": {"0%", "2"}, "limit": {"0", "-1", "x"}, "sample-keys": {"0", "101%", "-1", "NaN", "x"},
		"index": {"a,", "a::int64"}, "index-fpr": {"0", "1", "x"}, "network": {"fast"}, "scan-speed": {"fast"}, "workers": {"0", "x"}, "sample": {"1", "x"},
		"memory": {"lots", "0", "1MiB"}, "stdin-digest": {"x", "abc"}, "threads": {"-1", "x"}, "progress": {"bar"}, "progress-interval": {"0s", "9ms", "-1s", "30", "x"}, "log-format": {"xml", ""},
		"metrics": {"-", "", ".", "s3://bucket/run.prom", "help_test.go"}, "log": {"-", "", ".", "s3://bucket/run.log", "nowhere/run.log", "help_test.go"},
		"as": {"hudi"}, "older": {"x", "-1s", "1h"}, // a right one, too, without --sweep
		"store-option": {"", "region", "colour=blue", "requests=0"}, "json": {"maybe"}, "quiet": {"maybe"}, "cast-errors": {"drop", "null"}, "suffix": {""},
		"hive-partitioning": {"on", ""}, "hive-types": {"a", "a:", "a:dat", "a:date,a:date"},
		"time": {"a,", "a,b", ""}, "time-unit": {"h", ""}, "window": {"x", "-1h", "0s"}, "slots": {"0", "65", "x"}, "rate": {"0", "-1", "x"}, "late": {"maybe", ""}, "keep": {"newest", ""}, "max-jump": {"x", "-1s"},
		"checkpoint": {"0s", "x", "1m"}, "state": {""}, // also right ones, since there is no time and no state
		"where": {"", "a =", "a = b", "1"}, "ids-where": {"", "a =", "a = b", "1"}, "ids-changed": {"drop", "rerun"}, // a right one, too, since the output is a file
	}
	free := []string{"against", "filter", "ids", "temp-dir", "base", "schema-from", "help", "manifest-dir", "files-from", "update", "add", "remove", "from", "value", "inner"} // any value may be right
	eachVerb(t, func(cmd *cobra.Command) {
		check := func(f *pflag.Flag) {
			values, ok := bad[f.Name]
			if !ok && f.Value.Type() != "bool" && !slices.Contains(free, f.Name) {
				t.Errorf("%s --%s: the test has no bad value of it", cmd.Name(), f.Name)
			}
			for _, v := range values {
				if f.Name == "output" && v == "-" && cmd.Name() != "build" && cmd.Name() != "merge" && cmd.Name() != "update" && cmd.Name() != "sketch" {
					continue // an Arrow stream
				}
				var out, said bytes.Buffer
				line := append(strings.Fields(args[strings.Join(verb(cmd), " ")]), "--"+f.Name+"="+v)
				if code := run(line, strings.NewReader(""), &out, &said); code != session.ExitUsage {
					t.Errorf("%q: exit code %d: %s", line, code, &said)
				}
			}
		}
		cmd.LocalFlags().VisitAll(check)
		cmd.InheritedFlags().VisitAll(check)
	})
}
