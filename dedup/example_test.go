package dedup_test

import (
	"bytes"
	"fmt"
	"log"
	"time"

	"github.com/bloomjoin/bloomjoin/dedup"
	"github.com/bloomjoin/bloomjoin/key"
)

// Clicks come in batches; a click that came within the last day is dropped.
func Example() {
	ring, err := dedup.New(dedup.Options{Expect: 1_000_000, Window: 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	day := int64(24 * time.Hour)
	for _, batch := range []struct {
		ids   []string
		times []int64
	}{
		{[]string{"a", "b", "a"}, []int64{0, 1, 2}},
		{[]string{"b", "c"}, []int64{day / 2, day / 2}},
		{[]string{"a"}, []int64{day + 1}}, // "a" is forgotten
	} {
		drop, err := ring.Seen(nil, key.Strings(batch.ids), batch.times)
		if err != nil {
			log.Fatal(err)
		}
		for i, id := range batch.ids {
			if !drop[i] {
				fmt.Print(id, " ")
			}
		}
	}
	// Output: a b c a
}

// A ring is kept between processes.
func ExampleLoad() {
	ring, err := dedup.New(dedup.Options{Expect: 1000})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := ring.Seen(nil, key.Int64s([]int64{7}), nil); err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if err := ring.Save(&file); err != nil {
		log.Fatal(err)
	}
	again, err := dedup.Load(&file, 1<<30)
	if err != nil {
		log.Fatal(err)
	}
	drop, err := again.Seen(nil, key.Int64s([]int64{7, 8}), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(drop)
	// Output: [true false]
}
