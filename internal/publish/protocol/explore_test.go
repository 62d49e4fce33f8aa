package protocol

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/zeebo/xxh3"
)

type wrong uint8

const (
	nothing wrong = iota
	exitTooEarly
	overRival
	markSurvives
)

var wrongs = [...]string{"",
	"S3: a run exits 0, but no settled root had its recipe and the versions it saw since it began",
	"S3: a swap replaces an entry that another run made since this one began",
	"S5: after a power loss _SUCCESS is there, though files were changed since"}

// checkMark notes a _SUCCESS that is there though a publish has begun to change files.
func (m *model) checkMark(w *world) {
	r := w.newest()
	for i, e := range r.entries {
		if m.plainMark && w.success != 0 && r.publish>>i&1 == 1 && w.names[m.nameOf(i, e.is)].tok == e.tok {
			w.wrong = markSurvives
		}
	}
	for i, o := range r.remove {
		if m.plainMark && w.success != 0 && o.ident != 0 && w.names[i] != o {
			w.wrong = markSurvives
		}
	}
}

// checkSwap notes a swap over an entry that is not as it was when the run began.
func (m *model) checkSwap(w *world, was, now *root) {
	for i := range was.entries {
		if m.store.noExclusive && was.num == now.num && !was.settled {
			continue // the run that it overwrites has not exited 0
		}
		if e, f := &was.entries[i], &now.entries[i]; *e != *f && e.is != f.is && e.stamp() != now.base[i] {
			w.wrong = overRival
		}
	}
}

// check returns what does not hold in a state.
func (m *model) check(w *world) string {
	if w.wrong != 0 {
		return wrongs[w.wrong]
	}
	for i := range maxInputs {
		if w.names[i].tok != 0 && w.names[i+maxInputs].tok != 0 {
			return fmt.Sprintf("S1: input %d has two outputs", i)
		}
	}
	for i, o := range w.names {
		if o.tok != 0 && (!w.tokens[o.tok].out || o.tok.input() != i%maxInputs) {
			return fmt.Sprintf("S1: file %d was not published", i)
		}
	}
	r := w.newest()
	if w.success > r.num {
		return fmt.Sprintf("S5: _SUCCESS is of generation %d, the root of %d", w.success, r.num)
	}
	if r.num == 0 || !r.settled {
		return ""
	}
	listed := [maxNames]object{}
	for i, e := range r.entries {
		if e.is == 0 {
			continue
		}
		name := m.nameOf(i, e.is)
		listed[name] = object{e.tok, e.ident}
		switch at := w.names[name]; {
		case at.tok != 0 && at.ident == e.ident && !e.bad && w.tokens[at.tok].is != e.is:
			return fmt.Sprintf("S2: a reader finds recipe %d version %d in output %d, the root says %d and %d", w.tokens[at.tok].is>>4, w.tokens[at.tok].is&15, i, e.is>>4, e.is&15)
		case e.bad && (!w.hit[name] || m.strict):
			return fmt.Sprintf("S5: output %d is damaged, and no delete did it", i)
		case at.ident != e.ident && (!w.hit[name] || m.strict) && !e.bad:
			return fmt.Sprintf("S5: the root is settled, but output %d is token %d identity %d, not %d identity %d", i, at.tok, at.ident, e.tok, e.ident)
		}
	}
	for i, o := range w.names {
		if o.tok != 0 && listed[i].tok == 0 {
			return fmt.Sprintf("S5: the root is settled, but file %d is not listed", i)
		}
	}
	return ""
}

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
	states, edges, finals int
	took                  time.Duration
	bad                   *found
	garbage               garbage
}

type key [2]uint64

func keyOf(w *world) key {
	u := xxh3.Hash128(unsafe.Slice((*byte)(unsafe.Pointer(w)), unsafe.Sizeof(*w)))
	return key{u.Hi, u.Lo}
}

