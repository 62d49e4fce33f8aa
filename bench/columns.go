package main

import (
	"strconv"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
)

// column is a column of generated Parquet files. Like those of most writers it may have
// NULLs. put writes the values of consecutive rows, whose users are given.
type column struct {
	node schema.Node
	put  func(w file.ColumnChunkWriter, row uint64, users []uint64) error
}

// present are definition levels of values that are not NULL.
var present = func() []int16 {
	levels := make([]int16, batchRows)
	for i := range levels {
		levels[i] = 1
	}
	return levels
}()

func node(name string, logical schema.LogicalType, physical parquet.Type) schema.Node {
	return schema.MustPrimitive(schema.NewPrimitiveNodeLogical(name, parquet.Repetitions.Optional, logical, physical, 0, -1))
}

func integers(name string, logical schema.LogicalType, at func(row, user uint64) int64) column {
	values := make([]int64, batchRows)
	return column{node(name, logical, parquet.Types.Int64), func(w file.ColumnChunkWriter, row uint64, users []uint64) error {
		for i, user := range users {
			values[i] = at(row+uint64(i), user)
		}
		_, err := w.(*file.Int64ColumnChunkWriter).WriteBatch(values[:len(users)], present[:len(users)], nil)
		return err
	}}
}

func small(name string, at func(row uint64) int32) column {
	values := make([]int32, batchRows)
	return column{node(name, schema.NewIntLogicalType(32, true), parquet.Types.Int32), func(w file.ColumnChunkWriter, row uint64, users []uint64) error {
		for i := range users {
			values[i] = at(row + uint64(i))
		}
		_, err := w.(*file.Int32ColumnChunkWriter).WriteBatch(values[:len(users)], present[:len(users)], nil)
		return err
	}}
}

// numbers is a column of floating-point numbers, NULL where at says so.
func numbers(name string, at func(row uint64) (value float64, null bool)) column {
	values, levels := make([]float64, batchRows), make([]int16, batchRows)
	return column{node(name, schema.NoLogicalType{}, parquet.Types.Double), func(w file.ColumnChunkWriter, row uint64, users []uint64) error {
		n := 0
		for i := range users {
			v, null := at(row + uint64(i))
			if levels[i] = 0; !null {
				values[n], levels[i] = v, 1
				n++
			}
		}
		_, err := w.(*file.Float64ColumnChunkWriter).WriteBatch(values[:n], levels[:len(users)], nil)
		return err
	}}
}

func texts(name string, appended func(dst []byte, row, user uint64) []byte) column {
	values, buffer := make([]parquet.ByteArray, batchRows), make([]byte, 0, 1<<20)
	return column{node(name, schema.StringLogicalType{}, parquet.Types.ByteArray), func(w file.ColumnChunkWriter, row uint64, users []uint64) error {
		buffer = buffer[:0]
		for i, user := range users {
			at := len(buffer)
			buffer = appended(buffer, row+uint64(i), user)
			values[i] = buffer[at:len(buffer):len(buffer)]
		}
		_, err := w.(*file.ByteArrayColumnChunkWriter).WriteBatch(values[:len(users)], present[:len(users)], nil)
		return err
	}}
}

// key returns the key column.
func (d Data) key() column {
	if d.Key == "string" {
		return texts(keyColumn, func(dst []byte, _, user uint64) []byte { return d.appendKey(dst, user) })
	}
	return integers(keyColumn, schema.NewIntLogicalType(64, true), func(_, user uint64) int64 { return int64(d.keyOf(user)) })
}

// Salts derive independent numbers from one.
const (
	saltTime uint64 = 0xa<<60 + iota
	saltSession
	saltURL
	saltCountry
	saltDevice
	saltEvent
	saltStatus
	saltAmount
	saltDuration
	saltScore
	saltName
	saltWide
)

// skewed returns an index below n, low ones more often.
func skewed(of uint64, n uint64) uint64 {
	r := keyset.Mix(of)
	return min(r%n, r>>32%n, keyset.Mix(r)%n)
}

