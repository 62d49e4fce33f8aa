package text

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// maxWindow is the largest zstd window that is decoded, that of `zstd --long`.
const maxWindow = 128 << 20

// readSize is the size of read buffers in bytes, and blocksAhead the number of them
// that are decompressed in advance.
const (
	readSize    = 64 << 10
	blocksAhead = 4
)

// patience is how long close waits for a read of standard input.
const patience = time.Second

// stream is the decompressed text of an input, from the start or from that of a
// range. Before ahead is called, Read decompresses directly; afterwards a goroutine
// does, a few blocks in advance. Errors of the storage are returned as they are,
// errors of decoders as faults. The first error is sticky, except errRangeEnd.
type stream struct {
	at   fault.At
	once bool
	src  *source
	kind string // of compression; "" if there is none
	// encoding is that of the text if it is converted; marked: a byte order mark alone says so
	encoding string
	marked   bool
	zstd     *zstd.Decoder
	text     io.Reader // decompressed
	more     bool      // text is that of a range, and the input's goes on after it
	err      error     // the error that ended it

	// set by ahead:
	ctx    context.Context
	cancel context.CancelFunc
	full   chan block
	free   chan []byte
	held   []byte        // the block that contains cur
	cur    []byte        // its unread bytes
	next   error         // the error after them
	done   chan struct{} // closed when the goroutine has ended
}

// block is decompressed text, and the error after it.
type block struct {
	text []byte
	err  error
}

// errRangeEnd is returned by Read once, with the last bytes of a range. The bytes that
// follow belong to the ranges after it.
var errRangeEnd = errors.New("the range ends")

// followSize is the size of blocks after the end of a range, of which the last row of
// the range rarely needs more.
const followSize = 8 << 10

// source records the storage's errors, to distinguish them from those of decoders.
type source struct {
	io.ReadCloser
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// openStream opens the input and detects its compression.
func (in *input) openStream() (*stream, error) {
	rc, err := in.open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.at, err)
	}
	s := &stream{at: in.at, once: in.opts.Once, src: &source{ReadCloser: rc}}
	if err := s.decompress(in.opts.Encoding); err != nil {
		_ = s.release()
		return nil, s.wrap(err)
	}
	return s, nil
}

// openRange opens the input at the start of range lo. The ranges up to hi, exclusive, are
// read as one.
func (in *input) openRange(lo, hi int) (*stream, error) {
	from, to := in.bounds[lo], in.bounds[hi]
	rc, err := in.openAt(from, to)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.at, err)
	}
	s := &stream{at: in.at, src: &source{ReadCloser: rc}, kind: in.kind, more: hi < in.ranges()}
	s.text = bufio.NewReaderSize(io.LimitReader(s.src, to-from), readSize)
	if s.kind == "zstd" {
		if err := s.unzstd(s.text); err != nil {
			_ = s.release()
			return nil, s.wrap(err)
		}
	}
	return s, nil
}

// follow makes text that which comes after the range.
func (s *stream) follow() (err error) {
	s.more = false
	s.text = bufio.NewReaderSize(s.src, followSize)
	if s.zstd != nil {
		err = s.zstd.Reset(s.text)
		s.text = s.zstd
	}
	return err
}

// unzstd makes text the decompressed bytes of r.
func (s *stream) unzstd(r io.Reader) (err error) {
	s.zstd, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
	s.text = s.zstd
	return err
}

// decompress sets text, which it converts to UTF-8.
func (s *stream) decompress(encoding string) (err error) {
	defer panics.Recover(s.at, &err)
	br := bufio.NewReaderSize(s.src, readSize)
	head, err := start(br)
	if err != nil {
		return err
	}
	_, promised := cutCompression(strings.ToLower(address.WithoutQuery(s.at.File)))
	s.kind = compressionOf(head)
	switch {
	case s.kind == "gzip":
		s.text, err = gzip.NewReader(br)
	case s.kind == "zstd":
		err = s.unzstd(br)
	case promised != "":
		return faults.Corrupt(s.at, "not %s, as its name says", promised).WithHint("rename the file, or compress it as the name says")
	default:
		s.text, err = br, nil
	}
	if err != nil {
		return err
	}
	return s.convert(encoding)
}

// start returns the first four bytes of an input, or its first line if that is shorter: a
// program that waits for the answer to a line writes nothing more.
func start(br *bufio.Reader) (head []byte, err error) {
	for n := 1; n <= 4; n++ {
		if head, err = br.Peek(n); err == io.EOF {
			return head, nil
		} else if err != nil || head[n-1] == '\n' {
			return head, err
		}
	}
	return head, nil
}

