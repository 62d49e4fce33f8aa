package exact

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// The Roaring format can represent a set in many ways; this file defines the one
// that the form Roaring uses, so that equal sets have equal bytes. Checking the
// bytes before the library's decoder runs also bounds what the decoder can do.
const (
	cookiePlain  = 12346 // no container is coded as runs
	cookieRuns   = 12347 // some containers are
	arrayMax     = 4096  // largest number of members in an array container
	bitmapBytes  = 8192
	offsetsFrom  = 4   // number of containers from which a bitmap with runs has offsets
	highMemory   = 256 // approximate memory of a 32-bit high key, in bytes
	bucketMemory = 96  // approximate memory of a container besides its content, in bytes
)

// checkBitmaps returns an error that wraps fault.ErrCorrupt unless b is what
// marshalRoaring returns for one of the two parts of a set. It takes one pass and
// allocates nothing. memory is the approximate size of the decoded members.
func checkBitmaps(b []byte) (memory uint64, err error) {
	c := &cursor.Cursor{Rest: b}
	n := c.U64()
	last := int64(-1)
	for i := uint64(0); i < n; i++ {
		high := int64(c.U32())
		if c.Short {
			break
		}
		if high <= last {
			return 0, bad("high key", above(last), high)
		}
		last = high
		m, err := checkBitmap(c)
		if err != nil {
			return 0, err
		}
		memory += highMemory + m
	}
	if c.Short {
		return 0, faults.Corrupt(fault.At{}, "exact set is too short: %d bytes", len(b))
	}
	if len(c.Rest) > 0 {
		return 0, bad("bytes behind it", 0, len(c.Rest))
	}
	return memory, nil
}

// checkBitmap reads a 32-bit bitmap from c and checks it.
func checkBitmap(c *cursor.Cursor) (memory uint64, err error) {
	start := len(c.Rest)
	var flags []byte
	size := uint64(c.U16()) // cookie
	hasRuns := size == cookieRuns
	switch {
	case hasRuns:
		size = uint64(c.U16()) + 1
		flags = c.Take((size + 7) / 8)
	case size == cookiePlain && c.U16() == 0:
		size = uint64(c.U32())
	case c.Short:
		return 0, nil
	default:
		return 0, bad("cookie of a bitmap", "12346 or 12347", size)
	}
	if !c.Short && (size == 0 || size > 1<<16) {
		return 0, bad("containers of a bitmap", "1 to 65536", size)
	}
	keys := c.Take(4 * size)
	var offsets []byte
	if !hasRuns || size >= offsetsFrom {
		offsets = c.Take(4 * size)
	}
	if c.Short {
		return 0, nil
	}
	if hasRuns && (!slices.ContainsFunc(flags, func(x byte) bool { return x != 0 }) || size%8 != 0 && flags[len(flags)-1]>>(size%8) != 0) {
		return 0, bad("run flags", "one for a container", flags[len(flags)-1])
	}
	last := -1
	for i := range size {
		key := int(binary.LittleEndian.Uint16(keys[4*i:]))
		card := int(binary.LittleEndian.Uint16(keys[4*i+2:])) + 1
		if key <= last {
			return 0, bad("container key", above(last), key)
		}
		last = key
		if offsets != nil {
			want, got := start-len(c.Rest), binary.LittleEndian.Uint32(offsets[4*i:])
			if uint64(got) != uint64(want) {
				return 0, bad("container offset", want, got)
			}
		}
		before := len(c.Rest)
		err := checkContainer(c, hasRuns && flags[i/8]>>(i%8)&1 != 0, card)
		if c.Short || err != nil {
			return 0, err
		}
		memory += bucketMemory + uint64(before-len(c.Rest))
	}
	return memory, nil
}

// checkContainer reads a container from c and checks that it holds card members and
// is coded in the smallest of the three ways; runs are chosen only if they are
// smaller than both others.
func checkContainer(c *cursor.Cursor, isRun bool, card int) error {
	got, runs := 0, 0
	form := "bitmap"
	switch {
	case isRun:
		form = "runs"
		var ok bool
		if runs, got, ok = scanRuns(c.Take(4 * uint64(c.U16()))); !ok {
			return bad("runs of a container", "ascending and apart", "others")
		}
	case card <= arrayMax:
		form = "array"
		var ok bool
		if runs, ok = scanArray(c.Take(2 * uint64(card))); !ok {
			return bad("array container", "ascending", "others")
		}
		got = card
	default:
		runs, got = scanBitmap(c.Take(bitmapBytes))
	}
	if c.Short {
		return nil
	}
	if got != card {
		return bad("members of a container", card, got)
	}
	if want := smallestForm(card, runs); want != form {
		return bad("form of a container", want, form)
	}
	return nil
}

// smallestForm returns how a container is coded.
func smallestForm(card, runs int) string {
	switch {
	case 2+4*runs < min(bitmapBytes, 2*card):
		return "runs"
	case card <= arrayMax:
		return "array"
	}
	return "bitmap"
}

// scanRuns counts runs and members. ok is false unless the runs ascend with gaps
// between them.
func scanRuns(b []byte) (runs, card int, ok bool) {
	next := 0 // smallest valid start of the next run
	for ; len(b) > 0; b = b[4:] {
		start := int(binary.LittleEndian.Uint16(b))
		last := start + int(binary.LittleEndian.Uint16(b[2:]))
		if start < next || last > 0xffff {
			return 0, 0, false
		}
		runs++
		card += last - start + 1
		next = last + 2
	}
	return runs, card, true
}

// scanArray counts runs. ok is false unless the values ascend.
func scanArray(b []byte) (runs int, ok bool) {
	last := -2
	for ; len(b) > 0; b = b[2:] {
		v := int(binary.LittleEndian.Uint16(b))
		if v <= last {
			return 0, false
		}
		if v > last+1 {
			runs++
		}
		last = v
	}
	return runs, true
}

// scanBitmap counts runs and members.
func scanBitmap(b []byte) (runs, card int) {
	carry := uint64(0)
	for ; len(b) > 0; b = b[8:] {
		w := binary.LittleEndian.Uint64(b)
		card += bits.OnesCount64(w)
		runs += bits.OnesCount64(w &^ (w<<1 | carry))
		carry = w >> 63
	}
	return runs, card
}

// above formats a lower bound for an error.
func above[T int | int64](n T) string { return fmt.Sprintf("above %d", n) }

func bad(what string, want, got any) error {
	return faults.Corrupt(fault.At{}, "exact set: %s: want %v, got %v", what, want, got)
}
