package joins_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowtest"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// payloadTypes returns types of columns beside the key: flat, nested, in dictionaries,
// and extension types, registered ones by the name "wrapped".
func payloadTypes() []arrow.DataType {
	p, b, f := arrow.PrimitiveTypes, arrow.BinaryTypes, arrow.FixedWidthTypes
	ext := arrowtest.ExtensionOf
	pair, uuid := &arrow.FixedSizeBinaryType{ByteWidth: 2}, &arrow.FixedSizeBinaryType{ByteWidth: 16}
	cents := &arrow.Decimal128Type{Precision: 9, Scale: 2}
	both := arrow.StructOf(nullable("x", p.Int32), nullable("y", b.String))
	return []arrow.DataType{
		b.String, b.LargeString, b.StringView, b.Binary, b.LargeBinary, b.BinaryView, pair, f.Boolean, arrow.Null,
		p.Int8, p.Int16, p.Uint8, p.Uint16, p.Uint32, p.Uint64, f.Float16, p.Float32,
		cents, &arrow.Decimal128Type{Precision: 38, Scale: 3}, &arrow.Decimal256Type{Precision: 20, Scale: 4}, &arrow.Decimal256Type{Precision: 76, Scale: 6},
		f.MonthInterval, f.DayTimeInterval, f.MonthDayNanoInterval, f.Duration_s, f.Duration_ms, f.Duration_us, f.Duration_ns,
		f.Date32, f.Date64, f.Time32s, f.Time32ms, f.Time64us, f.Time64ns,
		&arrow.TimestampType{Unit: arrow.Second}, f.Timestamp_s, &arrow.TimestampType{Unit: arrow.Nanosecond}, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Rome"},
		both, arrow.StructOf(nullable("s", both), nullable("l", arrow.ListOf(p.Int8))), arrow.StructOf(nullable("f", pair), nullable("d", cents), nullable("n", arrow.Null)),
		arrow.ListOf(p.Int32), arrow.ListOf(b.String), arrow.LargeListOf(b.LargeString), arrow.ListOf(arrow.ListOf(p.Int16)), arrow.ListOf(both), arrow.LargeListOf(arrow.StructOf(nullable("l", arrow.ListOf(b.String)))),
		arrow.FixedSizeListOf(2, p.Int16), arrow.FixedSizeListOf(3, b.String), arrow.FixedSizeListOf(1, arrow.ListOf(p.Int8)), arrow.ListOf(arrow.FixedSizeListOf(2, cents)),
		arrow.MapOf(b.String, p.Int64), arrow.MapOf(p.Int32, arrow.ListOf(b.String)), arrow.ListOf(arrow.MapOf(b.String, both)),
		dictionaryOf(b.String), dictionaryOf(b.Binary), dictionaryOf(p.Int64), dictionaryOf(f.Date32), dictionaryOf(pair), dictionaryOf(cents), dictionaryOf(p.Float64),
		arrow.ListOf(dictionaryOf(b.String)), arrow.LargeListOf(arrow.StructOf(nullable("d", dictionaryOf(p.Int32)))), arrow.FixedSizeListOf(2, dictionaryOf(b.String)),
		arrow.StructOf(nullable("d", dictionaryOf(b.String)), nullable("e", dictionaryOf(p.Int32))), arrow.MapOf(b.String, dictionaryOf(b.String)),
		arrow.ListOf(b.StringView), arrow.StructOf(nullable("v", b.BinaryView), nullable("f", f.Float16)), arrow.ListOf(f.MonthDayNanoInterval), arrow.StructOf(nullable("v", f.Duration_ms), nullable("t", f.Date64)),
		ext(uuid), ext(b.String), ext(arrow.ListOf(p.Int8)), ext(both), ext(b.StringView), ext(f.DayTimeInterval), arrow.ListOf(ext(pair)), arrow.StructOf(nullable("e", ext(p.Int16)), nullable("d", ext(cents))),
		arrow.ListViewOf(p.Int32), arrow.LargeListViewOf(b.String),
	}
}

