package protocol

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// found is the first trace to a state in which something does not hold.
type found struct {
	what  string
	trace []string
}

func (f *found) String() string { return f.what + "\n  " + strings.Join(f.trace, "\n  ") }

// covered is what happened at least once.
type covered struct {
	actions [clean + 1]bool
	endings [incomplete + 1]bool
	late    [dropPart + 1]bool
}

// garbage counts the ends with old generations, staged files that no root lists, plans, and parts.
type garbage struct{ roots, tokens, plans, parts int }

// result is what an exploration found.
type result struct {
	states, edges, ends, tries int
	took                       time.Duration
	bad                        *found
	garbage                    garbage
}

// key stands for a state: 128 bits of a hash of its bytes.
type key [2]uint64

var _ = [1]bool{}[unsafe.Alignof(world{})-1] // it has nothing but bytes, so no padding

func keyOf(w *world) key {
	u := xxh3.Hash128(unsafe.Slice((*byte)(unsafe.Pointer(w)), unsafe.Sizeof(*w)))
	return key{u.Hi, u.Lo}
}

// explorer is an exploration under way.
type explorer struct {
	m      *model
	seen   map[key]struct{}
	finals map[key]struct{} // of checkFinal
	all    []origin         // by state, in the order in which they were found
	queue  queue            // of states whose events were not looked at yet
	result
}

// queue holds states in chunks, which it uses again.
type queue struct {
	chunks, spare [][]world
	at            int // next in the first chunk
}

func (q *queue) push(w *world) {
	n := len(q.chunks)
	if n == 0 || len(q.chunks[n-1]) == cap(q.chunks[n-1]) {
		if k := len(q.spare); k > 0 {
			q.chunks, q.spare = append(q.chunks, q.spare[k-1][:0]), q.spare[:k-1]
		} else {
			q.chunks = append(q.chunks, make([]world, 0, 256))
		}
		n++
	}
	q.chunks[n-1] = append(q.chunks[n-1], *w)
}

// pop returns the oldest state, or nil. It is valid until the next pop.
func (q *queue) pop() *world {
	if len(q.chunks) > 0 && q.at == cap(q.chunks[0]) {
		q.spare = append(q.spare, q.chunks[0])
		q.chunks, q.at = q.chunks[1:], 0
	}
	if len(q.chunks) == 0 || q.at == len(q.chunks[0]) {
		return nil
	}
	q.at++
	return &q.chunks[0][q.at-1]
}

// origin says how a state was reached.
type origin struct {
	from int32
	event
}

// explore visits all states, in the order of their distance from the first, until something does not
// hold.
func (m *model) explore() result {
	begin := time.Now()
	x := &explorer{m: m, seen: map[key]struct{}{}, finals: map[key]struct{}{}}
	first := m.first()
	x.visit(&first, origin{})
	x.queue.push(&first)
	for at := int32(0); x.bad == nil; at++ {
		w := x.queue.pop()
		if w == nil {
			break
		}
		m.each(w, func(e event, next *world) {
			if x.edges++; x.bad == nil && x.visit(next, origin{at, e}) {
				x.queue.push(next)
			}
		})
	}
	x.states, x.ends, x.tries = len(x.all), len(x.finals), m.tries
	x.took, x.garbage = time.Since(begin), m.garbage
	return x.result
}

// visit checks a state, and reports whether it is a new one.
func (x *explorer) visit(w *world, o origin) bool {
	k := keyOf(w)
	if _, old := x.seen[k]; old {
		return false
	}
	x.seen[k] = struct{}{}
	x.all = append(x.all, o)
	what := x.m.check(w)
	if what == "" {
		what = x.m.checkQuiet(w)
	}
	if what == "" {
		what = x.m.checkFinal(w, x.finals)
	}
	if what != "" {
		x.bad = x.trace(what)
	}
	return true
}

// trace returns how the state found last is reached.
func (x *explorer) trace(what string) *found {
	var path []event
	for at := int32(len(x.all) - 1); at > 0; at = x.all[at].from {
		path = append(path, x.all[at].event)
	}
	slices.Reverse(path)
	f, w := &found{what: what}, x.m.first()
	for _, e := range path {
		f.trace = append(f.trace, x.m.text(&w, e))
		var after world
		x.m.each(&w, func(other event, next *world) {
			if other == e {
				after = *next
			}
		})
		if after.String() != w.String() {
			f.trace = append(f.trace, after.String())
		}
		w = after
	}
	return f
}

func report(t *testing.T, name string, res result) {
	t.Logf("%-80s %8d states %9d edges %7d ends, %d tries, %6.2f s; left: %+v", name, res.states, res.edges, res.ends, res.tries, res.took.Seconds(), res.garbage)
}

func (res *result) add(o result) {
	res.states += o.states
	res.edges += o.edges
	res.ends += o.ends
	res.tries = max(res.tries, o.tries)
	res.took += o.took
	res.garbage.add(o.garbage)
}

func (g *garbage) add(o garbage) {
	g.roots += o.roots
	g.tokens += o.tokens
	g.plans += o.plans
	g.parts += o.parts
}

func (c *covered) add(o *covered) {
	for i, is := range o.actions {
		c.actions[i] = c.actions[i] || is
	}
	for i, is := range o.endings {
		c.endings[i] = c.endings[i] || is
	}
	for i, is := range o.late {
		c.late[i] = c.late[i] || is
	}
}
