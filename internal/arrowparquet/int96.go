package arrowparquet

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// int96Form is what INT96 timestamps are converted to. It is chosen in advance, so
// that the type of a column does not depend on its values.
type int96Form uint8

const (
	int96Micros int96Form = iota // timestamp[us]: all years, six fractional digits
	int96Nanos                   // timestamp[ns]: the years 1677 to 2262, all digits
	int96Stored                  // the 12 bytes as stored, for keys

	int96Instants int96Form = 1 << 7 // beside one of these: in UTC
)

// values returns the Arrow type and the sink for its values.
func (f int96Form) values() (arrow.DataType, sinkFunc) {
	zone, stored := "", keys.Int96
	if f&int96Instants != 0 {
		zone, stored = "UTC", keys.Int96Instants
	}
	switch f &^ int96Instants {
	case int96Nanos:
		return &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: zone}, convertSink(12, 8, int96ToNanos)
	case int96Stored:
		return stored, copySink(12)
	}
	return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: zone}, convertSink(12, 8, int96ToMicros)
}

func int96ToMicros(dst, src []byte) error {
	sec, nanos := keys.SplitInt96(src)
	if nanos%1000 != 0 {
		return faults.Unsupported(fault.At{}, "an INT96 timestamp with digits below a microsecond").
			WithHint("{Int96Nanos true} keeps nanoseconds, in the years 1677 to 2262")
	}
	v, ok := addTime(sec, 1e6, int64(nanos/1000))
	if !ok {
		return faults.Unsupported(fault.At{}, "an INT96 timestamp that does not fit into 64 bits of microseconds")
	}
	binary.LittleEndian.PutUint64(dst, uint64(v))
	return nil
}

func int96ToNanos(dst, src []byte) error {
	sec, nanos := keys.SplitInt96(src)
	v, ok := addTime(sec, 1e9, int64(nanos))
	if !ok {
		return faults.Unsupported(fault.At{}, "an INT96 timestamp outside the years 1677 to 2262").
			WithHint("{Int96Nanos false}, the default, reads all years, to the microsecond")
	}
	binary.LittleEndian.PutUint64(dst, uint64(v))
	return nil
}

// addTime returns a number of seconds plus a number of parts, less than a second,
// in parts. A second has perSecond parts. ok is false if the sum does not fit.
func addTime(seconds, perSecond, parts int64) (v int64, ok bool) {
	if seconds < 0 && parts > 0 { // make the signs equal, so that if the sum fits, so does the product
		seconds, parts = seconds+1, parts-perSecond
	}
	if seconds > math.MaxInt64/perSecond || seconds < math.MinInt64/perSecond {
		return 0, false
	}
	v = seconds*perSecond + parts
	return v, (v < 0) == (seconds < 0 || parts < 0)
}
