package protocol

// Sizes of the model. Worker i of a run of several makes the output of input i.
const (
	maxInputs  = 3
	maxNames   = 2 * maxInputs // an output's name depends on its input and, if recipes rename, on its recipe
	maxSlots   = 16            // processes, one after the other those of the final run, too
	maxProcs   = 6             // at once
	maxRoots   = 16            // the number of the last generation
	maxRuns    = 8             // different RUNs
	maxLate    = 2
	maxTokens  = 1 + maxSlots*maxInputs
	firstFresh = 7 // slot of the first process of the final run
)

// content is what a file holds: recipe<<4 | version of the input. 0: no file.
type content uint8

func made(recipe, version uint8) content {
	if version == 0 {
		return 0
	}
	return content(recipe<<4 | version)
}

// token is a staged file: that of one process for one input. It is also the identity of the object
// that it becomes, except in stores that publish by copies.
type token uint8

func tokenOf(slot uint8, input int) token { return token(1 + int(slot)*maxInputs + input) }

func (t token) input() int { return int(t-1) % maxInputs }

// staged is the state of a token.
type staged struct {
	is   content
	live bool // staged and neither published nor dropped
	out  bool // was published
}

// object is a file under a plain name. Its tok is 0 if there is none.
type object struct {
	tok   token
	ident uint8
}

// entry is what a root says of an input. An entry without content is of an input whose output was
// removed: it keeps the token of that output.
type entry struct {
	tok   token
	is    content
	ident uint8 // of the published object, or of what is in its place if it is bad; 0: not known yet, or none
	bad   bool  // the publish found neither the token nor its content
}

// stamp tells an entry from all others that there ever were for its input.
func (e entry) stamp() token {
	if e.is == 0 && e.tok != 0 {
		return e.tok | 0x80 // removed
	}
	return e.tok
}

// root is a generation of the root manifest; num is 0 if it does not exist.
type root struct {
	num       uint8
	settled   bool
	entries   [maxInputs]entry
	publish   uint8            // the inputs whose entries are to be published
	remove    [maxNames]object // what is to be removed
	committed uint8            // the RUNs that were committed
	base      [maxInputs]token // ghost: the entries when the run began that made this generation
}

// run is a RUN: the digest of recipe, inputs, what the root says of them when it begins, and what is
// to do. It names parts. Its place in the table stands for the digest.
type run struct {
	recipe uint8 // 0: not used
	seen   [maxInputs]uint8
	base   [maxInputs]token
	todo   uint8 // inputs whose outputs are made or removed; unless there is a plan
	plan   plan
	parts  [maxInputs]part
	good   bool // ghost: a settled root was as this run wants since the first process of it began
}

type plan struct {
	exists       bool
	todo, remove uint8 // inputs
	base         [maxInputs]token
}

type part struct {
	exists bool
	toks   [maxInputs]token
}

// request is a write, of which storage makes one atomic step.
type request struct {
	op   op
	num  uint8 // a name, RUN, or generation
	unit uint8 // a worker, or an identity
	tok  token
	root root
	plan plan
	part part
}

type op uint8

const (
	none op = iota
	createPlan
	createPart
	createRoot
	publish     // exactly once: a second one finds no token
	copyToken   // stores without such a publish: a copy, as long as the source is there,
	dropToken   // and the removal of the source
	removeName  // of the identity unit, where storage has conditional deletes
	dropSuccess // delete _SUCCESS
	putSuccess
	dropRoot
	dropPlan
	dropPart
)

var opNames = [...]string{"nothing", "create plan", "create part", "create generation", "publish token", "copy token", "drop token", "remove file",
	"delete _SUCCESS", "put _SUCCESS", "delete generation", "delete plan", "delete part"}

type reply struct {
	ok  bool   // it took effect
	obj object // what is under the name after a publish
}

// durable is what a power loss may bring back, of what differs from the world.
type durable struct {
	names   [maxNames]object
	success uint8
	roots   [maxRoots + 1]bool
}

// world is a state of the model: inputs, storage, requests that may still take effect, and processes.
// It holds nothing but bytes, so that it is its own key.
type world struct {
	versions [maxInputs]uint8 // of the inputs; 0: gone
	names    [maxNames]object // plain names
	success  uint8            // _SUCCESS: the generation that it holds; 0: there is none
	tokens   [maxTokens]staged
	roots    [maxRoots + 1]root // by number
	runs     [maxRuns]run
	late     [maxLate]request
	procs    [maxProcs]proc

	idents  uint8   // given by copies
	clock   uint8   // counts processes
	durable durable // only if power may be lost

	begun                                              [firstFresh]bool // slots
	changesLeft, lateLeft, harmLeft, expiryLeft, power uint8            // what may still happen

	wrong wrong          // ghost: what does not hold
	hit   [maxNames]bool // ghost: an unconditional delete of something older removed it, or a user did
}

func (w *world) newest() *root {
	for n := maxRoots; n > 0; n-- {
		if w.roots[n].num != 0 {
			return &w.roots[n]
		}
	}
	return &w.roots[0]
}

// apply carries out a write.
func (m *model) apply(w *world, q *request) (r reply) {
	switch q.op {
	case createPlan:
		p := &w.runs[q.num].plan
		if r.ok = !p.exists || m.overwrites(m.fault.planReplaced); r.ok {
			*p = q.plan
		}
	case createPart:
		p := &w.runs[q.num].parts[q.unit]
		if r.ok = !p.exists || m.overwrites(m.fault.partReplaced); r.ok {
			if m.fault.partReplaced && p.exists {
				m.drop(w, p.toks)
			}
			*p = q.part
		}
	case createRoot:
		at := &w.roots[q.root.num]
		if r.ok = at.num == 0 || m.overwrites(m.fault.swapNotExclusive); r.ok {
			m.setRoot(w, &q.root)
		}
	case publish:
		t := &w.tokens[q.tok]
		if r.ok = t.live || m.fault.publishAgain; r.ok {
			t.live, t.out = false, true
			if m.store.blocks {
				m.discard(w, q)
			}
			m.put(w, q.num, object{q.tok, m.identOf(w, q.tok)})
		}
		r.obj = w.names[q.num]
	case copyToken:
		t := &w.tokens[q.tok]
		if r.ok = t.live; r.ok {
			w.idents++
			t.out = true
			m.put(w, q.num, object{q.tok, maxTokens + w.idents})
		}
		r.obj = w.names[q.num]
	case dropToken:
		w.tokens[q.tok].live = false
	case removeName:
		at := &w.names[q.num]
		if at.tok != 0 && (at.ident == q.unit || !m.store.conditionalDelete) {
			hit := q.tok != 0 && at.tok != q.tok
			m.put(w, q.num, object{})
			w.hit[q.num] = hit
		}
	case dropSuccess:
		w.success = 0
	case putSuccess:
		w.success = q.num
	case dropRoot:
		w.roots[q.num] = root{}
	case dropPlan:
		w.runs[q.num].plan = plan{}
	case dropPart:
		w.runs[q.num].parts[q.unit] = part{}
	}
	return r
}

// identOf returns the identity of the object that a token becomes.
func (m *model) identOf(w *world, t token) uint8 {
	if m.store.etags {
		return maxTokens + uint8(w.tokens[t].is)
	}
	return uint8(t)
}

// discard drops the other files staged for a name.
func (m *model) discard(w *world, q *request) {
	for t := range w.tokens {
		if o := &w.tokens[t]; o.live && m.nameOf(token(t).input(), o.is) == int(q.num) {
			*o = staged{}
		}
	}
}

// put replaces or removes a file.
func (m *model) put(w *world, name uint8, o object) {
	was := w.names[name].tok
	w.names[name], w.hit[name] = o, false
	if t := &w.tokens[was]; was != o.tok && !t.live && !m.power && !m.fault.publishAgain {
		*t = staged{}
	}
}

func (m *model) overwrites(fault bool) bool { return fault || m.store.noExclusive }

// keepsBase reports whether generations are stored with their base. Otherwise it is dropped, so that
// fewer states differ.
func (m *model) keepsBase() bool { return m.fence || m.fault.listedIdentities }

// setRoot creates a generation, and notes for whom it is good.
func (m *model) setRoot(w *world, r *root) {
	was := *w.newest()
	w.roots[r.num] = *r
	if !m.keepsBase() {
		w.roots[r.num].base = [maxInputs]token{}
	}
	if r.num < was.num {
		if !m.store.weakList && !m.power {
			w.roots[r.num] = root{num: r.num} // never read again
		}
		return
	}
	if !m.store.weakList && !m.power {
		for n := range w.roots[:r.num] {
			w.roots[n] = root{num: w.roots[n].num}
		}
	}
	if !r.settled {
		m.checkSwap(w, &was, r)
		return
	}
	for i := range w.procs {
		p := &w.procs[i]
		if p.pc != idle && !m.roles[p.role].committer && m.asSeen(r, p.role, p.seen, p.base) {
			p.good = true
		}
	}
	for i := range w.runs {
		u := &w.runs[i]
		for role := range m.roles {
			if u.recipe != 0 && u.recipe == m.roles[role].recipe && m.asSeen(r, uint8(role), u.seen, u.base) {
				u.good = true
			}
		}
	}
}

// asSeen reports whether a root is as a run wants that saw these versions.
func (m *model) asSeen(r *root, role uint8, seen [maxInputs]uint8, base [maxInputs]token) bool {
	return m.asSeenBy(r, &m.roles[role], seen, base)
}

func (m *model) asSeenBy(r *root, o *role, seen [maxInputs]uint8, base [maxInputs]token) bool {
	for i, e := range r.entries {
		if o.scope>>i&1 == 1 && (e.is != made(o.recipe, seen[i]) || e.bad || o.force && e.stamp() == base[i]) {
			return false
		}
	}
	return true
}

// drop removes staged files that are not published.
func (m *model) drop(w *world, toks [maxInputs]token) {
	for _, t := range toks {
		if t != 0 && w.tokens[t].live {
			w.tokens[t] = staged{}
		}
	}
}

// intern returns the place of a RUN in the table.
func (m *model) intern(w *world, recipe uint8, seen [maxInputs]uint8, base [maxInputs]token, todo uint8) uint8 {
	if m.fault.runWithoutBase {
		base = [maxInputs]token{}
	}
	if m.planFile {
		todo = 0
	}
	for i := range w.runs {
		u := &w.runs[i]
		if u.recipe == 0 {
			u.recipe, u.seen, u.base, u.todo = recipe, seen, base, todo
		}
		if u.recipe == recipe && u.seen == seen && u.base == base && u.todo == todo {
			return uint8(i)
		}
	}
	panic("maxRuns is too small")
}
