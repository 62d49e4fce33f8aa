package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// row has values by the ids of columns; nil is NULL.
type row map[int]any

// history is a table that changes at random, and what its rows are.
type history struct {
	*rand.Rand
	t      *testing.T
	d      *laketest.Iceberg
	files  []*laketest.IcebergFile
	rows   map[string][]row // of files, by position
	nextID int64            // of rows
	made   int              // files
	column int              // id of the next column
	old    map[int64]map[string]string
	keyed  map[int]bool            // ids of columns of keys
	dead   map[string]map[int]bool // rows of files that are deleted by their keys
	spec   map[string]string       // of files: what divides the table
}

const idColumn, partColumn = 1, 2

func newHistory(t *testing.T, seed uint64) *history {
	s := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "p", Type: arrow.PrimitiveTypes.Int32}, {Name: "n", Type: arrow.PrimitiveTypes.Int32}, {Name: "x", Type: arrow.PrimitiveTypes.Float32}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	h := &history{Rand: rand.New(rand.NewPCG(seed, 77)), t: t, rows: map[string][]row{}, column: 6, old: map[int64]map[string]string{}, keyed: map[int]bool{}, dead: map[string]map[int]bool{}, spec: map[string]string{}}
	by := [][]string{nil, {"p"}, {"p", "bucket[4](id)"}, {"truncate[2](p)"}}[h.IntN(4)]
	h.d = laketest.NewIceberg(t, 2, s, by...)
	return h
}

// of returns the type of a column in Arrow.
func of(typ any) arrow.DataType {
	return map[any]arrow.DataType{"long": arrow.PrimitiveTypes.Int64, "int": arrow.PrimitiveTypes.Int32, "float": arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64, "string": arrow.BinaryTypes.String}[typ]
}

// write adds a file of rows, with the columns that the table has now.
func (h *history) write(part any, rows []row) *laketest.IcebergFile {
	var fields []arrow.Field
	identity := len(h.d.By) > 0 && h.d.By[0].Transform == "identity"
	without := identity && h.IntN(3) == 0 // as in tables that were imported: the value is in the metadata
	var columns []laketest.Column
	for _, c := range h.d.Columns {
		if c.ID != partColumn || !without {
			columns = append(columns, c)
			fields = append(fields, field(c))
		}
	}
	h.Shuffle(len(columns), func(i, j int) {
		columns[i], columns[j], fields[i], fields[j] = columns[j], columns[i], fields[j], fields[i]
	})
	content := h.parquet(columns, fields, rows)
	h.made++
	name := fmt.Sprintf("data/%d %%.parquet", h.made)
	h.rows[name], h.dead[name], h.spec[name] = rows, map[int]bool{}, fmt.Sprint(h.d.By)
	return h.d.Add(name, content, nil, h.values(part)...).(*laketest.IcebergFile)
}

// values returns those of the table's By for rows of a partition.
func (h *history) values(part any) []any {
	var values []any
	for _, f := range h.d.By {
		switch v, _ := part.(int); {
		case f.Transform == "bucket[4]":
			values = append(values, 3)
		case part == nil:
			values = append(values, nil)
		case f.Transform == "identity":
			values = append(values, v)
		default:
			values = append(values, v-(v%2+2)%2)
		}
	}
	return values
}

// parquet returns a file of rows.
func (h *history) parquet(columns []laketest.Column, fields []arrow.Field, rows []row) string {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, r := range rows {
		for i, c := range columns {
			if v := r[c.ID]; v == nil {
				b.Field(i).AppendNull()
			} else if err := b.Field(i).AppendValueFromString(fmt.Sprint(v)); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	rec := b.NewRecord()
	defer rec.Release()
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &out, pq.NewWriterProperties(pq.WithMaxRowGroupLength(int64(1+h.IntN(20)))), pqarrow.DefaultWriterProps())
	if err == nil {
		err = errors.Join(w.WriteBuffered(rec), w.Close())
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return out.String()
}

// field returns a column as files have it.
func field(c laketest.Column) arrow.Field {
	md := arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(c.ID)})
	return arrow.Field{Name: c.Name, Type: of(c.Type), Nullable: true, Metadata: md}
}

// deleteKeys deletes rows by the values of some columns: of rows that are there, and of others. Rows that the same
// commit adds stay.
func (h *history) deleteKeys() any {
	var columns []laketest.Column
	var fields []arrow.Field
	k := &laketest.IcebergKeys{Name: fmt.Sprintf("keys %d.parquet", h.made), Spec: -1}
	h.made++
	for _, i := range h.Perm(len(h.d.Columns))[:1+h.IntN(3)] {
		if c := h.d.Columns[i]; c.Type != "float" && c.Type != "double" {
			columns, fields = append(columns, c), append(fields, field(c))
			k.IDs, h.keyed[c.ID] = append(k.IDs, c.ID), true
		}
	}
	key := func(r row) (key string) {
		for _, id := range k.IDs {
			key += fmt.Sprint(r[id], ",")
		}
		return key
	}
	var part any
	spec := fmt.Sprint(h.d.By)
	if len(h.d.By) > 0 {
		part = h.part()
		if k.Values = h.values(part); len(h.files) > 0 {
			f := h.files[h.IntN(len(h.files))]
			if h.spec[f.Name] == spec {
				k.Values = f.Values
			}
		}
	}
	var rows []row
	gone := map[string]bool{}
	for _, f := range h.files {
		for _, r := range h.rows[f.Name] {
			if h.IntN(25) == 0 {
				rows, gone[key(r)] = append(rows, r), true
			}
		}
	}
	for _, r := range h.draw(part)[:1] {
		rows, gone[key(r)] = append(rows, r), true
	}
	if len(columns) == 0 {
		return nil
	}
	if h.IntN(2) == 0 { // an extra column
		columns, fields = append(columns, laketest.Column{ID: 99, Name: "extra"}), append(fields, arrow.Field{Name: "extra", Type: arrow.BinaryTypes.String, Nullable: true})
	}
	content := h.parquet(columns, fields, rows)
	h.d.Put(k.Name, content)
	k.Size, k.Rows = len(content), int64(len(rows))
	for _, f := range h.files {
		if len(h.d.By) > 0 && (h.spec[f.Name] != spec || fmt.Sprint(f.Values) != fmt.Sprint(k.Values)) {
			continue
		}
		for i, r := range h.rows[f.Name] {
			if gone[key(r)] {
				h.dead[f.Name][i] = true
			}
		}
	}
	return k
}

