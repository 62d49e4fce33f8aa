package iceberg

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// metadataDir is the directory of metadata, below that of the table.
const metadataDir = "metadata/"

// places says where the files are that metadata names.
type places struct {
	dir   string // of the table, with a slash at its end
	moved string // where it was when the metadata was written; empty: it has not been moved
	meta  string // the directory of the metadata file, with a slash at its end; empty: it came from a catalog
}

// locate finds the metadata that a name means, and reads it.
func (t *Table) locate(ctx context.Context, n lake.Name) (at fault.At, err error) {
	at.File = n.Text
	var b []byte
	var file string
	if n.Kind == "rest" {
		catalog, name, _ := strings.Cut(n.Location, "#")
		answer, err := objects.LoadTable(ctx, t.src, catalog, name, false)
		if err != nil {
			return at, err
		}
		t.granted, b, file = answer.Grants, answer.Metadata, local(answer.MetadataLocation)
	} else {
		if file, err = t.named(ctx, n); err != nil {
			return at, err
		}
		at.File, t.places.meta = file, file[:strings.LastIndexByte(file, '/')+1]
	}
	if len(b) == 0 {
		if b, err = whole(ctx, t.src, file); err != nil {
			return at, err
		}
	}
	if t.meta, err = parse(b, at); err == nil {
		t.places.dir = slashed(local(t.meta.Location))
	}
	return at, err
}

// named returns the metadata file that a name means, with a slash in its path.
func (t *Table) named(ctx context.Context, n lake.Name) (string, error) {
	file := objects.Slashes(address.Local(n.Location))
	if !strings.HasPrefix(file, "/") && !address.IsURL(file) {
		file = "./" + file
	}
	if strings.HasSuffix(strings.TrimSuffix(file, ".gz"), ".json") {
		return file, nil
	}
	return t.hinted(ctx, slashed(file), n)
}

// hinted returns the metadata file of a directory: the one that version-hint.text names, or one of a
// later version, since writers update the hint last.
func (t *Table) hinted(ctx context.Context, dir string, n lake.Name) (string, error) {
	dir += metadataDir
	b, err := whole(ctx, t.src, dir+"version-hint.text")
	if errors.Is(err, fs.ErrNotExist) {
		return "", t.unhinted(ctx, dir, n)
	}
	if err != nil {
		return "", err
	}
	hint, found := strings.TrimSpace(string(b)), ""
	if v, wrong := strconv.ParseInt(strings.TrimPrefix(hint, "v"), 10, 64); wrong == nil {
		for name := "a first one"; name != "" && err == nil; v++ {
			if name, err = t.version(ctx, dir, v); name != "" {
				found = name
			}
		}
	} else if len(hint) < 256 {
		found, err = t.there(ctx, dir, strings.TrimSuffix(path.Base(hint), ".metadata.json")+".metadata.json")
	}
	if err == nil && found == "" {
		err = faults.Mismatch(fault.At{File: dir + "version-hint.text"}, "the hint", "the version of a metadata file beside it", strconv.Quote(hint[:min(len(hint), 100)])).
			WithHint("name the metadata file")
	}
	return dir + found, err
}

