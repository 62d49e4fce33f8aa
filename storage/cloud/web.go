package cloud

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// web reads over HTTP. Keys are URLs.
type web struct{ client *http.Client }

func (web) page(context.Context, string, string, string, int) ([]entry, string, error) {
	return nil, "", errors.ErrUnsupported
}

// head describes an object by its first byte: signed addresses permit GET alone.
func (w web) head(ctx context.Context, url string) (entry, error) {
	resp, err := w.send(ctx, url, "", 0, 1)
	var refused *webError
	empty := errors.As(err, &refused) && refused.status == http.StatusRequestedRangeNotSatisfiable && strings.HasSuffix(refused.header.Get("Content-Range"), "/0")
	if err != nil && !empty {
		return entry{}, err
	}
	e := entry{key: url, size: -1}
	var header http.Header
	switch {
	case empty:
		e.size, header = 0, refused.header
	default:
		_ = resp.Body.Close() // not read
		header = resp.Header
		if resp.StatusCode == http.StatusOK { // the whole object
			e.size = resp.ContentLength
		} else if _, size, ok := strings.Cut(header.Get("Content-Range"), "/"); ok {
			if n, err := strconv.ParseInt(size, 10, 64); err == nil {
				e.size = n
			}
		}
	}
	if e.size < 0 {
		return entry{}, faults.Unsupported(fault.At{File: address.Redact(url)}, "the server does not say how long the file is").WithHint("download the file first")
	}
	e.identity = webID(header)
	if e.identity == "" {
		return entry{}, faults.Unsupported(fault.At{File: address.Redact(url)}, "the server sends neither ETag nor Last-Modified, so a change would go unnoticed").WithHint("download the file first")
	}
	e.at, _ = http.ParseTime(header.Get("Last-Modified")) // zero: unknown
	return e, nil
}

// webID returns the ETag, else the time of writing.
func webID(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" {
		return tag
	}
	return h.Get("Last-Modified")
}

func (w web) get(ctx context.Context, url, identity string, off, n int64) (answer, error) {
	resp, err := w.send(ctx, url, identity, off, n)
	if err != nil {
		return answer{}, err
	}
	return ranged(resp.Body, resp.Header.Get("Content-Range"), resp.ContentLength, webID(resp.Header), off)
}

// send sends a GET. The caller closes the body.
func (w web) send(ctx context.Context, url, identity string, off, n int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+n-1))
	req.Header.Set("Accept-Encoding", "identity")
	switch {
	case strings.HasPrefix(identity, `"`):
		req.Header.Set("If-Match", identity)
	case identity != "" && !strings.HasPrefix(identity, "W/"): // weak ETags never match; they are compared with the answer's
		req.Header.Set("If-Unmodified-Since", identity)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent {
		if c := resp.Header.Get("Content-Encoding"); c != "" && c != "identity" && resp.ContentLength < 0 {
			return nil, errors.Join(errCompressed, resp.Body.Close())
		}
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }() // the rest is not read
	e := &webError{status: resp.StatusCode, header: resp.Header}
	// Object stores explain themselves in XML. Other texts leave e.says empty.
	_ = xml.NewDecoder(io.LimitReader(resp.Body, 4<<10)).Decode(&e.says)
	return nil, e
}

// errCompressed means that a server compresses its answers, so ranges are not those of
// the file. The length of the answer is unknown then, unlike that of a file which is
// stored compressed.
var errCompressed = errors.New("the server compresses what it sends, although it was asked not to")

// webError is an answer that has no bytes of the object.
type webError struct {
	status int
	header http.Header
	says   struct{ Code, Message string }
}

func (e *webError) Error() string { return http.StatusText(e.status) }

func (web) code(err error) (code, text string) {
	var e *webError
	if errors.As(err, &e) {
		return e.says.Code, e.says.Message
	}
	return "", ""
}

// readOnly refuses to write what can only be read.
func (n name) readOnly() error {
	if n.scheme != schemeHTTP {
		return nil
	}
	return faults.Unsupported(fault.At{File: address.Redact(n.given)}, "writing over HTTP").WithHint("write to a local file or an object store")
}
