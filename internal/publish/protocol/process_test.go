package protocol

// proc is what a process remembers. One that has ended remembers nothing.
type proc struct {
	pc   pc
	slot uint8 // its number: names its tokens
	role uint8
	run  uint8
	seen [maxInputs]uint8 // versions of the inputs when it began

	todo, remove uint8 // inputs whose outputs it makes, or removes
	base         [maxInputs]token
	mine         [maxInputs]token // staged: by this worker, then by all of the run

	root    root  // that it read or made
	known   uint8 // the newest generation that it knows of, if listings are weak
	own     bool  // it made it
	from    pc    // where it goes after a publish,
	exit    uint8 // or how it ends then: an ending, counted from 1
	settler bool  // it has created a settled generation
	at      uint8 // what it publishes, removes or deletes next
	bad     uint8 // inputs whose token and content are missing
	ident   [maxInputs]uint8

	good bool // ghost: a settled root was as it wants since it began
}

// role is what a process is for.
type role struct {
	recipe    uint8
	worker    uint8
	of        uint8
	scope     uint8 // inputs
	noCommit  bool
	force     bool // makes all outputs
	committer bool
}

// pc is the action that a process does next.
type pc uint8

const (
	idle pc = iota // it has not begun, or has ended
	listInputs
	readRoot
	fence
	look
	plans
	parts
	readParts
	findRun
	swapRead
	swapCreate
	swapCheck
	syncRoot
	unmark
	syncMark
	removes
	syncRemovals
	publishes
	copied
	copiedLook
	syncNames
	settle
	leaveRoot
	leaveMark
	mark
	clean
)

// action is one atomic step of a process. It asks storage for one write, or reads. then is what the
// process makes of it: it decides which action comes next, and so are the guards.
type action struct {
	name  string
	write func(m *model, w *world, p *proc) request // nil: it reads
	then  func(m *model, w *world, p *proc, r reply)
}

// actions is the protocol: begin, stage, part, swap, publish, clean.
var actions [clean + 1]action

func init() {
	actions = [...]action{
		listInputs: {"begin: list inputs", nil, (*model).listInputs},
		readRoot:   {"begin: read root", nil, (*model).readRoot},
		fence:      {"begin: fence", (*model).fenceRequest, (*model).fenced}, // only if creates overwrite
		look:       {"begin: compare root, inputs and outputs; stage", nil, (*model).look},
		plans:      {"begin: plan; stage", (*model).planRequest, (*model).planned}, // only with plan files
		parts:      {"part", (*model).partRequest, (*model).parted},
		readParts:  {"read the parts of all", nil, (*model).readParts},
		findRun:    {"commit: find a run with all parts", nil, (*model).findRun}, // the first action of commit

		swapRead:   {"swap: read root", nil, (*model).swapRead},
		swapCreate: {"swap", (*model).swapRequest, (*model).swapped},
		swapCheck:  {"swap: check for a higher generation", nil, (*model).swapCheck},

		syncRoot:     {"publish: sync generations", nil, (*model).syncRoot}, // local disks
		unmark:       {"publish: delete _SUCCESS", (*model).unmarkRequest, (*model).unmarked},
		syncMark:     {"publish: sync the deletion of _SUCCESS", nil, (*model).syncMark}, // local disks
		removes:      {"publish: remove a file", (*model).removeRequest, (*model).removed},
		syncRemovals: {"publish: sync removals", nil, (*model).syncRemovals}, // local disks
		publishes:    {"publish: a token", (*model).publishRequest, (*model).published},
		copied:       {"publish: delete the source of a copy", (*model).sourceRequest, (*model).sourceDropped}, // stores that copy
		copiedLook:   {"publish: look at the copy", nil, (*model).lookAtCopy},                                  // stores that copy
		syncNames:    {"publish: sync names", nil, (*model).syncNames},                                         // local disks
		settle:       {"publish: settle", (*model).settleRequest, (*model).settled},

		leaveRoot: {"leave: read root", nil, (*model).leaveRoot},
		leaveMark: {"leave: read _SUCCESS", nil, (*model).leaveMark},
		mark:      {"leave: put _SUCCESS", (*model).markRequest, (*model).marked},
		clean:     {"clean", (*model).cleanRequest, (*model).cleaned},
	}
}

// ending is how a process ends.
type ending uint8

const (
	done       ending = iota // exit 0: the run is committed
	partOnly                 // exit 0: the rest is done by another process
	lost                     // another run replaced something; run again
	changed                  // an input changed; run again
	damaged                  // an output vanished while it was published; run again
	incomplete               // commit found no run with all parts
)

// end ends a process.
func (m *model) end(w *world, p *proc, e ending) {
	if e != done && m.roles[p.role].of == 1 && !m.roles[p.role].noCommit && !m.roles[p.role].committer {
		m.drop(w, p.mine)
	}
	if e == done && !p.good && !(m.roles[p.role].committer && w.runs[p.run].good) {
		w.wrong = exitTooEarly
	}
	m.ended = e
	m.covered.endings[e] = true
	*p = proc{}
}

// forget drops what a process does not need any more, so that fewer states differ.
func (m *model) forget(p *proc) {
	switch p.pc {
	case idle:
		return
	case readRoot, fence, look, findRun:
		*p = proc{pc: p.pc, slot: p.slot, role: p.role, seen: p.seen, root: p.root, known: p.known, good: p.good}
		if p.pc == readRoot {
			p.root = root{}
		}
	case plans, parts, readParts, swapRead:
		p.own, p.settler, p.from, p.at, p.bad, p.ident = false, false, idle, 0, 0, [maxInputs]uint8{}
		if !m.fault.rootReadOnce {
			p.root = root{}
		}
	case leaveRoot:
		p.root, p.at, p.ident = root{num: p.root.num}, 0, [maxInputs]uint8{}
		if !p.own || !p.settler {
			p.root, p.bad = root{}, 0
		}
	case leaveMark, mark, clean, syncRoot:
		if p.root.settled {
			p.at, p.bad = 0, 0
			p.root = root{num: p.root.num, settled: true, remove: p.root.remove}
			p.ident = [maxInputs]uint8{}
		}
	}
	if p.pc >= leaveRoot && p.exit != 0 && p.good {
		*p = proc{pc: p.pc, slot: p.slot, role: p.role, run: p.run, root: p.root, known: p.known, own: p.own, exit: p.exit, settler: p.settler, good: true}
		if !m.cleans {
			p.run, p.own, p.settler = 0, false, false
		}
	}
	if p.pc >= unmark && p.own {
		p.mine = [maxInputs]token{}
	}
}

func (m *model) listInputs(w *world, p *proc, _ reply) {
	p.seen = m.scoped(&m.roles[p.role], w.versions)
	r := w.newest()
	p.good = (r.settled || r.num == 0) && !m.roles[p.role].force && m.asSeen(r, p.role, p.seen, p.base)
	p.pc = readRoot
}

func (m *model) readRoot(w *world, p *proc, _ reply) {
	p.root = *m.read(w, p)
	if p.pc = look; m.fence && p.root.num < 3*w.clock {
		p.pc = fence
		return
	}
	if p.root.num != 0 && !p.root.settled && !m.fault.beginInHalf {
		m.startPublish(p, readRoot)
	}
}

// fenceRequest copies the root to a number that no process has used that began before. Storage whose
// creates overwrite needs it: a late one would come over the generation of a living process.
func (m *model) fenceRequest(w *world, p *proc) request {
	r := p.root
	r.num = 3 * w.clock
	if p.root.num == 0 {
		r.settled = true
	}
	return request{op: createRoot, root: r}
}

func (m *model) fenced(w *world, p *proc, _ reply) { p.pc = readRoot }

// look decides what is to do.
func (m *model) look(w *world, p *proc, _ reply) {
	o := &m.roles[p.role]
	for i, e := range p.root.entries {
		bit, want := uint8(1)<<i, made(o.recipe, p.seen[i])
		if o.scope&bit == 0 {
			continue
		}
		p.base[i] = e.stamp()
		switch {
		case want == 0 && e.is != 0:
			p.remove |= bit
		case want != 0 && (e.is != want || e.bad || o.force || w.names[m.nameOf(i, want)].ident != e.ident):
			p.todo |= bit
		}
	}
	switch {
	case p.todo|p.remove != 0:
		if o.of > 1 || o.noCommit || m.committedList {
			p.run = m.intern(w, o.recipe, p.seen, p.base, p.todo|p.remove)
		}
		if p.pc = plans; o.of == 1 && !o.noCommit || !m.planFile {
			m.stage(w, p)
		}
	case m.fault.markOnce, m.fault.beginInHalf && !p.root.settled:
		m.end(w, p, done)
	default:
		p.exit = 1 + uint8(done)
		m.leaveWith(w, p)
	}
}

func (m *model) planRequest(_ *world, p *proc) request {
	return request{op: createPlan, num: p.run, plan: plan{true, p.todo, p.remove, p.base}}
}

func (m *model) planned(w *world, p *proc, _ reply) {
	l := &w.runs[p.run].plan
	p.todo, p.remove, p.base = l.todo, l.remove, l.base
	m.stage(w, p)
}

// stage writes the outputs of a worker, of the inputs as they were listed. As nothing else sees staged
// files, it is no step of its own.
func (m *model) stage(w *world, p *proc) {
	o := &m.roles[p.role]
	for i := range maxInputs {
		if p.todo>>i&1 == 1 && i%int(o.of) == int(o.worker) && w.versions[i] != p.seen[i] && !(m.fault.readsChanged && w.versions[i] != 0) {
			m.end(w, p, changed)
			return
		}
	}
	for i := range maxInputs {
		if p.todo>>i&1 == 1 && i%int(o.of) == int(o.worker) {
			p.mine[i] = tokenOf(p.slot, i)
			w.tokens[p.mine[i]] = staged{is: made(o.recipe, w.versions[i]), live: true}
		}
	}
	p.pc = swapRead
	if o.of > 1 || o.noCommit {
		p.pc = parts
	}
}

func (m *model) partRequest(_ *world, p *proc) request {
	return request{op: createPart, num: p.run, unit: m.roles[p.role].worker, part: part{true, p.mine}}
}

func (m *model) parted(w *world, p *proc, r reply) {
	o := &m.roles[p.role]
	if there := w.runs[p.run].parts[o.worker].toks; there != p.mine {
		m.drop(w, p.mine)
	}
	p.pc = readParts
	if o.noCommit {
		m.end(w, p, partOnly)
	}
}

// readParts reads them by name. A worker that does not find all leaves the commit to another.
func (m *model) readParts(w *world, p *proc, _ reply) {
	if !m.unite(w, p) {
		m.end(w, p, partOnly)
		return
	}
	p.pc = swapRead
}

func (m *model) unite(w *world, p *proc) bool {
	p.mine = [maxInputs]token{}
	for i := range m.roles[p.role].of {
		l := &w.runs[p.run].parts[i]
		if !l.exists {
			return false
		}
		for i, t := range l.toks {
			p.mine[i] += t
		}
	}
	return true
}

// findRun finds a run with all parts. m.choice counts how many of them it passes over.
func (m *model) findRun(w *world, p *proc, _ reply) {
	all := m.complete(w, p)
	if len(all) == 0 {
		m.end(w, p, incomplete)
		return
	}
	p.run = all[m.choice]
	u := &w.runs[p.run]
	m.unite(w, p)
	p.seen, p.base, p.todo, p.remove = u.seen, u.base, u.todo, 0
	for i, v := range u.seen {
		if v == 0 {
			p.remove |= u.todo & (1 << i)
		}
	}
	p.todo &^= p.remove
	if m.planFile {
		p.base, p.todo, p.remove = u.plan.base, u.plan.todo, u.plan.remove
	}
	p.pc = swapRead
}

// complete returns the RUNs with all parts.
func (m *model) complete(w *world, p *proc) (all []uint8) {
	of := *p
	for i := range w.runs {
		of.run = uint8(i)
		if w.runs[i].recipe == m.roles[p.role].recipe && m.unite(w, &of) {
			all = append(all, of.run)
		}
	}
	return all
}

// knows notes a generation, below which the process does not look.
func (m *model) knows(p *proc) {
	if m.store.weakList {
		p.known = p.root.num
	}
}
