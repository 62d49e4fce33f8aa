package session

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
)

// minMemory is the smallest --memory in bytes. It suffices for the program itself,
// pages of a few columns, and a small filter.
const minMemory = 16 << 20

// Parts of --memory. The remainder, a tenth or more, is for garbage that has not been
// collected yet.
const (
	minLimit     = 112 << 20 // lower bound of the heap limit: a join of a dozen columns needs it
	outsideHeap  = 3 << 20   // the program's data outside the heap
	programs     = 10 << 20  // outsideHeap, and memory of the runtime and libraries
	forTables    = 2         // tables and filters get 1/forTables of the rest
	forPages     = 0.4       // pages, records and row groups in flight get this fraction of the rest
	outputsPages = 4         // unfinished row groups of the output get 1/outputsPages of that

	// What a command takes beside a filter that is its result.
	besideFilter = 256 << 20
)

// Total returns the memory in bytes that the process may take: --memory, or nine tenths
// of what the container or the machine has; 0 if unknown.
func (c *Session) Total() (int64, error) {
	if c.memory != "" {
		n, err := flags.ParseSize(c.memory)
		if err != nil {
			return 0, flags.Usagef("--memory: %w", err)
		}
		if n < minMemory {
			if _, err := strconv.ParseUint(c.memory, 10, 64); err == nil {
				return 0, flags.Usagef("--memory %s: that is bytes; want %s or more (did you mean %sMiB?)", c.memory, words.Bytes(uint64(minMemory)), c.memory)
			}
			return 0, flags.Usagef("--memory %s: want %s or more", c.memory, words.Bytes(uint64(minMemory)))
		}
		if limit := memoryThere(); limit > 0 && !c.Planned {
			n = min(n, limit)
		}
		return int64(n), nil
	}
	return int64(memoryThere() / 10 * 9), nil
}

// memoryThere returns the memory of the container or the machine in bytes; 0: unknown.
func memoryThere() uint64 {
	for _, source := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := source(); err == nil && n > 0 && n < math.MaxInt64 {
			return n
		}
	}
	return 0
}

// Budget returns the memory for tables and filters in bytes.
func (c *Session) Budget() (int64, error) {
	n, err := c.Total()
	return tablesOf(n), err
}

// FilterBudget returns the memory in bytes for the bits of a filter that is all that the
// command makes, or that it is about.
func (c *Session) FilterBudget() (int64, error) {
	n, err := c.Total()
	c.filterAlone = true
	return max(tablesOf(n), n-besideFilter), err
}

// tablesOf returns the memory for tables and filters, out of a total: half of what the
// program leaves, but at least a quarter of the total.
func tablesOf(total int64) int64 { return max((total-programs)/forTables, total/4) }

// inFlight returns the memory for pages, records and row groups in flight, in bytes; 0:
// no bound. What the store may hold is subtracted.
func (c *Session) inFlight() int64 {
	n := c.allInFlight()
	if c.remote && n > 0 {
		n = max(n-fetched(n), n/4)
	}
	return n
}

// allInFlight returns what inFlight returns, and what the store may hold.
func (c *Session) allInFlight() int64 {
	n, err := c.Total()
	if err != nil || n == 0 {
		return 0 // checkCommon has reported the error
	}
	pages := int64(float64(max(n-programs, 0)) * forPages)
	if c.filterAlone {
		pages = min(pages, besideFilter/2)
	}
	return pages
}

// explain adds to errors about the budget how it follows from --memory, and to those about
// a list of inputs how to renew it.
func (c *Session) explain(err error) error {
	if errors.Is(err, inputs.ErrOutdated) && c.listed != "" {
		return fmt.Errorf("%w: bloomjoin inputs --update %s opens only what has changed", err, c.listed)
	}
	if !errors.Is(err, fault.ErrMemory) && !errors.Is(err, filters.ErrLimit) {
		return err
	}
	if input := (*fault.Error)(nil); errors.As(err, &input) && errors.Is(input, fault.ErrMemory) {
		return err // about an input, with a sufficient budget
	}
	total, unknown := c.Total()
	if unknown != nil || total == 0 {
		return err
	}
	given := "the --memory of " + c.memory
	if c.memory == "" {
		given = "the default --memory, " + words.Bytes(total)
	}
	may := "tables and filters may take " + words.Bytes(tablesOf(total))
	if c.filterAlone && total-besideFilter > tablesOf(total) {
		may = "the bits of a filter may take " + words.Bytes(total-besideFilter) + ", and exact sets " + words.Bytes(tablesOf(total))
	}
	return fmt.Errorf("%w (of %s, %s)", err, given, may)
}

// Bounds of what the store may hold of the memory in flight, if the command names
// URLs: a quarter, within these bytes.
const (
	minFetched = 16 << 20
	maxFetched = 256 << 20
)

// fetched returns the memory in bytes for fetching ahead and for uploads; 0: the store's
// default.
func fetched(inFlight int64) int64 {
	if inFlight == 0 {
		return 0
	}
	return min(max(inFlight/4, minFetched), maxFetched)
}

// OutputMemory returns the memory for unfinished row groups of the output, in bytes; 0: no
// bound.
func (c *Session) OutputMemory() int64 { return c.inFlight() / outputsPages }
