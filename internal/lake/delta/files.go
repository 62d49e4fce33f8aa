package delta

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Table returns what holds for all files.
func (s *Snapshot) Table() *lake.Table { return s.table }

// Files yields the files of the version, ascending by their paths in the log, until yield returns
// an error, which Files returns. It skips none.
func (s *Snapshot) Files(_ context.Context, _ func([]lake.Bound) bool, yield func(*lake.File) error) (skipped int64, err error) {
	last := ""
	for _, a := range slices.SortedFunc(maps.Values(s.adds), func(a, b *add) int { return cmp.Compare(a.Path, b.Path) }) {
		if a.Path == last {
			return 0, faults.Corrupt(fault.At{File: s.dir}, "%s is twice in version %d of the table", a.Path, s.version)
		}
		last = a.Path
		f, err := s.file(a)
		if err != nil {
			return 0, fmt.Errorf("%s%s: %w", s.dir, a.Path, err)
		}
		if err := yield(f); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// file returns what the log says of a file.
func (s *Snapshot) file(a *add) (f *lake.File, err error) {
	f = new(lake.File)
	if f.Object, err = s.object(a); err != nil {
		return nil, err
	}
	for _, i := range s.table.Partitions {
		c := &s.table.Columns[i]
		v, ok := a.Partition[cmp.Or(c.Stored, c.Name)]
		if !ok {
			return nil, faults.Corrupt(fault.At{Column: c.Name}, "a file without the value of a column that divides the table")
		}
		p := hive.Part{Name: c.Name, Null: v == nil || *v == ""} // whatever the type
		if !p.Null {
			p.Text = *v
		}
		if (c.Type == "float" || c.Type == "double") && !p.Null && strings.Trim(p.Text, "-0123456789") == "" {
			p.Text += ".0" // the shortest digits of a float, as 1 and twenty zeros, need not equal it
		}
		f.Parts = append(f.Parts, p)
	}
	if table, stats := s.table, a.Stats; stats != "" {
		f.Bounds = func() []lake.Bound { return boundsOf(table, stats) }
	}
	f.Deleted, err = s.deleted(a.Vector)
	return f, err
}

func (s *Snapshot) object(a *add) (o storage.Object, err error) {
	if a.Path == "" || a.Size < 0 {
		return o, faults.Corrupt(fault.At{}, "a file with the path %s and %d bytes", strconv.Quote(a.Path), a.Size)
	}
	o.Name, err = s.place(a.Path)
	o.Size, o.ModTime = a.Size, time.UnixMilli(a.Time).UTC()
	return o, err
}

// place returns the name of an object by its path in the log: percent-encoded once, and below the
// table's directory unless it is absolute. A table in a store cannot name local files, nor a local
// table objects: a hostile log must not reach another kind of storage.
func (s *Snapshot) place(path string) (string, error) {
	name, err := url.PathUnescape(path)
	if err != nil {
		e := faults.Corrupt(fault.At{}, "a path that is no URL")
		e.Err = err
		return "", e
	}
	if rest, ok := strings.CutPrefix(name, "file:"); ok {
		name = "/" + strings.TrimLeft(rest, "/")
	}
	local := address.Local(s.dir)
	if !strings.HasPrefix(name, "/") && !address.IsURL(name) {
		if local != s.dir {
			name = address.Escaped(name)
		}
		return s.dir + name, nil
	}
	if address.IsURL(local) != address.IsURL(name) || address.IsWeb(name) {
		return "", faults.Unsupported(fault.At{}, "a file of a table in another place: %s", address.Redact(name)).
			WithHint("copy the table with its files")
	}
	return name, nil
}
