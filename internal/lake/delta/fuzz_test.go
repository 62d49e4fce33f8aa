package delta_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/delta"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
)

// object is an object of JSON with its members in order.
type object []pair

type pair struct {
	name  string
	value any // object, []any, string, json.Number, bool or nil
}

// parse parses a value with all members of its objects, also those of the same name.
func parse(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil || token != json.Delim('{') && token != json.Delim('[') {
		return token, err
	}
	var members object
	var list []any
	for d.More() {
		var m pair
		if token == json.Delim('{') {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			m.name = name.(string)
		}
		if m.value, err = parse(d); err != nil {
			return nil, err
		}
		members, list = append(members, m), append(list, m.value)
	}
	_, err = d.Token()
	if token == json.Delim('[') {
		return list, err
	}
	return members, err
}

// member returns a member of an object, nil if there is none or it is NULL.
func member(v any, name string) any {
	members, _ := v.(object)
	for _, m := range members {
		if strings.EqualFold(m.name, name) {
			return m.value
		}
	}
	return nil
}

// plain reports whether no object in a value has two members of one name, whose effect differs from
// parser to parser.
func plain(v any) bool {
	switch v := v.(type) {
	case object:
		for i, m := range v {
			if !plain(m.value) || slices.ContainsFunc(v[:i], func(o pair) bool { return strings.EqualFold(o.name, m.name) }) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !plain(item) })
	}
	return true
}

// actions are the words of actions.
var actions = []string{"add", "remove", "metaData", "protocol", "sidecar"}

// vector returns what tells the deletion vectors of a file apart, empty if there is none.
func vector(action any) string {
	v := member(action, "deletionVector")
	if text(member(v, "storageType")) == "" {
		return ""
	}
	id := text(member(v, "storageType")) + text(member(v, "pathOrInlineDv"))
	if at := member(v, "offset"); at != nil {
		id += fmt.Sprint("@", integer(at))
	}
	return id
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func integer(v any) int64 {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return i
}

// logical identifies a file of a table.
type logical struct{ path, vector string }

// model replays a checkpoint, or nil, and commits by the definition: in each commit, removes happen
// before adds. ok is false if the protocol does not say what a line means.
func model(whole []byte, commits ...[]byte) (files map[logical]any, ok bool) {
	files = map[logical]any{}
	for i, commit := range append([][]byte{whole}, commits...) {
		var adds []any
		for line := range bytes.Lines(commit) {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			v, err := parse(d)
			if err != nil || !plain(v) {
				return nil, false
			}
			is := slices.DeleteFunc(slices.Clone(actions), func(word string) bool { return member(v, word) == nil })
			if len(is) > 1 || len(is) == 1 && is[0] == "sidecar" {
				return nil, false
			}
			if add := member(v, "add"); add != nil {
				adds = append(adds, add)
			}
			if remove := member(v, "remove"); remove != nil && i > 0 {
				delete(files, logical{text(member(remove, "path")), vector(remove)})
			}
		}
		for _, add := range adds {
			files[logical{text(member(add, "path")), vector(add)}] = add
		}
	}
	return files, true
}

// replayed returns the files of the newest version.
func replayed(t *testing.T, s *teststore.Memory) (files []lake.File, err error) {
	n, err := delta.Open(t.Context(), s, lake.Name{Kind: "delta", Location: "t"}, true)
	if err != nil {
		return nil, err
	}
	_, err = n.Files(t.Context(), nil, func(f *lake.File) error {
		files = append(files, *f)
		return nil
	})
	return files, err
}

// compare compares files with the model's.
func compare(t *testing.T, got []lake.File, want map[logical]any) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d files: %v, want %d: %v", len(got), got, len(want), want)
	}
	byName := map[string]lake.File{}
	for _, f := range got {
		byName[f.Object.Name] = f
	}
	for of, add := range want {
		f, ok := byName["t/"+of.path]
		if !ok {
			if !strings.ContainsAny(of.path, "%:/") {
				t.Errorf("%q is missing in %v", of.path, got)
			}
			continue
		}
		if f.Object.Size != integer(member(add, "size")) || (f.Deleted != nil) != (of.vector != "") {
			t.Errorf("%+v, want %v", f, add)
		}
		if f.Deleted != nil && f.Deleted.Count != integer(member(member(add, "deletionVector"), "cardinality")) {
			t.Errorf("%+v, want %v", f.Deleted, add)
		}
	}
}

