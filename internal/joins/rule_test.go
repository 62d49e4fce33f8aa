package joins_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// uuids returns texts of three UUIDs, each spelled in several ways and with spaces
// around it.
func uuids(space string) [][]string {
	var out []string
	for _, id := range []string{"123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-fffffffffffF"} {
		for _, s := range []string{id, strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", "")} {
			out = append(out, space+s+space)
		}
	}
	return one(out...)
}

// pairs makes keys of a number and two of the values.
func pairs(values [][]string) (out [][]string) {
	for i, v := range values {
		out = append(out, []string{fmt.Sprint(i % 2), v[0], values[(i+i%2)%len(values)][0]})
	}
	return out
}

// ruled applies a rule to an array element, which value has rendered as v. It returns
// false if it should be a UUID and is not.
func ruled(t testing.TB, a arrow.Array, v, rule string) (string, bool) {
	t.Helper()
	if d, ok := a.(*array.Dictionary); ok {
		a = d.Dictionary()
	}
	if a.DataType().ID() == arrow.FIXED_SIZE_BINARY {
		text, err := strconv.Unquote(v)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(raw), true
	}
	if !slices.Contains([]arrow.Type{arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY}, a.DataType().ID()) {
		return v, true
	}
	text, err := strconv.Unquote(v)
	if err != nil {
		t.Fatal(err)
	}
	text, ok := roomtest.Ruled(rule, text)
	if strings.Contains(rule, "uuid") {
		return hex.EncodeToString([]byte(text)), ok
	}
	return strconv.Quote(text), ok
}

