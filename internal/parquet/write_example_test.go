package parquet

import (
	"bytes"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

func ExampleWriter() {
	var out bytes.Buffer
	w, err := NewWriter(&out, leafSchema(format.Int32, format.Required), nil, WriterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := w.Chunk(0)
	if err := c.Add(&Page{Values: 2, Rows: 2, NonNull: 2, Plain: []byte{7, 0, 0, 0, 8, 0, 0, 0}}, nil); err != nil {
		fmt.Println(err)
		return
	}
	chunk, err := c.Finish()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := w.RowGroup(2, []*EncodedChunk{chunk}); err != nil {
		fmt.Println(err)
		return
	}
	rows, n, err := w.Close()
	fmt.Println(rows, n == int64(out.Len()), err)
	// Output: 2 true <nil>
}
