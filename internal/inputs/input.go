// Package inputs keeps lists of inputs: what is known of files, so that they need not be found
// or opened again.
//
//	names ── Find ──► List ── Write ──► file ── Read ──► List ── Share(shard) ──► Pieces ── Open ──► files
//
// In come names, as package source takes them; out goes a [List], which holds a few numbers of
// each input and reads the rest when it is asked for. A file that is not the one that was
// listed is an error. Lists are read from anywhere, so every size in one is checked.
//
// Package output, builds of filters and the command may use it; programs have it through the
// door, partition.Inputs.
package inputs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"time"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Input describes an input file without opening it, as [Find] has recorded it.
type Input struct {
	Name        string    // opens it
	Rel         string    // identifies it on every machine, see [storage.Object]
	Size        int64     // bytes
	ModTime     time.Time // when it was last written; zero: unknown
	identity    string    // of the object, see [storage.Object]
	Format      dataset.Format
	fingerprint []byte                   // see [source.File.Fingerprint]
	Schema      string                   // equal for files with equal columns, apart from those of their paths
	Groups      []Group                  // its row groups, in order
	values      []dataset.PartitionValue // see [source.File.Partitions]
	found       bool                     // in a directory that was named, or that a pattern matched
	Root        string                   // that directory
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

// describedOf describes the file. It reads what the fingerprint needs: of small files and
// local text, all bytes. Standard input and records have no fingerprint.
func describedOf(f *source.File) (in Input, err error) {
	if in, err = BriefOf(f); err != nil {
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

// schemaDigestOf returns what [Input].Schema is.
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
		if source.IsText(f.Format()) { // its types come from the options
			fmt.Fprintf(h, "%q\n", field.Name)
			continue
		}
		fmt.Fprintf(h, "%q %t %s %q %v\n", field.Name, field.Nullable, field.Type, field.Type.Fingerprint(), field.Metadata)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// Digest computes the digest of a output.Run, or of inputs.
type Digest struct {
	h       hash.Hash
	unknown bool // an input has no fingerprint
}

func NewDigest() *Digest { return &Digest{h: sha256.New()} }

func (d *Digest) Put(b []byte) {
	d.h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
	d.h.Write(b)
}

// Input adds an input.
func (d *Digest) Input(in *Input) {
	d.unknown = d.unknown || in.fingerprint == nil
	for _, v := range in.values {
		d.Put([]byte("partition column " + v.Name + " " + keys.TypeName(v.Type)))
		d.Put(fmt.Appendf(nil, "%t %s", v.Null, v.Text)) // of which Rel may have nothing
	}
	d.Put([]byte(in.Rel))
	d.Put(binary.LittleEndian.AppendUint64(nil, uint64(in.Size)))
	d.Put(in.fingerprint)
}

func (d *Digest) Sum() (sum [32]byte, known bool) {
	if d.unknown {
		return sum, false
	}
	d.h.Sum(sum[:0])
	return sum, true
}

// published describes the input for the state of a directory.
func (in *Input) published() publish.Input {
	return publish.Input{
		Rel: in.Rel, Size: in.Size, Print: hex.EncodeToString(in.fingerprint), Groups: len(in.Groups), Found: in.found, Root: in.rootRel, ModTime: in.ModTime,
	}
}

// PublishedOf describes the file for the state of a directory.
func PublishedOf(f *source.File) (publish.Input, error) {
	in, err := BriefOf(f)
	one := in.published()
	one.Groups = f.NumGroups()
	return one, err
}

// BriefOf describes the file without its schema and row groups.
func BriefOf(f *source.File) (Input, error) {
	in := Input{Name: f.Name(), Rel: f.Rel(), Size: f.Size(), Format: f.Format(), values: f.Partitions(), found: f.Origin().Found, Root: f.Origin().Root, rootRel: f.Origin().RootRel}
	if f.Reader() != nil {
		in.ModTime, in.identity = f.Reader().Object().ModTime, f.Reader().Object().Identity
	}
	var err error
	in.fingerprint, err = f.Fingerprint()
	return in, err
}

// Files adds files to a digest.
func (d *Digest) Files(files []*source.File) error {
	if err := source.Fingerprint(files); err != nil {
		return err
	}
	for _, f := range files {
		fp, err := f.Fingerprint()
		if err != nil {
			return err
		}
		d.Input(&Input{Rel: f.Rel(), Size: f.Size(), fingerprint: fp, values: f.Partitions()})
	}
	return nil
}
