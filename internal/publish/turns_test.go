package publish

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// turns lets workers that share a storage take turns: each request waits until it is
// chosen. The order depends on the seed alone.
type turns struct {
	random *rand.Rand
	asked  chan int // a worker has a request, or has ended
	grants []chan fate
	ended  []bool
	log    []string
	states []*State // that were written
	*walk           // nil: nothing but requests happens
}

// fate is what becomes of a request.
type fate uint8

const (
	goes       fate = iota
	killed          // with all later ones of the worker
	halted          // with all later ones that have its context
	unanswered      // the worker goes on
	repeated        // it takes effect now, and may do so again later
)

// take runs workers until all have ended. Each gets the storage by which it takes turns.
// dies says after how many requests a worker is killed; negative: never.
func (u *turns) take(s *teststore.Memory, dies []int, workers ...func(storage.Storage)) {
	u.asked, u.ended = make(chan int), make([]bool, len(workers))
	u.grants = make([]chan fate, len(workers))
	for i := range workers {
		u.grants[i] = make(chan fate)
	}
	for i, work := range workers {
		go func() {
			<-u.grants[i]
			work(&turning{Memory: s, turns: u, worker: i, stop: func() {}})
			u.ended[i] = true
			u.asked <- i
		}()
	}
	var waiting []int
	for i := range workers {
		waiting = append(waiting, i)
	}
	stays := u.random.Float64() // the chance that a worker goes on
	current := -1
	for len(waiting) > 0 {
		k := u.random.IntN(len(waiting))
		if i := slices.Index(waiting, current); i >= 0 && u.random.Float64() < stays {
			k = i
		}
		current = waiting[k]
		f := goes
		if u.walk != nil {
			u.mishap()
		}
		if dies[current]--; dies[current] == -1 {
			dies[current], f = 0, killed // it stays dead
		}
		u.grants[current] <- f
		if <-u.asked; u.ended[current] {
			waiting = slices.Delete(waiting, k, k+1)
		}
	}
}

// turning is the storage of one worker.
type turning struct {
	*teststore.Memory
	turns  *turns
	worker int
	stop   context.CancelFunc
}

// errUnanswered is what a worker gets whose request may have taken effect.
var errUnanswered = fmt.Errorf("no answer (try again)%w", quiet.Error{Err: storage.ErrAgain})

// turn makes a request. write is nil if it only reads.
func (s *turning) turn(ctx context.Context, what string, write func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := s.turns
	u.asked <- s.worker
	f := <-u.grants[s.worker]
	if u.walk != nil {
		f = u.fate(u.procs[s.worker], write != nil)
	}
	u.log = append(u.log, fmt.Sprintf("%d: %s%s", s.worker, what, [...]string{"", ": it is killed", ": it is stopped", ": no answer", ", and later again"}[f]))
	if f == killed && u.walk == nil {
		return errKilled
	}
	var err error
	if u.walk != nil {
		err = u.request(s, what, f, write)
	} else if write != nil {
		err = write()
	}
	switch f {
	case killed:
		return errKilled
	case halted:
		s.stop()
		return context.Canceled
	case unanswered:
		return errUnanswered
	}
	return err
}

func (s *turning) List(ctx context.Context, prefix string, yield func(storage.Object) error) error {
	if err := s.turn(ctx, "list "+strings.TrimSuffix(prefix, "/"), nil); err != nil {
		return err
	}
	return s.Memory.List(ctx, prefix, yield)
}

func (s *turning) Stat(ctx context.Context, name string) (storage.Object, error) {
	if err := s.turn(ctx, "stat "+name, nil); err != nil {
		return storage.Object{}, err
	}
	return s.Memory.Stat(ctx, name)
}

func (s *turning) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	if err := s.turn(ctx, "open "+o.Name, nil); err != nil {
		return nil, err
	}
	return s.Memory.Open(ctx, o)
}

func (s *turning) Delete(ctx context.Context, o storage.Object) error {
	return s.turn(ctx, "delete "+o.Name, func() error { return s.Memory.Delete(ctx, o) })
}

func (s *turning) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	w, err := s.Memory.Create(ctx, name, o)
	return &turningWriter{Writer: w, ctx: ctx, of: s, name: name}, err
}

type turningWriter struct {
	storage.Writer
	ctx   context.Context
	of    *turning
	name  string
	bytes []byte
}

func (w *turningWriter) Write(p []byte) (int, error) {
	w.bytes = append(w.bytes, p...)
	return w.Writer.Write(p)
}

func (w *turningWriter) Commit(replace bool) error {
	_, _, err := w.CommitOver(replace, "")
	return err
}

func (w *turningWriter) CommitOver(replace bool, over string) (identity string, settle func() error, err error) {
	err = w.of.turn(w.ctx, fmt.Sprintf("write %s %t %s", w.name, replace, over), func() (err error) {
		// Not w.Writer, which the worker may have aborted.
		now, err := w.of.Memory.Create(context.Background(), w.name, storage.CreateOptions{})
		if err == nil {
			_, err = now.Write(w.bytes)
		}
		if err != nil {
			return err
		}
		if identity, settle, err = objects.CommitOver(now, replace, over); err != nil {
			return err
		}
		if n := generationOf(path.Base(w.name)); n > 0 && path.Base(w.name) == stateName(n) {
			state := &State{}
			err = json.Unmarshal(w.bytes, state)
			w.of.turns.states = append(w.of.turns.states, state)
		}
		return err
	})
	return identity, settle, err
}

func (s *turning) Stage(ctx context.Context, name, owner string) (storage.Writer, objects.Seal, error) {
	w, seal, err := s.Memory.Stage(ctx, name, owner)
	return w, func() (token, identity string, settle func() error, err error) {
		err = s.turn(ctx, "stage "+name, func() error {
			token, identity, settle, err = seal()
			return err
		})
		return token, identity, settle, err
	}, err
}

func (s *turning) Publish(ctx context.Context, name, token string) (identity string, settle func() error, err error) {
	err = s.turn(ctx, "publish "+name+" "+token, func() (err error) {
		identity, settle, err = s.Memory.Publish(context.Background(), name, token)
		return err
	})
	return identity, settle, err
}

func (s *turning) Discard(ctx context.Context, name, token string) error {
	return s.turn(ctx, "discard "+name+" "+token, func() error { return s.Memory.Discard(ctx, name, token) })
}

// story returns the requests that were made, for a failure.
func (u *turns) story() string { return strings.Join(u.log, "\n") }

// TestTwins: of each worker of a run there are two copies at once. The run is committed when
// they have ended, unless copies were killed or noticed each other.
func TestTwins(t *testing.T) {
	log := with(map[string]string{"dt=1/a": "", "dt=1/c": "cc", "dt=2/a": "AA", "dt=3/a": "n", "flat": "FFF"})
	const want = "_SUCCESS dt=1/_SUCCESS dt=1/b.out:bb dt=1/c.out:cc dt=2/_SUCCESS dt=2/a.out:AA dt=3/_SUCCESS dt=3/a.out:n flat.out:FFF"
	disputed := 0
	for seed := range uint64(seeds(cases.Count(100, 250, 500))) {
		u := &turns{random: rand.New(rand.NewPCG(seed, 18))}
		s := teststore.NewMemory()
		if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
			t.Fatal(err)
		}
		of := uint32(1 + u.random.IntN(3))
		worker := func(i uint32) *runner {
			r := newRunner(s, log)
			if of > 1 {
				r.Shard, r.Of = i%of, of
			}
			return r
		}
		errs := make([]error, 2*of)
		var workers []func(storage.Storage)
		for i := range 2 * of {
			workers = append(workers, func(s storage.Storage) {
				r := worker(i)
				r.use(s)
				if _, _, _, err := r.do(t.Context()); !errors.Is(err, ErrDone) {
					errs[i] = err
				}
			})
		}
		dies := make([]int, 2*of)
		mayDie := u.random.IntN(2) == 0
		for i := range dies {
			if dies[i] = -1; mayDie && u.random.IntN(2) == 0 {
				dies[i] = u.random.IntN(80)
			}
		}
		u.take(s, dies, workers...)
		what := fmt.Sprintf("seed %d, %d workers", seed, of)
		for i, err := range errs {
			if err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, errKilled) {
				t.Errorf("%s: worker %d: %v", what, i, err)
			}
		}
		again := false
		for i := range of {
			again = again || errors.Is(errs[i], errKilled) || errors.Is(errs[i+of], errKilled)
			if errs[i] != nil && errs[i+of] != nil {
				again = true
				if !errors.Is(errs[i], errKilled) && !errors.Is(errs[i+of], errKilled) {
					disputed++
				}
			}
		}
		if again {
			for i := range of {
				r := worker(i)
				if _, _, _, err := r.do(t.Context()); err != nil && !errors.Is(err, ErrDone) {
					t.Errorf("%s: worker %d again: %v", what, i, err)
				}
			}
		}
		if got := data(s); got != want || manifests(s) != settled {
			t.Errorf("%s: again %t: %v:\n got %s\nwant %s; %s", what, again, errs, got, want, manifests(s))
		}
		if t.Failed() {
			t.Logf("%s", u.story())
			return
		}
	}
	t.Logf("%d workers both copies of which failed", disputed)
}

