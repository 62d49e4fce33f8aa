package arrow18

import (
	"slices"

	arrow18 "github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/endian"
	arrow15 "github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Schema18 converts a schema of v15. It fails only for a schema that is itself
// invalid, or that has an extension type without a field, see the package comment.
func Schema18(s *arrow15.Schema) (_ *arrow18.Schema, err error) {
	if s == nil {
		return nil, nil
	}
	defer recovered(&err)
	fields, err := fields18("", s.Fields())
	if err != nil {
		return nil, err
	}
	md := metadata18(s.Metadata())
	return arrow18.NewSchemaWithEndian(fields, &md, endian.Endianness(s.Endianness())), nil
}

// Type18 converts a type of v15. An extension type that is not registered in v18
// becomes its storage type.
func Type18(t arrow15.DataType) (_ arrow18.DataType, err error) {
	if t == nil {
		return nil, nil
	}
	defer recovered(&err)
	f, err := field18("", arrow15.Field{Type: t})
	return f.Type, err
}

func metadata18(m arrow15.Metadata) arrow18.Metadata {
	return arrow18.NewMetadata(m.Keys(), m.Values())
}

// fields18 converts the fields of the column at a dotted path, of the schema if
// it is empty.
func fields18(path string, fields []arrow15.Field) ([]arrow18.Field, error) {
	out := make([]arrow18.Field, len(fields))
	for i, f := range fields {
		var err error
		if out[i], err = field18(below(path, f.Name), f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// field18 converts a field. Its type becomes an extension type, or its metadata
// names one, depending on what is registered in v18.
func field18(path string, f arrow15.Field) (arrow18.Field, error) {
	out := arrow18.Field{Name: f.Name, Nullable: f.Nullable, Metadata: metadata18(f.Metadata)}
	storage := f.Type
	ext, typed := f.Type.(arrow15.ExtensionType)
	if typed {
		storage = ext.StorageType()
	}
	var err error
	if out.Type, err = type18(path, storage); err != nil {
		return out, err
	}
	if typed {
		if t := extension18(ext.ExtensionName(), ext.Serialize(), out.Type); t != nil {
			out.Type = t
			return out, nil
		}
		keys := append(slices.Clone(f.Metadata.Keys()), extensionName, extensionData)
		values := append(slices.Clone(f.Metadata.Values()), ext.ExtensionName(), ext.Serialize())
		out.Metadata = arrow18.NewMetadata(keys, values)
		return out, nil
	}
	if name, ok := f.Metadata.GetValue(extensionName); ok {
		data, _ := f.Metadata.GetValue(extensionData)
		if t := extension18(name, data, out.Type); t != nil {
			out.Type = t
			keys, values := withoutExtension(f.Metadata.Keys(), f.Metadata.Values())
			out.Metadata = arrow18.NewMetadata(keys, values)
		}
	}
	return out, nil
}

// extension18 returns the registered extension type of a name, nil if there is
// none or if it refuses the storage type or the parameters.
func extension18(name, data string, storage arrow18.DataType) arrow18.DataType {
	registered := arrow18.GetExtensionType(name)
	if registered == nil {
		return nil
	}
	t, err := registered.Deserialize(storage, data)
	if err != nil || !arrow18.TypeEqual(t.StorageType(), storage) {
		return nil
	}
	return t
}

// bare18 converts a type that has no field, and so no metadata to name an
// extension type.
func bare18(path string, t arrow15.DataType) (arrow18.DataType, error) {
	f, err := field18(path, arrow15.Field{Type: t})
	if err != nil {
		return nil, err
	}
	if name, ok := f.Metadata.GetValue(extensionName); ok {
		return nil, faults.Unsupported(fault.At{Column: path}, "extension type %s as the values of a dictionary or of runs: it is not registered in arrow-go v18", name)
	}
	return f.Type, nil
}

// type18 converts a type that is not an extension type.
func type18(path string, t arrow15.DataType) (arrow18.DataType, error) {
	switch t := t.(type) {
	case *arrow15.FixedSizeBinaryType:
		return &arrow18.FixedSizeBinaryType{ByteWidth: t.ByteWidth}, nil
	case *arrow15.TimestampType:
		return &arrow18.TimestampType{Unit: arrow18.TimeUnit(t.Unit), TimeZone: t.TimeZone}, nil
	case *arrow15.Time32Type:
		return &arrow18.Time32Type{Unit: arrow18.TimeUnit(t.Unit)}, nil
	case *arrow15.Time64Type:
		return &arrow18.Time64Type{Unit: arrow18.TimeUnit(t.Unit)}, nil
	case *arrow15.DurationType:
		return &arrow18.DurationType{Unit: arrow18.TimeUnit(t.Unit)}, nil
	case *arrow15.Decimal128Type:
		return &arrow18.Decimal128Type{Precision: t.Precision, Scale: t.Scale}, nil
	case *arrow15.Decimal256Type:
		return &arrow18.Decimal256Type{Precision: t.Precision, Scale: t.Scale}, nil
	case *arrow15.DictionaryType:
		index, err := bare18(path, t.IndexType)
		if err != nil {
			return nil, err
		}
		value, err := bare18(path, t.ValueType)
		return &arrow18.DictionaryType{IndexType: index, ValueType: value, Ordered: t.Ordered}, err
	case *arrow15.RunEndEncodedType:
		ends, err := bare18(path, t.RunEnds())
		if err != nil {
			return nil, err
		}
		values, err := bare18(path, t.Encoded())
		if err != nil {
			return nil, err
		}
		out := arrow18.RunEndEncodedOf(ends, values)
		out.ValueNullable = t.ValueNullable
		return out, nil
	case *arrow15.MapType:
		kv, err := fields18(path, []arrow15.Field{t.KeyField(), t.ItemField()})
		if err != nil {
			return nil, err
		}
		out := arrow18.MapOfFields(kv[0], kv[1])
		out.KeysSorted = t.KeysSorted
		return out, nil
	case arrow15.NestedType:
		fields, err := fields18(path, t.Fields())
		if err != nil {
			return nil, err
		}
		return nested18(path, t, fields)
	}
	if s := simple18(t.ID()); s != nil {
		return s, nil
	}
	return nil, faults.Unsupported(fault.At{Column: path}, "%s, a type that arrow-go v18 does not have", t)
}

// nested18 returns the nested type of the given fields that t is in v15.
func nested18(path string, t arrow15.NestedType, fields []arrow18.Field) (arrow18.DataType, error) {
	switch t := t.(type) {
	case *arrow15.StructType:
		return arrow18.StructOf(fields...), nil
	case *arrow15.ListType:
		return arrow18.ListOfField(fields[0]), nil
	case *arrow15.LargeListType:
		return arrow18.LargeListOfField(fields[0]), nil
	case *arrow15.ListViewType:
		return arrow18.ListViewOfField(fields[0]), nil
	case *arrow15.LargeListViewType:
		return arrow18.LargeListViewOfField(fields[0]), nil
	case *arrow15.FixedSizeListType:
		return arrow18.FixedSizeListOfField(t.Len(), fields[0]), nil
	case *arrow15.SparseUnionType:
		return arrow18.SparseUnionOf(fields, t.TypeCodes()), nil
	case *arrow15.DenseUnionType:
		return arrow18.DenseUnionOf(fields, t.TypeCodes()), nil
	}
	return nil, faults.Unsupported(fault.At{Column: path}, "%s, a type that arrow-go v18 does not have", t)
}
