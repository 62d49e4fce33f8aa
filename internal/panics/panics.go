// Package panics turns panics of decoders into errors. Bounds are checked where
// data is read, so this is the last line of defence: a recovered panic means
// that a check is missing, and tests over hostile input fail on it.
package panics

import (
	"fmt"
	"syscall"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// ErrRecovered is wrapped by errors made from a recovered panic.
var ErrRecovered error = recovered{"recovered panic"}

// recovered is a recovered panic as an error.
type recovered struct{ value any }

func (r recovered) Error() string        { return fmt.Sprint(r.value) }
func (r recovered) Is(target error) bool { return target == ErrRecovered }
func (recovered) Cause() cause.Code      { return cause.Internal }

// Recover turns a panic into a [fault.ErrCorrupt] error that wraps
// [ErrRecovered]. It is used as
//
//	defer panics.Recover(at, &err)
//
// A memory fault in mapped bytes, which panics under debug.SetPanicOnFault,
// becomes an error that wraps [ErrUnmapped] instead.
func Recover(at fault.At, err *error) {
	if r := recover(); r != nil {
		*err = Error(at, r)
	}
}

// Error returns the error for the recovered panic r, for deferred functions
// that determine the place only then.
func Error(at fault.At, r any) error {
	if IsMemoryFault(r) {
		return fmt.Errorf("%s: %w", at, ErrUnmapped)
	}
	e := faults.Corrupt(at, "the decoder gave up")
	e.Err = recovered{r}
	return e
}

// ErrUnmapped reports that bytes of a mapped file can no longer be read. It wraps
// syscall.ESTALE: another attempt finds the file as it is then.
var ErrUnmapped = fmt.Errorf("the mapped file can no longer be read: it was cut short, or its disk fails: %w", syscall.ESTALE)

// IsMemoryFault reports whether a recovered panic is a memory fault.
func IsMemoryFault(r any) bool {
	_, ok := r.(interface{ Addr() uintptr })
	return ok
}
