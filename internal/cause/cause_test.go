package cause_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/cause"
)

type timeout struct{ error }

func (timeout) Timeout() bool { return true }

// The most telling code of a tree counts, whatever wraps it, and an error has another attempt
// if a cause that passes is in it.
func TestOf(t *testing.T) {
	damaged, keys := cause.New(cause.Damaged, "corrupt"), cause.New(cause.KeyTypes, "key class")
	changed, listed := cause.New(cause.Changed, "changed"), cause.New(cause.Listed, "out of date")
	expired := cause.Mark(cause.Credentials, fmt.Errorf("expired: %w", cause.New(cause.Network, "again")))
	path := func(err error) error { return fmt.Errorf("x: %w", &fs.PathError{Op: "open", Path: "x", Err: err}) }
	for i, c := range []struct {
		err    error
		want   cause.Code
		passes bool
	}{
		{nil, "", false},
		{errors.New("x"), cause.Other, false},
		{damaged, cause.Damaged, false},
		{fmt.Errorf("x: %w: %w", damaged, keys), cause.KeyTypes, false},
		{cause.Mark(cause.Shards, damaged), cause.Shards, false},
		{errors.Join(nil, keys, cause.New(cause.Shards, "x")), cause.KeyTypes, false},
		{errors.Join(keys, path(syscall.ENOSPC)), cause.DiskFull, true},
		{errors.Join(changed, listed), cause.Listed, false},
		{expired, cause.Credentials, true},
		{path(syscall.ENOENT), cause.NoFile, false},
		{path(syscall.ENOTDIR), cause.NoFile, false},
		{path(syscall.EACCES), cause.NoAccess, false},
		{path(syscall.EROFS), cause.NoAccess, false},
		{path(syscall.EFBIG), cause.Other, false},
		{path(syscall.EIO), cause.System, true},
		{path(os.ErrDeadlineExceeded), cause.Network, true},
		{&net.OpError{Op: "read", Err: timeout{errors.New("slow")}}, cause.Network, true},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, cause.Network, true},
		{context.Canceled, cause.Interrupted, false},
		{errors.Join(cause.New(cause.NoInputs, "x"), fs.ErrNotExist), cause.NoInputs, false},
	} {
		if got, passes := cause.Of(c.err), cause.Passes(c.err); got != c.want || passes != c.passes {
			t.Errorf("%d: %v: %s, %v, want %s, %v", i, c.err, got, passes, c.want, c.passes)
		}
	}
	if marked := cause.Mark(cause.Shards, keys); !errors.Is(marked, keys) || marked.Error() != keys.Error() {
		t.Errorf("%v", marked)
	}
}
