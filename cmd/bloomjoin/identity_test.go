package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// What a flag of scan or join decides. The recipe of an output has those of answer and layout alone.
const (
	answer = "answer" // which rows and values there are
	layout = "layout" // how they are written
	which  = "which"  // which files are read, and as what: each has an identity beside the recipe
	gate   = "gate"   // which runs fail. A file does not hold the figures, so there these are in its identity, too
	how    = "how"    // nothing of the output
)

// flagged says what a flag decides, and what it does to a run that was done before.
type flagged struct {
	kind string // of scan and join: one of these
	uses string // flags of both runs that compare recipes; empty: base
	args string // the flag, with its value
	base string // flags of both runs
	in   string // the input; empty: log, or one.csv for IDs
	dir  bool   // the output is a directory
	done bool   // the run is the same, so that it is already done; otherwise it is done again or refused
	not  string // why the flag is not tested
}

// everyVerb are the flags that all commands have.
var everyVerb = map[string]flagged{
	"threads": {kind: how, args: "--threads 1", done: true}, "memory": {kind: how, args: "--memory 256MiB", done: true},
	"quiet": {kind: how, args: "--quiet=false", done: true}, "verbose": {kind: how, args: "--verbose", done: true}, "json": {kind: how, args: "--json", done: true},
	"progress": {kind: how, args: "--progress none", done: true}, "progress-interval": {kind: how, args: "--progress-interval 5s", done: true}, "log-format": {kind: how, args: "--log-format json", done: true},
	"metrics": {kind: how, args: "--metrics run.prom", done: true}, "log": {kind: how, args: "--log run.jsonl", done: true},
	"store-option": {kind: how, args: "--store-option region=x", done: true}, "stdin-digest": {kind: which, args: "--stdin-digest 0a", done: true},
	"help": {kind: how, not: "it runs nothing"}, "help-all": {kind: how, not: "it runs nothing"}, "force": {kind: how, not: "the run is done again, whatever it is"}, "output": {kind: how, not: "it is another output"},
}

// readers are flags of verbs that read files.
var readers = map[string]flagged{
	"include": {kind: which, args: "--include *.parquet", done: true}, "exclude": {kind: which, args: "--exclude b.parquet"}, "uncommitted": {kind: which, args: "--uncommitted", done: true},
	"raw-files": {kind: which, args: "--raw-files", done: true}, "hive-partitioning": {kind: answer, args: "--hive-partitioning off"}, "hive-types": {kind: answer, args: "--hive-types dt:string", base: "--columns k,dt"},
	"files-from": {kind: which, args: "--files-from list.jsonl", done: true},
}

// writers are flags of verbs that write rows.
var writers = map[string]flagged{
	"allow-empty": {kind: gate, args: "--allow-empty", done: true}, "where": {kind: answer, args: "--where n<90"}, "shard": {kind: how, args: "--shard 0/2"},
	"sample-keys": {kind: answer, args: "--sample-keys 50%"}, "limit": {kind: gate /* not of a directory */, args: "--limit 1"},
	"ignore-case": {kind: answer, args: "--ignore-case"}, "missing-key": {kind: answer, args: "--missing-key skip-file"},
	"count": {kind: how, not: "it writes nothing"}, "head": {kind: how, not: "it writes nothing"},
	"columns": {kind: answer, args: "--columns k"}, "schema": {kind: answer, args: "--schema union"}, "schema-from": {kind: answer, args: "--schema-from log/dt=2024-01-01/a.parquet"},
	"compression": {kind: layout, args: "--compression zstd"}, "target-file-size": {kind: layout, args: "--target-file-size 1MiB", dir: true}, "empty": {kind: layout, args: "--empty write", dir: true},
	"int96": {kind: answer, args: "--int96 ns"}, "base": {kind: which, args: "--base .", dir: true}, "format": {kind: layout, args: "--format arrow", dir: true},
	"prune": {kind: how, args: "--prune", dir: true, done: true}, "ids-changed": {kind: how, args: "--ids-changed rerun", dir: true, done: true}, "no-commit": {kind: how, args: "--no-commit", dir: true, done: true},
	"manifest-dir": {kind: how, args: "--manifest-dir elsewhere", dir: true},
}

