package joins_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/join"
)

// naive is a join by its definition, independent of the package: each row of the log,
// in order, with each ID of its key, as [value] renders keys. NULL equals nothing.
type naive struct {
	names                           string
	columns                         []naiveColumn
	cells                           [][]string // of the rows, by column
	rows                            []string   // in order: the log's, then the ID set's
	rowsIn, keysNull, total, member int64      // member: ID rows that a log row matched
	void                            int64      // log rows whose key is not NULL but void under the rule
	matched                         int64      // log rows with an ID
	keys                            int64      // distinct keys of member
}

// naiveColumn is a column of an answer: its name on the side that it comes from.
type naiveColumn struct {
	side, name string
	shared     bool // a shared key
	both       bool // the other side has a column of the name
}

// only returns the answer with some of its columns, given by number, and with the
// suffix on the names of ID columns that need it.
func (n *naive) only(columns []int, suffix string) *naive {
	out := *n
	out.columns, out.cells, out.rows = nil, nil, nil
	for _, c := range columns {
		out.columns = append(out.columns, n.columns[c])
	}
	out.names = answerNames(out.columns, suffix)
	for _, row := range n.cells {
		var cells []string
		for _, c := range columns {
			cells = append(cells, row[c])
		}
		out.add(cells)
	}
	return &out
}

// named returns the answer with the columns of that spelling: NAME, log.NAME or
// ids.NAME; nil: all.
func (n *naive) named(spelled []string) *naive {
	if spelled == nil {
		return n
	}
	var columns []int
	for _, s := range spelled {
		columns = append(columns, slices.IndexFunc(n.columns, func(c naiveColumn) bool {
			return s == c.side+"."+c.name || s == c.name && (c.shared || !c.both)
		}))
	}
	return n.only(columns, "_ids")
}

// unlike returns how an answer of a join differs: in its columns, rows or figures. An
// [orderError] says that only the rows' order does.
func (n *naive) unlike(got answer) error {
	if got.names != n.names {
		return fmt.Errorf("the columns are %s, want %s", got.names, n.names)
	}
	r := got.report
	if r.RowsOut != int64(len(n.rows)) || r.RowsIn != n.rowsIn || r.RowsMatched != n.matched || r.IDsMatched != n.member || r.KeysMatched != n.keys || r.IDsTotal != n.total {
		return fmt.Errorf("the report says %d rows of %d, %d matched, %d of %d IDs with %d keys matched; want %d of %d, %d, %d of %d with %d",
			r.RowsOut, r.RowsIn, r.RowsMatched, r.IDsMatched, r.IDsTotal, r.KeysMatched, len(n.rows), n.rowsIn, n.matched, n.member, n.total, n.keys)
	}
	if !slices.Equal(got.rows, n.rows) {
		return unlike(got.rows, n.rows)
	}
	return nil
}

func (n *naive) add(cells []string) {
	n.cells, n.rows = append(n.cells, cells), append(n.rows, strings.Join(cells, " "))
}

// naiveSide is a table and the keys of its rows.
type naiveSide struct {
	rec  arrow.Record
	keys []string
	null []bool // a part is NULL
	void []bool // not a key under the rule
	cell [][]string
}

func newNaiveSide(t testing.TB, rec arrow.Record, paths [][]string, rule string) *naiveSide {
	n := int(rec.NumRows())
	s := &naiveSide{rec: rec, keys: make([]string, n), null: make([]bool, n), void: make([]bool, n), cell: make([][]string, n)}
	for i := range n {
		s.keys[i], s.null[i], s.void[i] = keyOf(t, rec, paths, i, rule)
		for _, a := range rec.Columns() {
			s.cell[i] = append(s.cell[i], value(t, a, i))
		}
	}
	return s
}

