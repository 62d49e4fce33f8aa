package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// told is what the oracle of TestSets knows of an output: the inputs that it holds, by name.
type told map[string]source

// source is an input as its output was made.
type source struct{ content, place, recipe, file string }

// expect applies a run to the oracle. refused is true if the run may change nothing.
func (o told) expect(r *runner, roots []string) (next told, refused bool) {
	below := func(name string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return root == "" || strings.HasPrefix(name, root+"/") })
	}
	next = maps.Clone(o)
	ours := len(o) == 0 || r.Force // else one of the outputs must be
	for _, was := range o {
		ours = ours || was.recipe == r.Recipe.Options
	}
	if !ours {
		return o, true
	}
	kept := map[string]bool{} // partitions that still have an input
	for name := range r.log {
		if p := partitionOf(name); p != "" && below(p+"/") {
			kept[p] = true
		}
	}
	removed, redone := map[string]bool{}, map[string]bool{}
	for name, was := range o {
		_, named := r.log[name]
		if named && was.recipe != r.Recipe.Options && !r.Force {
			return o, true
		}
		if p := partitionOf(name); !named && (p != "" && kept[p] || below(name) && r.Prune) {
			if removed[name] = true; was.recipe != r.Recipe.Options && !r.Force {
				return o, true
			}
		}
	}
	for name, content := range r.log {
		was, there := o[name]
		redone[name] = !there || was.content != content || r.Force
	}
	for name := range redone {
		for other, was := range o {
			if _, named := r.log[other]; !redone[name] || named || removed[other] || was.place == "" || was.place != r.placeOf(name) {
				continue
			}
			if !r.Force {
				return o, true
			}
			removed[other] = true
		}
	}
	for again := true; again; { // what shares a file
		again = false
		for name, was := range o {
			for other, is := range o {
				if was.file != is.file || !redone[name] && !removed[name] || redone[other] || removed[other] {
					continue
				}
				if _, named := r.log[other]; !named {
					return o, true
				}
				redone[other], again = true, true
			}
		}
	}
	for name := range removed {
		delete(next, name)
	}
	first := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(redone)) {
		if !redone[name] {
			continue
		}
		group := r.fileOf(name)
		if first[group] == "" {
			first[group] = name
		}
		next[name] = source{r.log[name], r.placeOf(name), r.Recipe.Options, first[group]}
	}
	return next, false
}

