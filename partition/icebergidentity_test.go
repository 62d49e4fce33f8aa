package partition_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
)

// Values of partitions of each type are those of the rows, in files that lack the column, and of conditions.
func TestIdentity(t *testing.T) {
	type idOnly struct {
		ID int64 `parquet:"id,id(1)"`
	}
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	u := "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
	for _, c := range []struct {
		typ        string
		first      any
		shown      string
		where      string // true of it alone
		other      any
		otherShown string
	}{
		{"int", -5, "-5", "c = -5", 7, "7"},
		{"long", int64(math.MinInt64), "-9223372036854775808", "c < -1", int64(math.MaxInt64), "9223372036854775807"},
		{"boolean", true, "true", "c = true", false, "false"},
		{"float", 0.1, "0.1", "c < 1", math.Inf(1), "+Inf"},
		{"double", -2.0, "-2", "c = -2", 1e300, "1e+300"},
		{"double", math.NaN(), "NaN", "c > 2", 1.0, "1"},
		{"date", -1, "1969-12-31", "c = DATE '1969-12-31'", 19000, "2022-01-08"},
		{"time", int64(1), "00:00:00.000001", "c = '00:00:00.000001'", int64(86399999999), "23:59:59.999999"},
		{"timestamp", int64(-1), "1969-12-31 23:59:59.999999Z", "c < TIMESTAMP '1970-01-01 00:00:00'", int64(1700000000000001), "2023-11-14 22:13:20.000001Z"},
		{"timestamptz", int64(1700000000000001), "2023-11-14 22:13:20.000001Z", "c > TIMESTAMPTZ '2023-01-01 00:00:00Z'", int64(0), "1970-01-01 00:00:00Z"},
		{"string", "null", "null", "c = 'null'", "", ""},
		{"string", "é=/%20", "é=/%20", "c = 'é=/%20'", "\x00", "\x00"},
		{"binary", []byte("\xff\x00"), b64("\xff\x00"), `c = '\xff\x00'`, []byte("ab"), b64("ab")},
		{"binary", []byte("beef"), b64("beef"), "c = 'beef'", []byte{}, ""},
		{"uuid", []byte(u), b64(u), "c = '00112233-4455-6677-8899-aabbccddeeff'", []byte(u[8:] + u[8:]), b64(u[8:] + u[8:])},
		{"fixed[3]", []byte("\x00\x00\x01"), b64("\x00\x00\x01"), `c = '\x00\x00\x01'`, []byte("\xff\xff\xff"), b64("\xff\xff\xff")},
		{"fixed[2]", []byte("ab"), b64("ab"), `c = 'ab'`, []byte("\xff\x80"), b64("\xff\x80")},
		{"decimal(9, 2)", []byte{0xff, 0xff, 0xff, 0xff}, "-0.01", "c = -0.01", []byte{0, 0, 1, 0}, "2.56"},
		{"decimal(38, 10)", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0c, 0xce, 0x41, 0x66, 0}, "5.5", "c > 1", make([]byte, 16), "0"},
	} {
		t.Run(fmt.Sprint(c.typ, c.shown), func(t *testing.T) {
			for _, together := range []bool{true, false} {
				d := laketest.NewIceberg(t, 2, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "c", Type: arrow.BinaryTypes.Binary}}, nil), "c")
				d.Columns[1].Type = c.typ
				var files []any
				want := map[string]string{}
				for i, v := range []any{c.first, c.other, nil} {
					id := int64(i + 1)
					files = append(files, d.Add(fmt.Sprint(id, ".parquet"), parquetOf(t, idOnly{id}), nil, v))
					want[fmt.Sprint(id)] = fmt.Sprintf("id=%d c=%s ", id, []string{c.shown, c.otherShown, "(null)"}[i])
					if !together {
						d.Commit(files[i])
					}
				}
				if together {
					d.Commit(files...)
				}
				for where, ids := range map[string][]string{"": {"1", "2", "3"}, c.where: {"1"}, "NOT (" + c.where + ")": {"2"}, "c IS NULL": {"3"}, "c IS NOT NULL": {"1", "2"}} {
					some := maps.Clone(want)
					maps.DeleteFunc(some, func(id, _ string) bool { return !slices.Contains(ids, id) })
					if got := rowsOf(t, d.Name(), where); !maps.Equal(got, some) {
						t.Errorf("where %s: got %q, want %q", where, got, some)
					}
				}
			}
		})
	}
}

// parquetOf returns a Parquet file of rows.
func parquetOf[T any](t testing.TB, rows ...T) string {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
