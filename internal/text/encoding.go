package text

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Encodings. UTF16 takes the byte order from the mark, which must be there.
const (
	UTF8        = "utf-8"
	Latin1      = "latin1"
	Windows1252 = "windows-1252"
	UTF16       = "utf-16"
	UTF16LE     = "utf-16le"
	UTF16BE     = "utf-16be"
)

// windows has the characters that windows-1252 has in place of the control characters of latin1;
// \x81 and others stand for none.
var windows = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

// Encodings returns all of them.
func Encodings() []string { return []string{UTF8, Latin1, Windows1252, UTF16, UTF16LE, UTF16BE} }

// markOf returns the encoding that a byte order mark at the start of a text names, and
// the length of the mark.
func markOf(head []byte) (encoding string, n int) {
	switch s := string(head[:min(4, len(head))]); {
	case strings.HasPrefix(s, "\xEF\xBB\xBF"):
		return UTF8, 3
	case strings.HasPrefix(s, "\xFF\xFE\x00\x00"):
		return "utf-32", 4
	case strings.HasPrefix(s, "\xFF\xFE"):
		return UTF16LE, 2
	case strings.HasPrefix(s, "\xFE\xFF"):
		return UTF16BE, 2
	}
	return "", 0
}

// convert makes text UTF-8, from the given encoding or, if that is empty, from the one
// that a byte order mark names.
func (s *stream) convert(given string) error {
	br := bufio.NewReaderSize(s.text, readSize)
	head, err := start(br)
	if err != nil {
		return err
	}
	s.text = br
	mark, n := markOf(head)
	switch {
	case mark == "utf-32":
		return faults.Of(cause.Encoding, faults.Unsupported(s.at, "text in UTF-32")).WithHint("convert it: iconv -f UTF-32 -t UTF-8")
	case mark == "" && given == UTF16 && len(head) > 0:
		return faults.Of(cause.Encoding, faults.Corrupt(s.at, "UTF-16 without a byte order mark")).
			WithHint("name the byte order: {Encoding utf-16le}, as Windows writes it, or {Encoding utf-16be}")
	case mark != "" && given != "" && given != mark && !(given == UTF16 && mark != UTF8):
		return faults.Of(cause.Encoding, faults.Mismatch(s.at, "the byte order mark", given, mark)).WithHint("leave {Encoding} out: the mark says how the text is written")
	}
	s.marked = mark != UTF8 && mark != "" && given == ""
	encoding := cmp.Or(mark, given)
	if encoding == "" || encoding == UTF8 { // newLines skips the mark
		return nil
	}
	s.encoding = encoding
	_, err = br.Discard(n)
	s.text = &converter{at: s.at, encoding: encoding, r: br, raw: make([]byte, 0, readSize/4)}
	return err
}

// converter makes UTF-8 of another encoding. Bytes that the encoding does not have are
// an error: a replacement character would make different IDs equal.
type converter struct {
	at       fault.At
	encoding string
	r        io.Reader
	raw      []byte // read, but not converted yet
	out      []byte // converted, but not returned yet
	buf      []byte // the memory of out
	lines    int    // line ends converted
	err      error  // returned after out
}

func (c *converter) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		n, err := c.r.Read(c.raw[len(c.raw):cap(c.raw)])
		c.raw, c.err = c.raw[:len(c.raw)+n], err
		c.fill()
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// fill converts raw to out, but for the first bytes of a character.
func (c *converter) fill() {
	c.buf = c.buf[:0]
	used, what := 0, ""
	if c.encoding == Latin1 || c.encoding == Windows1252 {
		used, what = c.single()
	} else {
		used, what = c.utf16()
	}
	if what == "" && c.err == io.EOF && used < len(c.raw) {
		what = "half a character at the end"
	}
	if what != "" {
		c.at.Line = c.lines + bytes.Count(c.buf, []byte("\n")) + 1
		e := faults.Of(cause.Encoding, faults.Corrupt(c.at, "%s of %s", what, c.encoding))
		if c.err = e.WithHint("name the encoding in which the text was written"); c.encoding == Latin1 {
			c.err = e.WithHint("if it was written on Windows, use {Encoding windows-1252}")
		}
	}
	c.lines += bytes.Count(c.buf, []byte("\n"))
	c.raw = c.raw[:copy(c.raw, c.raw[used:])]
	c.out = c.buf
}

// single converts an encoding of one byte a character. It returns the number of bytes
// converted, and what is wrong with the next one.
func (c *converter) single() (used int, wrong string) {
	for i, b := range c.raw {
		r := rune(b)
		if c.encoding == Windows1252 && r >= 0x80 && r < 0xA0 {
			r = windows[r-0x80]
		}
		if r >= 0x80 && r < 0xA0 { // latin1 has control characters where windows-1252 has letters
			return i, fmt.Sprintf("byte 0x%X, which is not a letter or sign", b)
		}
		c.buf = utf8.AppendRune(c.buf, r)
	}
	return len(c.raw), ""
}

// utf16 is single for UTF-16.
func (c *converter) utf16() (used int, wrong string) {
	var order binary.ByteOrder = binary.LittleEndian
	if c.encoding == UTF16BE {
		order = binary.BigEndian
	}
	for ; used+2 <= len(c.raw); used += 2 {
		r := rune(order.Uint16(c.raw[used:]))
		if utf16.IsSurrogate(r) {
			if used+4 > len(c.raw) {
				return used, ""
			}
			if r = utf16.DecodeRune(r, rune(order.Uint16(c.raw[used+2:]))); r == utf8.RuneError {
				return used, "half a surrogate pair"
			}
			used += 2
		}
		c.buf = utf8.AppendRune(c.buf, r)
	}
	return used, ""
}

// bytesHint says what to do with text that is not UTF-8.
const bytesHint = "name its encoding, as in {Encoding latin1} or {Encoding windows-1252}; if the key is bytes, not text, {Types binary}"

// validUTF8 is utf8.Valid, and faster where a short value is ASCII.
func validUTF8(v []byte) bool {
	n := len(v)
	if n < 8 {
		return utf8.Valid(v)
	}
	high := binary.LittleEndian.Uint64(v[n-8:])
	for i := 0; i < n-8; i += 8 {
		high |= binary.LittleEndian.Uint64(v[i:])
	}
	return high&0x8080808080808080 == 0 || utf8.Valid(v)
}

// isText reports whether values of a type are text.
func isText(t arrow.DataType) bool { return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING }
