package lake

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	pg "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// opened opens a file without rows that has columns.
func opened(t *testing.T, columns pg.Group) *parquet.File {
	t.Helper()
	var b bytes.Buffer
	if err := pg.NewGenericWriter[any](&b, pg.NewSchema("schema", columns)).Close(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.Open(nil, bytes.NewReader(b.Bytes()), int64(b.Len()), "f")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// typesOf returns the types that a file has with the view of a table.
func typesOf(t *testing.T, table *Table, columns pg.Group) ([]string, error) {
	t.Helper()
	f := opened(t, columns)
	v, err := table.View(f, nil)
	if err != nil {
		return nil, err
	}
	if err := f.Adopt(v, nil); err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, l := range f.Leaves {
		types = append(types, fmt.Sprintf("%v %d %d %d %d", l.Type, l.TypeLength, l.Logical.Kind, l.Logical.Precision, l.Logical.Unit))
	}
	return types, nil
}

// Each type of a table, what may be stored for it, and as what readers see that.
func TestWiderColumns(t *testing.T) {
	decimal := func(scale, precision int, typ pg.Type) pg.Node { return pg.Decimal(scale, precision, typ) }
	int32s, int64s, float := pg.Leaf(pg.Int32Type), pg.Leaf(pg.Int64Type), pg.Leaf(pg.FloatType)
	fixed := func(n int) pg.Node { return pg.Leaf(pg.FixedLenByteArrayType(n)) }
	for _, c := range []struct {
		typ    string
		stored pg.Node
		as     string // empty: refused
		widens bool   // only by a table that widens types
	}{
		{"int64", int32s, "INT64 0 0 0 0", true}, {"int64", pg.Int(16), "INT64 0 0 0 0", true}, {"int32", pg.Int(8), "INT32 0 0 0 0", true},
		{"int64", pg.Uint(32), "", true}, {"int64", pg.Date(), "", true}, {"int32", int64s, "", true}, {"int64", float, "", true},
		{"double", float, "DOUBLE 0 0 0 0", true}, {"float", pg.Leaf(pg.DoubleType), "", true}, {"double", int32s, "", true},
		{"timestamp", pg.Date(), "", true}, {"string", int32s, "", true},
		{"decimal(9,2)", decimal(2, 4, pg.Int32Type), "INT32 0 8 9 0", true},
		{"decimal(18,2)", decimal(2, 4, pg.Int32Type), "INT64 0 8 18 0", true},
		{"decimal(19,2)", decimal(2, 4, pg.Int32Type), "FIXED_LEN_BYTE_ARRAY 9 8 19 0", true},
		{"decimal(18,2)", decimal(2, 12, pg.Int64Type), "INT64 0 8 18 0", true},
		{"decimal(38,2)", decimal(2, 12, pg.Int64Type), "FIXED_LEN_BYTE_ARRAY 16 8 38 0", true},
		{"decimal(11,2)", decimal(2, 4, pg.FixedLenByteArrayType(5)), "FIXED_LEN_BYTE_ARRAY 5 8 11 0", true},
		{"decimal(12,2)", decimal(2, 4, pg.FixedLenByteArrayType(5)), "FIXED_LEN_BYTE_ARRAY 6 8 12 0", true},
		{"decimal(38,2)", decimal(2, 4, pg.ByteArrayType), "BYTE_ARRAY 0 8 38 0", true},
		{"decimal(9,3)", decimal(2, 4, pg.Int32Type), "", true}, {"decimal(3,2)", decimal(2, 4, pg.Int32Type), "", true},
		{"int64", decimal(0, 4, pg.Int32Type), "", true}, {"decimal(9,0)", int32s, "", true},
		{"time", pg.Time(pg.Microsecond), "INT64 0 10 0 1", false}, {"time", pg.Time(pg.Nanosecond), "", true}, {"time", int64s, "", true},
		{"uuid", pg.UUID(), "FIXED_LEN_BYTE_ARRAY 16 5 0 0", false}, {"uuid", fixed(16), "FIXED_LEN_BYTE_ARRAY 16 5 0 0", false}, {"uuid", fixed(15), "", true},
		{"fixed[7]", fixed(7), "FIXED_LEN_BYTE_ARRAY 7 0 0 0", false}, {"fixed[7]", fixed(8), "", true}, {"fixed[16]", pg.UUID(), "", true},
		{"timestamp_ns", pg.Timestamp(pg.Nanosecond), "INT64 0 11 0 2", false}, {"timestamptz", pg.Timestamp(pg.Nanosecond), "INT64 0 11 0 2", false},
		{"timestamptz_ns", pg.Timestamp(pg.Millisecond), "INT64 0 11 0 0", false},
		{"timestamp_ns", int64s, "", true},
	} {
		for _, widens := range []bool{false, true} {
			for name, in := range map[string]func(Column, pg.Node) (Column, pg.Node){
				"": func(c Column, n pg.Node) (Column, pg.Node) { return c, n },
				" in a struct": func(c Column, n pg.Node) (Column, pg.Node) {
					return Column{Name: "k", Type: structType, Children: []Column{c}}, pg.Group{"k": pg.Optional(n)}
				},
				" in a list": func(c Column, n pg.Node) (Column, pg.Node) {
					return Column{Name: "k", Type: listType, Children: []Column{c}}, pg.List(n)
				},
			} {
				column, node := in(Column{Name: "k", Type: c.typ}, c.stored)
				types, err := typesOf(t, &Table{Columns: []Column{column}, Widens: widens}, pg.Group{"k": node})
				if fits := c.as != "" && (widens || !c.widens); fits != (err == nil) || err != nil && !errors.Is(err, fault.ErrUnsupported) || fits && !slices.Equal(types, []string{c.as}) {
					t.Errorf("%s over %v%s, widens %t: %v, %v, want %s", c.typ, c.stored, name, widens, types, err, c.as)
				}
			}
		}
	}
}

// Columns that a file lacks have the types that files store for them, also in parts of others.
func TestMissingTypes(t *testing.T) {
	leaf := func(typ string) Column { return Column{Name: "x", Type: typ} }
	types, err := typesOf(t, &Table{Columns: []Column{
		leaf("int64"), leaf("time"), leaf("uuid"), leaf("fixed[7]"), leaf("timestamp_ns"), leaf("timestamptz"),
		{Name: "s", Type: structType, Children: []Column{leaf("uuid")}}, {Name: "l", Type: listType, Children: []Column{leaf("uuid")}},
		{Name: "m", Type: mapType, Children: []Column{leaf("uuid"), leaf("uuid")}},
	}}, pg.Group{"k": pg.Leaf(pg.Int64Type)})
	uuid := "FIXED_LEN_BYTE_ARRAY 16 5 0 0"
	if want := []string{"INT64 0 0 0 0", "INT64 0 10 0 1", uuid, "FIXED_LEN_BYTE_ARRAY 7 0 0 0", "INT64 0 11 0 2", "INT64 0 11 0 1", uuid, uuid, uuid, uuid}; err != nil || !slices.Equal(types, want) {
		t.Errorf("%v, %v", types, err)
	}
}

// A column with a default value is refused where files lack it, and read where they have it.
func TestDefaults(t *testing.T) {
	with := Column{Name: "d", Type: "int64", Default: true}
	k := Column{Name: "k", Type: "int64"}
	in := func(name string, of ...Column) Column { return Column{Name: name, Type: structType, Children: of} }
	long := pg.Leaf(pg.Int64Type)
	for _, c := range []struct {
		columns []Column
		stored  pg.Group
		refused string
	}{
		{[]Column{k, with}, pg.Group{"k": long}, "column d"},
		{[]Column{k, with}, pg.Group{"k": long, "d": long}, ""},
		{[]Column{in("s", k, in("t", k, with))}, pg.Group{"s": pg.Group{"k": long, "t": pg.Group{"k": long}}}, "column s.t.d"},
		{[]Column{in("s", with)}, pg.Group{"k": long}, ""}, // the struct is NULL
	} {
		_, err := typesOf(t, &Table{Columns: c.columns}, c.stored)
		if (err == nil) != (c.refused == "") || err != nil && (!errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "default value")) {
			t.Errorf("%v: %v", c.columns, err)
		}
	}
}

// Tables by id find columns by id alone; in files without ids by the mapping alone.
func TestByID(t *testing.T) {
	long := pg.Leaf(pg.Int64Type)
	stored := func(of map[string]int) pg.Group {
		g := pg.Group{}
		for name, id := range of {
			g[name] = long
			if id > 0 {
				g[name] = pg.FieldID(long, id)
			}
		}
		return g
	}
	k := Column{Name: "k", ID: 3, Names: []string{"was", "K"}, Type: "int64"}
	bare := Column{Name: "k", ID: 3, Type: "int64"}
	for _, c := range []struct {
		column Column
		byID   bool
		stored map[string]int
		leaf   int // -1: it is NULL; -2: refused
	}{
		{k, true, map[string]int{"a": 1, "other": 3}, 1}, {k, true, map[string]int{"a": 1, "k": 0, "was": 0}, -1}, {bare, true, map[string]int{"k": 4}, -1},
		{k, true, map[string]int{"a": 0, "was": 0}, 1}, {k, true, map[string]int{"K": 0}, 0}, {k, true, map[string]int{"k": 0, "WAS": 0}, -1},
		{bare, true, map[string]int{"k": 0}, -2},
		{k, false, map[string]int{"k": 0}, 0}, {k, false, map[string]int{"was": 0}, -1}, {bare, false, map[string]int{"a": 1, "k": 0}, -1}, {bare, false, map[string]int{"K": 0}, 0},
	} {
		table := &Table{Columns: []Column{c.column}, ByID: c.byID}
		for _, nested := range []bool{false, true} {
			columns := stored(c.stored)
			if nested {
				if c.leaf == -1 {
					continue
				}
				columns = pg.Group{"s": columns}
				s := Column{Name: "s", Type: structType, Children: []Column{c.column}}
				if c.column.Names != nil {
					s.Names = []string{"s"}
				}
				for _, id := range c.stored {
					if id > 0 {
						s.ID, columns = 9, pg.Group{"s": pg.FieldID(columns["s"], 9)}
						break
					}
				}
				table = &Table{Columns: []Column{s}, ByID: c.byID}
			}
			v, err := table.View(opened(t, columns), nil)
			switch {
			case c.leaf == -2:
				if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "name mapping") {
					t.Errorf("%v: %v", c, err)
				}
			case err != nil || len(v.Leaves) != 1 || v.Leaves[0] != c.leaf:
				t.Errorf("%v, nested %t: %+v, %v", c, nested, v, err)
			}
		}
	}
}

