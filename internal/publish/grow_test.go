package publish

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// month is a log of two days and a file in no partition.
var month = map[string]string{"dt=1/a": "aaa", "dt=1/b": "bb", "dt=2/a": "a", "flat": "ffff"}

// with returns the month with changes; an empty content removes an input.
func with(changes map[string]string) map[string]string {
	log := maps.Clone(month)
	maps.Copy(log, changes)
	maps.DeleteFunc(log, func(_, content string) bool { return content == "" })
	return log
}

const monthData = "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=1/b.out:bb dt=2/_SUCCESS dt=2/a.out:a flat.out:ffff"

// TestGrowth: a second run over a directory does what is new or has changed, and its output
// mirrors the log within the partitions that it names.
func TestGrowth(t *testing.T) {
	pair := map[string][]string{"dt=1/a.out": {"dt=1/a", "dt=1/b"}}
	for what, c := range map[string]struct {
		log    map[string]string
		run    func(r *runner)
		first  func(r *runner)
		harm   func(s *teststore.Memory)
		did    string
		gone   string
		want   string // data; empty: the same
		is     error
		says   string
		rows   int64 // of the state; 0: 10
		recipe int   // recipes of the state; 0: 1
	}{
		"the same":         {log: month, is: ErrDone},
		"a new day":        {log: with(map[string]string{"dt=3/a": "n"}), did: "dt=3/a", rows: 11, want: "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=1/b.out:bb dt=2/_SUCCESS dt=2/a.out:a dt=3/_SUCCESS dt=3/a.out:n flat.out:ffff"},
		"a changed input":  {log: with(map[string]string{"dt=1/b": "BB"}), did: "dt=1/b", want: strings.Replace(monthData, ":bb", ":BB", 1)},
		"a compacted day":  {log: with(map[string]string{"dt=1/a": "", "dt=1/b": "", "dt=1/c": "aaabb"}), did: "dt=1/c", want: "_SUCCESS dt=1/_SUCCESS dt=1/c.out:aaabb dt=2/_SUCCESS dt=2/a.out:a flat.out:ffff"},
		"an input is gone": {log: with(map[string]string{"dt=1/b": ""}), rows: 8, want: strings.Replace(monthData, " dt=1/b.out:bb", "", 1)},
		"a day is gone":    {log: with(map[string]string{"dt=2/a": ""}), is: ErrDone, says: "dt=2/a"},
		"a day is gone, another is new": {log: with(map[string]string{"dt=2/a": "", "dt=3/a": "n"}), did: "dt=3/a", gone: "dt=2/a", rows: 11,
			want: "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=1/b.out:bb dt=2/_SUCCESS dt=2/a.out:a dt=3/_SUCCESS dt=3/a.out:n flat.out:ffff"},
		"a flat file is gone": {log: with(map[string]string{"flat": ""}), is: ErrDone, says: "flat"},
		"gone, with Prune": {log: with(map[string]string{"flat": "", "dt=2/a": ""}), run: func(r *runner) { r.Prune = true }, rows: 5,
			want: "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=1/b.out:bb"},
		"listed, but no input": {log: with(map[string]string{"dt=1/b": ""}), run: func(r *runner) { r.left = []string{"dt=1/b"} }, is: ErrDone},
		"other options":        {log: month, run: func(r *runner) { r.Recipe.Options = "o2" }, is: ErrExists, says: "Force replaces"},
		"other options, Force": {log: month, run: func(r *runner) { r.Recipe.Options, r.Force = "o2", true }, did: "dt=1/a dt=1/b dt=2/a flat"},
		"other IDs":            {log: with(map[string]string{"dt=3/a": "n"}), run: func(r *runner) { r.Recipe.IDs = "i2" }, is: ErrExists, says: "IDsChanged rerun"},
		"other IDs for a new day": {log: map[string]string{"dt=3/a": "n"}, run: func(r *runner) { r.Recipe.IDs = "i2" }, did: "dt=3/a", gone: "dt=1/a dt=1/b dt=2/a flat", rows: 11, recipe: 2,
			want: "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=1/b.out:bb dt=2/_SUCCESS dt=2/a.out:a dt=3/_SUCCESS dt=3/a.out:n flat.out:ffff"},
		"other IDs, rerun": {log: month, run: func(r *runner) { r.Recipe.IDs, r.IDsChanged = "i2", "rerun" }, did: "dt=1/a dt=1/b dt=2/a flat"},
		"other IDs, keep": {log: with(map[string]string{"dt=3/a": "n"}), run: func(r *runner) { r.Recipe.IDs, r.IDsChanged = "i2", "keep" }, did: "dt=3/a", rows: 11, recipe: 2,
			want: "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=1/b.out:bb dt=2/_SUCCESS dt=2/a.out:a dt=3/_SUCCESS dt=3/a.out:n flat.out:ffff"},
		"an input that shares a file": {log: with(map[string]string{"dt=1/b": "BB"}), first: func(r *runner) { r.shares = pair }, run: func(r *runner) { r.shares = pair }, did: "dt=1/a dt=1/b",
			want: "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaaBB dt=2/_SUCCESS dt=2/a.out:a flat.out:ffff"},
		"one of them is gone": {log: with(map[string]string{"dt=1/b": ""}), first: func(r *runner) { r.shares = pair }, did: "dt=1/a", rows: 8,
			want: "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=2/_SUCCESS dt=2/a.out:a flat.out:ffff"},
		"a file is lost": {log: month, harm: func(s *teststore.Memory) {
			_ = s.Delete(context.Background(), storage.Object{Name: "b/out/dt=1/b.out"})
		}, did: "dt=1/b"},
		"a file is cut":                                 {log: month, harm: func(s *teststore.Memory) { s.Put("b/out/dt=1/b.out", []byte("x")) }, did: "dt=1/b"},
		"a table of somebody's is in its place":         {log: month, harm: func(s *teststore.Memory) { s.Put("b/out/dt=1/b.out", []byte("|mine")) }, is: ErrExists, says: "dt=1/b.out has changed"},
		"somebody's table in the place of a new output": {log: with(map[string]string{"dt=3/a": "n"}), harm: func(s *teststore.Memory) { s.Put("b/out/dt=3/a.out", []byte("|mine")) }, is: ErrExists, says: "not listed in a manifest"},

		"a file has changed": {log: month, harm: func(s *teststore.Memory) {
			b, _ := s.Get("b/out/dt=1/b.out")
			s.Put("b/out/dt=1/b.out", []byte(strings.Replace(string(b), "|bb", "|bB", 1)))
		}, did: "dt=1/b"},
		"a new copy of a file": {log: month, harm: func(s *teststore.Memory) {
			b, _ := s.Get("b/out/dt=1/b.out")
			s.Put("b/out/dt=1/b.out", b)
		}, is: ErrDone},
	} {
		t.Run(what, func(t *testing.T) {
			s := teststore.NewMemory()
			first := newRunner(s, month)
			if c.first != nil {
				c.first(first)
			}
			if did, _, notes, err := first.do(t.Context()); err != nil || len(did) != 4 || len(notes) > 0 {
				t.Fatal(did, notes, err)
			}
			before := data(s)
			if c.first == nil {
				equal(t, "the first run", before, monthData)
			}
			if c.harm != nil {
				c.harm(s)
			}
			harmed := data(s)
			second := newRunner(s, c.log)
			if c.run != nil {
				c.run(second)
			}
			did, run, _, err := second.do(t.Context())
			if !errors.Is(err, c.is) || c.is != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want an error that is %v and says %q", err, c.is, c.says)
			}
			if errors.Is(c.is, ErrExists) {
				equal(t, "data of a run that was refused", data(s), harmed)
				return
			}
			equal(t, "inputs that were read", strings.Join(did, " "), c.did)
			if c.want == "" {
				c.want = before
			}
			equal(t, "data", data(s), c.want)
			equal(t, "manifests", manifests(s), settled)
			if run != nil {
				equal(t, "gone", strings.Join(run.Gone(), " "), c.gone)
			}
			l, err := second.look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			state, err := l.state(t.Context())
			if c.rows == 0 {
				c.rows = 10
			}
			if err != nil || state.Rows != c.rows || len(state.Recipes) != max(c.recipe, 1) {
				t.Errorf("state %+v, %v; want %d rows", state, err, c.rows)
			}
			_, _, _, err = second.do(t.Context())
			if !second.Force && !errors.Is(err, ErrDone) {
				t.Errorf("once more: %v", err)
			}
		})
	}
}

