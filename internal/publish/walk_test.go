package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A walk is a way through the states that a few processes can reach, as package protocol has them, taken
// by the code itself: runs of one or two workers and committers over two inputs share a directory.
// Inputs change, users delete outputs, staged files expire, requests are not answered and take effect
// later or twice, and processes are killed or stopped. What package protocol says holds is checked after
// each write, and at the end.

var walkInputs = []string{"dt=1/a", "dt=2/b"}

// walk is one of them.
type walk struct {
	t       *testing.T
	random  *rand.Rand
	s       *teststore.Memory
	log     map[string]string // the inputs as they are
	procs   []*walker
	late    []lateWrite
	mishaps int               // that may still happen
	hit     map[string]bool   // names of outputs that a user or an unconditional delete has removed, or whose staged file has expired
	tokens  map[string]string // staged, and not published or dropped: to the name
	kinds   map[string]int    // what happened
	calm    bool              // nothing has disturbed the processes
	lost    bool              // a staged file, or an output after workers of several have agreed on what they do
	copies  bool              // the storage has no staged objects
	plain   bool              // the storage has no conditional deletes
	listed  bool              // the inputs are those of lists
	wrong   string
	any     *State // the newest
	state   *State // the same, if it is settled
	version string // of any
	turns   *turns
}

// lateWrite is a request that takes effect later, or never.
type lateWrite struct {
	by    *walker
	what  string
	write func() error
}

// fated is a fate that waits until a process has made some requests.
type fated struct {
	after int
	fate  fate
}

// walker is a process.
type walker struct {
	r         *runner
	committer bool
	copies    bool // of the storage: what is damaged in a state may be whole, by a later copy
	begun     bool
	ended     bool
	base      int64 // generation with which it compares
	good      bool  // a settled state was as it wants since it began
	fates     []fated
	dead      bool
	requests  int
	err       error
	waits     string
}

// mishap may let something happen that is no request of a process.
func (w *walk) mishap() {
	switch w.random.IntN(25) {
	case 0:
		w.change()
	case 1:
		w.harm()
	case 2, 3:
		w.land()
	}
}

// fate returns what becomes of a process's next request: writes have one more often.
func (w *walk) fate(p *walker, writes bool) fate {
	p.requests++
	switch {
	case p.dead:
		return killed
	case len(p.fates) == 0 || p.requests < p.fates[0].after || !writes && w.random.IntN(4) > 0:
		return goes
	}
	f := p.fates[0].fate
	p.fates = p.fates[1:]
	return f
}

// change changes an input, or lets it go or come back.
func (w *walk) change() {
	if w.mishaps == 0 {
		return
	}
	w.mishaps--
	w.calm = false
	input := walkInputs[w.random.IntN(2)]
	switch v := w.random.IntN(3); v {
	case 0:
		delete(w.log, input)
	default:
		w.log[input] = fmt.Sprint(input[:1], v)
	}
	w.did("an input changes")
}

// harm lets a user delete an output, or a staged file expire.
func (w *walk) harm() {
	if w.mishaps == 0 {
		return
	}
	names, tokens := w.outputs(), slices.Sorted(maps.Keys(w.tokens))
	n := len(names) + len(tokens)
	if n == 0 {
		return
	}
	w.mishaps--
	w.calm = false
	if k := w.random.IntN(n); k < len(names) {
		w.lost, w.hit[names[k]] = true, true
		w.must(w.s.Delete(context.Background(), storage.Object{Name: names[k]}))
		w.did("a user deletes an output")
	} else {
		w.expire(tokens[k-len(names)])
	}
	w.check()
}

// outputs returns the names of the files that a plain reader finds.
func (w *walk) outputs() (names []string) {
	for _, name := range w.s.Names() {
		if strings.HasPrefix(name, "b/out/") && !storage.Marker(path.Base(name)) {
			names = append(names, name)
		}
	}
	return names
}

