package plan

import (
	"cmp"
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
)

// Only the ratios of the model's constants matter: strategies are compared.

// Nanoseconds of one thread, measured by BenchmarkCosts and by whole joins. Tables and
// filters are assumed to fit the second-level cache; for larger ones a miss is added,
// gradually up to slowCache.
const (
	nsRead       = 1.6 // a key of eight bytes, from its page to a batch
	nsReadByte   = 0.4 // each further byte of a key, hashing included
	nsFilterAdd  = 1.4
	nsFilterFind = 1.4
	nsFilterMiss = 3.0  // misses of several keys overlap
	nsExactAdd   = 4.0  // a key added to a dense exact set
	nsIntAdd     = 12.0 // a key added to a table of integers
	nsIntFind    = 9.0
	nsIntMiss    = 13.0
	nsKeyAdd     = 35.0 // any other key
	nsKeyFind    = 30.0
	nsKeyMiss    = 20.0
	nsChain      = 8.0  // an ID row kept with its key
	nsDecode     = 0.4  // a byte of columns, decompressed and decoded
	nsCopied     = 0.6  // a byte of columns, decompressed, that is copied as it is stored
	nsAssemble   = 0.3  // in addition, if records are made of them
	nsWrite      = 1.5  // a byte of the answer, encoded and compressed
	nsRow        = 12.0 // a row of the answer, put together
	nsSpill      = 1.5  // a byte written to disk and read again
	nsExchange   = 60.0 // an entry of a shuffle, from one side to the other
	nsStart      = 1e6  // a pass over one side: goroutines, files, buffers
	fastCache    = 1 << 21
	slowCache    = 1 << 26
)

// nsDecodeOf are nsDecode by the codec of the log.
var nsDecodeOf = map[string]float64{"none": 0.1, "snappy": 0.3, "zstd": 0.7, "gzip": 2.5, "brotli": 2.5}

// Bytes held and spilled.
const (
	slotBytesOf = 17.5 // per key in a table
	keyBytesOf  = 1.5  // per key that is not an integer, besides its own bytes
	rowBytesOf  = 4.0  // per ID row, for the chain of its key
	spillEntry  = 12.0 // per key on disk, compressed
)

// FilterPart is the part of the memory that one filter may take: a third.
const FilterPart = 3

// LogFPR is the false-positive rate of a filter of the log's keys. An ID held
// needlessly costs some thirty times the memory of a log key's bits.
const LogFPR = 0.004

// Strategy names how a join is carried out.
type Strategy string

// The strategies, as package join documents them.
const (
	Auto      Strategy = "auto"
	Exact     Strategy = "exact"
	Lookup    Strategy = "lookup"
	Broadcast Strategy = "broadcast"
	Reverse   Strategy = "reverse"
	Shuffle   Strategy = "shuffle"
)

// Sizes are the figures that costs follow from. Unknown ones are upper bounds.
type Sizes struct {
	LogRows    float64
	LogKeys    float64 // distinct
	LogBytes   float64 // of the answer's columns, decompressed
	LogColumns float64
	Codec      string // of the log, as [source.File.Codec] names it; "": none or unknown
	Copied     bool   // chunks of the log that lose no row are copied as they are stored

	IDRows   float64
	IDKeys   float64 // distinct
	IDBytes  float64 // of the answer's columns, decompressed; 0: none
	KeyBytes float64 // of one key, in normal form
	Integer  bool    // the key is one integer column
	Exact    bool    // a filter of the IDs comes out exact
	Spread   float64 // integers from the least ID to the greatest; 0: unknown

	Selectivity float64 // share of the log's rows whose key is in an ID
	JoinRows    float64 // pairs
	Kept        float64 // ID rows whose key the log has
}

// Limits are the constraints on a choice.
type Limits struct {
	Strategy  Strategy // asked for; Auto: free
	Memory    float64  // bytes; 0: no bound
	Threads   float64
	Type      string  // of the join, for messages
	IDColumns bool    // the answer has columns of the IDs
	Anti      bool    // the answer is the log rows without an ID
	KeepsLog  bool    // log rows without an ID are in the answer
	KeysOnly  bool    // of the IDs only keys are held
	Counts    bool    // rows of the answer are counted, not made
	Once      string  // the side that can be read only once; "": both can be reread
	Filter    bool    // the caller supplied a filter of the IDs
	FPR       float64 // of the filter of the IDs; 0: by their number
}

