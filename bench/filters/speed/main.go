// Command speed measures how fast Go filters add and probe keys. It is a child
// process of command filters: it reads one command per line and answers in JSON.
//
//	names                      list the filters
//	keys N BITS PROBES RUNS    generate keys and drop all filters
//	add NAME                   create and fill a filter RUNS times; keep the last
//	probe NAME                 probe the filter that was filled last
//
// It is a separate program because arrow-go v18 cannot be linked with v15, which this
// module uses, and because it is built with and without assembly.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/bloomjoin/bloomjoin/bench/internal/child"
	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

func main() {
	s := newState()
	if err := child.Serve(os.Stdin, os.Stdout, s.answer); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// reply is the answer to a command.
type reply struct {
	Names    []string `json:"names,omitempty"`
	Versions []string `json:"versions,omitempty"` // empty: this project
	NS       int64    `json:"ns"`                 // time for Count keys
	Count    uint64   `json:"count"`              // keys added or probed
	Hits     uint64   `json:"hits"`               // keys found
	Bytes    uint64   `json:"bytes"`              // size of the filter
}

// state is kept between commands.
type state struct {
	n      uint64
	bits   float64
	runs   int
	keys   []uint64
	probes []uint64
	sel    []uint32
	filled map[string]filter
}

func newState() *state {
	return &state{sel: make([]uint32, keyset.Batch+1), filled: map[string]filter{}}
}

func (s *state) answer(words []string) (any, error) {
	switch {
	case len(words) == 1 && words[0] == "names":
		return names()
	case len(words) == 5 && words[0] == "keys":
		return reply{}, s.makeKeys(words[1:])
	case len(words) == 2 && words[0] == "add":
		return s.add(words[1])
	case len(words) == 2 && words[0] == "probe":
		return s.probe(words[1])
	}
	return nil, fmt.Errorf("no command %q", words)
}

// names returns the filters with the versions of their modules.
func names() (r reply, err error) {
	for _, c := range contenders() {
		v := ""
		if c.module != "" {
			if v, err = report.Version(c.module); err != nil {
				return r, err
			}
		}
		r.Names, r.Versions = append(r.Names, c.name), append(r.Versions, v)
	}
	return r, nil
}

func (s *state) makeKeys(words []string) error {
	var probes uint64
	if err := child.Parse(words, &s.n, &s.bits, &probes, &s.runs); err != nil {
		return err
	}
	s.filled, s.keys, s.probes = map[string]filter{}, nil, nil
	s.keys, s.probes = keyset.Set(s.n), keyset.Probes(probes, s.n)
	return nil
}

// add measures the time to create and fill a filter.
func (s *state) add(name string) (reply, error) {
	c, err := find(name)
	if err != nil {
		return reply{}, err
	}
	delete(s.filled, name)
	var f filter
	var sum time.Duration
	for range s.runs {
		f = nil // lets the collector free the previous filter
		sum += measure.Timed(func() {
			if f, err = c.make(s.n, s.bits); err == nil {
				keyset.Batches(s.keys, f.add)
			}
		})
		if err != nil {
			return reply{}, err
		}
	}
	s.filled[name] = f
	return reply{NS: sum.Nanoseconds(), Count: uint64(len(s.keys) * s.runs), Bytes: f.bytes()}, nil
}

// probe measures the time to probe the last filter of add. An untimed pass comes
// first, since a filter takes a while to settle in a shared cache.
func (s *state) probe(name string) (reply, error) {
	f, ok := s.filled[name]
	if !ok {
		return reply{}, fmt.Errorf("filter %q is not filled", name)
	}
	hits := s.probeAll(f, s.probes)
	took := measure.Timed(func() { hits = s.probeAll(f, s.probes) })
	return reply{NS: took.Nanoseconds(), Count: uint64(len(s.probes)), Hits: hits, Bytes: f.bytes()}, nil
}

func (s *state) probeAll(f filter, keys []uint64) (hits uint64) {
	keyset.Batches(keys, func(part []uint64) { hits += uint64(f.probe(part, s.sel)) })
	return hits
}
