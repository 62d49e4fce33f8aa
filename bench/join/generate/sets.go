package main

import (
	"encoding/hex"
	"math/rand/v2"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
)

// table is a Parquet file: rows 0 to rows-1, whose keys are made a row group at
// a time.
type table struct {
	name    string
	rows    uint64
	keys    func(from, to uint64) []uint64
	columns []column
}

// column makes a value from a row and its key: an integer, or if text is not
// nil a string.
type column struct {
	name    string
	integer func(row, key uint64) int64
	text    func(dst []byte, row, key uint64) []byte
}

// Salts make of one number several that have nothing to do with each other.
const (
	saltSession uint64 = 0xa<<60 + iota
	saltAmount
	saltScore
	saltName
)

// keyName is the column that logs and IDs are joined on.
const keyName = "user_id"

func keyColumn() column {
	return column{name: keyName, integer: func(_, key uint64) int64 { return int64(key) }}
}

// payload is what an ID has besides its key: an integer, and a string of twelve
// bytes.
func payload() []column {
	return []column{
		keyColumn(),
		{name: "score", integer: func(_, key uint64) int64 { return int64(keyset.Mix(key^saltScore) >> 32) }},
		{name: "name", text: func(dst []byte, _, key uint64) []byte {
			return append(append(dst, "u-"...), digits(key ^ saltName)[:10]...)
		}},
	}
}

// event is what a log of ours has: 40 bytes a row.
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

// byRow makes the keys of rows one by one.
func byRow(key func(row uint64) uint64) func(from, to uint64) []uint64 {
	return func(from, to uint64) []uint64 {
		all := make([]uint64, to-from)
		for i := range all {
			all[i] = key(from + uint64(i))
		}
		return all
	}
}

// userKey is the key of a user of bench/scan's logs: generate.py there says the
// same. Users are numbered from 0, their keys are distinct and below 2^40.
func userKey(user uint64) uint64 {
	const mask = 1<<40 - 1
	for _, odd := range [...]uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9} {
		user = user * odd & mask
		user ^= user >> 20
	}
	return user
}

// usersFiles has a set of IDs of which one in rows/members is a user of the log;
// the others have numbers that no user has.
func (r request) usersFiles() []table {
	every := r.rows / r.members
	return []table{{name: "ids", rows: r.rows, columns: payload(), keys: byRow(func(row uint64) uint64 {
		if row%every == 0 && row/every < r.members {
			return userKey(row / every)
		}
		return userKey(r.users + row)
	})}}
}

// denseFiles has IDs of which one in four of 4·rows integers is, and a log whose
// users are drawn from 100·rows of them: 1 % of its rows match.
func (r request) denseFiles() []table {
	ids := keyset.Dense(4 * r.rows)
	return []table{
		{name: "ids", rows: r.rows, columns: payload(), keys: byRow(ids.At)},
		{name: "log", rows: r.rows, columns: event(), keys: byRow(func(row uint64) uint64 { return keyset.Draw(row, 100*r.rows) })},
	}
}

// heavyShare is the share of the rows that the heaviest user has, in per cent.
const heavyShare = 30

// zipfExponent is that of the log zipf: of its n users the k-th has a share of
// rows like 1/k^1.2.
const zipfExponent = 1.2

// skewFiles has as many users as rows, and the IDs of every other one, the
// heaviest among them: in each log about half of the rows or a little more
// match.
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

// pairFiles has a log and IDs of which one key in ten is on both sides, each
// once a side, in no order.
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
