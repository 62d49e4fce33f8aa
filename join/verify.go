package join

import (
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// members tells which keys IDs have, and is told which of them the log has. find
// and mark may be called from many goroutines.
type members interface {
	Find(k *key.Batch, hits, members, entries []uint32) (found, of []uint32)
	Mark(entry uint32)
}

// newVerifier returns what one worker of the scan checks candidates with.
func (j *Join) newVerifier() partition.Verifier {
	v := &verifier{j: j, ids: j.side, spread: newSpread(), asking: j.newFiltering(), asked: true}
	if j.marks != nil {
		v.ids = j.marks
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.spreads = append(j.spreads, v.spread)
	return v
}

// newFiltering returns what decides for one worker whether the filter goes on
// being asked; nil: it does, as it is the join.
func (j *Join) newFiltering() *filtering {
	if j.side == nil {
		return nil
	}
	return newFiltering(&j.model, float64(j.side.Bytes()))
}

// verifier looks candidates up among the IDs.
type verifier struct {
	j       *Join
	ids     members
	spread  *spread
	asking  *filtering
	asked   bool     // the filter is, about the row group at hand
	entries []uint32 // of the members that Verify has found
	hashes  []uint64

	found, own []uint32 // of inBlocks
}

// rowsOf returns how many rows have the key at position i.
func rowsOf(rows []uint32, i uint32) int64 {
	if rows == nil {
		return 1
	}
	return int64(rows[i])
}

// Begin implements [partition.Verifier].
func (v *verifier) Begin(*partition.File, int) { v.asked = v.asking.ask() }

// Filter implements [partition.Verifier].
func (v *verifier) Filter() bool { return v.asked }

// Verify implements [partition.Verifier].
func (v *verifier) Verify(k *key.Batch, hits []uint32) []uint32 {
	var members []uint32
	members, v.entries = v.ids.Find(k, hits, hits, v.entries)
	return members
}

// Count implements [partition.Verifier].
func (v *verifier) Count(k *key.Batch, hits, members, rows []uint32) error {
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
		if n := rowsOf(rows, m); n > 0 {
			v.ids.Mark(v.entries[i])
			matched += n
		}
	}
	if v.j.counts && !v.j.rowsOfLog() {
		if err := v.countPairs(members, rows); err != nil {
			return err
		}
	}
	if b := v.j.block; b != nil { // which does not know whether a row is a stranger
		v.j.matched.Add(v.inBlocks(b, k, hits, members, rows))
		if b.last {
			v.j.candidates.Add(candidates)
		}
		if b.last && !v.asked {
			v.j.unasked.Add(all)
		}
		return nil
	}
	v.j.matched.Add(matched)
	v.j.candidates.Add(candidates)
	if !v.asked {
		v.j.unasked.Add(all)
		return nil
	}
	v.asking.seen(all, candidates)
	v.j.falsePositives.Add(candidates - matched)
	v.strangers(k, members, rows)
	return nil
}

// inBlocks returns, in the last block, how many rows have an ID in any of the
// blocks, and 0 before.
func (v *verifier) inBlocks(b *block, k *key.Batch, hits, members, rows []uint32) (n int64) {
	v.found, v.own = b.keys.Find(k, members, v.found, v.own)
	for _, e := range v.own {
		b.keys.Mark(e)
	}
	if !b.last {
		return 0
	}
	v.found, v.own = b.keys.Find(k, hits, v.found, v.own)
	for i, h := range v.found {
		if b.keys.Marked(v.own[i]) {
			n += rowsOf(rows, h)
		}
	}
	return n
}

// strangers counts the rows whose key is in no ID.
func (v *verifier) strangers(k *key.Batch, members, rows []uint32) {
	v.hashes = k.Hash(table.Hash, v.hashes)
	for i, h := range v.hashes {
		if len(members) > 0 && members[0] == uint32(i) {
			members = members[1:]
			continue
		}
		v.spread.add(h, rowsOf(rows, uint32(i)))
	}
}
