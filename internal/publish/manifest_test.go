package publish

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
)

// TestLines: breaks before the objects of lists change nothing but the text.
func TestLines(t *testing.T) {
	for _, names := range [][]string{nil, {"a", `b"},{"x`, `[{`, `\`, `\\"`, ",{", `},{`, "\u2028\n"}} {
		s := State{Version: version, Recipes: []Recipe{{}, {Hive: names}}}
		for _, name := range names {
			s.Inputs = append(s.Inputs, Entry{Input: name, Files: []string{name}})
			s.Files = append(s.Files, File{Name: name, Inputs: names})
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		out := lines(b)
		var back State
		if err := json.Unmarshal(out, &back); err != nil || !reflect.DeepEqual(s, back) {
			t.Errorf("%v: %s", err, out)
		}
		if n := strings.Count(string(out), "\n"); n != 2+2*len(names)+1 {
			t.Errorf("%d lines: %s", n, out)
		}
	}
}

// FuzzManifest: whatever a manifest says, it is read or refused, and its names stay below
// the directory. What was read can be written and read again.
func FuzzManifest(f *testing.F) {
	f.Add(`{"version":5,"generation":1,"recipes":[{}],"inputs":[{"input":"a","files":["a.parquet"]}],"files":[{"name":"a.parquet","inputs":["a"]}]}`, byte(0))
	f.Add(`{"version":5,"recipes":[{}],"inputs":[{"input":"a","recipe":1}]}`, byte(0))
	f.Add(`{"version":5,"recipes":[{}],"inputs":[{"input":"a"},{"input":"a"}],"removing":[{"name":"../x"}]}`, byte(0))
	f.Add(`{"version":5,"run":"0123456789abcdef","shard":1,"of":2,"inputs":[{"input":"a","groups":3,"lo":1,"hi":3}],"files":[{"name":"x/\\xFF"}]}`, byte(1))
	f.Add(`{"version":5,"run":"0123456789abcdef","of":1,"inputs":[{"groups":9223372036854775807,"lo":-1,"hi":1}]}`, byte(1))
	f.Add(`{"version":5,"run":"0123456789abcdef","of":1,"task":{"inputs":1},"inputs":[{"input":"a","files":["x"]}]}`, byte(1))
	f.Add(`{"version":5,"run":"0123456789abcdef","of":1,"task":{"inputs":1},"inputs":[{"input":"a"}],"files":[{"name":"x","inputs":["b"]}]}`, byte(1))
	f.Add(`{"version":2,"files":[{"name":"a.parquet","input":"a"},{"name":"a.parquet","input":"b"},{"name":"b.parquet","input":"a"}]}`, byte(2))
	f.Fuzz(func(t *testing.T, text string, kind byte) {
		s := teststore.NewMemory()
		d := &newRunner(s, nil).Dir
		name := [...]string{"b/out.bloomjoin/manifest-00000001.json", "b/out.bloomjoin/shard-0123456789abcdef-00000-of-00001.json", "b/out/_manifest.json"}[kind%3]
		s.Put(name, []byte(text))
		l, err := d.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		state, err := l.state(t.Context())
		var part *Part
		if err == nil && len(l.parts) > 0 {
			part, err = l.load(t.Context(), l.parts[0])
		}
		if err != nil {
			if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Errorf("%v", err)
			}
			return
		}
		for _, f := range state.Files {
			if !localName(f.Name) {
				t.Errorf("the file %q", f.Name)
			}
		}
		for i := range state.Inputs {
			state.recipe(&state.Inputs[i]) // is there
			for _, name := range state.Inputs[i].Files {
				_ = state.file(name).Rows
			}
		}
		state.arrange()
		state.Generation = 2
		if err := d.writeState(t.Context(), stateName(2), state, false); err != nil {
			t.Fatal(err)
		}
		var back State
		if err := d.readState(t.Context(), 2, false, &back); err != nil && kind%3 != 1 {
			t.Errorf("%v, of %+v", err, state)
		}
		if part == nil {
			return
		}
		for _, e := range part.Inputs {
			if e.Lo < 0 || e.Hi < e.Lo || e.Hi > e.Groups {
				t.Errorf("row groups of %+v", e)
			}
		}
		parts := []*Part{part}
		if u, err := d.merged(parts); err == nil {
			_ = u.required(state)
			if next, err := d.next(l, state, u, nil); err == nil {
				if err := errors.Join(d.writeState(t.Context(), stateName(next.Generation), next, true), d.readState(t.Context(), next.Generation, false, &back)); err != nil {
					t.Errorf("%v, of %+v", err, next)
				}
			}
		}
	})
}
