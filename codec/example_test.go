package codec_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A filter file is loaded and probed, whatever its kind.
func ExampleLoad() {
	f, err := codec.Load(context.Background(), storage.Local(), "../internal/filters/testdata/golden/exact-capacity.bjf", codec.Limits{MaxBytes: 1 << 30})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fmt.Println(f.Kind(), f.KeyClasses(), f.FPR(), f.Count().Keys)
	rows, err := f.Probe(key.Int64s([]int64{-67, 1, 2}), nil)
	fmt.Println(rows, err)
	// Output:
	// exact [integer] 0 90
	// [0 2] <nil>
}

// Contains answers for every value; Probe lists the rows of the values that may be
// members.
func ExampleFilter_Contains() {
	f, err := codec.Load(context.Background(), storage.Local(), "../internal/filters/testdata/golden/exact-capacity.bjf", codec.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	found, err := f.Contains(key.Uint64s([]uint64{2, 1 << 40}), nil)
	fmt.Println(found, err)
	// Output:
	// [true false] <nil>
}

// A filter in memory is written to a file and read again.
func ExampleFilter_WriteTo() {
	f, err := codec.Load(context.Background(), storage.Local(), "../internal/filters/testdata/golden/exact-capacity.bjf", codec.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	size, err := f.WriteTo(&file)
	if err != nil {
		log.Fatal(err)
	}
	again, err := codec.Decode(bytes.NewReader(file.Bytes()), size, "the copy", codec.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	a, err := f.Digest()
	if err != nil {
		log.Fatal(err)
	}
	b, err := again.Digest()
	fmt.Println(a == b, err)
	// Output:
	// true <nil>
}

// A filter travels in a message as bytes.
func ExampleFilter_MarshalBinary() {
	f, err := codec.Load(context.Background(), storage.Local(), "../internal/filters/testdata/golden/exact-capacity.bjf", codec.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	message, err := f.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	var received codec.Filter
	if err := received.UnmarshalBinary(message); err != nil {
		log.Fatal(err)
	}
	fmt.Println(received.ContainsInt64(2))
	fmt.Println(received.UnmarshalBinary(message))
	// Output:
	// true <nil>
	// invalid filter: UnmarshalBinary needs a new Filter
}

// A counting filter takes a fifth of the memory where it is only asked.
func ExampleLimits() {
	ctx, name := context.Background(), "../internal/filters/testdata/golden/counting-set.bjf"
	for _, lim := range []codec.Limits{{MaxBytes: 1 << 30}, {MaxBytes: 1 << 30, Counters: true}} {
		f, err := codec.Load(ctx, storage.Local(), name, lim)
		if err != nil {
			log.Fatal(err)
		}
		_, err = f.MarshalBinary()
		fmt.Println(f.Kind(), f.Bytes(), "bytes, can be written:", err == nil)
		if err := f.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// counting 1440 bytes, can be written: false
	// counting 7200 bytes, can be written: true
}
