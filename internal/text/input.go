package text

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest zstd window that is decoded, as `zstd --long` makes.
const maxWindow = 128 << 20

// rows is what the formats do differently: a sequence of rows.
type rows interface {
	// columns are the names; they do not change.
	columns() []string
	// next goes to the next row; io.EOF after the last.
	next() error
	// value is the text of column c, whose name is name; false for NULL. It is
	// valid until next.
	value(c int, name string) (string, bool)
	// line is where column c of the row stands, from 1.
	line(c int) int
}

// pass is one reading of the input.
type pass struct {
	at   fault.At
	src  *source
	zstd *zstd.Decoder
	rows rows
}

// source notes the storage's own error, to tell it from what decoders find.
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

func (p *pass) close() error {
	if p.zstd != nil {
		p.zstd.Close()
	}
	return p.src.Close()
}

// wrap gives an error its place and kind: what the storage says stays as it
// is, all else means broken bytes.
func (p *pass) wrap(err error) error {
	var known *fault.Error
	switch {
	case p.src.err != nil:
		return fmt.Errorf("%s: %w", p.at, p.src.err)
	case errors.As(err, &known):
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fault.Unsupported(p.at, "zstd with a window of more than %d MiB", maxWindow>>20)
	}
	e := fault.Corrupt(p.at, "compressed text")
	e.Err = err
	return e
}

// pass opens the input and reads its header.
func (in *input) pass() (*pass, error) {
	rc, err := in.open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.at, err)
	}
	p := &pass{at: in.at, src: &source{ReadCloser: rc}}
	if err := p.begin(in); err != nil {
		p.close()
		return nil, p.wrap(err)
	}
	return p, nil
}

func (p *pass) begin(in *input) error {
	r, err := p.plain()
	if err != nil {
		return err
	}
	lim := &limited{r: r, max: in.opts.MaxLineBytes, at: in.at}
	br := bufio.NewReaderSize(lim, readSize)
	lim.reset(0)
	if mark, err := br.Peek(3); string(mark) == "\xEF\xBB\xBF" {
		if _, err := br.Discard(3); err != nil {
			return err
		}
	} else if len(mark) >= 2 && (string(mark[:2]) == "\xFF\xFE" || string(mark[:2]) == "\xFE\xFF") {
		return fault.Unsupported(in.at, "text in UTF-16").WithHint("write it as UTF-8")
	} else if err != nil && err != io.EOF {
		return err
	}
	if in.opts.Format != NDJSON { // in which NUL is no JSON
		head, _ := br.Peek(br.Buffered())
		if bytes.IndexByte(head, 0) >= 0 {
			return notText(in.at)
		}
		lim.look = readSize - len(head)
	}
	switch in.opts.Format {
	case CSV:
		p.rows, err = newCSV(in.at, br, lim)
	case TSV:
		p.rows, err = newTSV(newLines(in.at, br, in.opts.MaxLineBytes, lim))
	case Lines:
		p.rows = &idLines{lines: newLines(in.at, br, in.opts.MaxLineBytes, lim), name: cmp.Or(in.opts.Column, "id")}
	case NDJSON:
		p.rows, err = newNDJSON(newLines(in.at, br, in.opts.MaxLineBytes, lim))
	default:
		return fmt.Errorf("%s: text format %d", in.at, in.opts.Format)
	}
	return err
}

// cutCompression takes the suffix of a compression off a name in lower case.
func cutCompression(name string) (rest, kind string) {
	for suffix, kind := range map[string]string{".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"} {
		if rest, ok := strings.CutSuffix(name, suffix); ok {
			return rest, kind
		}
	}
	return name, ""
}

// plain is the input without its compression.
func (p *pass) plain() (io.Reader, error) {
	br := bufio.NewReaderSize(p.src, readSize)
	head, err := br.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	_, promised := cutCompression(strings.ToLower(p.at.File))
	switch kind := compressionOf(head); {
	case kind == "gzip":
		return gzip.NewReader(br)
	case kind == "zstd":
		p.zstd, err = zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
		return p.zstd, err
	case promised != "":
		return nil, fault.Corrupt(p.at, "not %s, as its name says", promised)
	}
	return br, nil
}

// compressionOf looks at the first bytes of the input.
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

// readSize is the size of read buffers in bytes.
const readSize = 64 << 10

// limited stops a reader that has taken too much since the last reset, as a row
// of CSV is collected in memory until it ends, and one whose bytes are no text.
type limited struct {
	r    io.Reader
	at   fault.At
	max  int
	left int
	line int
	look int // bytes in which a NUL is still looked for
}

// reset is called before the row that begins at line.
func (l *limited) reset(line int) { l.left, l.line = l.max+readSize, line }

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		at := l.at
		at.Line = l.line
		return 0, tooLong(at, l.max)
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	if look := p[:max(0, min(n, l.look))]; len(look) > 0 {
		l.look -= len(look)
		if bytes.IndexByte(look, 0) >= 0 {
			return 0, notText(l.at)
		}
	}
	return n, err
}

func notText(at fault.At) error {
	return fault.Unsupported(at, "binary data, not text").
		WithHint("if it is compressed, take the compression off; only gzip and zstd are read")
}

func tooLong(at fault.At, max int) error {
	return fault.Unsupported(at, "a line of more than %d bytes", max).WithHint("is this the right format?")
}
