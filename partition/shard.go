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

// Split returns the pieces of the files that belong to the shard. It divides the
// row groups of all files, in order, among the workers by bytes. Every row group
// belongs to exactly one worker. The division depends on the files' sizes alone, so
// each worker computes its own. A file without row groups belongs to the worker of
// the row groups around it.
func Split(files []*File, s Shard) []Piece {
	var total int64
	for _, f := range files {
		total += weight(f)
	}
	n := int64(max(s.Of, 1))
	var pieces []Piece
	var at int64 // weight of the row groups before
	owner := func(w int64) int64 {
		// The middle of the row group decides. Below 2^43 bytes times 2^20 workers
		// 64 bits suffice; above, floating point gives the same result everywhere.
		mid := at + w/2
		if total < 1<<43 {
			return min(mid*n/max(total, 1), n-1)
		}
		return min(int64(float64(mid)/float64(total)*float64(n)), n-1)
	}
	for _, f := range files {
		piece := Piece{File: f, Lo: -1}
		for g := range f.NumGroups() {
			w := f.GroupBytes(g) + 1
			if owner(w) == int64(s.Index) {
				if piece.Lo < 0 {
					piece.Lo = g
				}
				piece.Hi = g + 1
			}
			at += w
		}
		if f.NumGroups() == 0 {
			if owner(1) == int64(s.Index) {
				piece.Lo, piece.Hi = 0, 0
			}
			at++
		}
		if piece.Lo >= 0 {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// weight is the weight of a file for Split: its bytes, and one for each row group,
// so that empty ones count too.
func weight(f *File) int64 {
	w := int64(0)
	for g := range f.NumGroups() {
		w += f.GroupBytes(g) + 1
	}
	if f.NumGroups() == 0 {
		w = 1
	}
	return w
}

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