// TestRivals: runs over different lists of the same inputs, at once, leave a directory that
// a later run over all of them completes. What a run says is done is in the state, and is
// whole.
func TestRivals(t *testing.T) {
	logs := []map[string]string{
		with(map[string]string{"dt=1/a": "", "dt=1/c": "cc", "dt=2/a": "AA", "dt=3/a": "n", "dt=3/b": "nn", "flat": "FFF", "dt=4/a": "4"}),
		with(map[string]string{"dt=1/b": "BB", "dt=2/a": "AA", "flat": "FFF"}),
	}
	wants := []string{
		"_SUCCESS dt=1/_SUCCESS dt=1/b.out:bb dt=1/c.out:cc dt=2/_SUCCESS dt=2/a.out:AA dt=3/_SUCCESS dt=3/a.out:n dt=3/b.out:nn dt=4/_SUCCESS dt=4/a.out:4 flat.out:FFF",
		"_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=1/b.out:BB dt=2/_SUCCESS dt=2/a.out:AA flat.out:FFF",
	}
	for seed := range uint64(seeds(cases.Count(60, 150, 300))) {
		full, want := logs[seed%2], wants[seed%2]
		u := &turns{random: rand.New(rand.NewPCG(seed, 19))}
		s := teststore.NewMemory()
		if u.random.IntN(2) == 0 {
			if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var workers []func(storage.Storage)
		var dies []int
		common := maps.Clone(full) // a rival that lacks an input may remove its output
		mayDie := u.random.IntN(2) == 0
		for range 2 + u.random.IntN(2) {
			list := maps.Clone(full)
			for _, input := range slices.Sorted(maps.Keys(full)) {
				if u.random.IntN(4) == 0 {
					delete(list, input)
					delete(common, input)
				}
			}
			of := uint32(1 + u.random.IntN(3))
			for i := range of {
				workers = append(workers, func(now storage.Storage) {
					r := newRunner(now, list)
					if of > 1 {
						r.Shard, r.Of = i, of
					}
					_, _, notes, err := r.do(t.Context())
					switch {
					case err == nil, errors.Is(err, ErrDone):
						u.log = append(u.log, fmt.Sprintf("%d ends: %v %q", now.(*turning).worker, err, notes))
						if of == 1 {
							u.log = append(u.log, r.untrue(t, s, common))
						}
					case errors.Is(err, errKilled), errors.Is(err, ErrExists), errors.Is(err, storage.ErrAgain):
						u.log = append(u.log, fmt.Sprintf("%d fails: %v", now.(*turning).worker, err))
					default:
						t.Errorf("seed %d: %v", seed, err)
					}
				})
				if dies = append(dies, -1); mayDie && u.random.IntN(2) == 0 {
					dies[len(dies)-1] = u.random.IntN(80)
				}
			}
		}
		u.take(s, dies, workers...)
		of := uint32(1 + u.random.IntN(3))
		var last error
		for try := 0; try == 0 || last != nil && try < 2; try++ { // as one error says, all workers may have to run again
			last = nil
			for i := range of {
				r := newRunner(s, full)
				if of > 1 {
					r.Shard, r.Of = i, of
				}
				if _, _, _, err := r.do(t.Context()); err != nil && !errors.Is(err, ErrDone) {
					u.log = append(u.log, fmt.Sprintf("try %d, worker %d of %d at the end: %v", try, i, of, err))
					last = err
				}
			}
		}
		if last != nil {
			t.Errorf("seed %d: at the end: %v", seed, last)
		}
		if got := data(s); got != want || manifests(s) != settled {
			t.Errorf("seed %d: %d at the end:\n got %s\nwant %s; %s", seed, of, got, want, manifests(s))
		}
		if t.Failed() {
			t.Logf("%s", u.story())
			return
		}
	}
}

// untrue returns an input whose outputs are not there although a run has ended well, or "".
func (r *runner) untrue(t *testing.T, s *teststore.Memory, inputs map[string]string) (wrong string) {
	r.use(s)
	l, err := r.look(t.Context())
	if err != nil {
		t.Error(err)
	}
	state, err := l.state(t.Context())
	if err != nil {
		t.Error(err)
	}
	for input, content := range inputs {
		e := state.entry(input)
		if e == nil || e.Print != fmt.Sprintf("%x", sha256.Sum256([]byte(content))) {
			t.Errorf("%s is not in the state", input)
			wrong = input
		}
	}
	return wrong
}

// seeds returns how many random orders a test tries.
func seeds(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("BLOOMJOIN_SEEDS")); err == nil {
		return n
	}
	return usual
}

