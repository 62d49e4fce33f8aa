package join

import (
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
)

// The cost model: what each strategy takes, in seconds, bytes held and bytes
// spilled, by the figures of both sides. Its constants were measured, as
// docs/plan.md tells; what matters is their proportion, since a strategy is
// chosen by comparison. It knows no state of the machine: the same inputs give
// the same choice.

// Nanoseconds of one thread, as BenchmarkCosts and whole joins give them. Those
// of tables and filters are for what stands in the second-level cache; a miss is
// added where it is larger, in part up to slowCache.
const (
	nsRead       = 1.6 // a key of eight bytes, from its page to a batch
	nsReadByte   = 0.4 // each further byte of a key, hashing included
	nsFilterAdd  = 1.4
	nsFilterFind = 1.4
	nsFilterMiss = 3.0  // the misses of several keys run side by side
	nsExactAdd   = 4.0  // of a key to an exact set that is dense
	nsIntAdd     = 12.0 // of a key to a table of integers
	nsIntFind    = 9.0
	nsIntMiss    = 13.0
	nsKeyAdd     = 35.0 // of any other key
	nsKeyFind    = 30.0
	nsKeyMiss    = 20.0
	nsChain      = 8.0  // a row of the IDs that is kept with its key
	nsDecode     = 0.4  // a byte of columns, decompressed and decoded
	nsAssemble   = 0.3  // more, where records are made of them
	nsWrite      = 1.5  // a byte of the answer, encoded and compressed
	nsRow        = 12.0 // a row of the answer that is put together
	nsSpill      = 1.5  // a byte written to disk and read again
	nsExchange   = 60.0 // an entry of a shuffle, from one side to the other
	nsStart      = 1e6  // a pass over one side: goroutines, files, buffers
	fastCache    = 1 << 21
	slowCache    = 1 << 26
)

// Bytes held and spilled.
const (
	slotBytesOf = 17.5 // of a key in a table
	keyBytesOf  = 1.5  // beside those of a key that is no integer
	rowBytesOf  = 4.0  // of a row of the IDs in the chain of its key
	spillEntry  = 12.0 // of a key that goes to disk, compressed
)

// sizes is what a choice goes by. What is not known is an upper bound.
type sizes struct {
	logRows     float64
	logKeys     float64 // distinct
	logBytes    float64 // of the columns that the answer has, decompressed
	logKeyBytes float64 // of the key columns, decompressed
	logColumns  float64

	idRows   float64
	idKeys   float64 // distinct
	idBytes  float64 // of the columns that the answer has, decompressed; 0: none
	keyBytes float64 // of one key, in normal form
	integer  bool    // the key is one integer column
	exact    bool    // a filter of the IDs comes out exact
	spread   float64 // integers from the least ID to the greatest; 0: not known

	selectivity float64 // share of the log's rows whose key is in an ID
	joinRows    float64 // pairs
	kept        float64 // ID rows whose key the log has
}

// limits is what a choice has to keep to.
type limits struct {
	memory   float64 // 0: no bound
	threads  float64
	typ      Type
	keysOnly bool   // nothing of the IDs is held but their keys
	counts   bool   // rows of the answer are counted, not made
	once     string // the side that can be read one time only
	filter   bool   // a filter of the IDs is there
	fpr      float64
}

// Cost is what a strategy would take.
type Cost struct {
	Strategy     Strategy `json:"strategy"`
	Feasible     bool     `json:"feasible"`
	Why          string   `json:"why,omitempty"` // it is not feasible
	Seconds      float64  `json:"seconds"`
	MemoryBytes  int64    `json:"memory_bytes"`
	SpilledBytes int64    `json:"spilled_bytes"`

	reserved float64 // of the memory, for a filter while it is built
}

