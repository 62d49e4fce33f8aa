package keyscan_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// Under a rule, a scan gives the same rows as a loop over all rows, although
// statistics, indexes and dictionaries of the file describe the stored values.

// ruledRow is a row's key: one string, or two with a number in between if composite.
type ruledRow struct {
	k, g *string // nil: NULL
	n    int64
}

// key returns the key's parts and bytes; ok is false if it equals nothing.
func (r ruledRow) key(rule string, composite bool) (parts []string, column string, null, ok bool) {
	if r.k == nil || composite && r.g == nil {
		return nil, "", true, false
	}
	k, ok := roomtest.Ruled(rule, *r.k)
	if !composite {
		return []string{k}, k, false, ok
	}
	g, ok2 := roomtest.Ruled(rule, *r.g)
	n := string(keys.IntegerPart(uint64(r.n), false))
	for _, p := range []string{k, n, g} {
		parts = append(parts, p)
		column += string(binary.AppendUvarint(nil, uint64(len(p)))) + p
	}
	return parts, column, false, ok && ok2
}

// ruledRows draws rows whose keys equal, or nearly equal, others under some rule.
func ruledRows(r *rand.Rand, n int, nulls, plain bool) []ruledRow {
	spaces := []string{"", "", "", " ", "\t\n", "\v\f\r", "\u00a0", "\u2003"}
	text := func() *string {
		if nulls && r.IntN(8) == 0 {
			return nil
		}
		core := []string{"", "a", "A", "ab", "aB", "ä", "Ä", "a b", "z", "Z"}[r.IntN(10)]
		if r.IntN(3) > 0 {
			var id [16]byte
			id[r.IntN(2)] = byte(r.IntN(3)) * 0xab
			core = hex.EncodeToString(id[:])
			if r.IntN(3) > 0 {
				core = core[:8] + "-" + core[8:12] + "-" + core[12:16] + "-" + core[16:20] + "-" + core[20:]
			}
			core = []string{core, core, strings.ToUpper(core), "{" + core + "}", "urn:uuid:" + core, core[1:]}[r.IntN(6)]
		}
		if !plain {
			core = fmt.Sprint(core, []string{"", "", "", "Q", "q"}[r.IntN(5)])
		}
		core = spaces[r.IntN(len(spaces))] + core + spaces[r.IntN(len(spaces))]
		return &core
	}
	rows := make([]ruledRow, n)
	for i := range rows {
		rows[i] = ruledRow{k: text(), g: text(), n: int64(r.IntN(2))}
	}
	if r.IntN(2) == 0 { // so that pages have different statistics
		slices.SortStableFunc(rows, func(a, b ruledRow) int { return strings.Compare(deref(a.k), deref(b.k)) })
	}
	return rows
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ruledPages writes column k (or s.k) and the row's number with parquet-go, in small
// pages with indexes.
func ruledPages(t testing.TB, r *rand.Rand, rows []ruledRow, nested bool) []byte {
	t.Helper()
	node := pq.Optional(pq.String())
	if r.IntN(2) == 0 {
		node = pq.Encoded(node, &pq.RLEDictionary)
	}
	fields, path, def := pq.Group{"k": node, "z": pq.Leaf(pq.Int64Type)}, []string{"k"}, 1
	if nested {
		fields, path, def = pq.Group{"s": pq.Optional(pq.Group{"k": node}), "z": pq.Leaf(pq.Int64Type)}, []string{"s", "k"}, 2
	}
	var b bytes.Buffer
	w := pq.NewWriter(&b, pq.NewSchema("log", fields), pq.CreatedBy("github.com/parquet-go/parquet-go", "0.32.0", ""),
		pq.PageBufferSize(64+r.IntN(500)), pq.MaxRowsPerRowGroup(int64(40+r.IntN(300))), pq.DataPageVersion(1+r.IntN(2)),
		pq.BloomFilters(pq.SplitBlockFilter(10, path...)))
	for i, row := range rows {
		v := pq.ValueOf(nil).Level(0, r.IntN(def), 0)
		if row.k != nil {
			v = pq.ByteArrayValue([]byte(*row.k)).Level(0, def, 0)
		}
		if _, err := w.WriteRows([]pq.Row{{v, pq.Int64Value(int64(i)).Level(0, 0, 1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ruledRecord makes a record of columns k, n, g and the row's number.
func ruledRecord(r *rand.Rand, mem memory.Allocator, rows []ruledRow) arrow.Record {
	types := []arrow.DataType{
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary,
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String},
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: types[r.IntN(len(types))], Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int32},
		{Name: "g", Type: types[r.IntN(len(types))], Nullable: true}, {Name: "z", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	text := func(b array.Builder, v *string) {
		if v == nil {
			b.AppendNull()
			return
		}
		switch b := b.(type) {
		case array.StringLikeBuilder:
			b.Append(*v)
		case *array.BinaryDictionaryBuilder:
			_ = b.AppendString(*v)
		case *array.BinaryBuilder:
			b.AppendString(*v)
		}
	}
	for i, row := range rows {
		text(b.Field(0), row.k)
		b.Field(1).(*array.Int32Builder).Append(int32(row.n))
		text(b.Field(2), row.g)
		b.Field(3).(*array.Int64Builder).Append(int64(i))
	}
	return b.NewRecord()
}

// counter checks keys against members, and counts the rows of each key.
type counter struct {
	members map[string][]string
	mu      sync.Mutex
	count   map[string]int64
}

func (c *counter) check(k *keyscan.Keys) ([]uint32, error) {
	hits, err := k.Probe()
	var members []uint32
	for _, h := range hits {
		if _, ok := c.members[string(k.Batch.Append(nil, int(h)))]; ok {
			members = append(members, h)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range k.Batch.Rows {
		n := int64(1)
		if k.Times != nil {
			n = int64(k.Times[i])
		}
		if n > 0 {
			c.count[string(k.Batch.Append(nil, i))] += n
		}
	}
	return members, err
}

func TestRuleProperty(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	rules := []string{"", "trim", "lower", "trim,lower", "uuid", "trim,uuid", "lower,uuid", "trim,lower,uuid", "trim,lower,ascii-only"}
	dir := t.TempDir()
	kept, matched := 0, 0
	for round := range cases.Count(3, 6, 12) {
		for _, shape := range []string{"pages", "nested pages", "parquet", "arrow", "composite parquet", "composite arrow"} {
			rows := ruledRows(rng, 1+rng.IntN(600), rng.IntN(2) == 0, rng.IntN(2) == 0)
			path := filepath.Join(dir, fmt.Sprint(round, strings.ReplaceAll(shape, " ", "-"), ".parquet"))
			key, composite := "k", strings.HasPrefix(shape, "composite")
			switch {
			case strings.HasSuffix(shape, "pages"):
				if shape == "nested pages" {
					key = "s.k"
				}
				sourcetest.Put(t, path, string(ruledPages(t, rng, rows, shape == "nested pages")))
			case strings.HasSuffix(shape, "arrow"):
				path = strings.TrimSuffix(path, "parquet") + "arrow"
				fallthrough
			default:
				sourcetest.Write(t, path, 1+int64(rng.IntN(200)), ruledRecord(rng, sourcetest.Checked(t), rows))
			}
			if composite {
				key = "k,n,g"
			}
			for _, rule := range rules {
				n, m := checkRule(t, rng, fmt.Sprintf("round %d, %s under %q", round, shape, rule), path, key, rule, rows, composite)
				kept, matched = kept+n, matched+m
			}
		}
	}
	if matched < kept/20 || kept < matched*2 {
		t.Errorf("%d of %d rows matched: that is no test", matched, kept)
	}
}

// checkRule scans a file for some of the keys that its rows have under the rule, and
// compares with a loop over the rows.
func checkRule(t *testing.T, rng *rand.Rand, what, path, column, rule string, rows []ruledRow, composite bool) (all, matched int) {
	t.Helper()
	text := keys.Bytes
	if strings.Contains(rule, "uuid") {
		text = keys.Fixed(16)
	}
	names, classes := []string{column}, []keys.Class{text}
	if composite {
		names, classes = strings.Split(column, ","), []keys.Class{text, keys.Integer, text}
	}
	members := map[string][]string{}
	for range 1 + rng.IntN(40) {
		if parts, k, _, ok := rows[rng.IntN(len(rows))].key(rule, composite); ok {
			members[k] = parts
		}
	}
	var in, out []int
	count, nulls := map[string]int64{}, int64(0)
	for i, row := range rows {
		_, k, null, ok := row.key(rule, composite)
		if null {
			nulls++
		}
		if ok {
			count[k]++
		}
		if _, member := members[k]; member && ok {
			in = append(in, i)
		} else {
			out = append(out, i)
		}
	}
	filter := roomtest.RuledFilter(t, rule, names, classes, members)
	for _, c := range []struct {
		name            string
		verify, exclude bool
		want            []int
	}{{"match", false, false, in}, {"verified", true, false, in}, {"excluded", true, true, out}} {
		m := dataset.Match{Filter: (*codec.Filter)(filter), Key: column, NoMatch: c.exclude}
		v := &counter{members: members, count: map[string]int64{}}
		opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{m}, Normalize: rule, Threads: 1 + rng.IntN(3)}}
		if c.verify {
			opts.Check = func() func(*keyscan.Keys) ([]uint32, error) { return v.check }
		}
		got, st := roomtest.Scanned(t, opts, dataset.Shard{}, path)
		if !slices.Equal(got, c.want) {
			t.Fatalf("%s, %s: rows %d, want %d", what, c.name, got, c.want)
		}
		if n := st.KeysNull.Load(); n != nulls && (rule != "" || c.verify) { // NULLs in skipped pages may be unknown
			t.Errorf("%s, %s: %d NULLs, want %d", what, c.name, n, nulls)
		}
		if c.verify && rule != "" && !maps.Equal(v.count, count) {
			t.Errorf("%s, %s: counted %v, want %v", what, c.name, v.count, count)
		}
	}
	return len(rows), len(in)
}

// Every way to prune finds no member in the stored values, but under the rule there is
// one.
func TestRuleIsNotPruned(t *testing.T) {
	const id = "123e4567-e89b-12d3-a456-426614174000"
	bin, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		rule, member string
		rows         []string
		want         []int
	}{
		{"lower", "anna", []string{"ANNA", "BERT", "Anna"}, []int{0, 2}}, // all below the member
		{"trim", "a", []string{" a", "\ta\n", " b"}, []int{0, 1}},
		{"trim", "a", []string{"b", "a ", "a\t"}, []int{1, 2}}, // all above
		{"lower", "", []string{"", "A"}, []int{0}},
		{"lower", "müller", []string{"MULLER", "MÜLLER"}, []int{1}},
		{"lower,ascii-only", "mÜller", []string{"MULLER", "MÜLLER"}, []int{1}},
		{"trim,lower", "zoe", []string{" ZOE", "YVES "}, []int{0}},
		{"uuid", string(bin), []string{strings.ToUpper(id), "{" + id + "}", "no"}, []int{0, 1}},
		{"trim,uuid", string(bin), []string{" " + id, "urn:uuid:" + id + "\n", id[1:]}, []int{0, 1}},
	} {
		class := keys.Bytes
		if strings.Contains(v.rule, "uuid") {
			class = keys.Fixed(16)
		}
		filter := roomtest.RuledFilter(t, v.rule, []string{"k"}, []keys.Class{class}, map[string][]string{v.member: {v.member}})
		var rows []ruledRow
		for i := range v.rows {
			rows = append(rows, ruledRow{k: &v.rows[i], g: new(string)})
		}
		for seed := range uint64(8) { // dictionary and plain pages of both versions, also written by Arrow
			rng := rand.New(rand.NewPCG(seed, 1))
			path := filepath.Join(t.TempDir(), "log.parquet")
			if seed%4 == 3 {
				sourcetest.Write(t, path, 1+int64(seed), ruledRecord(rng, sourcetest.Checked(t), rows))
			} else {
				sourcetest.Put(t, path, string(ruledPages(t, rng, rows, false)))
			}
			got, st := roomtest.Scanned(t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(filter)}}, Normalize: v.rule}}, dataset.Shard{}, path)
			if !slices.Equal(got, v.want) || st.RowGroupsSkipped.Load() > 0 {
				t.Errorf("%s, member %q among %q, file %d: rows %d, want %d; %d row groups skipped", v.rule, v.member, v.rows, seed, got, v.want, st.RowGroupsSkipped.Load())
			}
			if class != keys.Bytes || v.member == "" {
				continue
			}
			// The statistics do exclude the member: without a rule no page is read.
			plain := roomtest.RuledFilter(t, "", []string{"k"}, []keys.Class{class}, map[string][]string{v.member: {v.member}})
			if got, st := roomtest.Scanned(t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(plain)}}}}, dataset.Shard{}, path); len(got) > 0 || st.RowGroupsSkipped.Load() == 0 {
				t.Errorf("%q among %q, file %d: without a rule rows %d, %d row groups skipped: that is no vector", v.member, v.rows, seed, got, st.RowGroupsSkipped.Load())
			}
		}
	}
}

// Text is compared with a column of UUIDs, which no rule changes.
func TestRuleUUIDColumn(t *testing.T) {
	ids := [][]byte{bytes.Repeat([]byte{'A'}, 16), bytes.Repeat([]byte{' '}, 16), bytes.Repeat([]byte{0xab}, 16)}
	filter := roomtest.RuledFilter(t, "trim,lower,uuid", []string{"k"}, []keys.Class{keys.Fixed(16)}, map[string][]string{
		string(ids[0]): {string(ids[0])}, string(ids[1]): {string(ids[1])},
	})
	b := array.NewFixedSizeBinaryBuilder(sourcetest.Checked(t), &arrow.FixedSizeBinaryType{ByteWidth: 16})
	defer b.Release()
	for i := range 9 {
		if i == 4 {
			b.AppendNull()
		} else {
			b.Append(ids[i%3])
		}
	}
	a := b.NewArray()
	defer a.Release()
	for _, name := range []string{"u.parquet", "u.arrow"} {
		rec := sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "k", Values: a}, sourcetest.Col{Name: "z", Values: sourcetest.Numbers(9, func(i int) int64 { return int64(i) })})
		path := sourcetest.Write(t, filepath.Join(t.TempDir(), name), 4, rec)
		got, st := roomtest.Scanned(t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(filter)}}, Normalize: "uuid,lower,trim"}}, dataset.Shard{}, path)
		sourcetest.Equal(t, name, got, []int{0, 1, 3, 6, 7})
		sourcetest.Equal(t, name+": NULLs", st.KeysNull.Load(), int64(1))
	}
	// Its values are the keys, so its statistics are used.
	sorted := array.NewFixedSizeBinaryBuilder(sourcetest.Checked(t), &arrow.FixedSizeBinaryType{ByteWidth: 16})
	defer sorted.Release()
	for i := range 8 {
		sorted.Append(bytes.Repeat([]byte{byte(i) << 5}, 16))
	}
	a2 := sorted.NewArray()
	defer a2.Release()
	path := sourcetest.Write(t, filepath.Join(t.TempDir(), "sorted.parquet"), 2, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "k", Values: a2}, sourcetest.Col{Name: "z", Values: sourcetest.Numbers(8, func(i int) int64 { return int64(i) })}))
	got, st := roomtest.Scanned(t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(filter)}}, Normalize: "trim,lower,uuid"}}, dataset.Shard{}, path)
	sourcetest.Equal(t, "sorted", got, []int{1})
	sourcetest.Equal(t, "sorted: row groups skipped", st.RowGroupsSkipped.Load(), int64(2))
}