// TestTwoPlans: parts of one run that were planned twice are those of a run that another one
// replaced; its options do not differ.
func TestTwoPlans(t *testing.T) {
	d := new(Dir)
	a, b := &Part{Run: "r", Of: 2}, &Part{Run: "r", Of: 2}
	if err := d.agree(a, b); err != nil {
		t.Error(err)
	}
	b.Task.Inputs = 1
	if err := d.agree(a, b); !errors.Is(err, storage.ErrAgain) {
		t.Error(err)
	}
	b.Run = "s"
	if err := d.agree(a, b); err == nil || errors.Is(err, storage.ErrAgain) {
		t.Error(err)
	}
}

// pausing is a storage that calls a function after it has written an object.
type pausing struct {
	*teststore.Memory
	after func(name string)
}

func (p pausing) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	w, err := p.Memory.Create(ctx, name, o)
	return pausingWriter{w, p, name}, err
}

type pausingWriter struct {
	storage.Writer
	of   pausing
	name string
}

func (w pausingWriter) Commit(replace bool) error {
	err := w.Writer.Commit(replace)
	if err == nil {
		w.of.after(w.name)
	}
	return err
}

// TestOvertaken: a worker whose part another run has dropped fails. It does not take the part for
// one that is committed.
func TestOvertaken(t *testing.T) {
	for _, of := range []uint32{1, 2} {
		s := teststore.NewMemory()
		for i := range of {
			r := newRunner(s, month)
			r.Shard, r.Of = i, of
			r.use(pausing{s, func(name string) {
				if p := parsePartName(strings.TrimPrefix(name, "b/out.bloomjoin/")); p == nil || p.shard != of-1 {
					return
				}
				rival := newRunner(s, month)
				rival.Recipe.Options = "o2"
				if _, _, _, err := rival.do(t.Context()); err != nil {
					t.Error("the rival:", err)
				}
			}})
			_, _, _, err := r.do(t.Context())
			if i == of-1 && (!errors.Is(err, ErrExists) || !errors.Is(err, storage.ErrAgain)) || i < of-1 && err != nil {
				t.Errorf("worker %d of %d: %v", i, of, err)
			}
		}
		equal(t, "data", data(s), monthData)
		equal(t, "manifests", manifests(s), settled)
	}
}