// Whatever a log has, it is read or refused, in little memory. What is read are the files of the
// model.
func FuzzReplay(f *testing.F) {
	d := laketest.New(f, schema, nil, "day")
	a, b := d.Add("day=1/a b%.parquet", "AA", nil, "2024-01-01"), d.Add("b.parquet", "B", nil, nil)
	d.Commit(a, b)
	d.Commit(d.Again("b.parquet", 1, []int64{0, 5}, nil), laketest.Remove(b))
	d.Commit(d.Again("day=1/a b%.parquet", 2, []int64{7}, "2024-01-01"), laketest.Remove(a), d.Add("c.parquet", "C", nil, ""))
	commit := func(i int) []byte {
		b, err := os.ReadFile(filepath.Join(d.Dir, fmt.Sprintf("_delta_log/%020d.json", i)))
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	head := commit(0)
	day := "2024-02-03"
	side := row{}
	side.Sidecar = &struct {
		Path string `parquet:"path"`
		Size int64  `parquet:"sizeInBytes"`
	}{"s.parquet", 1}
	for i := 1; i <= 3; i++ {
		f.Add(head, slices.Concat(commit(i), commit(i)), []byte(nil), byte(0))
		f.Add(slices.Concat(head, commit(1)), commit(i), []byte(nil), byte(0))
		f.Add(slices.Concat(head, commit(1)), commit(i), slices.Concat(head, commit(1)), byte(1))
	}
	f.Add(head, commit(2), []byte(checkpoint(f, append(heads(d), adding("b.parquet", nil))...)), byte(2))
	f.Add(head, commit(1), []byte(checkpoint(f, append(heads(d), adding("a.parquet", &day), side)...)), byte(2))
	f.Add(head, []byte(`{"add":{"path":"a","partitionValues":{"day":null},"size":1,"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6}}}`), []byte(nil), byte(0))
	f.Add(head, []byte(`{"remove":{"path":"a","deletionVector":{"storageType":""}}}`+"\n"+`{"add":{"path":"a","size":-1}}`), []byte(nil), byte(0))
	f.Fuzz(func(t *testing.T, first, second, whole []byte, kind byte) {
		s := teststore.NewMemory()
		log := "t/_delta_log/"
		s.Put(log+"00000000000000000000.json", first)
		s.Put(log+"00000000000000000001.json", second)
		switch kind % 3 {
		case 1:
			s.Put(log+"00000000000000000000.checkpoint.11111111-1111-1111-1111-111111111111.json", whole)
		case 2:
			s.Put(log+"00000000000000000000.checkpoint.parquet", whole)
			s.Put(log+"_sidecars/s.parquet", whole)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := replayed(t, s)
		runtime.ReadMemStats(&after)
		if most := uint64(8<<20 + 500*(len(first)+len(second)+len(whole))); after.TotalAlloc-before.TotalAlloc > most {
			t.Errorf("%d bytes are allocated, want at most %d", after.TotalAlloc-before.TotalAlloc, most)
		}
		if err != nil {
			if errors.Is(err, panics.ErrRecovered) {
				t.Fatal(err)
			}
			return
		}
		want, ok := model(nil, first, second)
		if len(whole) > 0 && kind%3 == 1 {
			want, ok = model(whole, second)
		}
		if ok && (kind%3 < 2 || len(whole) == 0) {
			compare(t, got, want)
		}
	})
}
