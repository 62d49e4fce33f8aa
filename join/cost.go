package join

import (
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/bloom"
)

// The cost model: what each strategy takes, in seconds, bytes held and bytes
// spilled, by the figures of both sides. Its constants were measured, as
// docs/plan.md tells; what matters is their proportion, since a strategy is
// chosen by comparison. It knows no state of the machine: the same inputs give
// the same choice.

// Nanoseconds of one thread.
const (
	nsRead       = 1.6 // a key of eight bytes, from its page to a batch
	nsReadByte   = 0.4 // each further byte of a key
	nsFilterAdd  = 4.0
	nsFilterFind = 2.5
	nsSetAdd     = 9.0 // of integers alone, without rows
	nsSetFind    = 6.0
	nsTableAdd   = 60.0 // of any keys, with rows
	nsTableFind  = 30.0
	nsMiss       = 18.0 // added to all of these where what is looked at is in no cache
	nsDecode     = 0.4  // a byte of the log's columns, decompressed and decoded
	nsWrite      = 1.5  // a byte of the answer, encoded and compressed
	nsRow        = 12.0 // a row of the answer that is put together
	nsSpill      = 1.5  // a byte written to disk and read again
	nsStart      = 1e6  // a pass over one side: goroutines, files, buffers
)

// Bytes held.
const (
	setBytes   = 16.0 // a member of a set of integers, while it grows
	tableBytes = 48.0 // a key in a table without its own bytes, while it grows
	rowBytes   = 8.0  // a row of the IDs that is kept
	spillEntry = 16.0 // a log row's key, hash and place on disk, without the key's bytes if it is no integer
	fastCache  = 1 << 21
	slowCache  = 1 << 26
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
	memory  float64 // 0: no bound
	threads float64
	typ     Type
	once    string // the side that can be read one time only
	filter  bool   // a filter of the IDs is there
	fpr     float64
}

// Cost is what a strategy would take.
type Cost struct {
	Strategy     Strategy `json:"strategy"`
	Feasible     bool     `json:"feasible"`
	Why          string   `json:"why,omitempty"` // it is not feasible
	Seconds      float64  `json:"seconds"`
	MemoryBytes  int64    `json:"memory_bytes"`
	SpilledBytes int64    `json:"spilled_bytes"`
}

// costs returns what each strategy takes, in a fixed order.
func costs(s sizes, l limits) []Cost {
	m := model{sizes: s, limits: l}
	out := []Cost{m.exact(), m.lookup(), m.broadcast(), m.reverse(), m.shuffle()}
	for i := range out {
		c := &out[i]
		if c.Why == "" && l.memory > 0 && float64(c.MemoryBytes) > l.memory {
			c.Why = fmt.Sprintf("it needs about %s of the %s that there are", inBytes(float64(c.MemoryBytes)), inBytes(l.memory))
		}
		c.Feasible = c.Why == ""
	}
	return out
}

// choose returns the strategy to take: of those that are feasible the fastest,
// and of those within a tenth of it the simplest. If none is, that is the last
// one that could be tried, and the join itself will say what is wrong.
func choose(costs []Cost) Cost {
	best := math.Inf(1)
	for _, c := range costs {
		if c.Feasible {
			best = math.Min(best, c.Seconds)
		}
	}
	for _, c := range costs {
		if c.Feasible && c.Seconds <= 1.1*best {
			return c
		}
	}
	for _, c := range costs {
		if c.Strategy == Lookup {
			return c
		}
	}
	return Cost{Strategy: Lookup}
}

// model computes costs. Times are in nanoseconds of one thread.
type model struct {
	sizes
	limits
}

// miss returns what a random access into so many bytes costs beyond the
// constants, which are those of the second-level cache.
func miss(held float64) float64 {
	share := math.Log2(math.Max(held, 1)/fastCache) / math.Log2(slowCache/fastCache)
	return nsMiss * math.Min(1, math.Max(0, share))
}

// filterBytes is the size of a Bloom filter.
func filterBytes(keys, p float64) float64 {
	g := bloom.GeometryFor(p)
	return float64(g.BlocksFor(uint64(math.Max(keys, 1)), p) * g.BlockBytes())
}

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
	if m.sizes.exact {
		return 2 * m.idKeys
	}
	return filterBytes(m.idKeys, m.rate())
}

func (m *model) read(rows float64) float64 {
	return rows * (nsRead + nsReadByte*math.Max(0, m.keyBytes-8))
}

// readIDs is reading the IDs' keys, or their rows where the answer has them.
func (m *model) readIDs() float64 {
	return nsStart + m.read(m.idRows) + nsDecode*m.idBytes
}

// held returns the bytes of a table of so many ID rows with so many keys.
func (m *model) held(rows, keys float64) float64 {
	if m.integer && !m.typ.columnsOfIDs() {
		return setBytes * keys
	}
	payload := 0.0
	if m.idRows > 0 {
		payload = m.idBytes / m.idRows * rows
	}
	return (tableBytes+m.keyBytes)*keys + rowBytes*rows + payload
}

// put is putting ID rows into a table that will take held bytes, find looking
// keys up in it.
func (m *model) put(rows, held float64) float64 {
	if m.integer && !m.typ.columnsOfIDs() {
		return rows * (nsSetAdd + miss(held))
	}
	return rows * (nsTableAdd + miss(held))
}

func (m *model) find(rows, held float64) float64 {
	if m.integer && !m.typ.columnsOfIDs() {
		return rows * (nsSetFind + miss(held))
	}
	return rows * (nsTableFind + 2*miss(held))
}

// scan is reading the log's keys past a filter of so many bytes that lets
// through, of the rows without an ID, the share p.
func (m *model) scan(filter float64) float64 {
	return nsStart + m.read(m.logRows) + m.logRows*(nsFilterFind+miss(filter)/2)
}

