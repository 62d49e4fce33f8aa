package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// ErrNoData means that a file has no format that can be read.
var ErrNoData = cause.New(cause.NotData, "neither a Parquet nor an Arrow file")

// Finding opens the objects that names stand for, in portions. A file in a directory is data, or
// has a name that is never data, or is an error: a file of unknown format, or with damaged first
// bytes, may hold rows.
type Finding[T any] struct {
	Options *Opening
	By      Opener[T]
	Of      []Found // by name
}

// Found is what has become of the objects of one name.
type Found struct {
	Name          string
	All           int  // objects
	Excluded      bool // the condition has excluded some more
	kept          int
	stray, passed []string
}

// Open opens objects in order; of tells of which name each is. With an error, it also returns the
// files that are open.
func (f *Finding[T]) Open(ctx context.Context, entries []Entry, of func(i int) int) (files []T, err error) {
	opening := openMany(ctx, f.Options, entries, f.By)
	defer opening.stop()
	for i, e := range entries {
		name := &f.Of[of(i)]
		file, why, err := opening.take(ctx)
		switch {
		case errors.Is(err, ErrNoData) && e.Found:
			name.stray = append(name.stray, e.Rel)
			continue
		case errors.Is(err, fault.ErrMemory) && name.All > 1:
			n := name.kept + 1
			return files, fmt.Errorf("%w: this is file %d of %d, so all take about %.1f times as much", err, n, name.All, float64(name.All)/float64(n))
		case err != nil:
			return files, err
		case why != "":
			name.passed = append(name.passed, e.Rel)
			f.Options.passOver(e, why)
			continue
		}
		name.kept++
		if f.By.Keep == nil {
			files = append(files, file)
		} else if err := f.By.Keep(file); err != nil {
			return files, err
		}
	}
	return files, nil
}

// End returns an error if names stand for files that are not data, or for no data.
func (f *Finding[T]) End() error {
	o := f.Options
	for i := range f.Of {
		switch of := &f.Of[i]; {
		case len(of.stray) > 0 && of.kept == 0:
			return fmt.Errorf("directory %s holds no %s files, only %s (name the directory with the data)", of.Name, o.kinds(), firstFew(append(of.stray, of.passed...)))
		case len(of.stray) > 0:
			return faults.Errorf("%s: %s in it is %w (if it holds no rows: {Exclude %s}, or name the files by a pattern)", of.Name, of.stray[0], ErrNoData, quoteGlob(path.Base(of.stray[0])))
		case of.kept == 0 && of.All > 0 && !o.AllowEmpty && !of.Excluded:
			return fmt.Errorf("directory %s holds no %s files, only %s (name the directory with the data)%w", of.Name, o.kinds(), firstFew(of.passed), quiet.Error{Err: storage.ErrNoFiles})
		}
	}
	return nil
}

// leftOut are files that were listed and not opened.
type leftOut struct {
	mu   sync.Mutex
	rels map[string]bool
}

// Sorted returns what was left out.
func (l *leftOut) Sorted() []string { return slices.Sorted(maps.Keys(l.rels)) }

// passOver is leaveOut, and says why.
func (o *Opening) passOver(e Entry, why string) {
	o.leaveOut(e)
	if o.PassedOver != nil {
		o.PassedOver(e.Name, why)
	}
}

// leaveOut records that a file exists, although it is not opened.
func (o *Opening) leaveOut(e Entry) {
	e, _, err := o.Rebase(e)
	if err != nil {
		return // it is not below Base
	}
	o.Left.mu.Lock()
	defer o.Left.mu.Unlock()
	o.Left.rels[e.Rel] = true
}

// kinds names the formats that can be read.
func (o *Opening) kinds() string {
	if o.Text {
		return "Parquet, Arrow, CSV, TSV, NDJSON or text"
	}
	return "Parquet or Arrow"
}

// firstFew joins the first few names.
func firstFew(names []string) string {
	if len(names) > 3 {
		names = append(names[:3:3], "…")
	}
	return strings.Join(names, ", ")
}