// event returns the columns of a log: ten, about 65 bytes a row, and more if it is wide.
func (d Data) event() []column {
	countries := []string{"US", "DE", "FR", "GB", "IN", "BR", "JP", "CA", "IT", "ES", "NL", "PL", "SE", "CH", "AT", "BE", "DK", "NO", "FI", "PT"}
	devices := []string{"phone", "desktop", "tablet", "tv", "watch"}
	events := []string{"view", "click", "scroll", "search", "add_to_cart", "login", "checkout", "logout"}
	status := []int32{200, 200, 200, 200, 200, 200, 304, 301, 404, 500}
	one := func(name string, salt uint64, of []string) column {
		return texts(name, func(dst []byte, row, _ uint64) []byte { return append(dst, of[skewed(row^salt, uint64(len(of)))]...) })
	}
	all := []column{
		integers("event_time", schema.NewTimestampLogicalType(false, schema.TimeUnitMicros), func(row, _ uint64) int64 { return d.timeOf(row) }),
		d.key(),
		texts("session_id", func(dst []byte, row, _ uint64) []byte {
			dst = appendHex(dst, keyset.Mix(row^saltSession), 16)
			return appendHex(dst, keyset.Mix(^row^saltSession), 8)
		}),
		texts("url", func(dst []byte, row, _ uint64) []byte {
			path := skewed(row^saltURL, 10_000)
			dst = append(dst, "https://shop.example.com/"...)
			dst = append(dst, byte('a'+path%26))
			dst = append(appendHex(dst, keyset.Mix(path), 12), '/')
			dst = strconv.AppendUint(dst, keyset.Mix(row^saltURL)%100_000, 10)
			return append(append(dst, "?ref="...), events[skewed(^row^saltURL, 8)]...)
		}),
		one("country", saltCountry, countries), one("device", saltDevice, devices), one("event", saltEvent, events),
		small("status", func(row uint64) int32 { return status[keyset.Mix(row^saltStatus)%10] }),
		numbers("amount", func(row uint64) (float64, bool) {
			r := keyset.Mix(row ^ saltAmount)
			return float64(r>>1%100_000) / 100, r&1 == 1
		}),
		small("duration_ms", func(row uint64) int32 { return int32(skewed(row^saltDuration, 1500)) }),
	}
	for i := range d.Wide {
		salt, name := keyset.Mix(saltWide+uint64(i)), "_"+strconv.Itoa(i)
		switch i % 3 {
		case 0:
			all = append(all, small("count"+name, func(row uint64) int32 { return int32(keyset.Mix(row^salt) % 10_000) }))
		case 1:
			all = append(all, numbers("gauge"+name, func(row uint64) (float64, bool) { return float64(keyset.Mix(row^salt)%1000) / 1000, false }))
		default:
			all = append(all, texts("label"+name, func(dst []byte, row, _ uint64) []byte { return appendHex(dst, skewed(row^salt, 500), 8) }))
		}
	}
	return all
}

// timeOf returns the time of a row in microseconds: with Order "year" ascending from the
// begin to the end of 2024, of which days are row groups, otherwise a few each second.
func (d Data) timeOf(row uint64) int64 {
	if d.Order == "year" {
		const begin, year = 1_704_067_200_000_000, 365 * 24 * 3600 * 1_000_000
		return begin + int64(float64(row)/float64(d.Rows)*year)
	}
	return 1_700_000_000_000_000 + int64(row*4000+keyset.Mix(row^saltTime)%30_000)
}

// payload returns the columns of an ID set: the key, an integer, and a string of twelve
// bytes.
func (d Data) payload() []column {
	if d.Plain {
		return []column{d.key()}
	}
	return []column{
		d.key(),
		integers("score", schema.NewIntLogicalType(64, true), func(_, user uint64) int64 { return int64(keyset.Mix(user^saltScore) >> 40) }),
		texts("name", func(dst []byte, _, user uint64) []byte {
			return appendHex(append(dst, "u-"...), keyset.Mix(user^saltName), 10)
		}),
	}
}

// appendHex appends the lowest digits of a number.
func appendHex(dst []byte, v uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		dst = append(dst, "0123456789abcdef"[v>>(4*i)&15])
	}
	return dst
}
