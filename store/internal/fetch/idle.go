package fetch

import "container/list"

// idle holds what resting objects have kept: the bytes may be needed again, but
// their memory is free for others. Most programs read the ends of all objects first,
// and the objects one by one later. So what has rested once and came first stays
// longest.
type idle struct {
	once, often list.List // of *piece: rested once, and more often
	bytes       int64
}

// idleShare is the part of the memory that resting objects may have.
const idleShare = 4

// rest lets a piece be forgotten. q.mu is held.
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
		q.evict()
	}
}

// wake makes a piece stay until its object rests again. q.mu is held.
func (q *Queue) wake(p *piece) {
	if p.resting != nil {
		p.restingIn.Remove(p.resting)
		p.resting, p.restingIn = nil, nil
		q.idle.bytes -= p.n
	}
}

// evict drops a resting piece, if there is one. q.mu is held.
func (q *Queue) evict() bool {
	e := q.idle.often.Front()
	if e == nil {
		e = q.idle.once.Back()
	}
	if e == nil {
		return false
	}
	e.Value.(*piece).drop()
	return true
}

// room reports whether there is memory for n bytes, and makes it if it can. q.mu is
// held.
func (q *Queue) room(n int64) bool {
	for q.used > 0 && q.used+n > q.o.Memory {
		if !q.evict() {
			return false
		}
	}
	return true
}
