//go:build !linux

package spill

import (
	"errors"
	"os"
)

// unnamed creates an anonymous file where the system supports it.
func unnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }
