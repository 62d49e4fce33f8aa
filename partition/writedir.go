package partition

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/storage"
)

// dirWriter writes a worker's files into a directory. Before the first of them
// becomes visible, begin makes room; after the last one finish says that all are
// there.
//
// A process may be killed between any two of these steps. Each step leaves the
// directory such that every file of it is in a manifest, no manifest that says
// done lists a file of an earlier attempt, and _SUCCESS stands only beside what
// it lists:
//
//	begin    the manifest, not done, with the names of all files to come
//	         _SUCCESS goes
//	         with Force: files of other runs that will not be written over go,
//	         then other runs' manifests lose the files that are replaced
//	         each file, by renaming its whole copy
//	finish   the manifest, done
//	         _SUCCESS, if all manifests are done and all files as they say
type dirWriter struct {
	out     Output
	plan    []target
	files   []ManifestFile
	held    []staged
	seen    map[string]string // markers of files to replace
	intent  string            // the identity of its manifest
	begun   bool
	changed bool // other runs' files or manifests, or a file was published
	notes   []string
}

// staged is a file that nobody sees yet.
type staged struct {
	name string
	sink storage.Writer
}

// identify gives a run without a digest that writes a directory an identity in
// its manifest which no other run has: none takes its files for its own.
func (o *Output) identify(ctx context.Context) error {
	if o.known() || o.nonce != "" || !o.IsDir(ctx) {
		return nil
	}
	if !o.Shard.Whole() {
		return errors.New("a directory that several workers write needs the digest of their run")
	}
	var b [32]byte
	_, err := rand.Read(b[:])
	o.nonce = hex.EncodeToString(b[:])
	return err
}

// writeDir writes each part to its own file, and the manifest.
func (o Output) writeDir(ctx context.Context, parts []Part, rows iter.Seq2[Rows, error]) (w Written, err error) {
	if err := o.checkParts(parts); err != nil {
		return w, err
	}
	if err := storage.Sweep(ctx, o.Store, o.Name); err != nil {
		return w, err
	}
	d := &dirWriter{out: o}
	for _, p := range parts {
		t := target{name: o.fileName(p)}
		switch {
		case p.Piece.File != nil:
			t.input = p.Piece.File.Rel
			if o.Logs == nil {
				d.out.Logs = append(d.out.Logs, p.Piece.File)
			}
		case p.Name == "":
			continue // only lends its schema to a file
		}
		d.plan = append(d.plan, t)
	}
	defer func() { err = errors.Join(err, d.abort(ctx, err)) }()
	if err := d.parts(ctx, parts, rows); err != nil {
		return w, err
	}
	if err := d.finish(ctx); err != nil {
		return w, err
	}
	for _, f := range d.files {
		w.Files = append(w.Files, WrittenFile{Name: f.Name, Input: f.Input, Rows: f.Rows, Bytes: f.Bytes})
		w.Rows, w.Bytes = w.Rows+f.Rows, w.Bytes+f.Bytes
	}
	w.Notes = d.notes
	return w, nil
}