// key returns the values at the paths in row i under a rule. null is true if one is
// NULL, otherwise void is true if one should be a UUID and is not.
func keyOf(t testing.TB, rec arrow.Record, paths [][]string, i int, rule string) (k string, null, void bool) {
	var parts []string
	for _, p := range paths {
		a := rec.Column(rec.Schema().FieldIndices(p[0])[0])
		for _, n := range p[1:] {
			if a.IsNull(i) {
				return "", true, false
			}
			at, _ := a.DataType().(*arrow.StructType).FieldIdx(n)
			a = a.(*array.Struct).Field(at)
		}
		v := value(t, a, i)
		if v == "NULL" {
			return "", true, false
		}
		if rule != "" {
			var ok bool
			v, ok = ruled(t, a, v, rule)
			void = void || !ok
		}
		parts = append(parts, v)
	}
	return strings.Join(parts, "\x00"), false, void
}

// nestedLoop computes the join.
func nestedLoop(t testing.TB, log, ids arrow.Record, logKey, idKey [][]string, rule string, typ join.Type) *naive {
	l, r := newNaiveSide(t, log, logKey, rule), newNaiveSide(t, ids, idKey, rule)
	var shared []string // shared key columns
	for i, p := range logKey {
		if len(p) == 1 && slices.Equal(p, idKey[i]) {
			shared = append(shared, p[0])
		}
	}
	out := &naive{rowsIn: log.NumRows()}
	out.columns = answerColumns(log.Schema(), ids.Schema(), shared, typ)
	out.names = answerNames(out.columns, "_ids")
	pay := func(i int) (s []string) { // the ID's own columns
		for c, f := range ids.Schema().Fields() {
			if slices.Contains(shared, f.Name) {
				continue
			}
			if i < 0 {
				s = append(s, "NULL")
			} else {
				s = append(s, r.cell[i][c])
			}
		}
		return s
	}
	payload := make([][]string, ids.NumRows())
	for i := range payload {
		payload[i] = pay(i)
	}
	of := map[string][]int{} // IDs by their key
	for k := range r.keys {
		if !r.null[k] {
			of[r.keys[k]] = append(of[r.keys[k]], k)
		}
	}
	met := make([]bool, ids.NumRows())
	for i := range l.keys {
		if l.null[i] {
			out.keysNull++
		} else if l.void[i] {
			out.void++
		}
		row, any := l.cell[i], false
		if !l.null[i] && !l.void[i] {
			for _, k := range of[l.keys[i]] {
				if any, met[k] = true, true; typ != join.Semi && typ != join.Anti {
					out.add(slices.Concat(row, payload[k]))
				}
			}
		}
		if any {
			out.matched++
		}
		switch {
		case any && typ == join.Semi, !any && typ == join.Anti:
			out.add(row)
		case !any && (typ == join.Left || typ == join.Full):
			out.add(slices.Concat(row, pay(-1)))
		}
	}
	for i := range met {
		if !r.null[i] {
			out.total++
		}
		if met[i] {
			out.member++
			if of[r.keys[i]][0] == i {
				out.keys++
			}
		} else if typ == join.Right || typ == join.Full {
			var row []string
			for _, f := range log.Schema().Fields() {
				v := "NULL"
				if slices.Contains(shared, f.Name) {
					v = r.cell[i][ids.Schema().FieldIndices(f.Name)[0]]
				}
				row = append(row, v)
			}
			out.add(slices.Concat(row, payload[i]))
		}
	}
	return out
}

// answerColumns returns the columns of an answer: the log's, then the IDs' except
// shared keys.
func answerColumns(log, ids *arrow.Schema, shared []string, typ join.Type) (out []naiveColumn) {
	for _, f := range log.Fields() {
		out = append(out, naiveColumn{"log", f.Name, slices.Contains(shared, f.Name), ids.HasField(f.Name)})
	}
	for _, f := range ids.Fields() {
		if typ != join.Semi && typ != join.Anti && !slices.Contains(shared, f.Name) {
			out = append(out, naiveColumn{"ids", f.Name, false, log.HasField(f.Name)})
		}
	}
	return out
}

// answerNames returns the column names of an answer: the log's unchanged, the IDs' with
// the suffix if the name is taken.
func answerNames(columns []naiveColumn, suffix string) string {
	var taken []string
	for _, c := range columns {
		if c.side == "log" {
			taken = append(taken, c.name)
		}
	}
	var out []string
	for _, c := range columns {
		name := c.name
		for c.side == "ids" && slices.Contains(taken, name) {
			name += suffix
		}
		if c.side == "ids" {
			taken = append(taken, name)
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}
