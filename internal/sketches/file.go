package sketches

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/countmin"
	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Kind returns the kind of file.
func Kind() *filters.Other {
	return &filters.Other{
		Magic: sniff.Sketch, Kind: sniff.ASketch, Hint: "name a sketch; bloomjoin sketch makes one of the rows of files",
		Size: func(f *filters.Facts, own []byte) (uint64, error) {
			said, err := parse(f, own)
			return said.Spec.Bytes(), err
		},
	}
}

// said is what the section `counters` says.
type said struct {
	Spec        Spec
	Rows, Total uint64
}

const (
	flagRanges = 1
	bodyBytes  = 32 // of the section, before its texts
)

// said returns what the file of the sketch says.
func (s *Sketch) said() said { return said{s.spec, s.rows, s.Total()} }

// body returns the body of the section.
func (s said) body() []byte {
	flags := uint32(0)
	if s.Spec.Ranges {
		flags = flagRanges
	}
	b := binary.LittleEndian.AppendUint64(nil, s.Spec.Params.Width)
	b = binary.LittleEndian.AppendUint32(b, s.Spec.Params.Depth)
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint64(b, s.Rows)
	b = binary.LittleEndian.AppendUint64(b, s.Total)
	for _, text := range []string{s.Spec.Key, s.Spec.Weight} {
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(text))), text...)
	}
	return b
}

// parse reads the body of the section, and checks it.
func parse(f *filters.Facts, body []byte) (s said, err error) {
	c := &cursor.Cursor{Rest: body}
	s.Spec.Params = countmin.Params{Width: c.U64(), Depth: c.U32()}
	flags := c.U32()
	s.Spec.Ranges = flags == flagRanges
	s.Rows, s.Total = c.U64(), c.U64()
	s.Spec.Key = string(c.Take(uint64(c.U16())))
	s.Spec.Weight = string(c.Take(uint64(c.U16())))
	wrong := func(what string, want, got any) error {
		return faults.Wanted(faults.Corrupt(fault.At{}, "%s", what), want, got)
	}
	p := s.Spec.Params
	switch {
	case c.Short || len(c.Rest) > 0:
		return s, wrong("size", fmt.Sprintf("%d bytes and two texts", bodyBytes), len(body))
	case p.Width == 0 || p.Width > countmin.MaxWidth:
		return s, wrong("counters in a row", fmt.Sprintf("1 to %d", countmin.MaxWidth), p.Width)
	case p.Depth == 0 || p.Depth > countmin.MaxDepth:
		return s, wrong("rows", fmt.Sprintf("1 to %d", countmin.MaxDepth), p.Depth)
	case flags > flagRanges:
		return s, faults.Unsupported(fault.At{}, "flags %#x", flags)
	case s.Spec.Ranges && !Ranged(filters.New(*f).KeyClasses()):
		return s, wrong("key of a sketch with ranges", "one column of integers, dates or timestamps", filters.New(*f).KeyClasses())
	case s.Spec.Weight == "" && s.Rows != s.Total:
		return s, wrong("total without weights", s.Rows, s.Total)
	case s.Rows == 0 && s.Total > 0:
		return s, wrong("total without rows", "0", s.Total)
	}
	return s, nil
}

// payload returns the counters, in the order of the file.
func (s *Sketch) payload() [][]uint64 {
	all := [][]uint64{s.table.Counters()}
	if s.ranges != nil {
		all = append(all, s.ranges.Counters()...)
	}
	return all
}

// part appends the bytes lo to hi of the payload.
func (s *Sketch) part(dst []byte, lo, hi uint64) []byte {
	lo, hi = lo/8, hi/8
	for _, counters := range s.payload() {
		n := uint64(len(counters))
		for _, c := range counters[min(lo, n):min(hi, n)] {
			dst = binary.LittleEndian.AppendUint64(dst, c)
		}
		lo, hi = lo-min(lo, n), hi-min(hi, n)
	}
	return dst
}

// Digest returns the identity of the sketch, like [filters.Filter.Digest].
func (s *Sketch) Digest() ([32]byte, error) { return Kind().Digest(&s.facts, s.said().body(), s.part) }

// Save writes the file of a sketch, for its owner alone, and returns its size and digest. Without
// replace, an existing file is left alone, and an error unless it holds the same sketch.
func (s *Sketch) Save(ctx context.Context, store storage.Storage, name string, replace bool) (int64, [32]byte, error) {
	return Kind().Save(ctx, store, name, &s.facts, s.said().body(), s.part, replace)
}

// Header is a sketch's file without its counters.
type Header struct {
	*filters.Header
	said
	name string
}

// DecodeHeader is [filters.DecodeHeader] for a sketch.
func DecodeHeader(r io.ReaderAt, size int64, name string) (*Header, error) {
	h, err := Kind().DecodeHeader(r, size, name)
	if err != nil {
		return nil, err
	}
	said, err := parse(h.Filter.Facts(), h.Own())
	return &Header{h, said, name}, err
}

// Load reads the counters, of at most budget bytes (0: no limit), and verifies the file.
func (h *Header) Load(ctx context.Context, budget int64) (*Sketch, error) {
	if err := memoryNeeded(fault.At{File: h.name}, h.Spec, 1, budget); err != nil {
		return nil, err
	}
	s := newSketch(h.Spec, *h.Filter.Facts())
	s.rows = h.Rows
	all := s.payload()
	rest := all[0]
	err := h.LoadOther(ctx, func(raw []byte) {
		for ; len(raw) >= 8; raw = raw[8:] {
			for len(rest) == 0 {
				all = all[1:]
				rest = all[0]
			}
			rest[0], rest = binary.LittleEndian.Uint64(raw), rest[1:]
		}
	})
	if err != nil {
		return nil, err
	}
	if !s.table.SetTotal(h.Total) || s.ranges != nil && !s.ranges.SetTotal(h.Total) {
		return nil, faults.Wanted(faults.Corrupt(fault.At{File: h.name}, "sum of the counters of a row"), fmt.Sprintf("the total, %d", h.Total), "another").
			WithHint("the file was not written by this program: build it again")
	}
	return s, nil
}

// Open opens a file, reads its header and calls fn.
func Open(ctx context.Context, store storage.Source, name string, fn func(*Header) error) (err error) {
	src, err := store.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return err
	}
	defer faults.Join(&err, src.Close)
	h, err := DecodeHeader(src, src.Object().Size, name)
	if err != nil {
		return err
	}
	return fn(h)
}

// Load reads and verifies a sketch of at most budget bytes; 0: no limit.
func Load(ctx context.Context, store storage.Source, name string, budget int64) (s *Sketch, err error) {
	err = Open(ctx, store, name, func(h *Header) error {
		s, err = h.Load(ctx, budget)
		return err
	})
	return s, err
}