// The table's value of a column is used where the file lacks it.
func TestValues(t *testing.T) {
	table := &Table{ByID: true, Columns: []Column{
		{Name: "k", ID: 1, Type: "int64"}, {Name: "day", ID: 2, Type: "date"}, {Name: "s", ID: 3, Type: "string", Default: true},
		{Name: "b", ID: 4, Type: "boolean"}, {Name: "p", ID: 5, Type: "decimal(9,2)"}, {Name: "u", ID: 6, Type: "uuid"}, {Name: "x", ID: 7, Type: "timestamptz"},
	}}
	file := func() *parquet.File { return opened(t, pg.Group{"k": pg.FieldID(pg.Leaf(pg.Int64Type), 1)}) }
	parts := []hive.Part{
		{Name: "k", Text: "7"}, {Name: "day", Text: "1970-01-03"}, {Name: "s", Text: ""}, {Name: "b", Text: "true"}, {Name: "p", Text: "-1.50"},
		{Name: "u", Null: true}, {Name: "x", Text: "1970-01-01 00:00:01Z"}, {Name: "none", Text: "1"},
	}
	f := file()
	if used := table.Used(f, parts); !slices.Equal(used, parts[1:7]) {
		t.Errorf("used: %v", used)
	}
	v, err := table.View(f, parts)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]string{1: "02000000", 2: "00000000", 3: "01", 4: "ffffff6a", 6: "40420f0000000000"}
	for i := range v.Leaves {
		if got := fmt.Sprintf("%x", v.Values[i]); got != want[i] || (v.Leaves[i] >= 0) != (i == 0) {
			t.Errorf("%d: %s, want %s", i, got, want[i])
		}
	}
	if err := f.Adopt(v, nil); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []hive.Part{{Name: "day", Text: "soon"}, {Name: "p", Text: "1e99"}} {
		if _, err := table.View(file(), append([]hive.Part{{Name: "s", Text: "a"}}, bad)); !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "column "+bad.Name) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := table.View(file(), nil); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("a default and no value: %v", err)
	}
}

