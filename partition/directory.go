package partition

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// listing is what stands in an output directory.
type listing struct {
	objects   map[string]storage.Object // by Rel
	manifests []*Manifest
}

func (o Output) look(ctx context.Context) (*listing, error) {
	tree, err := o.Store.Tree(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	d := &listing{objects: map[string]storage.Object{}}
	for _, obj := range tree {
		d.objects[obj.Rel] = obj
		if !isManifest(obj.Rel) {
			continue
		}
		m, err := o.readManifest(ctx, obj.Rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue // replaced by another run meanwhile
		}
		if err != nil {
			return nil, err
		}
		d.manifests = append(d.manifests, m)
	}
	return d, nil
}

// own returns this worker's manifest, or nil.
func (d *listing) own(o Output) *Manifest {
	for _, m := range d.manifests {
		if m.of(o) && m.Shard == o.Shard.Index {
			return m
		}
	}
	return nil
}

// data returns the names of what a reader of the directory would read.
func (d *listing) data() (names []string) {
	for name := range d.objects {
		if !slices.ContainsFunc(strings.Split(name, "/"), storage.Marker) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// trouble returns what has become of a file that a manifest lists: "" if it is
// as it was written, else missing, cut or changed. Bytes are compared only if
// the file may have been written after the manifest.
func (o Output) trouble(ctx context.Context, d *listing, m *Manifest, f ManifestFile) (string, error) {
	obj, ok := d.objects[f.Name]
	switch {
	case !ok:
		return "missing", nil
	case obj.Type != 0:
		return "changed: no regular file", nil
	case obj.Size < f.Bytes:
		return "cut", nil
	case obj.Size > f.Bytes:
		return "changed", nil
	case f.Sum == "": // of version 1
		marker, _, err := o.marker(ctx, o.path(f.Name))
		if run, _, _ := strings.Cut(marker, " "); err != nil || run != m.Run {
			return "changed", ctx.Err()
		}
		return "", nil
	case obj.ModTime.IsZero() || m.written.IsZero() || !obj.ModTime.After(m.written):
		return "", nil
	}
	sum, err := o.sumOf(ctx, f.Name)
	if err != nil || sum == f.Sum {
		return "", err
	}
	return "changed", nil
}

// sumOf returns the checksum of a file of the directory, as manifests have it.
func (o Output) sumOf(ctx context.Context, name string) (_ string, err error) {
	src, err := o.Store.Open(ctx, storage.Object{Name: o.path(name)})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	h := xxh3.New()
	buf := make([]byte, 1<<20)
	for at, size := int64(0), src.Object().Size; at < size; {
		n, err := src.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if n == 0 && err != nil {
			return "", fmt.Errorf("%s: %w", o.path(name), err)
		}
		if err := stopped.Err(ctx); err != nil {
			return "", err
		}
		h.Write(buf[:n])
		at += int64(n)
	}
	return sumText(h), nil
}

func sumText(h *xxh3.Hasher) string {
	b := h.Sum128().Bytes()
	return hex.EncodeToString(b[:])
}

// summary returns what _SUCCESS says of the directory, or why it cannot stand
// there. waits is true if workers of this very run are all that is missing.
func (o Output) summary(ctx context.Context, d *listing) (sum *Manifest, lack string, waits bool, err error) {
	sum = &Manifest{Version: 2, Done: true, Files: []ManifestFile{}}
	type claim struct {
		m *Manifest
		f ManifestFile
	}
	claims := map[string][]claim{}
	workers := map[string]uint32{}
	for i, m := range d.manifests {
		if workers[m.group()]++; !m.Done {
			return nil, "the run of " + m.file + " has not finished", m.of(o), nil
		}
		for _, f := range m.Files {
			claims[f.Name] = append(claims[f.Name], claim{m, f})
		}
		if i == 0 {
			sum.Run, sum.Of, sum.Result, sum.Filter = m.Run, m.Of, m.Result, m.Filter
		} else if m.group() != d.manifests[0].group() {
			sum.Run, sum.Of = "", 1
		}
		if m.Result != sum.Result || m.Filter != sum.Filter {
			sum.Result, sum.Filter = "", ""
		}
	}
	for _, m := range d.manifests {
		if n := workers[m.group()]; n < m.Of {
			return nil, fmt.Sprintf("%d of the %d workers of %s have finished", n, m.Of, m.file), m.of(o), nil
		}
	}
	for name, cs := range claims {
		var first string
		for i, c := range cs {
			trouble, err := o.trouble(ctx, d, c.m, c.f)
			if err != nil {
				return nil, "", false, err
			}
			if i == 0 {
				first = trouble
			}
			if trouble == "" {
				c.f.Run, first = c.m.Run, ""
				sum.Files = append(sum.Files, c.f)
				sum.Rows, sum.Bytes = sum.Rows+c.f.Rows, sum.Bytes+c.f.Bytes
				break
			}
		}
		if first != "" && (lack == "" || name < lack) {
			lack = name + " is " + first
		}
	}
	slices.SortFunc(sum.Files, func(a, b ManifestFile) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range d.data() {
		if claims[name] != nil || d.objects[name].Type != 0 || lack != "" {
			continue
		}
		if marker, _, err := o.marker(ctx, o.path(name)); err != nil {
			return nil, "", false, err
		} else if marker != "" {
			lack = name + " is an output that no manifest lists"
		}
	}
	return sum, lack, false, nil
}

// succeed makes _SUCCESS say what the directory holds if all is there and
// whole, and else removes it. The worker that finishes last writes it; two at
// once write the same. Whoever begins writes its manifest first and removes
// _SUCCESS then; so a look at the manifests after _SUCCESS was written shows
// whether it is still true.
func (o Output) succeed(ctx context.Context) (lack string, err error) {
	for range 100 {
		d, err := o.look(ctx)
		if err != nil {
			return "", err
		}
		sum, lack, waits, err := o.summary(ctx, d)
		if err != nil {
			return "", err
		}
		if lack != "" || len(d.manifests) == 0 {
			if waits {
				lack = ""
			}
			return lack, o.remove(ctx, successName)
		}
		if old, err := o.readManifest(ctx, successName); err == nil && old.says(sum) {
			return "", nil
		}
		if err := o.writeManifest(ctx, successName, sum); err != nil {
			return "", err
		}
	}
	return "other runs keep changing the directory", o.remove(ctx, successName)
}

// says reports whether two summaries are the same.
func (m *Manifest) says(other *Manifest) bool {
	return m.Run == other.Run && m.Of == other.Of && m.Result == other.Result && m.Filter == other.Filter &&
		m.Rows == other.Rows && m.Bytes == other.Bytes && slices.Equal(m.Files, other.Files)
}

// checkDir: see Check. A _SUCCESS that is false goes in any case. done is the
// name of the manifest of a run that has finished.
func (o Output) checkDir(ctx context.Context) (done string, err error) {
	d, err := o.look(ctx)
	if err != nil {
		return "", err
	}
	if _, ok := d.objects[successName]; ok && len(d.manifests) > 0 {
		if _, lack, _, err := o.summary(ctx, d); err != nil {
			return "", err
		} else if lack != "" {
			if err := o.remove(ctx, successName); err != nil {
				return "", err
			}
		}
	}
	var targets []target
	for _, p := range Split(o.Logs, o.Shard) {
		targets = append(targets, target{o.fileName(Part{Piece: p}), p.File.Rel})
	}
	if m := d.own(o); m != nil && m.Done && m.lists(targets) && !o.Force {
		problem, err := o.problem(ctx, d, m)
		if err != nil {
			return "", err
		}
		if problem == "" {
			// _SUCCESS may be missing if a worker was stopped just before.
			lack, err := o.succeed(ctx)
			if err != nil {
				return "", err
			}
			if lack != "" {
				return m.file, fmt.Errorf("%w, but there is no %s: %s", ErrDone, successName, lack)
			}
			return m.file, ErrDone
		}
	}
	_, err = o.place(ctx, d, targets)
	return "", err
}

// problem returns what is wrong with the files of a manifest, "" if nothing is.
func (o Output) problem(ctx context.Context, d *listing, m *Manifest) (string, error) {
	for _, f := range m.Files {
		trouble, err := o.trouble(ctx, d, m, f)
		if err != nil || trouble != "" {
			return f.Name + " is " + trouble, err
		}
	}
	return "", nil
}

// target is a file that a worker is about to write.
type target struct{ name, input string }

// lists reports whether the manifest has all targets: another run may have
// replaced some.
func (m *Manifest) lists(targets []target) bool {
	names := map[string]bool{}
	for _, f := range m.Files {
		names[f.Name] = true
	}
	return !slices.ContainsFunc(targets, func(t target) bool { return !names[t.name] })
}

// place returns an error if a target cannot be written: something stands there,
// or on the way, that is neither of this run nor what Force replaces. Without
// Force no other run may have written to the directory at all, unless this one
// has finished there before and heals its part. seen are the markers of the files
// that are to be replaced.
func (o Output) place(ctx context.Context, d *listing, targets []target) (seen map[string]string, err error) {
	if own := d.own(o); !o.Force && (own == nil || !own.Done) {
		if err := o.alone(ctx, d); err != nil {
			return nil, err
		}
	}
	if _, ok := d.objects[successName]; ok && len(d.manifests) == 0 {
		if _, err := o.readManifest(ctx, successName); err != nil {
			return nil, fmt.Errorf("%s: %w: %s was written by another program (write to another directory)", o.Name, ErrExists, successName)
		}
	}
	replaced := d.replaced(o)
	for name := range replaced {
		if obj, ok := d.objects[name]; ok && obj.Type != 0 {
			return nil, fmt.Errorf("%s: %w: %w, where an output of an earlier run was (remove it, or write to another directory)", o.Name, ErrExists, d.way(name))
		}
	}
	listed, own := map[string]string{}, map[string]bool{}
	for _, m := range d.manifests {
		for _, f := range m.Files {
			if m.of(o) {
				own[f.Name] = true
			} else if listed[f.Name] = f.Input; f.Input == "" {
				listed[f.Name] = "other inputs"
			}
		}
	}
	seen = map[string]string{}
	for _, t := range targets {
		if !localName(t.name) {
			return nil, fmt.Errorf("%s: the output of %s would be %q, outside the directory (name the input by a path without ..)", o.Name, t.input, t.name)
		}
		if err := d.way(t.name); err != nil {
			return nil, fmt.Errorf("%s: %w: %w, where the output of %s belongs (remove it, or write to another directory)", o.Name, ErrExists, err, t.input)
		}
		if _, ok := d.objects[t.name]; !ok {
			continue
		}
		marker, table, err := o.marker(ctx, o.path(t.name))
		if err != nil {
			return nil, err
		}
		seen[t.name] = marker
		switch {
		case o.ours(marker), own[t.name] && !table, o.Force && (own[t.name] || replaced[t.name]):
			continue
		case own[t.name]:
			return nil, fault.Errorf("%s: %w: %s has changed since this run wrote it ({Force} replaces it)", o.Name, ErrExists, t.name)
		case listed[t.name] != "" && !o.Force:
			return nil, fault.Errorf("%s: %w: %s does not come from these inputs and options ({Force} replaces the outputs of the inputs named, and keeps the others)", o.Name, ErrExists, t.name)
		case listed[t.name] != "":
			return nil, fault.Errorf("%s: %w: %s is the output of %s, which is not an input of this run (write to another directory, or set {Base} so that the names differ)", o.Name, ErrExists, t.name, listed[t.name])
		}
		return nil, fault.Errorf("%s: %w: %s is not listed in a manifest of this directory, so {Force} keeps it (remove it, or write to another directory)", o.Name, ErrExists, t.name)
	}
	return seen, nil
}

// way returns an error if the name leads through something that is not a
// directory, or is itself not a regular file.
func (d *listing) way(name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := d.objects[dir]; ok {
			return fmt.Errorf("%s is a file or link, not a directory", dir)
		}
	}
	if obj, ok := d.objects[name]; ok && obj.Type != 0 {
		return fmt.Errorf("%s is a link or device, not a regular file", name)
	}
	return nil
}

// alone returns an error that wraps ErrExists if something of another run, or of
// nobody's, stands in the directory.
func (o Output) alone(ctx context.Context, d *listing) error {
	own := map[string]bool{}
	for _, m := range d.manifests {
		if !m.of(o) {
			what := m.file
			if i := slices.IndexFunc(m.Files, func(f ManifestFile) bool { _, ok := d.objects[f.Name]; return ok }); i >= 0 {
				what = m.Files[i].Name
			}
			return fault.Errorf("%s: %w: %s does not come from these inputs and options ({Force} replaces the outputs of the inputs named, and keeps the others)", o.Name, ErrExists, what)
		}
		for _, f := range m.Files {
			own[f.Name] = true
		}
	}
	for _, name := range d.data() {
		if own[name] {
			continue
		}
		marker := ""
		if d.objects[name].Type == 0 {
			var err error
			if marker, _, err = o.marker(ctx, o.path(name)); err != nil {
				return err
			}
		}
		if marker == "" {
			return fault.Errorf("%s: %w: %s is not an output of bloomjoin (write to an empty directory; {Force} keeps such files)", o.Name, ErrExists, name)
		}
		if !o.ours(marker) {
			return fault.Errorf("%s: %w: %s does not come from these inputs and options ({Force} replaces the outputs of the inputs named, and keeps the others)", o.Name, ErrExists, name)
		}
	}
	return nil
}

// replaced returns the files of other runs that Force replaces: those whose
// input this run names, and those of no input where it names all of their run.
func (d *listing) replaced(o Output) map[string]bool {
	inputs := map[string]bool{}
	for _, f := range o.Logs {
		inputs[f.Rel] = true
	}
	partly := map[string]bool{} // groups with other inputs
	for _, m := range d.manifests {
		for _, f := range m.Files {
			partly[m.group()] = partly[m.group()] || f.Input != "" && !inputs[f.Input]
		}
	}
	names := map[string]bool{}
	for _, m := range d.manifests {
		for _, f := range m.Files {
			if !m.of(o) && (inputs[f.Input] || f.Input == "" && !partly[m.group()]) {
				names[f.Name] = true
			}
		}
	}
	return names
}

// marker returns what a file says of the run that wrote it, see Output.run; ""
// if it is none of ours. table is false if it cannot be read as a table.
func (o Output) marker(ctx context.Context, name string) (marker string, table bool, err error) {
	opts := OpenOptions{Store: o.Store, Mem: o.Mem}
	opts.fill()
	f, err := openObject(ctx, storage.Object{Name: name, Rel: path.Base(name)}, opts)
	if err != nil {
		return "", false, ctx.Err() // whatever it is, nothing of ours
	}
	md := f.Schema().Metadata()
	run, _ := md.GetValue(MetaRun)
	if _, ok := md.GetValue(MetaResult); ok && run == "" {
		run = "unknown"
	}
	return run, true, f.Close()
}

// ours reports whether a file with the marker was written by some worker of
// this run, divided as it is now.
func (o Output) ours(marker string) bool {
	run, shard, _ := strings.Cut(marker, " ")
	if !o.known() {
		return false
	}
	if o.Shard.Whole() {
		return run == o.common() && shard == ""
	}
	return run == o.common() && strings.HasSuffix(shard, fmt.Sprintf("/%d", o.Shard.Of))
}

// common is the run's digest without the shard.
func (o Output) common() string {
	whole := o
	whole.Shard = Shard{}
	return whole.run()
}

// checkNames refuses logs of which two would be written to one name, by
// whichever workers.
func (o Output) checkNames(logs []*File) error {
	var parts []Part
	for _, f := range logs {
		parts = append(parts, Part{Piece: Piece{File: f, Hi: f.NumGroups()}})
	}
	return o.checkParts(parts)
}

func (o Output) checkParts(parts []Part) error {
	names := map[string]string{}
	for _, p := range parts {
		name := o.fileName(p)
		if other, ok := names[name]; ok {
			return fault.Errorf("%s and %s: both outputs would be %s in %s (name their common directory as the input or with {Base}, or write to two directories)", other, p.name(), name, o.Name)
		}
		names[name] = p.name()
	}
	return nil
}