// The rule of a scan must be that of each filter.
func TestRuleIsSaid(t *testing.T) {
	of := func(rule string, class keys.Class) *filters.Filter {
		return roomtest.RuledFilter(t, rule, []string{"k"}, []keys.Class{class}, nil)
	}
	plain, lower, both := of("", keys.Bytes), of("lower", keys.Bytes), of("trim,lower", keys.Bytes)
	uuid, ids := of("uuid", keys.Fixed(16)), of("", keys.Fixed(16))
	ints, gap := roomtest.ExactOf("n", 1), of("", keys.Date)
	for _, c := range []struct {
		rule    string
		filters []*filters.Filter
		words   []string // of the error; none: no error
	}{
		{"", []*filters.Filter{plain, ids, ints}, nil}, {"lower", []*filters.Filter{lower}, nil}, {"lower,trim", []*filters.Filter{both, both}, nil},
		{"uuid", []*filters.Filter{uuid}, nil}, {"lower", []*filters.Filter{ints, lower, gap}, nil},
		{"", []*filters.Filter{lower}, []string{"want lower, got none", "say Normalize lower"}},
		{"trim", []*filters.Filter{lower}, []string{"want lower, got trim", "say Normalize lower"}},
		{"lower", []*filters.Filter{both}, []string{"want trim,lower, got lower"}},
		{"lower", []*filters.Filter{plain}, []string{"want none, got lower", "leave Normalize out"}},
		{"uuid", []*filters.Filter{ids}, []string{"want none, got uuid"}},
		{"uuid", []*filters.Filter{both}, []string{"want trim,lower, got uuid"}},
		{"lower", []*filters.Filter{lower, plain}, []string{"want none, got lower"}},
		{"lower", []*filters.Filter{lower, both}, []string{"want trim,lower, got lower"}},
		{"lower", []*filters.Filter{of("lower,ascii-only", keys.Bytes)}, []string{"want lower,ascii-only, got lower", "say Normalize lower,ascii-only"}},
		{"lower,ascii-only", []*filters.Filter{lower}, []string{"want lower, got lower,ascii-only"}},
		{"", []*filters.Filter{plain, lower}, []string{"want lower, got none"}},
		{"lower", []*filters.Filter{ints}, []string{"unsupported: Normalize lower of a key of class integer"}},
		{"trim", []*filters.Filter{ints, gap}, []string{"unsupported: Normalize trim of a key of class integer"}},
		{"upper", []*filters.Filter{lower}, []string{"want some of trim, lower, uuid"}},
		{"trim,trim", []*filters.Filter{lower}, []string{"twice"}},
	} {
		var opts keyscan.Options
		opts.Normalize = c.rule
		for _, f := range c.filters {
			opts.Match = append(opts.Match, dataset.Match{Filter: (*codec.Filter)(f)})
		}
		_, err := keyscan.New(opts)
		if c.words == nil && err != nil {
			t.Errorf("%q: %v", c.rule, err)
		} else if c.words != nil {
			sourcetest.Says(t, c.rule, err, nil, c.words...)
		}
	}
	for _, normal := range []string{"1+upper", "1+lower,trim", "2", "2+lower", "1+"} {
		f := of("", keys.Bytes)
		f.Facts().NormalForm, f.Facts().Rule = normal, ""
		_, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(f)}}, Normalize: "lower"}})
		sourcetest.Says(t, normal, err, fault.ErrMismatch, "want 1, got "+normal)
	}
	// The error about a log without strings names its class.
	path := sourcetest.Write(t, filepath.Join(t.TempDir(), "n.parquet"), 9, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "k", Values: []int64{1}}, sourcetest.Col{Name: "z", Values: []int64{1}}))
	s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(lower)}}, Normalize: "lower"}})
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.Says(t, "integers", s.Check(roomtest.Open(t, source.Opening{}, path)[0]), fault.ErrUnsupported, path, "column k", "Normalize lower of a key of class integer")
}

