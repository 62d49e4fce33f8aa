package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/storage"
)

// An output directory holds one file for each input partition, a manifest of
// each worker of each run that writes there, and _SUCCESS once everything that
// the manifests list is there. The names of the latter begin with an underscore,
// so no reader takes them for data.

// Success is the name of the file that marks a complete directory.
const Success = "_SUCCESS"

// MaxWorkers is the largest number of workers of a run.
const MaxWorkers = 1 << 20

// maxManifest is the largest size of a manifest that is read, in bytes.
const maxManifest = 256 << 20

// Manifest lists the files of a directory that one worker of a run writes, as
// JSON. It is written before the first of these files, so that files of a killed
// attempt can be distinguished from those of others. _SUCCESS has the same form
// and lists the files of all manifests.
//
// Only its own worker writes a manifest, except that a run with Force removes
// the files from it that it replaces. So runs over different inputs may share a
// directory, even at the same time.
type Manifest struct {
	Version int      `json:"version"`       // 2; version 1 had no Done, and no escapes in names
	Run     string   `json:"run,omitempty"` // digest of the run, the same for all workers
	Shard   uint32   `json:"shard"`
	Of      uint32   `json:"of"`
	Done    bool     `json:"done"` // false: the worker has not finished, and the figures are missing
	Result  string   `json:"result,omitempty"`
	Filter  string   `json:"filter,omitempty"`
	Hive    []string `json:"hive,omitempty"` // columns that come from the inputs' paths, as "dt:date"
	Files   []File   `json:"files"`
	Without []File   `json:"without,omitempty"` // inputs without a file of their own, and the name that it would have
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`

	name    string    // of the manifest itself
	written time.Time // when the manifest was written; zero: unknown
}

// File is one file of a directory. In JSON, bytes of names that are not UTF-8 are
// \xFF, and a backslash is doubled.
type File struct {
	Name  string `json:"name"`            // path below the directory
	Input string `json:"input,omitempty"` // Rel of the file that its rows come from, or the first of them
	// Inputs are those of all files that its rows come from.
	Inputs []string `json:"inputs,omitempty"`
	Run    string   `json:"run,omitempty"` // in _SUCCESS: the digest of the run that wrote it
	Rows   int64    `json:"rows"`
	Bytes  int64    `json:"bytes"`
	Sum    string   `json:"xxh3,omitempty"` // XXH3-128 of its bytes, hexadecimal
	// Identity is that of the object, where times in whole seconds do not show
	// whether it was written after its manifest. A copy has another one.
	Identity string `json:"identity,omitempty"`
}

// isManifest reports whether a file of an output directory has the name of a
// manifest.
func isManifest(name string) bool {
	return strings.HasPrefix(name, "_manifest") && strings.HasSuffix(name, ".json") && !strings.Contains(name, "/")
}

// manifestName returns the name of this worker's manifest.
func (d *Dir) manifestName() string {
	name := "_manifest-" + d.id()[:16]
	if d.Of > 1 {
		name += fmt.Sprintf("-%05d-of-%05d", d.Shard, d.Of)
	}
	return name + ".json"
}

// of reports whether the manifest is of this run with this number of workers.
// (Divided among another number, the run would write the same rows twice.)
func (m *Manifest) of(d *Dir) bool {
	return m.Run != "" && m.Run == d.id() && m.Of == max(d.Of, 1)
}

// group identifies the run and its division among the manifests of a directory.
func (m *Manifest) group() string { return fmt.Sprint(m.Run, " ", m.Of) }

// add appends a file that is complete.
func (m *Manifest) add(f File) {
	m.Files = append(m.Files, f)
	m.Rows, m.Bytes = m.Rows+f.Rows, m.Bytes+f.Bytes
}

// lists reports whether the manifest has all targets. Another run may have
// replaced some.
func (m *Manifest) lists(targets []Target) bool {
	names := map[string]bool{}
	for _, f := range slices.Concat(m.Files, m.Without) {
		names[f.Name] = true
	}
	for _, t := range targets {
		if !names[t.Name] {
			return false
		}
	}
	return true
}

// readManifest reads a manifest or _SUCCESS. What it says is checked, since it
// decides which files are replaced.
func (d *Dir) readManifest(ctx context.Context, name string) (*Manifest, error) {
	at := fault.At{File: d.path(name)}
	b, written, err := d.readWhole(ctx, name)
	for n := 0; n < 100 && errors.Is(err, storage.ErrChanged); n++ { // another attempt at this run has written it
		b, written, err = d.readWhole(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fault.Corrupt(at, "not a manifest in JSON: %v", err).WithHint(hint)
	}
	if m.Version < 1 || m.Version > 2 {
		return nil, fault.Unsupported(at, "a manifest of version %d; this program reads 1 and 2", m.Version).
			WithHint("use a newer bloomjoin, or write to another directory")
	}
	if m.Version == 1 {
		m.Done = true
	}
	if m.Of < 1 || m.Of > MaxWorkers || m.Shard >= m.Of {
		return nil, fault.Corrupt(at, "shard %d of %d", m.Shard, m.Of).WithHint(hint)
	}
	for i, f := range m.Files {
		if m.Version > 1 {
			f.Name, f.Input = unescapeName(f.Name), unescapeName(f.Input)
		}
		if !localName(f.Name) {
			return nil, fault.Corrupt(at, "the file name %q, which is outside the directory or not an output", f.Name).WithHint(hint)
		}
		for i, input := range f.Inputs {
			f.Inputs[i] = unescapeName(input)
		}
		m.Files[i] = f
	}
	for i, f := range m.Without {
		m.Without[i].Name, m.Without[i].Input = unescapeName(f.Name), unescapeName(f.Input)
	}
	m.name, m.written = name, written
	return m, nil
}

// hint is what to do about a manifest that cannot be read.
const hint = "restore it, or write to another directory; without it, the files beside it cannot be identified"

// readWhole returns the bytes of a manifest, and when it was written.
func (d *Dir) readWhole(ctx context.Context, name string) (b []byte, written time.Time, err error) {
	src, err := d.Store.Open(ctx, storage.Object{Name: d.path(name)})
	if err != nil {
		return nil, written, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	size := src.Object().Size
	if size > maxManifest {
		return nil, written, fault.Corrupt(fault.At{File: d.path(name)}, "a manifest of %d bytes", size).WithHint(hint)
	}
	if b, err = io.ReadAll(io.NewSectionReader(src, 0, size)); err != nil {
		return nil, written, fmt.Errorf("%s: %w", d.path(name), err)
	}
	return b, src.Object().ModTime, nil
}

// localName reports whether a name can be that of an output below a directory.
func localName(name string) bool {
	return name != "." && path.Clean(name) == name && !path.IsAbs(name) && filepath.IsLocal(filepath.FromSlash(name)) &&
		!strings.ContainsRune(name, 0) && name != Success && !isManifest(name)
}

// writeManifest writes a manifest or _SUCCESS. It replaces an older one.
func (d *Dir) writeManifest(ctx context.Context, name string, m *Manifest) (err error) {
	c := *m
	c.Version, c.Files = 2, make([]File, len(m.Files))
	for i, f := range m.Files {
		f.Name, f.Input = EscapeName(f.Name), EscapeName(f.Input)
		f.Inputs = slices.Clone(f.Inputs)
		for i, input := range f.Inputs {
			f.Inputs[i] = EscapeName(input)
		}
		c.Files[i] = f
	}
	c.Without = slices.Clone(m.Without)
	for i, f := range c.Without {
		c.Without[i].Name, c.Without[i].Input = EscapeName(f.Name), EscapeName(f.Input)
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	file, err := d.Store.Create(ctx, d.path(name), storage.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Abort()) }()
	if _, err := file.Write(append(b, '\n')); err != nil {
		return err
	}
	return file.Commit(true)
}

// path returns the full name of a file of the directory.
func (d *Dir) path(name string) string { return strings.TrimRight(d.Name, "/") + "/" + name }

// remove deletes a file of the directory, if it is there.
func (d *Dir) remove(ctx context.Context, name string) error {
	if err := d.Store.Delete(ctx, storage.Object{Name: d.path(name)}); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
