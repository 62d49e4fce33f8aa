package parquet

import (
	"bytes"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// cursor is a position in a page: an entry, the first value from there on, and that
// value's position in Page.Plain.
type cursor struct{ entry, value, pos int }

// reach returns the end of the entries from at on that belong to the pending page,
// and their weight. If they are to be coded (byDict), to.pos is meaningless.
func (c *ChunkWriter) reach(p *Page, at cursor, byDict bool) (to cursor, weight int, err error) {
	w := weigher{p: p, max: uint8(c.leaf.MaxDef), width: minEntryWeight, bytes: at.pos, cursor: at}
	if !byDict {
		w.width = max(w.width, c.leaf.Width())
	}
	byteArrays := c.leaf.Type == format.ByteArray && !byDict && !p.Coded
	need := c.limit - c.page.weight
	switch {
	case need <= 0: // the row continues
	case byteArrays:
		err = w.byteArrays(need)
	default:
		w.fixed(need)
	}
	for p.Rep != nil && err == nil && w.entry < p.Values && p.Rep[w.entry] != 0 {
		err = w.one(byteArrays)
	}
	w.pos = w.value * c.leaf.Width()
	if c.leaf.Type == format.ByteArray {
		w.pos = w.bytes
	}
	if err != nil {
		err = c.fail("%w", err)
	}
	return w.cursor, w.weight, err
}

// weigher steps over the entries of a page and sums up their weight.
type weigher struct {
	p      *Page
	max    uint8 // definition level of a value
	width  int   // bytes of a value, if all have the same size
	weight int
	bytes  int // position in p.Plain, for byte arrays
	cursor
}

// values counts the values among entries [from, to).
func (w *weigher) values(from, to int) int {
	if w.p.NonNull == w.p.Values {
		return to - from
	}
	return bytes.Count(w.p.Def[from:to], []byte{w.max})
}

// fixed steps over values of one width and NULLs.
func (w *weigher) fixed(need int) {
	if w.p.NonNull == w.p.Values || w.width == minEntryWeight {
		n := min((need+w.width-1)/w.width, w.p.Values-w.entry)
		w.value += w.values(w.entry, w.entry+n)
		w.entry, w.weight = w.entry+n, w.weight+n*w.width
		return
	}
	for step := min(1<<16, w.p.Values-w.entry); step > 0; {
		n := w.values(w.entry, w.entry+step)
		weight := n*w.width + (step-n)*minEntryWeight
		if w.weight+weight < need || step == 1 {
			w.entry, w.value, w.weight = w.entry+step, w.value+n, w.weight+weight
			if w.weight >= need {
				return
			}
			step = min(step, w.p.Values-w.entry)
		} else {
			step /= 2
		}
	}
}

// byteArrays steps over byte arrays and NULLs.
func (w *weigher) byteArrays(need int) error {
	if rest := len(w.p.Plain) - w.pos + minEntryWeight*(w.p.Values-w.entry-(w.p.NonNull-w.value)); rest < need {
		w.weight += rest
		w.entry, w.value, w.bytes = w.p.Values, w.p.NonNull, len(w.p.Plain)
		return nil
	}
	for w.entry < w.p.Values && w.weight < need {
		if err := w.one(true); err != nil {
			return err
		}
	}
	return nil
}

// one steps over one entry.
func (w *weigher) one(byteArray bool) error {
	switch {
	case w.p.Def != nil && w.p.Def[w.entry] != w.max:
		w.weight += minEntryWeight
	case byteArray:
		_, next, err := enc.ByteArrayAt(w.p.Plain, w.bytes)
		if err != nil {
			return err
		}
		w.weight += next - w.bytes
		w.bytes = next
		w.value++
	default:
		w.weight += w.width
		w.value++
	}
	w.entry++
	return nil
}
