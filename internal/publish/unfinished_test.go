package publish

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestUnfinished: what a directory lacks, while its workers run and afterwards.
func TestUnfinished(t *testing.T) {
	s := teststore.NewMemory()
	log := map[string]string{"a": "1", "b": "22", "c": "333"}
	says := func(what, want string) {
		t.Helper()
		why, err := newRunner(s, log).Unfinished(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, what, why, want)
	}
	says("nothing is there", "")
	for shard, want := range []string{"1 of 3 workers are done, without 1, 2", "2 of 3 workers are done, without 2", ""} {
		r := newRunner(s, log)
		r.Shard, r.Of = uint32(shard), 3
		if _, _, _, err := r.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		says("workers", want)
	}
	remove := func(name string) {
		t.Helper()
		if err := newRunner(s, log).removeObject(t.Context(), storage.Object{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	remove("b/out/" + Success)
	says("without _SUCCESS, but whole", "")
	s.Put("b/out/stray", []byte("mark|1"))
	says("a stray output", "stray is an output that no manifest lists")
	remove("b/out/stray")
	remove("b/out/a.out")
	says("a file that is gone", "a.out is missing")
}

// TestUnfinishedOfTwoRuns: a worker learns what its own run waits for, though the IDs have
// changed since others began, whichever run's name comes first.
func TestUnfinishedOfTwoRuns(t *testing.T) {
	log := map[string]string{"a": "1", "b": "22", "c": "333"}
	for _, ids := range []string{"i2", "i3", "i4", "i5", "i6"} {
		s := teststore.NewMemory()
		for shard, want := range []string{"1 of 3 workers are done, without 1, 2", "2 of 3 workers are done, without 2",
			"1 of 3 workers are done, without 0, 1; the IDs differ from the other shards'"} {
			r := newRunner(s, log)
			r.Shard, r.Of = uint32(shard), 3
			if shard == 2 {
				r.Recipe.IDs = ids
			}
			_, run, _, err := r.do(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waits, err := run.waits(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "worker of "+ids, waits, want)
		}
	}
}

// TestPruneSpares: a file of another program is not removed in the place of an output.
func TestPruneSpares(t *testing.T) {
	s := teststore.NewMemory()
	if _, _, _, err := newRunner(s, map[string]string{"a": "1", "b": "22"}).do(t.Context()); err != nil {
		t.Fatal(err)
	}
	own, _ := s.Get("b/out/a.out")
	for _, c := range []struct{ content, want string }{
		{"somebody's file", "a.out is not the file that this output has written (cut)"},
		{strings.Repeat("x", len(own)), "a.out is not the file that this output has written (changed)"},
		{string(own), ""},
	} {
		s.Put("b/out/a.out", []byte(c.content))
		r := newRunner(s, map[string]string{"b": "22"})
		r.Prune = true
		_, _, _, err := r.do(t.Context())
		now, there := s.Get("b/out/a.out")
		switch {
		case c.want != "" && (!errors.Is(err, ErrExists) || !strings.Contains(err.Error(), c.want) || string(now) != c.content):
			t.Errorf("%q: %v, and there is %q", c.content, err, now)
		case c.want == "" && (err != nil && !errors.Is(err, ErrDone) || there):
			t.Errorf("its own file: %v, and there is %q", err, now)
		}
	}
}

// TestLateSuccess: a _SUCCESS that was under way while another run began to replace files says
// nothing until that run has ended.
func TestLateSuccess(t *testing.T) {
	log := with(map[string]string{"dt=1/a": "AAA", "dt=1/b": "BB"})
	for left := range 40 {
		s := teststore.NewMemory()
		if _, _, _, err := newRunner(s, month).do(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := newRunner(s, log)
		n := left
		r.use(mortal{s, &n})
		_, _, _, err := r.do(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		for _, name := range []string{"b/out/" + Success, "b/out/dt=1/" + Success} {
			s.Put(name, nil)
		}
		d := newRunner(s, nil)
		why, err := d.Unfinished(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l, err := d.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		state, err := l.state(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if state.pending() && (why == "" || d.Finished(t.Context(), "dt=1/x")) {
			t.Errorf("after %d requests: unfinished %q, dt=1 finished %t: %s; %s", left, why, d.Finished(t.Context(), "dt=1/x"), data(s), manifests(s))
		}
		if !d.Finished(t.Context(), "dt=2/x") {
			t.Error("another partition is not finished")
		}
	}
}

// TestGivenUp: the plan of a run that has no inputs, and only removes what others have removed since, goes.
func TestGivenUp(t *testing.T) {
	for _, log := range []map[string]string{{"a": "1"}, {}} {
		s := teststore.NewMemory()
		if len(log) > 0 {
			if _, _, _, err := newRunner(s, map[string]string{"a": "1", "b": "22"}).do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		left := 1
		r := newRunner(mortal{s, &left}, log)
		r.Prune, r.Of = true, 2
		if _, _, _, err := r.do(t.Context()); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if !strings.Contains(manifests(s), "plan-") {
			t.Fatal(manifests(s))
		}
		next := newRunner(s, map[string]string{"a": "1"})
		next.Prune = true
		if _, _, _, err := next.do(t.Context()); err != nil {
			t.Error(err)
		}
		equal(t, "manifests", manifests(s), settled)
		if v, err := next.Verify(t.Context(), false); err != nil || !v.Complete {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

// TestOtherList: the plan of a run that was killed goes when one of a later list has done its inputs,
// whether it is of a list or not.
func TestOtherList(t *testing.T) {
	for i := range 4 {
		s := teststore.NewMemory()
		left := 1
		r := newRunner(mortal{s, &left}, map[string]string{"a": "1", "b": "22"})
		r.listed, r.Of = i%2 == 0, 2
		if _, _, _, err := r.do(t.Context()); !errors.Is(err, errKilled) || !strings.Contains(manifests(s), "plan-") {
			t.Fatal(err, manifests(s))
		}
		next := newRunner(s, map[string]string{"a": "1", "b": "22", "c": "3"})
		next.listed = i < 2
		if _, _, _, err := next.do(t.Context()); err != nil {
			t.Error(err)
		}
		equal(t, fmt.Sprint(i, ": manifests"), strings.Contains(manifests(s), "plan-"), false)
	}
}

// TestVersion4: what version 4 has left is an error, and with Force is made again.
func TestVersion4(t *testing.T) {
	for _, noCommit := range []bool{false, true} {
		s := teststore.NewMemory()
		first := newRunner(s, month)
		first.NoCommit, first.Force = noCommit, true // so that the part is one of the same run
		if _, _, _, err := first.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range s.Names() {
			if !strings.HasPrefix(name, "b/out.bloomjoin/") {
				continue
			}
			b := string(must(s.Get(name)))
			for _, c := range [][2]string{{`"version":5`, `"version":4`}, {`"staged":`, `"was":`}, {`"generation":1,"rows_in"`, `"rows_in"`}} {
				b = strings.ReplaceAll(b, c[0], c[1])
			}
			s.Put(name, []byte(b))
		}
		if _, err := newRunner(s, nil).Complete(t.Context(), nil); !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("no commit %t: %v", noCommit, err)
		}
		for _, of := range []uint32{1, 2} { // other runs, with the part beside them
			other := newRunner(s, with(map[string]string{"flat": "F"}))
			other.Of = of
			before := manifests(s)
			if did, _, _, err := other.do(t.Context()); !errors.Is(err, fault.ErrUnsupported) || len(did) > 0 || manifests(s) != before {
				t.Errorf("no commit %t, beside it: read %q, %v; %s", noCommit, did, err, manifests(s))
			}
		}
		r := newRunner(s, month)
		r.Force = true
		if did, _, _, err := r.do(t.Context()); err != nil || len(did) != len(month) {
			t.Errorf("no commit %t: %q, %v", noCommit, did, err)
		}
		equal(t, "data", data(s), monthData)
		equal(t, "manifests", manifests(s), settled)
		if _, _, _, err := newRunner(s, month).do(t.Context()); !errors.Is(err, ErrDone) {
			t.Error(err)
		}
	}
}
