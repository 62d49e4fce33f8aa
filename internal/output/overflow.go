package output

import (
	"errors"
	"io"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/spill"
)

// overflow holds pages of an output's row groups on disk.
type overflow struct{ *spill.Stream }

// waitsOnDisk describes the contents of such a file in errors.
const waitsOnDisk fault.Text = "pages of the output that wait on disk (raise {Memory}, or name a directory with room by {TempDir})"

func (o overflow) Write(b []byte) error { return o.Stream.Write(b, false) }

func (o overflow) Each(fn func(b []byte) error) error {
	r := o.Reader()
	var chunk []byte
	for {
		var err error
		if chunk, err = r.Next(chunk); errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(chunk); err != nil {
			return err
		}
	}
}

// begin prepares what the writers of the output share, unless that was done. The
// caller calls end when everything is written.
func (o *Destination) begin() (end func() error) {
	if o.pool != nil {
		return func() error { return nil }
	}
	o.pool = new(parquet.Pool)
	if o.Memory == 0 {
		return func() error { return nil }
	}
	waiting := spill.New(o.TempDir, waitsOnDisk)
	o.pool.Most = o.Memory
	o.pool.Overflow = func() parquet.Overflow { return overflow{waiting.Stream()} }
	return waiting.Close
}
