package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync"

	"github.com/zeebo/xxh3"
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
// footer. It is nil for records, and for standard input unless that is [Known]. Digests are 16 bytes (XXH3-128), and not
// cryptographic.
func (f *File) Fingerprint() (fingerprint []byte, err error) {
	if f.reader == nil {
		if f.print != nil {
			return f.print()
		}
		return nil, nil
	}
	if err := f.usable(); err != nil {
		return nil, err
	}
	if r := f.readers; r != nil { // as KeepOpen, for many files
		if _, ok := r.begin(false); !ok {
			return nil, fmt.Errorf("%s: %w", f.name, fs.ErrClosed)
		}
		defer func() { err = errors.Join(err, r.end(false)) }()
	}
	return f.print()
}

// WholeBelow is the size up to which all bytes of a Parquet file are digested,
// because small files may well have equal footers.
const WholeBelow = 1 << 20

// Digest computes the fingerprint.
func (f *File) Digest() ([]byte, error) {
	content, err := f.digestContent()
	if err != nil {
		return nil, err
	}
	return f.digestTable(content)
}

func (f *File) digestContent() ([]byte, error) {
	p, ok := f.table.(*arrowparquet.Parquet)
	if ok && f.size > WholeBelow {
		return p.Fingerprint(), nil
	}
	h := xxh3.New()
	if id := f.reader.Object().Identity; id != "" && f.Remote() {
		if ok {
			_, _ = h.Write(p.Fingerprint())
		}
		_, _ = h.WriteString(id)
		return sum(h), nil
	}
	buf := digestBuffers.Get().(*[]byte)
	defer digestBuffers.Put(buf)
	_, err := io.CopyBuffer(h, io.NewSectionReader(counted{f.reader, f.bytes, f.reading}, 0, f.size), *buf)
	if err != nil {
		return nil, f.Failed(err)
	}
	return sum(h), f.Rest()
}

var digestBuffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

func sum(h *xxh3.Hasher) []byte {
	b := h.Sum128().Bytes()
	return b[:]
}