// quoteGlob returns a pattern, quoted for a shell, that matches only the name.
func quoteGlob(name string) string {
	if strings.ContainsAny(name, " *?[]{}\\'\"$`&;()<>|!#~") {
		name = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`, "'", `'\''`).Replace(name)
		if strings.HasPrefix(name, "!") {
			name = `\` + name
		}
		return "'" + name + "'"
	}
	return name
}

// OpenFound opens a file. If the file is certainly not data, it returns nil and
// the reason.
func (o *Opening) OpenFound(ctx context.Context, e Entry) (_ *File, why string, err error) {
	parts, err := o.PartsOf(e)
	if err != nil {
		return nil, "", err
	}
	listed := e.Rel
	e, root, err := o.Rebase(e)
	if err != nil {
		return nil, "", err
	}
	f, err := o.openEntry(ctx, e, parts)
	if f != nil {
		f.origin.Root, f.origin.Found, f.left, f.origin.RootRel = root, e.Found, o.Left, RootRelOf(e.Rel, listed)
	}
	if !e.Found || err != nil && !errors.Is(err, ErrNoData) || err == nil && !IsText(f.format) {
		return f, "", err
	}
	switch {
	case len(o.Include) == 0 && noData(path.Base(e.Rel)):
		why = "its name says that it is no data"
	case err != nil && e.Size == 0:
		why = "it is empty"
	default:
		return f, "", err
	}
	if f != nil {
		err = f.Close()
	} else {
		err = nil
	}
	return nil, why, err
}

// RootRelOf returns the directory in which a file was listed, as a Rel.
func RootRelOf(rel, listed string) string {
	above, ok := strings.CutSuffix(rel, "/"+listed)
	if !ok {
		return ""
	}
	return above
}

// maybeNone reports whether an object of a directory may be no data by what is known of it
// before it is opened.
func (o *Opening) maybeNone(e Entry) bool {
	return e.Found && e.Of == nil && (e.Size == 0 || len(o.Include) == 0 && noData(path.Base(e.Rel)))
}

// noData reports whether the name shows that a file is not data but something that people and
// programs commonly put beside it. A file with the extension of a table, such as license.csv,
// may be data.
func noData(name string) bool {
	if strings.HasSuffix(name, ".crc") || strings.HasSuffix(name, "_$folder$") {
		return true
	}
	if name = strings.ToUpper(name); FormatByName(name) != "" && !strings.HasSuffix(name, ".TXT") {
		return false
	}
	stem, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{"README", "LICENSE", "LICENCE", "NOTICE", "COPYING"}, stem)
}

// Rebase sets the Rel of an object to its path below Base. root is the directory
// in which the object was found, or "" if it was named.
func (o *Opening) Rebase(e Entry) (_ Entry, root string, err error) {
	if e.Of != nil { // which has its own place, whatever Base
		return e, e.Of.Table.Location, nil
	}
	above := address.Above(e.Name, e.Rel)
	if e.Found {
		root = above
	}
	if o.Base == "" {
		if _, below, ok := hive.Cut(cleanDir(above)); ok {
			e.Rel = below + e.Rel
		}
		return e, root, nil
	}
	for _, base := range []string{absolute(o.Base), NewPlace(o.Store, o.Base).real} {
		if rel, err := filepath.Rel(base, absolute(e.Name)); err == nil && rel != "." && filepath.IsLocal(rel) {
			e.Rel = filepath.ToSlash(rel)
			return e, root, nil
		}
	}
	return e, root, cause.Mark(cause.OutputPath, faults.Errorf("%s: the input is not below {Base %s} (name a directory that holds all inputs)", e.Name, o.Base))
}

// cleanDir returns the path of a directory with slashes, the last of them at its end.
func cleanDir(dir string) string {
	if dir = filepath.ToSlash(dir); address.IsURL(dir) {
		return address.Unescaped(dir)
	}
	return path.Clean(dir) + "/"
}

// OpenObject opens a file in the given name=value directories. The options must be
// filled in.
func OpenObject(ctx context.Context, e storage.Object, parts []hive.Part, opts Opening) (*File, error) {
	src, err := opts.Store.Open(ctx, e)
	if errors.Is(err, storage.ErrChanged) { // after it was listed; nothing has been read yet, so the new content will do
		src, err = opts.Store.Open(ctx, storage.Object{Name: e.Name})
	}
	if err != nil {
		return nil, err
	}
	f := NewFile(src, e, &opts)
	if f.format, err = detect(src, e, opts.TextFormat); err == nil {
		err = f.Begin(ctx, parts, opts)
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return f, f.Rest()
}

// NewFile returns a file without a format.
func NewFile(src storage.Reader, e storage.Object, opts *Opening) *File {
	f := &File{name: e.Name, rel: e.Rel, size: src.Object().Size, reader: src, bytes: new(atomic.Int64), doubts: new(doubts), inFlight: opts.InFlight, reading: opts.Reading}
	f.print = sync.OnceValues(f.Digest)
	return f
}

// Begin opens the reader of the file's format, with the columns of its directories and
// the condition of the options.
func (f *File) Begin(ctx context.Context, parts []hive.Part, opts Opening) error {
	if err := f.partition(opts.Layout, parts); err != nil {
		return err
	}
	if err := f.open(ctx, opts); err != nil {
		return err
	}
	if err := cmp.Or(f.setWhere(&opts), f.readDeleted(ctx, &opts)); err != nil {
		return errors.Join(err, f.table.Close())
	}
	f.setReaders()
	return nil
}