func nullable(name string, dt arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: dt, Nullable: true}
}

func dictionaryOf(dt arrow.DataType) arrow.DataType {
	return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: dt}
}

// mapped returns the type with fn applied to it, then to the types below.
func mapped(dt arrow.DataType, fn func(arrow.DataType) arrow.DataType) arrow.DataType {
	of := func(f arrow.Field) arrow.Field {
		f.Type = mapped(f.Type, fn)
		return f
	}
	switch d := fn(dt).(type) {
	case *arrow.ListType:
		return arrow.ListOfField(of(d.ElemField()))
	case *arrow.LargeListType:
		return arrow.LargeListOfField(of(d.ElemField()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(d.Len(), of(d.ElemField()))
	case *arrow.MapType:
		return arrow.MapOf(mapped(d.KeyType(), fn), mapped(d.ItemType(), fn))
	case *arrow.StructType:
		var fields []arrow.Field
		for _, f := range d.Fields() {
			fields = append(fields, of(f))
		}
		return arrow.StructOf(fields...)
	case arrow.DataType:
		return d
	}
	return nil
}

// unwrapped returns the type with storage types in place of extension types.
func unwrapped(dt arrow.DataType) arrow.DataType {
	return mapped(dt, func(dt arrow.DataType) arrow.DataType {
		for {
			e, ok := dt.(arrow.ExtensionType)
			if !ok {
				return dt
			}
			dt = e.StorageType()
		}
	})
}

// undictionaried returns the type with plain values in place of dictionaries and list
// views, as an output may have them.
func undictionaried(dt arrow.DataType) arrow.DataType {
	return mapped(dt, func(dt arrow.DataType) arrow.DataType {
		switch d := dt.(type) {
		case *arrow.DictionaryType:
			return d.ValueType
		case *arrow.ListViewType:
			return arrow.ListOfField(d.ElemField())
		case *arrow.LargeListViewType:
			return arrow.LargeListOfField(d.ElemField())
		}
		return dt
	})
}

// inParquet returns the type as which a column comes back from Parquet; nil: Parquet
// cannot hold it.
func inParquet(dt arrow.DataType) arrow.DataType {
	none := false
	dt = mapped(undictionaried(unwrapped(dt)), func(dt arrow.DataType) arrow.DataType {
		switch dt.ID() {
		case arrow.STRING_VIEW:
			return arrow.BinaryTypes.String
		case arrow.BINARY_VIEW:
			return arrow.BinaryTypes.Binary
		case arrow.DATE64:
			return arrow.FixedWidthTypes.Date32
		case arrow.TIME32:
			return arrow.FixedWidthTypes.Time32ms
		case arrow.TIMESTAMP:
			if ts := dt.(*arrow.TimestampType); ts.Unit == arrow.Second {
				return &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: ts.TimeZone}
			}
		case arrow.INTERVAL_MONTHS, arrow.INTERVAL_DAY_TIME, arrow.INTERVAL_MONTH_DAY_NANO:
			none = true
		}
		return dt
	})
	if none {
		return nil
	}
	return dt
}

// fromJSON makes an array of any type but unions. The caller releases it.
func fromJSON(t testing.TB, dt arrow.DataType, text string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, unwrapped(dt), strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v: %.200s", dt, err, text)
	}
	defer a.Release()
	d := wrapped(a.Data(), dt)
	defer d.Release()
	return array.MakeFromData(d)
}

