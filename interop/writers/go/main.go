// Command go writes files by parquet-go, of every type, size and way of
// writing, below a directory: go run . DIR. With -read it reads files.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
)

// rows of the largest files: all with BLOOMJOIN_ALL, as samples.py has it.
var rows = map[bool]int{false: 6000, true: 20_000}[os.Getenv("BLOOMJOIN_ALL") != ""]

// flat has a column of each type, required and optional.
type flat struct {
	ID        int64     `parquet:"id"`
	I8        int8      `parquet:"i8"`
	I16       int16     `parquet:"i16"`
	I32       int32     `parquet:"i32"`
	U8        uint8     `parquet:"u8"`
	U16       uint16    `parquet:"u16"`
	U32       uint32    `parquet:"u32"`
	U64       uint64    `parquet:"u64"`
	F32       float32   `parquet:"f32"`
	F64       float64   `parquet:"f64"`
	Flag      bool      `parquet:"flag"`
	Text      string    `parquet:"text"`
	Few       string    `parquet:"few,enum"`
	Binary    []byte    `parquet:"binary"`
	UUID      [16]byte  `parquet:"uuid,uuid"`
	Fixed     [5]byte   `parquet:"fixed"`
	Dec9      int32     `parquet:"dec9,decimal(2:9)"`
	Dec18     int64     `parquet:"dec18,decimal(4:18)"`
	Dec30     [13]byte  `parquet:"dec30,decimal(6:30)"`
	Day       int32     `parquet:"day,date"`
	Ms        int64     `parquet:"ts_ms,timestamp(millisecond:local)"`
	Us        int64     `parquet:"ts_us,timestamp(microsecond:local)"`
	Instant   time.Time `parquet:"tz_ns,timestamp(nanosecond)"`
	Clock     int32     `parquet:"time_ms,time(millisecond:local)"`
	ClockNs   int64     `parquet:"time_ns,time(nanosecond:local)"`
	JSON      string    `parquet:"json,json"`
	OptI32    *int32    `parquet:"opt_i32,optional"`
	OptI64    *int64    `parquet:"opt_i64,optional"`
	OptU64    *uint64   `parquet:"opt_u64,optional"`
	OptF64    *float64  `parquet:"opt_f64,optional"`
	OptFlag   *bool     `parquet:"opt_flag,optional"`
	OptText   *string   `parquet:"opt_text,optional"`
	OptFixed  *[16]byte `parquet:"opt_fixed,optional"`
	OptMillis *int64    `parquet:"opt_ts,timestamp(millisecond),optional"`
}

// old has timestamps of twelve bytes.
type old struct {
	ID  int64             `parquet:"id"`
	Ts  deprecated.Int96  `parquet:"ts"`
	Opt *deprecated.Int96 `parquet:"opt,optional"`
}

// nested has lists, structures and maps, as groups with annotations and
// without.
type nested struct {
	ID    int64            `parquet:"id"`
	Ints  []int64          `parquet:"ints,list"`
	Bare  []int32          `parquet:"bare"`
	Words []string         `parquet:"words,list"`
	Items []item           `parquet:"items,list"`
	Deep  [][]int32        `parquet:"deep,list"`
	Map   map[string]int64 `parquet:"map"`
	Pair  item             `parquet:"pair"`
	Maybe *outer           `parquet:"maybe,optional"`
}

type item struct {
	A int32   `parquet:"a"`
	B *string `parquet:"b,optional"`
}

type outer struct {
	In   item    `parquet:"in"`
	List []int16 `parquet:"list,list"`
}

// source makes rows; the first of many are those of a few.
type source struct {
	*rand.Rand
	nulls float64
}

func (s source) text(n int) string {
	v := s.IntN(n)
	return fmt.Sprintf("%.*s%d", v%5, "äuxyz", v)
}

func (s source) bytes(n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, s.Uint64())
	}
	return b[:n]
}

func opt[T any](s source, v T) *T {
	if s.Float64() < s.nulls {
		return nil
	}
	return &v
}

func (s source) float() float64 {
	return []float64{s.NormFloat64() * 1000, 0, math.Copysign(0, -1), math.NaN(), math.Inf(1)}[max(s.IntN(200)-195, 0)]
}

func (s source) flat(i int) flat {
	at := time.Unix(1_600_000_000+s.Int64N(1e8), s.Int64N(1e9)).UTC()
	var wide [13]byte
	binary.BigEndian.PutUint64(wide[5:], s.Uint64())
	wide[4] = byte(s.IntN(9))
	return flat{
		ID: int64(i), I8: int8(s.Uint32()), I16: int16(s.Uint32()), I32: int32(s.Uint32()),
		U8: uint8(s.Uint32()), U16: uint16(s.Uint32()), U32: s.Uint32(), U64: s.Uint64(),
		F32: float32(s.float()), F64: s.float(), Flag: s.IntN(3) == 0,
		Text: s.text(rows), Few: s.text(40), Binary: s.bytes(s.IntN(9)), UUID: [16]byte(s.bytes(16)), Fixed: [5]byte(s.bytes(5)),
		Dec9: s.Int32N(1e9) - 5e8, Dec18: s.Int64N(1e18) - 5e17, Dec30: wide,
		Day: s.Int32N(40_000), Ms: at.UnixMilli(), Us: at.UnixMicro(), Instant: at,
		Clock: s.Int32N(86_400_000), ClockNs: s.Int64N(86_400e9), JSON: fmt.Sprintf(`{"a": %d}`, s.IntN(9)),
		OptI32: opt(s, int32(s.Uint32())), OptI64: opt(s, s.Int64()), OptU64: opt(s, s.Uint64()), OptF64: opt(s, s.float()),
		OptFlag: opt(s, s.IntN(2) == 0), OptText: opt(s, s.text(500)), OptFixed: opt(s, [16]byte(s.bytes(16))), OptMillis: opt(s, at.UnixMilli()),
	}
}