// costs returns what each strategy takes, in a fixed order.
func costs(s sizes, l limits) []Cost {
	m := model{sizes: s, limits: l}
	out := []Cost{m.exact(), m.lookup(), m.broadcast(), m.reverse(), m.shuffle()}
	for i := range out {
		c := &out[i]
		if c.Why == "" && l.memory > 0 && float64(c.MemoryBytes)+c.reserved > l.memory {
			c.Why = fmt.Sprintf("it needs about %s of the %s that there are", inBytes(float64(c.MemoryBytes)+c.reserved), inBytes(l.memory))
		}
		c.Feasible = c.Why == ""
	}
	return out
}

// choose returns the strategy to take: of those that are feasible the fastest,
// and of those within a tenth of it the simplest, which reads least often. If
// none is, that is the last one that could be tried, and the join itself will say
// what is wrong.
func choose(costs []Cost) Cost {
	best := math.Inf(1)
	for _, c := range costs {
		if c.Feasible {
			best = math.Min(best, c.Seconds)
		}
	}
	lookup := Cost{Strategy: Lookup}
	for _, simple := range []Strategy{Exact, Lookup, Reverse, Broadcast, Shuffle} {
		for _, c := range costs {
			if c.Strategy == simple && c.Feasible && c.Seconds <= 1.1*best {
				return c
			}
			if c.Strategy == Lookup {
				lookup = c
			}
		}
	}
	return lookup
}

// model computes costs. Times are in nanoseconds of one thread.
type model struct {
	sizes
	limits
}

// misses returns which part of random accesses to so many bytes misses the
// caches.
func misses(held float64) float64 {
	share := math.Log2(math.Max(held, 1)/fastCache) / math.Log2(slowCache/fastCache)
	return math.Min(1, math.Max(0, share))
}

// add and ask are what a filter of so many bytes takes for a key.
func add(filter float64) float64 { return nsFilterAdd + nsFilterMiss*misses(filter) }
func ask(filter float64) float64 { return nsFilterFind + nsFilterMiss*misses(filter) }

// rate is that of the filter of the IDs.
func (m *model) rate() float64 {
	switch {
	case m.sizes.exact:
		return 0
	case m.limits.fpr > 0:
		return m.limits.fpr
	}
	return bloom.DefaultFPR(uint64(m.idRows))
}

// filterOfIDs is the bytes of the filter of the IDs.
func (m *model) filterOfIDs() float64 {
	switch {
	case m.sizes.exact && m.spread > 0:
		return math.Min(2*m.idKeys, m.spread/8)
	case m.sizes.exact:
		return 2 * m.idKeys
	}
	return m.within(filterBytes(m.idKeys, m.rate()))
}

// within is the bytes of a filter that wants so many: it may take a part of the
// memory.
func (m *model) within(filter float64) float64 {
	if m.limits.memory > 0 {
		filter = math.Min(filter, m.limits.memory/filterPart)
	}
	return filter
}

// building is what is reserved beside a filter of so many bytes while it is
// built.
func (m *model) building(filter float64) float64 { return math.Max(0, m.memory/filterPart-filter) }

func (m *model) read(rows float64) float64 {
	return rows * (nsRead + nsReadByte*math.Max(0, m.keyBytes-8))
}

// readIDs is reading the IDs' keys, and of their rows, where the answer has them,
// the share that is kept.
func (m *model) readIDs(kept float64) float64 {
	t := nsStart + m.read(m.idRows)
	if m.idBytes > 0 {
		t += (nsDecode*touched(kept, m.idRows, m.idBytes/2) + nsAssemble*kept) * m.idBytes
	}
	return t
}

// rows reports whether the IDs' rows are held with their keys.
func (m *model) rows() bool { return m.typ.columnsOfIDs() && !m.keysOnly }

// held returns the bytes of a table of so many ID rows with so many keys.
func (m *model) held(rows, keys float64) float64 {
	bytes := slotBytesOf * keys
	if !m.integer {
		bytes += (m.keyBytes + keyBytesOf) * keys
	}
	if m.rows() {
		bytes += (rowBytesOf + m.idBytes/math.Max(m.idRows, 1)) * rows
	}
	return bytes
}

