package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// serve answers a request of S3's API, as far as programs that read and write need it.
func (s *store) serve(w http.ResponseWriter, r *http.Request) {
	q, key := r.URL.Query(), keyOf(r)
	switch {
	case key == "" && q.Has("uploads"):
		s.listUploads(w, q.Get("prefix"))
	case key == "":
		s.listObjects(w, r)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		s.get(w, r, key)
	case r.Method == http.MethodDelete:
		s.delete(w, r, key)
	default:
		s.write(w, r, key)
	}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: text})
}

// answer sends XML.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(v)
}

type content struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
}

type commonPrefix struct{ Prefix string }

func (s *store) listObjects(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	most := 1000
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		most = n
	}
	entries, more := s.list(q.Get("prefix"), q.Get("delimiter"), max(q.Get("continuation-token"), q.Get("start-after")), most)
	list := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		KeyCount              int
		NextContinuationToken string         `xml:",omitempty"`
		Contents              []content      `xml:"Contents"`
		CommonPrefixes        []commonPrefix `xml:"CommonPrefixes"`
	}{IsTruncated: more, KeyCount: len(entries)}
	for _, e := range entries {
		if e.object == nil {
			list.CommonPrefixes = append(list.CommonPrefixes, commonPrefix{e.key})
			continue
		}
		list.Contents = append(list.Contents, content{e.key, e.at.UTC().Format(time.RFC3339), `"` + e.etag + `"`, e.size})
	}
	if more {
		list.NextContinuationToken = entries[len(entries)-1].key
	}
	answer(w, list)
}

func (s *store) listUploads(w http.ResponseWriter, prefix string) {
	type pending struct{ Key, UploadId, Initiated string }
	list := struct {
		XMLName     xml.Name `xml:"ListMultipartUploadsResult"`
		IsTruncated bool
		Upload      []pending
	}{}
	s.mu.Lock()
	for id, u := range s.uploads {
		if strings.HasPrefix(u.key, prefix) {
			list.Upload = append(list.Upload, pending{u.key, id, u.at.UTC().Format(time.RFC3339)})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list.Upload, func(a, b pending) int { return strings.Compare(a.Key+" "+a.UploadId, b.Key+" "+b.UploadId) })
	answer(w, list)
}

func (s *store) get(w http.ResponseWriter, r *http.Request, key string) {
	s.mu.Lock()
	o, holds := s.objects[key], s.condition(key, r.Header.Get("If-Match"), "")
	s.mu.Unlock()
	switch {
	case o == nil:
		refuse(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	case !holds:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
		return
	}
	h := w.Header()
	h.Set("ETag", `"`+o.etag+`"`)
	h.Set("Last-Modified", o.at.UTC().Format(http.TimeFormat))
	for k, v := range o.meta {
		h.Set(k, v)
	}
	off, n, status := int64(0), o.size, http.StatusOK
	if text := r.Header.Get("Range"); text != "" {
		last := o.size - 1
		if _, err := fmt.Sscanf(text, "bytes=%d-%d", &off, &last); err != nil && last != o.size-1 || off >= o.size {
			refuse(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable")
			return
		}
		last = min(last, o.size-1)
		n, status = last-off+1, http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", off, last, o.size))
	}
	h.Set("Content-Length", strconv.FormatInt(n, 10))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(o.read(off, n))
	}
}

func (s *store) delete(w http.ResponseWriter, r *http.Request, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := r.URL.Query().Get("uploadId"); id != "" {
		if s.uploads[id] == nil {
			refuse(w, http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist.")
			return
		}
		delete(s.uploads, id)
	} else if !s.condition(key, r.Header.Get("If-Match"), "") {
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
		return
	} else {
		s.remove(key)
	}
	w.WriteHeader(http.StatusNoContent)
}

// write creates an object, an upload, or a part of one.
func (s *store) write(w http.ResponseWriter, r *http.Request, key string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	id := q.Get("uploadId")
	u := s.uploads[id]
	if id != "" && (u == nil || u.key != key) {
		refuse(w, http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist.")
		return
	}
	switch {
	case q.Has("uploads"):
		s.made++
		id = fmt.Sprintf("upload-%d", s.made)
		s.uploads[id] = &upload{key, metaOf(r), time.Now(), map[int][]byte{}}
		answer(w, struct {
			XMLName       xml.Name `xml:"InitiateMultipartUploadResult"`
			Key, UploadId string
		}{Key: key, UploadId: id})
	case q.Has("partNumber"):
		n, _ := strconv.Atoi(q.Get("partNumber"))
		u.parts[n] = body
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, hash(string(body))))
	case !s.condition(key, r.Header.Get("If-Match"), r.Header.Get("If-None-Match")):
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	case u != nil:
		s.complete(w, body, id, u)
	default:
		o := object{parts: [][]byte{body}, meta: metaOf(r)}
		if from := r.Header.Get("X-Amz-Copy-Source"); from != "" {
			_, from, _ = strings.Cut(strings.TrimPrefix(from, "/"), "/")
			if s.objects[from] == nil {
				refuse(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
				return
			}
			o.parts = s.objects[from].parts
		}
		w.Header().Set("ETag", `"`+s.put(key, o)+`"`)
	}
}

// complete makes an upload an object. The caller holds the lock.
func (s *store) complete(w http.ResponseWriter, body []byte, id string, u *upload) {
	var asked struct {
		Part []struct{ PartNumber int }
	}
	err := xml.Unmarshal(body, &asked)
	o := object{meta: u.meta}
	for _, p := range asked.Part {
		part, ok := u.parts[p.PartNumber]
		if !ok || err != nil {
			refuse(w, http.StatusBadRequest, "InvalidPart", "One or more of the specified parts could not be found.")
			return
		}
		o.parts = append(o.parts, part)
	}
	delete(s.uploads, id)
	answer(w, struct {
		XMLName   xml.Name `xml:"CompleteMultipartUploadResult"`
		Key, ETag string
	}{Key: u.key, ETag: `"` + s.put(u.key, o) + `"`})
}

func metaOf(r *http.Request) map[string]string {
	meta := map[string]string{}
	for k := range r.Header {
		if strings.HasPrefix(k, "X-Amz-Meta-") {
			meta[k] = r.Header.Get(k)
		}
	}
	return meta
}
