package take

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
)

// TestWithoutFieldKeys: a key is dropped at every depth, and nothing else.
func TestWithoutFieldKeys(t *testing.T) {
	field := func(name string, dt arrow.DataType, ids bool) arrow.Field {
		f := arrow.Field{Name: name, Type: dt, Nullable: name == "b", Metadata: arrow.NewMetadata([]string{"note"}, []string{name})}
		if ids {
			f.Metadata = arrow.NewMetadata([]string{FieldID, "note"}, []string{"1", name})
		}
		return f
	}
	tree := func(ids bool) arrow.Field {
		leaf := field("b", arrow.PrimitiveTypes.Int64, ids)
		md := leaf.Metadata
		pairs := arrow.MapOfWithMetadata(arrow.BinaryTypes.String, md, arrow.PrimitiveTypes.Int8, md)
		pairs.KeysSorted = true
		return field("top", arrow.StructOf(
			field("a", arrow.ListOfField(leaf), ids),
			field("c", arrow.LargeListOfField(leaf), ids),
			field("d", arrow.FixedSizeListOfField(2, leaf), ids),
			field("e", pairs, ids),
		), ids)
	}
	if got, want := WithoutFieldKeys(tree(true), FieldID, "other"), tree(false); !got.Equal(want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}