// TestWholeGrowth: if each output depends on all inputs, a change makes all of them again.
func TestWholeGrowth(t *testing.T) {
	s := teststore.NewMemory()
	r := newRunner(s, month)
	r.Recipe.Whole = true
	for _, log := range []map[string]string{month, with(map[string]string{"dt=3/a": "n"}), with(map[string]string{"dt=2/a": ""})} {
		r.log = log
		if did, _, _, err := r.do(t.Context()); err != nil || len(did) != len(log) {
			t.Errorf("%v, %v", did, err)
		}
	}
	equal(t, "data", data(s), "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=1/b.out:bb flat.out:ffff")
}

// TestTwoCommits: of two runs that commit at the same time, one comes after the other, and
// the state has both.
func TestTwoCommits(t *testing.T) {
	for range 50 {
		s := teststore.NewMemory()
		if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		for _, day := range []string{"dt=3/a", "dt=4/a"} {
			both.Go(func() {
				if _, _, _, err := newRunner(s, map[string]string{day: "n"}).do(t.Context()); err != nil {
					t.Error(day, err)
				}
			})
		}
		both.Wait()
		equal(t, "data", data(s), "_SUCCESS dt=1/_SUCCESS dt=1/a.out:aaa dt=1/b.out:bb dt=2/_SUCCESS dt=2/a.out:a dt=3/_SUCCESS dt=3/a.out:n dt=4/_SUCCESS dt=4/a.out:n flat.out:ffff")
		equal(t, "manifests", manifests(s), settled)
		_, _, _, err := newRunner(s, with(map[string]string{"dt=3/a": "n", "dt=4/a": "n"})).do(t.Context())
		if !errors.Is(err, ErrDone) {
			t.Error("all of it:", err)
		}
	}
}