func (m *model) candidates(p float64) float64 {
	return m.logRows * (m.selectivity + (1-m.selectivity)*p)
}

// answer is making the rows of the answer.
func (m *model) answer() float64 {
	if m.logRows == 0 {
		return nsStart
	}
	kept := m.selectivity
	if m.typ.keepsLog() {
		kept = 1 - m.selectivity
		if m.typ != Anti {
			kept = 1
		}
	}
	// A page is decoded if one of its rows is kept; a mebibyte is usual.
	perRow := m.logBytes / m.logRows / math.Max(m.logColumns, 1)
	pageRows := math.Min(m.logRows, (1<<20)/math.Max(perRow, 0.1))
	touched := 1 - math.Pow(1-math.Min(kept, 1), pageRows)
	t := touched*m.logBytes*nsDecode + kept*m.logBytes*nsWrite
	if m.typ.columnsOfIDs() {
		rows := math.Max(m.joinRows, kept*m.logRows)
		t += rows * (nsRow + nsWrite*m.idBytes/math.Max(m.idRows, 1))
	}
	return t
}

// cost puts together what was added up, in bytes and nanoseconds: of those,
// serial ones that a single thread takes.
func (m *model) cost(s Strategy, serial, parallel, memory, spilled float64) Cost {
	return Cost{
		Strategy: s, Seconds: (serial + parallel/math.Max(m.threads, 1)) / 1e9,
		MemoryBytes: int64(memory), SpilledBytes: int64(spilled),
	}
}

func (m *model) exact() Cost {
	filter := m.filterOfIDs()
	build := m.readIDs() + m.idRows*(nsFilterAdd+miss(filter))
	held := filter
	if m.sizes.exact {
		held += m.spread / 8
	}
	c := m.cost(Exact, 0, build+m.scan(filter)+m.answer(), held, 0)
	switch {
	case m.typ.columnsOfIDs():
		c.Why = fmt.Sprintf("the answer of type %s has columns of the IDs", m.typ)
	case !m.sizes.exact:
		c.Why = "the filter does not come out exact"
	case m.spread > math.Max(1<<23, marksPerMember*m.idKeys):
		c.Why = "the IDs are too far apart for a bit for each integer between them"
	}
	return c
}

func (m *model) lookup() Cost {
	filter, held := m.filterOfIDs(), m.held(m.idRows, m.idKeys)
	build := m.idRows * (nsFilterAdd + miss(filter))
	if m.filter {
		build = 0
	}
	return m.cost(Lookup, m.put(m.idRows, held),
		build+m.readIDs()+m.scan(filter)+m.find(m.candidates(m.rate()), held)+m.answer(), filter+held, 0)
}

// reduced is the second half of broadcast, reverse and shuffle: the IDs past a
// filter of log keys, and then the join with those that are kept. It returns the
// rows that are kept, too: those that some log row has, and false positives.
func (m *model) reduced(logKeys float64) (kept, filter, held, serial, parallel float64) {
	filter = filterBytes(logKeys, logFPR)
	kept = math.Min(m.idRows, m.kept+logFPR*math.Max(0, m.idRows-m.kept))
	held = m.held(kept, math.Min(kept, m.idKeys))
	second := filterBytes(kept, bloom.DefaultFPR(uint64(kept)))
	parallel = m.readIDs() + m.idRows*(nsFilterFind+miss(filter)) +
		m.scan(second) + kept*(nsFilterAdd+miss(second)) + m.find(m.candidates(logFPR), held) + m.answer()
	return kept, filter, held + second, m.put(kept, held), parallel
}

func (m *model) broadcast() Cost {
	ids := m.filterOfIDs()
	// The log's keys past the filter of IDs, and those that pass into another.
	keys := math.Min(m.logKeys, m.kept+m.rate()*m.logKeys)
	_, filter, held, serial, parallel := m.reduced(keys)
	build := nsStart + m.read(m.idRows) + m.idRows*(nsFilterAdd+miss(ids))
	if m.filter {
		build = 0
	}
	parallel += build + m.scan(ids) + m.candidates(m.rate())*(nsFilterAdd+miss(filter))
	return m.again(m.cost(Broadcast, serial, parallel, math.Max(ids+filter, filter+held), 0))
}

func (m *model) reverse() Cost {
	_, filter, held, serial, parallel := m.reduced(m.logKeys)
	parallel += nsStart + m.read(m.logRows) + m.logRows*(nsFilterAdd+miss(filter))
	c := m.again(m.cost(Reverse, serial, parallel, filter+held, 0))
	if m.filter && c.Why == "" {
		c.Why = "the filter that was given would go unused"
	}
	return c
}

// shuffle is reverse with log keys and kept IDs on disk. Each bucket is put
// into a table; the answer is made from one range of the log after the other.
func (m *model) shuffle() Cost {
	logKeys := m.logKeys
	filter := filterBytes(logKeys, logFPR)
	if m.limits.memory > 0 { // a filter that does not fit is left out
		filter = math.Min(filter, m.limits.memory/4)
	}
	kept, _, held, serial, parallel := m.reduced(logKeys)
	entry := spillEntry
	if !m.integer {
		entry += m.keyBytes
	}
	payload := entry + m.idBytes/math.Max(m.idRows, 1)
	spilled := m.logRows*entry + 2*kept*payload
	parallel += nsStart + m.read(m.logRows) + m.logRows*(nsFilterAdd+miss(filter)) +
		spilled*nsSpill + m.logRows*nsTableAdd
	memory := filter + held
	if m.limits.memory > 0 {
		memory = math.Min(memory, m.limits.memory)
	}
	return m.again(m.cost(Shuffle, serial, parallel, memory, spilled))
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
