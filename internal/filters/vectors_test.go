package filters

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// A vector is a file with exactly one fault: everything else in it, including
// checksums, is correct. In testdata/vectors it follows a text header:
//
//	expect: corrupt | newer | limit
//	error: a part of the message
//
// and an empty line.
type vector struct {
	name   string
	expect string
	text   string
	file   func(t testing.TB) []byte
}

// base is a small compressed Bloom filter; rawBase is an uncompressed one of two
// pages; exactBase is an exact set.
func base(t testing.TB) *pieces {
	return dismantle(t, encode(t, bloomFilter(t, 32, keysFrom(8, 5)), Options{}))
}

func rawBase(t testing.TB) *pieces {
	return dismantle(t, encode(t, bloomFilter(t, 4, keysFrom(8, 30)), Options{}))
}

// base512 is a Bloom filter of the second geometry.
func base512(t testing.TB) *pieces {
	return dismantle(t, encode(t, splitFilter(t, bloom.Split512, 4, keysFrom(8, 30)), Options{}))
}

func exactBase(t testing.TB) *pieces {
	return dismantle(t, encode(t, exactFilter([]uint64{1, 2, 3}, false), Options{}))
}

func partialBase(t testing.TB) *pieces {
	f := bloomFilter(t, 4, keysFrom(8, 30))
	f.facts.Partial = &Partial{Of: 11, Held: []uint32{2, 3}}
	return dismantle(t, encode(t, f, Options{}))
}

// exceptBase is a Bloom filter with exceptions.
func exceptBase(t testing.TB) *pieces {
	f := bloomFilter(t, 4, keysFrom(8, 30))
	f.facts.Exceptions = &Exceptions{Hashes: hashSet(3, 1<<50), Known: 9, Digest: [32]byte{1}}
	return dismantle(t, encode(t, f, Options{}))
}

// ruleBase is a Bloom filter of lower-case strings.
func ruleBase(t testing.TB) *pieces {
	return dismantle(t, encode(t, ruled(t, "lower,ascii-only", "bytes", "anna", "otto"), Options{}))
}

// countingBase is a counting filter that counts each key once.
func countingBase(t testing.TB) *pieces {
	return dismantle(t, encode(t, countingFilter(t, 4, false, keysFrom(8, 30)), Options{Uncompressed: true}))
}

// edit returns a vector's file: a base with one change.
func edit(of func(testing.TB) *pieces, change func(d *pieces)) func(testing.TB) []byte {
	return func(t testing.TB) []byte {
		d := of(t)
		change(d)
		return d.assemble()
	}
}

// patch returns a vector's file: the bytes of base, changed.
func patch(change func(b []byte) []byte) func(testing.TB) []byte {
	return func(t testing.TB) []byte { return change(base(t).assemble()) }
}

func putFPR(p float64) func(d *pieces) {
	return func(d *pieces) {
		binary.LittleEndian.PutUint64(d.section(secSet).body[16:], math.Float64bits(p))
	}
}

func putCapacityOf(keys, blocks uint64) func(d *pieces) {
	return func(d *pieces) {
		body := binary.LittleEndian.AppendUint64(nil, keys)
		d.sections = append(d.sections, piece{secCapacity, 0, binary.LittleEndian.AppendUint64(body, blocks)})
	}
}

// withMembers replaces the natural members of an exact filter by the bytes of {1,2,4},
// changed: count, first member, parameter, gaps.
func withMembers(change func(b []byte) []byte) func(testing.TB) []byte {
	return func(t testing.TB) []byte {
		d := exactBase(t)
		b := change([]byte{3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0b101})
		binary.LittleEndian.PutUint64(d.section(secPayload).body[8:], 8)
		binary.LittleEndian.PutUint64(d.section(secPayload).body[16:], uint64(len(b)))
		return swapped(d, append(make([]byte, 8), b...))
	}
}

