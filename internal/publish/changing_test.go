package publish

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// mixed returns what a reader that trusts _SUCCESS would find wrong: outputs that are not as
// the state says. It is empty if the reader is told that the directory is not finished.
func mixed(t *testing.T, s *teststore.Memory) string {
	t.Helper()
	if _, ok := s.Get("b/out/_SUCCESS"); !ok {
		return ""
	}
	d := newRunner(s, nil)
	if why, err := d.Unfinished(t.Context(), nil); err != nil || why != "" {
		return ""
	}
	v, err := d.Verify(t.Context(), true)
	if err != nil || v == nil {
		return fmt.Sprintf("%v, %v", v, err)
	}
	if len(v.Problems) > 0 {
		return v.Problems[0]
	}
	return ""
}

// TestChangingInput changes the inputs of a running command and starts it a second time, with the
// requests of both in random order. A run that succeeds leaves outputs of the inputs that one of
// them read, and a third run those of the new inputs, also if outputs have equal sizes.
func TestChangingInput(t *testing.T) {
	version := func(content string) map[string]string {
		return map[string]string{"a": content, "b": content, "c": content}
	}
	const orders = 3000
	end := time.Now().Add(10 * time.Second) // with the race detector
	n, stale := 0, 0
	for seed := range uint64(seeds(cases.Count(300, 800, orders))) {
		if time.Now().After(end) && cases.Count(0, 0, 1) == 0 {
			break
		}
		n++
		u := &turns{random: rand.New(rand.NewPCG(seed, 77))}
		s := teststore.NewMemory()
		if u.random.IntN(2) == 0 {
			if _, _, _, err := newRunner(s, version("0")).do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		after := []string{"2", "22"}[u.random.IntN(2)]
		var errs [2]error
		var workers []func(storage.Storage)
		for i, content := range []string{"1", after} {
			workers = append(workers, func(now storage.Storage) {
				_, _, _, errs[i] = newRunner(now, version(content)).do(t.Context())
			})
		}
		dies := []int{-1, -1}
		if u.random.IntN(4) == 0 {
			dies[u.random.IntN(2)] = u.random.IntN(60)
		}
		u.take(s, dies, workers...)
		if why := mixed(t, s); why != "" && !errors.Is(errors.Join(errs[:]...), errKilled) {
			t.Errorf("seed %d: _SUCCESS: %s", seed, why)
		}
		for i, err := range errs {
			if err != nil && !errors.Is(err, ErrDone) && !errors.Is(err, ErrExists) && !errors.Is(err, errKilled) && cause.Of(err) != cause.Workers {
				t.Errorf("seed %d: run %d: %v", seed, i, err)
			}
		}
		if _, _, _, err := newRunner(s, version(after)).do(t.Context()); err != nil && !errors.Is(err, ErrDone) {
			t.Errorf("seed %d: at the end: %v", seed, err)
		}
		want := fmt.Sprintf("_SUCCESS a.out:%s b.out:%[1]s c.out:%[1]s", after)
		if got := data(s); got != want || manifests(s) != settled {
			stale++
			t.Errorf("seed %d: %v:\n got %s\nwant %s; %s", seed, errs, got, want, manifests(s))
		}
		if t.Failed() {
			t.Logf("%s", u.story())
			return
		}
	}
	t.Logf("%d of %d orders end with outputs of the old inputs", stale, n)
}

// TestLateWrite: a file that another run has put in place since the writer began stays.
func TestLateWrite(t *testing.T) {
	s := teststore.NewMemory()
	if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := newRunner(s, with(map[string]string{"flat": "F"}))
	run, err := r.Begin(t.Context(), r.inputs())
	if err != nil {
		t.Fatal(err)
	}
	w := run.NewWriter([]Target{{Name: "flat.out", Input: "flat"}}, false)
	if err := w.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Put("b/out/flat.out", []byte("mark|newer"))
	file, err := w.Create(t.Context(), "flat.out")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.commit(t.Context(), staged{File{Name: "flat.out", Sum: "of others"}, file}); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if b, _ := s.Get("b/out/flat.out"); string(b) != "mark|newer" {
		t.Errorf("it has %q", b)
	}
}