// expire drops a staged file.
func (w *walk) expire(token string) {
	name := w.tokens[token]
	w.lost, w.hit[name] = true, true
	delete(w.tokens, token)
	if w.copies {
		w.must(w.s.Delete(context.Background(), storage.Object{Name: path.Join(path.Dir(name), token)}))
	} else {
		w.must(w.s.Discard(context.Background(), name, token))
	}
	w.did("a staged file expires")
}

// land lets a late request take effect.
func (w *walk) land() {
	if len(w.late) == 0 {
		return
	}
	i := w.random.IntN(len(w.late))
	l := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	w.did("late: " + lateKind(l.what))
	_ = w.effect(l.by, l.what, l.write) // it may be refused
}

// must notes an error that the storage must not return.
func (w *walk) must(err error) {
	if err != nil {
		w.fails("%v", err)
	}
}

// fails notes the first thing that does not hold.
func (w *walk) fails(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.turns.log = append(w.turns.log, "HERE: "+w.wrong)
	}
}

// did counts what happened.
func (w *walk) did(kind string) {
	w.kinds[kind]++
	w.turns.log = append(w.turns.log, "  "+kind)
}

// request lets a request of a worker take effect: now, later, or never.
func (w *walk) request(s *turning, what string, f fate, write func() error) (err error) {
	p := w.procs[s.worker]
	if p.dead {
		return nil
	}
	p.dead = f == killed
	kind := kindOf(what)
	if f == killed || f == halted || f == unanswered {
		w.calm = false
		w.did([...]string{killed: "a process is killed", halted: "a process is stopped", unanswered: "a write has no answer"}[f])
		if write != nil && !strings.HasPrefix(what, "stage ") && w.random.IntN(3) > 0 {
			w.late = append(w.late, lateWrite{p, what, write})
		}
		return nil
	}
	if write == nil {
		if kind == "begin: read root" {
			p.base = w.newest()
		}
		w.did(kind)
		return nil
	}
	if f == repeated && !strings.HasPrefix(what, "stage ") {
		w.calm = false
		w.did("a write is repeated")
		w.late = append(w.late, lateWrite{p, what, write})
	}
	if err = w.effect(p, what, write); err != nil {
		kind += ": refused"
	}
	w.did(kind)
	return err
}

// newest returns the newest generation.
func (w *walk) newest() (newest int64) {
	for _, name := range w.s.Names() {
		if n := generationOf(path.Base(name)); n > newest && path.Base(name) == stateName(n) {
			newest = n
		}
	}
	return newest
}

// effect lets a write take effect, and checks what there is then.
func (w *walk) effect(p *walker, what string, write func() error) error {
	if err := write(); err != nil {
		return err
	}
	op, name, token := "", "", ""
	fmt.Sscan(what, &op, &name, &token)
	switch base := path.Base(name); {
	case op == "publish", op == "discard":
		delete(w.tokens, token)
		w.hit[name] = w.hit[name] && op == "discard"
	case op == "write" && strings.HasSuffix(base, ".staged"):
		w.tokens[base] = path.Join(path.Dir(name), base[1:strings.LastIndexByte(strings.TrimSuffix(base, ".staged"), '.')])
	case op == "delete" && strings.HasSuffix(base, ".staged"):
		delete(w.tokens, base)
	case op == "write":
		delete(w.hit, name)
	case op == "delete" && w.plain:
		w.hit[name] = true
	}
	before := w.any
	w.check()
	if now := w.any; now != before && before != nil && now.Generation > before.Generation && !p.committer {
		w.checkSwap(p, before, now)
	}
	return nil
}

// checkSwap checks that a run replaces no entry that came after it began.
func (w *walk) checkSwap(p *walker, before, now *State) {
	for i := range before.Inputs {
		e := &before.Inputs[i]
		f := now.entry(e.Input)
		if same := f != nil && e.Print == f.Print && before.recipe(e).same(now.recipe(f)); !same && e.Generation > p.base {
			w.fails("S3: a run over generation %d replaces %s of generation %d", p.base, e.Input, e.Generation)
		}
	}
}

