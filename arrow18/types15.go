package arrow18

import (
	"slices"

	arrow18 "github.com/apache/arrow-go/v18/arrow"
	arrow15 "github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/endian"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Keys of a field's metadata that name its extension type where the field has the
// storage type, as in Arrow IPC.
const (
	extensionName = "ARROW:extension:name"
	extensionData = "ARROW:extension:metadata"
)

// Schema15 converts a schema of v18. The error names the first column whose type
// v15 does not have.
func Schema15(s *arrow18.Schema) (_ *arrow15.Schema, err error) {
	if s == nil {
		return nil, nil
	}
	defer recovered(&err)
	fields, err := fields15("", s.Fields())
	if err != nil {
		return nil, err
	}
	md := metadata15(s.Metadata())
	return arrow15.NewSchemaWithEndian(fields, &md, endian.Endianness(s.Endianness())), nil
}

// Type15 converts a type of v18. An extension type that is not registered in v15
// becomes its storage type.
func Type15(t arrow18.DataType) (_ arrow15.DataType, err error) {
	if t == nil {
		return nil, nil
	}
	defer recovered(&err)
	f, err := field15("", arrow18.Field{Type: t})
	return f.Type, err
}

func metadata15(m arrow18.Metadata) arrow15.Metadata {
	return arrow15.NewMetadata(m.Keys(), m.Values())
}

// fields15 converts the fields of the column at a dotted path, of the schema if
// it is empty.
func fields15(path string, fields []arrow18.Field) ([]arrow15.Field, error) {
	out := make([]arrow15.Field, len(fields))
	for i, f := range fields {
		var err error
		if out[i], err = field15(below(path, f.Name), f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// field15 converts a field. Its type becomes an extension type, or its metadata
// names one, depending on what is registered in v15.
func field15(path string, f arrow18.Field) (arrow15.Field, error) {
	out := arrow15.Field{Name: f.Name, Nullable: f.Nullable, Metadata: metadata15(f.Metadata)}
	storage := f.Type
	ext, typed := f.Type.(arrow18.ExtensionType)
	if typed {
		storage = ext.StorageType()
	}
	var err error
	if out.Type, err = type15(path, storage); err != nil {
		return out, err
	}
	if typed {
		if t := extension15(ext.ExtensionName(), ext.Serialize(), out.Type); t != nil {
			out.Type = t
			return out, nil
		}
		keys := append(slices.Clone(f.Metadata.Keys()), extensionName, extensionData)
		values := append(slices.Clone(f.Metadata.Values()), ext.ExtensionName(), ext.Serialize())
		out.Metadata = arrow15.NewMetadata(keys, values)
		return out, nil
	}
	if name, ok := f.Metadata.GetValue(extensionName); ok {
		data, _ := f.Metadata.GetValue(extensionData)
		if t := extension15(name, data, out.Type); t != nil {
			out.Type = t
			keys, values := withoutExtension(f.Metadata.Keys(), f.Metadata.Values())
			out.Metadata = arrow15.NewMetadata(keys, values)
		}
	}
	return out, nil
}

// extension15 returns the registered extension type of a name, nil if there is
// none or if it refuses the storage type or the parameters.
func extension15(name, data string, storage arrow15.DataType) arrow15.DataType {
	registered := arrow15.GetExtensionType(name)
	if registered == nil {
		return nil
	}
	t, err := registered.Deserialize(storage, data)
	if err != nil || !arrow15.TypeEqual(t.StorageType(), storage) {
		return nil
	}
	return t
}

// bare15 converts a type that has no field, and so no metadata to name an
// extension type.
func bare15(path string, t arrow18.DataType) (arrow15.DataType, error) {
	f, err := field15(path, arrow18.Field{Type: t})
	if err != nil {
		return nil, err
	}
	if name, ok := f.Metadata.GetValue(extensionName); ok {
		return nil, faults.Unsupported(fault.At{Column: path}, "extension type %s as the values of a dictionary or of runs: it is not registered in arrow/go v15", name)
	}
	return f.Type, nil
}

// type15 converts a type that is not an extension type.
func type15(path string, t arrow18.DataType) (arrow15.DataType, error) {
	switch t := t.(type) {
	case *arrow18.FixedSizeBinaryType:
		return &arrow15.FixedSizeBinaryType{ByteWidth: t.ByteWidth}, nil
	case *arrow18.TimestampType:
		return &arrow15.TimestampType{Unit: arrow15.TimeUnit(t.Unit), TimeZone: t.TimeZone}, nil
	case *arrow18.Time32Type:
		return &arrow15.Time32Type{Unit: arrow15.TimeUnit(t.Unit)}, nil
	case *arrow18.Time64Type:
		return &arrow15.Time64Type{Unit: arrow15.TimeUnit(t.Unit)}, nil
	case *arrow18.DurationType:
		return &arrow15.DurationType{Unit: arrow15.TimeUnit(t.Unit)}, nil
	case *arrow18.Decimal128Type:
		return &arrow15.Decimal128Type{Precision: t.Precision, Scale: t.Scale}, nil
	case *arrow18.Decimal256Type:
		return &arrow15.Decimal256Type{Precision: t.Precision, Scale: t.Scale}, nil
	case *arrow18.DictionaryType:
		index, err := bare15(path, t.IndexType)
		if err != nil {
			return nil, err
		}
		value, err := bare15(path, t.ValueType)
		return &arrow15.DictionaryType{IndexType: index, ValueType: value, Ordered: t.Ordered}, err
	case *arrow18.RunEndEncodedType:
		ends, err := bare15(path, t.RunEnds())
		if err != nil {
			return nil, err
		}
		values, err := bare15(path, t.Encoded())
		if err != nil {
			return nil, err
		}
		out := arrow15.RunEndEncodedOf(ends, values)
		out.ValueNullable = t.ValueNullable
		return out, nil
	case *arrow18.MapType:
		kv, err := fields15(path, []arrow18.Field{t.KeyField(), t.ItemField()})
		if err != nil {
			return nil, err
		}
		out := arrow15.MapOfWithMetadata(kv[0].Type, kv[0].Metadata, kv[1].Type, kv[1].Metadata)
		out.SetItemNullable(kv[1].Nullable)
		out.KeysSorted = t.KeysSorted
		return out, nil
	case arrow18.NestedType:
		fields, err := fields15(path, t.Fields())
		if err != nil {
			return nil, err
		}
		return nested15(path, t, fields)
	}
	if s := simple15(t.ID()); s != nil {
		return s, nil
	}
	return nil, faults.Unsupported(fault.At{Column: path}, "%s, a type that arrow/go v15 does not have", t).
		WithHint("cast the column to a type that it has, such as decimal128 for a decimal")
}

// nested15 returns the nested type of the given fields that t is in v18.
func nested15(path string, t arrow18.NestedType, fields []arrow15.Field) (arrow15.DataType, error) {
	switch t := t.(type) {
	case *arrow18.StructType:
		return arrow15.StructOf(fields...), nil
	case *arrow18.ListType:
		return arrow15.ListOfField(fields[0]), nil
	case *arrow18.LargeListType:
		return arrow15.LargeListOfField(fields[0]), nil
	case *arrow18.ListViewType:
		return arrow15.ListViewOfField(fields[0]), nil
	case *arrow18.LargeListViewType:
		return arrow15.LargeListViewOfField(fields[0]), nil
	case *arrow18.FixedSizeListType:
		return arrow15.FixedSizeListOfField(t.Len(), fields[0]), nil
	case *arrow18.SparseUnionType:
		return arrow15.SparseUnionOf(fields, t.TypeCodes()), nil
	case *arrow18.DenseUnionType:
		return arrow15.DenseUnionOf(fields, t.TypeCodes()), nil
	}
	return nil, faults.Unsupported(fault.At{Column: path}, "%s, a type that arrow/go v15 does not have", t)
}
