package source

import (
	"io"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Bytes that a stream announces ahead of its reads. They grow with the bytes read, since
// often only the beginning of a file is needed.
const (
	LeastAhead = 256 << 10
	maxAhead   = 16 << 20
)

// followAhead is how much is announced of what follows a part of a file, for its last
// row.
const followAhead = 64 << 10

// stream reads a file over a network from the start, or a part of it, and announces what
// follows.
type stream struct {
	*io.SectionReader
	src       storage.Reader
	until     int64 // end of what is announced at once; 0: of a whole file
	at        int64 // position
	announced int64 // end of the announced ranges
	steps     []step
}

// step is an announcement.
type step struct {
	end     int64
	release func()
}

// newStream returns a stream of a file from a position on. Its bytes before to will certainly be
// read.
func newStream(whole *io.SectionReader, src storage.Reader, from, to int64) *stream {
	_, _ = whole.Seek(from, io.SeekStart) // within the file, which cannot fail
	return &stream{SectionReader: whole, src: src, until: min(to+followAhead, whole.Size()), at: from, announced: from}
}

func (s *stream) Read(p []byte) (int, error) {
	ahead := min(max(s.at, LeastAhead), maxAhead)
	if s.until > 0 {
		ahead = LeastAhead
	}
	end := min(s.at+ahead, s.Size())
	if s.at < s.until {
		end = s.until
	}
	if n := end - s.announced; n >= ahead/2 || n > 0 && (end == s.Size() || end == s.until) {
		s.steps = append(s.steps, step{s.announced + n, objects.Prefetch(s.src, []storage.Range{{Off: s.announced, Len: n}})})
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
