package protocol

import "slices"

// swapRead decides whether the run may replace what the root says.
func (m *model) swapRead(w *world, p *proc, _ reply) {
	o := &m.roles[p.role]
	was := p.root
	p.root, p.own = *m.read(w, p), false
	if p.root.num != 0 && !p.root.settled && !m.fault.swapOnHalf {
		m.startPublish(p, swapRead)
		return
	}
	if m.committedList && p.root.committed>>p.run&1 == 1 {
		m.end(w, p, done)
		return
	}
	if m.fault.rootReadOnce && was.num != 0 {
		num := p.root.num
		p.root = was
		p.root.num = num
	}
	left := uint8(0)
	for i, e := range p.root.entries {
		bit := uint8(1) << i
		if (p.todo|p.remove)&bit == 0 {
			continue
		}
		switch same := e.stamp() == p.base[i]; {
		case same || m.fault.noConflict:
			left |= bit
		case e.is != made(o.recipe, p.seen[i]):
			m.end(w, p, lost)
			return
		case e.bad:
			m.end(w, p, damaged)
			return
		}
	}
	p.pc = swapCreate
	if left == 0 {
		m.end(w, p, done)
		return
	}
	p.todo &= left
	p.remove &= left
}

// next returns the generation of a swap.
func (m *model) next(w *world, p *proc) root {
	r := p.root
	r.num, r.settled, r.publish, r.remove = p.root.num+1, false, p.todo, [maxNames]object{}
	if m.committedList {
		r.committed |= 1 << p.run
	}
	r.base = p.base
	o := &m.roles[p.role]
	for i, e := range r.entries {
		want := content(0)
		switch bit := uint8(1) << i; {
		case p.todo&bit != 0:
			want = made(o.recipe, p.seen[i])
			r.entries[i] = entry{tok: p.mine[i], is: want}
		case p.remove&bit != 0:
			r.entries[i] = entry{tok: e.tok}
			if m.fault.noTombstone {
				r.entries[i] = entry{}
			}
		default:
			continue
		}
		from := m.nameOf(i, e.is)
		if e.bad {
			e.tok = 0 // it is another one's
		}
		if e.is != 0 && e.ident != 0 && (want == 0 || from != m.nameOf(i, want)) {
			r.remove[from] = object{e.tok, e.ident}
		}
	}
	return r
}

func (m *model) swapRequest(w *world, p *proc) request {
	return request{op: createRoot, root: m.next(w, p)}
}

func (m *model) swapped(w *world, p *proc, r reply) {
	p.pc = swapRead
	if r.ok {
		p.root, p.own, p.pc = m.next(w, p), true, swapCheck
		m.knows(p)
		if !m.keepsBase() {
			p.root.base = [maxInputs]token{}
		}
		if m.fault.noHigherCheck {
			m.startPublish(p, swapRead)
		}
	}
}

func (m *model) swapCheck(w *world, p *proc, _ reply) {
	p.pc = swapRead
	if m.read(w, p).num == p.root.num {
		m.startPublish(p, swapRead)
	}
}

// startPublish is the publish of p.root. Afterwards the process goes on with from.
func (m *model) startPublish(p *proc, from pc) {
	p.from, p.at, p.bad, p.ident = from, 0, 0, [maxInputs]uint8{}
	p.pc = unmark
	if m.power && !m.fault.noSyncRoot {
		p.pc = syncRoot
	}
}

func (m *model) syncRoot(w *world, p *proc, _ reply) {
	for n := range w.roots {
		w.durable.roots[n] = w.roots[n].num != 0
	}
	p.pc = unmark
	if p.root.settled {
		p.pc = leaveMark
	}
}

func (m *model) unmarkRequest(*world, *proc) request { return request{op: dropSuccess} }

func (m *model) unmarked(w *world, p *proc, _ reply) {
	switch {
	case m.fault.markFirst && w.success == 0:
		p.pc = mark
	case m.power && !m.fault.noSyncMark:
		p.pc = syncMark
	default:
		m.advance(p)
	}
}

func (m *model) syncMark(w *world, p *proc, _ reply) {
	w.durable.success = w.success
	m.advance(p)
}

// advance goes to what is to be removed or published next: first the removals, or an input whose
// output changes its name would have two for a while.
func (m *model) advance(p *proc) {
	unsynced := m.power && p.pc == removes
	for ; p.at < maxNames+maxInputs+maxNames; p.at++ {
		switch at := int(p.at); {
		case at < maxNames:
			if p.root.remove[at].ident != 0 && !m.fault.removeLast && !m.fault.removeAfterMark {
				p.pc = removes
				return
			}
		case at < maxNames+maxInputs:
			if p.root.publish>>(at-maxNames)&1 == 1 {
				if p.pc = publishes; unsynced && !m.fault.noSyncRemovals {
					p.pc = syncRemovals
				}
				return
			}
		default:
			if p.root.remove[at-maxNames-maxInputs].ident != 0 && m.fault.removeLast {
				p.pc = removes
				return
			}
		}
	}
	p.pc = settle
	if m.power && !m.fault.noSyncNames {
		p.pc = syncNames
	}
}

func (m *model) removeRequest(_ *world, p *proc) request {
	name := p.at
	if name >= maxNames {
		name -= maxNames + maxInputs
	}
	o := p.root.remove[name]
	return request{op: removeName, num: name, tok: o.tok, unit: o.ident}
}

func (m *model) removed(w *world, p *proc, _ reply) {
	p.at++
	if m.fault.removeAfterMark {
		m.nextRemoval(w, p)
		return
	}
	m.advance(p)
}

func (m *model) syncRemovals(w *world, p *proc, _ reply) {
	w.durable.names = w.names
	p.pc = publishes
}

// publishing returns the input, and the entry, that is published next.
func (p *proc) publishing() (int, entry) {
	i := int(p.at - maxNames)
	return i, p.root.entries[i]
}

func (m *model) publishRequest(_ *world, p *proc) request {
	i, e := p.publishing()
	q := request{op: publish, num: uint8(m.nameOf(i, e.is)), tok: e.tok}
	if m.store.copies {
		q.op = copyToken
	}
	return q
}

func (m *model) published(w *world, p *proc, r reply) {
	i, e := p.publishing()
	switch {
	case m.store.copies && (r.ok || m.has(w, r.obj, e)):
		p.ident[i] = r.obj.ident
		p.pc = copied
	case m.has(w, r.obj, e):
		p.ident[i] = r.obj.ident
		if before := &p.root.base[i]; m.fault.listedIdentities && m.choice == 1 && *before != 0 {
			p.ident[i] = uint8(*before) // the listing is older than the publish
		}
		p.at++
		m.advance(p)
	default:
		m.missing(p, r.obj)
	}
}

// has reports whether an object has the size and checksum of an entry.
func (m *model) has(w *world, o object, e entry) bool {
	return o.tok == e.tok || w.tokens[o.tok].is == e.is
}

func (m *model) sourceRequest(_ *world, p *proc) request {
	_, e := p.publishing()
	return request{op: dropToken, tok: e.tok}
}

func (m *model) sourceDropped(w *world, p *proc, _ reply) {
	p.pc = copiedLook
	if m.fault.copyAnswers {
		p.at++
		m.advance(p)
	}
}

func (m *model) lookAtCopy(w *world, p *proc, _ reply) {
	i, e := p.publishing()
	if at := w.names[m.nameOf(i, e.is)]; !m.has(w, at, e) {
		m.missing(p, at)
	} else {
		p.ident[i] = at.ident
		p.at++
		m.advance(p)
	}
}

// missing notes an output whose token is gone, and which is not under its name. It is damaged, or a
// later run has replaced it: then there is a later root, and the generation of this publish.
func (m *model) missing(p *proc, there object) {
	i, _ := p.publishing()
	p.bad |= 1 << i
	if p.ident[i] = there.ident; m.fault.badForgets {
		p.ident[i] = 0
	}
	p.at++
	m.advance(p)
}

func (m *model) syncNames(w *world, p *proc, _ reply) {
	w.durable.names = w.names
	p.pc = settle
}

// settledRoot is the generation after a publish.
func (m *model) settledRoot(p *proc) root {
	r := p.root
	r.num++
	r.settled, r.publish, r.remove = true, 0, [maxNames]object{}
	if m.fault.removeAfterMark {
		r.remove = p.root.remove
	}
	for i := range r.entries {
		if p.root.publish>>i&1 == 1 {
			r.entries[i].bad = p.bad>>i&1 == 1
			r.entries[i].ident = p.ident[i]
		}
	}
	return r
}

func (m *model) settleRequest(_ *world, p *proc) request {
	return request{op: createRoot, root: m.settledRoot(p)}
}

func (m *model) settled(w *world, p *proc, r reply) {
	p.settler = r.ok
	if r.ok {
		p.root = m.settledRoot(p)
		m.knows(p)
	}
	p.pc = leaveRoot
	if m.fault.leavesAtOnce && !r.ok {
		m.leave(w, p)
	}
}

// leaveRoot is the first action after a publish. As this process, or one that it helped, may have
// deleted _SUCCESS after another had put it, or put it too late, it makes that good.
func (m *model) leaveRoot(w *world, p *proc, _ reply) {
	created := p.root.num
	p.root = *m.read(w, p)
	// Its own generation ends a process. If there is a higher one, it may have created a number that
	// was deleted: then what the root says decides.
	p.own = p.own && p.settler && (p.root.num == created || m.fault.trustsSettled)
	if p.own {
		p.exit = 1 + uint8(done)
		if p.bad != 0 && !m.fault.doneThoughDamaged {
			p.exit = 1 + uint8(damaged)
		}
	}
	switch {
	case p.root.num != 0 && !p.root.settled:
		p.own = false
		m.startPublish(p, p.from)
	case slices.ContainsFunc(p.root.entries[:], func(e entry) bool { return e.bad }):
		m.leave(w, p)
	default:
		m.leaveWith(w, p)
	}
}

// leaveWith sees to it that _SUCCESS is of the settled root that the process has read.
func (m *model) leaveWith(w *world, p *proc) {
	if p.pc = leaveMark; m.coarse {
		m.leaveMark(w, p, reply{})
		return
	}
	if m.power && p.root.num != 0 && !m.fault.noSyncRoot {
		p.pc = syncRoot
	}
}

func (m *model) leaveMark(w *world, p *proc, _ reply) {
	switch {
	case w.success != p.root.num:
		p.pc = mark
	case m.cleans && p.settler:
		p.pc = clean
	default:
		m.leave(w, p)
	}
}

// leave goes on after a publish.
func (m *model) leave(w *world, p *proc) {
	if p.pc = p.from; p.exit != 0 {
		m.end(w, p, ending(p.exit-1))
	}
}

func (m *model) markRequest(_ *world, p *proc) request {
	num := p.root.num
	if !p.root.settled {
		num++ // fault
	}
	return request{op: putSuccess, num: num}
}

func (m *model) marked(w *world, p *proc, _ reply) {
	switch {
	case !p.root.settled: // fault
		m.advance(p)
	case m.fault.removeAfterMark:
		p.at = 0
		m.nextRemoval(w, p)
	case m.fault.leavesAtOnce:
		m.leave(w, p)
	default:
		p.pc = leaveRoot
	}
}

// nextRemoval is of the fault that removes after the mark.
func (m *model) nextRemoval(w *world, p *proc) {
	for ; p.at < maxNames; p.at++ {
		if p.root.remove[p.at].ident != 0 {
			p.pc = removes
			return
		}
	}
	m.leave(w, p)
}

// cleanRequest deletes older generations, oldest first, then parts and plan of the own run.
func (m *model) cleanRequest(w *world, p *proc) request {
	for n := uint8(1); n < p.root.num; n++ {
		if w.roots[n].num != 0 {
			return request{op: dropRoot, num: n}
		}
	}
	if o := &m.roles[p.role]; !p.own || o.of == 1 && !o.noCommit && !o.committer {
		return request{}
	}
	u := &w.runs[p.run]
	for k := range u.parts {
		if u.parts[k].exists {
			return request{op: dropPart, num: p.run, unit: uint8(k)}
		}
	}
	if u.plan.exists {
		return request{op: dropPlan, num: p.run}
	}
	return request{}
}

func (m *model) cleaned(w *world, p *proc, _ reply) {
	if m.cleanRequest(w, p).op == none {
		m.leave(w, p)
	}
}