// TestForgetsOwnOnly: a worker that has committed leaves the part of an attempt that has begun since.
func TestForgetsOwnOnly(t *testing.T) {
	s := teststore.NewMemory()
	attempt := func(after func(name string)) error {
		r := newRunner(s, month)
		r.Force = true
		r.use(pausing{s, after})
		_, _, _, err := r.do(t.Context())
		return err
	}
	parted, over, ended := make(chan bool), make(chan bool), make(chan error)
	err := attempt(func(name string) {
		if name != "b/out.bloomjoin/"+settledName(1) {
			return
		}
		go func() {
			ended <- attempt(func(name string) {
				if parsePartName(strings.TrimPrefix(name, "b/out.bloomjoin/")) != nil {
					close(parted)
					<-over
				}
			})
		}()
		<-parted
	})
	close(over)
	if err := errors.Join(err, <-ended); err != nil {
		t.Error(err)
	}
	if state, err := newRunner(s, month).state(t.Context()); err != nil || state.Generation != 2 || len(state.Committed) != 2 {
		t.Errorf("%+v, %v", state, err)
	}
	equal(t, "data", data(s), monthData)
	equal(t, "manifests", manifests(s), settled)
}

// TestCopy: manifest.json is the last state once it is published, also if another run commits while it
// is written, or an old one arrives late.
func TestCopy(t *testing.T) {
	s := teststore.NewMemory()
	swapped, over, ended := make(chan bool), make(chan bool), make(chan error)
	rival := func() {
		r := newRunner(s, map[string]string{"b": "22"})
		r.use(pausing{s, func(name string) {
			if name == "b/out.bloomjoin/"+stateName(2) {
				close(swapped)
				<-over
			}
		}})
		_, _, _, err := r.do(t.Context())
		ended <- err
	}
	r, old := newRunner(s, map[string]string{"a": "1"}), []byte(nil)
	r.use(pausing{s, func(name string) {
		if name == "b/out.bloomjoin/"+copyName && old == nil {
			old, _ = s.Get(name)
			go rival()
			<-swapped
		}
	}})
	_, _, _, err := r.do(t.Context())
	equal(t, "data", data(s), "_SUCCESS a.out:1 b.out:22")
	equal(t, "manifests", manifests(s), settled)
	close(over)
	if err := errors.Join(err, <-ended); err != nil {
		t.Error(err)
	}
	s.Put("b/out.bloomjoin/"+copyName, old)
	if _, _, _, err := newRunner(s, map[string]string{"a": "1"}).do(t.Context()); !errors.Is(err, ErrDone) {
		t.Error(err)
	}
	equal(t, "healed", manifests(s), settled)
}

// TestReplacedState: a run whose state another process replaces, as on a storage without exclusive
// creation, is committed again.
func TestReplacedState(t *testing.T) {
	s := teststore.NewMemory()
	r := newRunner(s, map[string]string{"a": "1"})
	r.use(pausing{s, func(name string) {
		if name != "b/out.bloomjoin/"+stateName(1) {
			return
		}
		if err := s.Delete(t.Context(), storage.Object{Name: name}); err != nil {
			t.Error(err)
		}
		if _, _, _, err := newRunner(s, map[string]string{"b": "22"}).do(t.Context()); err != nil {
			t.Error(err)
		}
	}})
	if _, _, _, err := r.do(t.Context()); err != nil {
		t.Error(err)
	}
	equal(t, "data", data(s), "_SUCCESS a.out:1 b.out:22")
	equal(t, "listed", listed(t, s), "a:1 b:22")
	equal(t, "manifests", manifests(s), settled)
}