// parts writes the files, and makes them visible unless they are held.
func (d *dirWriter) parts(ctx context.Context, parts []Part, rows iter.Seq2[Rows, error]) error {
	next, stop := iter.Pull2(rows)
	defer stop()
	pending, err, more := next()
	defer func() {
		pending.release() // of the part after one that failed
	}()
	for i, p := range parts {
		one := func(yield func(Rows, error) bool) {
			for more && (err != nil || pending.Piece == i) {
				r := pending
				pending = Rows{Piece: r.Piece} // the rest is the receiver's now
				if !yield(r, err) {
					return
				}
				pending, err, more = next()
			}
		}
		if p.Piece.File == nil && p.Name == "" {
			continue
		}
		if err := d.write(ctx, p, one); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if more { // never to be lost without a word
		return fmt.Errorf("%s: rows of part %d of %d came out of order", d.out.Name, pending.Piece, len(parts))
	}
	return nil
}

// write writes a file, and makes it visible unless it is held.
func (d *dirWriter) write(ctx context.Context, p Part, rows iter.Seq2[Rows, error]) error {
	t := d.plan[len(d.files)]
	h := xxh3.New()
	sink, n, size, err := d.out.stage(ctx, d.out.path(t.name), p, rows, h)
	if err != nil {
		return err
	}
	d.files = append(d.files, ManifestFile{Name: t.name, Input: t.input, Rows: n, Bytes: size, Sum: sumText(h)})
	d.held = append(d.held, staged{t.name, sink})
	if !d.out.Hold {
		return d.publish(ctx)
	}
	return storage.Finish(sink)
}

// publish makes the files that are held visible.
func (d *dirWriter) publish(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	for len(d.held) > 0 {
		s := d.held[0]
		d.held = d.held[1:]
		if err := d.commit(ctx, s); err != nil {
			return errors.Join(err, s.sink.Abort())
		}
	}
	return nil
}

// commit makes one file visible. It replaces what this run has left there, or
// what was to be replaced when it began, and nothing that another run has put
// there meanwhile.
func (d *dirWriter) commit(ctx context.Context, s staged) error {
	o, name := d.out, d.out.path(s.name)
	if err := d.undisputed(ctx); err != nil {
		return err
	}
	marker, _, err := o.marker(ctx, name)
	if err != nil {
		return err
	}
	before, there := d.seen[s.name]
	o.Force = o.ours(marker) || there && marker == before
	d.changed = true
	return o.commit(ctx, name, s.sink)
}

// undisputed returns an error if another run has taken files out of this one's
// manifest, or all of it: it was told to replace them.
func (d *dirWriter) undisputed(ctx context.Context) error {
	now, err := d.out.Store.Stat(ctx, d.out.path(d.out.manifestName()))
	if err == nil && now.Identity == d.intent && now.Identity != "" {
		return nil
	}
	m, err := d.out.readManifest(ctx, d.out.manifestName())
	if err == nil && m.lists(d.plan) {
		d.intent = now.Identity // another attempt at the same run has written it
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: another run replaced outputs of this one in the meantime (let only one run write the outputs of an input)", d.out.Name, ErrExists)
	}
	return err
}

// begin makes room for the files: see dirWriter.
func (d *dirWriter) begin(ctx context.Context) error {
	if d.begun {
		return nil
	}
	o := d.out
	c, err := o.look(ctx)
	if err != nil {
		return err
	}
	if d.seen, err = o.place(ctx, c, d.plan); err != nil {
		return err
	}
	own := c.own(o)
	if own != nil {
		d.changed = true // its manifest is about to be replaced
		if problem, err := o.problem(ctx, c, own); err != nil {
			return err
		} else if own.Done && problem != "" {
			d.notes = append(d.notes, problem+"; it was written again")
		}
	}
	plan := o.newManifest()
	for _, t := range d.plan {
		plan.Files = append(plan.Files, ManifestFile{Name: t.name, Input: t.input})
	}
	if err := o.writeManifest(ctx, o.manifestName(), plan); err != nil {
		return err
	}
	d.begun = true
	if err := o.remove(ctx, successName); err != nil {
		return err
	}
	if own != nil && own.file != o.manifestName() { // of version 1
		if err := o.remove(ctx, own.file); err != nil {
			return err
		}
	}
	if o.Force {
		return d.clear(ctx, c)
	}
	return nil
}

func (o Output) newManifest() *Manifest {
	return &Manifest{
		Run: o.id(), Shard: o.Shard.Index, Of: max(o.Shard.Of, 1),
		Result: o.Result, Filter: o.metadata()[MetaFilter], Files: []ManifestFile{},
	}
}

// clear removes the files of other runs that are replaced and that no worker of
// this run writes over, and takes all that are replaced out of the manifests.
func (d *dirWriter) clear(ctx context.Context, c *listing) error {
	o := d.out
	replaced := c.replaced(o)
	if len(replaced) == 0 {
		return nil
	}
	d.changed = true
	written := map[string]bool{}
	for _, t := range d.plan {
		written[t.name] = true
	}
	for i := range max(o.Shard.Of, 1) {
		for _, p := range Split(o.Logs, Shard{i, o.Shard.Of}) {
			written[o.fileName(Part{Piece: p})] = true
		}
	}
	for name := range replaced {
		if _, ok := c.objects[name]; !ok || written[name] {
			continue // what stands there is a regular file below no link: see place
		}
		if err := o.remove(ctx, name); err != nil {
			return err
		}
	}
	return d.prune(ctx, c, replaced)
}

// prune takes files out of the manifests of other runs. A run of which nothing is
// left loses its manifests.
func (d *dirWriter) prune(ctx context.Context, c *listing, replaced map[string]bool) error {
	left := map[string]int{}
	for _, m := range c.manifests {
		if m.of(d.out) {
			continue
		}
		before := len(m.Files)
		m.Files = slices.DeleteFunc(m.Files, func(f ManifestFile) bool { return replaced[f.Name] })
		left[m.group()] += len(m.Files)
		if len(m.Files) == before {
			continue
		}
		m.Rows, m.Bytes = 0, 0
		for _, f := range m.Files {
			m.Rows, m.Bytes = m.Rows+f.Rows, m.Bytes+f.Bytes
			// A file that was changed is known by being younger than its manifest,
			// which is about to be written: its run has to write it again.
			trouble, err := d.out.trouble(ctx, c, m, f)
			if err != nil {
				return err
			}
			m.Done = m.Done && trouble != "changed"
		}
		if err := d.out.writeManifest(ctx, m.file, m); err != nil {
			return err
		}
	}
	for _, m := range c.manifests {
		if n, ok := left[m.group()]; ok && n == 0 {
			if err := d.out.remove(ctx, m.file); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish publishes what is held, and says in the manifest that all is there.
func (d *dirWriter) finish(ctx context.Context) error {
	if err := d.publish(ctx); err != nil {
		return err
	}
	if err := d.undisputed(ctx); err != nil {
		return err
	}
	o := d.out
	for _, f := range d.files {
		marker, _, err := o.marker(ctx, o.path(f.Name))
		if err != nil {
			return err
		}
		if o.known() && !o.ours(marker) {
			return fmt.Errorf("%s: %w: %s has changed since this run wrote it (let only one run write the outputs of an input)", o.Name, ErrExists, f.Name)
		}
	}
	m := o.newManifest()
	m.Done, m.Files = true, append(m.Files, d.files...)
	for _, f := range d.files {
		m.Rows, m.Bytes = m.Rows+f.Rows, m.Bytes+f.Bytes
	}
	if err := o.writeManifest(ctx, o.manifestName(), m); err != nil {
		return err
	}
	lack, err := o.succeed(ctx)
	if lack != "" {
		d.notes = append(d.notes, fmt.Sprintf("%s is not there: %s", successName, lack))
	}
	return err
}

// abort drops the files that are held still after an error. A run that has
// changed nothing takes its manifest back.
func (d *dirWriter) abort(ctx context.Context, failed error) error {
	var errs []error
	for _, s := range d.held {
		errs = append(errs, s.sink.Abort())
	}
	if failed != nil && d.begun && !d.changed {
		errs = append(errs, d.out.remove(context.WithoutCancel(ctx), d.out.manifestName()))
	}
	return errors.Join(errs...)
}
