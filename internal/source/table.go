package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/deletes"
	"github.com/bloomjoin/bloomjoin/internal/lake/delta"
	"github.com/bloomjoin/bloomjoin/internal/lake/iceberg"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/where"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Entry is an object that a name stands for.
type Entry struct {
	storage.Object
	Of *OfTable // nil: it is in no table
}

// OfTable is what a table says of one of its files.
type OfTable struct {
	Table   *TableVersion
	Parts   []hive.Part // the values of the columns of partitions
	Values  []hive.Part // of columns that the file may lack
	Deleted *lake.Deleted
}

// TableVersion is a version of a table. Its files share it.
type TableVersion struct {
	*lake.Table
	Hive  []hive.Column // the columns of partitions
	views sync.Map      // viewOf → *parquet.View
	reads deletes.Reader

	keying sync.Mutex // of readKeys

	mu        sync.Mutex
	permitted bool   // the store reads the files with what a catalog grants
	at        string // Location, without links
	excluded  int64  // files that the condition has excluded
}

// NewTableVersion returns the version of a table that is known.
func NewTableVersion(t *lake.Table) (*TableVersion, error) {
	v := &TableVersion{Table: t}
	for _, i := range t.Partitions {
		typ, err := t.Columns[i].Arrow()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Location, err)
		}
		v.Hive = append(v.Hive, hive.Column{Name: t.Columns[i].Name, Type: typ})
	}
	return v, nil
}

// Permit makes a store read the files of the table with what its catalog grants.
func (t *TableVersion) Permit(ctx context.Context, src storage.Source) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Catalog != "" && !t.permitted {
		catalog, name, _ := strings.Cut(t.Catalog, "#")
		_, err = objects.LoadTable(ctx, src, catalog, name, true)
		t.permitted = err == nil
	}
	return err
}

// viewOf is what a view depends on: the stored schema, and the values of columns that it lacks.
type viewOf struct {
	root   *meta.Node
	values string
}

// view returns how a Parquet file has the columns of the table.
func (t *OfTable) view(f *parquet.File) (*parquet.View, error) {
	used := t.Table.Used(f, t.Values)
	of := viewOf{f.Root, fmt.Sprintf("%#v", used)}
	if v, ok := t.Table.views.Load(of); ok {
		return v.(*parquet.View), nil
	}
	v, err := t.Table.View(f, used)
	if err == nil {
		t.Table.views.Store(of, v)
	}
	return v, err
}

// version is a version of a table as its format's package reads it.
type version interface {
	Table() *lake.Table
	Files(ctx context.Context, holds func([]lake.Bound) bool, yield func(*lake.File) error) (skipped int64, err error)
}

// openTable reads the version of a table that a name means.
func (o *Opening) openTable(ctx context.Context, name string) (version, error) {
	n, err := lake.ParseName(name)
	if err != nil {
		return nil, err
	}
	if n.Kind == "delta" {
		return delta.Open(ctx, o.Store, n, o.Condition != nil)
	}
	return iceberg.Open(ctx, o.Store, n, o.Condition != nil)
}

// tableFiles returns the files of the table that a name stands for.
func (o *Opening) tableFiles(ctx context.Context, name string) (list []Entry, err error) {
	s, err := o.openTable(ctx, name)
	if err != nil {
		return nil, err
	}
	of, err := NewTableVersion(s.Table())
	if err != nil {
		return nil, err
	}
	of.at = objects.Resolve(o.Store, of.Location)
	var holds func([]lake.Bound) bool
	satisfies := o.boundTo(of)
	if satisfies != nil {
		holds = func(bounds []lake.Bound) bool { return possible(satisfies, of.facts(bounds, satisfies, nil)) }
	}
	var spare []Entry // an excluded file, for its columns
	skipped, err := s.Files(ctx, holds, func(f *lake.File) error {
		e := Entry{f.Object, &OfTable{of, f.Parts, f.Values, f.Deleted}}
		e.Found = true
		e.Rel = e.Of.rel(e.Name)
		switch {
		case satisfies == nil || of.mayHold(f, satisfies):
			list = append(list, e)
		case spare == nil:
			spare = []Entry{e}
		default:
			o.unsatisfying(e)
		}
		return nil
	})
	of.excluded += skipped
	if len(list) == 0 {
		list = spare
	} else if spare != nil {
		o.unsatisfying(spare[0])
	}
	if err == nil && list == nil && !o.AllowEmpty {
		err = fmt.Errorf("%s: version %s of the table holds %w (name another version)", name, of.Version, storage.ErrNoFiles)
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Rel, b.Rel) })
	return list, err
}

