package publish

import (
	"context"
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
	if why, err := d.Unfinished(t.Context()); err != nil || why != "" {
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

// TestLateWrite: a file that another program has put in the place of an output since the run began
// stays, and so does one in the place of a new output.
func TestLateWrite(t *testing.T) {
	for _, name := range []string{"flat.out", "new.out"} {
		s := teststore.NewMemory()
		if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := newRunner(s, with(map[string]string{"flat": "F", "new": "n"}))
		n := 3
		r.use(putting{s, &n, func() { s.Put("b/out/"+name, []byte("|mine")) }})
		_, _, _, err := r.do(t.Context())
		if !errors.Is(err, ErrExists) || n != 2 {
			t.Errorf("%s: %v", name, err)
		}
		if b, _ := s.Get("b/out/" + name); string(b) != "|mine" {
			t.Errorf("it has %q", b)
		}
		if _, ok := s.Get("b/out/" + Success); !ok {
			t.Error("the state before is marked no longer")
		}
	}
}

// putting does something before one of its requests that write.
type putting struct {
	*teststore.Memory
	left *int
	do   func()
}

func (p putting) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	if *p.left--; *p.left == 2 { // the part
		p.do()
	}
	return p.Memory.Create(ctx, name, o)
}
