package meta

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/zeebo/xxh3"
)

// Digest returns 8 bytes (XXH3-64) that identify a schema: names, types, nesting,
// annotations and field ids. It is not a cryptographic digest.
func Digest(schema []Element) ([]byte, error) {
	h := xxh3.New()
	for i := range schema {
		e := &schema[i]
		b := binary.LittleEndian.AppendUint64(nil, uint64(len(e.Name)))
		b = append(b, e.Name...)
		b = addOptional(b, e.Type)
		b = addOptional(b, e.TypeLength)
		b = addOptional(b, e.RepetitionType)
		b = addOptional(b, e.NumChildren)
		b = addOptional(b, e.ConvertedType)
		b = addOptional(b, e.Scale)
		b = addOptional(b, e.Precision)
		b = addOptional(b, e.FieldID)
		a, err := e.Annotation()
		if err != nil {
			return nil, err
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(len(a)))
		h.Write(append(b, a...))
	}
	return binary.BigEndian.AppendUint64(nil, h.Sum64()), nil
}

// addOptional appends a number that may be missing.
func addOptional[T ~int32](b []byte, v thrift.Null[T]) []byte {
	if !v.Valid {
		return append(b, 0)
	}
	return binary.LittleEndian.AppendUint32(append(b, 1), uint32(v.V))
}
