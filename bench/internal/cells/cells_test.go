package cells

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

type row struct {
	Cell
	err error
}

func someCells() []row {
	return []row{{Cell: Cell{Name: "a", Document: "doc.md"}}, {Cell: Cell{Name: "big", Document: "doc.md", Big: true}}, {Cell: Cell{Name: "c", Document: "doc.md"}}}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		names []string
		quick bool
		want  string
	}{
		{nil, false, "a c"}, {nil, true, "a big c"}, {[]string{"all"}, false, "a big c"},
		{[]string{"c", "a"}, false, "a c"}, {[]string{"big"}, false, "big"}, {[]string{"c"}, true, "c"},
	} {
		chosen, err := Choose(someCells(), c.names, c.quick)
		var got []string
		for _, one := range chosen {
			got = append(got, one.Name)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%q, quick %t: got %q, %v, want %q", c.names, c.quick, got, err, c.want)
		}
	}
	if got, err := Choose(someCells(), []string{"a", "b"}, false); err == nil {
		t.Errorf("an unknown name: got %v, want an error", got)
	}
}

func TestParse(t *testing.T) {
	f := Flags{Command: "x"}
	if err := f.Parse([]string{"-cell", "a,b", "-cell", "c", "-quick"}, nil); err != nil || len(f.Names) != 3 {
		t.Errorf("got %+v, %v", f, err)
	}
	if got := f.Scaled(5000); got != 5 || f.RoundsOf(3, 1) != 1 {
		t.Errorf("quick: %d of 5000, %d rounds", got, f.RoundsOf(3, 1))
	}
	for _, args := range [][]string{{"x"}, {"-rounds", "-1"}, {"-n", "-1"}, {"-smaller", "0"}, {"-smaller", "1001"}, {"-quick", "-update"}, {"-smaller", "2", "-update"}} {
		if err := new(Flags).Parse(args, nil); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}

// A failure does not stop other cells. Only cells without failures get into documents.
func TestMeasure(t *testing.T) {
	t.Chdir(t.TempDir())
	const document = "<!-- table: a -->\n<!-- end -->\n<!-- table: big -->\n<!-- end -->\n<!-- table: c -->\n<!-- end -->\n"
	if err := os.WriteFile("doc.md", []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	all := someCells()
	all[0].err = errors.New("broken")
	f := Flags{Command: "x", Update: true, Rounds: 7}
	err := Measure(t.Context(), &f, "a machine", all, func(_ context.Context, c row) (*Result, error) {
		if c.err != nil {
			return nil, c.err
		}
		res := &Result{Tables: []report.Table{{Head: []string{"figures of " + c.Name}}}}
		if c.Big {
			res.Wrong = append(res.Wrong, errors.New("too big"))
		}
		return res, nil
	})
	if err == nil || err.Error() != "a: broken\nbig: too big" {
		t.Errorf("got %v", err)
	}
	text, err := os.ReadFile("doc.md")
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]bool{"go run ./x -data DIR -cell c -rounds 7\n": true, "figures of c": true, "a machine": true, "figures of a": false, "figures of big": false} {
		if strings.Contains(string(text), part) != want {
			t.Errorf("%q: want it in the document: %t\n%s", part, want, text)
		}
	}
}

// An update without a place is refused before anything is measured.
func TestMeasureNeedsMarkers(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile(filepath.Join(dir, "doc.md"), []byte("<!-- table: a -->\n<!-- end -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Measure(t.Context(), &Flags{Update: true}, "", someCells(), func(context.Context, row) (*Result, error) {
		t.Error("measured")
		return &Result{}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "table: big") {
		t.Errorf("got %v", err)
	}
}
