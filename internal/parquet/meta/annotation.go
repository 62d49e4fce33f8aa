package meta

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// A schema element's annotation (its logical type, field 10) is copied from file to
// file as bytes, so that parts of it that this package does not know reach a later
// reader.

const (
	schemaField     = 2 // in the footer
	rowGroupsField  = 4
	columnsField    = 1 // in a row group
	annotationField = 10
)

// annotation is a logical type in its stored form, a structure in Thrift's compact
// protocol, with the value decoded from it.
type annotation struct {
	stored  string
	decoded format.LogicalTypeValue
}

// Annotation returns the element's logical type as a footer stores it, a structure
// in Thrift's compact protocol, or nil if it has none.
func (e *Element) Annotation() ([]byte, error) {
	switch {
	case !e.LogicalType.Valid:
		return nil, nil
	case e.annotation.stored != "" && e.annotation.decoded == e.LogicalType.V.Value:
		return []byte(e.annotation.stored), nil
	}
	return thrift.Marshal(new(thrift.CompactProtocol), &e.LogicalType.V)
}

// Alike reports whether two elements are the same and have a known logical type or none. It is
// quick, and may return false for some that are.
func (e *Element) Alike(other *Element) bool {
	a, b := *e, *other
	if a.annotation.stored == b.annotation.stored && a.asStored() && b.asStored() {
		a.LogicalType, b.LogicalType, a.annotation, b.annotation = thrift.Null[format.LogicalType]{}, thrift.Null[format.LogicalType]{}, annotation{}, annotation{}
	}
	return a == b && (!a.LogicalType.Valid || a.LogicalType.V.Value != nil)
}

// asStored reports whether the logical type is known, and the one that was read.
func (e *Element) asStored() bool {
	return e.LogicalType.V.Value != nil && e.annotation.stored != "" && e.annotation.decoded == e.LogicalType.V.Value
}

// SetAnnotation sets the element's logical type from bytes returned by Annotation.
func (e *Element) SetAnnotation(stored []byte) (err error) {
	s := skimmer{b: stored}
	if err := s.value(wireStruct, 0); err != nil {
		return err
	}
	if s.pos != len(stored) {
		return enc.ErrTrailing
	}
	var t format.LogicalType
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), stored, &t); err != nil {
		return err
	}
	e.LogicalType = thrift.New(t)
	e.annotation = annotation{string(stored), t.Value}
	return nil
}

// placed is the position of a schema element's annotation in a footer.
type placed struct {
	at, end int   // of the annotation; both are the insertion point if there is none
	header  int   // start of the field's header
	last    int64 // number of the preceding field
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

// annotation finds the annotation of the current schema element and moves past the
// element.
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
		p = placed{at: s.pos - 1, end: s.pos - 1, header: s.pos - 1, last: last} // before the structure's stop byte
	}
	return p, err
}

// fields calls f after the header of each field of the current structure. f must
// move past the value, except for true and false, which have none.
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
		if id += int64(c >> 4); c>>4 == 0 { // the header is followed by the full field id
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

// keepAnnotations stores the annotations in their encoded form.
func (m *Footer) keepAnnotations(footer []byte) {
	places, err := annotations(footer)
	if err != nil || len(places) != len(m.Schema) {
		return // the decoder read another schema, and its view counts
	}
	for i, p := range places {
		if p.at < p.end {
			m.Schema[i].annotation = annotation{string(footer[p.at:p.end]), m.Schema[i].LogicalType.V.Value}
		}
	}
}

// withAnnotations replaces annotations in an encoded footer by their encoded form
// as they were read.
func (m *Footer) withAnnotations(footer []byte) ([]byte, error) {
	places, err := annotations(footer)
	if err != nil {
		return nil, err
	}
	var out []byte
	from := 0
	for i, p := range places {
		e := &m.Schema[i]
		if e.annotation.stored == "" || e.annotation.decoded != e.LogicalType.V.Value { // changed since it was read
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
