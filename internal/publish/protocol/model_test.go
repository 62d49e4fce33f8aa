package protocol

import "fmt"

// store says what storage does.
type store struct {
	conditionalDelete bool
	noExclusive       bool // creates overwrite
	weakList          bool // a listing may be an old one
	copies            bool // publish is copy and delete
	etags             bool // objects of the same content have the same identity
	blocks            bool // a publish discards what else is staged for the name
}

// fault is a mistake in the protocol, or a part of it that is left out.
type fault struct {
	markFirst, removeAfterMark, removeLast                bool
	swapNotExclusive, planReplaced, partReplaced          bool
	noHigherCheck, leavesAtOnce, noConflict, rootReadOnce bool
	publishAgain, swapOnHalf, beginInHalf                 bool
	listedIdentities, copyAnswers                         bool
	dropsUnanswered, badForgets, trustsSettled            bool
	readsChanged, runWithoutBase, noTombstone             bool
	doneThoughDamaged, markOnce                           bool
	noSyncRoot, noSyncMark, noSyncNames, noSyncRemovals   bool
}

// model is what is explored.
type model struct {
	store         store
	fault         fault
	committedList bool // the root has a list of the RUNs that were committed
	renames       bool // outputs of recipe 2 have other names
	cleans        bool // old generations, plans and parts are deleted
	power         bool // power may be lost
	alone         bool // a process begins when no other is left
	fence         bool // each process begins with a generation that late creates of earlier ones do not reach
	planFile      bool // the first worker decides what is to do; otherwise that is in the digest of the RUN
	plainMark     bool // a power loss leaves no _SUCCESS to plain readers while files change
	coarse        bool // root and _SUCCESS are read in one step when a process leaves: fewer states
	strict        bool // deletes are no excuse
	roles         []role
	slots         []uint8          // the role of each process that may begin; equal ones in a row begin in order
	was           [maxInputs]uint8 // versions at first
	changes       []change
	changesLeft   uint8
	lateLeft      uint8
	harmLeft      uint8 // files that a user deletes
	expiryLeft    uint8 // staged files that storage drops, as they are old
	before        bool  // role 0 has run before

	choice  int    // of the step that is made
	ended   ending // of the process that ended last
	covered covered
	garbage garbage
	tries   int // of runs alone, at most
}

// change is what may happen to an input.
type change struct{ input, from, to uint8 }

// nameOf returns the name of an output.
func (m *model) nameOf(input int, c content) int {
	if m.renames && c>>4 == 2 {
		input += maxInputs
	}
	return input
}

// first returns the state in which an exploration begins.
func (m *model) first() (w world) {
	w.versions = m.was
	w.changesLeft, w.lateLeft, w.harmLeft, w.expiryLeft = m.changesLeft, m.lateLeft, m.harmLeft, m.expiryLeft
	if m.power {
		w.power = 1
	}
	if m.before {
		m.begin(&w, firstFresh-1, 0)
		for w.procs[0].pc != idle {
			m.step(&w, &w.procs[0])
		}
	}
	if m.power {
		w.durable = durable{names: w.names, success: w.success}
		for n, r := range w.roots {
			w.durable.roots[n] = r.num != 0
		}
	}
	return w
}

// read returns the newest generation, as a process finds it: a listing, of which the maximum counts,
// or a later one that it knows of; then the next numbers by name until one is missing. Only weak
// listings give a choice.
func (m *model) read(w *world, p *proc) *root {
	if !m.store.weakList {
		return w.newest()
	}
	all := m.readable(w, p)
	r := &w.roots[all[min(m.choice, len(all)-1)]]
	p.known = r.num
	return r
}

// readable returns the numbers of the generations that a process may find, the newest first.
func (m *model) readable(w *world, p *proc) (all []int) {
	for n := maxRoots - 1; n >= 0; n-- {
		if (n == 0 || w.roots[n].num != 0) && w.roots[n+1].num == 0 && (n >= int(p.known) || len(all) == 0) {
			all = append(all, n)
		}
	}
	return all
}

// choices is the number of ways in which the next step of a process may go.
func (m *model) choices(w *world, p *proc) int {
	switch p.pc {
	case readRoot, swapRead, swapCheck, leaveRoot:
		if m.store.weakList {
			return len(m.readable(w, p))
		}
	case publishes:
		if m.fault.listedIdentities {
			return 2
		}
	case findRun:
		return max(len(m.complete(w, p)), 1)
	}
	return 1
}

// event is what happens between two states.
type event struct{ kind, who, arg uint8 }

const (
	begins     uint8 = iota // a process begins
	steps                   // a process does its next action
	delays                  // the next write of a process is sent, and its answer does not come: it may take effect later
	lands                   // such a write takes effect
	changes                 // an input changes
	harms                   // a user deletes an output
	expires                 // storage drops a staged file, as it is old
	kills                   // a process ends where it is; only if it must not overlap with others
	losesPower              // all processes end; what was not synced is undone, or not
)

// each calls f with each event that can happen, and the state after it.
func (m *model) each(w *world, f func(event, *world)) {
	var next world
	busy := 0
	for i := range w.procs {
		if w.procs[i].pc != idle {
			busy++
		}
	}
	for slot, r := range m.slots {
		if w.begun[slot] || slot > 0 && m.slots[slot-1] == r && !w.begun[slot-1] || m.alone && busy > 0 {
			continue
		}
		next = *w
		next.begun[slot] = true
		if m.fence {
			next.clock++
		}
		m.begin(&next, uint8(slot), r)
		f(event{begins, uint8(slot), r}, &next)
	}
	for i := range w.procs {
		p := &w.procs[i]
		if p.pc == idle {
			continue
		}
		for c := range m.choices(w, p) {
			next = *w
			m.choice = c
			m.step(&next, &next.procs[i])
			next.sort()
			f(event{steps, uint8(i), uint8(c)}, &next)
		}
		if m.alone {
			next = *w
			next.procs[i] = proc{}
			next.sort()
			f(event{kills, uint8(i), 0}, &next)
		}
		if a := actions[p.pc]; w.lateLeft > 0 && a.write != nil {
			next = *w
			m.choice = 0
			next.lateLeft--
			q := &next.procs[i]
			next.delay(a.write(m, &next, q))
			if m.fault.dropsUnanswered && q.pc == swapCreate {
				m.drop(&next, q.mine)
				*q = proc{}
				next.sort()
			}
			f(event{delays, uint8(i), 0}, &next)
		}
	}
	for i := range w.late {
		if w.late[i].op != none {
			next = *w
			m.land(&next, i)
			f(event{lands, uint8(i), 0}, &next)
		}
	}
	m.eachMishap(w, f)
}

// eachMishap is each, for what processes do not do.
func (m *model) eachMishap(w *world, f func(event, *world)) {
	for i, c := range m.changes {
		if w.changesLeft > 0 && w.versions[c.input] == c.from {
			next := *w
			next.changesLeft--
			next.versions[c.input] = c.to
			f(event{changes, uint8(i), 0}, &next)
		}
	}
	for i := range w.names {
		if w.harmLeft > 0 && w.names[i].tok != 0 {
			next := *w
			next.harmLeft--
			next.names[i], next.hit[i] = object{}, true
			f(event{harms, uint8(i), 0}, &next)
		}
	}
	for t := range w.tokens {
		if o := w.tokens[t]; w.expiryLeft > 0 && o.live {
			next := *w
			next.expiryLeft--
			if next.tokens[t].live = false; !o.out {
				next.tokens[t] = staged{}
			}
			next.hit[m.nameOf(token(t).input(), o.is)] = true
			f(event{expires, uint8(t), 0}, &next)
		}
	}
	if w.power > 0 {
		m.eachLoss(w, f)
	}
}

// eachLoss loses power: each change of a name that was not synced is undone, or not.
func (m *model) eachLoss(w *world, f func(event, *world)) {
	var open []int
	for i := range w.names {
		if w.names[i] != w.durable.names[i] {
			open = append(open, i)
		}
	}
	mark := len(open)
	if w.success != w.durable.success {
		open = append(open, -1)
	}
	for n := range w.roots {
		if w.roots[n].num != 0 && !w.durable.roots[n] {
			open = append(open, n)
		}
	}
	for undone := range 1 << len(open) {
		next := *w
		next.power, next.procs = 0, [maxProcs]proc{}
		for k, at := range open {
			switch {
			case undone>>k&1 == 0:
			case k < mark:
				if t := next.names[at].tok; t != 0 {
					next.tokens[t].live, next.tokens[t].out = true, false
				}
				if t := w.durable.names[at].tok; t != 0 {
					next.tokens[t].out = true
				}
				next.names[at] = w.durable.names[at]
			case at == -1:
				next.success = w.durable.success
			default:
				next.roots[at] = root{}
			}
		}
		next.durable = durable{}
		m.checkMark(&next)
		f(event{losesPower, 0, uint8(undone)}, &next)
	}
}

