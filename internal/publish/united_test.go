package publish

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestUnited checks that the parts of a run are only united if they hold every row group
// of every input once, and agree.
func TestUnited(t *testing.T) {
	// Three workers: the first row groups of a, the others and b, nothing.
	run := func() []*Part {
		parts := make([]*Part, 3)
		for i := range parts {
			parts[i] = &Part{Run: "0123456789abcdef", Shard: uint32(i), Of: 3, Task: Task{Inputs: 2, Digest: "d"}, name: string(rune('0' + i))}
		}
		parts[0].Inputs = []Entry{{Input: "a", Size: 9, Print: "p", Groups: 5, Hi: 2, Counts: Counts{RowsOut: 4}, Files: []string{"a0"}}}
		parts[0].Files = []File{{Name: "a0", Rows: 4}}
		parts[1].Inputs = []Entry{
			{Input: "a", Size: 9, Print: "p", Groups: 5, Lo: 2, Hi: 5, Counts: Counts{RowsOut: 6}, Files: []string{"a2"}},
			{Input: "b", Size: 7, Print: "q", Groups: 1, Hi: 1},
		}
		parts[1].Files = []File{{Name: "a2", Rows: 6}}
		return parts
	}
	d := &Dir{Name: "out", Manifests: "out.bloomjoin"}
	parts := run()
	u, err := d.merged([]*Part{parts[2], parts[1], parts[0]})
	if err != nil {
		t.Fatal(err)
	}
	if a := u.entries[0]; len(u.entries) != 2 || a.Hi != 5 || a.RowsOut != 10 || !slices.Equal(a.Cuts, []int{2}) || !slices.Equal(a.Files, []string{"a0", "a2"}) || len(u.files) != 2 {
		t.Errorf("%+v", u)
	}
	for what, c := range map[string]struct {
		change func(p []*Part)
		want   string
	}{
		"a row group twice":        {func(p []*Part) { p[1].Inputs[0].Lo = 1 }, "row groups: want a worker that goes on with row group 2, got 1 to 5"},
		"a row group left out":     {func(p []*Part) { p[1].Inputs[0].Lo = 3 }, "row groups: want a worker that goes on with row group 2, got 3 to 5"},
		"the first one left out":   {func(p []*Part) { p[0].Inputs[0].Lo = 1 }, "row groups: want all 5, got 1 to 5"},
		"the last one left out":    {func(p []*Part) { p[1].Inputs[0].Hi = 4 }, "row groups: want all 5, got 0 to 4"},
		"an input left out":        {func(p []*Part) { p[1].Inputs = p[1].Inputs[:1] }, "inputs: want 2, got 1"},
		"rows in no file":          {func(p []*Part) { p[1].Files[0].Rows = 5 }, "rows of the files: want 10"},
		"another size":             {func(p []*Part) { p[1].Inputs[0].Size = 8 }, "different contents"},
		"another content":          {func(p []*Part) { p[1].Inputs[0].Print = "r" }, "different contents"},
		"other row groups":         {func(p []*Part) { p[1].Inputs[0].Groups = 6 }, "different contents"},
		"a worker twice":           {func(p []*Part) { p[2].Shard = 1 }, "shard 1, which is also in 1"},
		"a file of two workers":    {func(p []*Part) { p[1].Files[0].Name = "a0" }, "a0, which shard 0 has written, too"},
		"another run":              {func(p []*Part) { p[2].Run = "f" }, "the run: want the inputs and options of 0"},
		"another number":           {func(p []*Part) { p[2].Of = 4 }, "the run: want the inputs and options of 0"},
		"other IDs":                {func(p []*Part) { p[2].Recipe.IDs = "x" }, "the run: want the inputs and options of 0"},
		"other options":            {func(p []*Part) { p[2].Recipe.Options = "x" }, "the run: want the inputs and options of 0"},
		"another task":             {func(p []*Part) { p[2].Task.Digest = "x" }, "the run: want the inputs and options of 0"},
		"another requirement":      {func(p []*Part) { p[2].Require.Rows = 1 }, "the run: want the inputs and options of 0"},
		"another number of inputs": {func(p []*Part) { p[2].Task.Inputs = 3 }, "the run: want the inputs and options of 0"},
	} {
		parts := run()
		c.change(parts)
		if _, err := d.merged(parts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// TestPresent: what was staged is there, and a copy of it has its bytes.
func TestPresent(t *testing.T) {
	s := teststore.NewMemory()
	r := newRunner(s, nil)
	for content, want := range map[string]string{"rows": "", "ro": "2 bytes", "rowz": "other bytes"} {
		for _, name := range []string{"x/_a.1.staged", "x/a"} {
			s.Put("b/out/"+name, []byte(content))
			l, err := r.look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h := xxh3.New()
			h.Write([]byte("rows"))
			err = r.present(t.Context(), l, &State{}, []File{{Name: "x/a", Staged: "_a.1.staged", Bytes: 4, Sum: Sum(h), Identity: "of another machine"}})
			if (err != nil) != (want != "") || err != nil && (!errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "got "+want)) {
				t.Errorf("%s with %q: %v, want %q", name, content, err, want)
			}
			if err := s.Delete(t.Context(), storage.Object{Name: "b/out/" + name}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestElsewhere: parts that were written beside other directories add to a directory, and replace
// its outputs only with Force.
func TestElsewhere(t *testing.T) {
	s := teststore.NewMemory()
	for i, c := range []struct {
		log   map[string]string
		force bool
		want  string
		is    error
	}{
		{log: map[string]string{"a": "1"}, want: "_SUCCESS a.out:1"},
		{log: map[string]string{"b": "2"}, want: "_SUCCESS a.out:1 b.out:2"},
		{log: map[string]string{"a": "3", "b": "3"}, want: "_SUCCESS a.out:1 b.out:2", is: ErrExists},
		{log: map[string]string{"a": "3", "b": "3"}, force: true, want: "_SUCCESS a.out:3 b.out:3"},
	} {
		r := newRunner(s, c.log)
		r.NoCommit, r.Force, r.Manifests = true, c.force, fmt.Sprintf("b/%d.bloomjoin", i)
		_ = s.Delete(t.Context(), storage.Object{Name: "b/out/" + Success}) // of another directory
		if _, _, _, err := r.do(t.Context()); err != nil {
			t.Fatal(i, err)
		}
		if i > 0 {
			s.Put("b/out/"+Success, nil)
		}
		var names []string
		for _, name := range s.Names() {
			if strings.HasPrefix(name, r.Manifests+"/shard-") {
				names = append(names, name)
			}
		}
		for range 2 { // the second time, it is done
			d := newRunner(s, nil)
			if _, err := d.Complete(t.Context(), names); !errors.Is(err, c.is) || errors.Is(err, storage.ErrAgain) {
				t.Errorf("commit %d of %q: %v, want %v", i, names, err, c.is)
			}
		}
		equal(t, fmt.Sprint("data of ", i), data(s), c.want)
	}
}
