package cloud

import "sync/atomic"

// Stats counts what a Store has done so far.
type Stats struct {
	Requests     Requests `json:"requests"` // retries included
	BytesRead    int64    `json:"bytes_read"`
	BytesWritten int64    `json:"bytes_written"`
	Retries      int64    `json:"retries"`   // requests that were sent again
	Throttles    int64    `json:"throttles"` // answers that asked for fewer requests (429, 503)
}

// Requests counts requests by kind.
type Requests struct {
	List   int64 `json:"list"`
	Head   int64 `json:"head"`
	Get    int64 `json:"get"`
	Put    int64 `json:"put"`
	Part   int64 `json:"part"` // a part of an upload
	Delete int64 `json:"delete"`
	Other  int64 `json:"other"` // begins, ends and lists uploads, and asks catalogs
}

// Stats implements [Store].
func (s *store) Stats() Stats {
	c := &s.stats
	n := func(k kind) int64 { return c.requests[k].Load() }
	return Stats{
		Requests:  Requests{n(list), n(head), n(get), n(put), n(part), n(del), n(other)},
		BytesRead: c.read.Load(), BytesWritten: c.written.Load(),
		Retries: c.retries.Load(), Throttles: c.throttles.Load(),
	}
}

// kind is a kind of request.
type kind uint8

const (
	other kind = iota
	list
	head
	get
	put
	part
	del
	kinds
)

type counters struct {
	requests                          [kinds]atomic.Int64
	read, written, retries, throttles atomic.Int64
}