// Cost is what a strategy would take.
type Cost struct {
	Strategy     Strategy `json:"strategy"`
	Feasible     bool     `json:"feasible"`
	Why          string   `json:"why,omitempty"` // it is not feasible
	Seconds      float64  `json:"seconds"`
	MemoryBytes  int64    `json:"memory_bytes"`
	SpilledBytes int64    `json:"spilled_bytes"`

	reserved float64 // bytes of memory needed only while a filter is built
}

// Costs returns what each strategy takes, in a fixed order.
func Costs(s Sizes, l Limits) []Cost {
	m := Model{Sizes: s, Limits: l}
	out := []Cost{m.exact(), m.lookup(), m.broadcast(), m.reverse(), m.shuffle()}
	for i := range out {
		c := &out[i]
		if c.Why == "" && l.Memory > 0 && float64(c.MemoryBytes)+c.reserved > l.Memory {
			c.Why = fmt.Sprintf("it needs about %s of the %s that there are", inBytes(float64(c.MemoryBytes)+c.reserved), inBytes(l.Memory))
		}
		c.Feasible = c.Why == ""
	}
	return out
}

// Choose returns the strategy to take: among feasible ones within a tenth of the
// fastest, the simplest, which reads least often. If none is feasible it returns
// Lookup, and the join reports what is wrong.
func Choose(costs []Cost) Cost {
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

// Model computes costs. Times are in nanoseconds of one thread.
type Model struct {
	Sizes
	Limits
}

// misses returns the share of random accesses to held bytes that miss the
// caches.
func misses(held float64) float64 {
	share := math.Log2(math.Max(held, 1)/fastCache) / math.Log2(slowCache/fastCache)
	return math.Min(1, math.Max(0, share))
}

// add and ask return the time to add a key to, and look it up in, a filter of the
// given bytes.
func add(filter float64) float64 { return nsFilterAdd + nsFilterMiss*misses(filter) }
func ask(filter float64) float64 { return nsFilterFind + nsFilterMiss*misses(filter) }

// rate returns the false-positive rate of the filter of the IDs.
func (m *Model) rate() float64 {
	switch {
	case m.Sizes.Exact:
		return 0
	case m.Limits.FPR > 0:
		return m.Limits.FPR
	}
	return bloom.DefaultFPR(uint64(m.IDRows))
}

// filterOfIDs returns the bytes of the filter of the IDs.
func (m *Model) filterOfIDs() float64 {
	switch {
	case m.Sizes.Exact && m.Spread > 0:
		return math.Min(2*m.IDKeys, m.Spread/8)
	case m.Sizes.Exact:
		return 2 * m.IDKeys
	}
	return m.within(filterBytes(m.IDKeys, m.rate()))
}

// within returns the bytes that a filter gets if it asks for the given number: at
// most its part of the memory.
func (m *Model) within(filter float64) float64 {
	if m.Limits.Memory > 0 {
		filter = math.Min(filter, m.Limits.Memory/FilterPart)
	}
	return filter
}

// building returns the bytes reserved besides a filter of the given bytes while it
// is built.
func (m *Model) building(filter float64) float64 { return math.Max(0, m.Memory/FilterPart-filter) }

func (m *Model) read(rows float64) float64 {
	return rows * (nsRead + nsReadByte*math.Max(0, m.KeyBytes-8))
}

// readIDs returns the time to read the IDs' keys and, if the answer has columns of
// the IDs, the kept share of their rows.
func (m *Model) readIDs(kept float64) float64 {
	t := nsStart + m.read(m.IDRows)
	if m.IDBytes > 0 {
		t += (nsDecode*touched(kept, m.IDRows, m.IDBytes/2) + nsAssemble*kept) * m.IDBytes
	}
	return t
}

// rows reports whether ID rows are held with their keys.
func (m *Model) rows() bool { return m.IDColumns && !m.KeysOnly }

// held returns the bytes of a table of rows ID rows with keys distinct keys.
func (m *Model) held(rows, keys float64) float64 {
	bytes := slotBytesOf * keys
	if !m.Integer {
		bytes += (m.KeyBytes + keyBytesOf) * keys
	}
	if m.rows() {
		bytes += (rowBytesOf + m.IDBytes/math.Max(m.IDRows, 1)) * rows
	}
	return bytes
}

// put returns the time to add ID rows to a table of held bytes, find to look keys
// up in it.
func (m *Model) put(rows, held float64) float64 {
	t := nsIntAdd + nsIntMiss*misses(held)
	if !m.Integer {
		t = nsKeyAdd + nsKeyMiss*misses(held)
	}
	if m.rows() {
		t += nsChain
	}
	return t * rows
}

func (m *Model) find(rows, held float64) float64 {
	if m.Integer {
		return rows * (nsIntFind + nsIntMiss*misses(held))
	}
	return rows * (nsKeyFind + nsKeyMiss*misses(held))
}

// scan returns the time to read the log's keys and probe a filter of the given bytes.
func (m *Model) scan(filter float64) float64 {
	return nsStart + m.read(m.LogRows) + m.LogRows*ask(filter)
}

// touched returns the share of a column's pages that hold a kept row, if the kept
// share of rows is spread at random over pages of a mebibyte.
func touched(kept, rows, bytes float64) float64 {
	pageRows := math.Min(rows, (1<<20)/math.Max(bytes/math.Max(rows, 1), 0.1))
	return 1 - math.Pow(1-math.Min(kept, 1), pageRows)
}

// candidates returns how many log rows a filter of rate p lets through.
func (m *Model) candidates(p float64) float64 {
	return m.LogRows * (m.Selectivity + (1-m.Selectivity)*p)
}

// answer returns the time to make the rows of the answer.
func (m *Model) answer() float64 {
	if m.Counts {
		return nsStart
	}
	kept := m.Selectivity
	switch {
	case m.Anti:
		kept = 1 - m.Selectivity
	case m.KeepsLog:
		kept = 1
	}
	decode := touched(kept, m.LogRows, m.LogBytes/math.Max(m.LogColumns, 1)) * m.LogBytes
	t := decode*cmp.Or(nsDecodeOf[m.Codec], nsDecode) + kept*m.LogBytes*nsWrite
	once := m.JoinRows <= 1.05*m.Selectivity*m.LogRows // log rows do not multiply
	if m.KeepsLog && !m.Anti && m.Copied && once {
		t, decode = m.LogBytes*nsCopied, 0
	}
	if m.IDColumns {
		rows := math.Max(m.JoinRows, kept*m.LogRows)
		if m.KeepsLog && !m.Anti && once {
			rows = math.Max(m.JoinRows, 1)
		}
		t += decode*nsAssemble + rows*(nsRow+nsWrite*m.IDBytes/math.Max(m.IDRows, 1))
	}
	return nsStart + t
}

// cost returns a Cost of the given totals.
func (m *Model) cost(s Strategy, ns, memory, reserved, spilled float64) Cost {
	return Cost{
		Strategy: s, Seconds: ns / math.Max(m.Threads, 1) / 1e9,
		MemoryBytes: int64(memory), SpilledBytes: int64(spilled), reserved: reserved,
	}
}

func (m *Model) exact() Cost {
	filter := m.filterOfIDs()
	held := filter
	if m.Sizes.Exact {
		held += m.Spread / 8 // marks
	}
	build := m.readIDs(0) + m.IDRows*nsExactAdd
	c := m.cost(Exact, build+m.scan(filter)+m.answer(), held, math.Max(0, m.Memory/2-held), 0)
	switch {
	case m.IDColumns:
		c.Why = fmt.Sprintf("the answer of type %s has columns of the IDs", m.Type)
	case m.Once == "the IDs": // a second reading counts those that have rows, if keys repeat
		c.Why = m.Once + " can be read only once"
	case !m.Sizes.Exact:
		c.Why = "the filter does not come out exact"
	case m.Spread > math.Max(1<<23, table.MarksPerMember*m.IDKeys):
		c.Why = "the IDs are too far apart for a bit for each integer between them"
	}
	return c
}

func (m *Model) lookup() Cost {
	filter, held := m.filterOfIDs(), m.held(m.IDRows, m.IDKeys)
	build, reserved := m.IDRows*add(filter), m.building(filter)
	if m.Filter {
		build, reserved = m.IDRows*ask(filter), 0
	}
	ns := build + m.readIDs(1) + m.put(m.IDRows, held) + m.scan(filter) + m.find(m.candidates(m.rate()), held) + m.answer()
	return m.cost(Lookup, ns, filter+held, reserved, 0)
}

// reduction holds the figures of the IDs that pass a filter of the log's keys.
type reduction struct {
	rows   float64 // kept: those that some log row has, and false positives
	ofLog  float64 // bytes of the filter of the log
	filter float64 // bytes of the filter of the kept IDs
	rate   float64 // its false-positive rate
	held   float64 // of their table
	ns     float64 // to read the IDs and make the answer
}

// reduced returns the reduction by a filter of logKeys keys.
func (m *Model) reduced(logKeys float64) (r reduction) {
	r.ofLog = m.within(filterBytes(logKeys, LogFPR))
	pass := rateOf(r.ofLog, logKeys, LogFPR)
	r.rows = math.Min(m.IDRows, m.Kept+pass*math.Max(0, m.IDRows-m.Kept))
	r.filter = m.within(filterBytes(r.rows, bloom.DefaultFPR(uint64(r.rows))))
	r.rate = rateOf(r.filter, r.rows, bloom.DefaultFPR(uint64(r.rows)))
	r.held = m.held(r.rows, math.Min(r.rows, m.IDKeys))
	r.ns = m.readIDs(r.rows/math.Max(m.IDRows, 1)) + m.IDRows*ask(r.ofLog) + r.rows*add(r.filter) + m.scan(r.filter) + m.answer()
	return r
}

func (m *Model) broadcast() Cost {
	ids := m.filterOfIDs()
	pass := m.rate()
	r := m.reduced(math.Min(m.LogKeys, m.Kept+pass*m.LogKeys))
	build := nsStart + m.read(m.IDRows) + m.IDRows*add(ids)
	if m.Filter {
		build = 0
	}
	ns := r.ns + build + m.scan(ids) + m.candidates(pass)*add(r.ofLog) + m.put(r.rows, r.held) + m.find(m.candidates(pass), r.held)
	return m.again(m.cost(Broadcast, ns, ids+r.ofLog+r.held, m.building(ids+r.ofLog), 0))
}

// ofLog returns the time to read the log's keys into a filter of the given bytes.
func (m *Model) ofLog(filter float64) float64 {
	return nsStart + m.read(m.LogRows) + m.LogRows*add(filter)
}

func (m *Model) reverse() Cost {
	r := m.reduced(m.LogKeys)
	ns := r.ns + m.ofLog(r.ofLog) + m.put(r.rows, r.held) + m.find(m.candidates(r.rate), r.held)
	c := m.again(m.cost(Reverse, ns, r.ofLog+r.filter+r.held, m.building(r.filter), 0))
	if m.Filter && c.Why == "" {
		c.Why = "the filter that was given would go unused"
	}
	return c
}

// shuffle is the reduction with the kept IDs on disk, and the log's keys that
// pass a filter of them too. Then parts of the log are joined with their IDs.
func (m *Model) shuffle() Cost {
	r := m.reduced(m.LogKeys)
	key := spillEntry
	if !m.Integer {
		key += m.KeyBytes
	}
	entries := m.candidates(r.rate)
	spilled := entries*key + r.rows*key
	if m.rows() {
		spilled += 2 * r.rows * m.IDBytes / math.Max(m.IDRows, 1)
	}
	held := m.held(1, 1)
	if m.Memory > 0 {
		held = math.Min(r.held, m.Memory-math.Min(m.Memory, r.ofLog+r.filter))
	}
	ns := r.ns + m.ofLog(r.ofLog) + m.scan(r.filter) + spilled*nsSpill + (entries+r.rows)*nsExchange +
		m.put(r.rows, held) + m.find(entries, held)
	return m.again(m.cost(Shuffle, ns, r.ofLog+r.filter+held, 0, spilled))
}

// again marks a strategy that reads a side twice as not feasible if it cannot be.
func (m *Model) again(c Cost) Cost {
	if m.Once != "" {
		c.Why = m.Once + " can be read only once"
	}
	return c
}
