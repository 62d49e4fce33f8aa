// Package avro reads Avro object container files by the ids of fields, as Iceberg's manifests are
// read.
//
//	bytes ── header ──► schema, codec ──► decoders of the fields that are asked for
//	bytes ── blocks ──► records, each of which is handed over in turn
//
// The format is that of https://avro.apache.org/docs/1.12.0/specification/. Fields that are not
// asked for are skipped. Files come from anywhere: lengths, counts and depths are checked, and
// memory stays in proportion to the bytes of a block. A file that is cut off between two blocks is
// a valid one, so callers compare its length or its rows with what is known of them.
package avro

import (
	"bytes"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

const (
	magic      = "Obj\x01"
	syncLength = 16 // of the marker after the header and after each block
)

// entry decodes an entry of the header.
var entry = &node{kind: Rec, of: []*node{{kind: String}, {kind: Bytes}}, ids: []int{0, 1}}

// Reader reads files. Of blocks that are large when they are decompressed, one is in memory at once. The
// zero value is ready to use, from many goroutines at once.
type Reader struct{ large sync.Mutex }

// Read reads the file b, and calls each with its records, in order. wanted reports whether a field
// with this id is asked for; in a record that is not, neither are its fields. Values and their bytes
// are valid until each returns. The error of each is returned as it is.
func (r *Reader) Read(b []byte, wanted func(id int) bool, each func(*Value) error) error {
	if !bytes.HasPrefix(b, []byte(magic)) {
		return faults.Corrupt(fault.At{}, "no Avro container file: want %q first, got %q", magic, b[:min(len(b), len(magic))])
	}
	in, d := &decoder{b: b[len(magic):]}, new(decoder)
	in.left = min(in.most(), maxValues)
	var entries Value
	in.list(&node{kind: Array, of: []*node{entry}}, &entries, 0)
	sync := in.take(syncLength)
	if in.err != nil {
		return in.err
	}
	head := map[string][]byte{}
	for _, e := range entries.List {
		head[string(e.List[0].Bytes)] = e.List[1].Bytes
	}
	root, err := parse(head["avro.schema"], wanted)
	if err != nil {
		return err
	}
	u, err := newUnpacker(string(head["avro.codec"]), &r.large)
	defer u.end()
	for err == nil && in.at < len(in.b) {
		in.block++
		count, block := in.long(), in.take(in.length())
		if end := in.take(syncLength); !bytes.Equal(end, sync) {
			in.fail("want the marker after a block of the file's header, got %x", end)
		}
		if err = in.err; err == nil {
			d.block, d.at = in.block, 0
			d.b, err = u.unpack(block)
		}
		if err == nil {
			err = d.all(root, count, each)
		}
	}
	return err
}
