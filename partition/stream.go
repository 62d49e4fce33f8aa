package partition

import (
	"io"

	"github.com/bloomjoin/bloomjoin/storage"
)

// Bytes that a stream announces at a time. They double as it is read, since often only
// the beginning of a file is looked at.
const (
	firstStep = 256 << 10
	mostStep  = 16 << 20
)

// stream reads a file over a network from the start to the end, and announces what
// follows.
type stream struct {
	*io.SectionReader
	src       storage.Reader
	at        int64 // position
	announced int64 // end of what was announced
	step      int64
	release   []func() // of the last two steps
}

func (s *stream) Read(p []byte) (int, error) {
	for s.announced < min(s.at+s.step, s.Size()) {
		n := min(s.step, s.Size()-s.announced)
		s.release = append(s.release, storage.Prefetch(s.src, []storage.Range{{Off: s.announced, Len: n}}))
		s.announced += n
		if s.step < mostStep {
			s.step *= 2
		}
		if len(s.release) > 3 { // the first has been read
			s.release[0]()
			s.release = s.release[1:]
		}
	}
	n, err := s.SectionReader.Read(p)
	s.at += int64(n)
	return n, err
}

func (s *stream) Close() error {
	for _, release := range s.release {
		release()
	}
	s.release = nil
	return nil
}