// put is putting ID rows into a table that will take held bytes, find looking
// keys up in it.
func (m *model) put(rows, held float64) float64 {
	t := nsIntAdd + nsIntMiss*misses(held)
	if !m.integer {
		t = nsKeyAdd + nsKeyMiss*misses(held)
	}
	if m.rows() {
		t += nsChain
	}
	return t * rows
}

func (m *model) find(rows, held float64) float64 {
	if m.integer {
		return rows * (nsIntFind + nsIntMiss*misses(held))
	}
	return rows * (nsKeyFind + nsKeyMiss*misses(held))
}

// scan is reading the log's keys past a filter of so many bytes.
func (m *model) scan(filter float64) float64 {
	return nsStart + m.read(m.logRows) + m.logRows*ask(filter)
}

// touched is the share of the pages of a column that has a row of those that are
// kept, the given share, if they are strewn about. A page of a mebibyte is
// usual.
func touched(kept, rows, bytes float64) float64 {
	pageRows := math.Min(rows, (1<<20)/math.Max(bytes/math.Max(rows, 1), 0.1))
	return 1 - math.Pow(1-math.Min(kept, 1), pageRows)
}

// candidates is the number of log rows that a filter of rate p lets through.
func (m *model) candidates(p float64) float64 {
	return m.logRows * (m.selectivity + (1-m.selectivity)*p)
}

// answer is making the rows of the answer.
func (m *model) answer() float64 {
	if m.counts {
		return nsStart
	}
	kept := m.selectivity
	switch {
	case m.typ == Anti:
		kept = 1 - m.selectivity
	case m.typ.keepsLog():
		kept = 1
	}
	decode := touched(kept, m.logRows, m.logBytes/math.Max(m.logColumns, 1)) * m.logBytes
	t := decode*nsDecode + kept*m.logBytes*nsWrite
	if m.typ.columnsOfIDs() {
		rows := math.Max(m.joinRows, kept*m.logRows)
		t += decode*nsAssemble + rows*(nsRow+nsWrite*m.idBytes/math.Max(m.idRows, 1))
	}
	return nsStart + t
}

// cost puts together what was added up.
func (m *model) cost(s Strategy, ns, memory, reserved, spilled float64) Cost {
	return Cost{
		Strategy: s, Seconds: ns / math.Max(m.threads, 1) / 1e9,
		MemoryBytes: int64(memory), SpilledBytes: int64(spilled), reserved: reserved,
	}
}

func (m *model) exact() Cost {
	filter := m.filterOfIDs()
	held := filter
	if m.sizes.exact {
		held += m.spread / 8 // marks
	}
	build := m.readIDs(0) + m.idRows*nsExactAdd
	c := m.cost(Exact, build+m.scan(filter)+m.answer(), held, math.Max(0, m.memory/2-held), 0)
	switch {
	case m.typ.columnsOfIDs():
		c.Why = fmt.Sprintf("the answer of type %s has columns of the IDs", m.typ)
	case !m.sizes.exact:
		c.Why = "the filter does not come out exact"
	case m.spread > math.Max(1<<23, table.MarksPerMember*m.idKeys):
		c.Why = "the IDs are too far apart for a bit for each integer between them"
	}
	return c
}

func (m *model) lookup() Cost {
	filter, held := m.filterOfIDs(), m.held(m.idRows, m.idKeys)
	build, reserved := m.idRows*add(filter), m.building(filter)
	if m.filter {
		build, reserved = m.idRows*ask(filter), 0
	}
	ns := build + m.readIDs(1) + m.put(m.idRows, held) + m.scan(filter) + m.find(m.candidates(m.rate()), held) + m.answer()
	return m.cost(Lookup, ns, filter+held, reserved, 0)
}