// identities are the verbs whose outputs have an identity.
var identities = map[string]struct {
	run   string
	flags []map[string]flagged
}{
	"scan": {"scan --filter one.bjf", []map[string]flagged{everyVerb, readers, writers, {
		"hive-types": {kind: answer, args: "--hive-types dt:string", uses: "--columns k,dt", dir: true, done: true},                                          // nothing uses it; join has it for a file
		"filter":     {kind: answer, args: "--filter two.bjf"}, "key": {kind: answer, args: "--key n"}, "normalize": {kind: gate, args: "--normalize lower"}, /* of the filter */
		"cast-errors": {kind: answer, args: "--cast-errors null", base: "--key n::int32"},
		"match":       {kind: answer, args: "--match n=two.bjf"}, "no-match": {kind: answer, args: "--no-match n=two.bjf"},
		"all": {kind: how, args: "--all", base: "--match n=two.bjf", done: true}, "any": {kind: answer, args: "--any", base: "--match n=two.bjf"},
	}}},
	"join": {"join --on k --ids one.csv", []map[string]flagged{everyVerb, readers, writers, {
		"ids": {kind: answer, args: "--ids two.csv"}, "ids-where": {kind: answer, args: "--ids-where k>1", base: "--key-type int64"}, "ids-format": {kind: answer, args: "--ids-format csv"}, "cast-errors": {kind: answer, args: "--cast-errors null", base: "--on n::int32=k"}, "delimiter": {kind: answer, args: "--delimiter ;"}, "no-header": {kind: answer, args: "--no-header", base: "--on k=1 --ids head.csv"},
		"key-type": {kind: answer, args: "--key-type int64"}, "encoding": {kind: answer, args: "--encoding latin1"}, "skip-bad": {kind: answer, args: "--skip-bad"},
		"on": {kind: answer, args: "--on n=k"}, "normalize": {kind: answer, args: "--normalize lower", base: "--on s=k"}, "type": {kind: answer, args: "--type inner"}, "strategy": {kind: how, args: "--strategy lookup", done: true},
		"filter": {kind: how, args: "--filter one.bjf", done: true}, "fpr": {kind: how, args: "--fpr 0.5", done: true}, "suffix": {kind: answer, args: "--suffix _other", base: "--type inner"},
		"require-rows": {kind: gate, args: "--require-rows 1"}, "require-ids-matched": {kind: gate, args: "--require-ids-matched 10%"}, "max-kept": {kind: gate, args: "--max-kept 90%"},
		"temp-dir": {kind: how, args: "--temp-dir .", done: true},
	}}},
	"build": {"build --key k", []map[string]flagged{everyVerb, readers, {
		"exclude": {args: "--exclude b.parquet", in: "log"}, "hive-partitioning": {args: "--hive-partitioning off", in: "log"}, "hive-types": {args: "--hive-types dt:string", in: "log"},
		"files-from": {args: "--files-from names.txt", in: "log", done: true},
		"ids-format": {args: "--ids-format csv", done: true}, "delimiter": {args: "--delimiter ;"}, "no-header": {args: "--no-header"},
		"key-type": {args: "--key-type int64"}, "encoding": {args: "--encoding latin1"}, "skip-bad": {args: "--skip-bad"},
		"shard": {args: "--shard 0/2"}, "key": {args: "--key n"}, "ids-where": {args: "--ids-where k<>'1'"}, "normalize": {args: "--normalize lower"}, "ignore-case": {args: "--ignore-case", done: true},
		"cast-errors": {args: "--cast-errors null", base: "--key k::int32"}, "fpr": {args: "--fpr 0.5"}, "max-size": {args: "--max-size 64KiB"}, "kind": {args: "--kind bloom"},
		"multiset": {args: "--multiset", base: "--kind counting"}, "from": {not: "it takes the place of the IDs"}, "geometry": {args: "--geometry split-512", base: "--kind bloom"}, "expect": {args: "--expect 1000"}, "capacity": {args: "--capacity 1000"},
		"against": {args: "--against two.csv"}, "key-range": {args: "--key-range on"}, "no-key-range": {args: "--no-key-range", in: "log"}, "uncompressed": {args: "--uncompressed"},
		"dry-run": {not: "it writes nothing"}, "strict": {args: "--strict", done: true}, "temp-dir": {args: "--temp-dir .", done: true},
	}}},
	"inputs": {"inputs", []map[string]flagged{everyVerb, readers, {
		"allow-empty": {args: "--allow-empty", done: true}, "text": {args: "--text", done: true}, "ids-format": {args: "--ids-format lines", base: "--text", in: "one.csv"}, "encoding": {args: "--encoding latin1", base: "--text", in: "one.csv", done: true},
		"files-from": {args: "--files-from names.txt", done: true}, "hive-types": {args: "--hive-types dt:string"},
		"repeated": {args: "--repeated", done: true}, "update": {not: "it replaces the list that it names"}, "index": {args: "--index k"}, "index-fpr": {args: "--index-fpr 0.5", base: "--index k"},
		"index-row-groups": {args: "--index-row-groups", base: "--index k"}, "normalize": {args: "--normalize lower", base: "--index s"}, "base": {args: "--base ."},
	}}},
}