// check checks what must hold in each state.
func (w *walk) check() {
	w.read()
	names := w.outputs()
	for _, input := range walkInputs {
		if of := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, "b/out/"+input) }); len(of) > 1 {
			w.fails("S1: %s has the outputs %q", input, of)
		}
	}
	s := w.state
	if s == nil {
		return
	}
	for _, name := range names {
		if s.file(strings.TrimPrefix(name, "b/out/")) == nil && !w.hit[name] {
			w.fails("S5: generation %d does not list %s", s.Generation, name)
		}
	}
	for i := range s.Files {
		w.checkFile(s, &s.Files[i])
	}
	for _, p := range w.procs {
		p.good = p.good || p.begun && !p.ended && p.wants(s)
	}
}

// checkFile compares a file with a settled state. A late copy of a staged file may have put the same
// content there with another identity.
func (w *walk) checkFile(s *State, f *File) {
	name := "b/out/" + f.Name
	o, err := w.s.Stat(context.Background(), name)
	b, _ := w.s.Get(name)
	_, rows, _ := strings.Cut(string(b), "|")
	e := s.entry(f.Inputs[0])
	switch right := err == nil && e.Print == printOf(rows); {
	case right && (o.Identity == f.Identity || w.copies), w.hit[name] && (err != nil || o.Identity != f.Identity):
	case err == nil && o.Identity == f.Identity:
		w.fails("S2: %s has %s, generation %d says something else", name, b, s.Generation)
	default:
		w.fails("S5: %s is not as generation %d says (identity %q): %+v, %v", name, s.Generation, f.Identity, o, err)
	}
}

