package fault_test

import (
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
)

// build stands for a call of this module that fails.
func build(memory int64) error {
	const need = 20 << 20
	if memory >= need {
		return nil
	}
	return fmt.Errorf("building: %w", fault.Memory(fault.At{File: "ids.parquet", RowGroup: 3}, "a page", need, memory, 1))
}

// A program that finds out how much memory a call needs, and tries again.
func Example() {
	err := build(16 << 20)
	var e *fault.Error
	if errors.Is(err, fault.ErrMemory) && errors.As(err, &e) {
		fmt.Println(e.At.File, e.At.RowGroup)
		for _, o := range fault.Options(err) {
			fmt.Printf("set %s to %s\n", o.Name, o.Value)
		}
	}
	fmt.Println(build(21 << 20))
	// Output:
	// ids.parquet 3
	// set Memory to 21MiB
	// <nil>
}

// A front end spells options as its users know them.
func ExampleWords() {
	env := fault.Words{Option: func(o fault.Option) string { return o.As("JOB_" + o.Name) }}
	err := build(16 << 20)
	fmt.Println(err)
	fmt.Println(env.Text(err))
	// Output:
	// building: ids.parquet: row group 3: over the memory budget: a page: want at most 16 MiB, 1/1 of the budget, got 20 MiB (raise Memory to 21MiB or more)
	// building: ids.parquet: row group 3: over the memory budget: a page: want at most 16 MiB, 1/1 of the budget, got 20 MiB (raise JOB_Memory to 21MiB or more)
}
