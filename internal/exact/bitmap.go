package exact

import (
	"math/bits"
	"slices"
)

// bitmap is a set of 64-bit values in containers of 2^16 neighbouring ones.
type bitmap struct {
	keys []uint64 // the upper 48 bits of a container's values; ascending
	held []container
}

const (
	containerBits  = 16
	containerSize  = 1 << containerBits
	containerWords = containerSize / 64
	// listMax is the number of members up to which a list takes no more than a bitmap.
	listMax = containerSize / 16
	// containerMemory is the memory of a container without its members, in bytes.
	containerMemory = 8 + 5*bits.UintSize/8
)

type words = [containerWords]uint64

// container has the lower 16 bits of at least one value, ascending in a list or in a bitmap.
type container struct {
	list []uint16 // at most listMax, see add; nil: bits
	bits *words
	n    int // members in bits
}

// everything is the bitmap of all containers that are full. It is never written to.
var everything = func() *words {
	w := new(words)
	for i := range w {
		w[i] = ^uint64(0)
	}
	return w
}()

func (c container) len() int   { return c.n + len(c.list) }
func (c container) full() bool { return c.n == containerSize }

// has reports whether a value is a member.
func (c container) has(v uint16) bool {
	if c.bits != nil {
		return c.bits[v/64]>>(v%64)&1 != 0
	}
	_, ok := slices.BinarySearch(c.list, v)
	return ok
}

// copy returns a container that shares no memory that is written to. It turns a list of more
// than listMax members into bits.
func (c container) copy() container {
	switch {
	case c.full():
	case c.bits != nil || len(c.list) > listMax:
		return packed(c.spelled())
	default:
		c.list = slices.Clone(c.list)
	}
	return c
}

// packed returns the container of a bitmap, which it may keep.
func packed(w *words) (c container) {
	for _, x := range w {
		c.n += bits.OnesCount64(x)
	}
	switch {
	case c.full():
		c.bits = everything
	case c.n > listMax:
		c.bits = w
	default:
		c.list = make([]uint16, 0, c.n)
		c.n = 0
		for i, x := range w {
			for ; x != 0; x &= x - 1 {
				c.list = append(c.list, uint16(64*i+bits.TrailingZeros64(x)))
			}
		}
	}
	return c
}

// spelled returns the members as a bitmap, which the caller may change.
func (c container) spelled() *words {
	w := new(words)
	if c.bits != nil {
		*w = *c.bits
	}
	for _, v := range c.list {
		w[v/64] |= 1 << (v % 64)
	}
	return w
}

// or returns the union. It may use the memory of c.
func (c container) or(d container) container {
	switch {
	case c.full():
		return c
	case d.full():
		return d
	case c.bits == nil && d.bits == nil && len(c.list)+len(d.list) <= listMax:
		return container{list: insert(c.list, d.list)}
	case c.bits == nil:
		c.bits = c.spelled()
		c.n, c.list = len(c.list), nil
	}
	if d.bits == nil {
		for _, v := range d.list {
			x := &c.bits[v/64]
			c.n += int(^*x >> (v % 64) & 1)
			*x |= 1 << (v % 64)
		}
		if c.n > listMax && !c.full() {
			return c
		}
		return packed(c.bits)
	}
	for i, x := range d.bits {
		c.bits[i] |= x
	}
	return packed(c.bits)
}

// insert adds ascending values to a list.
func insert(list, values []uint16) []uint16 {
	for len(values) > 0 {
		if len(list) == 0 || list[len(list)-1] < values[0] {
			return append(list, values...)
		}
		var at [16]int // where fresh values belong
		var fresh [len(at)]uint16
		n, from, end := 0, 0, len(list)
		some := values[:min(len(values), len(at))]
		for _, v := range some {
			i, ok := slices.BinarySearch(list[from:], v)
			if from += i; !ok {
				at[n], fresh[n] = from, v
				n++
			}
		}
		list = slices.Grow(list, n)[:end+n]
		for n > 0 {
			n--
			copy(list[at[n]+n+1:], list[at[n]:end])
			end = at[n]
			list[end+n] = fresh[n]
		}
		values = values[len(some):]
	}
	return list
}

// keep returns the members for which d.has is want. It may use the memory of c.
func (c container) keep(d container, want bool) container {
	if c.bits == nil {
		c.list = slices.DeleteFunc(c.list, func(v uint16) bool { return d.has(v) != want })
		return c
	}
	w, other := c.spelled(), d.spelled()
	for i, x := range other {
		if !want {
			x = ^x
		}
		w[i] &= x
	}
	return packed(w)
}

// len returns the number of members.
func (m *bitmap) len() (n uint64) {
	for _, c := range m.held {
		n += uint64(c.len())
	}
	return n
}

func (m *bitmap) empty() bool { return len(m.keys) == 0 }

// least returns the smallest member of a bitmap that is not empty.
func (m *bitmap) least() uint64 {
	var one [1]uint64
	m.read(&cursor{}, one[:])
	return one[0]
}

// greatest returns the largest member of a bitmap that is not empty.
func (m *bitmap) greatest() uint64 {
	last := len(m.keys) - 1
	c, low := m.held[last], 0
	if c.bits == nil {
		low = int(c.list[len(c.list)-1])
	} else {
		for low = containerSize - 1; !c.has(uint16(low)); low-- {
		}
	}
	return m.keys[last]<<containerBits | uint64(low)
}

func (m *bitmap) has(v uint64) bool {
	at, ok := slices.BinarySearch(m.keys, v>>containerBits)
	return ok && m.held[at].has(uint16(v))
}

func (m *bitmap) clone() bitmap {
	c := bitmap{slices.Clone(m.keys), slices.Clone(m.held)}
	for i := range c.held {
		c.held[i] = c.held[i].copy()
	}
	return c
}

// bytes returns the size in memory.
func (m *bitmap) bytes() (n uint64) {
	n = 8*uint64(cap(m.keys)) + (containerMemory-8)*uint64(cap(m.held))
	for _, c := range m.held {
		if n += 2 * uint64(cap(c.list)); c.bits != nil && !c.full() {
			n += 8 * containerWords
		}
	}
	return n
}

// add adds ascending values, some of which may be equal.
func (m *bitmap) add(values []uint64) {
	var keys []uint64
	var held []container
	low := make([]uint16, 0, len(values))
	for len(values) > 0 {
		key, from, n := values[0]>>containerBits, len(low), 0
		for ; n < len(values) && values[n]>>containerBits == key; n++ {
			if n == 0 || values[n] != values[n-1] {
				low = append(low, uint16(values[n]))
			}
		}
		keys, held, values = append(keys, key), append(held, container{list: low[from:]}), values[n:]
	}
	m.or(&bitmap{keys, held})
}

// addRun adds n consecutive values, at least one.
func (m *bitmap) addRun(first, n uint64) {
	for n > 0 {
		low := first % containerSize
		some := min(n, containerSize-low)
		c := container{bits: everything, n: containerSize}
		if some < containerSize {
			w := new(words)
			for v := low; v < low+some; v++ {
				if w[v/64] |= 1 << (v % 64); v%64 == 0 && v+64 <= low+some {
					w[v/64] = ^uint64(0)
					v += 63
				}
			}
			c = packed(w)
		}
		m.or(&bitmap{[]uint64{first >> containerBits}, []container{c}})
		first, n = first+some, n-some
	}
}

// or adds the members of t, which stays as it is.
func (m *bitmap) or(t *bitmap) {
	fresh, at := 0, 0
	for i, key := range t.keys {
		n, ok := slices.BinarySearch(m.keys[at:], key)
		if at += n; ok {
			m.held[at] = m.held[at].or(t.held[i])
		} else {
			fresh++
		}
	}
	from, to := len(m.keys)-1, len(m.keys)+fresh
	m.keys, m.held = slices.Grow(m.keys, fresh)[:to], slices.Grow(m.held, fresh)[:to]
	for i := len(t.keys) - 1; fresh > 0; {
		to--
		if from >= 0 && m.keys[from] >= t.keys[i] {
			if m.keys[from] == t.keys[i] {
				i--
			}
			m.keys[to], m.held[to] = m.keys[from], m.held[from]
			from--
			continue
		}
		m.keys[to], m.held[to] = t.keys[i], t.held[i].copy()
		i, fresh = i-1, fresh-1
	}
}

// keep removes the members for which t.has is not want.
func (m *bitmap) keep(t *bitmap, want bool) {
	keys, held, at := m.keys[:0], m.held[:0], 0
	for i, key := range m.keys {
		c := m.held[i]
		n, ok := slices.BinarySearch(t.keys[at:], key)
		if at += n; ok {
			c = c.keep(t.held[at], want)
		} else if want {
			continue
		}
		if c.len() > 0 {
			keys, held = append(keys, key), append(held, c)
		}
	}
	clear(m.held[len(held):])
	m.keys, m.held = keys, held
}

// cursor is a place in a bitmap: a container, and the index in its list, or the smallest value
// of its bitmap, that comes next.
type cursor struct{ at, next int }

// seek returns the place of the first member that is not below v.
func (m *bitmap) seek(v uint64) (c cursor) {
	at, ok := slices.BinarySearch(m.keys, v>>containerBits)
	c.at = at
	if ok {
		c.next = int(uint16(v))
		if h := m.held[at]; h.bits == nil {
			c.next, _ = slices.BinarySearch(h.list, uint16(v))
		}
	}
	return c
}

// run reports whether the cursor is at a container that is full.
func (m *bitmap) run(c *cursor) bool {
	return c.next == 0 && c.at < len(m.held) && m.held[c.at].full()
}

// read reads members in ascending order and returns how many: 0 at the end. It may read fewer
// than fit, as it stops before a container that is full.
func (m *bitmap) read(c *cursor, buf []uint64) (n int) {
	for n < len(buf) && c.at < len(m.keys) && (n == 0 || !m.run(c)) {
		base, h := m.keys[c.at]<<containerBits, m.held[c.at]
		end := len(h.list)
		if h.bits == nil {
			some := h.list[c.next:min(end, c.next+len(buf)-n)]
			for i, v := range some {
				buf[n+i] = base | uint64(v)
			}
			n, c.next = n+len(some), c.next+len(some)
		} else {
			end = containerSize
			for c.next < end && n < len(buf) {
				from := c.next &^ 63
				x := h.bits[from/64] >> (c.next % 64) << (c.next % 64)
				for c.next = from + 64; x != 0; x &= x - 1 {
					if n == len(buf) {
						c.next = from + bits.TrailingZeros64(x)
						break
					}
					buf[n] = base | uint64(from+bits.TrailingZeros64(x))
					n++
				}
			}
		}
		if c.next == end {
			c.at, c.next = c.at+1, 0
		}
	}
	return n
}