func printOf(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

// read reads the newest state, unless it is known.
func (w *walk) read() {
	ctx := context.Background()
	version := ""
	if n := w.newest(); n > 0 {
		o, err := w.s.Stat(ctx, "b/out.bloomjoin/"+stateName(n))
		w.must(err)
		version = o.Identity
		if o, err = w.s.Stat(ctx, "b/out.bloomjoin/"+settledName(n)); err == nil {
			version += " " + o.Identity
		}
	}
	if version == w.version {
		return
	}
	l := &listing{dir: &newRunner(w.s, nil).Dir}
	w.must(l.manifests(ctx))
	s, err := l.state(ctx)
	w.must(err)
	w.version, w.any, w.state = version, s, s
	if s.pending() {
		w.state = nil
	}
}

// wants reports whether a state has all inputs of a process as it saw them.
func (p *walker) wants(s *State) bool {
	if p.committer || p.r.Force && p.base < 0 {
		return false
	}
	for _, input := range walkInputs {
		if !below(input, strings.Join(p.r.roots, "")) {
			continue
		}
		e := s.entry(input)
		content, there := p.r.log[input]
		switch {
		case !there && (e == nil || e.Generation > p.base): // it removes what there was when it began
		case !there, e == nil, e.Print != printOf(content), !s.recipe(e).same(&p.r.Recipe), p.r.Force && e.Generation <= p.base:
			return false
		case !p.copies && slices.ContainsFunc(e.Files, func(name string) bool { return s.file(name).Identity == "" }):
			return false
		}
	}
	return true
}

// kindOf returns which event of package protocol a request is, by what it asks for and by the functions
// that the worker is in.
func kindOf(what string) string {
	op, name, _ := strings.Cut(what, " ")
	if op == "open" {
		return op
	}
	name, _, _ = strings.Cut(name, " ")
	rel, manifest := strings.CutPrefix(name, "b/out.bloomjoin")
	rel = strings.TrimPrefix(rel, "/")
	base := path.Base(name)
	in := callers()
	switch {
	case op == "list" && manifest:
		for _, c := range [][2]string{
			{"newest", "swap: check for a higher generation"}, {"start", "begin: read root"}, {"mark", "leave: read root"}, {"retire", "retire: read root"},
			{"commitRuns", "swap: read root"}, {"commit", "swap: read root"}, {"commitParts", "swap: read root"}, {"Complete", "commit: find a run with all parts"},
			{"create", "part: look at that of another attempt"}, {"waits", "read the parts of all"}, {"commitIfComplete", "read the parts of all"},
		} {
			if in[c[0]] {
				return c[1]
			}
		}
		return "read root"
	case op == "list" && in["mark"]:
		return "leave: read _SUCCESS"
	case op == "list" && in["start"], op == "stage", strings.HasSuffix(base, ".staged") && op == "write":
		return "begin: compare root, inputs and outputs; stage"
	case op == "write" && strings.HasPrefix(rel, "plan-"):
		return "begin: plan; stage"
	case op == "write" && strings.HasPrefix(rel, "shard-"):
		return "part"
	case op == "write" && in["swap"] && generationOf(rel) > 0 && !in["publish"]:
		return "swap"
	case op == "write" && in["fence"]:
		return "retire: a generation that outdates other runs"
	case op == "write" && rel == copyName:
		return "leave: copy the state"
	case op == "write" && rel == settledName(generationOf(rel)):
		return "publish: settle"
	case op == "delete" && in["unmark"]:
		return "publish: delete _SUCCESS"
	case op == "delete" && in["clear"]:
		return "publish: remove a file"
	case op == "publish", op == "write" && in["Publish"]:
		return "publish: a token"
	case op == "delete" && in["Publish"]:
		return "publish: delete the source of a copy"
	case op == "stat" && in["Publish"]:
		return "publish: look at the copy"
	case op == "write" && base == Success:
		return "leave: put _SUCCESS"
	case op == "delete" && manifest:
		return "clean"
	case op == "discard", op == "delete" && strings.HasSuffix(base, ".staged"):
		return "drop a staged file"
	}
	return op
}

// callers returns the names of the functions that the caller is in.
func callers() map[string]bool {
	var at [64]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(3, at[:])])
	in := map[string]bool{}
	for f, more := frames.Next(); more; f, more = frames.Next() {
		_, name, _ := strings.Cut(path.Base(f.Function), ".")
		for _, part := range strings.Split(name, ".") {
			in[part] = true
		}
	}
	return in
}

// lateKind returns which write of package protocol takes effect late.
func lateKind(what string) string {
	op, name := "", ""
	fmt.Sscan(what, &op, &name)
	_, manifest := strings.CutPrefix(name, "b/out.bloomjoin/")
	kind, _, _ := strings.Cut(path.Base(name), "-")
	switch kind = map[string]string{"manifest": "generation", "settled": "generation", "shard": "part", "plan": "plan", "manifest.json": "copy of the state"}[kind]; {
	case manifest && op == "write":
		return "create " + kind
	case manifest:
		return "delete " + kind
	case path.Base(name) == Success:
		return map[string]string{"write": "put", "delete": "delete"}[op] + " _SUCCESS"
	case op == "discard", op == "delete" && strings.HasSuffix(name, ".staged"):
		return "drop token"
	case op == "publish":
		return "publish token"
	case op == "write" && !strings.HasSuffix(name, ".staged"):
		return "copy token"
	case op == "delete":
		return "remove file"
	}
	return op
}

// saysWhatToDo matches errors of workers that end.
var saysWhatToDo = regexp.MustCompile(`run again|run it again|run the worker|run all workers|run these first|run both|try again|Force|write to another directory|name the manifests|there is no _SUCCESS`)

