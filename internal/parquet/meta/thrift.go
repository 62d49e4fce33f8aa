package meta

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// Wire types of the Thrift compact protocol, as used in field and list headers.
const (
	wireStop   = 0
	wireTrue   = 1
	wireFalse  = 2
	wireByte   = 3
	wireI16    = 4
	wireI32    = 5
	wireI64    = 6
	wireDouble = 7
	wireBinary = 8
	wireList   = 9
	wireSet    = 10
	wireMap    = 11
	wireStruct = 12
	wireUUID   = 13
)

var (
	ErrShort      = errors.New("thrift: the structure runs past its end")
	errThriftWire = errors.New("thrift: invalid wire type")
	errThriftDeep = errors.New("thrift: nested too deeply")
	errThriftBig  = errors.New("thrift: far more elements than their bytes can mean")
)

// maxThriftDepth exceeds what any Parquet structure needs and bounds the recursion.
const maxThriftDepth = 32

// skimmer walks a serialised structure without building anything. The actual
// decoder allocates whatever a list header claims, so every claim is first compared
// with the bytes present.
type skimmer struct {
	b       []byte
	pos     int
	structs int // list elements that are structures
}

// skimStruct returns the length of the structure at the start of b. ErrShort
// means that b ends too early.
func skimStruct(b []byte) (int, error) {
	s := skimmer{b: b}
	if err := s.structure(0); err != nil {
		return 0, err
	}
	// A decoded footer element takes up to about 400 bytes. Real ones take dozens
	// of bytes on disk on average, and 6 bytes for columns with no rows and very
	// short names.
	if s.structs > 1<<16 && s.structs > s.pos/4 {
		return 0, errThriftBig
	}
	return s.pos, nil
}

func (s *skimmer) byte() (byte, error) {
	if s.pos >= len(s.b) {
		return 0, ErrShort
	}
	c := s.b[s.pos]
	s.pos++
	return c, nil
}

func (s *skimmer) uvarint() (uint64, error) {
	var v uint64
	for shift := 0; shift < 70; shift += 7 {
		c, err := s.byte()
		if err != nil {
			return 0, err
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, nil
		}
	}
	return 0, errThriftWire
}

func (s *skimmer) skip(n uint64) error {
	if n > uint64(len(s.b)-s.pos) {
		return ErrShort
	}
	s.pos += int(n)
	return nil
}

func (s *skimmer) structure(depth int) error {
	if depth > maxThriftDepth {
		return errThriftDeep
	}
	for {
		c, err := s.byte()
		if err != nil {
			return err
		}
		if c&0x0f == wireStop {
			return nil
		}
		if c>>4 == 0 { // the header is followed by the full field id
			if _, err := s.uvarint(); err != nil {
				return err
			}
		}
		if t := c & 0x0f; t != wireTrue && t != wireFalse {
			if err := s.value(t, depth); err != nil {
				return err
			}
		}
	}
}

func (s *skimmer) value(t byte, depth int) error {
	switch t {
	case wireTrue, wireFalse, wireByte: // one byte each in lists and maps
		return s.skip(1)
	case wireI16, wireI32, wireI64:
		_, err := s.uvarint()
		return err
	case wireDouble:
		return s.skip(8)
	case wireUUID:
		return s.skip(16)
	case wireBinary:
		n, err := s.uvarint()
		if err != nil {
			return err
		}
		return s.skip(n)
	case wireList, wireSet:
		return s.list(depth)
	case wireMap:
		return s.mapping(depth)
	case wireStruct:
		return s.structure(depth + 1)
	}
	return errThriftWire
}

