package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
)

const key = "user_id"

// logRow is a row of the log: ten columns, most of them with few repeated values,
// which need the most memory in dictionaries and pages of the writer.
type logRow struct {
	UserID  int64   `parquet:"user_id"`
	Session string  `parquet:"session"`
	URL     string  `parquet:"url"`
	Agent   string  `parquet:"agent,dict"`
	Time    int64   `parquet:"time"`
	Seq     int64   `parquet:"seq"`
	Latency int32   `parquet:"latency"`
	Status  int32   `parquet:"status,dict"`
	Amount  float64 `parquet:"amount"`
	OK      bool    `parquet:"ok"`
}

// idRow is an ID. The log has one in ten of them.
type idRow struct {
	UserID  int64  `parquet:"user_id"`
	Name    string `parquet:"name"`
	Score   int32  `parquet:"score"`
	Session string `parquet:"session"`
}

// mix is a permutation of 64 bits (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func user(n uint64) int64    { return int64(mix(n) >> 2) }
func digits(n uint64) string { return fmt.Sprintf("%016x%08x", mix(n^1<<40), uint32(mix(n^1<<41))) }
func logAt(i, rows uint64) logRow {
	return logRow{
		UserID: user(mix(i) % (rows * 4 / 5)), Session: digits(i), URL: fmt.Sprintf("https://example.com/%d/%s", mix(i)%5000, digits(i * 3)[:18]),
		Agent: fmt.Sprintf("agent-%d", mix(i^7)%300), Time: 1_700_000_000_000 + int64(i), Seq: int64(i), Latency: int32(i * 37 % 1_000_000),
		Status: int32(mix(i^9) % 200), Amount: float64(mix(i^11)%100_000) / 7, OK: i%3 == 0,
	}
}

func idAt(i, rows uint64) idRow {
	r := idRow{UserID: user(1<<40 + i), Name: fmt.Sprintf("name-%d", i), Score: int32(i % 1000), Session: digits(i)}
	if i%10 == 0 {
		r.UserID = user(i * 7 % (rows * 4 / 5))
	}
	return r
}

// generate writes log.parquet and ids.parquet with row groups of 250,000 rows, pages
// of 1 MiB and snappy compression.
func generate(dir string, rows int) error {
	n := uint64(rows)
	return errors.Join(
		write(filepath.Join(dir, "log.parquet"), n, func(i uint64) logRow { return logAt(i, n) }),
		write(filepath.Join(dir, "ids.parquet"), n/2, func(i uint64) idRow { return idAt(i, n) }),
	)
}

func write[T any](name string, rows uint64, at func(i uint64) T) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := parquet.NewGenericWriter[T](f, parquet.Compression(&parquet.Snappy), parquet.PageBufferSize(1<<20), parquet.MaxRowsPerRowGroup(250_000))
	batch := make([]T, 0, 4096)
	for i := range rows {
		batch = append(batch, at(i))
		if len(batch) == cap(batch) || i+1 == rows {
			if _, err := w.Write(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return w.Close()
}
