package publish

import (
	"slices"
	"strings"
	"testing"
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
