package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// missing returns the error for a name that stands for nothing. Other errors
// are returned unchanged.
func missing(name string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: a part of the path is a file, not a directory (check the path)%w", name, quiet.Error{Err: err})
	case errors.Is(err, fs.ErrNotExist) && (err == fs.ErrNotExist || errors.As(err, new(*fs.PathError))): //nolint:errorlint // others say more
		return &faults.NotExist{Name: name}
	}
	return err
}
