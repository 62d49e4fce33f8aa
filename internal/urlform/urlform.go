// Package urlform makes normal forms of URLs and hosts: texts with the same form count as
// equal, and the form of a form is itself. The forms depend on the text alone, not on a version
// of Unicode, of the library or of Go, because stored filters have hashes of them.
// [Append] and [AppendHost] state them exactly, as codec/FORMAT.md does. Package keys uses
// it.
package urlform

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
)

// Append appends the normal form of a URL to dst. A text without the form
// scheme://authority, or whose host or port breaks a rule below, is appended as it is.
//
// The form is that of RFC 3986, sections 6.2.2 and 6.2.3, over bytes:
//
//   - The scheme is in lower case. User information stays, up to the last @.
//   - The host is that of AppendHost. Only a URL without user information and port may
//     have none.
//   - The port is decimal, up to 65535, without leading zeros. It is dropped if it is empty
//     or the scheme's default (http and ws 80, https and wss 443, ftp 21).
//   - The fragment is dropped. Dot segments of the path are resolved (RFC 3986, section
//     5.2.4), after the next step. An empty path is /.
//   - In user information, path and query, an escaped letter, digit, -, ., _ or ~ is
//     unescaped, and all other escapes are in upper case. A % without two hexadecimal
//     digits is escaped, and so is each byte that no URI may contain: up to 20, from 7f on
//     (hexadecimal), and "<>\^`{|}. Everything else stays, including an empty query.
func Append(dst, text []byte) []byte {
	n := schemeEnd(text)
	if n == 0 {
		return append(dst, text...)
	}
	start := len(dst)
	a, rest := authorityOf(text[n+len("://"):])
	dst = append(appendLower(dst, text[:n]), "://"...)
	if a.hasUser {
		dst = append(appendEscaped(dst, a.user), '@')
	}
	empty := len(a.host) == 0 && !a.hasUser && !a.hasPort
	port, ok := portOf(a.port, dst[start:start+n])
	if ok = ok && a.ok; ok && !empty {
		dst, ok = appendHost(dst, a.host)
	}
	if !ok {
		return append(dst[:start], text...)
	}
	if len(port) > 0 {
		dst = append(append(dst, ':'), port...)
	}
	rest, _, _ = bytes.Cut(rest, []byte("#"))
	path, query := rest, []byte(nil)
	if i := bytes.IndexByte(rest, '?'); i >= 0 {
		path, query = rest[:i], rest[i:]
	}
	if len(path) == 0 {
		return appendEscaped(append(dst, '/'), query)
	}
	at := len(dst)
	dst = appendEscaped(dst, path)
	dst = dst[:at+len(withoutDots(dst[at:]))]
	return appendEscaped(dst, query)
}

// AppendHost appends the normal form of the host of a URL, or of a text that begins with
// an authority, such as a bare host: the scheme and // may be missing. ok is false if the
// text has no host, or one that breaks a rule.
//
// An IPv6 address in brackets has the form of RFC 5952, without a zone. In other hosts, escapes
// are decoded, and labels end at a dot, U+3002, U+FF0E or U+FF61. A label of ASCII is in lower
// case, whatever it holds. Any other is converted by UTS #46: non-transitional processing,
// checking bidirectional text and joiners within the label, but not hyphens, lengths and STD3.
// It has at most 253 bytes, and only characters of stable.txt, even in Punycode: Unicode 15.0
// and 17.0 convert these alike. Dots at the end are dropped. What remains is not empty and has
// no byte up to 20, no 7f (hexadecimal) and none of #%/:<>?@[\]^|.
func AppendHost(dst, text []byte) (host []byte, ok bool) {
	if n := schemeEnd(text); n > 0 {
		text = text[n+len(":"):]
	}
	text = bytes.TrimPrefix(text, []byte("//"))
	a, _ := authorityOf(text)
	if _, ok := portOf(a.port, nil); !ok || !a.ok {
		return dst, false
	}
	return appendHost(dst, a.host)
}

// Parent returns the parent domain of a host in normal form: what follows its first dot. It
// is empty for an IP address and for a host without a dot.
func Parent(host []byte) []byte {
	if i := bytes.IndexByte(host, '.'); i >= 0 && !isAddress(host) {
		return host[i+1:]
	}
	return nil
}

// isAddress reports whether a host in normal form is an IP address: it is in brackets, or
// its last label consists of digits.
func isAddress(host []byte) bool {
	if len(host) == 0 || host[0] == '[' {
		return true
	}
	last := host[bytes.LastIndexByte(host, '.')+1:]
	return len(bytes.Trim(last, "0123456789")) == 0
}

// schemeEnd returns the length of the scheme of a text that begins with scheme://, else 0.
func schemeEnd(text []byte) int {
	for i, c := range text {
		switch {
		case isLetter(c) || i > 0 && (isDigit(c) || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':' && bytes.HasPrefix(text[i+1:], []byte("//")):
			return i
		default:
			return 0
		}
	}
	return 0
}

// authority has the parts of an authority, unchanged.
type authority struct {
	user, host, port []byte
	hasUser, hasPort bool
	ok               bool // the host has no colon outside of brackets
}

// authorityOf returns the authority at the start of the text, and what follows it.
func authorityOf(text []byte) (a authority, rest []byte) {
	for i, c := range text {
		if c == '/' || c == '?' || c == '#' {
			text, rest = text[:i], text[i:]
			break
		}
	}
	if i := bytes.LastIndexByte(text, '@'); i >= 0 {
		a.user, text, a.hasUser = text[:i], text[i+1:], true
	}
	from := bytes.LastIndexByte(text, ']') + 1
	i := bytes.IndexByte(text[from:], ':')
	if i < 0 {
		a.host, a.ok = text, true
		return a, rest
	}
	a.host, a.port, a.hasPort = text[:from+i], text[from+i+1:], true
	a.ok = from > 0 || bytes.IndexByte(a.port, ':') < 0
	return a, rest
}

// portOf returns the port without leading zeros, empty if it is the default of the scheme.
func portOf(port, scheme []byte) (_ []byte, ok bool) {
	for _, c := range port {
		if !isDigit(c) {
			return nil, false
		}
	}
	if len(port) == 0 {
		return nil, true
	}
	if port = bytes.TrimLeft(port, "0"); len(port) == 0 {
		port = []byte("0")
	}
	if n, err := strconv.Atoi(string(port)); err != nil || n > 65535 {
		return nil, false
	}
	usual := ""
	switch string(scheme) {
	case "http", "ws":
		usual = "80"
	case "https", "wss":
		usual = "443"
	case "ftp":
		usual = "21"
	}
	if string(port) == usual {
		return nil, true
	}
	return port, true
}

// appendHost appends the normal form of a host.
func appendHost(dst, host []byte) ([]byte, bool) {
	start := len(dst)
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		ip, err := netip.ParseAddr(string(host[1 : n-1]))
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return dst, false
		}
		return append(ip.AppendTo(append(dst, '[')), ']'), true
	}
	if plainHost(host) {
		dst = appendLower(dst, host)
	} else {
		decoded := appendDecoded(nil, host)
		var ok bool
		if dst, ok = appendLabels(dst, decoded); !ok {
			return dst[:start], false
		}
	}
	for len(dst) > start && dst[len(dst)-1] == '.' {
		dst = dst[:len(dst)-1]
	}
	for _, c := range dst[start:] {
		if kinds[c]&noHost != 0 {
			return dst[:start], false
		}
	}
	return dst, len(dst) > start
}

// plainHost reports whether a host has neither escapes nor bytes outside of ASCII.
func plainHost(host []byte) bool {
	for _, c := range host {
		if c == '%' || c >= 0x80 {
			return false
		}
	}
	return true
}

// withoutDots resolves the dot segments of a path that begins with a slash, in its memory.
func withoutDots(path []byte) []byte {
	if !bytes.Contains(path, []byte("/.")) {
		return path
	}
	out := path[:0] // never longer than what has been read
	for len(path) > 0 {
		segment := path
		if i := bytes.IndexByte(path[1:], '/'); i >= 0 {
			segment = path[:i+1]
		}
		last := len(segment) == len(path)
		path = path[len(segment):]
		switch string(segment) {
		case "/.":
		case "/..":
			out = out[:max(bytes.LastIndexByte(out, '/'), 0)]
		default:
			out = append(out, segment...)
			continue
		}
		if last {
			out = append(out, '/')
		}
	}
	return out
}

// Kinds of bytes.
const (
	free   = 1 << iota // never escaped, and unescaped: unreserved in RFC 3986
	escape             // no URI may contain it, or it is a %
	noHost             // no host may contain it
)

var kinds = func() (k [256]uint8) {
	for c := range k {
		b := byte(c)
		switch {
		case isLetter(b) || isDigit(b) || strings.IndexByte("-._~", b) >= 0:
			k[c] = free
		case c <= ' ' || c >= 0x7f || strings.IndexByte("%\"<>\\^`{|}", b) >= 0:
			k[c] = escape
		}
		if c <= ' ' || c == 0x7f || strings.IndexByte("#%/:<>?@[\\]^|", b) >= 0 {
			k[c] |= noHost
		}
	}
	return k
}()

const upperHex = "0123456789ABCDEF"

// appendEscaped appends a part of a URL with its escapes in normal form.
func appendEscaped(dst, part []byte) []byte {
	from := 0 // part[from:i] is appended as it is
	for i := 0; i < len(part); i++ {
		c := part[i]
		if kinds[c]&escape == 0 {
			continue
		}
		dst = append(dst, part[from:i]...)
		if v, ok := unescaped(part[i:]); ok {
			i, c = i+2, v
			if kinds[c]&free != 0 {
				dst, from = append(dst, c), i+1
				continue
			}
		}
		dst, from = append(dst, '%', upperHex[c>>4], upperHex[c&15]), i+1
	}
	return append(dst, part[from:]...)
}

// appendDecoded appends a host with its escapes decoded.
func appendDecoded(dst, host []byte) []byte {
	for i := 0; i < len(host); i++ {
		c := host[i]
		if v, ok := unescaped(host[i:]); ok {
			i, c = i+2, v
		}
		dst = append(dst, c)
	}
	return dst
}

// unescaped returns the byte of the escape at the start of b, if there is one.
func unescaped(b []byte) (c byte, ok bool) {
	if len(b) < 3 || b[0] != '%' {
		return 0, false
	}
	hi, lo := digit(b[1]), digit(b[2])
	return hi<<4 | lo, hi|lo < 16
}

// digit returns the value of a hexadecimal digit, or more than 15.
func digit(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case c|0x20-'a' < 6:
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}

func appendLower(dst, b []byte) []byte {
	start := len(dst)
	dst = append(dst, b...)
	for i, c := range dst[start:] {
		if c-'A' < 26 {
			dst[start+i] = c | 0x20
		}
	}
	return dst
}

func isLetter(c byte) bool { return c|0x20-'a' < 26 }
func isDigit(c byte) bool  { return c-'0' < 10 }
