// Package options has the checks that the options of several packages share.
package options

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// MaxShards is the maximum number of workers of one job.
const MaxShards = 1 << 20

// Shard returns an error unless index is that of one of the of workers of a job, counted
// from 0. Two zeros mean the only worker.
func Shard(index, of uint32) error {
	var want string
	switch {
	case index == 0 && of == 0, index < of && of <= MaxShards:
		return nil
	case of == 0:
		want = fmt.Sprintf("want 1 to %d shards, got none", MaxShards)
	case of > MaxShards:
		want = fmt.Sprintf("want at most %d shards, got %d", MaxShards, of)
	case of == 1:
		want = fmt.Sprintf("want 0, got %d", index)
	default:
		want = fmt.Sprintf("want 0 to %d, got %d", of-1, index)
	}
	return fmt.Errorf("shard %d/%d: counted from 0: %s", index, of, want)
}

// AtLeastZero returns an error if the value of the named option is negative. zero is
// what zero means.
func AtLeastZero[T int | int64](name string, value T, zero string) error {
	if value >= 0 {
		return nil
	}
	return faults.Errorf("%s: want 0 (%s) or more, got %d", fault.Text("{"+name+"}"), zero, value)
}

// Schema is that of a Parquet file.
type Schema struct {
	name   string
	footer []byte
}

// NewSchema returns the schema of a file, as Parquet's FileMetaData without row groups.
func NewSchema(name string, footer []byte) *Schema { return &Schema{name, footer} }

// Of returns the file's name, for messages, and the schema.
func (s *Schema) Of() (name string, footer []byte) { return s.name, s.footer }
