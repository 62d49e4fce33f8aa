package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

func objects(t *testing.T, in string, ignoreCase bool, paths ...string) *Objects {
	t.Helper()
	var names [][]string
	for _, p := range paths {
		names = append(names, strings.Split(p, "."))
	}
	o, err := NewObjects(io.NopCloser(strings.NewReader(in)), "in", names, ignoreCase, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// Values are those that encoding/json finds, whatever other keys come before and after.
func TestObjectsLikeJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	keys := []string{"k", "K", "a", "k.a", "", `"`, "\u00e9", "}", "long key"}
	var value func(depth int) any
	value = func(depth int) any {
		switch rng.IntN(6 - depth/2) {
		case 0:
			return nil
		case 1:
			return []string{"x", "", `a"}{\`, "\u00e9"}[rng.IntN(4)]
		case 2:
			return rng.IntN(1000)
		case 3:
			return rng.IntN(2) == 0
		}
		object := map[string]any{}
		for range rng.IntN(5) {
			object[keys[rng.IntN(len(keys))]] = value(depth + 2)
		}
		return object
	}
	var in strings.Builder
	var want []map[string]any
	for range 2000 {
		line := map[string]any{fmt.Sprint("key ", rng.IntN(50)): 1}
		for range rng.IntN(5) {
			line[keys[rng.IntN(len(keys))]] = value(0)
		}
		if a, ok := line["a"]; ok && a != nil {
			line["a"] = map[string]any{"k": value(2)}
		}
		b, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(b, '\n'))
		want = append(want, line)
	}
	o := objects(t, in.String(), false, "k", "a.k", "nowhere")
	for i, line := range want {
		if _, err := o.Next(); err != nil || o.Line() != i+1 {
			t.Fatalf("line %d: %v", o.Line(), err)
		}
		inner, _ := line["a"].(map[string]any)
		for p, v := range []any{line["k"], inner["k"], nil} {
			text, ok, err := o.Value(p)
			if err != nil || ok != (v != nil) || string(text) != textLike(t, v) {
				t.Errorf("line %d, path %d: %q, %v, %v; want %v", i+1, p, text, ok, err, v)
			}
		}
	}
	if _, err := o.Next(); err != io.EOF {
		t.Error(err)
	}
	if !o.Seen(0) || !o.Seen(1) || o.Seen(2) {
		t.Error("the keys that were seen are others")
	}
}

// textLike returns the text of a value by the rules of the package.
func textLike(t *testing.T, v any) string {
	t.Helper()
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestObjectsCase(t *testing.T) {
	o := objects(t, "{\"ID\":1}\n{\"id\":{\"X\":2}}\n{\"id\":3,\"Id\":4}\n{\"id\":{\"x\":1,\"X\":1}}\n{\"iD\":5}\n", true, "id", "id.x")
	for i, want := range [][2]string{{"1", "error"}, {`{"X":2}`, "2"}, {"error", "error"}, {`{"x":1,"X":1}`, "error"}, {"5", "error"}} {
		if _, err := o.Next(); err != nil {
			t.Fatal(err)
		}
		for p := range want {
			text, _, err := o.Value(p)
			if err != nil {
				text = []byte("error")
			}
			if string(text) != want[p] {
				t.Errorf("line %d, path %d: %s, want %s", i+1, p, text, want[p])
			}
		}
	}
}

// Lines are returned as they are. Bad ones are errors with their number.
func TestObjectsLines(t *testing.T) {
	o := objects(t, "\xef\xbb\xbf {\"a\":1} \r\n\n{}\n{\"a\":2}", false, "a")
	for _, want := range []string{" {\"a\":1} \r\n", "{}\n", "{\"a\":2}"} {
		if line, err := o.Next(); err != nil || string(line) != want {
			t.Errorf("%q, %v, want %q", line, err, want)
		}
	}
	for in, kind := range map[string]error{
		"{\"a\":1}\n[1]\n": fault.ErrCorrupt, "{\"a\":1}\n{\"a\":\"\\ud800\"}": fault.ErrCorrupt, "{\"a\":1}\n{\"b\":1,\"b\":2}": fault.ErrCorrupt,
		"{\"a\":1}\n{\"a\":\"\xff\"}": fault.ErrCorrupt, "{\"a\":1}\n" + strings.Repeat(" ", maxLine+2): fault.ErrUnsupported,
	} {
		o := objects(t, in, false, "a")
		_, first := o.Next()
		_, err := o.Next()
		if first != nil || !errors.Is(err, kind) || !strings.HasPrefix(err.Error(), "in: line 2: ") {
			t.Errorf("%.30q: %v, %v", in, first, err)
		}
	}
}