// compressionOf recognises compression by the first bytes of the input.
func compressionOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0x1F, 0x8B}):
		return "gzip"
	case bytes.HasPrefix(head, []byte{0x28, 0xB5, 0x2F, 0xFD}):
		return "zstd"
	case len(head) == 4 && head[0]&0xF0 == 0x50 && bytes.Equal(head[1:], []byte{0x2A, 0x4D, 0x18}): // a skippable frame
		return "zstd"
	}
	return ""
}

// cutCompression removes the suffix of a compression from a lower-case name.
func cutCompression(name string) (rest, kind string) {
	for suffix, kind := range map[string]string{".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"} {
		if rest, ok := strings.CutSuffix(name, suffix); ok {
			return rest, kind
		}
	}
	return name, ""
}

// wrap adds the place and kind to an error: storage errors stay as they are,
// everything else means damaged bytes.
func (s *stream) wrap(err error) error {
	var known *fault.Error
	switch {
	case s.src.err != nil:
		return fmt.Errorf("%s: %w", s.at, s.src.err)
	case errors.As(err, &known), errors.Is(err, panics.ErrUnmapped):
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return faults.Unsupported(s.at, "zstd with a window of more than %d MiB", maxWindow>>20).WithHint("compress the file again, without --long or --ultra")
	}
	e := faults.Corrupt(s.at, "compressed text")
	e.Err = err
	return e.WithHint("the file was cut short or damaged: get a good copy")
}

// decode reads text into p.
func (s *stream) decode(p []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, panics.Error(s.at, r)
		}
		if err != nil && err != io.EOF && !errors.Is(err, errRangeEnd) {
			err = s.wrap(err)
		}
	}()
	if n, err = s.text.Read(p); err == io.EOF && s.more {
		if err = s.follow(); err == nil {
			err = errRangeEnd
		}
	}
	return n, err
}

// ahead starts a goroutine that reads in advance until ctx ends or the stream is
// closed.
func (s *stream) ahead(ctx context.Context) {
	if s.err != nil { // everything has been read
		return
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.full, s.free = make(chan block, blocksAhead), make(chan []byte, blocksAhead)
	s.done = make(chan struct{})
	go s.run()
}

func (s *stream) run() {
	defer close(s.done)
	defer func() { _ = s.release() }()
	size := readSize
	for made := 0; ; {
		var b []byte
		if made < blocksAhead && len(s.free) == 0 {
			b = make([]byte, readSize)
			made++
		} else {
			select {
			case b = <-s.free:
			case <-s.ctx.Done():
				return
			}
		}
		n, err := s.decode(b[:size])
		select {
		case s.full <- block{b[:n], err}:
		case <-s.ctx.Done():
			return
		}
		switch {
		case err == nil:
		case errors.Is(err, errRangeEnd):
			size = followSize
		default:
			return
		}
	}
}

// Read reads text.
func (s *stream) Read(p []byte) (n int, err error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.full == nil {
		if n, err = s.decode(p); !errors.Is(err, errRangeEnd) {
			s.err = err
		}
		return n, err
	}
	if len(s.cur) == 0 {
		switch {
		case s.next == nil:
		case errors.Is(s.next, errRangeEnd):
			s.next = nil
			return 0, errRangeEnd
		default:
			s.err = s.next
			return 0, s.err
		}
		if s.held != nil {
			s.free <- s.held[:cap(s.held)] // never blocks: it has room for all blocks
			s.held = nil
		}
		select {
		case b := <-s.full:
			s.held, s.cur, s.next = b.text, b.text, b.err
		case <-s.ctx.Done():
			s.err = stopped.Err(s.ctx)
			return 0, s.err
		}
	}
	n = copy(p, s.cur)
	s.cur = s.cur[n:]
	return n, nil
}

// ready reports whether Read can return without waiting for the goroutine.
func (s *stream) ready() bool { return s.full == nil || len(s.cur) > 0 || len(s.full) > 0 }

// stop ends reading in advance. Read returns an error from then on, or after the
// text already available.
func (s *stream) stop() {
	if s.cancel != nil {
		s.cancel()
	}
}

// close closes the stream and waits for its goroutine. Standard input may stay
// silent, so that wait is limited; the goroutine then ends when its read returns.
func (s *stream) close() error {
	if s.full == nil {
		return s.release()
	}
	s.cancel()
	var enough <-chan time.Time
	if s.once {
		t := time.NewTimer(patience)
		defer t.Stop()
		enough = t.C
	}
	select {
	case <-s.done:
	case <-enough:
	}
	return nil
}

// release closes the stream's input.
func (s *stream) release() error {
	if s.zstd != nil {
		s.zstd.Close()
	}
	return s.src.Close()
}