// Files that store a column, that have its value and that lack it have one type of it.
func TestOneType(t *testing.T) {
	for _, c := range []struct {
		typ    string
		stored pg.Node
	}{{"int64", pg.Leaf(pg.Int32Type)}, {"uuid", pg.Leaf(pg.FixedLenByteArrayType(16))}, {"time", pg.Time(pg.Microsecond)}, {"timestamp_ns", pg.Timestamp(pg.Nanosecond)}} {
		table := &Table{Columns: []Column{{Name: "k", Type: c.typ}}, Widens: true}
		want, err := table.Columns[0].Arrow()
		if err != nil {
			t.Fatal(err)
		}
		for _, stored := range []pg.Group{{"k": pg.Optional(c.stored)}, {"other": c.stored}} {
			var b bytes.Buffer
			if err := pg.NewGenericWriter[any](&b, pg.NewSchema("schema", stored)).Close(); err != nil {
				t.Fatal(err)
			}
			p, err := arrowparquet.OpenParquet(bytes.NewReader(b.Bytes()), int64(b.Len()), "f", arrowparquet.ParquetOptions{
				View: func(f *parquet.File) (*parquet.View, error) { return table.View(f, nil) },
			})
			if err != nil || !arrow.TypeEqual(p.Schema().Field(0).Type, want) {
				t.Errorf("%s: %v, %v, want %v", c.typ, p.Schema(), err, want)
			}
		}
	}
}
