package codec

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// The one form of a set in Roaring's 64-bit format that this format allows;
// FORMAT.md, "Exact payload". A canonical form makes equal sets equal files,
// and a check before the decoder runs bounds what the decoder can do.
const (
	cookiePlain  = 12346 // no container is coded as runs
	cookieRuns   = 12347 // some are
	arrayMax     = 4096  // members of an array container, at most
	bitmapBytes  = 8192
	offsetsFrom  = 4   // containers from which on a bitmap with runs has offsets
	highMemory   = 256 // bytes in memory of a 32-bit high key, about
	bucketMemory = 96  // bytes in memory of a container beside its content, about
)

// checkRoaring returns a problem unless b is the canonical form of a set. It
// allocates nothing. memory is about what the set takes once decoded.
func checkRoaring(b []byte) (memory uint64, p *problem) {
	c := &cursor{b: b}
	n := c.u64()
	last := int64(-1)
	for i := uint64(0); i < n; i++ {
		high := int64(c.u32())
		if c.short {
			break
		}
		if high <= last {
			return 0, bad("high key", fmt.Sprintf("above %d", last), high)
		}
		last = high
		m, p := checkBitmap(c)
		if p != nil {
			return 0, p
		}
		memory += highMemory + m
	}
	if c.short {
		return 0, bad("exact set is too short", "", fmt.Sprintf("%d bytes", len(b)))
	}
	if len(c.b) > 0 {
		return 0, bad("bytes behind the exact set", "0", len(c.b))
	}
	return memory, nil
}

// checkBitmap checks a 32-bit bitmap and takes it off c.
func checkBitmap(c *cursor) (memory uint64, p *problem) {
	start := len(c.b)
	var flags []byte
	size := uint64(c.u16()) // cookie
	hasRuns := size == cookieRuns
	switch {
	case hasRuns:
		size = uint64(c.u16()) + 1
		flags = c.take((size + 7) / 8)
	case size == cookiePlain && c.u16() == 0:
		size = uint64(c.u32())
	case c.short:
		return 0, nil
	default:
		return 0, bad("cookie of a bitmap", "12346 or 12347", size)
	}
	if !c.short && (size == 0 || size > 1<<16) {
		return 0, bad("containers of a bitmap", "1 to 65536", size)
	}
	keys := c.take(4 * size)
	var offsets []byte
	if !hasRuns || size >= offsetsFrom {
		offsets = c.take(4 * size)
	}
	if c.short {
		return 0, nil
	}
	if hasRuns && (isZero(flags) || size%8 != 0 && flags[len(flags)-1]>>(size%8) != 0) {
		return 0, bad("run flags", "one for a container", fmt.Sprintf("%x", flags[len(flags)-1]))
	}
	last := -1
	for i := range size {
		key := int(binary.LittleEndian.Uint16(keys[4*i:]))
		card := int(binary.LittleEndian.Uint16(keys[4*i+2:])) + 1
		if key <= last {
			return 0, bad("container key", fmt.Sprintf("above %d", last), key)
		}
		last = key
		if offsets != nil {
			want, got := start-len(c.b), binary.LittleEndian.Uint32(offsets[4*i:])
			if uint64(got) != uint64(want) {
				return 0, bad("container offset", fmt.Sprint(want), got)
			}
		}
		before := len(c.b)
		p := checkContainer(c, hasRuns && flags[i/8]>>(i%8)&1 != 0, card)
		if c.short || p != nil {
			return 0, p
		}
		memory += bucketMemory + uint64(before-len(c.b))
	}
	return memory, nil
}

// checkContainer checks a container of card members and takes it off c: that
// it holds as many, and is coded in the smallest of the three ways, a run only
// if it is smaller than both others.
func checkContainer(c *cursor, isRun bool, card int) *problem {
	got, runs := 0, 0
	form := "bitmap"
	switch {
	case isRun:
		form = "runs"
		var ok bool
		if runs, got, ok = scanRuns(c.take(4 * uint64(c.u16()))); !ok {
			return bad("runs of a container", "ascending and apart", "others")
		}
	case card <= arrayMax:
		form = "array"
		var ok bool
		if runs, ok = scanArray(c.take(2 * uint64(card))); !ok {
			return bad("array container", "ascending", "others")
		}
		got = card
	default:
		runs, got = scanBitmap(c.take(bitmapBytes))
	}
	if c.short {
		return nil
	}
	if got != card {
		return bad("members of a container", fmt.Sprint(card), got)
	}
	if want := smallestForm(card, runs); want != form {
		return bad("form of a container", want, form)
	}
	return nil
}

// smallestForm says how a container is coded.
func smallestForm(card, runs int) string {
	switch {
	case 2+4*runs < min(bitmapBytes, 2*card):
		return "runs"
	case card <= arrayMax:
		return "array"
	}
	return "bitmap"
}

// scanRuns counts runs and members; ok if the runs ascend with gaps between.
func scanRuns(b []byte) (runs, card int, ok bool) {
	next := 0 // the least start of the next run
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

// scanArray counts runs; ok if the values ascend.
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
