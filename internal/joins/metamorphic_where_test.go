package joins_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// condition is a condition on rows of the log, in SQL and by definition: rows that it
// does not let through are removed from the log before the naive join.
type condition struct {
	text  string // empty: none
	truth func(d columnar, row int) truth
}

// truth is a value of SQL's logic: 0 is false, 1 NULL and 2 true.
type truth int

func truthOf(b bool) truth {
	if b {
		return 2
	}
	return 0
}

// rows returns the table with only the rows that satisfy the condition.
func (c condition) rows(d columnar) columnar {
	if c.text == "" {
		return d
	}
	rows := []int{}
	for i := range d.rows {
		if c.truth(d, i) == 2 {
			rows = append(rows, i)
		}
	}
	return d.subset(rows)
}

// drawCondition draws a condition on columns of the table, or none. number is the column that numbers
// the rows.
func (d columnar) drawCondition(r *rand.Rand, number string) condition {
	if r.IntN(2) == 0 {
		return condition{}
	}
	return d.drawTree(r, number, r.IntN(3))
}

// drawIDCondition draws a condition on the IDs, or none. Columns of text are strings, except the key.
func (c *recipe) drawIDCondition(r *rand.Rand) condition {
	switch {
	case c.idForm.format == dataset.Lines && !c.idForm.mixed:
		return condition{}
	case !source.IsText(c.idForm.format) || c.idForm.mixed:
		return c.ids.drawCondition(r, "m")
	case r.IntN(2) == 0:
		return condition{}
	}
	at := slices.IndexFunc(c.ids.leaves, func(l leaf) bool { return l.path[0] == "m" })
	most := strconv.Itoa(r.IntN(c.ids.rows + 1))
	return condition{"m <= '" + most + "'", func(d columnar, i int) truth { return truthOf(d.leaves[at].cells[i] <= most) }}
}

func (d columnar) drawTree(r *rand.Rand, number string, depth int) condition {
	if depth == 0 {
		return d.drawTest(r, number)
	}
	a, b := d.drawTree(r, number, depth-1), d.drawTree(r, number, depth-1)
	switch r.IntN(5) {
	case 0, 1:
		return condition{"(" + a.text + ") and (" + b.text + ")", func(d columnar, i int) truth { return min(a.truth(d, i), b.truth(d, i)) }}
	case 2, 3:
		return condition{"(" + a.text + ") OR (" + b.text + ")", func(d columnar, i int) truth { return max(a.truth(d, i), b.truth(d, i)) }}
	}
	return condition{"NOT (" + a.text + ")", func(d columnar, i int) truth { return 2 - a.truth(d, i) }}
}

// drawTest draws a predicate on one column.
func (d columnar) drawTest(r *rand.Rand, number string) condition {
	l := d.leaves[r.IntN(len(d.leaves))]
	if r.IntN(2) == 0 { // the column that numbers the rows: statistics settle much
		l = d.leaves[slices.IndexFunc(d.leaves, func(l leaf) bool { return l.path[0] == number })]
	}
	cell := func(d columnar, i int) string {
		if plainType(l.dt).ID() == arrow.NULL {
			return null
		}
		for depth := 1; depth < len(l.path); depth++ {
			if d.void[strings.Join(l.path[:depth], "\x00")][i] {
				return null
			}
		}
		return d.leaves[slices.IndexFunc(d.leaves, func(o leaf) bool { return slices.Equal(o.path, l.path) })].cells[i]
	}
	var quoted []string
	for _, name := range l.path {
		quoted = append(quoted, `"`+strings.ReplaceAll(name, `"`, `""`)+`"`)
	}
	name := strings.Join(quoted, ".")
	test := func(text string, of func(v string) bool) condition {
		return condition{name + text, func(d columnar, i int) truth {
			v := cell(d, i)
			if v == null {
				return 1
			}
			return truthOf(of(v))
		}}
	}
	switch id := plainType(l.dt).ID(); {
	case l.json: // not as the operators below take it
	case l.path[0] == number, id == arrow.INT32 && r.IntN(4) > 0:
		num := func(v string) int {
			n, err := strconv.Atoi(v)
			if err != nil {
				panic(err)
			}
			return n
		}
		most := 4
		if l.path[0] == number {
			most = d.rows
		}
		a := r.IntN(most+2) - 1
		b := a + r.IntN(most+2)
		switch r.IntN(4) {
		case 0:
			return test(fmt.Sprintf(" between %d and %d", a, b), func(v string) bool { return a <= num(v) && num(v) <= b })
		case 1:
			return test(fmt.Sprintf(" >= %d", a), func(v string) bool { return num(v) >= a })
		case 2:
			return test(fmt.Sprintf(" < %d.5", a), func(v string) bool { return num(v) <= a })
		}
		return test(fmt.Sprintf(" in (%d, %d, %d)", a, b, (a+b)/2), func(v string) bool { return slices.Contains([]int{a, b, (a + b) / 2}, num(v)) })
	case id == arrow.STRING && len(l.path) == 1 && r.IntN(4) > 0:
		word := choose(r, "p", "q q", "", "red", "x")
		if r.IntN(2) == 0 {
			return test(" > '"+word+"'", func(v string) bool { return v > word })
		}
		return test(" = '"+word+"'", func(v string) bool { return v == word })
	case id == arrow.BOOL && r.IntN(4) > 0:
		return test("", func(v string) bool { return v == "true" })
	}
	return condition{name + " is not null", func(d columnar, i int) truth { return truthOf(cell(d, i) != null) }}
}
