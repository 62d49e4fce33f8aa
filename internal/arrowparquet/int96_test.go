package arrowparquet

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

// make96 returns an INT96 timestamp in its stored form.
func make96(day uint32, nanos uint64) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, nanos), day)
}

func TestInt96Nanos(t *testing.T) {
	nanosOf := func(b []byte) (int64, bool) {
		dst := make([]byte, 8)
		err := int96ToNanos(dst, b)
		return int64(binary.LittleEndian.Uint64(dst)), err == nil
	}
	moment := func(day uint32, d time.Duration) time.Time {
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(day)-2440588).Add(d)
	}
	for _, day := range []uint32{2440588, 2440587, 2451545, 2333836 + 1, 2547338 - 1} {
		for _, d := range []time.Duration{0, 1, 24*time.Hour - 1} {
			got, ok := nanosOf(make96(day, uint64(d)))
			if want := moment(day, d).UnixNano(); !ok || got != want {
				t.Errorf("day %d + %v: got %d, %v, want %d", day, d, got, ok, want)
			}
		}
	}
	// The limits of int64: 1677-09-21T00:12:43.145224192 and 2262-04-11T23:47:16.854775807.
	low, high := uint64(763145224192), uint64(85636854775807)
	for _, c := range []struct {
		day   uint32
		nanos uint64
		want  int64
		ok    bool
	}{
		{2333836, low, -1 << 63, true}, {2333836, low - 1, 0, false},
		{2547339, high, 1<<63 - 1, true}, {2547339, high + 1, 0, false},
		{0, 0, 0, false}, {1 << 31, 0, 0, false},
	} {
		if got, ok := nanosOf(make96(c.day, c.nanos)); got != c.want || ok != c.ok {
			t.Errorf("day %d, %d ns: got %d, %v", c.day, c.nanos, got, ok)
		}
	}
}

func TestInt96Micros(t *testing.T) {
	const day = 86_400 * 1_000_000
	for _, c := range []struct {
		day   uint32
		nanos uint64
		want  int64
		err   string
	}{
		{2440588, 0, 0, ""},
		{2440587, 86_399_999_999_000, -1, ""},
		{5373484, 0, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMicro(), ""}, // Julian day numbers
		{1721426, 0, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), ""},      // according to the US Naval Observatory
		{2440588, 1 << 63, 0, "below a microsecond"},
		{2440589, ^uint64(0) - 999, day - 1, ""}, // -1000 ns
		{2440588, 1, 0, "Int96Nanos true"},
		// Spark's 290000-12-31, from int96_from_spark.parquet of parquet-testing,
		// whose documentation gives the value.
		{^uint32(105862231), ^uint64(32509551615999), 9089380393200000000, ""},
	} {
		dst := make([]byte, 8)
		err := int96ToMicros(dst, make96(c.day, c.nanos))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("day %d, %d ns: %v, want %q", c.day, c.nanos, err, c.err)
			}
			continue
		}
		if got := int64(binary.LittleEndian.Uint64(dst)); err != nil || got != c.want {
			t.Errorf("day %d, %d ns: got %d, %v, want %d", c.day, c.nanos, got, err, c.want)
		}
	}
}
