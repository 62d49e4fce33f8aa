package partition

import (
	"io"

	"github.com/bloomjoin/bloomjoin/storage"
)

// Bytes that a stream announces ahead of its reads. They grow with the bytes read, since
// often only the beginning of a file is needed.
const (
	leastAhead = 256 << 10
	mostAhead  = 16 << 20
)

// stream reads a file over a network from the start to the end, and announces what
// follows.
type stream struct {
	*io.SectionReader
	src       storage.Reader
	at        int64 // position
	announced int64 // end of the announced ranges
	steps     []step
}

// step is an announcement.
type step struct {
	end     int64
	release func()
}

func (s *stream) Read(p []byte) (int, error) {
	ahead := min(max(s.at, leastAhead), mostAhead)
	end := min(s.at+ahead, s.Size())
	if n := end - s.announced; n >= ahead/2 || n > 0 && end == s.Size() {
		s.steps = append(s.steps, step{s.announced + n, storage.Prefetch(s.src, []storage.Range{{Off: s.announced, Len: n}})})
		s.announced += n
	}
	n, err := s.SectionReader.Read(p[:min(int64(len(p)), max(s.announced-s.at, 1))])
	s.at += int64(n)
	for len(s.steps) > 0 && s.steps[0].end <= s.at {
		s.steps[0].release()
		s.steps = s.steps[1:]
	}
	return n, err
}

func (s *stream) Close() error {
	for _, k := range s.steps {
		k.release()
	}
	s.steps = nil
	return nil
}
