package protocol

import (
	"fmt"
	"strings"
)

// wrong is what an event did that must not happen.
type wrong uint8

const (
	_ wrong = iota
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
	return m.checkSettled(w, r)
}

// checkSettled compares the files with a root.
func (m *model) checkSettled(w *world, r *root) string {
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

// checkQuiet checks a state in which all processes have ended by themselves, and nothing has disturbed
// them.
func (m *model) checkQuiet(w *world) string {
	for slot := range m.slots {
		if !w.begun[slot] {
			return ""
		}
	}
	r := w.newest()
	if w.procs[0].pc != idle || w.changesLeft != m.changesLeft || w.lateLeft != m.lateLeft || w.harmLeft != m.harmLeft ||
		w.expiryLeft != m.expiryLeft || m.power || m.alone || m.roles[0].noCommit || w.hit != [maxNames]bool{} {
		return ""
	}
	for i := range m.roles {
		if r.settled && w.success == r.num && m.asSeen(r, uint8(i), m.scoped(&m.roles[i], w.versions), [maxInputs]token{}) {
			return ""
		}
	}
	return fmt.Sprintf("S6: all processes have ended, but the root is %s, and _SUCCESS of %d", r, w.success)
}

// scoped returns the versions of the inputs of a role.
func (m *model) scoped(o *role, versions [maxInputs]uint8) [maxInputs]uint8 {
	for i := range versions {
		versions[i] *= o.scope >> i & 1
	}
	return versions
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
			m.tries = max(m.tries, try+1)
			return what
		}
		how = append(how, fmt.Sprint(m.ended))
	}
	return "it does not exit 0 in three tries, but " + strings.Join(how, ", ")
}

// note counts, for an end, what a sweep would find.
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
	plain := *o
	plain.force = false
	switch {
	case m.check(w) != "":
		return m.check(w)
	case r.num != 0 && !r.settled:
		return "the root is not settled"
	case w.success != r.num:
		return fmt.Sprintf("_SUCCESS is of generation %d, the root is %d", w.success, r.num)
	case !m.asSeenBy(r, &plain, m.scoped(o, w.versions), [maxInputs]token{}):
		return "the root is not by its recipe: " + r.String()
	}
	for i, e := range r.entries {
		if e.is != 0 && w.names[m.nameOf(i, e.is)].ident != e.ident {
			return fmt.Sprintf("output %d is not there", i)
		}
	}
	return ""
}
