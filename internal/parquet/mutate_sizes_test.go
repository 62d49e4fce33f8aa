package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	pg "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// TestHostileSizes reads tiny files whose pages expand to the largest allowed size.
// It takes a while and runs only with 100,000 mutations or more.
func TestHostileSizes(t *testing.T) {
	if mutations(t) < 100_000 {
		t.Skip("few mutations: not now")
	}
	type column struct {
		N *int32 `parquet:"n"`
	}
	type text struct {
		S string `parquet:"s,plain"`
	}
	const block = 1 << 20         // the largest of the delta encoding
	zeros := func(n int) []byte { // lengths, about a byte per 2^20
		b := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, block), 1), uint64(n))
		b = append(b, 0)
		return append(b, make([]byte, 2*((n-1+block-1)/block))...)
	}
	level := binary.LittleEndian.AppendUint32(nil, 5)
	level = append(binary.AppendUvarint(level, MaxPageValues<<1), 1)
	zipped := func(b []byte) []byte {
		w, _ := zstd.NewWriter(nil)
		return w.EncodeAll(b, nil)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(hostileMemory))
	number, words := oneColumn(t, []column{{new(int32)}}), oneColumn(t, []text{{"a"}})
	for name, c := range map[string]struct {
		base  *apart
		codec format.CompressionCodec
		enc   format.Encoding
		n     int
		size  int
		body  []byte
	}{
		"as many levels":        {number, format.Zstd, format.DeltaBinaryPacked, MaxPageValues, 0, append(level, zeros(MaxPageValues)...)},
		"as many empty strings": {words, format.Zstd, format.DeltaByteArray, MaxPageValues, 0, append(zeros(MaxPageValues), zeros(MaxPageValues)...)},
		"as many lengths":       {words, format.Zstd, format.DeltaLengthByteArray, MaxPageValues, 0, zeros(MaxPageValues)},
		"as many bytes":         {words, format.Zstd, format.Plain, enc.MaxPageSize / 4, 0, make([]byte, enc.MaxPageSize)},
		"one string":            {words, format.Zstd, format.Plain, 1, 0, binary.LittleEndian.AppendUint32(nil, 7)},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.base.clone()
			p := &m.chunks[0][0][0]
			p.body = zipped(c.body)
			p.header.UncompressedPageSize, p.header.CompressedPageSize = int32(len(c.body)), int32(len(p.body))
			p.header.DataPageHeader.V.NumValues, p.header.DataPageHeader.V.Encoding = int32(c.n), c.enc
			p.header.CRC.Valid = false
			b, err := m.assemble(func(decoded *meta.Footer) {
				md := &decoded.RowGroups[0].Columns[0].MetaData
				md.NumValues, md.Codec = int64(c.n), c.codec
				decoded.NumRows, decoded.RowGroups[0].NumRows = int64(c.n), int64(c.n)
			})
			if err != nil {
				t.Fatal(err)
			}
			var errs []error
			runtime.GC()
			peak, ok := bounded(time.Minute, func() { errs = sizes(b, c.n) })
			t.Logf("%d bytes: %v, %d MiB", len(b), errs, peak>>20)
			if own := uint64(c.n) * 2; !ok || peak > hostileMemory+own { // the selected rows are the test's memory
				t.Errorf("%d bytes took %d MiB, or more than a minute", len(b), peak>>20)
			}
		})
	}
}

// sizes reads the only chunk of a file, then every other row of it.
func sizes(b []byte, n int) (errs []error) {
	f, err := Open(nil, bytes.NewReader(b), int64(len(b)), "x")
	if err != nil {
		return []error{err}
	}
	rows := make([]uint32, 0, n/2)
	for i := 1; i < n; i += 2 {
		rows = append(rows, uint32(i))
	}
	for _, rows := range [][]uint32{nil, rows} {
		c := f.Chunk(0, 0)
		if rows != nil {
			c.Select(rows)
		}
		for err = nil; err == nil; {
			_, err = c.Next(context.Background())
		}
		errs = append(errs, err)
		c.Close()
		runtime.GC()
	}
	return errs
}

// oneColumn is a file of one page.
func oneColumn[T any](t testing.TB, rows []T) *apart {
	var out bytes.Buffer
	w := pg.NewGenericWriter[T](&out, pg.DataPageVersion(1))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := takeApart("x", out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return m
}
