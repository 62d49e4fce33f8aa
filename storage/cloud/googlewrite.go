package cloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// googleSum returns a CRC-32C as the service writes it.
func googleSum(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// upload returns the address to which objects are sent. generation is that of the object to
// be replaced, "0" if there must be none, "" for any.
func (g google) upload(how, key, generation string) string {
	return queried(g.host+"/upload"+g.bucket, "uploadType", how, "name", key, "ifGenerationMatch", generation)
}

// describe returns the metadata of an object for the service, which checks the sum if there is one.
func (google) describe(mark, sum string) []byte {
	b, _ := json.Marshal(struct { // it never fails
		ContentType string            `json:"contentType"`
		Metadata    map[string]string `json:"metadata"`
		Crc32c      string            `json:"crc32c,omitempty"`
	}{contentType, map[string]string{markKey: mark}, sum})
	return b
}

func (g google) put(ctx context.Context, key string, body []byte, mark, over string) (identity string, err error) {
	generation := cmp.Or(over, "0")
	if over == anyVersion {
		generation = ""
	}
	boundary := "bloomjoin-" + mark
	head := fmt.Sprintf("--%s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%s\r\n--%[1]s\r\nContent-Type: %s\r\n\r\n",
		boundary, g.describe(mark, googleSum(crc32.Checksum(body, castagnoli))), contentType)
	tail := "\r\n--" + boundary + "--\r\n"
	whole := func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(head), bytes.NewReader(body), strings.NewReader(tail))), nil
	}
	first, _ := whole() // it never fails
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.upload("multipart", key, generation), first)
	if err != nil {
		return "", err
	}
	req.GetBody, req.ContentLength = whole, int64(len(head)+len(body)+len(tail))
	req.Header.Set("Content-Type", `multipart/related; boundary="`+boundary+`"`)
	resp, err := g.send(req)
	if err != nil {
		return "", err
	}
	return generationOf(resp)
}

// generationOf returns that of an object that was written; empty: the answer does not have it.
func generationOf(resp *http.Response) (identity string, err error) {
	var now googleObject
	if err := decode(resp, &now); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	return now.Generation, nil
}

// begin begins a resumable upload. Its condition is part of its first request, so
// the object is looked up then, and complete publishes only over that version.
func (g google) begin(ctx context.Context, key, mark string) (upload, error) {
	now, err := g.attributes(ctx, key)
	var missing *googleError
	switch {
	case err == nil:
	case errors.As(err, &missing) && missing.status == http.StatusNotFound:
		now.Generation = "0"
	default:
		return nil, err
	}
	header, err := g.call(ctx, http.MethodPost, g.upload("resumable", key, now.Generation), g.describe(mark, ""), nil)
	if err != nil {
		return nil, err
	}
	session := header.Get("Location")
	if session == "" {
		return nil, errors.New("the service names no session for the upload")
	}
	return &googleUpload{g: g, session: session, there: strings.TrimPrefix(now.Generation, "0")}, nil
}

func (g google) marked(ctx context.Context, key string) (mark, identity string, err error) {
	o, err := g.attributes(ctx, key)
	return o.Metadata[markKey], o.Generation, err
}

func (g google) remove(ctx context.Context, key, identity string) error {
	_, err := g.call(ctx, http.MethodDelete, g.object(key, "ifGenerationMatch", identity), nil, nil)
	return err
}

// resumeIncomplete is the status of a session that waits for more bytes.
const resumeIncomplete = http.StatusPermanentRedirect

// quantum divides the size of every chunk of a session except the last.
const quantum = 256 << 10

// errNotKept means that a session has kept nothing of what it was sent.
var errNotKept = errors.New("the service has not kept what it was sent")

// googleUpload is a resumable upload.
type googleUpload struct {
	g       google
	session string
	there   string // identity of the object when the upload began; empty: there was none

	begun  int    // parts that were passed at least once
	sum    uint32 // of these parts
	off    int64  // of the first byte of tail
	tail   []byte // the end of the parts before, less than a quantum
	kept   int64  // bytes that the service has
	unsure bool   // the service may have more bytes, since a request has failed
	now    string // identity of the complete object; empty: unknown
}

func (*googleUpload) serial() bool { return true }
func (*googleUpload) release()     {}