func (s source) old(i int) old {
	day := func() deprecated.Int96 {
		nanos, julian := uint64(s.Int64N(86_400e9/1000)*1000), uint32(2_440_588+s.IntN(20_000))
		return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), julian}
	}
	return old{int64(i), day(), opt(s, day())}
}

func (s source) item() item {
	return item{s.Int32N(500), opt(s, s.text(300))}
}

func list[T any](s source, one func() T) []T {
	var l []T
	for range s.IntN(4) {
		l = append(l, one())
	}
	return l
}

func (s source) nested(i int) nested {
	n := nested{
		ID: int64(i), Ints: list(s, s.Int64), Bare: list(s, s.Int32), Words: list(s, func() string { return s.text(30) }),
		Items: list(s, s.item), Deep: list(s, func() []int32 { return list(s, s.Int32) }), Pair: s.item(),
		Maybe: opt(s, outer{s.item(), list(s, func() int16 { return int16(s.Int32()) })}),
	}
	if k := s.text(20); s.IntN(2) == 0 { // one entry, as a Go map has no order
		n.Map = map[string]int64{k: s.Int64()}
	}
	return n
}

// dictionaries are for all types but booleans, which hardly a reader takes so.
func dictionaries(more ...parquet.WriterOption) []parquet.WriterOption {
	for _, k := range []parquet.Kind{parquet.Int32, parquet.Int64, parquet.Int96, parquet.Float, parquet.Double, parquet.ByteArray, parquet.FixedLenByteArray} {
		more = append(more, parquet.DefaultEncodingFor(k, &parquet.RLEDictionary))
	}
	return more
}

var ways = []struct {
	name    string
	nulls   float64
	options []parquet.WriterOption
}{
	{"defaults", 0, nil},
	{"small-v1", 0.15, []parquet.WriterOption{parquet.DataPageVersion(1), parquet.PageBufferSize(300), parquet.Compression(&parquet.Snappy)}},
	{"small-v2", 0.15, []parquet.WriterOption{parquet.DataPageVersion(2), parquet.PageBufferSize(300), parquet.Compression(&parquet.Zstd)}},
	{"v1-gzip", 1, []parquet.WriterOption{parquet.DataPageVersion(1), parquet.Compression(&parquet.Gzip), parquet.MaxRowsPerRowGroup(900)}},
	{"dictionaries", 0.15, dictionaries(parquet.Compression(&parquet.Lz4Raw))},
	{"dictionaries-v1", 0, dictionaries(parquet.DataPageVersion(1), parquet.DictionaryMaxBytes(500), parquet.PageBufferSize(2000))},
	{"plain", 0.15, []parquet.WriterOption{parquet.DefaultEncoding(&parquet.Plain), parquet.Compression(&parquet.Brotli), parquet.DataPageStatistics(true)}},
	{"delta", 1, []parquet.WriterOption{
		parquet.DefaultEncodingFor(parquet.Int32, &parquet.DeltaBinaryPacked), parquet.DefaultEncodingFor(parquet.Int64, &parquet.DeltaBinaryPacked),
		parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.DeltaByteArray), parquet.DefaultEncodingFor(parquet.Double, &parquet.ByteStreamSplit),
		parquet.MaxRowsPerRowGroup(5000),
	}},
}

// write writes one set of rows in every way.
func write[T any](dir string, row func(source, int) T) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, way := range ways {
		s, all := source{rand.New(rand.NewPCG(1, 2)), way.nulls}, make([]T, rows)
		for i := range all {
			all[i] = row(s, i)
		}
		for _, n := range []int{0, 1, 7, 1000, rows} {
			name := fmt.Sprintf("%s-%v-%d.parquet", way.name, way.nulls, n)
			if err := one(filepath.Join(dir, name), all[:n], way.options); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func one[T any](path string, all []T, options []parquet.WriterOption) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := parquet.NewGenericWriter[T](f, options...)
	for len(all) > 0 { // in small writes, so that pages end where they are full
		n := min(len(all), 50)
		if _, err := w.Write(all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run . DIR, or go run . -read <FILES")
	}
	if os.Args[1] == "-read" {
		if err := readAll(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	dir := os.Args[1]
	for _, err := range []error{
		write(filepath.Join(dir, "flat"), source.flat),
		write(filepath.Join(dir, "nested"), source.nested),
		write(filepath.Join(dir, "old"), source.old),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
}
