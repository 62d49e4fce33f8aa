package parquet

import (
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
)

// storedRange is a range of a file's bytes that is to be copied.
type storedRange struct {
	f         *File
	at        fault.At
	pos, size int64
	sum       uint64 // XXH3 of the bytes
	kept      []byte // the bytes; nil: they are read again
}

// write copies the range. It fails if the bytes are not those that were summed.
func (r *storedRange) write(s *sink) error {
	if r.kept != nil {
		return s.write(r.kept)
	}
	h := xxh3.New()
	buf := s.buffer(r.size)
	for done := int64(0); done < r.size; {
		b := buf[:min(int64(len(buf)), r.size-done)]
		if err := r.f.readFull(b, r.pos+done); err != nil {
			return s.fail(err)
		}
		_, _ = h.Write(b) // it does not fail
		if err := s.write(b); err != nil {
			return err
		}
		done += int64(len(b))
	}
	if h.Sum64() != r.sum {
		return s.fail(fault.Corrupt(r.at, "the column changed while it was copied").
			WithHint("try again when no other program writes the file"))
	}
	return nil
}

// hash reads the range and sets its sum. Bytes of a file over a network are kept
// instead: a Bloom filter is small.
func (r *storedRange) hash() error {
	if r.f.remote != nil {
		r.kept = make([]byte, r.size)
		return r.f.readFull(r.kept, r.pos)
	}
	h := xxh3.New()
	buf := make([]byte, min(checkPiece, r.size))
	for done := int64(0); done < r.size; {
		b := buf[:min(int64(len(buf)), r.size-done)]
		if err := r.f.readFull(b, r.pos+done); err != nil {
			return err
		}
		_, _ = h.Write(b)
		done += int64(len(b))
	}
	r.sum = h.Sum64()
	return nil
}

// storedFilter returns where the Bloom filter of a column chunk is stored with its
// header, or nil if there is none to be believed.
func (f *File) storedFilter(rowGroup, leaf int) (*storedRange, error) {
	if !f.Metadata.BloomBelieved(&f.Leaves[leaf]) {
		return nil, nil
	}
	pos, head, size, err := f.findBloom(rowGroup, leaf)
	if err != nil && !unusable(err) {
		return nil, err
	}
	if err != nil || size == 0 {
		return nil, nil
	}
	r := &storedRange{f: f, at: f.at(rowGroup, leaf), pos: pos, size: head + size}
	return r, r.hash()
}