// TestVersions: of a run that ends well, a state had all inputs in the versions that the run saw,
// since it began. Runs see different versions, have different recipes, and may use Force.
func TestVersions(t *testing.T) {
	for seed := range uint64(seeds(cases.Count(60, 150, 300))) {
		u := &turns{random: rand.New(rand.NewPCG(seed, 23))}
		s := teststore.NewMemory()
		var workers []func(storage.Storage)
		var dies []int
		mayDie := u.random.IntN(2) == 0
		for range 2 + u.random.IntN(2) {
			log := map[string]string{}
			for _, input := range []string{"dt=1/a", "dt=1/b", "dt=2/a", "flat"} {
				if u.random.IntN(6) > 0 {
					log[input] = strings.Repeat(input[:1], 1+u.random.IntN(2))
				}
			}
			force, options, of := u.random.IntN(3) == 0, []string{"o1", "o1", "o2"}[u.random.IntN(3)], uint32(1+u.random.IntN(2))
			for i := range of {
				workers = append(workers, func(now storage.Storage) {
					r := newRunner(now, log)
					r.Force, r.Recipe.Options, r.Shard, r.Of = force, options, i, of
					begun := max(len(u.states)-1, 0)
					_, run, _, err := r.do(t.Context())
					what := fmt.Sprintf("%d of %v, force %t, %s", now.(*turning).worker, log, force, options)
					u.log = append(u.log, fmt.Sprintf("%s ends: %v", what, err))
					switch {
					case err == nil || errors.Is(err, ErrDone):
						if of > 1 { // others may not be done
							if run == nil {
								return
							}
							if waits, err := run.waits(t.Context()); waits != "" || err != nil {
								return
							}
						}
						if !slices.ContainsFunc(u.states[begun:], func(state *State) bool { return r.in(state) }) {
							t.Errorf("seed %d: %s: no state has it", seed, what)
						}
					case errors.Is(err, errKilled), errors.Is(err, ErrExists), errors.Is(err, storage.ErrAgain):
					default:
						t.Errorf("seed %d: %s: %v", seed, what, err)
					}
				})
				if dies = append(dies, -1); mayDie && u.random.IntN(2) == 0 {
					dies[len(dies)-1] = u.random.IntN(80)
				}
			}
		}
		u.take(s, dies, workers...)
		last := newRunner(s, with(nil))
		last.Force = true
		if _, _, _, err := last.do(t.Context()); err != nil {
			t.Errorf("seed %d: at the end: %v", seed, err)
		}
		if data(s) != monthData {
			t.Errorf("seed %d: %s; %s", seed, data(s), manifests(s))
		}
		if t.Failed() {
			t.Logf("%s", u.story())
			return
		}
	}
}

// in reports whether a state has the inputs of the run as it saw them.
func (r *runner) in(s *State) bool {
	for in := range r.inputs().Each {
		e := s.entry(in.Input)
		if e == nil || e.Print != in.Print || s.recipe(e).Options != r.Recipe.Options {
			return false
		}
	}
	return true
}

// TestMixed: of two runs with different options over different inputs, which begin in an empty
// directory, only the first is committed.
func TestMixed(t *testing.T) {
	s := teststore.NewMemory()
	r := newRunner(s, map[string]string{"a": "1"})
	r.use(pausing{s, func(name string) {
		if parsePartName(strings.TrimPrefix(name, "b/out.bloomjoin/")) == nil {
			return
		}
		rival := newRunner(s, map[string]string{"b": "1"})
		rival.Recipe.Options = "o2"
		if _, _, _, err := rival.do(t.Context()); err != nil {
			t.Error("the rival:", err)
		}
	}})
	if _, _, _, err := r.do(t.Context()); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	equal(t, "data", data(s), "_SUCCESS b.out:1")
}

// TestRequireAgain: workers that do not meet their requirements leave nothing, so that they can run
// again with others.
func TestRequireAgain(t *testing.T) {
	s := teststore.NewMemory()
	for _, rows := range []int64{100, 1} {
		for i := range uint32(2) {
			r := newRunner(s, month)
			r.Shard, r.Of, r.Require = i, 2, Require{Rows: rows}
			if _, _, _, err := r.do(t.Context()); errors.Is(err, ErrRequire) != (i == 1 && rows == 100) {
				t.Errorf("worker %d, %d rows: %v", i, rows, err)
			}
		}
		if rows == 100 && manifests(s)+data(s) != "" {
			t.Errorf("left: %s; %s", manifests(s), data(s))
		}
	}
	equal(t, "data", data(s), monthData)
}