func vectors() []vector {
	le := binary.LittleEndian
	return []vector{
		{"bad-magic", "corrupt", "magic", patch(func(b []byte) []byte { copy(b, "PAR1"); return resum(b) })},
		{"text-mode-transfer", "corrupt", "line ends", patch(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) })},
		{"prologue-checksum", "corrupt", "prologue: checksum", patch(func(b []byte) []byte { b[17] ^= 1; return resum(b) })},
		{"version-too-new", "newer", "newer version", edit(base, func(d *pieces) { d.version, d.reader = 2, 2 })},
		{"reader-above-version", "corrupt", "versions", edit(base, func(d *pieces) { d.version, d.reader = 0, 1 })},
		{"reader-zero", "corrupt", "versions", edit(base, func(d *pieces) { d.reader = 0 })},
		{"header-size-beyond-file", "corrupt", "header size", patch(func(b []byte) []byte {
			le.PutUint32(b[12:], math.MaxUint32-7)
			return repair(b)
		})},
		{"unknown-critical-section", "newer", "section of type 4000", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{4000, flagCritical, []byte("x")})
		})},
		{"unknown-section-flags", "corrupt", "flags", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{4000, 2, []byte("x")})
		})},
		{"section-checksum", "corrupt", "section key: checksum", patch(func(b []byte) []byte { b[40] ^= 1; return resum(b) })},
		{"section-padding", "corrupt", "padding", patch(func(b []byte) []byte {
			size := int(le.Uint32(b[prologueBytes+4:]))
			b[prologueBytes+8+size] = 1
			return repair(b)
		})},
		{"section-length", "corrupt", "length", patch(func(b []byte) []byte { b[prologueBytes+6] = 1; return resum(b) })},
		{"section-twice", "corrupt", "section set: stands twice", edit(base, func(d *pieces) {
			d.sections = append(d.sections[:3], d.sections[2:]...)
		})},
		{"section-order", "corrupt", "order", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{secPartial, flagCritical, []byte("\x02\x00\x00\x00\x01")})
		})},
		{"section-missing", "corrupt", "section parameters: missing", edit(base, func(d *pieces) { d.remove(secParams) })},
		{"section-last-missing", "corrupt", "section payload: missing", edit(base, func(d *pieces) { d.sections = d.sections[:3] })},
		{"section-critical-flag", "corrupt", "critical flag", edit(base, func(d *pieces) { d.section(secParams).flags = 0 })},
		{"section-empty", "corrupt", "section set: empty", edit(base, func(d *pieces) { d.section(secSet).body = nil })},
		{"section-too-long", "corrupt", "section set: too long", edit(base, func(d *pieces) {
			s := d.section(secSet)
			s.body = append(s.body, 0)
		})},
		{"section-too-short", "corrupt", "section set: too short", edit(base, func(d *pieces) { d.section(secSet).body = d.section(secSet).body[:20] })},
		{"chunks-in-header", "corrupt", "before the payload", edit(base, func(d *pieces) { d.sections = append(d.sections, d.table) })},

		{"key-none", "corrupt", "key columns", edit(base, func(d *pieces) { d.section(secKey).body = []byte{1, 0, '1', 0, 0} })},
		{"key-class-unknown", "newer", "key class", edit(base, func(d *pieces) {
			s := d.section(secKey)
			s.body = bytes.Replace(s.body, []byte("integer"), []byte("matrix7"), 1)
		})},
		{"normal-form-empty", "corrupt", "normal form", edit(base, func(d *pieces) {
			s := d.section(secKey)
			s.body = append([]byte{0, 0}, s.body[3:]...)
		})},
		{"geometry-unknown", "newer", "geometry 9", edit(base, func(d *pieces) { d.section(secParams).body[0] = 9 })},
		{"geometry-3", "newer", "geometry 3", edit(base512, func(d *pieces) { d.section(secParams).body[0] = 3 })},
		{"geometry-unlike-payload", "corrupt", "payload of the Bloom filter: want 128 bytes, got 256", edit(base512, func(d *pieces) { d.section(secParams).body[0] = byte(bloom.Split256) })},
		{"hash-reserved", "newer", "keyed hash", edit(base, func(d *pieces) { d.section(secParams).body[1] = byte(bloom.Keyed) })},
		{"hash-unknown", "newer", "hash 77", edit(base, func(d *pieces) { d.section(secParams).body[1] = 77 })},
		{"xxh64-seed", "newer", "xxh64 seed 7", edit(base, func(d *pieces) { d.section(secParams).body[1] = byte(bloom.XXH64) })},
		{"reserved-bytes", "corrupt", "reserved", edit(base, func(d *pieces) { d.section(secParams).body[3] = 1 })},
		{"blocks-zero", "corrupt", "0 blocks", edit(base, func(d *pieces) { le.PutUint64(d.section(secParams).body[16:], 0) })},
		{"blocks-2-to-60", "corrupt", "blocks", edit(base, func(d *pieces) {
			le.PutUint64(d.section(secParams).body[16:], 1<<60)
			le.PutUint64(d.section(secPayload).body[8:], 0)
		})},
		{"blocks-2-to-32", "corrupt", "table of 131072 chunks", edit(base, func(d *pieces) {
			le.PutUint64(d.section(secParams).body[16:], 1<<32)
			le.PutUint64(d.section(secPayload).body[8:], 1<<37)
		})},
		{"blocks-2-to-32-of-512", "corrupt", "table of 262144 chunks", edit(base512, func(d *pieces) {
			le.PutUint64(d.section(secParams).body[16:], 1<<32)
			le.PutUint64(d.section(secPayload).body[8:], 1<<38)
		})},
		{"blocks-unlike-payload", "corrupt", "payload of the Bloom filter", edit(base, func(d *pieces) { d.section(secParams).body[16] = 5 })},
		{"kind-unknown", "newer", "kind", edit(base, func(d *pieces) { d.section(secSet).body[0] = 5 })},
		{"counting-alone", "corrupt", "section counting", edit(base, func(d *pieces) { d.section(secSet).body[0] = 4; le.PutUint64(d.section(secPayload).body[8:], 32*128) })},
		{"counting-elsewhere", "corrupt", "section counting", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{id: secCounting, flags: flagCritical, body: make([]byte, 16)})
		})},
		{"counting-wanted", "corrupt", "wanted kind", edit(base, func(d *pieces) { d.section(secSet).body[1] = 4 })},
		{"counting-unwanted", "corrupt", "wanted kind", edit(countingBase, func(d *pieces) { d.section(secSet).body[1] = 1 })},
		{"counting-geometry", "newer", "counting filter in split-512", edit(countingBase, func(d *pieces) { d.section(secParams).body[0] = 2 })},
		{"counting-blocks", "newer", "counting filter of", edit(countingBase, func(d *pieces) { d.section(secParams).body[19] = 0x80; d.section(secParams).body[16]++ })},
		{"counting-payload", "corrupt", "payload of the counting filter", edit(countingBase, func(d *pieces) { d.section(secParams).body[16]-- })},
		{"counting-mode", "newer", "mode", edit(countingBase, func(d *pieces) { d.section(secCounting).body[0] = 2 })},
		{"counting-reserved", "corrupt", "reserved", edit(countingBase, func(d *pieces) { d.section(secCounting).body[7] = 1 })},
		{"counting-short", "corrupt", "too short", edit(countingBase, func(d *pieces) { d.section(secCounting).body = d.section(secCounting).body[:15] })},
		{"counting-partial-set", "corrupt", "a multiset", edit(partialBase, func(d *pieces) {
			d.section(secSet).body[0], d.section(secSet).body[1] = 4, 4
			le.PutUint64(d.section(secPayload).body[8:], 4*128)
			d.sections = append(d.sections, piece{id: secCounting, flags: flagCritical, body: make([]byte, 16)})
		})},
		{"counting-saturated", "corrupt", "saturated counters: want 1, got 0", edit(countingBase, func(d *pieces) { d.section(secCounting).body[8] = 1 })},
		{"counting-saturated-all", "corrupt", "saturated counters: want at most 1024, got 4294967296", edit(countingBase, func(d *pieces) { d.section(secCounting).body[12] = 1 })},
		{"want-unknown", "newer", "wanted kind", edit(base, func(d *pieces) { d.section(secSet).body[1] = 3 })},
		{"fpr-nan", "corrupt", "fpr asked", edit(base, putFPR(math.NaN()))},
		{"fpr-zero", "corrupt", "fpr asked", edit(base, putFPR(0))},
		{"fpr-negative", "corrupt", "fpr asked", edit(base, putFPR(-0.01))},
		{"fpr-one", "corrupt", "fpr asked", edit(base, putFPR(1))},
		{"fpr-infinite", "corrupt", "fpr asked", edit(base, putFPR(math.Inf(1)))},

		{"shard-beyond", "corrupt", "shard held: want below 11, got 11", edit(partialBase, func(d *pieces) { d.section(secPartial).body[5] |= 8 })},
		{"shards-none-held", "corrupt", "shards held", edit(partialBase, func(d *pieces) { copy(d.section(secPartial).body[4:], "\x00\x00") })},
		{"shards-of-zero", "corrupt", "shards of the build", edit(partialBase, func(d *pieces) { d.section(secPartial).body = make([]byte, 4) })},
		{"shards-of-too-many", "corrupt", "shards of the build", edit(partialBase, func(d *pieces) { copy(d.section(secPartial).body, "\xff\xff\xff\xff") })},
		{"shards-bitmap-short", "corrupt", "section partial: too short", edit(partialBase, func(d *pieces) { d.section(secPartial).body = d.section(secPartial).body[:5] })},
		{"build-missing", "corrupt", "build id", edit(partialBase, func(d *pieces) { d.remove(secBuild) })},
		{"build-zero", "corrupt", "section build id", edit(partialBase, func(d *pieces) { clear(d.section(secBuild).body) })},
		{"range-nothing", "corrupt", "section key range: says nothing", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{secRange, 0, []byte{0}})
		})},
		{"range-flags", "corrupt", "section key range: flags", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{secRange, 0, []byte{4}})
		})},
		{"range-nan-of-integer", "corrupt", "NaN among keys", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{secRange, 0, []byte{2}})
		})},
		{"range-bound-form", "corrupt", "key bound", edit(base, func(d *pieces) {
			bound := append([]byte{8, 0, 0, 0}, make([]byte, 8)...)
			d.sections = append(d.sections, piece{secRange, 0, append(append([]byte{1}, bound...), bound...)})
		})},
		{"range-bound-beyond-section", "corrupt", "section key range: too short", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{secRange, 0, []byte{1, 0xff, 0xff, 0xff, 0xff}})
		})},
		{"registers-length", "corrupt", "registers", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{secRegisters, 0, make([]byte, RegisterCount/2)})
		})},
		{"register-value", "corrupt", "register", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{secRegisters, 0, bytes.Repeat([]byte{MaxRegister + 1}, RegisterCount)})
		})},
		{"parents-length", "corrupt", "section parents: too short", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{secParents, 0, make([]byte, 33)})
		})},
		{"capacity-of-no-keys", "corrupt", "capacity: want at least 1 key", edit(base, putCapacityOf(0, 32))},
		{"capacity-without-blocks", "corrupt", "blocks for the capacity: want 1 to 4294967296, got 0", edit(exactBase, putCapacityOf(9, 0))},
		{"capacity-2-to-60", "corrupt", "blocks for the capacity: want 1 to 4294967296", edit(exactBase, putCapacityOf(9, 1<<60))},
		{"capacity-of-another-size", "corrupt", "want 32 as in the parameters, got 31", edit(base, putCapacityOf(9, 31))},
		{"capacity-nothing", "corrupt", "section capacity: says nothing", edit(base, putCapacityOf(0, 0))},
		{"capacity-critical", "corrupt", "section capacity: critical flag", edit(base, func(d *pieces) {
			putCapacityOf(9, 32)(d)
			d.section(secCapacity).flags = flagCritical
		})},
		{"capacity-too-short", "corrupt", "section capacity: too short", edit(base, func(d *pieces) {
			putCapacityOf(9, 32)(d)
			d.section(secCapacity).body = d.section(secCapacity).body[:15]
		})},

		{"rule-nothing", "corrupt", "section rule: says nothing", edit(ruleBase, func(d *pieces) { d.section(secRule).body[0] = 0 })},
		{"rule-unknown", "newer", "section rule: unknown", edit(ruleBase, func(d *pieces) { d.section(secRule).body[0] |= 0x40 })},
		{"rule-unicode-alone", "corrupt", "rule: want some of trim,lower,uuid,url,url-host", edit(ruleBase, func(d *pieces) { d.section(secRule).body[0] = 0x20 })},
		{"rule-unknown-high", "newer", "section rule: unknown", edit(ruleBase, func(d *pieces) { d.section(secRule).body[3] = 0x80 })},
		{"rule-not-critical", "corrupt", "section rule: critical flag", edit(ruleBase, func(d *pieces) { d.section(secRule).flags = 0 })},
		{"rule-length", "corrupt", "section rule: too short", edit(ruleBase, func(d *pieces) { d.section(secRule).body = d.section(secRule).body[:1] })},
		{"rule-of-integers", "corrupt", "key under the rule lower,ascii-only: want a column of class bytes, got integer", edit(base, func(d *pieces) {
			d.sections = append(d.sections, piece{secRule, flagCritical, []byte{2, 0, 0, 0}})
		})},
		{"rule-uuid-of-text", "corrupt", "key under the rule lower,uuid,ascii-only: want a column of class fixed[16], got bytes", edit(ruleBase, func(d *pieces) { d.section(secRule).body[0] |= 4 })},

		{"rule-two-of-urls", "corrupt", "rule: want some of trim,lower,uuid,url,url-host", edit(ruleBase, func(d *pieces) { d.section(secRule).body[0] = 0x18 })},
		{"rule-host-of-two", "corrupt", "key under the rule url-host: want one column, got 2", edit(ruleBase, func(d *pieces) {
			d.section(secRule).body[0] = 0x10
			s := d.section(secKey)
			s.body[3] = 2
			s.body = append(s.body, s.body[5:]...)
		})},

		{"exceptions-not-critical", "corrupt", "section exceptions: critical flag", edit(exceptBase, func(d *pieces) { d.section(secExcept).flags = 0 })},
		{"exceptions-short", "corrupt", "section exceptions: too short", edit(exceptBase, func(d *pieces) { d.section(secExcept).body = d.section(secExcept).body[:39] })},
		{"exceptions-members", "corrupt", "section exceptions: ", edit(exceptBase, func(d *pieces) { d.section(secExcept).body = d.section(secExcept).body[:40] })},
		{"exceptions-behind", "corrupt", "section exceptions: ", edit(exceptBase, func(d *pieces) { d.section(secExcept).body = append(d.section(secExcept).body, 0) })},
		{"exceptions-nothing", "corrupt", "exceptions: want some, or known keys", edit(exceptBase, func(d *pieces) { d.section(secExcept).body = make([]byte, 48) })},
		{"exceptions-unknown", "corrupt", "exceptions: want some, or known keys", edit(exceptBase, func(d *pieces) { clear(d.section(secExcept).body[32:40]) })},
		{"exceptions-of-exact", "corrupt", "exceptions: want a Bloom filter or a partial one", edit(exactBase, func(d *pieces) {
			d.sections = append(d.sections, piece{secExcept, flagCritical, []byte{1, 47: 0}})
		})},
		{"exceptions-of-counting", "corrupt", "exceptions: want a Bloom filter or a partial one, got a counting filter", edit(countingBase, func(d *pieces) {
			last := len(d.sections) - 1
			d.sections = slices.Insert(d.sections, last, piece{secExcept, flagCritical, []byte{1, 47: 0}})
		})},
		{"exceptions-of-partial", "corrupt", "known keys of a partial: want a digest", edit(partialBase, func(d *pieces) {
			d.sections = append(d.sections, piece{secExcept, flagCritical, make([]byte, 48)})
		})},

		{"chunk-size", "corrupt", "chunk size", edit(base, func(d *pieces) { d.section(secPayload).body[0] = 1 })},
		{"payload-parts", "corrupt", "payload parts", edit(base, func(d *pieces) {
			s := d.section(secPayload)
			s.body[4] = 2
			s.body = append(s.body, make([]byte, 8)...)
		})},
		{"payload-padding", "corrupt", "chunk 0: padding", edit(rawBase, func(d *pieces) { d.padding = 1 })},
		{"payload-bit", "corrupt", "chunk 0: checksum", edit(rawBase, func(d *pieces) { d.payload[5] ^= 4 })},
		{"payload-extra-page", "corrupt", "section chunks: file", edit(rawBase, func(d *pieces) { d.payload = append(d.payload, make([]byte, 8)...) })},
		{"payload-bit-zstd", "corrupt", "chunk 0: ", edit(base, func(d *pieces) { d.payload[12] ^= 4 })},
		{"padding-behind-payload", "corrupt", "padding before section chunks", edit(exactBase, func(d *pieces) {
			if len(d.payload)%8 != 0 || d.payload[len(d.payload)-1] != 0 {
				panic("no padding to spoil")
			}
			d.payload[len(d.payload)-1] = 1
		})},
		{"chunk-checksum", "corrupt", "chunk 0: checksum", edit(rawBase, func(d *pieces) { d.table.body[9] ^= 1 })},
		{"chunk-coding", "corrupt", "coding of chunk 0", edit(base, func(d *pieces) { d.table.body[4] = 2 })},
		{"chunk-reserved", "corrupt", "reserved", edit(base, func(d *pieces) { d.table.body[6] = 2 })},
		{"chunk-raw-size", "corrupt", "size of raw chunk 0", edit(rawBase, func(d *pieces) { d.table.body[0]-- })},
		{"chunk-zstd-larger-than-raw", "corrupt", "size of zstd chunk 0", edit(rawBase, func(d *pieces) { d.table.body[4] = codingZstd })},
		{"chunk-not-zstd", "corrupt", "chunk 0: zstd", edit(rawBase, func(d *pieces) {
			d.table.body = appendEntry(nil, 80, codingZstd, 0)
			d.payload, d.raw = d.payload[:80], false
		})},
		{"chunk-zstd-bomb", "corrupt", "chunk 0: zstd", func(t testing.TB) []byte {
			enc, err := newZstd()
			if err != nil {
				t.Fatal(err)
			}
			bomb := enc.EncodeAll(make([]byte, 1<<24), nil)
			d := dismantle(t, encode(t, bloomFilter(t, 720, nil), Options{}))
			d.table.body = appendEntry(nil, len(bomb), codingZstd, 0)
			d.payload, d.raw = append(bomb, make([]byte, -len(bomb)&7)...), false
			return d.assemble()
		}},
		{"chunk-count", "corrupt", "table of 1 chunks", edit(rawBase, func(d *pieces) { d.table.body = append(d.table.body, d.table.body...) })},
		{"chunk-count-zero", "corrupt", "cut short", edit(rawBase, func(d *pieces) { d.payload, d.raw, d.table.body = nil, false, nil })},
		{"chunks-not-critical", "corrupt", "table of 1 chunks", edit(base, func(d *pieces) { d.table.flags = 0 })},
		{"chunks-other-type", "corrupt", "table of 1 chunks", edit(base, func(d *pieces) { d.table.id = 11 })},
		{"file-size", "corrupt", "file size at the end", edit(base, func(d *pieces) { d.size = 1 })},
		{"checksum-over-all", "corrupt", "checksum over all", patch(func(b []byte) []byte { b[len(b)-1] ^= 1; return b })},
		{"trailing-byte", "corrupt", "file size at the end", patch(func(b []byte) []byte { return append(b, 0) })},
		{"empty", "corrupt", "cut short", patch(func(b []byte) []byte { return nil })},
		{"magic-only", "corrupt", "cut short", patch(func(b []byte) []byte { return b[:8] })},
		{"cut-in-header", "corrupt", "", patch(func(b []byte) []byte { return b[:100] })},
		{"cut-in-payload", "corrupt", "file size at the end", func(t testing.TB) []byte { return rawBase(t).assemble()[:4200] }},

		{"exact-of-text", "corrupt", "class integer", edit(exactBase, func(d *pieces) {
			d.section(secKey).body = []byte("\x01\x001\x01\x00\x02\x00id\x05\x00bytes")
		})},
		{"exact-of-two-columns", "corrupt", "class integer", edit(exactBase, func(d *pieces) {
			d.section(secKey).body = []byte("\x01\x001\x02\x00\x02\x00id\x07\x00integer\x01\x00x\x07\x00integer")
		})},
		{"exact-sealed-with-blocks", "corrupt", "blocks of a sealed exact filter", edit(exactBase, func(d *pieces) { d.section(secParams).body[16] = 1 })},
		{"exact-part-2-to-60", "corrupt", "payload part", edit(exactBase, func(d *pieces) { d.section(secPayload).body[15] = 0x10 })},
		{"exact-roaring", "newer", "Roaring", edit(exactBase, func(d *pieces) { d.section(secSet).body[0] = kindRoaring })},
		{"exact-count-too-large", "corrupt", "too short", withMembers(func(b []byte) []byte { b[7] = 0x10; return b })},
		{"exact-parameter", "corrupt", "Rice parameter", withMembers(func(b []byte) []byte { b[16], b[17] = 2, 0b011001; return b })},
		{"exact-parameter-65", "corrupt", "Rice parameter", withMembers(func(b []byte) []byte { b[16] = 65; return b })},
		{"exact-run-too-short", "corrupt", "consecutive", withMembers(func(b []byte) []byte { b[0], b[16] = 1, 255; return b[:17] })},
		{"exact-padding", "corrupt", "a block", withMembers(func(b []byte) []byte { b[17] |= 0x80; return b })},
		{"exact-bytes-behind", "corrupt", "bytes behind", withMembers(func(b []byte) []byte { return append(b, 0) })},
		{"exact-natural-among-negative", "corrupt", "negative members", func(t testing.TB) []byte {
			d := exactBase(t)
			body := d.section(secPayload).body
			a, b := le.Uint64(body[8:]), le.Uint64(body[16:])
			le.PutUint64(body[8:], b)
			le.PutUint64(body[16:], a)
			f := exactFilter([]uint64{1, 2, 3}, false)
			negative, natural := f.Exact().Marshal()
			return swapped(d, append(natural, negative...))
		}},
	}
}

