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

	least, before time.Duration // least latency of this window, and of the one before
	since         time.Time
}

const (
	// Assumptions before the first measurement.
	firstLatency   = 20 * time.Millisecond
	firstBandwidth = 50e6

	near    = 5 * time.Millisecond
	nearGap = 16 << 10 // bytes fetched instead of another request where requests are fast
	maxGap  = 4 << 20

	window = 10 * time.Second // in which the latency is the least that was measured

	fewBytes = 256 << 10 // of a response that is too short to measure the bandwidth
)

// gap returns how many bytes take as long as another request.
func (l *Link) gap() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.latency != 0 && l.latency < near {
		return nearGap
	}
	return min(l.bytes(), maxGap)
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

// answered notes the time between a request and its answer. The latency is the least
// of the last seconds: answers are late, too, when many requests are under way, and a
// first connection takes longer.
func (l *Link) answered(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d = max(d, time.Microsecond)
	if now := time.Now(); l.least == 0 || now.Sub(l.since) > window {
		l.before, l.least, l.since = l.least, d, now
	}
	l.least = min(l.least, d)
	l.latency = l.least
	if l.before != 0 {
		l.latency = min(l.least, l.before)
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
