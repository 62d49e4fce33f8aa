package joins

import (
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// members answers which keys IDs have, and records which of them the log has. It is
// safe for concurrent use.
type members interface {
	Find(k *keys.Batch, hits, members, entries []uint32) (found, of []uint32)
	Mark(entry uint32)
}

// checker looks the keys of a round up among its IDs, for one worker of a scan.
type checker struct {
	partitionRound
	tally *tally
	pairs bool // pairs are counted, not made

	ids         members
	spread      *secondMoment
	probePolicy *plan.Filtering
	group       source.Piece // the row group at hand
	counts      *inputCounts // of it
	asked       bool         // the filter is probed for it
	all         []uint32
	found       []uint32 // members of the batch
	entries     []uint32 // of the members
	hashes      []uint64

	hasKey, own []uint32             // of inPortions
	settling    func([]uint32) error // settle
}

// newChecker returns a checker. asking decides whether to probe the filter.
func newChecker(r partitionRound, t *tally, asking *plan.Filtering, pairs bool) *checker {
	c := &checker{partitionRound: r, tally: t, pairs: pairs, ids: r.side, spread: t.newSpread(), probePolicy: asking}
	if r.marks != nil {
		c.ids = r.marks
	}
	c.settling = c.settle
	return c
}

// check returns the positions of the keys that IDs have, see
// [dataset.Match].Check, with their entries, and counts their rows.
func (c *checker) check(k *keyscan.Keys) ([]uint32, error) {
	if c.group != k.Piece {
		c.group, c.counts, c.asked = k.Piece, c.tally.of(k.Piece), c.probePolicy.Ask()
	}
	var hits []uint32
	if c.asked {
		var err error
		if hits, err = k.Probe(); err != nil {
			return nil, err
		}
	} else {
		c.all = table.UpTo(c.all, len(k.Batch.Rows))
		hits = c.all
	}
	c.found, c.entries = c.ids.Find(k.Batch, hits, c.found, c.entries)
	k.Entries = c.entries
	if k.Undecided() {
		return c.found, nil
	}
	if k.Settle = nil; k.Tentative {
		k.Settle = c.settling
	}
	return c.found, c.count(k.Batch, hits, k.Times, k.Tentative)
}

// settle counts rows with the given entries, which count has left out.
func (c *checker) settle(entries []uint32) error {
	pairs := int64(0)
	for _, e := range entries {
		if c.ids.Mark(e); c.pairs {
			pairs += c.side.Times(e)
		}
	}
	c.countMatched(int64(len(entries)))
	return c.tally.addPairs(pairs)
}

// count counts the rows of a batch of keys, after Find. hits are the positions of the
// candidates, rows is how many rows have each key; nil: one. tentative: what only rows that stay are counted for is
// for settle.
func (c *checker) count(k *keys.Batch, hits, rows []uint32, tentative bool) error {
	members := c.found
	all, candidates, matched := int64(len(k.Rows)), int64(0), int64(0)
	if rows != nil {
		all = 0
		for _, n := range rows {
			all += int64(n)
		}
	}
	for _, h := range hits {
		candidates += rowsOf(rows, h)
	}
	for i, m := range members {
		n := rowsOf(rows, m)
		if n > 0 && !tentative {
			c.ids.Mark(c.entries[i])
		}
		matched += n
	}
	if c.pairs && !tentative {
		n, err := pairsOf(members, rows, func(i int) int64 { return c.side.Times(c.entries[i]) })
		if err == nil {
			err = c.tally.addPairs(n)
		}
		if err != nil {
			return err
		}
	}
	if p := c.portion; p != nil { // in which a row without an ID may have one in another portion
		c.countMatched(c.inPortions(p, k, hits, members, rows))
		if p.last {
			c.tally.candidates.Add(candidates)
		}
		if p.last && !c.asked {
			c.tally.unasked.Add(all)
		}
		return nil
	}
	if !tentative {
		c.countMatched(matched)
	}
	c.tally.candidates.Add(candidates)
	if !c.asked {
		c.tally.unasked.Add(all)
		return nil
	}
	c.probePolicy.Seen(all, candidates)
	c.tally.falsePositives.Add(candidates - matched)
	c.countUnmatched(k, members, rows)
	return nil
}

// countMatched counts n rows that have an ID.
func (c *checker) countMatched(n int64) {
	c.tally.matched.Add(n)
	c.counts.matched.Add(n)
}

// inPortions returns, in the last portion, how many rows have an ID in any of them,
// and 0 before.
func (c *checker) inPortions(p *portion, k *keys.Batch, hits, members, rows []uint32) (n int64) {
	c.hasKey, c.own = p.keys.Find(k, members, c.hasKey, c.own)
	for _, e := range c.own {
		p.keys.Mark(e)
	}
	if !p.last {
		return 0
	}
	c.hasKey, c.own = p.keys.Find(k, hits, c.hasKey, c.own)
	for i, h := range c.hasKey {
		if p.keys.Marked(c.own[i]) {
			n += rowsOf(rows, h)
		}
	}
	return n
}

// countUnmatched counts the rows whose key is in no ID.
func (c *checker) countUnmatched(k *keys.Batch, members, rows []uint32) {
	c.hashes = k.Hash(table.Hash, c.hashes)
	spread := *c.spread // two workers' may share a line of the processors' caches
	for i, h := range c.hashes {
		if len(members) > 0 && members[0] == uint32(i) {
			members = members[1:]
			continue
		}
		spread.add(h, rowsOf(rows, uint32(i)))
	}
	*c.spread = spread
}
