// Package dedups finds the rows whose key came before within a window of time: the first of
// equal rows stays, or, of files as a whole, the last.
//
//	records ── Encoder ──► Rows: hashes and slots ─┬─ Judge: a ring ─────────► rows to drop
//	                                               └─ Exact: keys, in parts ─► rows to drop
//	pieces of files ── Read, in parallel ──► Rows in the order of the input ──► Selection
//
// In come rows with key and time columns; out come the numbers of those to drop, which depend on
// the order of the rows alone. A row without a key is never dropped. Memory is that of the ring
// and of a sample, or a budget, above which keys go to disk.
//
// The command uses it.
package dedups

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/ring"
	"github.com/bloomjoin/bloomjoin/internal/scalar"
)

// Columns says which columns are keys and times, and how they are read.
type Columns struct {
	Key     []keys.Column
	Time    []keys.Column // one, or none
	Unit    time.Duration // that integers count since 1970; 0: the column has timestamps or dates
	Width   time.Duration // of a slot
	Exact   bool          // keys are copied to Rows.Exact
	Last    bool          // times are compared to the nanosecond, and rows without one take part
	Options keys.Options
}

// Encoder makes Rows of records of one schema. Goroutines may share one.
type Encoder struct {
	of    Columns
	name  string
	keys  *keys.Encoder
	times *keys.Encoder // nil: rows have no times
	text  bool          // times are text
}

// NewEncoder finds the columns in the schema of a file, which errors name.
func (c Columns) NewEncoder(name string, schema *arrow.Schema) (*Encoder, error) {
	e := &Encoder{of: c, name: name}
	var err error
	if e.keys, err = keys.NewEncoder(schema, c.Key, c.Options); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(c.Time) == 0 {
		return e, nil
	}
	o := keys.Options{IgnoreCase: c.Options.IgnoreCase, NullMisfits: c.Options.NullMisfits}
	column := c.Time[0]
	if e.times, err = keys.NewEncoder(schema, []keys.Column{column}, o); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	at := fault.At{File: name, Column: column.String()}
	class := e.times.Classes()[0]
	e.text = class == keys.Bytes
	switch {
	case class == keys.Null || e.text:
	case c.Unit > 0 && class != keys.Integer:
		return nil, faults.Mismatch(at, "time column", string(keys.Integer), string(class)).WithHint("leave {TimeUnit} out for timestamps and dates")
	case c.Unit == 0 && class != keys.Timestamp && class != keys.Instant && class != keys.Date:
		err := faults.Mismatch(at, "time column", "timestamp, instant or date", string(class))
		if class == keys.Integer {
			err = err.WithHint("say what the integers count since 1970 with {TimeUnit ms}")
		}
		return nil, err
	}
	return e, nil
}

// Classes returns the classes of the key columns.
func (e *Encoder) Classes() []keys.Class { return e.keys.Classes() }

// Rows are some consecutive rows of an input.
type Rows struct {
	Len     int      // rows, with and without keys
	At      []uint32 // those that have a key and a time, ascending
	Hashes  []uint64 // by position in At
	Slots   []int64
	Rests   []int64 // nanoseconds since the start of the slot; for Columns.Last
	NoKey   int
	NoTime  []int    // rows that have a key and no time; with Columns.Last, they are in At, too
	Exact   [][]byte // by position in At: the keys, with Columns.Exact
	Units   units
	hashes  []uint64 // of the batch
	keys    keys.Batch
	times   keys.Batch
	encoded []byte
}

var pool = sync.Pool{New: func() any { return new(Rows) }}

// Release lets others use the memory.
func (r *Rows) Release() { pool.Put(r) }

// hash is the hash of keys. A sample and exact bookkeeping use other bits of it than the filters.
var hash = bloom.Hash{ID: bloom.XXH3}

// Encode sets r to the rows of a record.
func (e *Encoder) Encode(rec arrow.Record, r *Rows) error {
	r.Len = int(rec.NumRows())
	r.At, r.Hashes, r.Slots, r.Rests, r.NoTime, r.Exact, r.encoded, r.Units = r.At[:0], r.Hashes[:0], r.Slots[:0], r.Rests[:0], r.NoTime[:0], r.Exact[:0], r.encoded[:0], units{}
	if err := e.keys.EncodeKeys(e.name, rec, &r.keys); err != nil {
		return err
	}
	r.NoKey = r.Len - len(r.keys.Rows)
	if e.times != nil {
		if err := e.times.EncodeKeys(e.name, rec, &r.times); err != nil {
			return err
		}
	}
	r.hashes = r.keys.Hash(hash, r.hashes)
	next := 0
	for i, row := range r.keys.Rows {
		slot, rest := int64(0), int64(0)
		if e.times != nil {
			for next < len(r.times.Rows) && r.times.Rows[next] < row {
				next++
			}
			ok := next < len(r.times.Rows) && r.times.Rows[next] == row
			if ok {
				var err error
				if slot, rest, err = e.slot(r, next); err != nil && !(errors.Is(err, keys.ErrMisfit) && e.of.Options.NullMisfits) {
					return err
				}
				ok = err == nil
			}
			if !ok {
				r.NoTime = append(r.NoTime, int(row))
				if !e.of.Last {
					continue
				}
				slot = math.MinInt64 // before all others
			}
		}
		r.At, r.Hashes, r.Slots = append(r.At, row), append(r.Hashes, r.hashes[i]), append(r.Slots, slot)
		r.Rests = append(r.Rests, rest)
		if e.of.Exact {
			from := len(r.encoded)
			r.encoded = r.keys.Append(r.encoded, i)
			r.Exact = append(r.Exact, r.encoded[from:len(r.encoded):len(r.encoded)])
		}
	}
	return nil
}

// slot returns the slot of time i, the nanoseconds since its start, and counts integers by their
// unit. Text without a zone is in UTC.
func (e *Encoder) slot(r *Rows, i int) (slot, within int64, err error) {
	n, negative, unit, rest, parsed := uint64(0), false, uint64(e.of.Unit), uint64(0), true
	if ints, ok := r.times.Ints(); ok {
		n, negative = ints[i], r.times.Negative(i)
		r.Units.count(n, negative)
	} else {
		var buf [16]byte
		b := r.times.Bytes(buf[:0], i)
		v := int64(0)
		switch {
		case e.text && e.of.Unit > 0:
			v, err = strconv.ParseInt(scalar.Trim(string(b)), 10, 64)
			parsed = err == nil
			r.Units.count(uint64(v), v < 0)
		case e.text:
			var frac uint32
			v, frac, _, parsed = scalar.Moment(string(b))
			unit, rest = uint64(time.Second), uint64(frac)
		case len(b) < 12: // a date: days
			v, unit = int64(binary.LittleEndian.Uint64(b)), uint64(24*time.Hour)
		default:
			v, unit, rest = int64(binary.LittleEndian.Uint64(b)), uint64(time.Second), uint64(binary.LittleEndian.Uint32(b[8:]))
		}
		n, negative = uint64(v), v < 0
	}
	if !parsed {
		return 0, 0, e.misfit()
	}
	slot, ok := ring.SlotOf(n, negative, unit, rest, uint64(e.of.Width))
	if !ok {
		at := fault.At{File: e.name, Column: e.of.Time[0].String()}
		if e.of.Last {
			return 0, 0, faults.Unsupported(at, "a time 2^62 seconds or more from 1970").WithHint("check the times; {TimeUnit ns} takes all integers")
		}
		return 0, 0, faults.Unsupported(at, "a time too far from 1970 for slots of %s", e.of.Width).WithHint("check {TimeUnit}, or raise {Window}")
	}
	return slot, int64(n*unit + rest - uint64(slot)*uint64(e.of.Width)), nil // modulo 2^64, which the difference is below
}

// misfit returns the error about a text that is not a time.
func (e *Encoder) misfit() error {
	at := fault.At{File: e.name, Column: e.of.Time[0].String()}
	err := faults.Mismatch(at, "a time that does not parse", "one as 2024-01-31T18:00:00Z", "")
	err.Err = quiet.Error{Err: keys.ErrMisfit}
	if e.of.Unit > 0 {
		err.Want = "a whole number, with {TimeUnit}"
	}
	return err
}
