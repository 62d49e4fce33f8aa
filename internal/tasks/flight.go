package tasks

import (
	"runtime"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/source"
)

// [source.Opening].InFlight limits the bytes in flight between a file and its
// consumer: pages, records and row groups. Buffers shrink first (smaller batches,
// fewer of them waiting), then the number of workers. One worker always remains, so
// a limit below its need is exceeded rather than refused.

// Flight limits the batches between workers and consumer.
type Flight struct {
	Workers int
	Batch   int64 // bytes of a record; 0: as stored
	begun   int   // row groups that may be begun ahead of the consumer
	queue   int   // finished batches of a row group that may wait
}

// inFlightBatches is, if memory is not limited, the number of finished batches of a
// row group that may wait for the consumer, and the number of row groups per worker
// that may be begun ahead of it.
const inFlightBatches = 2

// Limits of the bytes of a record batch if memory is limited.
const (
	LeastBatch = 256 << 10
	MostBatch  = 8 << 20
)

// ForRecords divides the bytes in flight: one part goes to the workers that make
// records, the rest to the row groups or tables that the consumer makes of them.
const ForRecords = 2

// InFlight returns the smallest [source.Opening].InFlight of the pieces' files, in
// bytes; 0 if there is no limit.
func InFlight(pieces []source.Piece) (least int64) {
	for _, p := range pieces {
		if n := p.File.InFlight(); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// Processors returns the number of workers for an option Threads.
func Processors(threads int) int {
	if threads <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return threads
}

// Workers returns the number of workers for pieces. It is higher for reads over a
// network, since such workers mostly wait.
func Workers(pieces []source.Piece, threads int) int {
	n := Processors(threads)
	if slices.ContainsFunc(pieces, func(p source.Piece) bool { return p.File.Remote() }) {
		n *= remoteWorkers
	}
	return n
}

// remoteWorkers is the number of workers per processor for files over a network.
const remoteWorkers = 3

// NewFlight divides the bytes that may be in flight. need returns a worker's bytes beyond its
// three batches: input, output, and a finished one that waits for the consumer.
func NewFlight(most int64, threads int, need func() int64) Flight {
	if most == 0 {
		return Flight{Workers: threads, begun: inFlightBatches * threads, queue: inFlightBatches}
	}
	own := need()
	batches := func(workers int64) int64 { return 3*workers + 1 } // the consumer has one
	workers := int64(threads)
	for workers > 1 && workers*own+batches(workers)*4*LeastBatch > most {
		workers--
	}
	batch := (most - workers*own) / batches(workers)
	return Flight{Workers: int(workers), Batch: min(max(batch, LeastBatch), MostBatch), begun: int(workers), queue: 1}
}

// Table returns the file's table, with records of bounded size.
func (f Flight) Table(file *source.File) source.Table {
	if p := file.Parquet(); p != nil && f.Batch > 0 {
		return p.InBatches(f.Batch)
	}
	return file.Table()
}

// Need returns the bytes that a worker needs to decode the given top-level columns
// of a row group simultaneously; nil means all columns. It considers the largest
// row group of each file.
func Need(pieces []source.Piece, columns func(*source.File) ([]int, error)) (most int64) {
	seen := map[*source.File]bool{}
	for _, p := range pieces {
		f := p.File.Parquet()
		if f == nil || seen[p.File] || p.Lo == p.Hi {
			continue
		}
		if seen[p.File] = true; len(seen) > source.MostMapped { // the files of a log are similar
			break
		}
		group := p.Lo
		for g := p.Lo; g < p.Hi; g++ {
			if f.GroupBytes(g) > f.GroupBytes(group) {
				group = g
			}
		}
		var wanted []int
		if columns != nil {
			wanted, _ = columns(p.File) // reading returns the error again
		}
		var n int64
		for _, leaf := range f.Below(wanted) {
			n += f.File().Need(group, leaf)
		}
		most = max(most, n)
		_ = p.File.Rest() // a log may have more files than may be open; a later read returns the error again
	}
	return most
}