// ends notes how a process ended.
func (w *walk) ends(p *walker, err error) {
	p.ended, p.err = true, err
	kind := ""
	switch {
	case err == nil && p.waits != "":
		kind = "ends: its part is there"
	case err == nil, errors.Is(err, ErrDone):
		kind = "ends: done"
		if !p.good && !p.committer && (p.r.Of <= 1 || err == nil) && !p.r.NoCommit {
			w.fails("S3: it exits 0, but no settled state was as it wants since it began")
		}
	case errors.Is(err, errKilled):
		kind = "ends: killed"
	case errors.Is(err, context.Canceled):
		kind = "ends: stopped"
	case errors.Is(err, errUnanswered):
		kind = "ends: no answer"
	case errors.Is(err, storage.ErrChanged):
		kind = "ends: an input changed"
	case p.committer && cause.Of(err) == cause.NotCommitted:
		kind = "ends: incomplete"
	case strings.Contains(err.Error(), "which writes it anew"):
		kind = "ends: damaged"
	case errors.Is(err, ErrExists) && errors.Is(err, storage.ErrAgain):
		kind = "ends: lost"
	case errors.Is(err, ErrExists):
		kind = "ends: refused"
	case errors.Is(err, storage.ErrAgain), cause.Of(err) == cause.Workers:
		kind = "ends: workers disagree"
	default:
		w.fails("an error of no kind: %v", err)
	}
	if strings.HasPrefix(kind, "ends: ") && err != nil && !errors.Is(err, ErrDone) && !errors.Is(err, errKilled) && !errors.Is(err, context.Canceled) && !saysWhatToDo.MatchString(err.Error()) {
		w.fails("an error that does not say what to do: %v", err)
	}
	w.did(kind)
	w.turns.log = append(w.turns.log, fmt.Sprintf("  waits: %q, error: %v", p.waits, err))
}

// newWalk draws the processes of a walk.
func newWalk(t *testing.T, seed uint64, kinds map[string]int) *walk {
	random := rand.New(rand.NewPCG(seed, 31))
	w := &walk{
		t: t, random: random, s: teststore.NewMemory(), log: map[string]string{walkInputs[0]: "d1", walkInputs[1]: "d1"}, kinds: kinds, calm: true,
		mishaps: max(random.IntN(4)-1, 0), hit: map[string]bool{}, tokens: map[string]string{}, copies: random.IntN(4) == 0, plain: random.IntN(8) == 0,
	}
	w.turns = &turns{random: random, walk: w}
	disturbed, forced, renames := random.IntN(3) > 0, random.IntN(4) == 0, random.IntN(2) == 0
	w.listed = random.IntN(2) == 0
	for n := 2 + random.IntN(2); len(w.procs) < n; {
		recipe := Recipe{Options: "o1", IDs: fmt.Sprint("i", 1+random.IntN(2))}
		if forced && random.IntN(2) == 0 {
			recipe.Options = "o2"
		}
		roots := [][]string{nil, nil, {"dt=1"}, {"dt=2"}}[random.IntN(4)]
		of, noCommit := uint32(1+random.IntN(2)), random.IntN(4) == 0
		for shard := range of {
			for range 1 + max(random.IntN(6)-4, 0) { // twins
				w.add(func(p *walker) {
					p.r.Recipe, p.r.roots, p.r.Shard, p.r.Of, p.r.NoCommit, p.r.Force = recipe, roots, shard, of, noCommit, recipe.Options == "o2"
					if renames && recipe.IDs == "i2" {
						p.r.ending = ".two"
					}
				}, disturbed)
			}
		}
		if noCommit {
			w.add(func(p *walker) { p.committer = true }, disturbed)
		}
	}
	return w
}

// add adds a process.
func (w *walk) add(set func(*walker), disturbed bool) {
	p := &walker{r: newRunner(w.s, nil), base: -1, copies: w.copies}
	p.r.Prune, p.r.IDsChanged, p.r.now, p.r.listed = true, IDsRerun, w.log, w.listed
	set(p)
	if disturbed {
		for range w.random.IntN(3) {
			p.fates = append(p.fates, fated{w.random.IntN(60), killed + fate(w.random.IntN(4))})
		}
	}
	w.procs = append(w.procs, p)
}