// explore visits all states, in the order of their distance from the first.
func (m *model) explore() (res result) {
	begin := time.Now()
	type step struct {
		from int32
		event
	}
	seen := map[key]struct{}{}
	finals := map[key]struct{}{}
	var all []step // by state
	visit := func(w *world, from int32, e event) string {
		k := keyOf(w)
		if _, old := seen[k]; old {
			return ""
		}
		seen[k] = struct{}{}
		all = append(all, step{from, e})
		if what := m.check(w); what != "" {
			return what
		}
		return m.checkFinal(w, finals)
	}
	trace := func(what string) *found {
		var path []event
		for at := int32(len(all) - 1); at > 0; at = all[at].from {
			path = append(path, all[at].event)
		}
		w := m.first()
		f := &found{what: what}
		for i := len(path) - 1; i >= 0; i-- {
			f.trace = append(f.trace, m.text(&w, path[i]))
			var after world
			m.each(&w, func(e event, next *world) {
				if e == path[i] {
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
	w := m.first()
	visit(&w, 0, event{})
	level, at := []world{w}, int32(0)
	for len(level) > 0 && res.bad == nil {
		var deeper []world
		for i := range level {
			m.each(&level[i], func(e event, next *world) {
				res.edges++
				n := len(all)
				if res.bad != nil {
					return
				}
				if what := visit(next, at, e); what != "" {
					res.bad = trace(what)
				}
				if len(all) > n {
					deeper = append(deeper, *next)
				}
			})
			at++
		}
		level = deeper
	}
	res.states, res.finals, res.took, res.garbage = len(all), len(finals), time.Since(begin), m.garbage
	return res
}

// checkFinal kills all processes in a state, lets late writes take effect or not, and runs each run
// once more, until it exits 0. Then everything must be as it wants.
func (m *model) checkFinal(w *world, finals map[key]struct{}) string {
	end := *w
	end.procs, end.begun, end.power = [maxProcs]proc{}, [firstFresh]bool{}, 0
	end.changesLeft, end.harmLeft, end.lateLeft, end.expiryLeft = 0, 0, 0, 0
	k := keyOf(&end)
	if _, old := finals[k]; old {
		return ""
	}
	finals[k] = struct{}{}
	covered := m.covered
	defer func() { m.covered = covered }()
	for i := range end.late {
		if end.late[i].op != none {
			next := end
			m.land(&next, i)
			if what := m.checkFinal(&next, finals); what != "" {
				return "late: " + end.late[i].String() + ", then " + what
			}
		}
	}
	end.late = [maxLate]request{}
	for r, o := range m.roles {
		if o.worker != 0 || o.committer {
			continue
		}
		next := end
		if what := m.finalRun(&next, uint8(r)); what != "" {
			return fmt.Sprintf("S4: all are killed, then recipe %d runs alone: %s", o.recipe, what)
		}
	}
	return ""
}

// finalRun runs all workers of a run, one after the other, up to three times.
func (m *model) finalRun(w *world, first uint8) string {
	o := m.roles[first]
	var how []string
	for try := range 3 {
		idled := true // no worker of several had anything to do
		for r, of := range m.roles {
			if of.recipe != o.recipe || of.of != o.of {
				continue
			}
			m.choice = 0
			m.begin(w, uint8(firstFresh+try*maxInputs)+of.worker, uint8(r))
			for n := 0; w.procs[0].pc != idle; n++ {
				if m.choice = 0; w.procs[0].pc == findRun {
					m.choice = m.choices(w, &w.procs[0]) - 1
				}
				if m.step(w, &w.procs[0]); n == 200 {
					return "it does not end"
				}
			}
			idled = idled && (m.ended == done || of.committer)
		}
		what := m.checkEnd(w, &o)
		if m.ended == done || m.ended == incomplete && idled {
			m.garbage.note(w)
			return what
		}
		how = append(how, fmt.Sprint(m.ended))
	}
	return "it does not exit 0 in three tries, but " + strings.Join(how, ", ")
}

// note counts what a sweep would find.
func (g *garbage) note(w *world) {
	r := w.newest()
	for n := range w.roots[:r.num] {
		if w.roots[n].num != 0 {
			g.roots++
			break
		}
	}
	for t, o := range w.tokens {
		if o.live && r.entries[token(t).input()].tok != token(t) {
			g.tokens++
			break
		}
	}
	for _, u := range w.runs {
		g.plans += count(u.plan.exists)
		g.parts += count(u.parts != [maxInputs]part{})
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// checkEnd returns what is missing after a run that was alone.
func (m *model) checkEnd(w *world, o *role) string {
	r := w.newest()
	seen := w.versions
	for i := range seen {
		seen[i] *= o.scope >> i & 1
	}
	plain := *o
	plain.force = false
	switch {
	case m.check(w) != "":
		return m.check(w)
	case r.num != 0 && !r.settled:
		return "the root is not settled"
	case w.success != r.num:
		return fmt.Sprintf("_SUCCESS is of generation %d, the root is %d", w.success, r.num)
	case !m.asSeenBy(r, &plain, seen, [maxInputs]token{}):
		return "the root is not by its recipe: " + r.String()
	}
	for i, e := range r.entries {
		if e.is != 0 && w.names[m.nameOf(i, e.is)].ident != e.ident {
			return fmt.Sprintf("output %d is not there", i)
		}
	}
	return ""
}

func report(t *testing.T, name string, res result) {
	t.Logf("%-80s %8d states %9d edges %7d ends %6.2f s; left: %+v", name, res.states, res.edges, res.finals, res.took.Seconds(), res.garbage)
}

func (res *result) add(o result) {
	res.states += o.states
	res.edges += o.edges
	res.finals += o.finals
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