// begin starts a process. It does its first read at once.
func (m *model) begin(w *world, slot, r uint8) {
	for i := range w.procs {
		if p := &w.procs[i]; p.pc == idle {
			*p = proc{slot: slot, role: r, pc: listInputs}
			if m.roles[r].committer {
				p.pc = findRun
			} else {
				m.step(w, p)
			}
			w.sort()
			return
		}
	}
	panic("maxProcs is too small")
}

// step lets a process do its next action.
func (m *model) step(w *world, p *proc) {
	a, r := actions[p.pc], reply{}
	m.covered.actions[p.pc] = true
	if a.write != nil {
		q := a.write(m, w, p)
		r = m.apply(w, &q)
	}
	a.then(m, w, p, r)
	m.forget(p)
}

// delay keeps a write for later. Two of them have no order.
func (w *world) delay(q request) {
	for i := range w.late {
		if w.late[i].op == none {
			w.late[i] = q
			break
		}
	}
	if w.late[1].op != none && w.late[1].op < w.late[0].op {
		w.late[0], w.late[1] = w.late[1], w.late[0]
	}
}

// land lets a late write take effect.
func (m *model) land(w *world, i int) {
	q := w.late[i]
	m.covered.late[q.op] = true
	copy(w.late[i:], w.late[i+1:])
	w.late[maxLate-1] = request{}
	m.apply(w, &q)
}

// sort puts processes in the order of their slots, those that ended last.
func (w *world) sort() {
	p := &w.procs
	for i := 1; i < maxProcs; i++ {
		for k := i; k > 0 && p[k].pc != idle && (p[k-1].pc == idle || p[k].slot < p[k-1].slot); k-- {
			p[k-1], p[k] = p[k], p[k-1]
		}
	}
}

// text returns an event as traces have it. w is the state before it.
func (m *model) text(w *world, e event) string {
	who := func() string {
		p := &w.procs[e.who]
		return m.who(p.slot, p.role)
	}
	switch e.kind {
	case begins:
		return m.who(e.who, e.arg) + " begins, and lists the inputs"
	case steps, delays:
		p := w.procs[e.who]
		s := who() + " " + actions[p.pc].name
		if a := actions[p.pc]; a.write != nil {
			q := a.write(m, w, &p)
			s += " (" + q.String() + ")"
		}
		if e.kind == delays {
			s += ": no answer, it may take effect later"
		}
		return s
	case lands:
		return "late: " + w.late[e.who].String()
	case changes:
		c := m.changes[e.who]
		return fmt.Sprintf("input %d is version %d now", c.input, c.to)
	case harms:
		return fmt.Sprintf("a user deletes output %d", e.who)
	case expires:
		return fmt.Sprintf("the staged file of token %d expires", e.who)
	case kills:
		return who() + " is killed"
	}
	return fmt.Sprintf("power is lost (undone: %b)", e.arg)
}

func (m *model) who(slot, r uint8) string {
	o := m.roles[r]
	if o.committer {
		return fmt.Sprintf("p%d (committer)", slot)
	}
	return fmt.Sprintf("p%d (recipe %d, worker %d of %d)", slot, o.recipe, o.worker, o.of)
}

func (q request) String() string {
	switch q.op {
	case none:
		return "nothing"
	case createRoot:
		return "create " + q.root.String()
	case publish, copyToken, removeName, dropToken:
		return fmt.Sprintf("%s %d at name %d", opNames[q.op], q.tok, q.num)
	}
	return fmt.Sprintf("%s %d %d", opNames[q.op], q.num, q.unit)
}

func (r root) String() string {
	s := fmt.Sprintf("generation %d", r.num)
	if r.settled {
		s += " settled"
	}
	for i, e := range r.entries {
		if e.tok != 0 {
			s += fmt.Sprintf(" %d:token %d of recipe %d version %d", i, e.tok, e.is>>4, e.is&15)
			if e.bad {
				s += " damaged"
			}
		}
	}
	return s
}

// String returns what is stored.
func (w *world) String() string {
	s := "    root: " + w.newest().String() + "; files:"
	for i, o := range w.names {
		if o.tok != 0 {
			s += fmt.Sprintf(" %d=token %d", i, o.tok)
		}
	}
	if w.success != 0 {
		s += fmt.Sprintf("; _SUCCESS %d", w.success)
	}
	return s
}