// rel returns the Rel of a file: the directories of its values, whatever the table calls them, and
// its path in the table's directory. A file that is elsewhere has its whole path.
func (t *OfTable) rel(name string) string {
	var dirs []string
	for _, p := range slices.Concat(t.Parts, t.Values) {
		dirs = append(dirs, hive.Dir(p))
	}
	below, ok := strings.CutPrefix(name, t.Table.Location)
	if _, rest, found := strings.Cut(below, "://"); found && !ok {
		below = rest
	}
	dir, base := path.Split(address.Unescaped(below))
	for _, d := range strings.FieldsFunc(dir, func(r rune) bool { return r == '/' }) {
		if name, _, ok := strings.Cut(d, "="); !ok {
			dirs = append(dirs, d)
		} else if t.Table.ByID && !slices.ContainsFunc(t.Values, func(p hive.Part) bool { return p.Name == name }) {
			dirs = append(dirs, strings.ReplaceAll(d, "=", "%3D")) // of no column: it tells files of one name apart
		}
	}
	return path.Join(append(dirs, url.PathEscape(base))...)
}

// InTable says that a file, which is not open yet, is in a table.
func (f *File) InTable(of *OfTable) { f.of = of }

// OfTable reports whether the file is in a table.
func (f *File) OfTable() bool { return f.of != nil }

// TableRead says what is read of a version of a table.
type TableRead struct {
	Location    string `json:"location"`
	Version     string `json:"version"`
	Files       int    `json:"files,omitempty"`          // 0: a list of inputs says which
	Excluded    int64  `json:"files_excluded,omitempty"` // by the condition
	RowsDeleted int64  `json:"rows_deleted,omitempty"`   // in the files, by lists
	KeysDeleted int64  `json:"keys_deleted,omitempty"`   // in the table's delete files
}

// TablesOf returns the tables that files are of.
func TablesOf(files []*File) (all []TableRead) {
	at := map[*TableVersion]int{}
	for _, f := range files {
		if f.of == nil {
			continue
		}
		t := f.of.Table
		if _, ok := at[t]; !ok {
			at[t] = len(all)
			all = append(all, t.Read())
			all[at[t]].Excluded = t.excluded
		}
		r := &all[at[t]]
		if r.Files++; f.deleted != nil {
			r.RowsDeleted += f.deleted.Count()
		}
	}
	return all
}

// Read returns what is known of the table before its files are.
func (t *TableVersion) Read() TableRead {
	r := TableRead{Location: t.Location, Version: t.Version}
	for _, k := range t.Keys {
		for _, f := range k.Files {
			r.KeysDeleted += f.Rows
		}
	}
	return r
}

// Entries returns objects that are in no table.
func Entries(list []storage.Object) []Entry {
	return each.Slice(list, func(o storage.Object) Entry { return Entry{Object: o} })
}

