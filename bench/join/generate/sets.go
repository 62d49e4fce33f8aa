package main

import (
	"encoding/hex"
	"math/rand/v2"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
)

// table is a Parquet file with rows 0 to rows-1. Keys are generated per row group.
type table struct {
	name    string
	rows    uint64
	keys    func(from, to uint64) []uint64
	columns []column
}

// column generates values from a row and its key: integers, or strings if text is not
// nil.
type column struct {
	name    string
	integer func(row, key uint64) int64
	text    func(dst []byte, row, key uint64) []byte
}

// Salts derive independent numbers from one.
const (
	saltSession uint64 = 0xa<<60 + iota
	saltAmount
	saltScore
	saltName
)

// keyName is the join column.
const keyName = "user_id"

func keyColumn() column {
	return column{name: keyName, integer: func(_, key uint64) int64 { return int64(key) }}
}

// payload are the columns of an ID other than the key: an integer, and a string of
// twelve bytes.
func payload() []column {
	return []column{
		keyColumn(),
		{name: "score", integer: func(_, key uint64) int64 { return int64(keyset.Mix(key^saltScore) >> 32) }},
		{name: "name", text: func(dst []byte, _, key uint64) []byte {
			return append(append(dst, "u-"...), digits(key ^ saltName)[:10]...)
		}},
	}
}

// event are the columns of a generated log, with 40 bytes per row.
func event() []column {
	return []column{
		{name: "event_time", integer: func(row, _ uint64) int64 { return int64(1_700_000_000_000_000 + 4000*row) }},
		keyColumn(),
		{name: "session_id", text: func(dst []byte, row, _ uint64) []byte { return append(dst, digits(row^saltSession)...) }},
		{name: "amount", integer: func(row, _ uint64) int64 { return int64(keyset.Mix(row^saltAmount) % 10_000) }},
	}
}

// digits returns 16 hexadecimal digits that look random.
func digits(of uint64) []byte {
	z := keyset.Mix(of)
	var octets [8]byte
	for i := range octets {
		octets[i] = byte(z >> (56 - 8*i))
	}
	return hex.AppendEncode(nil, octets[:])
}

// byRow generates the keys of rows independently.
func byRow(key func(row uint64) uint64) func(from, to uint64) []uint64 {
	return func(from, to uint64) []uint64 {
		all := make([]uint64, to-from)
		for i := range all {
			all[i] = key(from + uint64(i))
		}
		return all
	}
}

// userKey returns the key of a user in bench/scan's logs, as generate.py does. Users
// are numbered from 0. Keys are distinct and below 2^40.
func userKey(user uint64) uint64 {
	const mask = 1<<40 - 1
	for _, odd := range [...]uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9} {
		user = user * odd & mask
		user ^= user >> 20
	}
	return user
}

// usersFiles returns a set of IDs of which one in rows/members is a user of the log.
func (r request) usersFiles() []table {
	every := r.rows / r.members
	return []table{{name: "ids", rows: r.rows, columns: payload(), keys: byRow(func(row uint64) uint64 {
		if row%every == 0 && row/every < r.members {
			return userKey(row / every)
		}
		return userKey(r.users + row)
	})}}
}

// denseFiles returns IDs that are one in four of 4·rows integers, and a log whose
// users are drawn from 100·rows integers, so 1 % of its rows match.
func (r request) denseFiles() []table {
	ids := keyset.Dense(4 * r.rows)
	return []table{
		{name: "ids", rows: r.rows, columns: payload(), keys: byRow(ids.At)},
		{name: "log", rows: r.rows, columns: event(), keys: byRow(func(row uint64) uint64 { return keyset.Draw(row, 100*r.rows) })},
	}
}

// heavyShare is the heaviest user's share of the rows, in per cent.
const heavyShare = 30

// zipfExponent is the exponent of the log zipf: the share of its k-th user is
// proportional to 1/k^1.2.
const zipfExponent = 1.2

// skewFiles returns logs with as many users as rows, and the IDs of every other user
// including the heaviest. In each log about half of the rows or a little more match.
func (r request) skewFiles() []table {
	key := func(user uint64) uint64 { return keyset.Sparse().At(user) }
	draw := func(row uint64) uint64 { return keyset.Draw(row, r.rows) }
	return []table{
		{name: "ids", rows: r.rows / 2, columns: payload(), keys: byRow(func(row uint64) uint64 { return key(2 * row) })},
		{name: "uniform", rows: r.rows, columns: event(), keys: byRow(func(row uint64) uint64 { return key(draw(row)) })},
		{name: "heavy", rows: r.rows, columns: event(), keys: byRow(func(row uint64) uint64 {
			if keyset.Mix(^row)%100 < heavyShare {
				return key(0)
			}
			return key(draw(row))
		})},
		{name: "zipf", rows: r.rows, columns: event(), keys: func(from, to uint64) []uint64 {
			rank := rand.NewZipf(rand.New(rand.NewPCG(from, to)), zipfExponent, 1, r.rows-1)
			return byRow(func(uint64) uint64 { return key(rank.Uint64()) })(from, to)
		}},
	}
}

// pairFiles returns a log and IDs with unique keys in random order. One key in ten is
// on both sides.
func (r request) pairFiles() []table {
	order := keyset.Dense(r.rows)
	side := func(name, value string, first, turn uint64) table {
		return table{
			name: name, rows: r.rows, columns: []column{
				{name: keyName, integer: func(_, key uint64) int64 { return int64(key) }},
				{name: value, integer: func(row, key uint64) int64 { return int64(keyset.Mix(row ^ keyset.Mix(key))) }},
			},
			keys: byRow(func(row uint64) uint64 { return keyset.Sparse().At(first + order.At((row+turn)%r.rows)) }),
		}
	}
	return []table{side("log", "amount", 0, 0), side("ids", "score", r.rows-r.rows/10, r.rows/3)}
}