// TestDropsOwnAttempt: a run that cannot be committed leaves the part of an attempt that began later.
func TestDropsOwnAttempt(t *testing.T) {
	s := teststore.NewMemory()
	both := map[string]string{"a": "1", "b": "22"}
	r := newRunner(s, both)
	first, err := r.Begin(t.Context(), r.inputs())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := newRunner(s, map[string]string{"b": "22"}).do(t.Context()); err != nil {
		t.Fatal(err)
	}
	later := newRunner(s, both)
	later.NoCommit = true
	_, second, _, err := later.do(t.Context())
	if err != nil || second.id != first.id {
		t.Fatal(err)
	}
	l := &listing{dir: &r.Dir}
	if err := errors.Join(l.manifests(t.Context()), first.drop(t.Context(), l)); err != nil {
		t.Error(err)
	}
	equal(t, "manifests", manifests(s), settled+" "+second.partName())
	if err := second.drop(t.Context(), l); err != nil {
		t.Error(err)
	}
	equal(t, "manifests", manifests(s), settled)
}

// TestOldPart: the part or plan of a run that would do more by now is not committed.
func TestOldPart(t *testing.T) {
	b := map[string]string{"b": "22"}
	both := map[string]string{"a": "1", "b": "22"}
	for _, of := range []uint32{1, 2} {
		s := teststore.NewMemory()
		do := func(ids string, noCommit bool, shard, of uint32, log map[string]string) {
			t.Helper()
			r := newRunner(s, log)
			r.Recipe.IDs, r.IDsChanged, r.NoCommit, r.Shard, r.Of = ids, IDsRerun, noCommit, shard, of
			if _, _, _, err := r.do(t.Context()); err != nil {
				t.Error(err)
			}
		}
		do("i1", false, 0, 1, b)
		do("i1", true, 0, of, both) // a
		do("i2", false, 0, 1, b)
		for i := range of {
			do("i1", false, i, of, both)
		}
		equal(t, "data", data(s), "_SUCCESS a.out:1 b.out:22")
		equal(t, "manifests", manifests(s), settled)
	}
}

// TestDamagedAtTheEnd: a run whose output is gone when it ends fails, and the same run makes it again.
func TestDamagedAtTheEnd(t *testing.T) {
	s := teststore.NewMemory()
	r := newRunner(s, month)
	r.use(pausing{s, func(name string) {
		if name == "b/out.bloomjoin/"+settledName(1) {
			if err := s.Delete(t.Context(), storage.Object{Name: "b/out/flat.out"}); err != nil {
				t.Error(err)
			}
		}
	}})
	if _, _, _, err := r.do(t.Context()); !errors.Is(err, storage.ErrAgain) || !strings.Contains(err.Error(), "flat.out is missing (run again") {
		t.Error(err)
	}
	if did, _, _, err := newRunner(s, month).do(t.Context()); err != nil || !slices.Equal(did, []string{"flat"}) {
		t.Errorf("again: %q, %v", did, err)
	}
	equal(t, "data", data(s), monthData)
}

// TestOtherScope: a plan is not that of a run over the same files which covers more, and so removes more.
func TestOtherScope(t *testing.T) {
	s := teststore.NewMemory()
	if _, _, _, err := newRunner(s, map[string]string{"x/a": "1", "y/b": "22"}).do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, roots := range [][]string{{"x"}, nil} {
		for i := range uint32(2) {
			r := newRunner(s, map[string]string{"x/a": "3"})
			r.Shard, r.Of, r.Prune, r.roots = i, 2, true, roots
			if roots != nil && i == 1 { // it does not come to an end
				continue
			}
			if _, _, _, err := r.do(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	equal(t, "data", data(s), "_SUCCESS x/a.out:3")
}
