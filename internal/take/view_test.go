package take_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/take"
)

// TestViewLengths: views of up to 12 bytes hold the value itself. (The builders of
// arrow/go v15 think that 12 are too long and overwrite the value.)
func TestViewLengths(t *testing.T) {
	mem := checked(t)
	var want []string
	for n := range 40 {
		want = append(want, strings.Repeat("x", n)+"é")
	}
	headers, data := make([]arrow.ViewHeader, len(want)), []byte{}
	for i, s := range want {
		if headers[i].SetString(s); !headers[i].IsInline() {
			headers[i].SetIndexOffset(int32(i%2), int32(len(data)))
		}
		data = append(data, s...)
	}
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(arrow.ViewHeaderTraits.CastToBytes(headers)), memory.NewBufferBytes(data), memory.NewBufferBytes(data)}
	for _, dt := range []arrow.DataType{arrow.BinaryTypes.StringView, arrow.BinaryTypes.BinaryView} {
		whole := array.MakeFromData(array.NewData(dt, len(want), bufs, nil, 0, 0))
		a := array.NewSlice(whole, 3, int64(len(want)))
		rows := []int{-1}
		for i := range a.Len() {
			rows = append(rows, i, i)
		}
		got, err := take.Array(mem, a, rows)
		if err != nil {
			t.Fatal(err)
		}
		var v func(int) string
		switch got := got.(type) {
		case *array.StringView:
			v = got.Value
		case *array.BinaryView:
			v = got.ValueString
		}
		for i := range got.Len() {
			if i == 0 != got.IsNull(i) || i > 0 && v(i) != want[3+(i-1)/2] {
				t.Errorf("%s: element %d is %q, NULL %v", dt, i, v(i), got.IsNull(i))
			}
		}
		got.Release()
	}
}
