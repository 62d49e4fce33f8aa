package join_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/join"
)

// naive is a join by its definition, with no code of the package: every row of
// the log against every ID, keys compared as [value] writes them, which follows
// from what the types mean. NULL equals nothing.
type naive struct {
	names                           string
	rows                            []string // in order: the log's, then the ID set's
	rowsIn, keysNull, total, member int64    // member: ID rows that a log row met
	void                            int64    // log rows whose key is not NULL, and none under the rule
}

// naiveSide is a table with the keys of its rows.
type naiveSide struct {
	rec  arrow.Record
	keys []string
	null []bool // NULL in a part
	void []bool // no key under the rule
	cell [][]string
}

func newNaiveSide(t testing.TB, rec arrow.Record, paths [][]string, rule string) *naiveSide {
	n := int(rec.NumRows())
	s := &naiveSide{rec: rec, keys: make([]string, n), null: make([]bool, n), void: make([]bool, n), cell: make([][]string, n)}
	for i := range n {
		s.keys[i], s.null[i], s.void[i] = key(t, rec, paths, i, rule)
		for _, a := range rec.Columns() {
			s.cell[i] = append(s.cell[i], value(t, a, i))
		}
	}
	return s
}

// key returns the values at the paths in row i under a rule; null is true if
// one is NULL, and else void if one is no UUID and should be.
func key(t testing.TB, rec arrow.Record, paths [][]string, i int, rule string) (k string, null, void bool) {
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

// nestedLoop joins.
func nestedLoop(t testing.TB, log, ids arrow.Record, logKey, idKey [][]string, rule string, typ join.Type) *naive {
	l, r := newNaiveSide(t, log, logKey, rule), newNaiveSide(t, ids, idKey, rule)
	var shared []string // key columns of one name
	for i, p := range logKey {
		if len(p) == 1 && slices.Equal(p, idKey[i]) {
			shared = append(shared, p[0])
		}
	}
	out := &naive{rowsIn: log.NumRows()}
	out.names = answerNames(log.Schema(), ids.Schema(), shared, typ)
	pay := func(i int) (s string) { // the ID's own columns
		for c, f := range ids.Schema().Fields() {
			if slices.Contains(shared, f.Name) {
				continue
			}
			if i < 0 {
				s += " NULL"
			} else {
				s += " " + r.cell[i][c]
			}
		}
		return s
	}
	payload := make([]string, ids.NumRows())
	for i := range payload {
		payload[i] = pay(i)
	}
	met := make([]bool, ids.NumRows())
	for i := range l.keys {
		if l.null[i] {
			out.keysNull++
		} else if l.void[i] {
			out.void++
		}
		row, any := strings.Join(l.cell[i], " "), false
		if !l.null[i] && !l.void[i] {
			for k := range r.keys {
				if r.null[k] || r.keys[k] != l.keys[i] {
					continue
				}
				if any, met[k] = true, true; typ != join.Semi && typ != join.Anti {
					out.rows = append(out.rows, row+payload[k])
				}
			}
		}
		switch {
		case any && typ == join.Semi, !any && typ == join.Anti:
			out.rows = append(out.rows, row)
		case !any && (typ == join.Left || typ == join.Full):
			out.rows = append(out.rows, row+pay(-1))
		}
	}
	for i := range met {
		if !r.null[i] {
			out.total++
		}
		if met[i] {
			out.member++
		} else if typ == join.Right || typ == join.Full {
			var row []string
			for _, f := range log.Schema().Fields() {
				v := "NULL"
				if slices.Contains(shared, f.Name) {
					v = r.cell[i][ids.Schema().FieldIndices(f.Name)[0]]
				}
				row = append(row, v)
			}
			out.rows = append(out.rows, strings.Join(row, " ")+payload[i])
		}
	}
	return out
}

// answerNames names the columns of an answer: the log's, and then the ID set's
// but for shared keys, with "_ids" behind names that are taken.
func answerNames(log, ids *arrow.Schema, shared []string, typ join.Type) string {
	var out []string
	for _, f := range log.Fields() {
		out = append(out, f.Name)
	}
	if typ == join.Semi || typ == join.Anti {
		return strings.Join(out, " ")
	}
	for _, f := range ids.Fields() {
		if slices.Contains(shared, f.Name) {
			continue
		}
		name := f.Name
		for slices.Contains(out, name) {
			name += "_ids"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}
