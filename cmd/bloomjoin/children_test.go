package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// childTypes returns nested types whose children have all names, metadata and nullability, each
// with a value as JSON.
func childTypes() (types []arrow.DataType, values []string) {
	add := func(t arrow.DataType, value string) {
		types, values = append(types, t), append(values, value)
	}
	for _, name := range []string{"item", "xy"} {
		for _, nullable := range []bool{true, false} {
			for _, md := range []arrow.Metadata{{}, arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"7"})} {
				f := arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int16, Nullable: nullable, Metadata: md}
				inner := f
				inner.Type = arrow.FixedSizeListOfField(2, f)
				add(inner.Type, "[7,8]")
				add(arrow.ListOfField(inner), "[[7,8]]")
				add(arrow.LargeListOfField(f), "[7,8]")
				add(arrow.LargeListOfField(inner), "[[7,8]]")
				add(arrow.FixedSizeListOfField(1, inner), "[[7,8]]")
				add(arrow.StructOf(f, arrow.Field{Name: "z", Type: inner.Type, Nullable: nullable}), fmt.Sprintf(`{%q:7,"z":[7,8]}`, name))
				m := arrow.MapOf(arrow.BinaryTypes.String, inner.Type) // whose metadata arrow/go does not write
				m.KeysSorted = true
				m.SetItemNullable(nullable)
				add(m, `[{"key":"a","value":[7,8]}]`)
			}
		}
	}
	return types, values
}

// Columns of either side keep the names, nullability and metadata of their children, in every type
// of join, also where rows without a partner are NULL there.
func TestNamesOfChildren(t *testing.T) {
	types, values := childTypes()
	every := cases.Count(9, 3, 1)
	for i, typ := range types {
		if i%every == 0 {
			t.Run(fmt.Sprint(i, typ), func(t *testing.T) { joinsOfChildren(t, typ, values[i]) })
		}
	}
}

func joinsOfChildren(t *testing.T, typ arrow.DataType, value string) {
	dir := t.TempDir()
	side := func(name string, keys ...int) string {
		schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: name, Type: typ, Nullable: true}}, nil)
		var rows []string
		for _, k := range keys {
			rows = append(rows, fmt.Sprintf(`{"k":%d,%q:%s}`, k, name, value))
		}
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(schema.Fields()[:1], nil), strings.NewReader("["+strings.Join(rows, ",")+"]"))
		if err != nil {
			t.Fatal(err)
		}
		of, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader("["+strings.Repeat(value+",", len(keys)-1)+value+"]"))
		if err != nil {
			t.Fatal(err)
		}
		of = take.As(of, typ) // builders rename children
		path := filepath.Join(dir, name+".arrow")
		if err := os.WriteFile(path, arrowStream(t, array.NewRecord(schema, []arrow.Array{rec.Column(0), of}, int64(len(keys)))), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log, ids := side("v", 1, 2), side("w", 2, 3)
	want := map[string][2]int{"semi": {1, 0}, "anti": {1, 0}, "inner": {1, 1}, "left": {2, 1}, "right": {1, 2}, "full": {2, 2}} // values of v and w
	for how, n := range want {
		args := []string{"join", "--quiet", "--force", "--ids", ids, "--on", "k", "--type", how, "-o"}
		for _, out := range []string{"o.parquet", "o.ndjson"} {
			do(t, append(args, filepath.Join(dir, out), log)...)
		}
		var stdout, stderr bytes.Buffer
		if code := run(append(args, "-", "--format", "arrow", log), strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatalf("%s: %s", how, &stderr)
		}
		var got [2]int
		for _, rec := range batchesOf(t, stdout.Bytes()) {
			for c, name := range []string{"v", "w"} {
				for _, at := range rec.Schema().FieldIndices(name) {
					ofLog := name == "v" // the IDs lose their field ids
					if own, want := described(rec.Schema().Field(at).Type, ofLog), described(typ, ofLog); own != want {
						t.Errorf("%s: %s is %s, want %s", how, name, own, want)
					}
					for row := range int(rec.NumRows()) {
						if rec.Column(at).IsValid(row) {
							got[c]++
							if s := strings.ReplaceAll(rec.Column(at).ValueStr(row), " ", ""); s != value {
								t.Errorf("%s: %s is %s, want %s", how, name, s, value)
							}
						}
					}
				}
			}
		}
		if got != n {
			t.Errorf("%s: %v values of v and w, want %v", how, got, n)
		}
	}
}

// described returns a type with all that its children are, if wanted with metadata.
func described(t arrow.DataType, metadata bool) string {
	nested, ok := t.(arrow.NestedType)
	if !ok {
		return t.String()
	}
	out := t.Name()
	for _, f := range nested.Fields() {
		out += fmt.Sprintf(" (%s %v %s", f.Name, f.Nullable, described(f.Type, metadata))
		if metadata && f.HasMetadata() {
			out += " " + f.Metadata.String()
		}
		out += ")"
	}
	return out
}
