package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// NotExistError reports a name that stands for no file. It wraps
// fs.ErrNotExist.
type NotExistError struct {
	Name string // as the caller gave it
}

func (e *NotExistError) Error() string {
	return e.Name + ": no such file or directory (check the path)"
}

// Unwrap returns fs.ErrNotExist.
func (e *NotExistError) Unwrap() error { return fs.ErrNotExist }

// missing returns the error for a name that stands for nothing. Other errors
// are returned unchanged.
func missing(name string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: a part of the path is a file, not a directory (check the path)%w", name, quiet.Error{Err: err})
	case errors.Is(err, fs.ErrNotExist):
		return &NotExistError{name}
	}
	return err
}
