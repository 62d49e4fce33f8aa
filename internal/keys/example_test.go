package keys_test

import (
	"fmt"
	"log"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Values of different types compare by value: they become keys of the requested
// class.
func ExampleValueEncoder() {
	enc := keys.NewValueEncoder(keys.Options{Classes: []keys.Class{keys.Integer}})
	show := func(_ int, b *keys.Batch) error {
		ints, _ := b.Ints()
		fmt.Println(ints)
		return nil
	}
	for _, v := range []keys.Values{keys.Int64s([]int64{1, 2}), keys.Uint64s([]uint64{1 << 63})} {
		if err := enc.Encode(v, show); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(enc.Encode(keys.Strings([]string{"1"}), show))
	// Output:
	// [1 2]
	// [9223372036854775808]
	// mismatch: key class: want integer, got text or binary (convert the values to the class of the key)
}

// A composite key has one column of values per part.
func ExampleColumns() {
	users, days := []int64{7, 7}, []string{"Mon", "Tue"}
	v := keys.Columns(keys.Int64s(users), keys.Strings(days))
	enc := keys.NewValueEncoder(keys.Options{Classes: []keys.Class{keys.Integer, keys.Bytes}})
	err := enc.Encode(v, func(_ int, b *keys.Batch) error {
		fmt.Println(len(b.Rows), "keys, equal:", string(b.Append(nil, 0)) == string(b.Append(nil, 1)))
		return nil
	})
	fmt.Println(err)
	// Output:
	// 2 keys, equal: false
	// <nil>
}

// A column is named by a path, and may have a cast.
func ExampleParseColumns() {
	columns, err := keys.ParseColumns(`user.id::int64,"a.b"`)
	for _, c := range columns {
		fmt.Println(len(c.Path), c, c.Cast)
	}
	fmt.Println(err)
	// Output:
	// 2 user.id::int64 int64
	// 1 "a.b" <nil>
	// <nil>
}
