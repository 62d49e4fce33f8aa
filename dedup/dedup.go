// Package dedup finds the rows of a stream whose key came before within a window of time. Its
// memory does not grow: a ring has a Bloom filter for each slot of the window, and drops the
// oldest one whole.
//
//	New ──► Ring ── Seen(keys, times) ──► a mask: rows to drop
//	             ── Save ──► bytes ── Load ──► Ring
//
// A duplicate within the window is always seen. Of other rows, a few are taken for duplicates:
// one in 1/[Options].FPR. The command "bloomjoin dedup" drops none of a file wrongly.
//
// A row's slot is its time divided by the length of a slot. The window is the newest row's slot
// and those before it: with n slots, a key is remembered for at least (n-1)/n of the window. A
// duplicate does not renew the memory of its key.
//
// The filters set eight bits in blocks of 512, as those of codec/bloom do.
package dedup

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/ring"
	"github.com/bloomjoin/bloomjoin/key"
)

// Options determine a ring.
type Options struct {
	Expect uint64        // distinct keys in a window; with more, FPR is exceeded; 0: a million
	FPR    float64       // of a row that is no duplicate; 0: 0.001
	Window time.Duration // how long a key is remembered; 0: for good, and rows have no times
	Slots  int           // parts of the window, at most 64; 0: 24, or 1 without a window
	Memory uint64        // most bytes that the filters may take; 0: any number
}

// Ring remembers keys. It must not be used concurrently. Make it with [New] or [Load].
type Ring struct {
	ring     *ring.Ring
	classes  []keys.Class // of the keys; nil: none came so far
	enc      *keys.ValueEncoder
	hashes   []uint64
	slots    []int64
	verdicts []ring.Verdict
	unjudged uint64
}

// New returns an empty ring. If it takes more than Options.Memory, the error wraps
// [fault.ErrMemory].
func New(o Options) (*Ring, error) {
	w := ring.Window{Window: o.Window, Slots: o.Slots, Expect: cmp.Or(o.Expect, 1e6), FPR: o.FPR}
	if w.FPR == 0 {
		w.FPR = 0.001
	}
	if w.Slots == 0 {
		if w.Slots = 1; w.Window > 0 {
			w.Slots = 24
		}
	}
	p, err := ring.Plan(w)
	if err == nil {
		err = p.Fits(o.Memory)
	}
	if err != nil {
		return nil, err
	}
	return &Ring{ring: ring.New(p)}, nil
}

// Seen appends to dst, for each row, whether its key came before within the window, and records
// the others. times are those of the rows, in nanoseconds since 1970; nil if, and only if, the
// ring has no window. Rows without a key are never seen, nor are those that are older than the
// window: see [Ring.Late]. Keys of another class than those before, such as strings after
// integers, are an error that wraps [fault.ErrMismatch]; then nothing is recorded. So is a
// [Ring.Rate] that exceeds FPR by half, with code E606; then the mask is complete.
func (r *Ring) Seen(dst []bool, k key.Values, times []int64) ([]bool, error) {
	width := int64(r.ring.Params().Width)
	if (times == nil) != (width == 0) && k.Len() > 0 || times != nil && len(times) != k.Len() {
		want := k.Len()
		if width == 0 {
			want = 0
		}
		return nil, faults.Mismatch(fault.At{}, "number of times", want, len(times))
	}
	if err := r.agree(keys.Values(k)); err != nil {
		return nil, err
	}
	dst = append(dst, make([]bool, k.Len())...)
	mask := dst[len(dst)-k.Len():]
	err := r.enc.Encode(keys.Values(k), func(first int, b *keys.Batch) error {
		r.hashes = b.Hash(bloom.Hash{ID: bloom.XXH3}, r.hashes)
		r.slots = r.slots[:0]
		for _, row := range b.Rows {
			slot := int64(0)
			if width > 0 {
				at := times[first+int(row)]
				slot, _ = ring.SlotOf(uint64(at), at < 0, 1, 0, uint64(width))
			}
			r.slots = append(r.slots, slot)
		}
		r.verdicts = r.ring.Judge(r.hashes, r.slots, r.verdicts[:0])
		for i, v := range r.verdicts {
			mask[first+int(b.Rows[i])] = v == ring.Seen
			if v == ring.Late {
				r.unjudged++
			}
		}
		return nil
	})
	if p, most := r.Rate(), 1.5*r.ring.Params().FPR; err == nil && p > most {
		err = faults.Of(cause.Gate, faults.Mismatch(fault.At{}, "rate of rows taken for duplicates", fmt.Sprintf("at most %.2g", most), fmt.Sprintf("%.2g", p))).WithHint("raise {Expect}")
	}
	return dst, err
}

// agree compares the classes of keys with those before.
func (r *Ring) agree(v keys.Values) error {
	classes, err := v.Classes()
	if err != nil {
		return err
	}
	if r.classes == nil {
		r.classes = classes
	}
	if !slices.Equal(classes, r.classes) {
		return faults.Of(cause.KeyTypes, faults.Mismatch(fault.At{}, "key class", r.classes, classes)).WithHint("convert the values, or use a ring for each kind of key")
	}
	if r.enc == nil {
		r.enc = keys.NewValueEncoder(keys.Options{Classes: r.classes})
	}
	return nil
}

// Late returns the number of rows so far, since New or Load, that were older than the window.
func (r *Ring) Late() uint64 { return r.unjudged }

// Rate returns the probability that a key that the ring does not have is taken for one of those
// that it has now.
func (r *Ring) Rate() float64 { return r.ring.Rate() }

// Bytes returns the memory that the filters take.
func (r *Ring) Bytes() uint64 { return r.ring.Params().Bytes() }

// saved is what a state has beside the ring.
type saved struct {
	Keys []keys.Class `json:"keys"`
}

// Save writes the ring, with checksums. It takes [Ring.Bytes] and a little more.
func (r *Ring) Save(w io.Writer) error {
	with, err := json.Marshal(saved{r.classes})
	if err != nil {
		return err
	}
	return r.ring.Encode(w, with)
}

// Load reads what Save has written, to the end of in. A ring that takes more than a number of
// bytes of memory is an error that wraps [fault.ErrMemory]; 0: no limit. Damaged bytes are an
// error that wraps [fault.ErrCorrupt], and bytes of something else one that wraps [fault.ErrMismatch].
func Load(in io.Reader, memory uint64) (*Ring, error) {
	const name = "the ring"
	got, with, err := ring.Decode(bufio.NewReaderSize(in, 1<<16), name, -1, memory)
	if err != nil {
		return nil, err
	}
	var s saved
	if json.Unmarshal(with, &s) != nil || s.Keys == nil && got.Recorded() > 0 {
		return nil, faults.Of(cause.State, faults.Mismatch(fault.At{File: name}, "kind of state", "one that Save has written", "that of the command"))
	}
	return &Ring{ring: got, classes: s.Keys}, nil
}
