package join

import (
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/partition"
)

// members tells which keys IDs have, and is told which of them the log has. find
// and mark may be called from many goroutines.
type members interface {
	find(k *keys.Batch, hits, members, entries []uint32) (found, of []uint32)
	mark(entry uint32)
}

// newVerifier returns what one worker of the scan checks candidates with.
func (j *Join) newVerifier() partition.Verifier {
	v := &verifier{j: j, ids: j.side, spread: newSpread()}
	if j.marks != nil {
		v.ids = j.marks
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.spreads = append(j.spreads, v.spread)
	return v
}

// rowsOf returns how many rows have the key at position i.
func rowsOf(rows []uint32, i uint32) int64 {
	if rows == nil {
		return 1
	}
	return int64(rows[i])
}

// verifier looks candidates up among the IDs.
type verifier struct {
	j       *Join
	ids     members
	spread  *spread
	entries []uint32 // of the members that Verify has found
	hashes  []uint64
}

// Filter implements [partition.Verifier].
func (v *verifier) Filter() bool { return true }

// Begin implements [partition.Verifier].
func (v *verifier) Begin(*partition.File, int) {}

func (v *verifier) Verify(k *keys.Batch, hits []uint32) []uint32 {
	var members []uint32
	members, v.entries = v.ids.find(k, hits, hits, v.entries)
	return members
}

func (v *verifier) Count(k *keys.Batch, hits, members, rows []uint32) error {
	candidates, matched := int64(0), int64(0)
	for _, h := range hits {
		candidates += rowsOf(rows, h)
	}
	for i, m := range members {
		if n := rowsOf(rows, m); n > 0 {
			v.ids.mark(v.entries[i])
			matched += n
		}
	}
	v.j.candidates.Add(candidates)
	v.j.falsePositives.Add(candidates - matched)
	v.hashes = k.Hash(tableHash, v.hashes)
	for i, h := range v.hashes {
		if len(members) > 0 && members[0] == uint32(i) {
			members = members[1:]
			continue
		}
		v.spread.add(h, rowsOf(rows, uint32(i)))
	}
	return nil
}
