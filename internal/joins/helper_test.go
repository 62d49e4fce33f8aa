package joins_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/arrowtest"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

func TestMain(m *testing.M) {
	cases.CollectRarely()
	if err := arrow.RegisterExtensionType(arrowtest.ExtensionOf(arrow.Null)); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// column is a column of a table as text; "NULL" is NULL.
type column struct {
	name   string
	dt     arrow.DataType
	values []string
	in     string // the struct that contains it; "": none
	nulls  []bool // of the struct
}

func (c column) array(t testing.TB) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, c.dt)
	defer b.Release()
	for _, v := range c.values {
		if v == "NULL" {
			b.AppendNull()
		} else if err := b.AppendValueFromString(v); err != nil {
			t.Fatalf("%s %s %q: %v", c.name, c.dt, v, err)
		}
	}
	a := b.NewArray()
	if c.in == "" {
		return a
	}
	defer a.Release()
	sb := array.NewStructBuilder(memory.DefaultAllocator, arrow.StructOf())
	defer sb.Release()
	for i := range c.values {
		sb.Append(c.nulls == nil || !c.nulls[i])
	}
	bits := sb.NewArray()
	defer bits.Release()
	dt := arrow.StructOf(arrow.Field{Name: c.name, Type: c.dt, Nullable: true})
	d := array.NewData(dt, a.Len(), []*memory.Buffer{bits.Data().Buffers()[0]}, []arrow.ArrayData{a.Data()}, bits.NullN(), 0)
	defer d.Release()
	return array.MakeFromData(d)
}

// table makes one record of columns. It is released when the test ends.
func table(t testing.TB, cols ...column) arrow.Record {
	t.Helper()
	var fields []arrow.Field
	var arrs []arrow.Array
	for _, c := range cols {
		a := c.array(t)
		name := c.name
		if c.in != "" {
			name = c.in
		}
		fields = append(fields, arrow.Field{Name: name, Type: a.DataType(), Nullable: true})
		arrs = append(arrs, a)
	}
	rec := array.NewRecord(arrow.NewSchema(fields, nil), arrs, int64(len(cols[0].values)))
	for _, a := range arrs {
		a.Release()
	}
	t.Cleanup(rec.Release)
	return rec
}

// writeTable writes a table as files in a new directory, in row groups of the given
// size, and returns the directory.
func writeTable(t testing.TB, rec arrow.Record, files, groups int, format dataset.Format) string {
	t.Helper()
	dir := t.TempDir()
	n := int(rec.NumRows())
	for f := range files {
		lo, hi := f*n/files, (f+1)*n/files
		part := rec.NewSlice(int64(lo), int64(hi))
		per := max((hi-lo+groups-1)/groups, 1)
		ending := ".parquet"
		if format == dataset.ArrowFile {
			ending = ".arrow"
		}
		writeFile(t, filepath.Join(dir, fmt.Sprintf("%03d%s", f, ending)), part, per, format)
		part.Release()
	}
	return dir
}

