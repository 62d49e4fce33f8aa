package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/storetest"
)

// place is where a job array reads and writes.
type place interface {
	name(rel string) string
	put(rel, content string)
	remove(rel string)
	// files returns everything at the place but inputs, by name.
	files() map[string]string
}

// folder is a place in the file system.
type folder struct {
	*testing.T
	dir string
}

func (f folder) name(rel string) string { return f.dir + "/" + rel }

func (f folder) put(rel, content string) {
	f.Helper()
	if err := os.MkdirAll(filepath.Dir(f.name(rel)), 0o777); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(f.name(rel), []byte(content), 0o600); err != nil {
		f.Fatal(err)
	}
}

func (f folder) remove(rel string) {
	f.Helper()
	if err := os.RemoveAll(f.name(rel)); err != nil {
		f.Fatal(err)
	}
}

func (f folder) files() map[string]string {
	f.Helper()
	return withoutInputs(snapshotOf(f.T, f.dir))
}

// inBucket is a place in a bucket.
type inBucket struct {
	*testing.T
	*storetest.Gateway
}

func (o inBucket) name(rel string) string  { return o.Gateway.Name(rel) }
func (o inBucket) put(rel, content string) { o.Gateway.Put(o.T, rel, []byte(content)) }

func (o inBucket) remove(rel string) {
	for _, key := range o.Keys(o.T) {
		if key == rel || strings.HasPrefix(key, rel+"/") {
			o.Gateway.Remove(o.T, key)
		}
	}
}

func (o inBucket) files() map[string]string {
	all := map[string]string{}
	for key, b := range o.All(o.T) {
		if !isInput(key) {
			all[key] = string(b)
		}
	}
	return all
}

func isInput(name string) bool { return strings.HasPrefix(name, "in/") }

func withoutInputs(files map[string]string) map[string]string {
	maps.DeleteFunc(files, func(name, _ string) bool { return isInput(name) })
	return files
}

// jobArray is a command that workers do together, at a place. The log as it was is
// in/old/logs, and as it is in/new/logs.
type jobArray struct {
	*testing.T
	place
	verb    []string
	grown   bool // the outputs of the old log are there before
	old     map[string]string
	want    map[string]string
	took    time.Duration // of all workers at once
	workers int
	inputs  []string // nil: the new log
}