// IDs that are not UUIDs are errors that give the place but not the value.
func TestRuleOfIDs(t *testing.T) {
	const id = "123e4567-e89b-12d3-a456-426614174000"
	dir := t.TempDir()
	values := []string{id, id, strings.ToUpper(id), "secret", id}
	rec := func() arrow.Record {
		return sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "k", Values: values}, sourcetest.Col{Name: "n", Values: []int64{1, 2, 3, 4, 5}})
	}
	for _, c := range []struct {
		name, column string
		words        []string
	}{
		{sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 2, rec()), "k", []string{"a.parquet: row group 2: column k"}},
		{sourcetest.Write(t, filepath.Join(dir, "b.arrow"), 2, rec()), "k", []string{"b.arrow: row group 2: column k"}},
		{sourcetest.Write(t, filepath.Join(dir, "c.parquet"), 3, rec()), "k,n", []string{"c.parquet: row group 2: column k,n"}},
		{sourcetest.Put(t, filepath.Join(dir, "d.txt"), strings.Join(values, "\n\n")), "k", []string{"d.txt: line 7: column k", "want a UUID"}},
		{sourcetest.Put(t, filepath.Join(dir, "e.csv"), "n,k\n1,\""+id+"\"\n\n2,secret\n"), "k", []string{"e.csv: line 4: column k"}},
		{sourcetest.Put(t, filepath.Join(dir, "f.csv"), "n,k\n1,"+id+"\n\n2,secret\n"), "k,n", []string{"f.csv: line 4: column k"}},
		{sourcetest.Put(t, filepath.Join(dir, "g.ndjson"), "{\"k\":\""+id+"\"}\n{\"k\":null}\n{\"k\":\"secret\"}\n"), "k", []string{"g.ndjson: line 3: column k"}},
	} {
		files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Column: "k", Types: map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Int64}}}, c.name)
		paths, err := keys.ParseColumns(c.column)
		if err != nil {
			t.Fatal(err)
		}
		files[0] = files[0].WithIDs(paths, keys.Options{Rule: keys.UUID}) // as a plan does
		work := func() (func(*keyscan.Keys) error, error) { return func(*keyscan.Keys) error { return nil }, nil }
		o := keyscan.ReadOptions{Key: c.column, Options: keys.Options{Rule: keys.UUID}, IDs: true, Threads: 1}
		_, _, err = keyscan.Read(t.Context(), source.Split(files, dataset.Shard{}), o, work)
		sourcetest.Says(t, c.name, err, fault.ErrMismatch, c.words...)
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Count(err.Error(), c.name) != 1) {
			t.Errorf("%v", err)
		}
		files = roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Column: "k", Types: map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Int64}}}, c.name)
		o.Rule = keys.Trim
		if _, _, err := keyscan.Read(t.Context(), source.Split(files, dataset.Shard{}), o, work); err != nil {
			t.Errorf("%s: only trimmed: %v", c.name, err)
		}
	}
}
