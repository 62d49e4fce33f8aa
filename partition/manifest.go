package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A directory that is written holds one file for each input partition, a
// manifest of each run and worker that writes there, and _SUCCESS once
// everything that the manifests list is there. The names of the latter begin
// with an underscore, so that no reader takes them for data.
const successName = "_SUCCESS"

// Manifest lists the files of a directory that one worker of a run writes, as
// JSON. It stands there before the first of them does, so that what a killed
// attempt has left can be told from the files of others. _SUCCESS has the same
// form and lists the files of all manifests.
//
// A manifest is written by its own worker alone, except that a run with Force
// takes out the files that it replaces. So runs over different inputs may share
// a directory, also at the same time.
type Manifest struct {
	Version int            `json:"version"`       // 2; 1 had no Done, and no escapes in names
	Run     string         `json:"run,omitempty"` // digest of the run, the same for all workers
	Shard   uint32         `json:"shard"`
	Of      uint32         `json:"of"`
	Done    bool           `json:"done"` // false: the worker has not finished; figures are missing
	Result  string         `json:"result,omitempty"`
	Filter  string         `json:"filter,omitempty"`
	Files   []ManifestFile `json:"files"`
	Rows    int64          `json:"rows"`
	Bytes   int64          `json:"bytes"`

	file    string    // its own name
	written time.Time // when; zero: not known
}

// ManifestFile is one file of a directory. Bytes of names that are no UTF-8 are
// written as \xFF, and a backslash as two.
type ManifestFile struct {
	Name  string `json:"name"`            // below the directory
	Input string `json:"input,omitempty"` // Rel of the file that its rows come from
	Run   string `json:"run,omitempty"`   // in _SUCCESS: the digest of the run that wrote it
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	Sum   string `json:"xxh3,omitempty"` // XXH3-128 of its bytes, hexadecimal
}

// maxManifest bounds the bytes of a manifest that is read.
const maxManifest = 256 << 20

// isManifest reports whether a file of an output directory has the name of a
// manifest.
func isManifest(name string) bool {
	return strings.HasPrefix(name, "_manifest") && strings.HasSuffix(name, ".json") && !strings.Contains(name, "/")
}

// id identifies the run in manifests; "": it cannot be told from others yet.
func (o Output) id() string {
	if o.known() {
		return o.common()
	}
	return o.nonce
}

// manifestName returns the name of this worker's manifest.
func (o Output) manifestName() string {
	name := "_manifest-" + o.id()[:16]
	if !o.Shard.Whole() {
		name += fmt.Sprintf("-%05d-of-%05d", o.Shard.Index, o.Shard.Of)
	}
	return name + ".json"
}

// of reports whether the manifest is of this run, divided as it is now. (Divided
// otherwise, the same rows would stand there twice.)
func (m *Manifest) of(o Output) bool {
	return m.Run != "" && m.Run == o.id() && m.Of == max(o.Shard.Of, 1)
}

// group tells the manifests of one run from those of others.
func (m *Manifest) group() string { return fmt.Sprint(m.Run, " ", m.Of) }

func (o Output) readManifest(ctx context.Context, name string) (_ *Manifest, err error) {
	src, err := o.Store.Open(ctx, storage.Object{Name: o.path(name)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	at := fault.At{File: o.path(name)}
	const hint = "restore it, or write to another directory; without it, the files beside it cannot be identified"
	size := src.Object().Size
	if size > maxManifest {
		return nil, fault.Corrupt(at, "a manifest of %d bytes", size).WithHint(hint)
	}
	b, err := io.ReadAll(io.NewSectionReader(src, 0, size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.path(name), err)
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
	if m.Of < 1 || m.Of > MaxShards || m.Shard >= m.Of {
		return nil, fault.Corrupt(at, "shard %d of %d", m.Shard, m.Of).WithHint(hint)
	}
	for i, f := range m.Files {
		if m.Version > 1 {
			f.Name, f.Input = unescapeName(f.Name), unescapeName(f.Input)
		}
		if !localName(f.Name) {
			return nil, fault.Corrupt(at, "the file name %q, which is outside the directory or not an output", f.Name).WithHint(hint)
		}
		m.Files[i] = f
	}
	m.file, m.written = name, src.Object().ModTime
	return m, nil
}

// localName reports whether a name can be that of an output below a directory:
// what a manifest says is not trusted.
func localName(name string) bool {
	return name != "." && path.Clean(name) == name && !path.IsAbs(name) && filepath.IsLocal(filepath.FromSlash(name)) &&
		!strings.ContainsRune(name, 0) && name != successName && !isManifest(name)
}

// writeManifest writes a manifest or _SUCCESS under the name, whatever stands
// there.
func (o Output) writeManifest(ctx context.Context, name string, m *Manifest) (err error) {
	c := *m
	c.Version, c.Files = 2, make([]ManifestFile, len(m.Files))
	for i, f := range m.Files {
		f.Name, f.Input = EscapeName(f.Name), EscapeName(f.Input)
		c.Files[i] = f
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	sink, err := o.Store.Create(ctx, o.path(name), storage.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Abort()) }()
	if _, err := sink.Write(append(b, '\n')); err != nil {
		return err
	}
	return sink.Commit(true)
}

func (o Output) path(name string) string {
	return strings.TrimRight(o.Name, "/") + "/" + name
}

func (o Output) remove(ctx context.Context, name string) error {
	if err := o.Store.Delete(ctx, storage.Object{Name: o.path(name)}); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// EscapeName makes a file name, which may be any bytes, a string that JSON can
// hold: bytes that are no UTF-8 become \xFF, a backslash becomes two.
func EscapeName(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, `\`) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02X`, name[i])
		case r == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

// unescapeName is the inverse of EscapeName.
func unescapeName(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && s[i+1] == '\\' {
			b.WriteByte('\\')
			i++
			continue
		}
		if s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x' {
			if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
