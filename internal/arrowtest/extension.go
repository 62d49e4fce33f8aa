// Package arrowtest makes Arrow arrays for tests.
package arrowtest

import (
	"reflect"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// Extension is an extension type over any storage type.
type Extension struct{ arrow.ExtensionBase }

type extensionArray struct{ array.ExtensionArrayBase }

// ExtensionOf returns the extension type over a storage type.
func ExtensionOf(storage arrow.DataType) *Extension {
	return &Extension{arrow.ExtensionBase{Storage: storage}}
}

// ArrayType returns the type of the arrays.
func (*Extension) ArrayType() reflect.Type { return reflect.TypeOf(extensionArray{}) }

// ExtensionName returns the type's name.
func (*Extension) ExtensionName() string { return "wrapped" }

// Serialize returns no metadata.
func (*Extension) Serialize() string { return "" }

// ExtensionEquals compares the names, not the storage types.
func (*Extension) ExtensionEquals(o arrow.ExtensionType) bool { return o.ExtensionName() == "wrapped" }

// Deserialize returns the extension type over a storage type.
func (*Extension) Deserialize(storage arrow.DataType, _ string) (arrow.ExtensionType, error) {
	return ExtensionOf(storage), nil
}

// Extended returns an array of the extension type over the type of a, which shares
// the memory of a. The test's end releases it.
func Extended(t testing.TB, a arrow.Array) arrow.Array {
	in := a.Data()
	d := array.NewData(ExtensionOf(a.DataType()), in.Len(), in.Buffers(), in.Children(), in.NullN(), in.Offset())
	defer d.Release()
	d.SetDictionary(in.Dictionary())
	out := array.MakeFromData(d)
	t.Cleanup(out.Release)
	return out
}