// draw returns new rows of a partition.
func (h *history) draw(part any) (rows []row) {
	for range 1 + h.IntN(30) {
		h.nextID++
		r := row{idColumn: h.nextID, partColumn: part}
		for _, c := range h.d.Columns[2:] {
			switch n := h.IntN(100) - 50; {
			case n%5 == 0:
			case c.Type == "string":
				r[c.ID] = fmt.Sprint("s", n)
			case c.Type == "float" || c.Type == "double":
				r[c.ID] = float64(n) / 4
			default:
				r[c.ID] = n
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func (h *history) part() any {
	if h.IntN(5) == 0 {
		return nil
	}
	return h.IntN(5) - 2
}

// step changes the table once.
func (h *history) step() {
	var actions []any
	switch h.IntN(11) {
	case 0, 1, 2:
		for range 1 + h.IntN(3) {
			part := h.part()
			actions = append(actions, h.write(part, h.draw(part)))
		}
	case 3, 4, 5:
		for _, f := range h.files {
			if h.IntN(2) == 0 {
				again := *f
				again.Deleted = slices.Clone(f.Deleted)
				for range h.IntN(8) {
					again.Deleted = append(again.Deleted, h.Int64N(int64(len(h.rows[f.Name]))))
				}
				slices.Sort(again.Deleted)
				if again.Deleted = slices.Compact(again.Deleted); h.IntN(9) == 0 {
					again.Deleted = nil // rolled back
				}
				actions = append(actions, &again)
			}
		}
	case 6:
		actions = h.compact()
	case 7:
		for _, f := range h.files {
			if h.IntN(3) == 0 {
				actions = append(actions, laketest.Remove(f))
			}
		}
	case 8:
		h.evolve()
	case 9:
		if k := h.deleteKeys(); k != nil {
			actions = append(actions, k)
		}
		if h.IntN(2) == 0 {
			part := h.part()
			actions = append(actions, h.write(part, h.draw(part)))
		}
	case 10:
		switch h.d.Keep = h.d.Format == 2 && h.IntN(2) == 0; {
		case h.IntN(4) == 0:
			h.d.Format, h.d.Keep = 3, false
		case h.IntN(3) == 0:
			h.d.By = nil
		}
	}
	h.commit(actions)
}

// compact writes the rows of files of one partition into one.
func (h *history) compact() (actions []any) {
	part := h.part()
	var all []row
	for _, f := range h.files {
		if rows := h.live(f); len(rows) > 0 && rows[0][partColumn] == part {
			actions, all = append(actions, laketest.Remove(f)), append(all, rows...)
		}
	}
	if len(all) > 0 {
		actions = append(actions, h.write(part, all))
	}
	return actions
}

// evolve changes the columns.
func (h *history) evolve() {
	c := slices.Clone(h.d.Columns)
	i := 2 + h.IntN(len(c)-1)
	switch {
	case i == len(c):
		c = append(c, laketest.Column{ID: h.column, Name: fmt.Sprint("new", h.column), Type: []any{"int", "string", "float"}[h.IntN(3)]})
		h.column++
	case h.keyed[c[i].ID]: // tables that lack a column of keys are refused
	case h.IntN(3) == 0 && len(c) > 3:
		c = slices.Delete(c, i, i+1)
	case h.IntN(2) == 0 && c[i].Type == "int":
		c[i].Type = "long"
	case c[i].Type == "float":
		c[i].Type = "double"
	default:
		c[i].Name = fmt.Sprint("renamed", h.IntN(1000), " ", c[i].ID)
	}
	h.d.Columns = c
}

func (h *history) live(f *laketest.IcebergFile) (rows []row) {
	for i, r := range h.rows[f.Name] {
		if !slices.Contains(f.Deleted, int64(i)) && !h.dead[f.Name][i] {
			rows = append(rows, r)
		}
	}
	return rows
}

func (h *history) commit(actions []any) {
	if h.d.Keep { // what is deleted remains so
		for _, a := range actions {
			if f, ok := a.(*laketest.IcebergFile); ok && f.Deleted == nil {
				h.d.Keep = false
			}
		}
	}
	h.d.Commit(actions...)
	for _, a := range actions {
		f, added := a.(*laketest.IcebergFile)
		h.files = slices.DeleteFunc(h.files, func(was *laketest.IcebergFile) bool {
			return added && was.Name == f.Name || !added && laketest.Remove(was) == a
		})
		if added {
			h.files = append(h.files, f)
		}
	}
	h.old[h.d.Snapshot()] = h.want()
}

// want returns the rows of the table, by id.
func (h *history) want() map[string]string {
	all := map[string]string{}
	for _, f := range h.files {
		for _, r := range h.live(f) {
			text := ""
			for _, c := range h.d.Columns {
				v := r[c.ID]
				if v == nil {
					v = "(null)"
				}
				text += fmt.Sprint(c.Name, "=", v, " ")
			}
			all[fmt.Sprint(r[idColumn])] = text
		}
	}
	return all
}

// read returns the rows as a program reads them.
func (h *history) read(name, where string) map[string]string { return rowsOf(h.t, name, where) }

// rowsOf returns the rows of a table that satisfy a condition, by id.
func rowsOf(t *testing.T, name, where string) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := partition.Open(t.Context(), []string{name}, partition.OpenOptions{Where: where})
	if errors.Is(err, storage.ErrNoFiles) {
		return all
	} else if err != nil {
		t.Fatal(name, where, err)
	}
	defer partition.Close(files)
	for _, f := range files {
		for g := range f.NumGroups() {
			for rec, err := range f.Read(t.Context(), g, nil) {
				if err != nil {
					t.Fatal(name, where, err)
				}
				for i := range int(rec.NumRows()) {
					id, text := "", ""
					for c, field := range rec.Schema().Fields() {
						v := rec.Column(c).ValueStr(i)
						if field.Name == "id" {
							id = v
						}
						text += field.Name + "=" + v + " "
					}
					if all[id] != "" {
						t.Errorf("row %s is there twice", id)
					}
					all[id] = text
				}
			}
		}
	}
	return all
}

// Tables that change at random have the rows that they should have, now and in older snapshots.
func TestHistory(t *testing.T) {
	n := cases.Count(3, 8, 1000)
	for seed := range uint64(n) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newHistory(t, seed)
			for range 14 {
				h.step()
				want := h.want()
				if got := h.read(h.d.Name(), ""); !maps.Equal(got, want) {
					t.Fatalf("snapshot %d: %d rows, want %d: %s", h.d.Snapshot(), len(got), len(want), differs(got, want))
				}
				for condition, is := range map[string]func(text string) bool{
					"p = 1": func(text string) bool { return strings.Contains(text, " p=1 ") }, "p IS NULL": func(text string) bool { return strings.Contains(text, " p=(null) ") },
					"p < 0": func(text string) bool { return strings.Contains(text, " p=-") },
				} {
					some := maps.Clone(want)
					maps.DeleteFunc(some, func(_, text string) bool { return !is(text) })
					if got := h.read(h.d.Name(), condition); !maps.Equal(got, some) {
						t.Fatalf("snapshot %d, where %s: %d rows, want %d: %s", h.d.Snapshot(), condition, len(got), len(some), differs(got, some))
					}
				}
			}
			for id, want := range h.old {
				if got := h.read(fmt.Sprintf("%s@snapshot=%d", h.d.Name(), id), ""); !maps.Equal(got, want) {
					t.Fatalf("snapshot %d, later: %d rows, want %d: %s", id, len(got), len(want), differs(got, want))
				}
			}
		})
	}
}

// differs returns a row that differs.
func differs(got, want map[string]string) string {
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] != want[id] {
			return fmt.Sprintf("got %q, want %q", got[id], want[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if want[id] == "" {
			return fmt.Sprintf("got %q", got[id])
		}
	}
	return ""
}
