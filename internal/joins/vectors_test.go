package joins_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// vectorDir has the vectors. BLOOMJOIN_VECTORS names another directory, for files too
// many or too large to keep here.
func vectorDir() string { return cmp.Or(os.Getenv("BLOOMJOIN_VECTORS"), "../../testdata/vectors") }

// vector is a file and what readers must do with it; see the README in testdata.
type vector struct {
	Shows   string   `json:"shows"`
	Oracle  string   `json:"oracle"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	Error   *struct {
		Kind  string   `json:"kind"`
		Words []string `json:"words"`
	} `json:"error"`

	path string
}

// vectors returns the vectors by name. It fails if there are none, or if one has no
// expectation.
func vectors(t *testing.T) map[string]vector {
	entries, err := os.ReadDir(vectorDir())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]vector{}
	expected := map[string]bool{}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext)
		switch ext {
		case ".md", ".py":
		case ".json":
			expected[name] = true
		default:
			if _, twice := out[name]; twice {
				t.Errorf("two files are called %s", name)
			}
			out[name] = readVector(t, name, e.Name())
		}
	}
	if len(out) == 0 {
		t.Fatal("no vectors")
	}
	for name := range expected {
		if _, ok := out[name]; !ok {
			t.Errorf("%s.json has no data", name)
		}
	}
	return out
}

func readVector(t *testing.T, name, file string) vector {
	b, err := os.ReadFile(filepath.Join(vectorDir(), name+".json"))
	if err != nil {
		t.Fatalf("%s has no expectation: %v", file, err)
	}
	v := vector{path: filepath.Join(vectorDir(), file)}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s.json: %v", name, err)
	}
	if v.Shows == "" || (v.Error == nil) == (v.Columns == nil) {
		t.Fatalf("%s.json: want what it shows, and either an error or columns and rows", name)
	}
	return v
}

// TestVectors: files by other writers give the rows that other readers find in them, as
// records and through filters and joins on each column, or the expected error.
func TestVectors(t *testing.T) {
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			if v.Error != nil {
				v.refused(t)
				return
			}
			f := open(t, partition.OpenOptions{}, v.path)[0]
			rec, err := whole(t, f)
			if err != nil {
				t.Fatal(err)
			}
			compareRows(t, "read", rec, v.Columns, v.Rows)
			for _, path := range keyPaths(f.Schema().Fields(), nil) {
				v.filter(t, f, path)
				v.joins(t, f, rec, path)
			}
		})
	}
}

// whole reads a file into one record, which is released when the test ends.
func whole(t *testing.T, f *partition.File) (arrow.Record, error) {
	n := int64(0)
	chunks := make([][]arrow.Array, len(f.Schema().Fields()))
	for g := range f.NumGroups() {
		for rec, err := range f.Read(t.Context(), g, nil) {
			if err != nil {
				return nil, err
			}
			n += rec.NumRows()
			for i, a := range rec.Columns() {
				a.Retain()
				t.Cleanup(a.Release)
				chunks[i] = append(chunks[i], a)
			}
		}
	}
	cols := make([]arrow.Array, len(chunks))
	for i, list := range chunks {
		if len(list) == 0 {
			list = append(list, nulls(f.Schema().Field(i).Type, 0))
		}
		var err error
		if cols[i], err = array.Concatenate(list, memory.DefaultAllocator); err != nil {
			return nil, err
		}
		t.Cleanup(cols[i].Release)
	}
	rec := array.NewRecord(f.Schema(), cols, n)
	t.Cleanup(rec.Release)
	return rec, nil
}

// compareRows compares a record with the expected rows.
func compareRows(t *testing.T, what string, rec arrow.Record, columns []string, rows [][]any) {
	t.Helper()
	var have []string
	for _, f := range rec.Schema().Fields() {
		have = append(have, f.Name)
	}
	if !slices.Equal(have, columns) {
		t.Fatalf("%s: columns %q, want %q", what, have, columns)
	}
	if rec.NumRows() != int64(len(rows)) {
		t.Fatalf("%s: %d rows, want %d", what, rec.NumRows(), len(rows))
	}
	for i, row := range rows {
		for c, a := range rec.Columns() {
			if want, got := wanted(row[c], a.DataType()), shown(a, i); got != want {
				t.Fatalf("%s: row %d of %d, column %s: %s, want %s (%s)", what, i+1, len(rows), columns[c], got, want, a.DataType())
			}
		}
	}
}

// keyPaths returns the paths of the columns that can be keys.
func keyPaths(fields []arrow.Field, above keys.Path) (out []keys.Path) {
	for _, f := range fields {
		path := append(slices.Clone(above), f.Name)
		if st, ok := f.Type.(*arrow.StructType); ok {
			out = append(out, keyPaths(st.Fields(), path)...)
		} else if c, err := keys.ClassOf(f.Type); err == nil && c != keys.Null { // no ID is of type null
			out = append(out, path)
		}
	}
	return out
}

// keyOf returns the key of an expected row, "null" if it has none.
func (v vector) keyOf(row []any, schema *arrow.Schema, path keys.Path) string {
	at := schema.FieldIndices(path[0])[0]
	value, dt := row[at], schema.Field(at).Type
	for _, name := range path[1:] {
		if value == nil {
			return "null"
		}
		value = value.(map[string]any)[name]
		f, _ := dt.(*arrow.StructType).FieldByName(name)
		dt = f.Type
	}
	if k := wanted(value, dt); k != "-0" {
		return k
	}
	return "0"
}

// filter builds filters from the column. They must let through all of its rows that
// have a key.
func (v vector) filter(t *testing.T, f *partition.File, path keys.Path) {
	if dt := typeAt(t, f.Schema(), path); dt.ID() == arrow.NULL {
		return // there are no IDs
	}
	column := keys.Column{Path: path}.String()
	var want int64
	for _, row := range v.Rows {
		if v.keyOf(row, f.Schema(), path) != "null" {
			want++
		}
	}
	filter := filterOf(t, []*partition.File{f}, column, codec.KindBloom, 1e-6)
	s, err := partition.NewScanner(partition.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(filter), Key: column}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Count(t.Context(), partition.Split([]*partition.File{f}, dataset.Shard{})); err != nil {
		t.Fatalf("scan by %s: %v", column, err)
	}
	if got := s.Stats().RowsOut; got != want {
		t.Errorf("the filter of %s lets %d of its rows through, want %d", column, got, want)
	}
}

// joins joins on the column, with every other of its values as IDs.
func (v vector) joins(t *testing.T, f *partition.File, rec arrow.Record, path keys.Path) {
	column := keys.Column{Path: path}.String()
	numbers := map[string]int{} // of the IDs
	var places []int            // rows with these keys
	seen := map[string]bool{"null": true}
	for i, row := range v.Rows {
		if k := v.keyOf(row, rec.Schema(), path); !seen[k] {
			seen[k] = true
			if len(seen)%2 == 0 {
				numbers[k] = len(places)
				places = append(places, i)
			}
		}
	}
	ids := idsOf(t, rec, path, places)
	for i, typ := range []join.Type{join.Semi, join.Anti, join.Inner, join.Left} {
		columns := v.Columns
		if typ == join.Inner || typ == join.Left {
			columns = append(slices.Clone(columns), "number of the ID")
		}
		var want [][]any
		for _, row := range v.Rows {
			n, member := numbers[v.keyOf(row, rec.Schema(), path)]
			switch {
			case typ == join.Left && !member:
				want = append(want, append(slices.Clone(row), nil))
			case member && (typ == join.Inner || typ == join.Left):
				want = append(want, append(slices.Clone(row), json.Number(strconv.Itoa(n))))
			case member == (typ == join.Semi) && typ != join.Inner:
				want = append(want, row)
			}
		}
		for k, format := range []dataset.Format{dataset.Parquet, dataset.ArrowFile} {
			if (i+i/2+k)%cases.Count(2, 1, 1) != 0 { // in turn
				continue
			}
			what := fmt.Sprintf("%s join on %s to %s", typ, column, format)
			got, err := joinTo(t, ids, f, column, typ, format)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			compareRows(t, what, got, columns, want)
		}
	}
}

func typeAt(t *testing.T, schema *arrow.Schema, path keys.Path) arrow.DataType {
	t.Helper()
	field, err := path.Resolve(schema, false)
	if err != nil {
		t.Fatal(err)
	}
	return field.Type
}

// idsOf returns an ID set of the keys of some rows, and their numbers. For a column
// without a type, which has no keys, the set consists of integers.
func idsOf(t *testing.T, rec arrow.Record, path keys.Path, rows []int) *partition.File {
	t.Helper()
	column := rec.Column(rec.Schema().FieldIndices(path[0])[0])
	for _, name := range path[1:] {
		st := column.(*array.Struct)
		at, _ := st.DataType().(*arrow.StructType).FieldIdx(name)
		column = st.Field(at)
	}
	picked, err := take.Array(memory.DefaultAllocator, column, rows)
	if err != nil {
		t.Fatal(err)
	}
	if picked.DataType().ID() == arrow.NULL {
		picked.Release()
		rows = []int{0}
		picked = nulls(arrow.PrimitiveTypes.Int64, 1)
	}
	defer picked.Release()
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	for i := range rows {
		b.Append(int64(i))
	}
	number := b.NewArray()
	defer number.Release()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "key of the ID", Type: picked.DataType(), Nullable: true},
		{Name: "number of the ID", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	ids := array.NewRecord(schema, []arrow.Array{picked, number}, int64(len(rows)))
	t.Cleanup(ids.Release)
	return partition.Records("ids", schema, func(context.Context) iter.Seq2[arrow.Record, error] {
		return func(yield func(arrow.Record, error) bool) { yield(ids, nil) }
	}, partition.RecordsOptions{})
}

// joinTo joins into a file and returns its rows without the ID's key.
func joinTo(t *testing.T, ids, log *partition.File, key string, typ join.Type, format dataset.Format) (arrow.Record, error) {
	t.Helper()
	j, err := join.New([]*partition.File{ids}, []*partition.File{log}, join.Options{On: key + `="key of the ID"`, Type: typ})
	if err != nil {
		return nil, err
	}
	out := filepath.Join(t.TempDir(), "out."+string(format))
	if _, err := j.Write(t.Context(), partition.Output{Name: out, Format: format}); err != nil {
		return nil, err
	}
	rec, err := whole(t, open(t, partition.OpenOptions{}, out)[0])
	if err != nil {
		return nil, fmt.Errorf("reading the output: %w", err)
	}
	n := len(rec.Columns())
	if typ != join.Inner && typ != join.Left {
		return rec, nil
	}
	if name := rec.ColumnName(n - 2); name != "key of the ID" {
		t.Fatalf("column %d is %s", n-1, name)
	}
	fields := slices.Delete(slices.Clone(rec.Schema().Fields()), n-2, n-1)
	rec = array.NewRecord(arrow.NewSchema(fields, nil), slices.Delete(slices.Clone(rec.Columns()), n-2, n-1), rec.NumRows())
	t.Cleanup(rec.Release)
	return rec, nil
}

// refused checks that the file is refused when it is opened or read, and that joins
// that keep all of its rows yield none.
func (v vector) refused(t *testing.T) {
	kinds := map[string]error{"corrupt": fault.ErrCorrupt, "unsupported": fault.ErrUnsupported}
	check := func(what string, err error) {
		t.Helper()
		if kinds[v.Error.Kind] == nil || !errors.Is(err, kinds[v.Error.Kind]) {
			t.Errorf("%s: want the error to be %s: %v", what, v.Error.Kind, err)
			return
		}
		for _, w := range v.Error.Words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in: %v", what, w, err)
			}
		}
	}
	files, err := partition.Open(t.Context(), []string{v.path}, partition.OpenOptions{})
	if err != nil {
		check("open", err)
		return
	}
	defer partition.Close(files)
	_, err = whole(t, files[0])
	check("read", err)
	for _, path := range keyPaths(files[0].Schema().Fields(), nil) {
		column := keys.Column{Path: path}.String()
		schema := files[0].Schema()
		none := array.NewRecord(schema, nullArrays(t, schema), 1)
		t.Cleanup(none.Release)
		ids := idsOf(t, none, path, []int{0})
		for _, typ := range []join.Type{join.Anti, join.Left} {
			_, err := joinTo(t, ids, files[0], column, typ, dataset.Parquet)
			check(fmt.Sprintf("%s join on %s", typ, column), err)
		}
	}
}

func nulls(dt arrow.DataType, n int) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	b.AppendNulls(n)
	return b.NewArray()
}

func nullArrays(t *testing.T, s *arrow.Schema) (cols []arrow.Array) {
	for _, f := range s.Fields() {
		a := nulls(f.Type, 1)
		t.Cleanup(a.Release)
		cols = append(cols, a)
	}
	return cols
}

// shown renders an element of an array, and wanted an expected value of a column of
// that type, in a form that is the same for equal values.
func shown(a arrow.Array, i int) string {
	if a.IsNull(i) || a.DataType().ID() == arrow.NULL {
		return "null"
	}
	nanos := func(n int64, u arrow.TimeUnit) string {
		return new(big.Int).Mul(big.NewInt(n), big.NewInt(int64(u.Multiplier()))).String() + "ns"
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return shown(a.Storage(), i)
	case *array.Dictionary:
		return shown(a.Dictionary(), a.GetValueIndex(i))
	case *array.Float16:
		return floatText(float64(a.Value(i).Float32()))
	case *array.Float32:
		return floatText(float64(a.Value(i)))
	case *array.Float64:
		return floatText(a.Value(i))
	case *array.Decimal128:
		return decimal(a.Value(i).BigInt(), a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return decimal(a.Value(i).BigInt(), a.DataType().(*arrow.Decimal256Type).Scale)
	case *array.Date32:
		return fmt.Sprint(int32(a.Value(i)), "d")
	case *array.Date64:
		return fmt.Sprint(int64(a.Value(i))/86400000, "d")
	case *array.Time32:
		return nanos(int64(a.Value(i)), a.DataType().(*arrow.Time32Type).Unit)
	case *array.Time64:
		return nanos(int64(a.Value(i)), a.DataType().(*arrow.Time64Type).Unit)
	case *array.Timestamp:
		return nanos(int64(a.Value(i)), a.DataType().(*arrow.TimestampType).Unit)
	case *array.Duration:
		return nanos(int64(a.Value(i)), a.DataType().(*arrow.DurationType).Unit)
	case *array.Struct:
		var parts []string
		for c := range a.NumField() {
			parts = append(parts, a.DataType().(*arrow.StructType).Field(c).Name+": "+shown(a.Field(c), i))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case *array.Map:
		lo, hi := a.ValueOffsets(i)
		var parts []string
		for j := lo; j < hi; j++ {
			parts = append(parts, "["+shown(a.Keys(), int(j))+", "+shown(a.Items(), int(j))+"]")
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case array.ListLike:
		lo, hi := a.ValueOffsets(i)
		var parts []string
		for j := lo; j < hi; j++ {
			parts = append(parts, shown(a.ListValues(), int(j)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case interface{ Value(int) []byte }:
		return strconv.Quote(string(a.Value(i)))
	case interface{ Value(int) string }:
		return strconv.Quote(a.Value(i))
	}
	return a.ValueStr(i) // integers and booleans
}

func floatText(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func wanted(v any, dt arrow.DataType) string {
	switch t := dt.(type) {
	case arrow.ExtensionType:
		return wanted(v, t.StorageType())
	case *arrow.DictionaryType:
		return wanted(v, t.ValueType)
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case map[string]any:
		var parts []string
		if st, ok := dt.(*arrow.StructType); ok {
			for _, f := range st.Fields() {
				parts = append(parts, f.Name+": "+wanted(v[f.Name], f.Type))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			switch t := dt.(type) {
			case *arrow.MapType:
				pair := e.([]any)
				parts = append(parts, "["+wanted(pair[0], t.KeyType())+", "+wanted(pair[1], t.ItemType())+"]")
			case arrow.ListLikeType:
				parts = append(parts, wanted(e, t.Elem()))
			}
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case json.Number:
		return wantedScalar(v.String(), dt)
	case string:
		return wantedScalar(v, dt)
	}
	return fmt.Sprintf("%T", v)
}

func wantedScalar(s string, dt arrow.DataType) string {
	switch dt.ID() {
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return floatText(f)
		}
	case arrow.DECIMAL128, arrow.DECIMAL256:
		if r, ok := new(big.Rat).SetString(s); ok {
			return r.RatString()
		}
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		if digits, ok := strings.CutPrefix(s, "0x"); ok { // bytes
			if b, err := hex.DecodeString(digits); err == nil {
				s = string(b)
			}
		}
		return strconv.Quote(s)
	}
	return s
}
