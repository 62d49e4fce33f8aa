package fetch

import "container/list"

// idle holds pieces of resting objects, since they may be needed again. Most programs
// read the ends of all objects first, and the objects one by one later. So pieces that
// have rested only once stay longest, and of these the oldest.
type idle struct {
	once, often list.List // of *piece: rested once, and more often
	bytes       int64
}

// idleShare is the part of the memory that resting objects may have.
const idleShare = 4

// rest makes a piece idle, and drops idle pieces if they exceed their share. q.mu is held.
func (q *Queue) rest(p *piece) {
	p.rests++
	l := &q.idle.once
	if p.rests > 1 {
		l = &q.idle.often
	}
	p.resting = l.PushBack(p)
	p.restingIn = l
	q.idle.bytes += p.n
	for q.idle.bytes > q.o.Memory/idleShare {
		// The resting piece that is needed least is dropped.
		e := q.idle.often.Front()
		if e == nil {
			e = q.idle.once.Back()
		}
		e.Value.(*piece).drop()
	}
}

// wake ends the rest of a piece. q.mu is held.
func (q *Queue) wake(p *piece) {
	if p.resting != nil {
		p.restingIn.Remove(p.resting)
		p.resting, p.restingIn = nil, nil
		q.idle.bytes -= p.n
	}
}

// room reports whether there is memory for n bytes. If only idle pieces take memory,
// there is for any n, so they never stop other fetches. q.mu is held.
func (q *Queue) room(n int64) bool {
	return q.used == q.idle.bytes || q.used+n <= q.o.Memory
}
