package output

import (
	"fmt"
	"runtime/debug"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// recovered turns a panic, which only damaged input or a bug can cause, into an
// error with its place.
func recovered(f *File, group int, err *error) {
	if r := recover(); panics.IsMemoryFault(r) {
		*err = fmt.Errorf("%s: %w", fault.At{File: f.name, RowGroup: group + 1}, panics.ErrUnmapped)
	} else if r != nil {
		*err = fmt.Errorf("%s: internal error: %v\n%s", fault.At{File: f.name, RowGroup: group + 1}, r, debug.Stack())
	}
}
