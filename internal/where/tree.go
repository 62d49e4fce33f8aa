package where

import (
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// op is the operation of a node on its children.
type op uint8

// The operations, from the loosest to the tightest.
const (
	opOr op = iota
	opAnd
	opNot
	opIs    // kid IS truth
	opConst // the constant truth
	opTest  // a predicate
)

// node is a node of a condition. AND and OR have two children or more, none of
// which has the same operation.
type node struct {
	op    op
	kids  []*node
	truth Truth // opIs, opConst
	test  *test // opTest
}

// testOp is how a predicate tests a column.
type testOp uint8

const (
	testBool testOp = iota // the column itself, a boolean
	testIsNull
	testEqual
	testLess
	testLessEqual
	testGreater
	testGreaterEqual
	testDistinct // IS DISTINCT FROM
	testIn
	testLike
)

// spelling has the operators between a column and one literal.
var spelling = map[testOp]string{
	testEqual: "=", testLess: "<", testLessEqual: "<=", testGreater: ">", testGreaterEqual: ">=",
	testDistinct: "IS DISTINCT FROM", testLike: "LIKE",
}

// test is a predicate on one column.
type test struct {
	op   testOp
	path keys.Path
	args []literal
}

// join returns the conjunction or disjunction of conditions.
func join(op op, nodes ...*node) *node {
	var kids []*node
	for _, n := range nodes {
		if n.op == op {
			kids = append(kids, n.kids...)
		} else {
			kids = append(kids, n)
		}
	}
	return &node{op: op, kids: kids}
}

// not returns the negation of a condition.
func not(n *node) *node { return &node{op: opNot, kids: []*node{n}} }

// tests appends the predicates of the tree, from left to right.
func (n *node) tests(dst []*test) []*test {
	if n.op == opTest {
		return append(dst, n.test)
	}
	for _, kid := range n.kids {
		dst = kid.tests(dst)
	}
	return dst
}

// text returns the node in canonical form.
func (n *node) text() string {
	switch n.op {
	case opConst:
		return n.truth.String()
	case opTest:
		return n.test.text()
	case opNot:
		return "NOT " + n.kids[0].inside(opNot)
	case opIs:
		kid := n.kids[0]
		if kid.op == opTest && kid.test.op != testBool {
			return "(" + kid.text() + ") IS " + n.truth.String()
		}
		return kid.inside(opIs) + " IS " + n.truth.String()
	}
	parts := each.Slice(n.kids, func(kid *node) string { return kid.inside(n.op) })
	return strings.Join(parts, map[op]string{opAnd: " AND ", opOr: " OR "}[n.op])
}

// inside returns the text of a node as an operand, in parentheses if of binds tighter.
func (n *node) inside(of op) string {
	if n.op < of {
		return "(" + n.text() + ")"
	}
	return n.text()
}

func (t *test) text() string {
	column := pathText(t.path)
	switch t.op {
	case testBool:
		return column
	case testIsNull:
		return column + " IS NULL"
	case testIn:
		list := each.Slice(t.args, literal.String)
		return column + " IN (" + strings.Join(list, ", ") + ")"
	}
	return column + " " + spelling[t.op] + " " + t.args[0].String()
}

// pathText returns a path as conditions spell it.
func pathText(p keys.Path) string {
	parts := make([]string, len(p))
	for i, name := range p {
		if parts[i] = name; !isBare(name) {
			parts[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
	}
	return strings.Join(parts, ".")
}

// combine sets dst to the truth of the node for each row. next is the index of the
// node's first predicate.
func (n *node) combine(dst []Truth, preds [][]Truth, next *int) {
	switch n.op {
	case opTest:
		copy(dst, preds[*next])
		*next++
		return
	case opConst:
		fill(dst, n.truth)
		return
	}
	n.kids[0].combine(dst, preds, next)
	switch n.op {
	case opNot:
		for i, t := range dst {
			dst[i] = True - t
		}
	case opIs:
		for i, t := range dst {
			dst[i] = is(t, n.truth)
		}
	}
	var scratch []Truth
	for _, kid := range n.kids[1:] {
		var truths []Truth
		if kid.op == opTest {
			truths = preds[*next]
			*next++
		} else {
			if scratch == nil {
				scratch = make([]Truth, len(dst))
			}
			kid.combine(scratch, preds, next)
			truths = scratch
		}
		if n.op == opAnd {
			for i, t := range truths {
				dst[i] = min(dst[i], t)
			}
		} else {
			for i, t := range truths {
				dst[i] = max(dst[i], t)
			}
		}
	}
}

// is returns the truth of t IS want.
func is(t, want Truth) Truth {
	if t == want {
		return True
	}
	return False
}

// possible returns the truth values that the node may have. next is the index of
// its first predicate.
func (n *node) possible(preds []Truths, next *int) Truths {
	switch n.op {
	case opTest:
		*next++
		return preds[*next-1]
	case opConst:
		return n.truth.Set()
	}
	out := n.kids[0].possible(preds, next)
	switch n.op {
	case opNot:
		out = out.each(func(t Truth) Truth { return True - t })
	case opIs:
		out = out.each(func(t Truth) Truth { return is(t, n.truth) })
	case opAnd:
		for _, kid := range n.kids[1:] {
			other := kid.possible(preds, next)
			out = out.pairs(other, func(a, b Truth) Truth { return min(a, b) })
		}
	case opOr:
		for _, kid := range n.kids[1:] {
			other := kid.possible(preds, next)
			out = out.pairs(other, func(a, b Truth) Truth { return max(a, b) })
		}
	}
	return out
}

// each returns the set of f's results over the set.
func (s Truths) each(f func(Truth) Truth) (out Truths) {
	for t := False; t <= True; t++ {
		if s.Has(t) {
			out |= f(t).Set()
		}
	}
	return out
}

// pairs returns the set of f's results over all pairs of two sets.
func (s Truths) pairs(other Truths, f func(a, b Truth) Truth) (out Truths) {
	for t := False; t <= True; t++ {
		if other.Has(t) {
			out |= s.each(func(a Truth) Truth { return f(a, t) })
		}
	}
	return out
}
