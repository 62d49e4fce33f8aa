package publish

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// swept sweeps, and fails the test if what it lists is not what an attempt has left, or stays.
func swept(t *testing.T, s storage.Storage, what string) (removed int) {
	t.Helper()
	d := newRunner(s, nil)
	if all, err := d.Sweep(t.Context(), time.Hour, true); err != nil || len(all) > 0 {
		t.Errorf("%s: nothing is an hour old, yet it lists %+v, %v", what, all, err)
	}
	listed, err := d.Sweep(t.Context(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	all, err := d.Sweep(t.Context(), 0, true)
	if err != nil || len(all) != len(listed) {
		t.Errorf("%s: lists %d, removes %d: %v", what, len(listed), len(all), err)
	}
	for _, x := range all {
		name := path.Base(x.Name)
		if !x.Removed || !strings.HasSuffix(name, ".staged") && !strings.HasPrefix(name, "plan-") && !strings.HasPrefix(name, "shard-") {
			t.Errorf("%s: %+v", what, x)
		}
	}
	if left, err := d.Sweep(t.Context(), 0, false); err != nil || len(left) > 0 {
		t.Errorf("%s: it leaves %+v, %v", what, left, err)
	}
	return len(all)
}

// TestSweep: what a run has left that was killed, at any of its requests, is listed, and removed once
// it is old; the state, its files and the files of others stay, and the next run succeeds.
func TestSweep(t *testing.T) {
	log := with(map[string]string{"dt=1/a": "", "dt=1/c": "cc", "dt=2/a": "AA", "dt=3/a": "n", "flat": "FFF"})
	const want = "_SUCCESS dt=1/_SUCCESS dt=1/b.out:bb dt=1/c.out:cc dt=2/_SUCCESS dt=2/a.out:AA dt=3/_SUCCESS dt=3/a.out:n flat.out:FFF"
	others := []string{"b/_x.0123456789abcdef.staged", "b/out2/_x.0123456789abcdef.staged", "b/out/.notes.tmp", "b/out/dt=1/_file.staged", "b/out.bloomjoin/plan.json"}
	removed := 0
	for _, of := range []uint32{1, 2, 3} {
		for kills := 0; ; kills++ {
			what := fmt.Sprintf("%d workers, killed after %d requests", of, kills)
			s, left := teststore.NewMemory(), kills
			for _, name := range others {
				s.Put(name, []byte(name))
			}
			if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
				t.Fatal(err)
			}
			run := func(s storage.Storage) (errs error) {
				for i := range of {
					r := newRunner(s, log)
					if of > 1 {
						r.Shard, r.Of = i, of
					}
					if _, _, _, err := r.do(t.Context()); !errors.Is(err, ErrDone) {
						errs = errors.Join(errs, err)
					}
				}
				return errs
			}
			killed := run(mortal{s, &left})
			state, err := newRunner(s, nil).state(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			removed += swept(t, s, what)
			if now, err := newRunner(s, nil).state(t.Context()); err != nil || now.Generation != state.Generation {
				t.Errorf("%s: generation %d is now %+v, %v", what, state.Generation, now, err)
			}
			if err := run(s); err != nil {
				t.Errorf("%s: again: %v", what, err)
			}
			for _, name := range others {
				if b, ok := s.Get(name); string(b) != name || !ok {
					t.Errorf("%s: %s is gone", what, name)
				}
				if err := s.Delete(t.Context(), storage.Object{Name: name}); err != nil {
					t.Fatal(err)
				}
			}
			if got := data(s); got != want || manifests(s) != settled {
				t.Errorf("%s: again: %s; %s", what, got, manifests(s))
			}
			if killed == nil {
				break
			}
		}
	}
	if removed < 100 {
		t.Errorf("only %d were removed", removed)
	}
}

// TestSweepAtWork: a run whose staged files are removed while it works fails with an error that
// passes, and what is marked as complete is whole.
func TestSweepAtWork(t *testing.T) {
	log := with(map[string]string{"dt=1/a": "", "dt=1/c": "cc", "dt=2/a": "AA", "dt=3/a": "n", "flat": "FFF"})
	const want = "_SUCCESS dt=1/_SUCCESS dt=1/b.out:bb dt=1/c.out:cc dt=2/_SUCCESS dt=2/a.out:AA dt=3/_SUCCESS dt=3/a.out:n flat.out:FFF"
	failed, n := 0, seeds(cases.Count(200, 500, 1000))
	for seed := range uint64(n) {
		u, s := &turns{random: rand.New(rand.NewPCG(seed, 29))}, teststore.NewMemory()
		if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
			t.Fatal(err)
		}
		of := uint32(1 + u.random.IntN(2))
		errs := make([]error, of)
		work := func(i uint32, s storage.Storage) {
			r := newRunner(s, log)
			if r.use(s); of > 1 {
				r.Shard, r.Of = i, of
			}
			if _, _, _, errs[i] = r.do(t.Context()); errors.Is(errs[i], ErrDone) {
				errs[i] = nil
			}
		}
		workers := []func(storage.Storage){func(s storage.Storage) {
			d := newRunner(s, nil)
			if d.use(s); true {
				if _, err := d.Sweep(t.Context(), 0, true); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		}}
		for i := range of {
			workers = append(workers, func(s storage.Storage) { work(i, s) })
		}
		dies := make([]int, len(workers))
		for i := range dies {
			dies[i] = -1
		}
		u.take(s, dies, workers...)
		again := false
		for i, err := range errs {
			if again = again || err != nil; err != nil {
				failed++
			}
			if err != nil && !cause.Passes(err) {
				t.Errorf("seed %d: worker %d: %v", seed, i, err)
			}
		}
		if got := data(s); strings.HasPrefix(got, Success) && got != want && got != monthData {
			t.Errorf("seed %d: marked with %s", seed, got)
		}
		for range 2 {
			for i := range of {
				work(i, s)
			}
		}
		swept(t, s, fmt.Sprint("seed ", seed))
		if got := data(s); got != want || manifests(s) != settled {
			t.Errorf("seed %d, again %t: %v: %s; %s", seed, again, errs, got, manifests(s))
		}
		if t.Failed() {
			t.Log(u.story())
			return
		}
	}
	if failed < n/100 {
		t.Errorf("only %d workers failed", failed)
	}
}

// TestSweepSpares: what waits for its commit stays, as does what other outputs keep whose manifests
// stand elsewhere or whose directory is in this one.
func TestSweepSpares(t *testing.T) {
	log := with(map[string]string{"dt=1/a": "A", "flat": "FFF"})
	for _, c := range []struct {
		out, manifests string // of the run
		of, done       uint32
		s              storage.Storage
		stays          bool
	}{
		{"out", "", 2, 2, storage.Local(), true}, {"out", "", 2, 1, storage.Local(), false}, {"out", "m", 2, 1, storage.Local(), true}, {"out/in", "", 2, 1, storage.Local(), true},
		{"out", "", 2, 2, storage.Memory(), true}, {"out", "", 2, 1, storage.Memory(), false}, {"out/in", "", 2, 1, storage.Memory(), true},
	} {
		dir := t.TempDir()
		at := func(r *runner, out, manifests string) *runner {
			r.Name, r.Manifests = filepath.Join(dir, out), filepath.Join(dir, cmp.Or(manifests, out+".bloomjoin"))
			return r
		}
		for i := range c.done {
			r := at(newRunner(c.s, log), c.out, c.manifests)
			r.Shard, r.Of, r.NoCommit = i, c.of, true
			if _, _, _, err := r.do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		all, err := at(newRunner(c.s, nil), "out", "").Sweep(t.Context(), 0, true)
		if err != nil || c.stays != (len(all) == 0) {
			t.Errorf("%+v: %+v, %v", c, all, err)
		}
	}
}
