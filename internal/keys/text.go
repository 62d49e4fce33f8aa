package keys

import (
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
)

// Text returns a key in normal form, as [Batch.Append] has it, as people write it: text as it is,
// other values as casts from text read them. The parts of a composite key are a line of CSV. A
// value without a spelling, such as a date after the year 9999, is written in hexadecimal.
func Text(classes []Class, key []byte) string {
	if len(classes) == 1 {
		return partText(classes[0], key)
	}
	parts := make([]string, len(classes))
	for i, c := range classes {
		size, n := binary.Uvarint(key)
		if n <= 0 || size > uint64(len(key)-n) {
			return hex.EncodeToString(key)
		}
		parts[i], key = partText(c, key[n:n+int(size)]), key[n+int(size):]
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	_ = w.Write(parts) // to memory
	w.Flush()
	return strings.TrimSuffix(line.String(), "\n")
}

// partText is Text for a part.
func partText(c Class, part []byte) string {
	switch c {
	case Bytes:
		return string(part)
	case Instant, Timestamp:
		zone := ""
		if c == Instant {
			zone = "Z"
		}
		if t := time.Unix(int64(binary.LittleEndian.Uint64(part)), int64(binary.LittleEndian.Uint32(part[8:]))).UTC(); t.Year() >= 1 && t.Year() <= 9999 {
			return t.Format("2006-01-02 15:04:05.999999999") + zone
		}
	case Time:
		return time.Unix(0, int64(binary.LittleEndian.Uint64(part))).UTC().Format("15:04:05.999999999")
	case Decimal, Duration:
		if n, ok := Number(c, part); ok {
			places := 9
			if c == Decimal {
				places = max(0, int(int32(binary.LittleEndian.Uint32(part))))
			}
			return n.FloatString(places)
		}
	case Float:
		return strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(part)), 'g', -1, 64)
	case Integer, Boolean, Date, Fixed(16):
		write, _ := toText(c, nil, arrow.BinaryTypes.String)
		if text, ok := write(nil, part); ok {
			return string(text)
		}
	}
	return hex.EncodeToString(part)
}