// Each flag either belongs to the identity of an output or does not: a run that differs in it is
// done again or refused, or is already done.
func TestFlagsAndIdentity(t *testing.T) {
	for verb, v := range identities {
		known := map[string]flagged{}
		for _, flags := range v.flags {
			for name, f := range flags {
				known[name] = f
			}
		}
		cmd, _, err := new(cli).root().Find([]string{verb})
		if err != nil {
			t.Fatal(err)
		}
		cmd.InheritedFlags() // merges them
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name := f.Name
			if _, ok := known[name]; !ok {
				t.Errorf("%s --%s: say here what it does to a run that was done before", verb, name)
				return
			}
			t.Run(verb+"/"+name, func(t *testing.T) { checkFlag(t, verb, v.run, known[name]) })
			if verb == "scan" || verb == "join" {
				t.Run(verb+"/"+name+"/recipe", func(t *testing.T) { checkKind(t, v.run, known[name]) })
			}
			delete(known, name)
		})
		for name := range known {
			if _, shared := everyVerb[name]; !shared {
				t.Errorf("%s has no flag --%s", verb, name)
			}
		}
	}
}

// checkFlag makes a run twice, the second time with a flag.
func checkFlag(t *testing.T, verb, run string, f flagged) {
	if f.not != "" {
		return
	}
	flagFiles(t)
	in, out := cmp.Or(f.in, "log"), map[string]string{"scan": "out.parquet", "join": "out.parquet", "build": "out.bjf", "inputs": "out.jsonl"}[verb]
	if verb == "build" {
		in = cmp.Or(f.in, "one.csv")
	}
	if f.dir {
		out = "out/"
	}
	first := instead(strings.Fields(run), strings.Fields(f.base+" -o "+out))
	works(t, "", append(first, in)...)
	before := listsOf(t)
	again := instead(first, strings.Fields(f.args))
	if !strings.Contains(f.args, "--files-from") {
		again = append(again, in)
	}
	printed, said, code := called(t, "", again...)
	all := said + printed
	done := code == session.ExitDone && (strings.Contains(all, "already done") || strings.Contains(all, `already_done":true`) || verb == "inputs" && listsOf(t) == before)
	if code == session.ExitUsage || done != f.done {
		t.Errorf("%v: exit code %d, done %t, want %t: %s", again, code, done, f.done, all)
	}
}

// checkKind compares the recipes of two runs over the same inputs, the second with a flag.
func checkKind(t *testing.T, run string, f flagged) {
	if !slices.Contains([]string{answer, layout, which, gate, how}, f.kind) {
		t.Fatalf("say here what the flag decides, not %q", f.kind)
	}
	if f.not != "" {
		return
	}
	flagFiles(t)
	recipe := func(args []string, out string) string {
		if !strings.Contains(f.args, "--files-from") || out == "first" {
			args = append(slices.Clone(args), "log")
		}
		if _, said, code := called(t, "", append(args, "-o", out+"/")...); code != session.ExitDone {
			if f.kind != gate {
				t.Errorf("%v: exit code %d: %s", args, code, said)
			}
			return ""
		}
		for _, names := range []string{out + ".bloomjoin", "elsewhere"} {
			for _, name := range treeOf(t, names) { // any: all of a run have the same
				if found := recipeIn.FindString(name); found != "" {
					return found
				}
			}
		}
		t.Fatalf("%v: no recipe", args)
		return ""
	}
	first := instead(strings.Fields(run), strings.Fields(cmp.Or(f.uses, f.base)))
	one, other := recipe(first, "first"), recipe(instead(first, strings.Fields(f.args)), "other")
	if want := f.kind == answer || f.kind == layout; want != (one != other) && other != "" {
		t.Errorf("%s is declared as %s, and the recipe is %s, and %s with it", f.args, f.kind, one, other)
	}
}

// recipeIn matches the digests of a recipe.
var recipeIn = regexp.MustCompile(`"options": ?"[0-9a-f]+",\s*"ids": ?"[0-9a-f]+"`)