// Text is compared with UUIDs, on either side, from files with types and without.
func TestRuleAcrossTypes(t *testing.T) {
	uuid := &arrow.FixedSizeBinaryType{ByteWidth: 16}
	var texts, raws []string
	for i, v := range uuids(" ") {
		texts = append(texts, v[0])
		raw, err := hex.DecodeString(strings.NewReplacer("-", "", "{", "", "}", "", "urn:uuid:", "", " ", "").Replace(v[0]))
		if err != nil {
			t.Fatal(err)
		}
		raw[3] ^= byte(i % 2) // some are not among the texts
		raws = append(raws, base64.StdEncoding.EncodeToString(raw))
	}
	text := column{name: "t", dt: arrow.BinaryTypes.String, values: append(slices.Clone(texts), "NULL")}
	raw := column{name: "u", dt: uuid, values: append([]string{"NULL"}, raws...)}
	junk := column{name: "t", dt: arrow.BinaryTypes.String, values: append(slices.Clone(texts), "secret")}
	for _, c := range []struct {
		name     string
		log, ids column
	}{{"a log of text", junk, raw}, {"a log of UUIDs", raw, text}} {
		logTable, idTable := table(t, c.log), table(t, c.ids)
		logs := open(t, partition.OpenOptions{}, writeTable(t, logTable, 2, 2, ""))
		sides := map[string][]*partition.File{"parquet": open(t, partition.OpenOptions{}, writeTable(t, idTable, 1, 3, ""))}
		if c.ids.name == "t" {
			name := filepath.Join(t.TempDir(), "ids.csv")
			if err := os.WriteFile(name, []byte("t\n\""+strings.Join(texts, "\"\n\"")+"\"\n\"\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			sides["csv"] = open(t, partition.OpenOptions{Text: true}, name)
		}
		for format, ids := range sides {
			for _, typ := range types {
				for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
					o := oracle{log: logTable, ids: idTable, logKey: []string{c.log.name}, idKey: []string{c.ids.name}, rule: "trim,uuid"}
					o.join(t, typ)
					got, err := run(t, ids, logs, join.Options{On: c.log.name + "=" + c.ids.name, Type: typ, Strategy: strategy, Normalize: "uuid,trim"})
					if err != nil {
						t.Fatalf("%s, %s: %v", c.name, format, err)
					}
					if !slices.Equal(got.rows, o.rows) || got.report.KeysNull != o.keysNull || got.report.IDsMatched != o.matched || o.matched == 0 {
						t.Errorf("%s, %s, %s %s: %+v\n%s\nwant %d NULLs, %d IDs matched\n%s", c.name, format, typ, strategy, got.report, strings.Join(got.rows, "\n"), o.keysNull, o.matched, strings.Join(o.rows, "\n"))
					}
				}
			}
		}
	}
}

func TestRuleRefusals(t *testing.T) {
	uuid := &arrow.FixedSizeBinaryType{ByteWidth: 16}
	id, raw := uuids("")[0][0], base64.StdEncoding.EncodeToString(make([]byte, 16))
	str := func(name string, values ...string) column {
		return column{name: name, dt: arrow.BinaryTypes.String, values: values}
	}
	dir := func(cols ...column) []*partition.File {
		return open(t, partition.OpenOptions{}, writeTable(t, table(t, cols...), 1, 2, ""))
	}
	strs := dir(str("k", id, id, id, id), column{name: "n", dt: arrow.PrimitiveTypes.Int64, values: []string{"1", "2", "3", "4"}})
	bad := dir(str("k", id, id, "secret", id), str("v", "a", "b", "c", "d"))
	raws := dir(column{name: "k", dt: uuid, values: []string{raw, raw}})
	for _, c := range []struct {
		name      string
		ids, logs []*partition.File
		opts      join.Options
		kind      error
		words     []string
	}{
		{"integers", strs, strs, join.Options{On: "n", Normalize: "lower"}, fault.ErrUnsupported, []string{"Normalize lower of a key of class integer"}},
		{"a log of integers", strs, strs, join.Options{On: "n=k", Normalize: "lower"}, fault.ErrUnsupported, []string{"column n", "Normalize lower of a key of class integer"}},
		{"an unknown rule", strs, strs, join.Options{On: "k", Normalize: "upper"}, nil, []string{"want some of trim, lower, uuid"}},
		{"no rule, other classes", strs, raws, join.Options{On: "k"}, fault.ErrMismatch, []string{"want text or binary (the IDs), got fixed[16] (the log)", "k=k::uuid"}},
		{"lower, other classes", strs, raws, join.Options{On: "k", Normalize: "lower"}, fault.ErrUnsupported, []string{"class fixed[16]"}},
		{"one column for two classes", strs, raws, join.Options{On: "k", Type: join.Full, Normalize: "uuid"}, fault.ErrUnsupported, []string{"a full join whose key column has one name", "On k=NAME"}},
		{"a filter of another rule", strs, strs, join.Options{On: "k", Normalize: "lower", Filter: (*codec.Filter)(filterOf(t, strs, "k", codec.KindAuto, 0, "trim"))}, fault.ErrMismatch, []string{"want lower, as in the join, got trim"}},
		{"a filter of no rule", strs, strs, join.Options{On: "k", Normalize: "lower", Filter: (*codec.Filter)(filterOf(t, strs, "k", codec.KindAuto, 0))}, fault.ErrMismatch, []string{"want lower, as in the join, got none"}},
		{"a filter with a rule", strs, strs, join.Options{On: "k", Filter: (*codec.Filter)(filterOf(t, strs, "k", codec.KindAuto, 0, "trim"))}, fault.ErrMismatch, []string{"want none, as in the join, got trim"}},
		{"bad IDs", bad, strs, join.Options{On: "k", Normalize: "uuid"}, fault.ErrMismatch, []string{"000.parquet: row group 2: column k: ", "no UUID"}},
		{"bad IDs, their columns", bad, strs, join.Options{On: "k", Type: join.Inner, Normalize: "uuid"}, fault.ErrMismatch, []string{"000.parquet: row group 2: column k: ", "no UUID"}},
		{"bad IDs, broadcast", bad, strs, join.Options{On: "k", Type: join.Inner, Strategy: join.Broadcast, Filter: (*codec.Filter)(filterOf(t, strs, "k", codec.KindAuto, 0, "uuid")), Normalize: "uuid"}, fault.ErrMismatch, []string{"000.parquet: row group 2: column k: "}},
	} {
		_, err := run(t, c.ids, c.logs, c.opts)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		for _, w := range append(c.words, "") {
			if !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %q in %v", c.name, w, err)
			}
		}
	}
	// In joins without rows for unmatched IDs, a shared key keeps the log's type,
	// even if the IDs' class differs.
	for _, typ := range []join.Type{join.Semi, join.Anti, join.Inner, join.Left} {
		if _, err := run(t, strs, raws, join.Options{On: "k", Type: typ, Normalize: "uuid"}); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
}
