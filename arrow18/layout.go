package arrow18

import (
	arrow18 "github.com/apache/arrow-go/v18/arrow"
	arrow15 "github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// recovered turns a panic, with which both libraries report malformed arrays and
// types, into an error. It is deferred.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = faults.Corrupt(fault.At{}, "an array or type that breaks the rules of Arrow: %v", r)
	}
}

// sameLayout reports whether arrays of two types, neither an extension type, have
// the same buffers and children. Both sides number the types alike.
func sameLayout(a arrow15.DataType, b arrow18.DataType) bool {
	if int(a.ID()) != int(b.ID()) {
		return false
	}
	switch a := a.(type) {
	case *arrow15.FixedSizeBinaryType:
		return a.ByteWidth == b.(*arrow18.FixedSizeBinaryType).ByteWidth
	case *arrow15.FixedSizeListType:
		return a.Len() == b.(*arrow18.FixedSizeListType).Len()
	case *arrow15.DictionaryType:
		return int(a.IndexType.ID()) == int(b.(*arrow18.DictionaryType).IndexType.ID())
	}
	return true
}

// below returns the dotted path of a field of the column at path.
func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// withoutExtension returns a field's metadata without the keys that name an
// extension type.
func withoutExtension(keys, values []string) (k, v []string) {
	for i, key := range keys {
		if key != extensionName && key != extensionData {
			k, v = append(k, key), append(v, values[i])
		}
	}
	return k, v
}
