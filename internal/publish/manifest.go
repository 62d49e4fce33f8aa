package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/storage"
)

// version is the version of manifests written. Version 4 does not say when entries were made: it
// is read with Force only, and then all inputs count as changed.
const version = 5

// maxManifest is the largest size of a manifest that is read, in bytes.
const maxManifest = 1 << 30

// Part is one worker's part of a run, as JSON. It is created when all of its files are staged, and
// never changed: of two attempts at one part, the first that creates it counts.
type Part struct {
	Version int    `json:"version"`
	Run     string `json:"run"` // digest of the recipe and the inputs
	Recipe  Recipe `json:"recipe"`
	Shard   uint32 `json:"shard"`
	Of      uint32 `json:"of"`
	Task    Task   `json:"task"`
	// Inputs are what the worker has read: files, or its row groups of files that workers
	// share.
	Inputs  []Entry `json:"inputs"`
	Files   []File  `json:"files"` // staged
	Require Require `json:"require,omitzero"`

	name      string // of the manifest itself, once it takes part in a commit
	written   int64  // in milliseconds since 1970; 0: unknown
	list      string // of a plan that does not name its inputs
	elsewhere bool   // it knows nothing of the state, as it was written beside another directory
}

// key identifies the run of a part, and the state that it began with.
func (p *Part) key() string {
	return fmt.Sprintf("%.*s-of-%05d@%d", digits, p.Run, p.Of, p.Task.Generation)
}

// partName is what the name of a part's manifest says.
type partName struct {
	name  string // in the directory of manifests, or of [Dir.Complete], anywhere
	run   string // the first digits
	shard uint32
	of    uint32
	part  *Part // nil: not read yet
	// identity is that of the part as it was listed; another attempt may create it again.
	identity string
}

// Task is what the workers of a run do together. They agree on it: the first one
// decides, see [Dir.Begin].
type Task struct {
	Inputs     int      `json:"inputs"`           // number of inputs that are read
	Generation int64    `json:"generation"`       // of the state that the inputs were compared with
	All        bool     `json:"all,omitempty"`    // these are all inputs of the run
	Only       []string `json:"only,omitempty"`   // otherwise, these
	Again      []string `json:"again,omitempty"`  // the inputs of Only that are in the state
	Remove     []string `json:"remove,omitempty"` // inputs that are gone, whose outputs are removed
	Kept       Counts   `json:"kept,omitzero"`    // of the other inputs of the run, which are not read again
	Heal       bool     `json:"heal,omitempty"`   // the inputs are unchanged, and their outputs damaged
	Cuts       []Cut    `json:"cuts,omitempty"`   // if Heal, how inputs were divided
	Force      bool     `json:"force,omitempty"`  // outputs of other options are replaced
	Digest     string   `json:"digest,omitempty"` // of the whole task; a [Part] leaves Only and Again out
}

// Cut says how an input was divided among workers, see [Entry].
type Cut struct {
	Input string `json:"input"`
	Cuts  []int  `json:"cuts"`
}

// brief returns the task as it stands in a part.
func (t Task) brief() Task {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %t %t %t ", t.Generation, t.Inputs, t.All, t.Heal, t.Force)
	for _, list := range [][]string{t.Only, t.Again, t.Remove} {
		fmt.Fprintf(h, "%d %q ", len(list), list)
	}
	fmt.Fprintf(h, "%v", t.Cuts)
	t.Only, t.Again, t.Cuts, t.Digest = nil, nil, nil, hex.EncodeToString(h.Sum(nil)[:16])
	return t
}

// named returns the task with all names changed.
func (t Task) named(change func(string) string) Task {
	t.Only, t.Again, t.Remove = each.Slice(t.Only, change), each.Slice(t.Again, change), each.Slice(t.Remove, change)
	t.Cuts = slices.Clone(t.Cuts)
	for i := range t.Cuts {
		t.Cuts[i].Input = change(t.Cuts[i].Input)
	}
	return t
}

// published is what publishing a state came to.
type published struct {
	Version    int               `json:"version"`
	Identities map[string]string `json:"identities"` // of the files that were staged, by Name
}

