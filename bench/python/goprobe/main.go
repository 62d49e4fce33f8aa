// Command goprobe probes filters for ../probe.py, as a child process: it reads
// commands from standard input and answers each with a JSON object on a line.
//
//	load FILTER KEYS   the filter and the column of an Arrow file with one batch
//	probe              one pass over the keys
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/bloomjoin/bloomjoin/bench/internal/child"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/storage"
)

// pass is the outcome of one pass over all keys.
type pass struct {
	Contains float64 `json:"contains"` // seconds of Filter.Contains, from the Arrow array to a mask
	Batch    float64 `json:"batch"`    // seconds of Filter.ProbeBatch, with keys that were made before
	Hits     int     `json:"hits"`
}

type server struct {
	filter *codec.Filter
	keys   key.Values
	mask   []bool
}

func main() {
	var s server
	if err := child.Serve(os.Stdin, os.Stdout, s.answer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

func (s *server) answer(words []string) (any, error) {
	switch {
	case len(words) == 3 && words[0] == "load":
		return struct{}{}, s.load(words[1], words[2])
	case len(words) == 1 && words[0] == "probe":
		return s.probe()
	}
	return nil, fmt.Errorf("unknown command %q", words)
}

func (s *server) load(filter, keys string) (err error) {
	if s.filter, err = codec.Load(context.Background(), storage.Local{}, filter, codec.Limits{}); err != nil {
		return err
	}
	column, err := firstColumn(keys)
	if err != nil {
		return err
	}
	s.keys = key.Array(column)
	s.mask = make([]bool, s.keys.Len())
	return nil
}

func firstColumn(name string) (column arrow.Array, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	r, err := ipc.NewFileReader(file)
	if err != nil {
		return nil, err
	}
	if r.NumRecords() != 1 {
		return nil, fmt.Errorf("%s: want one batch, got %d", name, r.NumRecords())
	}
	batch, err := r.Record(0)
	if err != nil {
		return nil, err
	}
	return batch.Column(0), nil
}

func (s *server) probe() (p pass, err error) {
	p.Contains = measure.Timed(func() { s.mask, err = s.filter.Contains(s.keys, s.mask) }).Seconds()
	if err != nil {
		return p, err
	}
	for _, in := range s.mask {
		p.Hits += measure.Bit(in)
	}
	options, err := s.filter.KeyOptions()
	if err != nil {
		return p, err
	}
	var sel []uint32
	err = key.NewValueEncoder(options).Encode(s.keys, func(_ int, b *key.Batch) (err error) {
		begin := time.Now()
		sel, err = s.filter.ProbeBatch(b, sel[:0])
		p.Batch += time.Since(begin).Seconds()
		return err
	})
	return p, err
}