func (u *googleUpload) part(ctx context.Context, n int, body []byte) error {
	if n == u.begun {
		u.begun++
		u.sum = crc32.Update(u.sum, castagnoli, body)
	}
	size := (len(u.tail) + len(body)) / quantum * quantum
	if err := u.send(ctx, body, size, "*"); err != nil {
		return err
	}
	if size == 0 {
		u.tail = append(u.tail, body...)
		return nil
	}
	u.tail = bytes.Clone(body[size-len(u.tail):])
	u.off += int64(size)
	return nil
}

func (u *googleUpload) complete(ctx context.Context, over string) (identity string, err error) {
	if over != anyVersion && over != u.there {
		return "", fs.ErrExist
	}
	err = u.send(ctx, nil, len(u.tail), strconv.FormatInt(u.off+int64(len(u.tail)), 10))
	return u.now, err
}

// send sends the part of the first size bytes of the tail and a body that the service does not
// have. total is the size of the object if they are its end, else "*".
func (u *googleUpload) send(ctx context.Context, body []byte, size int, total string) error {
	end, last := u.off+int64(size), total != "*"
	for u.kept < end || last {
		c := chunk{span: "bytes */*"}
		if !u.unsure {
			from, tail := int(u.kept-u.off), len(u.tail)
			c.tail, c.body = u.tail[min(from, tail):min(size, tail)], body[max(from-tail, 0):max(size-tail, 0)]
			if c.span = fmt.Sprintf("bytes %d-%d/%s", u.kept, end-1, total); u.kept == end {
				c.span = "bytes */" + total
			}
			if last {
				c.sum = "crc32c=" + googleSum(u.sum)
			}
		}
		asked, before := u.unsure, u.kept
		u.unsure = true
		kept, complete, err := u.request(ctx, c)
		switch {
		case err != nil:
			return err
		case complete && last:
			return nil
		case complete || kept < u.off || kept > end:
			return fmt.Errorf("the service has %d bytes of the upload (complete: %t), want %d to %d", kept, complete, u.off, end)
		}
		if u.unsure, u.kept = false, kept; kept <= before && !asked {
			return errNotKept
		}
	}
	return nil
}

// chunk is what a request sends to a session: the end of the parts before, and a part.
type chunk struct {
	tail, body []byte
	span, sum  string // headers
}

func (c chunk) reader() (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(bytes.NewReader(c.tail), bytes.NewReader(c.body))), nil
}

// request sends a chunk and returns how many bytes the service has, or that the object is
// complete.
func (u *googleUpload) request(ctx context.Context, c chunk) (kept int64, complete bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.session, nil)
	if err != nil {
		return 0, false, err
	}
	if req.ContentLength = int64(len(c.tail) + len(c.body)); req.ContentLength > 0 {
		req.GetBody = c.reader
		req.Body, _ = c.reader() // it never fails
	}
	req.Header.Set("Content-Range", c.span)
	if c.sum != "" {
		req.Header.Set("X-Goog-Hash", c.sum)
	}
	resp, err := u.g.send(req, http.StatusCreated, resumeIncomplete)
	if err != nil {
		return 0, false, gone(err)
	}
	if complete = resp.StatusCode != resumeIncomplete; !complete && resp.Header.Get("Range") != "" {
		if _, err = fmt.Sscanf(resp.Header.Get("Range"), "bytes=0-%d", &kept); err != nil {
			err = fmt.Errorf("the service has the range %q of the upload", resp.Header.Get("Range"))
		}
		kept++
	}
	if complete {
		u.now, err = generationOf(resp)
		return kept, true, err
	}
	return kept, false, errors.Join(err, decode(resp, nil))
}

// gone sets the reason of err to NoSuchUpload if the session no longer exists.
func gone(err error) error {
	var e *googleError
	if errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusGone) {
		e.reason = "NoSuchUpload"
	}
	return err
}

// abort ends the session, for which the service has a status of its own.
func (u *googleUpload) abort(ctx context.Context) error {
	const closed = 499
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, u.session, nil)
	if err != nil {
		return err
	}
	resp, err := u.g.send(req, closed, http.StatusNoContent)
	if err != nil {
		return gone(err)
	}
	return decode(resp, nil)
}