// What the calls of package bloomjoin have written, the command finds done, and they what it has.
func TestCallsAndCommand(t *testing.T) {
	flagFiles(t)
	filter, err := bloomjoin.Load(t.Context(), "one.bjf")
	if err != nil {
		t.Fatal(err)
	}
	other, err := bloomjoin.Load(t.Context(), "two.bjf")
	if err != nil {
		t.Fatal(err)
	}
	one := []dataset.Match{{Filter: filter}}
	cased := []dataset.Match{{Filter: filter, IgnoreCase: true}}
	log, int64s := []string{"log"}, map[string]arrow.DataType{"k": arrow.PrimitiveTypes.Int64}
	joined := func(opts join.Options, options ...bloomjoin.Option) func(string) error {
		opts.On = "k"
		return func(out string) error {
			r, err := bloomjoin.JoinFiles(t.Context(), []string{"one.csv"}, log, out, opts, options...)
			if err == nil && r.RowsOut == 0 {
				t.Errorf("%+v: no rows", opts)
			}
			return err
		}
	}
	scanned := func(opts partition.ScanOptions, options ...bloomjoin.Option) func(string) error {
		return func(out string) error {
			_, err := bloomjoin.ScanFiles(t.Context(), log, out, opts, options...)
			return err
		}
	}
	for i, c := range []struct {
		command string
		call    func(out string) error
	}{
		{"join --on k --ids one.csv", joined(join.Options{})},
		{"join --on k --ids one.csv --type inner --columns k,log.n --suffix _x", joined(join.Options{Type: join.Inner, Columns: []string{"k", "log.n"}, Suffix: "_x"})},
		{"join --on k --ids one.csv --type full --where dt>='2024-01-02'", joined(join.Options{Type: join.Full}, bloomjoin.OpenLog(partition.OpenOptions{Where: "dt >= '2024-01-02'"}))},
		{"join --on k --ids one.csv --hive-types dt:string --columns dt,k --require-rows 1", joined(join.Options{Columns: []string{"dt", "k"}, Require: dataset.Require{Rows: 1}}, bloomjoin.OpenLog(partition.OpenOptions{HiveTypes: "dt:string"}))},
		{"join --on k --ids one.csv --key-type int64 --ids-format csv --encoding latin1", joined(join.Options{KeepTypes: true}, bloomjoin.OpenIDs(partition.OpenOptions{Types: int64s, TextFormat: dataset.CSV, Encoding: "latin1"}))},
		{"join --on k --ids one.csv --key-type int64 --ids-where k>1", joined(join.Options{KeepTypes: true}, bloomjoin.OpenIDs(partition.OpenOptions{Types: int64s, Where: "k > 1"}))},
		{"scan --filter one.bjf", scanned(partition.ScanOptions{Match: one})},
		{"scan --filter one.bjf --columns dt,k --ignore-case", scanned(partition.ScanOptions{Match: cased, Columns: []string{"dt", "k"}, IgnoreCase: true}, bloomjoin.OpenLog(partition.OpenOptions{IgnoreCase: true}))},
		{"scan --filter one.bjf --match n=two.bjf --any --int96 ns", scanned(partition.ScanOptions{Match: append(one, dataset.Match{Filter: other, Key: "n"}), Any: true}, bloomjoin.OpenLog(partition.OpenOptions{Int96Nanos: true}))},
	} {
		for _, end := range []string{"/", ".parquet"} {
			ours, theirs := fmt.Sprint("ours", i, end), fmt.Sprint("theirs", i, end)
			command := append(strings.Fields(c.command), "--json", "log", "-o")
			if err := c.call(theirs); err != nil {
				t.Fatalf("%s: %v", c.command, err)
			}
			if printed := works(t, "", append(command, theirs)...); !strings.Contains(printed, `already_done":true`) {
				t.Errorf("%v after the call: %s", command, printed)
			}
			works(t, "", append(command, ours)...)
			before, _ := os.Stat(ours)
			if err := c.call(ours); err != nil {
				t.Errorf("the call after %v: %v", command, err)
			}
			if after, err := os.Stat(ours); err != nil || !after.ModTime().Equal(before.ModTime()) {
				t.Errorf("the call after %v has written %s: %v", command, ours, err)
			}
		}
	}
}

// Beside a list of inputs, a flag does what it does beside the inputs themselves, or was decided
// when they were listed.
func TestFlagsBesideList(t *testing.T) {
	for verb, v := range identities {
		if verb == "inputs" {
			continue
		}
		flags := map[string]flagged{}
		for _, more := range v.flags {
			maps.Copy(flags, more)
		}
		for name, f := range flags {
			if f.not != "" || name == "files-from" {
				continue
			}
			decided := slices.Contains([]string{"include", "exclude", "base", "hive-partitioning", "hive-types"}, name) || name == "ids-format" && verb == "build"
			t.Run(verb+"/"+name, func(t *testing.T) {
				flagFiles(t)
				in := cmp.Or(f.in, map[string]string{"build": "one.csv"}[verb], "log")
				works(t, "", "inputs", "--quiet", "--text", "-o", "in.jsonl", in)
				args := instead(instead(strings.Fields(v.run), strings.Fields(f.base)), strings.Fields(f.args))
				out := map[string]string{"build": ".bjf"}[verb]
				if out = cmp.Or(out, ".parquet"); f.dir {
					out = "/"
				}
				_, said, code := called(t, "", append(args, "-o", "named"+out, in)...)
				_, saidList, codeList := called(t, "", append(args, "-o", "listed"+out, "--files-from", "in.jsonl")...)
				if decided {
					if codeList != session.ExitUsage || !strings.Contains(saidList, "--"+name+" was decided when the inputs were listed") {
						t.Errorf("%v beside a list: exit code %d: %s", args, codeList, saidList)
					}
					return
				}
				if named, listed := treeOf(t, "named"+out), treeOf(t, "listed"+out); code != codeList || !maps.Equal(named, listed) {
					t.Errorf("%v: exit code %d, %d files: %s\nbeside a list: %d, %d files: %s", args, code, len(named), said, codeList, len(listed), saidList)
				}
			})
		}
	}
}

// treeOf returns the bytes of a file, or of those in a directory.
func treeOf(t *testing.T, root string) map[string]string {
	all := map[string]string{}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name := stagedAs.ReplaceAllString(strings.TrimPrefix(path, strings.TrimSuffix(root, "/")), "staged")
			all[name] = string(read(t, path))
		}
		return nil // it may not be there
	})
	return all
}

// stagedAs matches the end of a staged file's name.
var stagedAs = regexp.MustCompile(`[0-9a-f]+-[0-9]+-[0-9]+-[0-9a-f]+\.staged`)

// flagFiles writes the inputs of runs that are compared.
func flagFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	col := func(name string, values any) sourcetest.Col { return sourcetest.Col{Name: name, Values: values} }
	for i, name := range []string{"dt=2024-01-01/a", "dt=2024-01-02/b"} {
		lo := int64(2 * i)
		sourcetest.Write(t, filepath.Join("log", name+".parquet"), 40, sourcetest.Record(t, memory.DefaultAllocator,
			col("k", []int64{lo, lo + 1, 90}), col("n", []int64{lo, 90, 91}), col("s", []string{"a", "B", "c"})))
	}
	sourcetest.Put(t, "one.csv", "k\n1\n2\n90\n")
	sourcetest.Put(t, "two.csv", "k\n1\n90\n")
	sourcetest.Put(t, "head.csv", "1\n2\n90\n")
	for _, ids := range []string{"one", "two"} {
		works(t, "", "build", "--quiet", "--key", "k", "--key-type", "int64", "--kind", "exact", "-o", ids+".bjf", ids+".csv")
	}
	works(t, "", "inputs", "--quiet", "-o", "list.jsonl", "log")
	sourcetest.Put(t, "names.txt", "log\n")
}

// instead returns arguments with others, which replace those of the same flags.
func instead(args, more []string) []string {
	args = slices.Clone(args)
	for i := 0; i < len(more); i++ {
		if at := slices.Index(args, more[i]); at >= 0 && strings.HasPrefix(more[i], "-") {
			args[at+1] = more[i+1]
			i++
			continue
		}
		args = append(args, more[i])
	}
	return args
}

// listsOf returns a list of inputs that was written, with its index.
func listsOf(t *testing.T) (all string) {
	for _, name := range []string{"out.jsonl", "out.jsonl.index"} {
		if b, err := os.ReadFile(name); err == nil {
			all += string(b)
		}
	}
	return all
}

// Other names of a key belong to what a run is, for the command and the calls alike.
func TestOtherNamesAgain(t *testing.T) {
	flagFiles(t)
	run := []string{"join", "--ids", "one.csv", "--json", "-o", "out/", "log", "--on"}
	works(t, "", append(run, "k|x=k")...)
	if printed := works(t, "", append(run, "k|x=k")...); !strings.Contains(printed, `already_done":true`) {
		t.Errorf("the same again: %s", printed)
	}
	for _, on := range []string{"k=k", "k|y=k", "k=k|x"} {
		if _, said, code := called(t, "", append(run, on)...); code != session.ExitFailed || !strings.Contains(said, "does not come from these inputs and options") {
			t.Errorf("--on %s: exit code %d: %s", on, code, said)
		}
	}
	r, err := bloomjoin.JoinFiles(t.Context(), []string{"one.csv"}, []string{"log"}, "out/", join.Options{On: "k|x=k"})
	if err != nil || r.Strategy != "" {
		t.Errorf("the call after the command: %+v, %v; want no strategy, as nothing is left to do", r, err)
	}
}
