package output

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"time"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/key"
)

// Input describes an input file without opening it, as [ListInputs] has recorded it.
type Input struct {
	Name        string    // opens it
	Rel         string    // identifies it on every machine, see [storage.Object]
	Size        int64     // bytes
	modTime     time.Time // when it was last written; zero: unknown
	identity    string    // of the object, see [storage.Object]
	Format      dataset.Format
	fingerprint []byte                   // see [source.File.Fingerprint]
	Schema      string                   // equal for files with equal columns, apart from those of their paths
	Groups      []Group                  // its row groups, in order
	values      []dataset.PartitionValue // see [source.File.Partitions]
	found       bool                     // in a directory that was named, or that a pattern matched
	root        string                   // that directory
	rootRel     string                   // its path in terms of Rel; empty: the base itself
}

// Group is a row group of an [Input].
type Group struct {
	Rows  int64 // -1: unknown without reading them
	Bytes int64 // as stored
}

// rows returns the number of stored rows, or -1 if it is unknown.
func (in *Input) rows() int64 {
	var n int64
	for _, g := range in.Groups {
		if g.Rows < 0 {
			return -1
		}
		n += g.Rows
	}
	return n
}

// described describes the file. It reads what the fingerprint needs: of small files and
// local text, all bytes. Standard input and records have no fingerprint.
func describedOf(f *source.File) (in Input, err error) {
	if in, err = briefOf(f); err != nil {
		return in, err
	}
	if in.Schema, err = schemaDigestOf(f); err != nil {
		return in, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if _, err := f.CountRows(); err != nil {
		return in, err
	}
	for g := range f.NumGroups() {
		in.Groups = append(in.Groups, Group{f.GroupRows(g), f.GroupBytes(g)})
	}
	return in, f.Rest()
}

// schemaDigest returns what [Input].Schema is.
func schemaDigestOf(f *source.File) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", f.Format())
	fields, stored := f.Schema().Fields(), f.StoredColumns()
	if p := f.Parquet(); p != nil {
		d, err := p.File().SchemaDigest()
		if err != nil {
			return "", err
		}
		h.Write(d)
		fields = p.CodedSchema().Fields()
	}
	for _, field := range fields[:stored] {
		if f.Format().IsText() { // its types come from the options
			fmt.Fprintf(h, "%q\n", field.Name)
			continue
		}
		fmt.Fprintf(h, "%q %t %s %q %v\n", field.Name, field.Nullable, field.Type, field.Type.Fingerprint(), field.Metadata)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// runDigest computes the digest of a [Run], or of inputs.
type runDigest struct {
	h       hash.Hash
	unknown bool // an input has no fingerprint
}

func newRunDigest() *runDigest { return &runDigest{h: sha256.New()} }

func (d *runDigest) put(b []byte) {
	d.h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
	d.h.Write(b)
}

// input adds an input.
func (d *runDigest) input(in *Input) {
	d.unknown = d.unknown || in.fingerprint == nil
	for _, v := range in.values {
		d.put([]byte("partition column " + v.Name + " " + key.TypeName(v.Type)))
		d.put(fmt.Appendf(nil, "%t %s", v.Null, v.Text)) // of which Rel may have nothing
	}
	d.put([]byte(in.Rel))
	d.put(binary.LittleEndian.AppendUint64(nil, uint64(in.Size)))
	d.put(in.fingerprint)
}

func (d *runDigest) sum() (sum [32]byte, known bool) {
	if d.unknown {
		return sum, false
	}
	d.h.Sum(sum[:0])
	return sum, true
}