// walker runs a process with a storage by which it takes turns.
func (w *walk) run(p *walker, s storage.Storage) {
	ctx := context.Background()
	if at, ok := s.(*turning); ok {
		ctx, at.stop = context.WithCancel(ctx)
		defer at.stop()
		s = w.store(s)
	}
	p.r.use(s)
	p.begun = true
	if p.committer {
		w.did("commit begins")
		_, err := p.r.Complete(ctx, nil)
		w.ends(p, err)
		return
	}
	p.r.log = maps.Clone(w.log)
	maps.DeleteFunc(p.r.log, func(input, _ string) bool { return !below(input, strings.Join(p.r.roots, "")) })
	if len(p.r.log) == 0 { // an error before anything is written
		p.ended = true
		return
	}
	w.did("a run begins")
	p.good = w.state != nil && p.wants(w.state)
	_, run, _, err := p.r.do(ctx)
	if err == nil && p.r.Of > 1 || p.r.NoCommit && err == nil {
		p.waits, err = run.waits(ctx)
	}
	w.ends(p, err)
}

// store returns what a storage can do in this walk.
func (w *walk) store(s storage.Storage) storage.Storage {
	if at, ok := s.(*turning); ok && w.plain {
		s = unconditional{at}
	}
	if w.copies {
		s = struct{ storage.Storage }{s}
	}
	return s
}

// unconditional is a storage whose deletes have no condition.
type unconditional struct{ *turning }

func (s unconditional) Delete(ctx context.Context, o storage.Object) error {
	o.Identity = ""
	return s.turning.Delete(ctx, o)
}