// openEntry opens an entry.
func (o *Opening) openEntry(ctx context.Context, e Entry, parts []hive.Part) (*File, error) {
	if e.Of == nil {
		return OpenObject(ctx, e.Object, parts, *o)
	}
	src, err := o.Store.Open(ctx, storage.Object{Name: e.Name})
	if err != nil {
		return nil, e.Of.gone(err)
	}
	f := NewFile(src, e.Object, o)
	f.format, f.of = dataset.Parquet, e.Of
	if src.Object().Size != e.Size {
		err = faults.Mismatch(fault.At{File: e.Name}, "bytes of a file of the table", fmt.Sprint(e.Size), fmt.Sprint(src.Object().Size))
	} else {
		err = f.Begin(ctx, parts, *o)
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return f, f.Rest()
}

// gone returns err, or for an object that does not exist an error that names the version.
func (t *OfTable) gone(err error) error {
	if missing := new(faults.NotExist); errors.As(err, &missing) {
		err = fmt.Errorf("%s: %w, but version %s of the table has it (was the table vacuumed? name a newer version)", missing.Name, fs.ErrNotExist, t.Table.Version)
	}
	return err
}

// viewer returns what [arrowparquet.ParquetOptions] has as View.
func (f *File) viewer() func(*parquet.File) (*parquet.View, error) {
	if f.of == nil {
		return nil
	}
	return f.of.view
}

// readDeleted reads which rows of the file are deleted.
func (f *File) readDeleted(ctx context.Context, opts *Opening) (err error) {
	if f.of == nil || f.of.Deleted == nil {
		return nil
	}
	d := f.of.Deleted
	f.starts = []int64{0}
	for g := range f.NumGroups() {
		f.starts = append(f.starts, f.starts[g]+f.GroupRows(g))
	}
	if len(d.Keys) > 0 {
		f.keys = &deletedKeys{store: opts.Store, room: opts.room}
	}
	p := f.Parquet().File()
	if err := p.Keep(d.Size); err != nil {
		return err
	}
	if f.deleted, err = f.of.Table.reads.Rows(ctx, opts.Store, p.Room(), d); err != nil {
		return fmt.Errorf("%s: %w", f.name, f.of.gone(err))
	}
	if f.deleted == nil {
		return nil
	}
	if err := p.Keep(f.deleted.Bytes()); err != nil {
		return err
	}
	if rows := f.Rows(); f.deleted.End() > rows {
		return faults.Wanted(faults.Corrupt(fault.At{File: f.name}, "rows that are deleted"), fmt.Sprintf("some of %d", rows), fmt.Sprintf("row %d", f.deleted.End()))
	}
	for g := range f.NumGroups() {
		f.live = append(f.live, f.LiveIn(g, 0, f.GroupRows(g)))
	}
	return nil
}

// Deleted returns what the table says of rows of the file that are deleted, with the number of those in lists; nil:
// nothing.
func (f *File) Deleted() *lake.Deleted {
	if f.of == nil || f.of.Deleted == nil {
		return nil
	}
	d := *f.of.Deleted
	if f.deleted != nil {
		d.Count = f.deleted.Count()
	}
	return &d
}

// ofTables returns the columns of partitions of listed tables.
func ofTables(lists [][]Entry) (columns []hive.Column) {
	for _, list := range lists {
		if len(list) > 0 && list[0].Of != nil {
			columns = append(columns, list[0].Of.Table.Hive...)
		}
	}
	return columns
}

// place returns where a file is, whichever name the table has.
func (t *TableVersion) place(name string) string {
	if below, ok := strings.CutPrefix(name, t.Location); ok {
		return path.Join(t.at, below)
	}
	return path.Clean(name)
}

// listedAgain is again for a file of a table.
func (s *sightings) listedAgain(e *Entry) (bool, error) {
	was, err := s.before(e, "table "+e.Of.Table.place(e.Name))
	if was == nil || err != nil {
		return false, err
	}
	switch t, of := was.Of.Table, e.Of.Table; {
	case t == of:
		return false, faults.Corrupt(fault.At{File: of.Location}, "%s is twice in version %s of the table", e.Name, of.Version)
	case t.at != of.at:
		return false, fmt.Errorf("%s is in two tables, %s and %s (name one of them)", e.Name, t.Location, of.Location)
	case t.Version != of.Version:
		return false, fmt.Errorf("%s is in version %s of the table and in version %s (name one version)", e.Name, t.Version, of.Version)
	}
	return s.count(was, e), nil
}

// digestTable adds what the table says of the file to a digest of its content: which rows are
// deleted, and which columns are meant.
func (f *File) digestTable(content []byte) ([]byte, error) {
	if f.of == nil {
		return content, nil
	}
	var deleted lake.Deleted
	if of := f.of.Table; f.of.Deleted != nil {
		deleted = *f.of.Deleted
		deleted.Place = of.Below(deleted.Place)
		if deleted.In = slices.Clone(deleted.In); deleted.In != nil {
			deleted.Count = 0 // which the table does not say
		}
		for i := range deleted.In {
			deleted.In[i].Place = of.Below(deleted.In[i].Place)
		}
		deleted.Of, deleted.Keys = path.Base(deleted.Of), nil // sets that have one number in all versions have none
	}
	h := xxh3.New()
	_, _ = h.Write(content)
	facts := []any{deleted, f.of.Table.Columns, f.of.Table.Partitions}
	if f.of.Values != nil {
		facts = append(facts, f.of.Values)
	}
	err := json.NewEncoder(h).Encode(facts)
	return sum(h), err
}

// LiveRows is GroupRows without rows that are deleted.
func (f *File) LiveRows(group int) int64 {
	if f.deleted == nil {
		return f.GroupRows(group)
	}
	return f.live[group]
}

// LiveIn returns how many rows from lo to hi, exclusive, of a row group are not deleted.
func (f *File) LiveIn(group int, lo, hi int64) int64 {
	n := hi - lo
	if f.deleted != nil {
		n -= f.deleted.CountIn(f.starts[group]+lo, f.starts[group]+hi)
	}
	return n
}

// boundTo returns the condition bound to the columns of a table; nil: there is none, or opening a file
// returns the error.
func (o *Opening) boundTo(t *TableVersion) *where.Bound {
	if o.Condition == nil {
		return nil
	}
	var fields []arrow.Field
	for i := range t.Columns {
		typ, err := t.Columns[i].Arrow()
		if err != nil {
			return nil
		}
		fields = append(fields, arrow.Field{Name: t.Columns[i].Name, Type: typ, Nullable: true})
	}
	to, _ := o.Condition.BindSome(fault.At{}, arrow.NewSchema(fields, nil), o.IgnoreCase)
	return to
}

// mayHold reports whether a file may have a row that satisfies a condition, by the values that all of
// its rows share and then, which takes longer, by statistics.
func (t *TableVersion) mayHold(f *lake.File, to *where.Bound) bool {
	facts := make([]where.Facts, len(to.Columns()))
	for i, field := range to.Columns() {
		if at := slices.IndexFunc(t.Partitions, func(p int) bool { return slices.Equal(field.Index, []int{p}) }); at >= 0 {
			facts[i] = factsOf(f.Parts[at], t.Hive[at].Type)
		}
	}
	if may := possible(to, facts); !may || f.Bounds == nil {
		return may
	}
	return possible(to, t.facts(f.Bounds(), to, facts))
}

// facts returns what bounds say of the columns of a condition, beside what is known of them.
func (t *TableVersion) facts(bounds []lake.Bound, to *where.Bound, known []where.Facts) []where.Facts {
	facts := make([]where.Facts, len(to.Columns()))
	copy(facts, known)
	for i, field := range to.Columns() {
		at := slices.IndexFunc(bounds, func(b lake.Bound) bool { return slices.Equal(field.Index, []int{b.Column}) })
		if at < 0 {
			continue
		}
		b := &bounds[at]
		facts[i] = where.Facts{NoNulls: b.NoNulls, AllNulls: b.AllNulls, NaN: true}
		if typ, err := t.Columns[b.Column].Arrow(); err == nil && b.Least+b.Most != "" {
			facts[i].Range = between(b.Least, b.Most, typ)
		}
	}
	return facts
}
