package text

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
)

var asBinary = map[string]arrow.DataType{"n": arrow.BinaryTypes.Binary}

// in16 returns text in UTF-16.
func in16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// reads opens text in each way of reading and returns the rows or the error, which must be
// the same in all.
func reads(t *testing.T, name, text string, opts Options) string {
	t.Helper()
	var want string
	for i, once := range []bool{false, true} {
		for threads := range 3 {
			opts.Once, opts.Column, opts.At, opts.Size = once, "n", strings.NewReader(text), int64(len(text))
			got := func() string {
				open := func() (io.ReadCloser, error) { return io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), nil }
				tab, err := Open(open, name, opts)
				if err != nil {
					return err.Error()
				}
				defer tab.Close()
				tab = tab.WithTypes(opts.Types)
				rows := []string{}
				if tab.Kind(0) == Bytes && threads > 0 {
					for v, err := range tab.ReadPlain(context.Background(), 0, tab.NumGroups(), 0, threads) {
						if err != nil {
							return err.Error()
						}
						for p := v.Plain; len(p) > 0; {
							n := 4 + binary.LittleEndian.Uint32(p)
							rows = append(rows, string(p[4:n]))
							p = p[n:]
						}
					}
					return fmt.Sprintf("%q", rows)
				}
				all, err := all(tab, []int{0})
				if err != nil {
					return err.Error()
				}
				for _, r := range all {
					if opts.Types == nil && r[0] == "∅" {
						continue
					}
					rows = append(rows, r[0])
				}
				return fmt.Sprintf("%q", rows)
			}()
			if i+threads == 0 {
				want = got
			} else if got != want && opts.Types == nil { // Read shows binary as base64
				t.Errorf("%q, once %v, %d threads: %s\nwant %s", text, once, threads, got, want)
			} else if opts.Types != nil && threads > 0 {
				want = got
			}
		}
	}
	return want
}

func TestEncodings(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	const text = "n,é\né,x\n€\U0001f600,y\r\nc,z"
	want := `["é" "€😀" "c"]`
	for _, c := range []struct{ what, encoding, text, want string }{
		{"UTF-8", "", text, want},
		{"UTF-8, said", UTF8, "\xEF\xBB\xBF" + text, want},
		{"latin1", Latin1, "n,\xE9\n\xE9,\xFC\nc,\xFF\n", `["é" "c"]`},
		{"windows-1252", Windows1252, "n,\xE9\n\xE9,\xFC\n\x80\x9F,\xFF\n", `["é" "€Ÿ"]`},
		{"a mark, LE", "", in16(le, "\uFEFF"+text), want},
		{"a mark, BE", "", in16(be, "\uFEFF"+text), want},
		{"a mark and its order", UTF16LE, in16(le, "\uFEFF"+text), want},
		{"a mark for the order", UTF16, in16(be, "\uFEFF"+text), want},
		{"LE", UTF16LE, in16(le, text), want},
		{"BE", UTF16BE, in16(be, text), want},
		{"compressed", UTF16BE, gz(in16(be, text)), want},
		{"compressed, a mark", "", zst(in16(le, "\uFEFF"+text)), want},
		{"CR alone", UTF16LE, in16(le, "n,x\ré,x\rc,y\r"), `["é" "c"]`},

		{"not UTF-8", "", "n,x\na,x\n\xE9,x\n", "line 3: column n: mismatch: text in another encoding: want UTF-8 (name its encoding, as in Encoding latin1"},
		{"an overlong form", "", "n,x\n\xC0\x80,x\n", "line 2: column n"},
		{"half a surrogate in UTF-8", "", "n,x\n\xED\xA0\x80,x\n", "line 2: column n"},
		{"a name", "", "n,\xE9\na,x\n", "line 1: corrupt: the name of column 2 is not UTF-8 (name its encoding"},
		{"no mark", UTF16, in16(le, text), "without a byte order mark"},
		{"another mark", UTF16LE, in16(be, "\uFEFF"+text), "mismatch: the byte order mark: want utf-16le, got utf-16be"},
		{"another mark", Latin1, "\xEF\xBB\xBF" + text, "want latin1, got utf-8"},
		{"another mark", UTF16, "\xEF\xBB\xBF" + text, "want utf-16, got utf-8"},
		{"another mark", UTF8, in16(le, "\uFEFF"+text), "want utf-8, got utf-16le"},
		{"an unknown one", "ebcdic", text, "unsupported: text in ebcdic"},
		{"half a pair", "", in16(le, "\uFEFFn,x\na,x\n") + "\x00\xD8a\x00", "line 3: corrupt: half a surrogate pair of utf-16le"},
		{"the second half", UTF16BE, in16(be, "n,x\na,x\n") + "\xDC\x00\x00a", "line 3: corrupt: half a surrogate pair"},
		{"an odd byte", UTF16BE, in16(be, "n,x\na,x\n") + "\x00", "line 3: corrupt: half a character at the end of utf-16be"},
		{"no character", Windows1252, "n,x\na,x\n\x81,x\n", "line 3: corrupt: byte 0x81"},
		{"a control character", Latin1, "n,x\na,x\n\x80,x\n", "Encoding windows-1252"},
		{"UTF-16 as latin1", Latin1, in16(le, "n,x\na,x\n"), "Encoding utf-16le"},
	} {
		name := "a.csv"
		if strings.HasPrefix(c.what, "compressed") {
			name += map[bool]string{true: ".zst", false: ".gz"}[strings.Contains(c.what, "mark")]
		}
		if got := reads(t, name, c.text, Options{Encoding: c.encoding}); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\nwant %s", c.what, got, c.want)
		}
	}
	if got := reads(t, "a.jsonl", "{\"n\":\"a\"}\n{\"n\":\"\xE9\"}\n", Options{}); !strings.Contains(got, "line 2: corrupt: JSON that is not UTF-8 (name its encoding") {
		t.Error(got)
	}
}

func TestValidUTF8(t *testing.T) {
	for n := range 40 {
		b := []byte(strings.Repeat("x", n))
		if !validUTF8(b) {
			t.Errorf("%d bytes of ASCII", n)
		}
		for i := range b {
			b[i] = 0xC3
			if validUTF8(b) {
				t.Errorf("%d bytes, the %dth wrong", n, i)
			}
			if i+1 < n {
				if b[i+1] = 0xA9; !validUTF8(b) {
					t.Errorf("%d bytes, é at %d", n, i)
				}
				b[i+1] = 'x'
			}
			b[i] = 'x'
		}
	}
}

// Columns of bytes take any bytes, unless the text is converted.
func TestEncodingOfBytes(t *testing.T) {
	for _, c := range []struct{ name, encoding, text, want string }{
		{"a.txt", "", "\xE9\n\xFF\xFE\n", `["\xe9" "\xff\xfe"]`},
		{"a.tsv", "", "n\tm\n\xE9\t\n", `["\xe9"]`},
		{"a.txt", Latin1, "\xE9\n", `["é"]`},
		{"a.txt", UTF16, in16(binary.LittleEndian, "\uFEFFé\n"), `["é"]`},
		{"a.txt", "", in16(binary.LittleEndian, "\uFEFFé\n"), "want any bytes, got a byte order mark of UTF-16"},
		{"a.txt", "", "a\rb\n", `["a\rb"]`},
		{"a.txt", "", "a\rb", "want lines that end with LF, got CR and no LF"},
		{"a.txt", "", "a\r", `["a"]`},
	} {
		if got := reads(t, c.name, c.text, Options{Encoding: c.encoding, Types: asBinary}); !strings.Contains(got, c.want) {
			t.Errorf("%q: %s\nwant %s", c.text, got, c.want)
		}
	}
}

