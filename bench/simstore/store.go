package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// object is a version of an object.
type object struct {
	parts [][]byte // its content
	size  int64
	etag  string // without quotes
	at    time.Time
	meta  map[string]string
}

// upload is a multipart upload.
type upload struct {
	key   string
	meta  map[string]string
	at    time.Time
	parts map[int][]byte
}

// store holds the objects of one bucket.
type store struct {
	mu      sync.Mutex
	objects map[string]*object
	keys    []string // sorted; nil: to be made
	uploads map[string]*upload
	made    int // numbers identities
}

func newStore() *store {
	return &store{objects: map[string]*object{}, uploads: map[string]*upload{}}
}

// log puts the log there.
func (s *store) log(content []byte, objects, days int) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	each := (objects + days - 1) / days
	for i := range objects {
		key := fmt.Sprintf("logs/dt=%s/part-%06d.parquet", at.AddDate(0, 0, i/each).Format(time.DateOnly), i)
		s.put(key, object{parts: [][]byte{content}, at: at})
	}
}

// put keeps an object and returns its identity. The caller holds the lock, or is alone.
func (s *store) put(key string, o object) string {
	s.made++
	o.etag = fmt.Sprintf("%032x", s.made)
	for _, p := range o.parts {
		o.size += int64(len(p))
	}
	if o.at.IsZero() {
		o.at = time.Now()
	}
	if s.objects[key] == nil {
		s.keys = nil
	}
	s.objects[key] = &o
	return o.etag
}

// remove removes an object. The caller holds the lock.
func (s *store) remove(key string) {
	if s.objects[key] != nil {
		delete(s.objects, key)
		s.keys = nil
	}
}

// condition reports whether the conditions of a request hold for what has the key. The caller holds
// the lock.
func (s *store) condition(key, match, none string) bool {
	o := s.objects[key]
	if none == "*" && o != nil {
		return false
	}
	return match == "" || o != nil && (match == "*" || strings.Trim(match, `"`) == o.etag)
}

// entry is a line of a list: an object, or a common prefix.
type entry struct {
	key string
	*object
}

// list returns what begins with prefix and comes after a key, at most that many entries.
func (s *store) list(prefix, delimiter, after string, most int) (entries []entry, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = slices.Sorted(maps.Keys(s.objects))
	}
	at, _ := slices.BinarySearch(s.keys, max(prefix, after))
	for at < len(s.keys) && strings.HasPrefix(s.keys[at], prefix) {
		key := s.keys[at]
		if key <= after || delimiter != "" && strings.HasSuffix(after, delimiter) && strings.HasPrefix(key, after) {
			at++
			continue
		}
		if len(entries) == most {
			return entries, true
		}
		if dir, _, cut := strings.Cut(key[len(prefix):], delimiter); delimiter != "" && cut {
			dir = prefix + dir + delimiter
			entries = append(entries, entry{key: dir})
			at, _ = slices.BinarySearch(s.keys, dir+"\xff")
			continue
		}
		entries = append(entries, entry{key, s.objects[key]})
		at++
	}
	return entries, false
}

// read returns bytes of an object.
func (o *object) read(off, n int64) []byte {
	if len(o.parts) == 1 {
		return o.parts[0][off : off+n]
	}
	return bytes.Join(o.parts, nil)[off : off+n]
}