// reduction is the IDs past a filter of the log's keys.
type reduction struct {
	rows   float64 // that are kept: those that some log row has, and false positives
	ofLog  float64 // bytes of the filter of the log
	filter float64 // of that of the IDs that are kept
	rate   float64 // of that, how many other keys it lets through
	held   float64 // of their table
	ns     float64 // of reading the IDs, and the answer
}

// reduced returns the reduction by so many keys of the log.
func (m *model) reduced(logKeys float64) (r reduction) {
	r.ofLog = m.within(filterBytes(logKeys, logFPR))
	pass := rateOf(r.ofLog, logKeys, logFPR)
	r.rows = math.Min(m.idRows, m.kept+pass*math.Max(0, m.idRows-m.kept))
	r.filter = m.within(filterBytes(r.rows, bloom.DefaultFPR(uint64(r.rows))))
	r.rate = rateOf(r.filter, r.rows, bloom.DefaultFPR(uint64(r.rows)))
	r.held = m.held(r.rows, math.Min(r.rows, m.idKeys))
	r.ns = m.readIDs(r.rows/math.Max(m.idRows, 1)) + m.idRows*ask(r.ofLog) + r.rows*add(r.filter) + m.scan(r.filter) + m.answer()
	return r
}

func (m *model) broadcast() Cost {
	ids := m.filterOfIDs()
	pass := m.rate()
	r := m.reduced(math.Min(m.logKeys, m.kept+pass*m.logKeys))
	build := nsStart + m.read(m.idRows) + m.idRows*add(ids)
	if m.filter {
		build = 0
	}
	ns := r.ns + build + m.scan(ids) + m.candidates(pass)*add(r.ofLog) + m.put(r.rows, r.held) + m.find(m.candidates(pass), r.held)
	return m.again(m.cost(Broadcast, ns, ids+r.ofLog+r.held, m.building(ids+r.ofLog), 0))
}

// ofLog is reading the log's keys into a filter of so many bytes.
func (m *model) ofLog(filter float64) float64 {
	return nsStart + m.read(m.logRows) + m.logRows*add(filter)
}

func (m *model) reverse() Cost {
	r := m.reduced(m.logKeys)
	ns := r.ns + m.ofLog(r.ofLog) + m.put(r.rows, r.held) + m.find(m.candidates(r.rate), r.held)
	c := m.again(m.cost(Reverse, ns, r.ofLog+r.filter+r.held, m.building(r.filter), 0))
	if m.filter && c.Why == "" {
		c.Why = "the filter that was given would go unused"
	}
	return c
}

// shuffle is the reduction with what is kept on disk, and the log's keys that a
// filter of it lets through, too. Each range of the log is then joined with its
// IDs.
func (m *model) shuffle() Cost {
	r := m.reduced(m.logKeys)
	key := spillEntry
	if !m.integer {
		key += m.keyBytes
	}
	entries := m.candidates(r.rate)
	spilled := entries*key + r.rows*key
	if m.rows() {
		spilled += 2 * r.rows * m.idBytes / math.Max(m.idRows, 1)
	}
	held := m.held(1, 1)
	if m.memory > 0 {
		held = math.Min(r.held, m.memory-math.Min(m.memory, r.ofLog+r.filter))
	}
	ns := r.ns + m.ofLog(r.ofLog) + m.scan(r.filter) + spilled*nsSpill + (entries+r.rows)*nsExchange +
		m.put(r.rows, held) + m.find(entries, held)
	return m.again(m.cost(Shuffle, ns, r.ofLog+r.filter+held, 0, spilled))
}

// again refuses what reads a side twice that cannot be.
func (m *model) again(c Cost) Cost {
	if m.once != "" {
		c.Why = m.once + " can be read only once"
	}
	return c
}

// inBytes renders a size.
func inBytes(n float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if v := n / u.size; v >= 100 {
			return fmt.Sprintf("%.0f %s", v, u.name)
		} else if v >= 1 {
			return fmt.Sprintf("%.3g %s", v, u.name)
		}
	}
	return fmt.Sprintf("%.0f B", n)
}