// TestSets: random runs over siblings whose names begin alike, with inputs that share outputs,
// with Prune and Force, and over places by several names, leave what a map predicts.
func TestSets(t *testing.T) {
	universe := []string{"log/a", "log/b", "log/c", "log2/a", "log2/b", "lo/a", "log/dt=1/a", "log/dt=1/b", "log/dt=10/a", "log2/dt=1/a"}
	var refusals, runs int
	for seed := range uint64(seeds(cases.Count(60, 300, 2000))) {
		random := rand.New(rand.NewPCG(seed, 21))
		s, oracle := teststore.NewMemory(), told{}
		places := map[string]string{"other/a": "log/a", "other/b": "log2/a", "log/dt=1/b": "log/dt=1/b"}
		disk := map[string]string{}
		for _, name := range universe {
			disk[name] = name + "1"
		}
		var story []string
		shares := map[string][]string{}
		if random.IntN(2) == 0 {
			shares = map[string][]string{"+log": {"log/a", "log/b", "log/c"}, "+log2": {"log2/a", "log2/b"}}
		}
		for range 6 {
			for _, name := range universe { // the log changes
				switch random.IntN(8) {
				case 0:
					disk[name] = fmt.Sprint(name, random.IntN(3))
				case 1:
					delete(disk, name)
				}
			}
			roots := [][]string{{"log"}, {"log2"}, {"lo"}, {"log", "log2"}, {""}, {"log/dt=1"}, {"other"}}[random.IntN(7)]
			r := newRunner(s, map[string]string{})
			for name, content := range disk {
				if slices.ContainsFunc(roots, func(root string) bool { return root == "" || strings.HasPrefix(name, root+"/") }) {
					r.log[name] = content
				}
			}
			for name, at := range places { // the same files by other names
				if content, ok := disk[at]; ok && roots[0] == "other" && name != at {
					r.log[name] = content
				}
			}
			roots = slices.DeleteFunc(roots, func(root string) bool { // a directory without inputs is an error before
				return !slices.ContainsFunc(slices.Collect(maps.Keys(r.log)), func(name string) bool { return below(name, root) })
			})
			r.places, r.shares, r.roots = places, shares, roots
			r.Prune, r.Force = random.IntN(4) == 0, random.IntN(5) == 0
			r.Recipe.Options = []string{"o1", "o1", "o1", "o2"}[random.IntN(4)]
			if len(r.log) == 0 {
				continue
			}
			next, refused := oracle.expect(r, roots)
			_, _, _, err := r.do(t.Context())
			runs++
			story = append(story, fmt.Sprintf("%q prune %t force %t %s over %v: %v", roots, r.Prune, r.Force, r.Recipe.Options, r.log, err))
			if refused {
				refusals++
			} else {
				oracle = next
			}
			if refused != errors.Is(err, ErrExists) || err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrDone) {
				t.Errorf("seed %d: %v, want refused %t", seed, err, refused)
			}
			if got, want := listed(t, s), oracle.text(); got != want {
				t.Errorf("seed %d:\n got %s\nwant %s", seed, got, want)
			}
			if t.Failed() {
				t.Fatal(strings.Join(story, "\n"))
			}
		}
	}
	t.Logf("%d runs, %d refused", runs, refusals)
}

