package fault_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/fault"
)

// A program that sets a damaged file aside.
func Example() {
	const bytes = "not a filter"
	_, err := codec.Decode(strings.NewReader(bytes), int64(len(bytes)), "users.bjf", codec.Limits{})
	var e *fault.Error
	if errors.Is(err, fault.ErrCorrupt) && errors.As(err, &e) {
		fmt.Printf("set aside %s: %s\n", e.At.File, e.What)
	}
	// Output:
	// set aside users.bjf: magic
}