// unhinted returns the error for a directory without a hint, which names the newest metadata file: it
// need not be the current one.
func (t *Table) unhinted(ctx context.Context, dir string, n lake.Name) error {
	var newest storage.Object
	err := objects.Walk(ctx, t.src, dir, nil, func(o storage.Object) error {
		if strings.HasSuffix(o.Name, ".json") && !o.ModTime.Before(newest.ModTime) {
			newest = o
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e := faults.Mismatch(fault.At{File: n.Text}, "the directory of an Iceberg table", metadataDir+"version-hint.text", "none")
	if newest.Name == "" {
		e.Err = fs.ErrNotExist
		return e.WithHint("name the table's directory, or its metadata file")
	}
	return e.WithHint("name the metadata file that the table's catalog has; the newest is iceberg:%s", strings.TrimPrefix(newest.Name, "./"))
}

// there returns a name if the directory has it, or else an empty one.
func (t *Table) there(ctx context.Context, dir, name string) (string, error) {
	if _, err := t.src.Stat(ctx, dir+name); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return name, nil
}

// version returns the name of the metadata file of a version; empty: there is none.
func (t *Table) version(ctx context.Context, dir string, v int64) (name string, err error) {
	for _, form := range []string{"v%d.metadata.json", "v%d.gz.metadata.json", "v%d.metadata.json.gz", "%d.metadata.json"} {
		if name, err = t.there(ctx, dir, fmt.Sprintf(form, v)); name != "" || err != nil {
			break
		}
	}
	return name, err
}

// relocate finds out whether the table has been moved or copied since its metadata was written: then the list
// of the snapshot's manifests lies beside the metadata file and not where that says.
func (t *Table) relocate(ctx context.Context) error {
	p := &t.places
	s := t.snapshot
	dir, ok := strings.CutSuffix(p.meta, "/"+metadataDir)
	if !ok || s == nil || s.List == "" {
		return nil
	}
	list := local(s.List)
	base := path.Base(list)
	was, there := strings.CutSuffix(strings.TrimSuffix(list, base), "/"+metadataDir)
	if !there || objects.Resolve(t.src, was) == objects.Resolve(t.src, dir) {
		return nil
	}
	if _, err := t.src.Stat(ctx, p.meta+base); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	p.moved, p.dir = was+"/", dir+"/"
	t.table.Location = p.dir
	return nil
}

// local returns a place in metadata as a name here: writers spell local files and S3 in several ways.
func local(name string) string {
	if rest, ok := strings.CutPrefix(name, "file:"); ok {
		if rest = strings.TrimPrefix(rest, "//"); strings.HasPrefix(rest, ".") {
			return rest
		}
		return "/" + strings.TrimLeft(rest, "/")
	}
	for _, scheme := range []string{"s3a://", "s3n://"} {
		if rest, ok := strings.CutPrefix(name, scheme); ok {
			return "s3://" + rest
		}
	}
	return name
}

// place returns the name of an object by its path in the metadata. A table in a store cannot name local
// files, nor a local table objects: hostile metadata must not reach another kind of storage.
func (t *Table) place(path string) (string, error) {
	name := local(path)
	if rest, ok := strings.CutPrefix(name, t.places.moved); ok && t.places.moved != "" {
		name = t.places.dir + rest
	}
	kind := storageOf(name)
	if name == "" || kind != storageOf(t.places.dir) || address.IsURL(t.places.meta) && kind != storageOf(t.places.meta) {
		return "", faults.Unsupported(fault.At{}, "a file of a table in another place: %s", strconv.Quote(address.Redact(path))).
			WithHint("copy the table with its files")
	}
	return name, nil
}

// storageOf tells kinds of storage apart: files, object stores, and the web.
func storageOf(name string) [2]bool { return [2]bool{address.IsURL(name), address.IsWeb(name)} }

// slashed returns a directory with a slash at its end.
func slashed(dir string) string { return strings.TrimRight(dir, "/") + "/" }

// largest bounds metadata, as stored and without compression.
const largest = 512 << 20

// whole reads an object of metadata. Compressed ones are found by their content, whatever their names.
func whole(ctx context.Context, src storage.Source, name string) (b []byte, err error) {
	r, err := src.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return nil, err
	}
	defer faults.Join(&err, r.Close)
	if size := r.Object().Size; size > largest {
		return nil, faults.Unsupported(fault.At{File: name}, "metadata of %d bytes (want at most %d)", size, largest)
	}
	b = make([]byte, r.Object().Size)
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	if !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(z, largest))
	}
	if err != nil {
		e := faults.Corrupt(fault.At{File: name}, "compressed metadata")
		e.Err = err
		return nil, e
	}
	return b, nil
}
