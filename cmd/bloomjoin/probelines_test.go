package main

import (
	"io"
	"sync/atomic"
	"testing"
	"time"
)

// longRows are rows of more than longBatch bytes.
type longRows struct{ read atomic.Int64 }

func (r *longRows) Next() ([]byte, error) {
	if r.read.Add(1) > 3 {
		return nil, io.EOF
	}
	return make([]byte, longBatch+1), nil
}
func (*longRows) Ready() bool                     { return true }
func (*longRows) Line() int                       { return 1 }
func (*longRows) Offset() int64                   { return 0 }
func (*longRows) Compressed() bool                { return false }
func (*longRows) Resume(int)                      {}
func (*longRows) Value(int) ([]byte, bool, error) { return nil, false, nil }
func (*longRows) Close() error                    { return nil }

// There is memory for one long row: the next is read once it was answered.
func TestLongRowsOneByOne(t *testing.T) {
	rows := new(longRows)
	l := &lineReader{in: rows, direct: true}
	n := int64(0)
	for b := range l.batches(t.Context()) {
		n++
		time.Sleep(20 * time.Millisecond) // for the other goroutine
		if got := rows.read.Load(); got != n {
			t.Errorf("%d rows were read, and %d answered", got, n-1)
		}
		l.free <- b
		l.asked.Done()
	}
	if n != 4 {
		t.Errorf("%d batches, want 4", n)
	}
}