// swapped returns d with a raw payload of the given bytes.
func swapped(d *pieces, payload []byte) []byte {
	size := len(payload)
	d.raw = true
	d.payload = append(payload, make([]byte, -size&7)...)
	d.table.body = appendEntry(nil, size, codingRaw, 0)
	return repair(d.assemble())
}

const vectorDir = "testdata/vectors"

func TestVectors(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range vectors() {
		seen[v.name] = true
		t.Run(v.name, func(t *testing.T) { v.test(t) })
	}
	files, err := filepath.Glob(vectorDir + "/*")
	if err != nil || len(files) != len(seen) {
		t.Errorf("%d files in %s for %d vectors, error %v", len(files), vectorDir, len(seen), err)
	}
}

func (v vector) test(t *testing.T) {
	path := filepath.Join(vectorDir, v.name)
	head := fmt.Sprintf("expect: %s\nerror: %s\n\n", v.expect, v.text)
	want := append([]byte(head), v.file(t)...)
	if *update {
		writeFile(t, path, want)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Error("the vector would be written otherwise today")
	}
	_, b, _ = bytes.Cut(b, []byte("\n\n"))
	_, err = decodeBoth(t, b, Limits{MaxBytes: 1 << 20})
	is := map[string]error{"corrupt": fault.ErrCorrupt, "newer": ErrVersion, "limit": ErrLimit}[v.expect]
	if !errors.Is(err, is) {
		t.Fatalf("error %v, want %v", err, is)
	}
	if !strings.Contains(err.Error(), v.text) || !strings.HasPrefix(err.Error(), "test.bjf: ") {
		t.Errorf("error %q lacks the file or %q", err, v.text)
	}
	if v.expect == "newer" && !(errors.Is(err, fault.ErrUnsupported) && strings.Contains(err.Error(), "unsupported")) {
		t.Errorf("error %q is not of the unsupported kind", err)
	}
	var e *fault.Error
	if !errors.As(err, &e) || e.Hint == "" || errors.Is(err, fault.ErrCorrupt) == errors.Is(err, ErrVersion) {
		t.Errorf("error %#v: no advice, or of two kinds", err)
	}
}
