package partition

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/storage"
)

// Shard is worker Index of Of workers, counted from 0. The zero value is the only
// worker of a job.
type Shard struct{ Index, Of uint32 }

// ParseShard parses "i/n".
func ParseShard(s string) (Shard, error) {
	i, n, ok := strings.Cut(s, "/")
	index, err1 := strconv.ParseUint(i, 10, 32)
	of, err2 := strconv.ParseUint(n, 10, 32)
	if !ok || err1 != nil || err2 != nil || index >= of || of > MaxShards {
		return Shard{}, fmt.Errorf("shard %q: want I/N with 0 ≤ I < N ≤ %d, as in 0/16", s, MaxShards)
	}
	return Shard{uint32(index), uint32(of)}, nil
}

// MaxShards is the maximum number of workers of one job.
const MaxShards = 1 << 20

// Whole reports whether there is only one worker.
func (s Shard) Whole() bool { return s.Of <= 1 }

// String formats the shard in the form that ParseShard reads.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, max(s.Of, 1)) }

// Piece is a range of row groups of a file, which one worker reads.
type Piece struct {
	File   *File
	Lo, Hi int // row groups Lo to Hi, Hi exclusive, counted from 0
}

// contains reports whether q is a part of p.
func (p Piece) contains(q Piece) bool { return q.File == p.File && p.Lo <= q.Lo && q.Hi <= p.Hi }

// Whole reports whether the piece is all of its file.
func (p Piece) whole() bool { return p.Lo == 0 && p.Hi == p.File.NumGroups() }

// Unchanged returns an error that wraps [storage.ErrChanged] if the file of a piece
// is known to have changed since it was opened: some of the data that was read may
// be from another version.
func Unchanged(pieces []Piece) error {
	for _, p := range pieces {
		if err := storage.Changed(p.File.src); err != nil {
			return err
		}
	}
	return nil
}