// text returns the contents of all inputs.
func (o told) text() string {
	var all []string
	for name, in := range o {
		all = append(all, name+":"+in.content)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// listed returns the same of what is in the directory, by the state; each file must hold exactly
// what its inputs are.
func listed(t *testing.T, s *teststore.Memory) string {
	t.Helper()
	b, ok := s.Get("b/out.bloomjoin/manifest.json")
	if !ok {
		return ""
	}
	state := &State{}
	if err := json.Unmarshal(b, state); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range state.Files {
		_, rows, _ := strings.Cut(string(must(s.Get("b/out/"+f.Name))), "|")
		var want int64
		text := rows
		for _, input := range f.Inputs {
			n := state.entry(input).Size
			want += n
			all = append(all, input+":"+text[:min(n, int64(len(text)))])
			text = text[min(n, int64(len(text))):]
		}
		if want != int64(len(rows)) {
			t.Errorf("%s has %q, want %d rows", f.Name, rows, want)
		}
	}
	var outputs int
	for _, name := range s.Names() {
		if strings.HasSuffix(name, ".out") {
			outputs++
		}
	}
	if outputs != len(state.Files) {
		t.Errorf("%d outputs, and the state has %d", outputs, len(state.Files))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func must(b []byte, ok bool) []byte {
	if !ok {
		return nil
	}
	return b
}

// TestSharedChain: of inputs that share files in a chain, all are done again with the first.
func TestSharedChain(t *testing.T) {
	s := &State{
		Inputs: []Entry{{Input: "a", Files: []string{"ab"}}, {Input: "b", Files: []string{"ab", "bc"}}, {Input: "c", Files: []string{"bc"}}, {Input: "d", Files: []string{"d"}}},
		Files:  []File{{Name: "ab", Inputs: []string{"a", "b"}}, {Name: "bc", Inputs: []string{"b", "c"}}, {Name: "d", Inputs: []string{"d"}}},
	}
	c := newComparison(&Dir{}, nil, s, Inputs{})
	for _, input := range []string{"a", "b", "c", "d"} {
		c.named[input] = true
	}
	c.todo["a"] = true
	if err := c.shared(); err != nil {
		t.Fatal(err)
	}
	equal(t, "inputs to do", slices.Sorted(maps.Keys(c.todo)), []string{"a", "b", "c"})
	delete(c.named, "c")
	c.todo = map[string]bool{"a": true}
	if err := c.shared(); !errors.Is(err, ErrExists) {
		t.Errorf("without the last: %v", err)
	}
}

// TestRemovedAndListed: a file that a state has and would remove stays.
func TestRemovedAndListed(t *testing.T) {
	s := teststore.NewMemory()
	r := newRunner(s, month)
	if _, _, _, err := r.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	state := &State{}
	const name = "b/out.bloomjoin/manifest-00000001.json"
	if err := json.Unmarshal(must(s.Get(name)), state); err != nil {
		t.Fatal(err)
	}
	state.Remove = []File{{Name: "flat.out"}}
	b, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	s.Put(name, b)
	if err := s.Delete(t.Context(), storage.Object{Name: "b/out.bloomjoin/settled-00000001.json"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Complete(t.Context(), nil); !errors.Is(err, ErrDone) {
		t.Error(err)
	}
	equal(t, "data", data(s), monthData)
}

// TestIDsChangedDiffers: workers that disagree on what to do with outputs of other IDs are not
// of one run.
func TestIDsChangedDiffers(t *testing.T) {
	s := teststore.NewMemory()
	if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, change := range []IDsChange{IDsRerun, IDsKeep} {
		r := newRunner(s, with(map[string]string{"dt=3/a": "n", "dt=3/b": "n"}))
		r.Recipe.IDs, r.IDsChanged, r.Shard, r.Of = "i2", change, uint32(i), 2
		if _, _, _, err := r.do(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, ok := s.Get("b/out.bloomjoin/" + stateName(2)); ok {
		t.Error("two workers that disagree have committed")
	}
}

// TestTwoNames: one place under two names is noticed by the commit of other workers' parts, and
// by an inspection; the same name from several places is one input.
func TestTwoNames(t *testing.T) {
	s := teststore.NewMemory()
	for i, log := range []map[string]string{{"a": "1"}, {"x/a": "1", "x/b": "2"}} {
		r := newRunner(s, log)
		r.NoCommit = true
		r.places = map[string]string{"a": "/x/a", "x/a": "/x/a"}
		r.Shard, r.Of = 0, 1
		if i == 1 {
			r.Of = 2
			other := newRunner(s, log)
			other.places, other.NoCommit = map[string]string{"x/b": "/mounted/elsewhere/x/b"}, true
			other.Shard, other.Of = 1, 2
			if _, _, _, err := other.do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, _, err := r.do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d := newRunner(s, nil)
	if _, err := d.Complete(t.Context(), nil); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "a and x/a are one file") {
		t.Errorf("commit: %v", err)
	}
	if _, ok := s.Get("b/out/" + Success); ok {
		t.Error("there is a _SUCCESS")
	}

	s = teststore.NewMemory()
	for _, at := range []string{"/here/a", "/there/a"} { // by the mounts of two machines
		r := newRunner(s, map[string]string{"a": at})
		r.places = map[string]string{"a": at}
		if _, _, _, err := r.do(t.Context()); err != nil {
			t.Error(err)
		}
	}
	equal(t, "data", data(s), "_SUCCESS a.out:/there/a")

	s = teststore.NewMemory()
	r := newRunner(s, map[string]string{"a": "1", "b": "1"})
	if _, _, _, err := r.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	const name = "b/out.bloomjoin/manifest-00000001.json"
	s.Put(name, []byte(strings.Replace(string(must(s.Get(name))), `"place":"b"`, `"place":"a"`, 1)))
	v, err := r.Verify(t.Context(), false)
	if err != nil || v.Complete || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "a and b are one file") {
		t.Errorf("inspect: %+v, %v", v, err)
	}
}