// plan is a Task as it is stored for the other workers.
type plan struct {
	Version int  `json:"version"`
	Task    Task `json:"task"`
	// Names are the inputs, if Task.All does not list them, see packNames. Other runs
	// read them, to see whether they take the place of this one.
	Names []byte `json:"names,omitempty"`
	// List is the digest of the list of inputs that has them. Then Names has one of them.
	List string `json:"list,omitempty"`
}

// Names in the directory of manifests.

func stateName(generation int64) string { return fmt.Sprintf("manifest-%08d.json", generation) }

const copyName = "manifest.json"

// digits is the number of digits of a run in names.
const digits = 16

func planName(run string, of uint32) string { return "plan-" + keyOf(run, of) + ".json" }

// settledName is the name of what publishing a generation came to, see publish.
func settledName(generation int64) string { return fmt.Sprintf("settled-%08d.json", generation) }

// keyOf identifies a run among those of a directory.
func keyOf(run string, of uint32) string { return fmt.Sprintf("%s-of-%05d", run[:digits], of) }

func (r *Run) partName() string {
	return fmt.Sprintf("shard-%s-%05d-of-%05d.json", r.id[:digits], r.dir.Shard, r.of())
}

// of returns the number of workers.
func (r *Run) of() uint32 { return max(r.dir.Of, 1) }

// has reports whether a part is one of this run.
func (r *Run) has(p *partName) bool { return p.run == r.id[:digits] && p.of == r.of() }

// parsePartName parses the name of a part. It returns nil for other names.
func parsePartName(name string) *partName {
	p := &partName{name: name}
	stem, ok := strings.CutSuffix(name, ".json")
	if !ok {
		return nil
	}
	if n, _ := fmt.Sscanf(stem, "shard-%16s-%d-of-%d", &p.run, &p.shard, &p.of); n != 3 || p.of < 1 || p.of > MaxWorkers || p.shard >= p.of {
		return nil
	}
	if strings.Contains(stem, ".") { // of version 4, of a worker that had not ended
		return nil
	}
	return p
}

// key identifies the run of a part, see keyOf.
func (p *partName) key() string { return keyOf(p.run, p.of) }