// arrayLog returns a Parquet file with four row groups. If hit is false, it has no
// ID.
func arrayLog(t *testing.T, seed uint64, hit bool) string {
	t.Helper()
	type row struct {
		K       int64  `parquet:"k"`
		Payload []byte `parquet:"payload"`
	}
	random := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(400))
	for range 1600 {
		r := row{random.Int64N(9000)*3 + 1, fmt.Appendf(nil, "%0100x", random.Uint64())}
		if hit && random.IntN(3) == 0 {
			r.K--
		}
		if _, err := w.Write([]row{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// putArrayLogs puts the IDs and both versions of the log: a day is added, one is
// compacted, in one a file changes, and one goes.
func putArrayLogs(t *testing.T, p place) {
	t.Helper()
	put := func(day int, file string, seed uint64, versions ...string) {
		content := arrayLog(t, seed, seed%5 > 0)
		for _, v := range versions {
			p.put(fmt.Sprintf("in/%s/logs/dt=2024-01-0%d/%s.parquet", v, day, file), content)
		}
	}
	for i, file := range []string{"a", "b", "c"} {
		seed := uint64(i)
		put(1, file, 10+seed, "old", "new")
		put(2, file, 20+seed, "old")
		put(3, file, 30+seed, "old")
		put(4, file, 40+seed, "old")
		put(5, file, 50+seed, "new")
	}
	put(2, "c", 22, "new")
	put(2, "d", 23, "new")
	put(3, "a", 30, "new")
	put(3, "b", 77, "new")
	put(3, "c", 32, "new")
	var ids strings.Builder
	ids.WriteString("k,name\n")
	for id := 0; id < 27_000; id += 3 {
		fmt.Fprintf(&ids, "%d,n%d\n", id, id)
	}
	p.put("in/ids.csv", ids.String())
}

// arrays returns a scan and a join, each into an empty place and over the outputs of
// an older log, done once without trouble by that number of workers.
func arrays(t *testing.T, p place, workers int) (all []*jobArray) {
	t.Helper()
	putArrayLogs(t, p)
	must(t, "build", "--quiet", "--key", "k", "--key-type", "int64", "--kind", "bloom", "-o", p.name("in/ids.bjf"), p.name("in/ids.csv"))
	for _, verb := range [][]string{
		{"scan", "--filter", p.name("in/ids.bjf")},
		{"join", "--type", "inner", "--key-type", "int64", "--ids", p.name("in/ids.csv"), "--on", "k"},
	} {
		for _, grown := range []bool{false, true} {
			a := &jobArray{T: t, place: p, verb: verb, grown: grown}
			a.divide(workers)
			if len(dataOf(a.want)) < 8 || a.want["out/_SUCCESS"] != "" || !has(a.want, "out/_SUCCESS") {
				t.Fatalf("%s: an undisturbed run leaves %q", a, slices.Sorted(maps.Keys(a.want)))
			}
			all = append(all, a)
		}
	}
	return all
}

func has(files map[string]string, name string) bool {
	_, ok := files[name]
	return ok
}

func (a *jobArray) String() string {
	if a.grown {
		return a.verb[0] + " of a log that has grown"
	}
	return a.verb[0]
}

// divide sets the number of workers, and does all once without trouble.
func (a *jobArray) divide(workers int) {
	a.Helper()
	a.workers = workers
	a.prepare()
	a.old = a.files()
	began := time.Now()
	if codes, said := a.wait(a.all()...); codes != nil {
		a.Fatalf("%s: %v", a, said)
	}
	a.took, a.want = time.Since(began), a.files()
}

// prepare removes all outputs, and writes those that were there before.
func (a *jobArray) prepare() {
	a.Helper()
	for name := range a.files() {
		a.remove(name)
	}
	a.remove("out")
	a.remove("out.bloomjoin")
	if a.grown {
		must(a.T, append(slices.Clone(a.verb), "--quiet", "-o", a.name("out/"), a.name("in/old/logs/"))...)
	}
}

// command returns a worker.
func (a *jobArray) command(shard int, more ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(a.Context(), 2*time.Minute)
	a.Cleanup(cancel)
	args := append(slices.Clone(a.verb), "--quiet", "-o", a.name("out/"))
	if a.workers > 1 {
		args = append(args, "--shard", fmt.Sprintf("%d/%d", shard, a.workers))
	}
	args = append(args, more...)
	if a.inputs == nil {
		args = append(args, a.name("in/new/logs/"))
	}
	cmd := exec.CommandContext(ctx, "bloomjoin", append(args, a.inputs...)...)
	cmd.Stderr = &bytes.Buffer{}
	return cmd
}

// all starts all workers.
func (a *jobArray) all() []*exec.Cmd {
	a.Helper()
	var cmds []*exec.Cmd
	for i := range a.workers {
		cmds = append(cmds, a.start(i))
	}
	return cmds
}

func (a *jobArray) start(shard int, more ...string) *exec.Cmd {
	a.Helper()
	cmd := a.command(shard, more...)
	if err := cmd.Start(); err != nil {
		a.Fatal(err)
	}
	return cmd
}

// wait waits for commands, and returns the exit codes and messages of those that
// have failed, by their number.
func (a *jobArray) wait(cmds ...*exec.Cmd) (codes map[int]int, said []string) {
	for i, cmd := range cmds {
		if code, text := end(cmd); code != session.ExitDone {
			if codes == nil {
				codes = map[int]int{}
			}
			codes[i] = code
			said = append(said, fmt.Sprintf("worker %d: exit code %d: %s", i, code, text))
		}
	}
	return codes, said
}

// dataOf returns the files that readers take for data.
func dataOf(files map[string]string) map[string]string {
	data := maps.Clone(files)
	maps.DeleteFunc(data, func(name, _ string) bool {
		return !strings.HasPrefix(name, "out/") || strings.HasPrefix(path.Base(name), ".") || strings.HasPrefix(path.Base(name), "_")
	})
	return data
}

// below returns the files in a directory.
func below(files map[string]string, dir string) map[string]string {
	in := maps.Clone(files)
	maps.DeleteFunc(in, func(name, _ string) bool { return !strings.HasPrefix(name, dir+"/") })
	return in
}

// partial checks what workers that failed have left: every visible file is an old one
// or a new one, and where _SUCCESS is, all are old or all are new.
func (a *jobArray) partial(what string) {
	a.Helper()
	now := a.files()
	data, old, want := dataOf(now), dataOf(a.old), dataOf(a.want)
	for name, content := range data {
		was, before := old[name]
		is, after := want[name]
		if !(before && content == was) && !(after && content == is) {
			a.Errorf("%s: %s: %s is neither the old nor the new one", a, what, name)
		}
	}
	for name := range now {
		dir, mark := strings.CutSuffix(name, "/_SUCCESS")
		if !mark {
			continue
		}
		if got := below(data, dir); !maps.Equal(got, below(old, dir)) && !maps.Equal(got, below(want, dir)) {
			a.Errorf("%s: %s: %s stands, with %q there, which are neither the old nor the new files", a, what, name, slices.Sorted(maps.Keys(got)))
		}
	}
}

// generation matches what numbers the states of an output directory.
var generation = regexp.MustCompile(`(manifest|settled)-0*([0-9]{1,8})`)

// finished checks that the place is as an undisturbed run leaves it.
func (a *jobArray) finished(what string) {
	a.Helper()
	got := a.files()
	for name, content := range dataOf(a.want) {
		if got[name] != content {
			a.Errorf("%s: %s: %s has %d bytes, want others, %d (is it there: %v)", a, what, name, len(got[name]), len(content), has(got, name))
		}
	}
	names := func(files map[string]string) (all []string) {
		for name := range files {
			all = append(all, generation.ReplaceAllString(name, "$1-#"))
		}
		slices.Sort(all)
		return all
	}
	if g, w := names(got), names(a.want); !slices.Equal(g, w) {
		a.Errorf("%s: %s: stray %q, missing %q", a, what, without(g, w), without(w, g))
	}
	for name := range got {
		g := generation.FindStringSubmatch(name)
		if g != nil && !strings.Contains(got["out.bloomjoin/manifest.json"], `"generation":`+g[2]+",") {
			a.Errorf("%s: %s: manifest.json is not a copy of %s", a, what, name)
		}
	}
	if out, err := exec.Command("bloomjoin", "inspect", "--check", a.name("out/")).CombinedOutput(); err != nil {
		a.Errorf("%s: %s: inspect --check: %v: %s", a, what, err, out)
	}
}

// rowsOf returns the rows of all data files, by partition, in ascending order. Unlike
// the names of files, they do not depend on how the log was divided.
func (a *jobArray) rowsOf(files map[string]string) (rows []string) {
	a.Helper()
	for name, content := range dataOf(files) {
		r := parquet.NewReader(strings.NewReader(content))
		for {
			row := map[string]any{}
			err := r.Read(&row)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				a.Fatalf("%s: %v", name, err)
			}
			rows = append(rows, fmt.Sprint(path.Dir(name), row))
		}
		if err := r.Close(); err != nil {
			a.Fatal(err)
		}
	}
	slices.Sort(rows)
	return rows
}

// without returns the elements of a that b does not have.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// again runs workers and expects that they succeed.
func (a *jobArray) again(what string, shards ...int) {
	a.Helper()
	var cmds []*exec.Cmd
	for _, i := range shards {
		cmds = append(cmds, a.start(i))
	}
	if codes, said := a.wait(cmds...); codes != nil {
		a.Errorf("%s: %s: again: %s", a, what, strings.Join(said, "; "))
	}
}

// everyone returns the numbers of all workers.
func (a *jobArray) everyone() (shards []int) {
	for i := range a.workers {
		shards = append(shards, i)
	}
	return shards
}

// kills returns how many processes a test kills.
func kills(t *testing.T, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("BLOOMJOIN_KILLS"))
	if err != nil {
		return usual
	}
	return n
}

// killed runs an array and kills workers at random moments, half of the time all at
// once. It returns how many died.
func (a *jobArray) killed(random *rand.Rand, round int) (died int) {
	a.Helper()
	a.prepare()
	cmds := a.all()
	moment := func() time.Duration { return time.Duration(random.Int64N(int64(a.took))) }
	when, together := make([]time.Duration, len(cmds)), moment()
	for i := range when {
		if when[i] = together; round%2 > 0 {
			when[i] = moment()
			if random.IntN(2) == 0 {
				when[i] = time.Hour // not killed
			}
		}
	}
	began := time.Now()
	order := a.everyone()
	slices.SortFunc(order, func(i, k int) int { return int(when[i] - when[k]) })
	for _, i := range order {
		if when[i] == time.Hour {
			continue
		}
		time.Sleep(time.Until(began.Add(when[i])))
		if err := cmds[i].Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			a.Fatal(err)
		}
	}
	codes, said := a.wait(cmds...)
	failed := slices.Sorted(maps.Keys(codes))
	for i, code := range codes {
		if died++; code >= 0 {
			a.Errorf("%s: round %d: worker %d failed, and was not killed: %s", a, round, i, strings.Join(said, "; "))
		}
	}
	what := fmt.Sprintf("round %d, killed %v of %d", round, failed, len(cmds))
	a.partial(what)
	if round%4 < 2 { // as a scheduler does: those that failed
		a.again(what, failed...)
	} else {
		a.again(what, order...)
	}
	a.finished(what)
	return died
}

// killedOften kills workers of arrays until enough have died.
func killedOften(t *testing.T, p place, enough int) {
	all := arrays(t, p, cases.Count(3, 4, 8))
	random := rand.New(rand.NewPCG(18, 1))
	died, round := 0, 0
	for ; (died < enough || round < len(all)) && round < maxRounds && !t.Failed(); round++ {
		died += all[round%len(all)].killed(random, round/len(all)+round%len(all)/2)
	}
	t.Logf("%d workers were killed in %d rounds", died, round)
	if died == 0 {
		t.Error("no worker was killed at work: the test shows nothing")
	}
}
