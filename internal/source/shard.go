package source

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/options"
)

// CheckShard returns an error for a shard that does not exist.
func CheckShard(s dataset.Shard) error { return options.Shard(s.Index, s.Of) }

// Piece is a range of row groups of a file, which one worker reads.
type Piece struct {
	File   *File
	Lo, Hi int // row groups Lo to Hi, Hi exclusive, counted from 0
}

// shared returns an error if Split was given a shard that does not exist.
func shared(pieces []Piece) error {
	for _, p := range pieces {
		if p.File == nil {
			continue
		}
		if no, ok := p.File.table.(*noShare); ok {
			return no.err
		}
	}
	return nil
}

// noShare is the table that stands for the share of a shard that does not exist.
type noShare struct{ err error }

func (*noShare) Schema() *arrow.Schema { return arrow.NewSchema(nil, nil) }
func (*noShare) NumGroups() int        { return 1 }
func (*noShare) GroupRows(int) int64   { return -1 }
func (*noShare) GroupBytes(int) int64  { return 0 }
func (*noShare) Close() error          { return nil }

func (n *noShare) Read(context.Context, int, []int) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) { yield(nil, n.err) }
}

// noPiece returns a piece that returns the error when it is read.
func noPiece(s dataset.Shard, err error) Piece {
	name := fmt.Sprintf("shard %d/%d", s.Index, s.Of)
	return Piece{File: NewTable(name, dataset.RecordBatches, &noShare{err}), Hi: 1}
}

// Contains reports whether q is a part of p.
func (p Piece) Contains(q Piece) bool { return q.File == p.File && p.Lo <= q.Lo && q.Hi <= p.Hi }

// Whole reports whether the piece is all of its file.
func (p Piece) Whole() bool { return p.Lo == 0 && p.Hi == p.File.NumGroups() }

// Unchanged returns an error that wraps [storage.ErrChanged] if the file of a piece
// is known to have changed since it was opened: some of the data that was read may
// be from another version.
func Unchanged(pieces []Piece) error {
	if err := CheckPieces(pieces); err != nil {
		return err
	}
	for _, p := range pieces {
		if err := objects.Changed(p.File.reader); err != nil {
			return err
		}
	}
	return nil
}

// Rows returns the number of rows that are not deleted, whatever the condition, or -1.
func (p Piece) Rows() (n int64) {
	for g := p.Lo; g < p.Hi; g++ {
		rows := p.File.LiveRows(g)
		if rows < 0 {
			return -1
		}
		n += rows
	}
	return n
}