// wrapped returns the array with its extension types.
func wrapped(d arrow.ArrayData, dt arrow.DataType) arrow.ArrayData {
	inner := dt
	if e, ok := dt.(arrow.ExtensionType); ok {
		inner = e.StorageType()
	}
	var below []arrow.DataType
	switch s := inner.(type) {
	case *arrow.MapType: // none has extension types below
	case arrow.ListLikeType:
		below = []arrow.DataType{s.Elem()}
	case *arrow.StructType:
		for _, f := range s.Fields() {
			below = append(below, f.Type)
		}
	}
	var children []arrow.ArrayData
	for i, c := range d.Children() {
		if i < len(below) {
			c = wrapped(c, below[i])
			defer c.Release()
		}
		children = append(children, c)
	}
	out := array.NewData(dt, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	if x, ok := d.Dictionary().(*array.Data); ok && x != nil {
		out.SetDictionary(x)
	}
	return out
}

// jsonOf draws a value of a type, with NULLs at each level and empty lists.
func jsonOf(r *rand.Rand, dt arrow.DataType) string {
	maybe := func(dt arrow.DataType) string {
		if r.IntN(5) == 0 {
			return "null"
		}
		return jsonOf(r, dt)
	}
	items := func(n int, dt arrow.DataType) string {
		var list []string
		for range n {
			list = append(list, maybe(dt))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	text := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	day, second := fmt.Sprintf("%04d-%02d-%02d", 1960+r.IntN(99), 1+r.IntN(12), 1+r.IntN(28)), fmt.Sprintf("%02d:%02d:%02d", r.IntN(24), r.IntN(60), r.IntN(60))
	fraction := func(u arrow.TimeUnit) string {
		return []string{"", ".125", ".000125", ".000000125"}[u]
	}
	switch d := dt.(type) {
	case arrow.ExtensionType:
		return jsonOf(r, d.StorageType())
	case *arrow.DictionaryType:
		return jsonOf(r, d.ValueType)
	case *arrow.StructType:
		var fields []string
		for _, f := range d.Fields() {
			fields = append(fields, text(f.Name)+":"+maybe(f.Type))
		}
		return "{" + strings.Join(fields, ",") + "}"
	case *arrow.MapType:
		var entries []string
		for i := range r.IntN(3) {
			key := fmt.Sprint(i + r.IntN(2)*9)
			if d.KeyType().ID() == arrow.STRING {
				key = text(key)
			}
			entries = append(entries, `{"key":`+key+`,"value":`+maybe(d.ItemType())+"}")
		}
		return "[" + strings.Join(entries, ",") + "]"
	case *arrow.FixedSizeListType:
		return items(int(d.Len()), d.Elem())
	case arrow.ListLikeType:
		return items(r.IntN(4), d.Elem())
	case *arrow.FixedSizeBinaryType:
		return text(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(r.IntN(7)), byte(r.IntN(256))}, d.ByteWidth/2)))
	case *arrow.TimestampType:
		return text(day + " " + second + fraction(d.Unit))
	case *arrow.Time32Type:
		return text(second + fraction(d.Unit))
	case *arrow.Time64Type:
		return text(second + fraction(d.Unit))
	case *arrow.DurationType:
		return text(fmt.Sprint(r.IntN(2e6)-1e6, d.Unit.String()))
	case arrow.DecimalType:
		return text(fmt.Sprintf("%d.%02d", r.IntN(99999)-50000, r.IntN(100)))
	}
	switch dt.ID() {
	case arrow.NULL:
		return "null"
	case arrow.BOOL:
		return fmt.Sprint(r.IntN(2) == 0)
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return text(choose(r, "", "p", "twelve bytes", "thirteen long", "é", strings.Repeat("long ", r.IntN(20))))
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return text(base64.StdEncoding.EncodeToString([]byte(choose(r, "", "\x00", "\xff\xfe", strings.Repeat("\x01xy", r.IntN(9))))))
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return fmt.Sprint(float64(r.IntN(200)-100) / 8)
	case arrow.UINT64:
		return choose(r, "18446744073709551615", "0", "7")
	case arrow.DATE32, arrow.DATE64:
		return text(day)
	case arrow.INTERVAL_MONTHS:
		return fmt.Sprintf(`{"months":%d}`, r.IntN(99)-50)
	case arrow.INTERVAL_DAY_TIME:
		return fmt.Sprintf(`{"days":%d,"milliseconds":%d}`, r.IntN(99)-50, r.IntN(99)-50)
	case arrow.INTERVAL_MONTH_DAY_NANO:
		return fmt.Sprintf(`{"months":%d,"days":%d,"nanoseconds":%d}`, r.IntN(99)-50, r.IntN(99)-50, r.IntN(99)-50)
	}
	low := -100
	if arrow.IsUnsignedInteger(dt.ID()) {
		low = 0
	}
	return fmt.Sprint(low + r.IntN(120))
}

