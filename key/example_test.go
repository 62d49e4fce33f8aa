package key_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
)

// filterOf returns a filter of keys.
func filterOf(columns string, v key.Values) *codec.Filter {
	b, err := filterbuild.NewBuilder(filterbuild.Options{Key: columns})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	w, err := b.Worker()
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Add(v); err != nil {
		log.Fatal(err)
	}
	f, _, err := b.Finish(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return f
}

// Values of different types compare by value.
func Example() {
	f := filterOf("id::int64", key.Int64s([]int64{1, 2}))
	fmt.Println(f.Probe(key.Uint64s([]uint64{2, 1 << 63}), nil))
	fmt.Println(f.Probe(key.Strings([]string{"1"}), nil))
	// Output:
	// [0] <nil>
	// [] mismatch: key class: want integer, got text or binary (convert the values to the class of the key)
}

// A composite key has one column of values per part.
func ExampleColumns() {
	f := filterOf("user::int64,day::string", key.Columns(key.Int64s([]int64{7}), key.Strings([]string{"Mon"})))
	fmt.Println(f.Contains(key.Columns(key.Int64s([]int64{7, 7}), key.Strings([]string{"Mon", "Tue"})), nil))
	// Output:
	// [true false] <nil>
}

// NULLs of Go values.
func ExampleValues_Valid() {
	f := filterOf("id::int64", key.Int64s([]int64{1, 2}).Valid([]bool{true, false}))
	fmt.Println(f.Contains(key.Int64s([]int64{1, 2, 1}).Valid([]bool{true, true, false}), nil))
	// Output:
	// [true false false] <nil>
}