// mortal is a storage that does nothing any more after some requests that write.
type mortal struct {
	*teststore.Memory
	left *int
}

var errKilled = errors.New("killed")

func (m mortal) dies() error {
	if *m.left--; *m.left < 0 {
		return errKilled
	}
	return nil
}

func (m mortal) Delete(ctx context.Context, o storage.Object) error {
	if err := m.dies(); err != nil {
		return err
	}
	return m.Memory.Delete(ctx, o)
}

func (m mortal) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	w, err := m.Memory.Create(ctx, name, o)
	return mortalWriter{w, m}, err
}

type mortalWriter struct {
	storage.Writer
	of mortal
}

func (w mortalWriter) Commit(replace bool) error {
	if err := w.of.dies(); err != nil {
		return err
	}
	return w.Writer.Commit(replace)
}

func (w mortalWriter) CommitOver(replace bool, over string) (identity string, settle func() error, err error) {
	if err := w.of.dies(); err != nil {
		return "", nil, err
	}
	return objects.CommitOver(w.Writer, replace, over)
}

func (m mortal) Stage(ctx context.Context, name, owner string) (storage.Writer, objects.Seal, error) {
	w, seal, err := m.Memory.Stage(ctx, name, owner)
	return w, func() (string, string, func() error, error) {
		if err := m.dies(); err != nil {
			return "", "", nil, err
		}
		return seal()
	}, err
}

func (m mortal) Publish(ctx context.Context, name, token string) (string, func() error, error) {
	if err := m.dies(); err != nil {
		return "", nil, err
	}
	return m.Memory.Publish(ctx, name, token)
}

func (m mortal) Discard(ctx context.Context, name, token string) error {
	if err := m.dies(); err != nil {
		return err
	}
	return m.Memory.Discard(ctx, name, token)
}

