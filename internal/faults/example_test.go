package faults_test

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/wording"
)

// A front end spells options as its users know them.
func ExampleWords() {
	env := faults.Words{Option: func(o wording.Option) string { return o.As("JOB_" + o.Name) }}
	err := fmt.Errorf("building: %w", faults.Memory(fault.At{File: "ids.parquet", RowGroup: 3}, "a page", 20<<20, 16<<20, 1))
	fmt.Println(err)
	fmt.Println(env.Text(err))
	// Output:
	// building: ids.parquet: row group 3: over the memory budget: a page: want at most 16 MiB, 1/1 of the budget, got 20 MiB (raise Memory to 21MiB or more)
	// building: ids.parquet: row group 3: over the memory budget: a page: want at most 16 MiB, 1/1 of the budget, got 20 MiB (raise JOB_Memory to 21MiB or more)
}