// load reads a part. It returns nil if the part has gone meanwhile.
func (l *listing) load(ctx context.Context, p *partName) (_ *Part, err error) {
	if p.part != nil {
		return p.part, nil
	}
	p.part, err = l.dir.readPart(ctx, l.dir.manifest(p.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return p.part, err
}

// generationOf returns the generation in the name of a state, or of how it was settled, or 0.
func generationOf(name string) int64 {
	_, digits, _ := strings.Cut(name, "-")
	n, err := strconv.ParseInt(strings.TrimSuffix(digits, ".json"), 10, 64)
	if err != nil || n < 1 || name != stateName(n) && name != settledName(n) {
		return 0
	}
	return n
}

// manifest returns the full name of a file of the directory of manifests.
func (d *Dir) manifest(name string) string { return strings.TrimRight(d.Manifests, "/") + "/" + name }

// hint is what to do about a manifest that cannot be read.
const hint = "restore it, or write to another directory; without it, the outputs that it lists cannot be identified"

// readState reads a generation of the state. What it says is checked, since it decides
// which files are replaced.
func (d *Dir) readState(ctx context.Context, generation int64, settled bool, s *State) error {
	at := fault.At{File: d.manifest(stateName(generation))}
	if _, err := d.readJSON(ctx, at.File, s, func() int { return s.Version }); err != nil {
		return err
	}
	if s.Generation != generation {
		return faults.Corrupt(at, "the generation %d", s.Generation).WithHint(hint)
	}
	if settled {
		p := published{}
		if _, err := d.readJSON(ctx, d.manifest(settledName(generation)), &p, func() int { return p.Version }); err != nil {
			return err
		}
		s.settle(&p)
	}
	for _, e := range rename(s.Inputs, UnescapeName) {
		if e.Recipe < 0 || e.Recipe >= len(s.Recipes) {
			return faults.Corrupt(at, "recipe %d of %d", e.Recipe, len(s.Recipes)).WithHint(hint)
		}
	}
	if err := cmp.Or(unescapeFiles(at, s.Files), unescapeFiles(at, s.Remove)); err != nil {
		return err
	}
	s.sort()
	return s.consistent(at)
}

// consistent returns an error unless files and inputs name each other.
func (s *State) consistent(at fault.At) error {
	for i, e := range s.Inputs {
		if i > 0 && s.Inputs[i-1].Input == e.Input {
			return faults.Corrupt(at, "the input %q twice", e.Input).WithHint(hint)
		}
		for _, name := range e.Files {
			if s.file(name) == nil {
				return faults.Corrupt(at, "the file %q of an input, which is not among the files", name).WithHint(hint)
			}
		}
	}
	for i, f := range s.Files {
		if i > 0 && s.Files[i-1].Name == f.Name {
			return faults.Corrupt(at, "the file %q twice", f.Name).WithHint(hint)
		}
		for _, input := range f.Inputs {
			if s.entry(input) == nil {
				return faults.Corrupt(at, "the input %q of a file, which is not among the inputs", input).WithHint(hint)
			}
		}
	}
	return nil
}

// readPart reads a worker's manifest, given its full name.
func (d *Dir) readPart(ctx context.Context, name string) (*Part, error) {
	at := fault.At{File: name}
	p := &Part{}
	written, err := d.readJSON(ctx, name, p, func() int { return p.Version })
	if err != nil {
		return nil, err
	}
	if p.Of < 1 || p.Of > MaxWorkers || p.Shard >= p.Of || len(p.Run) < 16 {
		return nil, faults.Corrupt(at, "shard %d of %d of run %q", p.Shard, p.Of, p.Run).WithHint(hint)
	}
	for _, e := range rename(p.Inputs, UnescapeName) {
		if e.Groups < 0 || e.Lo < 0 || e.Hi < e.Lo || e.Hi > e.Groups {
			return nil, faults.Corrupt(at, "row groups %d to %d of %d", e.Lo, e.Hi, e.Groups).WithHint(hint)
		}
	}
	p.Task = p.Task.named(UnescapeName)
	p.written = written
	return p, unescapeFiles(at, p.Files)
}

func unescapeFiles(at fault.At, files []File) error {
	for _, f := range renameFiles(files, UnescapeName) {
		if !localName(f.Name) {
			return faults.Corrupt(at, "the file name %q, which is outside the directory or not an output", f.Name).WithHint(hint)
		}
	}
	return nil
}

func escapeFiles(files []File) []File { return renameFiles(append([]File{}, files...), EscapeName) }

func escapeEntries(entries []Entry) []Entry {
	return rename(append([]Entry{}, entries...), EscapeName)
}

// rename changes all names of entries, in place.
func rename(entries []Entry, change func(string) string) []Entry {
	for i := range entries {
		e := &entries[i]
		e.Input, e.Place, e.Files = change(e.Input), change(e.Place), each.Slice(e.Files, change)
	}
	return entries
}

// renameFiles is rename for files.
func renameFiles(files []File, change func(string) string) []File {
	for i := range files {
		f := &files[i]
		f.Name, f.Staged, f.Inputs = change(f.Name), change(f.Staged), each.Slice(f.Inputs, change)
	}
	return files
}

// localName reports whether an output below a directory can have the name.
func localName(name string) bool {
	return name != "." && path.Clean(name) == name && !path.IsAbs(name) && filepath.IsLocal(filepath.FromSlash(name)) &&
		!strings.ContainsRune(name, 0) && path.Base(name) != Success
}

// readJSON reads a manifest, given its full name. It returns when it was written.
func (d *Dir) readJSON(ctx context.Context, name string, v any, versionOf func() int) (written int64, err error) {
	at := fault.At{File: name}
	b, obj, err := d.readWhole(ctx, name)
	for n := 0; n < 100 && errors.Is(err, storage.ErrChanged); n++ { // another attempt has written it
		b, obj, err = d.readWhole(ctx, name)
	}
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return 0, faults.Corrupt(at, "not a manifest in JSON: %v", err).WithHint(hint)
	}
	switch got := versionOf(); {
	case got == version, got == version-1 && d.Force:
	case got == version-1:
		return 0, faults.Unsupported(at, "a manifest of version %d; this program reads %d", got, version).
			WithHint("run the scan or join again with {Force}, which writes its outputs again")
	default:
		return 0, faults.Unsupported(at, "a manifest of version %d; this program reads %d", got, version).
			WithHint("use a newer bloomjoin, or write to another directory")
	}
	return millis(obj.ModTime), nil
}

// readWhole returns the bytes of a manifest.
func (d *Dir) readWhole(ctx context.Context, name string) (b []byte, obj storage.Object, err error) {
	src, err := d.Store.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return nil, obj, err
	}
	defer faults.Join(&err, src.Close)
	obj = src.Object()
	if obj.Size < 0 || obj.Size > maxManifest {
		return nil, obj, faults.Corrupt(fault.At{File: name}, "a manifest of %d bytes", obj.Size).WithHint(hint)
	}
	b = make([]byte, obj.Size) // by one read, as each may be a request
	if n, err := src.ReadAt(b, 0); n < len(b) {
		return nil, obj, fmt.Errorf("%s: %w", name, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return b, obj, nil
}

// writeState writes a state under a name in the directory of manifests. Unless replace
// is true, the error wraps fs.ErrExist if the name is taken.
func (d *Dir) writeState(ctx context.Context, name string, s *State, replace bool) error {
	c := *s
	c.Recipes = append([]Recipe{}, s.Recipes...) // a list in JSON, also without any
	c.Inputs, c.Files = escapeEntries(s.Inputs), escapeFiles(s.Files)
	if len(s.Remove) > 0 {
		c.Remove = escapeFiles(s.Remove)
	}
	return d.writeJSON(ctx, name, c, replace)
}

// writePart creates a part. The error wraps fs.ErrExist if the name is taken.
func (d *Dir) writePart(ctx context.Context, name string, p *Part) error {
	c := *p
	c.Inputs, c.Files, c.Task = escapeEntries(p.Inputs), escapeFiles(p.Files), p.Task.named(EscapeName)
	return d.writeJSON(ctx, name, c, false)
}

// writeJSON writes a file of the directory of manifests, an input or file a line, so
// that text tools can be used on it.
func (d *Dir) writeJSON(ctx context.Context, name string, v any, replace bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.writeFile(ctx, name, replace, func(w io.Writer) error {
		_, err := w.Write(lines(b))
		return err
	})
}

// writeFile writes a file of the directory of manifests.
func (d *Dir) writeFile(ctx context.Context, name string, replace bool, write func(io.Writer) error) (err error) {
	file, err := d.Store.Create(ctx, d.manifest(name), storage.CreateOptions{})
	if err != nil {
		return err
	}
	defer faults.Join(&err, file.Abort)
	if err := write(file); err != nil {
		return err
	}
	return file.Commit(replace)
}

// lines breaks JSON before each object of a list.
func lines(b []byte) []byte {
	out := make([]byte, 0, len(b)+len(b)/64)
	quoted, escaped := false, false
	for i, c := range b {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && c == '{' && i > 1 && (b[i-1] == '[' || b[i-1] == ',' && b[i-2] == '}'):
			out = append(out, '\n')
		}
		out = append(out, c)
	}
	return append(out, '\n')
}

// remove deletes a file of the directory, if it is there.
func (d *Dir) remove(ctx context.Context, name string) error {
	return d.removeObject(ctx, storage.Object{Name: d.path(name)})
}

// listed returns a part as it was listed.
func (d *Dir) listed(p *partName) storage.Object {
	return storage.Object{Name: d.manifest(p.name), Identity: p.identity}
}

// removeManifest deletes a file of the directory of manifests, if it is there.
func (d *Dir) removeManifest(ctx context.Context, name string) error {
	return d.removeObject(ctx, storage.Object{Name: d.manifest(name)})
}

func (d *Dir) removeObject(ctx context.Context, o storage.Object) error {
	if err := d.Store.Delete(ctx, o); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storage.ErrChanged) {
		return err
	}
	return nil
}
