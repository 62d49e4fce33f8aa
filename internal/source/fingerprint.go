package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
)

// Fingerprint makes the fingerprints of files, several at once: small files are read
// completely.
func Fingerprint(files []*File) error {
	var prints errgroup.Group
	prints.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range files {
		prints.Go(func() error {
			_, err := f.Fingerprint()
			return err
		})
	}
	return prints.Wait()
}

// Fingerprint identifies the content of the file, without its name. For a Parquet
// file above 1 MiB it is a digest of the footer, which has the position, size and
// statistics of every column chunk. For others it is a digest of all bytes or, over a
// network, of the identity that the storage gives the object and, of Parquet files, the
// footer. It is nil for standard input and records.
func (f *File) Fingerprint() ([]byte, error) {
	if f.reader == nil {
		return nil, nil
	}
	_, release, err := f.keepOpen(context.Background())
	if err != nil {
		return nil, err
	}
	fingerprint, err := f.print()
	return fingerprint, errors.Join(err, release())
}

// WholeBelow is the size up to which all bytes of a Parquet file are digested,
// because small files may well have equal footers.
const WholeBelow = 1 << 20

func (f *File) Digest() ([]byte, error) {
	p, ok := f.table.(*arrowparquet.Parquet)
	if ok && f.size > WholeBelow {
		return p.Fingerprint(), nil
	}
	h := sha256.New()
	if id := f.reader.Object().Identity; id != "" && f.Remote() {
		if ok {
			h.Write(p.Fingerprint())
		}
		h.Write([]byte(id))
		return h.Sum(nil), nil
	}
	buf := make([]byte, max(min(f.size, 32<<10), 1)) // of many small files, larger ones would be garbage
	_, err := io.CopyBuffer(h, io.NewSectionReader(counted{f.reader, f.bytes}, 0, f.size), buf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return h.Sum(nil), f.Rest()
}
