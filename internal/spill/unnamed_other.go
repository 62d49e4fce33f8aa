//go:build !linux

package spill

import (
	"errors"
	"os"
)

// unnamed makes a file without a name, where the system can do that.
func unnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }
