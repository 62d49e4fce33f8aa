// Command speed measures how fast filters in Go add and probe. It is a child
// process of ../: it reads commands, one a line, and answers in JSON.
//
//	names                      the filters that this program has
//	keys N BITS PROBES RUNS    make the keys and forget all filters
//	add NAME                   make and fill a fresh filter, RUNS times; keep the last
//	probe NAME                 probe the filter that was filled last
//
// It is a program of its own because arrow-go v18 cannot be linked together
// with the version that our other packages use, and because it is built twice,
// with our assembly and without.
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
		os.Exit(1) //nolint:forbidigo // the command's own end
	}
}

// reply answers a command.
type reply struct {
	Names    []string `json:"names,omitempty"`
	Versions []string `json:"versions,omitempty"` // empty: ours
	NS       int64    `json:"ns"`                 // time of all that was counted
	Count    uint64   `json:"count"`              // keys added or probed in that time
	Hits     uint64   `json:"hits"`               // of them found
	Bytes    uint64   `json:"bytes"`              // of the filter
}

// state is what stays from command to command.
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

// names lists the filters with the versions of their modules.
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

// add times making a filter and filling it.
func (s *state) add(name string) (reply, error) {
	c, err := find(name)
	if err != nil {
		return reply{}, err
	}
	delete(s.filled, name)
	var f filter
	var sum time.Duration
	for range s.runs {
		f = nil // the one before is garbage
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

// probe times probing the filter that add left. The same pass goes before,
// untimed: a filter that lies in a cache shared with others needs a while until
// it has its place there.
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