// TestWalks: see walk.
func TestWalks(t *testing.T) {
	kinds, tries := map[string]int{}, map[int]int{}
	n := seeds(cases.Count(400, 2000, 10000))
	for seed := range uint64(n) {
		w := newWalk(t, seed, kinds)
		w.before()
		var workers []func(storage.Storage)
		dies := make([]int, len(w.procs))
		for i, p := range w.procs {
			dies[i] = -1
			workers = append(workers, func(s storage.Storage) { w.run(p, s) })
		}
		w.turns.take(w.s, dies, workers...)
		w.quiet()
		for len(w.late) > 0 {
			if w.random.IntN(2) == 0 {
				w.land()
			} else {
				w.late = w.late[1:]
			}
		}
		tries[w.final()]++
		if w.wrong != "" {
			t.Errorf("seed %d: %s", seed, w.wrong)
			t.Log(w.turns.story())
			return
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%8d %s", kinds[kind], kind)
	}
	t.Logf("%d walks; tries of a last run: %v", n, tries)
	if n >= 1000 {
		for _, kind := range everyKind {
			if kinds[kind] == 0 {
				t.Errorf("never: %s", kind)
			}
		}
	}
}

// before runs a run, in half of the walks.
func (w *walk) before() {
	if w.random.IntN(2) == 0 {
		return
	}
	r := newRunner(w.store(w.s), maps.Clone(w.log))
	_, _, _, err := r.do(context.Background())
	w.must(err)
	w.read()
	w.turns.log = append(w.turns.log, "a run before")
}

// quiet checks what must hold if nothing has disturbed the processes.
func (w *walk) quiet() {
	if !w.calm || slices.ContainsFunc(w.procs, func(p *walker) bool { return p.r.NoCommit || p.committer }) {
		return
	}
	w.did("calm")
	_, marked := w.s.Get("b/out/" + Success)
	if w.state == nil || !marked || !slices.ContainsFunc(w.procs, func(p *walker) bool { return p.wants(w.state) }) {
		w.fails("S6: all have ended, but _SUCCESS is there: %t, and the state is %+v", marked, w.any)
	}
}

// final lets a run that is alone make everything, and returns how often it had to run.
func (w *walk) final() int {
	recipe, of, ending := w.procs[0].r.Recipe, uint32(1+w.random.IntN(2)), w.procs[0].r.ending
	force := slices.ContainsFunc(w.procs, func(p *walker) bool { return p.r.Force })
	for _, input := range walkInputs {
		if w.log[input] == "" {
			w.log[input] = "d1"
		}
	}
	if w.random.IntN(3) == 0 {
		delete(w.log, walkInputs[w.random.IntN(2)])
	}
	for try := 1; ; try++ {
		var last error
		for shard := range of {
			r := newRunner(w.store(w.s), maps.Clone(w.log))
			r.listed = w.listed
			r.Recipe, r.ending, r.Force, r.Prune, r.IDsChanged, r.Shard, r.Of = recipe, ending, force, true, IDsRerun, shard, of
			_, _, notes, err := r.do(context.Background())
			w.turns.log = append(w.turns.log, fmt.Sprintf("last run, try %d, worker %d of %d, force %t: %q %v", try, shard, of, force, notes, err))
			if err != nil && !errors.Is(err, ErrDone) {
				last = err
			}
		}
		if last == nil {
			w.atEnd(recipe, cmp.Or(ending, ".out"))
			if try > 1 && !w.lost {
				w.fails("S4: a run that is alone exits 0 only at the try %d", try)
			}
			return try
		}
		if try == 3 {
			w.fails("S4: a run that is alone: %v", last)
			return try
		}
	}
}

// atEnd checks what must be there after a run that was alone.
func (w *walk) atEnd(recipe Recipe, ending string) {
	w.hit = map[string]bool{}
	w.check()
	if w.state == nil {
		w.fails("S4: the state is not settled")
		return
	}
	want := []string{Success}
	for _, input := range walkInputs {
		e := w.state.entry(input)
		if content, ok := w.log[input]; ok {
			want = append(want, path.Dir(input)+"/"+Success, input+ending+":"+content)
			if e == nil || e.Print != printOf(content) || !w.state.recipe(e).same(&recipe) {
				w.fails("S4: the state has %s as %+v", input, e)
			}
		} else if e != nil {
			w.fails("S4: the state has %s", input)
		}
	}
	got := strings.Fields(data(w.s))
	got = slices.DeleteFunc(got, func(name string) bool { // a partition with a staged file keeps its marker
		dir, base := path.Split(strings.Split(name, ":")[0])
		return strings.HasSuffix(base, ".staged") || base == Success && !slices.Contains(want, dir+Success)
	})
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.fails("S4: there is %q, want %q", got, want)
	}
}

// everyKind are the events of package protocol, and what may become of them. Its fence, syncs, and loss of
// power need other storages: one that overwrites what it creates, and local disks.
var everyKind = strings.Split(`a process is killed
a process is stopped
a run begins
a staged file expires
a user deletes an output
a write has no answer
a write is repeated
an input changes
begin: compare root, inputs and outputs; stage
begin: plan; stage
begin: plan; stage: refused
begin: read root
calm
clean
clean: refused
commit begins
commit: find a run with all parts
ends: an input changed
ends: damaged
ends: done
ends: incomplete
ends: its part is there
ends: killed
ends: lost
ends: no answer
ends: refused
ends: stopped
ends: workers disagree
late: copy token
late: create generation
late: create part
late: create plan
late: delete _SUCCESS
late: delete generation
late: delete part
late: delete plan
late: drop token
late: publish token
late: put _SUCCESS
late: remove file
leave: put _SUCCESS
leave: put _SUCCESS: refused
leave: read _SUCCESS
leave: read root
part
part: look at that of another attempt
part: refused
publish: a token
publish: a token: refused
publish: delete _SUCCESS
publish: delete the source of a copy
publish: delete the source of a copy: refused
publish: look at the copy
publish: remove a file
publish: remove a file: refused
publish: settle
publish: settle: refused
read the parts of all
retire: a generation that outdates other runs
swap
swap: check for a higher generation
swap: read root
swap: refused`, "\n")
