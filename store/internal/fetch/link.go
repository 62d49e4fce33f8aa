package fetch

import (
	"sync"
	"time"
)

// Link measures the way to one place. The zero value is ready to use.
type Link struct {
	mu        sync.Mutex
	latency   time.Duration // from a request to the first byte; 0: unknown
	bandwidth float64       // of one connection, in bytes per second; 0: unknown
}

const (
	// What is assumed before anything is measured.
	firstLatency   = 20 * time.Millisecond
	firstBandwidth = 50e6

	near    = 5 * time.Millisecond
	nearGap = 16 << 10 // what is fetched instead of another request where these are fast
	mostGap = 4 << 20

	fewBytes = 256 << 10 // of a response whose duration says nothing about the bandwidth
)

// gap returns how many bytes take as long as another request.
func (l *Link) gap() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.latency != 0 && l.latency < near {
		return nearGap
	}
	return min(l.bytes(), mostGap)
}

// product returns the bytes that a connection could transfer while it waits for an
// answer.
func (l *Link) product() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes()
}

func (l *Link) bytes() int64 {
	latency, bandwidth := l.latency, l.bandwidth
	if latency == 0 {
		latency = firstLatency
	}
	if bandwidth == 0 {
		bandwidth = firstBandwidth
	}
	return int64(latency.Seconds() * bandwidth)
}

// answered notes the time between a request and its answer.
func (l *Link) answered(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d = max(d, time.Microsecond)
	switch {
	case l.latency == 0:
		l.latency = d
	case d < l.latency: // a first connection takes longer than those after it
		l.latency += (d - l.latency) / 4
	default: // one answer that is late says little
		l.latency += (min(d, 4*l.latency) - l.latency) / 16
	}
}

// received notes how long the bytes of an answer have taken.
func (l *Link) received(n int64, d time.Duration) {
	if n < fewBytes || d <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := float64(n) / d.Seconds()
	if l.bandwidth == 0 {
		l.bandwidth = rate
		return
	}
	l.bandwidth += (rate - l.bandwidth) / 8
}
