package arrowparquet

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// LeafKeys makes keys from the values of a leaf that is the whole key.
type LeafKeys struct {
	Values  LeafValues
	schema  *arrow.Schema // of a record with only the leaf, as column "key"
	column  keys.Column   // the column in that schema
	options keys.Options
	enc     *keys.Encoder // nil: values are already keys, or none was needed yet
	Int     int           // size of integers that are already keys; 0: other values
	Signed  bool
	Strings bool // byte arrays that are keys, with the rule
}

// keyName is the name of the column in a LeafKeys' schema.
const keyName = "key"

// Keys returns what makes keys from the values.
func (v LeafValues) Keys(cast arrow.DataType, o keys.Options) *LeafKeys {
	l := &LeafKeys{Values: v, options: o, column: keys.Column{Path: keys.Path{keyName}, Cast: cast}}
	l.schema = arrow.NewSchema([]arrow.Field{{Name: keyName, Type: v.Type()}}, nil)
	if enc, err := keys.NewEncoder(l.schema, []keys.Column{l.column}, o); err != nil || !enc.AsStored() {
		return l // Fill returns the error
	}
	if v.Plain() {
		switch v.Type().ID() {
		case arrow.INT32:
			l.Int, l.Signed = 4, true
		case arrow.UINT32:
			l.Int = 4
		case arrow.INT64:
			l.Int, l.Signed = 8, true
		case arrow.UINT64:
			l.Int = 8
		}
	}
	switch v.Type().ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY:
		l.Strings = v.p.f.Leaves[v.Index()].Type == format.ByteArray
	}
	return l
}

// Width is the number of bytes of a PLAIN value; 0 for byte arrays.
func (l *LeafKeys) Width() int { return l.Values.p.f.Leaves[l.Values.Index()].Width() }

// Bits reports whether PLAIN values are single bits.
func (l *LeafKeys) Bits() bool {
	return l.Values.p.f.Leaves[l.Values.Index()].Type == format.Boolean
}

// Fill calls f with the keys of a page without dictionary indices, in b. They are
// valid until f returns.
func (l *LeafKeys) Fill(b *keys.Batch, p *parquet.Page, f func(*keys.Batch) error) error {
	switch {
	case l.Int > 0:
		b.SetInts(p.Plain, p.NonNull, l.Int, l.Signed)
		return f(b)
	case l.Strings:
		b.SetBytes(p.Plain, p.NonNull, l.options.Rule)
		return f(b)
	}
	if l.enc == nil {
		enc, err := keys.NewEncoder(l.schema, []keys.Column{l.column}, l.options)
		if err != nil {
			return fmt.Errorf("%s: %w", l.Values.p.f.Name, err)
		}
		l.enc = enc
	}
	values, err := l.Values.Array(p, nil)
	if err != nil {
		return err
	}
	defer values.Release()
	rec := array.NewRecord(l.schema, []arrow.Array{values}, int64(values.Len()))
	defer rec.Release()
	if err := l.enc.Encode(rec, b); err != nil {
		return fmt.Errorf("%s: %w", l.Values.p.f.Name, err)
	}
	return f(b)
}
