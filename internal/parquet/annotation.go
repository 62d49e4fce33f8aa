package parquet

import (
	"bytes"
	"encoding/binary"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Annotations of the schema, field 10 of its elements, go from a file to its
// copy as the bytes that they are: what this package does not know of them, a
// later reader may.

const (
	schemaField     = 2 // of the footer
	rowGroupsField  = 4
	columnsField    = 1 // of a row group
	annotationField = 10
)

// annotation is a logical type as it is stored: a structure in Thrift's compact
// protocol, and what it was decoded to.
type annotation struct {
	stored  []byte
	decoded format.LogicalTypeValue
}

// Annotation returns the element's logical type as a footer stores it, a
// structure of Thrift's compact protocol; nil if it has none.
func (e *SchemaElement) Annotation() ([]byte, error) {
	switch {
	case !e.LogicalType.Valid:
		return nil, nil
	case e.annotation.stored != nil && e.annotation.decoded == e.LogicalType.V.Value:
		return e.annotation.stored, nil
	}
	return thrift.Marshal(new(thrift.CompactProtocol), &e.LogicalType.V)
}

// SetAnnotation gives the element a logical type that Annotation returned.
func (e *SchemaElement) SetAnnotation(stored []byte) (err error) {
	s := skimmer{b: stored}
	if err := s.value(wireStruct, 0); err != nil {
		return err
	}
	if s.pos != len(stored) {
		return errTrailing
	}
	var t format.LogicalType
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), stored, &t); err != nil {
		return err
	}
	e.LogicalType = thrift.New(t)
	e.annotation = annotation{bytes.Clone(stored), t.Value}
	return nil
}

// placed is where an element of the schema has its annotation.
type placed struct {
	at, end int   // of the annotation; both are where one would stand if there is none
	header  int   // where the field's header stands
	last    int64 // number of the field before
}

// annotations finds the annotations in a footer.
func annotations(footer []byte) (out []placed, err error) {
	s := skimmer{b: footer}
	err = s.fields(func(id int64, t byte, _ int, _ int64) error {
		switch {
		case t == wireTrue || t == wireFalse:
			return nil
		case id != schemaField || t != wireList:
			return s.value(t, 0)
		}
		c, err := s.byte()
		if err != nil {
			return err
		}
		n := uint64(c >> 4)
		if n == 15 {
			if n, err = s.uvarint(); err != nil {
				return err
			}
		}
		for range n {
			p, err := s.annotation()
			if err != nil {
				return err
			}
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

// annotation finds that of the element at hand, behind which it moves.
func (s *skimmer) annotation() (p placed, err error) {
	found := false
	last := int64(0)
	err = s.fields(func(id int64, t byte, header int, before int64) error {
		start := s.pos
		if t != wireTrue && t != wireFalse {
			if err := s.value(t, 1); err != nil {
				return err
			}
		}
		if id == annotationField && t == wireStruct {
			found, p = true, placed{at: start, end: s.pos, header: header, last: before}
		}
		last = id
		return nil
	})
	if !found {
		p = placed{at: s.pos - 1, end: s.pos - 1, header: s.pos - 1, last: last} // before the end of the structure
	}
	return p, err
}

// fields calls f for each field of the structure at hand, behind its header;
// f moves behind the value, which true and false have none of.
func (s *skimmer) fields(f func(id int64, t byte, header int, before int64) error) error {
	id := int64(0)
	for {
		header, before := s.pos, id
		c, err := s.byte()
		if err != nil {
			return err
		}
		t := c & 0x0f
		if t == wireStop {
			return nil
		}
		if id += int64(c >> 4); c>>4 == 0 { // the field id stands in full
			v, err := s.uvarint()
			if err != nil {
				return err
			}
			id = int64(v>>1) ^ -int64(v&1)
		}
		if err := f(id, t, header, before); err != nil {
			return err
		}
	}
}

// keepAnnotations remembers the annotations as the footer has them.
func (m *FileMetaData) keepAnnotations(footer []byte) {
	places, err := annotations(footer)
	if err != nil || len(places) != len(m.Schema) {
		return // the decoder sees it otherwise, and its view is what counts
	}
	for i, p := range places {
		if p.at < p.end {
			m.Schema[i].annotation = annotation{bytes.Clone(footer[p.at:p.end]), m.Schema[i].LogicalType.V.Value}
		}
	}
}

// withAnnotations puts into an encoded footer the annotations that the schema's
// elements were read with.
func (m *FileMetaData) withAnnotations(footer []byte) ([]byte, error) {
	places, err := annotations(footer)
	if err != nil {
		return nil, err
	}
	var out []byte
	from := 0
	for i, p := range places {
		e := &m.Schema[i]
		if e.annotation.stored == nil || e.annotation.decoded != e.LogicalType.V.Value { // another one since
			continue
		}
		out = append(out, footer[from:p.header]...)
		if delta := annotationField - p.last; delta > 0 && delta <= 15 {
			out = append(out, byte(delta)<<4|wireStruct)
		} else {
			out = binary.AppendUvarint(append(out, wireStruct), annotationField<<1)
		}
		out = append(out, e.annotation.stored...)
		from = p.end
	}
	return append(out, footer[from:]...), nil
}