// CR alone ends a line only in an input without LF.
func TestCR(t *testing.T) {
	long := strings.Repeat("x", 500)
	for _, c := range []struct{ name, text, want string }{
		{"a.csv", "n,m\ra,x\r\r\"b\r\",\"\r\"\rc,\r", `["a" "b\r" "c"]`},
		{"a.csv", "n\ra\rb", `["a" "b"]`},
		{"a.csv", "\xEF\xBB\xBFn,\"m\r\"\ra,x", `["a"]`},
		{"a.tsv", "n\tm\ra\tx\rb\ty\r", `["a" "b"]`},
		{"a.txt", "a\rb\r\rc", `["a" "b" "c"]`},
		{"a.jsonl", "{\"n\":\"a\"}\r{\"n\":\"b\"}\r", `["a" "b"]`},
		{"a.txt", strings.Repeat(long+"\r", 10), fmt.Sprintf("%q", strings.Fields(strings.Repeat(long+" ", 10)))}, // more than a line's most bytes
		// With LF, CR is a byte as ever.
		{"a.csv", "n,m\na\rb,x\r\n\"c\r\",\"\r\n\"\n", `["a\rb" "c\r"]`},
		{"a.csv", "\"n\",\"m\r\"\na\rb,x\n", `["a\rb"]`},
		{"a.csv", "n,m\r\na,x\r\nb,y\r", `["a" "b"]`},
		{"a.tsv", "n\tm\na\rb\tx\n", `["a\rb"]`},
		{"a.txt", "a\rb\nc\n", `["a\rb" "c"]`},
		{"a.txt", "a\r\n", `["a"]`},
		{"a.txt", "a\r", `["a"]`},
		// In doubt.
		{"a.csv", "n,m\ra,x\rb,y\r\n", "line 1: corrupt: a CR without LF within the column names"},
		{"a.csv", "\"n\",m\ra,x\rb,\"y\"\n", "line 1: corrupt: a CR without LF within the column names"},
		{"a.tsv", "n\tm\ra\tx\n", "line 1: corrupt: a CR without LF within the column names"},
		{"a.txt", "a\rb\r\n", "line 1: mismatch: one ID or several"},
		{"a.txt", strings.Repeat(long+"\r", 10) + "\r" + long + "\nb", "line 12: corrupt: a line that ends with LF, after others that end with CR"},
		{"a.txt", long + long + long + long + long, "a line of more than"},
	} {
		if got := reads(t, c.name, c.text, Options{MaxLineBytes: 2000}); !strings.Contains(got, c.want) {
			t.Errorf("%s %.60q: %s\nwant %s", c.name, c.text, got, c.want)
		}
	}
}

// The second range of a file is as the first one, and a converted input has one.
func TestEncodingRanges(t *testing.T) {
	text := "n,m\n" + strings.Repeat("a,x\n", 100) + "\xE9,x\n"
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	for _, c := range []struct {
		encoding string
		groups   int
	}{{"", 6}, {UTF8, 6}, {Latin1, 1}} {
		tab, err := Open(open, "a.csv", Options{Encoding: c.encoding, At: strings.NewReader(text), Size: int64(len(text)), RangeBytes: 64})
		if err != nil || tab.NumGroups() != c.groups {
			t.Fatalf("%s: %v, %d groups", c.encoding, err, tab.NumGroups())
		}
		for _, err = range tab.Read(context.Background(), c.groups-1, nil) {
		}
		if c.encoding == Latin1 {
			if err != nil || tab.Undivided() != Latin1 || tab.Encoding() != Latin1 {
				t.Errorf("%v, %q, %q", err, tab.Undivided(), tab.Encoding())
			}
		} else if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "line 102: column n") || tab.Encoding() != "" {
			t.Errorf("%s: %v, %q", c.encoding, err, tab.Encoding())
		}
	}
}

// Objects are answered as they are, so they are not converted.
func TestObjectsInUTF16(t *testing.T) {
	_, err := NewObjects(io.NopCloser(strings.NewReader(in16(binary.LittleEndian, "\uFEFF{}\n"))), "-", nil, false, 0)
	if !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
}
