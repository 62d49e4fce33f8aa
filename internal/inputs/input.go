// Package inputs keeps lists of inputs with facts about each file, so that files need not be
// found or opened again.
//
//	names ── Find ──► List ── Write ──► file ── Read ──► List ── Share(shard) ──► Pieces ── Open ──► files
//
// In come names, as package source takes them; out goes a [List], which holds a few numbers for
// each input and reads the rest on demand. A file that has changed since it was listed is an
// error. Lists come from anywhere, so every size in one is checked.
//
// Package output, builds of filters and the command may use it; programs have it through the
// door, partition.Inputs.
package inputs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"time"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Input describes an input file without opening it, as [Find] has recorded it. In JSON, where it
// is the line of an input, names are as [publish.EscapeName] writes them.
type Input struct {
	Name     string         `json:"name"`               // opens it
	Rel      string         `json:"rel"`                // identifies it on every machine, see [storage.Object]
	Size     int64          `json:"size"`               // bytes
	ModTime  time.Time      `json:"modified,omitzero"`  // when it was last written, in UTC; zero: unknown
	Identity string         `json:"identity,omitempty"` // of the object, see [storage.Object]
	Format   dataset.Format `json:"format"`             //
	Print    fingerprint    `json:"print"`              // see [source.File.Fingerprint]
	Schema   string         `json:"schema"`             // equal for files with equal columns, not counting columns of their paths
	Groups   [][2]int64     `json:"groups"`             // rows of its row groups, in order, -1: unknown without reading them; and bytes as stored
	Values   pathValues     `json:"values,omitempty"`   // see [source.File.Partitions]
	Root     *string        `json:"root,omitempty"`     // the named or matched directory that has it; nil: none
	RootRel  string         `json:"root_rel,omitempty"` // its path in terms of Rel; empty: the base itself
	Table    int            `json:"table,omitempty"`    // of those in the header, from 1; 0: it is in none
	Deleted  *lake.Deleted  `json:"deleted,omitempty"`  // rows of it; nil: none
	Parts    []hive.Part    `json:"parts,omitempty"`    // of a table by id: values of columns that it may lack

	number int // among the inputs of the file
}

// Number returns the input's number among all of the file that it was read from, from 0.
func (in *Input) Number() int { return in.number }

// FoundIn returns Root, empty for none.
func (in *Input) FoundIn() string {
	if in.Root == nil {
		return ""
	}
	return *in.Root
}

// named returns the input with all names changed.
func (in Input) named(change func(string) string) Input {
	for _, name := range []*string{&in.Name, &in.Rel, &in.Identity, &in.RootRel} {
		*name = change(*name)
	}
	if in.Root != nil {
		root := change(*in.Root)
		in.Root = &root
	}
	if in.Deleted != nil {
		deleted := *in.Deleted
		deleted.Place = change(deleted.Place)
		in.Deleted = &deleted
	}
	return in
}

// fingerprint is hexadecimal in JSON.
type fingerprint []byte

func (f fingerprint) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, f), nil }

func (f *fingerprint) UnmarshalText(b []byte) (err error) {
	*f, err = hex.DecodeString(string(b))
	return err
}

// pathValues are the values of the columns of paths. JSON has their texts alone, null for NULL:
// the list has names and types.
type pathValues []dataset.PartitionValue

func (p pathValues) MarshalJSON() ([]byte, error) {
	texts := make([]*string, len(p))
	for i := range p {
		if !p[i].Null {
			texts[i] = &p[i].Text
		}
	}
	return appendLine(nil, texts)
}

func (p *pathValues) UnmarshalJSON(b []byte) error {
	var texts []*string
	err := json.Unmarshal(b, &texts)
	*p = make(pathValues, len(texts))
	for i, text := range texts {
		if (*p)[i].Null = text == nil; text != nil {
			(*p)[i].Text = *text
		}
	}
	return err
}

// rows returns the number of rows, or -1 if it is unknown.
func (in *Input) rows() int64 {
	var n int64
	if in.Deleted != nil {
		n = -in.Deleted.Count
	}
	for _, g := range in.Groups {
		if g[0] < 0 {
			return -1
		}
		n += g[0]
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
		in.Groups = append(in.Groups, [2]int64{f.GroupRows(g), f.GroupBytes(g)})
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
	d.unknown = d.unknown || in.Print == nil
	for _, v := range in.Values {
		d.Put([]byte("partition column " + v.Name + " " + keys.TypeName(v.Type)))
		d.Put(fmt.Appendf(nil, "%t %s", v.Null, v.Text)) // of which Rel may have nothing
	}
	d.Put([]byte(in.Rel))
	d.Put(binary.LittleEndian.AppendUint64(nil, uint64(in.Size)))
	d.Put(in.Print)
}

func (d *Digest) Sum() (sum [32]byte, known bool) {
	if d.unknown {
		return sum, false
	}
	d.h.Sum(sum[:0])
	return sum, true
}

// Published describes the input for the state of a directory.
func (in *Input) Published() publish.Input {
	return publish.Input{
		Entry: publish.Entry{Input: in.Rel, Size: in.Size, Print: hex.EncodeToString(in.Print), Groups: len(in.Groups)},
		Found: in.Root != nil, Root: in.RootRel, ModTime: in.ModTime,
		Resolve: func(s storage.Source) string { return source.PlaceOf(s, in.Name, in.Values) },
	}
}

// PublishedOf describes the file for the state of a directory.
func PublishedOf(f *source.File) (publish.Input, error) {
	in, err := BriefOf(f)
	one := in.Published()
	one.Groups = f.NumGroups()
	return one, err
}

// BriefOf describes the file without its schema and row groups.
func BriefOf(f *source.File) (Input, error) {
	in := Input{Name: f.Name(), Rel: f.Rel(), Size: f.Size(), Format: f.Format(), Groups: [][2]int64{}, Values: f.Partitions(), RootRel: f.Origin().RootRel}
	if o := f.Origin(); o.Found {
		in.Root = &o.Root
	}
	if f.Reader() != nil {
		in.ModTime, in.Identity = f.Reader().Object().ModTime.UTC(), f.Reader().Object().Identity
	}
	var err error
	in.Print, err = f.Fingerprint()
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
		d.Input(&Input{Rel: f.Rel(), Size: f.Size(), Print: fp, Values: f.Partitions()})
	}
	return nil
}