// TestKilledGrowth: a run that is killed between any two requests and then run again leaves
// the same data as one that was not, and nothing else. Meanwhile no partition is marked as
// complete that is not.
func TestKilledGrowth(t *testing.T) {
	log := with(map[string]string{"dt=1/a": "", "dt=1/c": "cc", "dt=2/a": "AA", "dt=3/a": "n", "flat": "FFF"})
	const want = "_SUCCESS dt=1/_SUCCESS dt=1/b.out:bb dt=1/c.out:cc dt=2/_SUCCESS dt=2/a.out:AA dt=3/_SUCCESS dt=3/a.out:n flat.out:FFF"
	for _, of := range []uint32{1, 2, 3} {
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
		kills := 0
		for ; ; kills++ {
			s, left := teststore.NewMemory(), kills
			if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := run(mortal{s, &left})
			if err == nil {
				equal(t, "data", data(s), want)
				equal(t, "manifests", manifests(s), settled)
				break
			}
			if !errors.Is(err, errKilled) {
				t.Errorf("%d workers, killed after %d requests: %v", of, kills, err)
			}
			names := strings.Fields(data(s))
			for dir, whole := range map[string][2]string{ // before and after
				"dt=1": {"dt=1/a.out:aaa dt=1/b.out:bb", "dt=1/b.out:bb dt=1/c.out:cc"},
				"dt=2": {"dt=2/a.out:a", "dt=2/a.out:AA"},
				"dt=3": {"", "dt=3/a.out:n"},
			} {
				files := strings.Join(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, dir+"/") || strings.HasSuffix(n, Success) }), " ")
				if slices.Contains(names, dir+"/"+Success) && files != whole[0] && files != whole[1] {
					t.Errorf("%d workers, killed after %d requests: %s is marked with %s", of, kills, dir, files)
				}
			}
			if slices.Contains(names, Success) && data(s) != monthData && data(s) != want {
				t.Errorf("%d workers, killed after %d requests: marked with %s", of, kills, data(s))
			}
			if err := run(s); err != nil {
				t.Errorf("%d workers, again after %d requests: %v", of, kills, err)
			}
			if got := data(s); got != want || manifests(s) != settled {
				t.Errorf("%d workers, again after %d requests: %s; %s", of, kills, got, manifests(s))
			}
		}
		if kills < 15 {
			t.Errorf("%d workers were killed at %d places only", of, kills)
		}
	}
}

// lister counts how often an output directory is listed.
type lister struct {
	*teststore.Memory
	lists map[string]int
}

func (l lister) List(ctx context.Context, prefix string, yield func(storage.Object) error) error {
	l.lists[strings.TrimSuffix(prefix, "/")]++
	return l.Memory.List(ctx, prefix, yield)
}

// TestListings: a worker lists the outputs when it begins, before it writes the first and
// after the last one; only the worker that commits lists them more often.
func TestListings(t *testing.T) {
	s := teststore.NewMemory()
	for i := range uint32(3) {
		r := newRunner(s, month)
		r.Shard, r.Of = i, 3
		l := lister{s, map[string]int{}}
		r.use(l)
		if _, _, _, err := r.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, most := l.lists["b/out"], []int{3, 3, 7}[i]; n > most {
			t.Errorf("worker %d lists the outputs %d times, want %d at most", i, n, most)
		}
	}
	l := lister{s, map[string]int{}}
	r := newRunner(s, month)
	r.use(l)
	if _, _, _, err := r.do(t.Context()); !errors.Is(err, ErrDone) || l.lists["b/out"] > 2 {
		t.Errorf("%v, after %d listings", err, l.lists["b/out"])
	}
}

// TestKilledWhole: a run that does everything or nothing, and is killed between any two
// requests, is committed or done again, and never reads only a part or nothing.
func TestKilledWhole(t *testing.T) {
	for kills := range 40 {
		s, left := teststore.NewMemory(), kills
		for _, now := range []storage.Storage{mortal{s, &left}, s} {
			r := newRunner(s, month)
			r.use(now)
			r.Recipe.Whole = true
			did, _, _, err := r.do(t.Context())
			if now == s && (err == nil && len(did) != len(month) || err != nil && !errors.Is(err, ErrDone)) {
				t.Errorf("after %d requests: did %q: %v", kills, did, err)
			}
		}
		if data(s) != monthData || manifests(s) != settled {
			t.Errorf("after %d requests: %s; %s", kills, data(s), manifests(s))
		}
	}
}