// jsonsOf draws n values, some of them NULL.
func jsonsOf(r *rand.Rand, dt arrow.DataType, n int) (values []string) {
	for range n {
		v := "null"
		if r.IntN(5) > 0 {
			v = jsonOf(r, dt)
		}
		values = append(values, v)
	}
	return values
}

// asStored returns the record as another writer stores it: extension types of whole
// columns by their metadata alone.
func asStored(rec arrow.Record) arrow.Record {
	fields, cols := slices.Clone(rec.Schema().Fields()), slices.Clone(rec.Columns())
	for i, c := range cols {
		if e, ok := fields[i].Type.(arrow.ExtensionType); ok {
			fields[i].Type = e.StorageType()
			fields[i].Metadata = arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"}, []string{e.ExtensionName(), e.Serialize()})
			cols[i] = c.(array.ExtensionArray).Storage()
		}
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), cols, rec.NumRows())
}

// arrowBytes stores a record as batches of some rows, with an empty one after the first.
func arrowBytes(t testing.TB, rec arrow.Record, rows int64, format dataset.Format) []byte {
	t.Helper()
	rec = asStored(rec)
	defer rec.Release()
	var out buffer
	var w interface {
		Write(arrow.Record) error
		Close() error
	} = ipc.NewWriter(&out, ipc.WithSchema(rec.Schema()))
	if format == dataset.ArrowFile {
		fw, err := ipc.NewFileWriter(&out, ipc.WithSchema(rec.Schema()))
		if err != nil {
			t.Fatal(err)
		}
		w = fw
	}
	write := func(rec arrow.Record) {
		defer rec.Release()
		if err := w.Write(rec); err != nil {
			t.Fatalf("%s: %v", rec.Schema(), err)
		}
	}
	views := slices.ContainsFunc(rec.Columns(), func(c arrow.Array) bool {
		return c.DataType().ID() == arrow.LIST_VIEW || c.DataType().ID() == arrow.LARGE_LIST_VIEW
	})
	if views { // arrow/go cannot write slices of them
		rows = rec.NumRows()
	}
	for lo := int64(0); lo < rec.NumRows(); lo += rows {
		if write(rec.NewSlice(lo, min(lo+rows, rec.NumRows()))); lo == 0 && !views {
			write(emptied(t, rec))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// emptied returns a record without rows. Columns with dictionaries keep these, as a file has
// one for each column; others have empty buffers, since arrow/go's writer cannot cut binary
// values to none.
func emptied(t testing.TB, rec arrow.Record) arrow.Record {
	var cols []arrow.Array
	for _, c := range rec.Columns() {
		if dt := c.DataType(); arrow.TypeEqual(dt, undictionaried(dt)) {
			c = fromJSON(t, dt, "[]")
		} else {
			c = array.NewSlice(c, 0, 0)
		}
		defer c.Release()
		cols = append(cols, c)
	}
	return array.NewRecord(rec.Schema(), cols, 0)
}

// TestPayloadTypes: columns of every type, of either side, from Arrow files, streams and
// standard input, come through every type of join into every output; or the error is the
// one that is listed here.
func TestPayloadTypes(t *testing.T) {
	for i, dt := range payloadTypes() {
		r := rand.New(rand.NewPCG(uint64(i), 11))
		column := func(n int) arrow.Array { return fromJSON(t, dt, "["+strings.Join(jsonsOf(r, dt, n), ",")+"]") }
		log, ids := keyed(t, "n", payloadKeys[0], column), keyed(t, "m", payloadKeys[1], column)
		checkPayload(t, i, dt, log, ids)
	}
}

// payloadKeys are those of the log and of the IDs.
var payloadKeys = [2][]string{strings.Fields("1 2 NULL 2 7 3 4 1 9 9"), strings.Fields("2 1 5 NULL 4 2 8 7")}

// keyed makes a table of keys k, a column v and row numbers.
func keyed(t testing.TB, number string, keys []string, v func(n int) arrow.Array) arrow.Record {
	t.Helper()
	n := len(keys)
	cols := []arrow.Array{ints("k", keys...).array(t), v(n), numbers(number, arrow.PrimitiveTypes.Int64, 0, n).array(t)}
	fields := []arrow.Field{nullable("k", cols[0].DataType()), nullable("v", cols[1].DataType()), nullable(number, cols[2].DataType())}
	rec := array.NewRecord(arrow.NewSchema(fields, nil), cols, int64(n))
	for _, c := range cols {
		c.Release()
	}
	t.Cleanup(rec.Release)
	return rec
}

func checkPayload(t *testing.T, i int, dt arrow.DataType, log, ids arrow.Record) {
	t.Helper()
	dir := t.TempDir()
	stored := func(name string, rec arrow.Record, rows int64) (names []string) {
		for _, f := range []dataset.Format{dataset.ArrowFile, dataset.ArrowStream} {
			name := filepath.Join(dir, name+map[dataset.Format]string{dataset.ArrowFile: ".arrow", dataset.ArrowStream: ".arrows"}[f])
			if err := os.WriteFile(name, arrowBytes(t, rec, rows, f), 0o600); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return names
	}
	// The third way to open a table is once, from standard input.
	opened := func(names []string, way int) []*partition.File {
		if way < 2 {
			return open(t, partition.OpenOptions{}, names[way])
		}
		b, err := os.ReadFile(names[1])
		if err != nil {
			t.Fatal(err)
		}
		return open(t, partition.OpenOptions{Stdin: bytes.NewReader(b)}, "-")
	}
	logNames, idNames := stored("log", log, 4), stored("ids", ids, 3)
	for a, typ := range types {
		want := nestedLoop(t, log, ids, paths([]string{"k"}), paths([]string{"k"}), "", typ)
		for o, name := range []string{"Run", "out.parquet", "out.arrow", "-"} {
			turn := i + a + o
			if turn%cases.Count(15, 7, 1) != 0 {
				continue
			}
			strategy := []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle}[(2*a+o/2+turn/7)%4]
			logWay, idWay := turn/2%2, (i+a)%2
			if strategy == join.Lookup {
				logWay, idWay = (i+a)%3, (i+a/3)%3
			}
			what := fmt.Sprintf("%s, %s join by %s, %s", dt, typ, strategy, name)
			got, err := joined(t, opened(idNames, idWay), opened(logNames, logWay), join.Options{On: "k", Type: typ, Strategy: strategy, Threads: 1 + a%3}, name)
			if name == "out.parquet" && inParquet(dt) == nil {
				if err == nil || !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "column v: unsupported: ") || !strings.Contains(err.Error(), "cannot be written to Parquet: there is no Parquet type for it") {
					t.Errorf("%s: %v, want that there is no Parquet type", what, err)
				}
				continue
			}
			if err == nil {
				err = want.unlike(got)
			}
			if err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			same := []arrow.DataType{dt, undictionaried(dt)}
			if name == "out.parquet" {
				same = []arrow.DataType{inParquet(dt)}
			}
			for _, f := range got.schema.Fields() {
				if strings.HasPrefix(f.Name, "v") && !slices.ContainsFunc(same, func(dt arrow.DataType) bool { return arrow.TypeEqual(dt, f.Type) }) {
					t.Errorf("%s: column %s is %s, want %s", what, f.Name, f.Type, same)
				}
			}
		}
	}
}

// TestPayloadRefused: columns of these types, of a side whose columns are in the answer, are
// refused with these errors, or else come through.
func TestPayloadRefused(t *testing.T) {
	p, b := arrow.PrimitiveTypes, arrow.BinaryTypes
	coded := arrowtest.ExtensionOf(dictionaryOf(b.String))
	ends, noParquet := arrow.RunEndEncodedOf(p.Int32, b.String), "cannot be written to Parquet: there is no Parquet type for it"
	ints := []arrow.Field{nullable("i", p.Int32)}
	for i, c := range []struct {
		dt                  arrow.DataType
		run, arrow, parquet string // parts of errors, by the output; "": none
	}{
		{ends, "unsupported: type run_end_encoded", "unsupported: type run_end_encoded", noParquet},
		{arrow.ListOf(ends), "unsupported: type run_end_encoded", "unsupported: type run_end_encoded", noParquet},
		{arrow.SparseUnionOf(ints, []arrow.UnionTypeCode{0}), "unsupported: type sparse_union", "unsupported: type sparse_union", noParquet},
		{arrow.DenseUnionOf(ints, []arrow.UnionTypeCode{0}), "unsupported: type dense_union", "unsupported: type dense_union", noParquet},
		{arrow.StructOf(), "", "", "unsupported: struct<> cannot be written to Parquet: a struct without fields"},
		{coded, "", "an extension type over a dictionary", " "}, // any error: arrow/go cannot store the schema
	} {
		v := func(n int) arrow.Array {
			if c.dt == arrow.DataType(coded) {
				return fromJSON(t, c.dt, `["a","b",null`+strings.Repeat(`,"a"`, n-3)+"]")
			}
			b := array.NewBuilder(memory.DefaultAllocator, c.dt)
			defer b.Release()
			for range n {
				b.AppendEmptyValue()
			}
			return b.NewArray()
		}
		plain := func(n int) arrow.Array { return numbers("v", p.Int64, 0, n).array(t) }
		for s, side := range []string{"log", "IDs"} {
			columns := [2]func(int) arrow.Array{plain, plain}
			columns[s] = v
			var tables [2]arrow.Record
			var names [2]string
			for k := range tables {
				tables[k] = keyed(t, []string{"n", "m"}[k], payloadKeys[k], columns[k])
				names[k] = put(t, filepath.Join(t.TempDir(), []string{"log", "ids"}[k]+".arrow"), string(arrowBytes(t, tables[k], tables[k].NumRows(), dataset.ArrowFile)))
			}
			for a, typ := range types {
				for o, name := range []string{"Run", "out.arrow", "-", "out.parquet"} {
					turn := i + a + o
					if turn%cases.Count(5, 3, 1) != 0 {
						continue
					}
					strategy := []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle}[(i+s+a/2+o)%4]
					got, err := joined(t, open(t, partition.OpenOptions{}, names[1]), open(t, partition.OpenOptions{}, names[0]), join.Options{On: "k", Type: typ, Strategy: strategy}, name)
					refused := map[string]string{"Run": c.run, "out.arrow": c.arrow, "-": c.arrow, "out.parquet": c.parquet}[name]
					switch {
					case s == 1 && (typ == join.Semi || typ == join.Anti):
						refused = ""
					case s == 1 && c.dt.ID() != arrow.STRUCT: // before anything is read
						refused = "cannot be held in memory: "
					}
					if refused == "" && err == nil && (c.run == "" || s == 0) {
						err = nestedLoop(t, tables[0], tables[1], paths([]string{"k"}), paths([]string{"k"}), "", typ).unlike(got)
					}
					if (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
						t.Errorf("%s in the %s, %s join by %s, %s: %v, want %q", c.dt, side, typ, strategy, name, err, refused)
					}
				}
			}
		}
	}
}