func writeFile(t testing.TB, name string, rec arrow.Record, rows int, format dataset.Format) {
	t.Helper()
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var w interface {
		Write(arrow.Record) error
		Close() (int64, int64, error)
	}
	if format == dataset.ArrowFile {
		w, err = arrowipc.NewFileWriter(out, rec.Schema(), arrowipc.WriterOptions{})
	} else {
		w, err = arrowparquet.NewParquetWriter(out, rec.Schema(), arrowparquet.WriterOptions{RowGroupRows: int64(rows)})
	}
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < int(rec.NumRows()); at += rows {
		s := rec.NewSlice(int64(at), int64(min(at+rows, int(rec.NumRows()))))
		err := w.Write(s)
		s.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// open opens files, and closes them when the test ends.
func open(t testing.TB, opts partition.OpenOptions, names ...string) []*partition.File {
	t.Helper()
	files, err := partition.Open(context.Background(), names, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := partition.Close(files); err != nil {
			t.Error(err)
		}
	})
	return files
}

// filterOf builds a filter of the IDs.
func filterOf(t testing.TB, ids []*partition.File, key string, kind codec.Kind, fpr float64, rule ...string) *filters.Filter {
	t.Helper()
	plan, err := builds.NewPlan(door.In(ids), builds.Options{Key: key, Kind: kind, FPR: fpr, Normalize: strings.Join(rule, ",")})
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := plan.Build(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// answer is the result of a join: column names, and rows in order.
type answer struct {
	names  string
	rows   []string
	schema *arrow.Schema // of the first part or file
	pieces []int         // of each row
	report join.Report
}

// run joins and renders the answer. When it returns, everything that the join allocated
// through Arrow must have been released.
func run(t testing.TB, ids, logs []*partition.File, opts join.Options) (answer, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	opts.Mem = mem
	defer mem.AssertSize(t, 0)
	j, err := join.New(ids, logs, opts)
	if err != nil {
		return answer{}, err
	}
	parts := room(j).Parts()
	out := answer{names: names(parts[0].Schema), schema: parts[0].Schema}
	for r, err := range j.Run(context.Background()) {
		if err != nil {
			return out, err
		}
		if r.Record.NumRows() == 0 {
			t.Error("an empty batch")
		}
		if !r.Record.Schema().Equal(parts[r.Piece].Schema) {
			t.Errorf("piece %d has schema %v, not that of its part, %v", r.Piece, r.Record.Schema(), parts[r.Piece].Schema)
		}
		for i := range int(r.Record.NumRows()) {
			out.rows = append(out.rows, showRow(t, r.Record, i))
			out.pieces = append(out.pieces, r.Piece)
		}
		r.Record.Release()
	}
	for i := range out.pieces[:max(len(out.pieces)-1, 0)] {
		if out.pieces[i] > out.pieces[i+1] {
			t.Fatalf("piece %d after %d", out.pieces[i+1], out.pieces[i])
		}
	}
	out.report = j.Report()
	if out.report.RowsOut != int64(len(out.rows)) {
		t.Errorf("the report says %d rows of %d", out.report.RowsOut, len(out.rows))
	}
	return out, nil
}

func names(s *arrow.Schema) string {
	var out []string
	for _, f := range s.Fields() {
		out = append(out, f.Name)
	}
	return strings.Join(out, " ")
}

func showRow(t testing.TB, rec arrow.Record, i int) string {
	out := make([]string, rec.NumCols())
	for c, a := range rec.Columns() {
		out[c] = value(t, a, i)
	}
	return strings.Join(out, " ")
}

// value renders an element exactly, in a form that is the same for equal values of all
// types. Tests compare keys by it, independently of package key.
func value(t testing.TB, a arrow.Array, i int) string {
	if a.IsNull(i) || a.DataType().ID() == arrow.NULL {
		return "NULL"
	}
	switch a := a.(type) {
	case *array.Dictionary:
		return value(t, a.Dictionary(), a.GetValueIndex(i))
	case *array.Float32:
		return float(float64(a.Value(i)))
	case *array.Float64:
		return float(a.Value(i))
	case *array.Timestamp:
		dt := a.DataType().(*arrow.TimestampType)
		ns := new(big.Int).Mul(big.NewInt(int64(a.Value(i))), big.NewInt(int64(dt.Unit.Multiplier())))
		return ns.String() + "ns"
	case *array.Decimal128:
		return decimal(a.Value(i).BigInt(), a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return decimal(a.Value(i).BigInt(), a.DataType().(*arrow.Decimal256Type).Scale)
	case array.ExtensionArray:
		return value(t, a.Storage(), i)
	case *array.Time32:
		return fmt.Sprint(int64(a.Value(i))*int64(a.DataType().(*arrow.Time32Type).Unit.Multiplier()), "ns")
	case *array.Time64:
		return fmt.Sprint(int64(a.Value(i))*int64(a.DataType().(*arrow.Time64Type).Unit.Multiplier()), "ns")
	case array.ListLike:
		var items []string
		for lo, hi := a.ValueOffsets(i); lo < hi; lo++ {
			items = append(items, value(t, a.ListValues(), int(lo)))
		}
		return "[" + strings.Join(items, " ") + "]"
	case *array.Struct:
		var parts []string
		for f := range a.NumField() {
			parts = append(parts, value(t, a.Field(f), i))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case *array.Int64:
		return strconv.FormatInt(a.Value(i), 10)
	case *array.String:
		return quoted(a.Value(i))
	case *array.LargeString:
		return quoted(a.Value(i))
	case *array.Binary:
		return quoted(string(a.Value(i)))
	case *array.LargeBinary:
		return quoted(string(a.Value(i)))
	case *array.BinaryView:
		return quoted(string(a.Value(i)))
	case *array.StringView:
		return quoted(a.Value(i))
	}
	b, err := json.Marshal(a.GetOneForMarshal(i))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// quoted quotes a string, or the digest of a long one.
func quoted(s string) string {
	if len(s) > 400 {
		return fmt.Sprintf("%q…%x", s[:8], sha1.Sum([]byte(s)))
	}
	return strconv.Quote(s)
}

func float(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return fmt.Sprint(f)
	}
	return new(big.Rat).SetFloat64(f).RatString()
}

func decimal(v *big.Int, scale int32) string {
	if v.IsInt64() && scale >= 0 && scale <= 18 { // the same, faster
		m, by := v.Int64(), int64(1)
		for range scale {
			if m%10 == 0 {
				m /= 10
			} else {
				by *= 10
			}
		}
		for _, f := range []int64{2, 5} {
			for m%f == 0 && by%f == 0 {
				m, by = m/f, by/f
			}
		}
		if by == 1 {
			return strconv.FormatInt(m, 10)
		}
		return strconv.FormatInt(m, 10) + "/" + strconv.FormatInt(by, 10)
	}
	pow := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return new(big.Rat).SetFrac(v, pow).RatString()
}

// oracle joins by definition, see nestedLoop. Its keys are paths with dots.
type oracle struct {
	log, ids       arrow.Record
	logKey, idKey  []string
	rows           []string
	total, matched int64 // IDs with a key, and those that a row matched
	keysNull       int64
	rule           string // applied to strings before they are compared
	void           int64  // log rows whose key is not NULL but void under the rule
}

func (o *oracle) join(t testing.TB, typ join.Type) {
	n := nestedLoop(t, o.log, o.ids, paths(o.logKey), paths(o.idKey), o.rule, typ)
	o.rows, o.total, o.matched, o.keysNull, o.void = n.rows, n.total, n.member, n.keysNull, n.void
}

func paths(dotted []string) (out [][]string) {
	for _, p := range dotted {
		out = append(out, strings.Split(p, "."))
	}
	return out
}

// written joins into a Parquet file and returns its bytes.
func written(t testing.TB, ids, logs []*partition.File, opts join.Options) []byte {
	t.Helper()
	j, err := join.New(ids, logs, opts)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := arrowparquet.NewParquetWriter(&out, room(j).Parts()[0].Schema, arrowparquet.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range j.Run(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(r.Record); err != nil {
			t.Fatal(err)
		}
		r.Record.Release()
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// once makes an ID set with one ID a line that can be read only once.
func once(t testing.TB, column string, text io.Reader) []*partition.File {
	t.Helper()
	return open(t, partition.OpenOptions{Text: true, Stdin: text, Column: column}, "-")
}

// room returns the join behind the door.
func room(j *join.Join) *joins.Join { return (*joins.Join)(j) }

// exactly returns where an exact answer is written.
func exactly(name string) output.Destination {
	return output.Destination{Output: output.Output{Name: name}, Result: source.ResultExact}
}