func (s *skimmer) list(depth int) error {
	if depth > maxThriftDepth {
		return errThriftDeep
	}
	c, err := s.byte()
	if err != nil {
		return err
	}
	n, t := uint64(c>>4), c&0x0f
	if n == 15 {
		if n, err = s.uvarint(); err != nil {
			return err
		}
	}
	if n > math.MaxInt32 || n > uint64(len(s.b)-s.pos) { // an element takes at least a byte
		return ErrShort
	}
	if t == wireStruct {
		s.structs += int(n)
	}
	for range n {
		if err := s.value(t, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *skimmer) mapping(depth int) error {
	if depth > maxThriftDepth {
		return errThriftDeep
	}
	n, err := s.uvarint()
	if err != nil || n == 0 {
		return err
	}
	if n > uint64(len(s.b)-s.pos) {
		return ErrShort
	}
	kinds, err := s.byte()
	if err != nil {
		return err
	}
	for range n {
		if err := s.value(kinds>>4, depth+1); err != nil {
			return err
		}
		if err := s.value(kinds&0x0f, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// Decode walks the structure at the start of b, decodes it into v and returns
// its length.
func Decode(b []byte, v any) (int, error) {
	n, err := skimStruct(b)
	if err != nil {
		return 0, err
	}
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[:n], v); err != nil {
		return 0, err
	}
	return n, nil
}

// Memory of decoded parts of a footer in addition to their stored size.
const (
	ElementBytes = 1 << 10 // schema element, with everything built from it
	ChunkBytes   = 512
)

// Described has the stored bytes of a footer's schema, key-value metadata and column orders.
type Described [3][]byte

// Same reports whether both are the same bytes.
func (d *Described) Same(other *Described) bool {
	return bytes.Equal(d[0], other[0]) && bytes.Equal(d[1], other[1]) && bytes.Equal(d[2], other[2])
}

// Clone returns a copy; nil of nil.
func (d *Described) Clone() *Described {
	if d == nil {
		return nil
	}
	return &Described{bytes.Clone(d[0]), bytes.Clone(d[1]), bytes.Clone(d[2])}
}

// describing are the numbers of these fields.
var describing = [3]int64{schemaField, 5, 7}

// Skim returns the approximate memory of a decoded footer, and parts of it. A footer that
// does not parse, which the decoder will report, counts up to the error, and has no parts.
func Skim(footer []byte) (size int64, d *Described) {
	elements, chunks, twice := 0, 0, false
	d = new(Described)
	s := skimmer{b: footer}
	err := s.fields(func(id int64, t byte, _ int, _ int64) error {
		start := s.pos
		if at := slices.Index(describing[:], id); at >= 0 && t == wireList {
			twice = twice || d[at] != nil
			if id == schemaField {
				elements, _ = s.count()
				s.pos = start
			}
			err := s.value(t, 0)
			d[at] = footer[start:s.pos]
			return err
		}
		if t != wireList || id != rowGroupsField {
			return s.unlessFlag(t)
		}
		n, err := s.count()
		for i := 0; i < n && err == nil; i++ {
			err = s.fields(func(id int64, t byte, _ int, _ int64) error {
				start := s.pos
				if t == wireList && id == columnsField {
					n, _ := s.count()
					chunks, s.pos = chunks+n, start
				}
				return s.unlessFlag(t)
			})
		}
		return err
	})
	if err != nil || twice {
		d = nil
	}
	return int64(len(footer)) + ElementBytes*int64(elements) + ChunkBytes*int64(chunks), d
}

// unlessFlag skips the value of a field of type t; true and false have none.
func (s *skimmer) unlessFlag(t byte) error {
	if t == wireTrue || t == wireFalse {
		return nil
	}
	return s.value(t, 1)
}

// count reads the number of elements of a list, each of which takes at least a
// byte.
func (s *skimmer) count() (int, error) {
	c, err := s.byte()
	if err != nil {
		return 0, err
	}
	n := uint64(c >> 4)
	if n == 15 {
		if n, err = s.uvarint(); err != nil {
			return 0, err
		}
	}
	if n > uint64(len(s.b)-s.pos) {
		return 0, ErrShort
	}
	return int(n), nil
}
