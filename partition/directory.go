package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"
)

// A directory that is written holds one file for each input partition, a
// manifest from each worker, and _SUCCESS once all workers' manifests are
// there. The names of the latter begin with an underscore, so that no reader
// takes them for data.
const successName = "_SUCCESS"

// Manifest is what a worker says of its part of a directory, as JSON.
type Manifest struct {
	Version int    `json:"version"` // 1
	Run     string `json:"run"`     // digest of the run, the same for all workers
	Shard   uint32 `json:"shard"`
	Of      uint32 `json:"of"`
	Result  string `json:"result"`
	Filter  string `json:"filter,omitempty"`
	Written
}

// manifestName returns the name of worker i's manifest.
func manifestName(i, of uint32) string {
	if of <= 1 {
		return "_manifest.json"
	}
	return fmt.Sprintf("_manifest-%05d-of-%05d.json", i, of)
}

func (o Output) path(name string) string {
	return strings.TrimRight(o.Name, "/") + "/" + name
}

// common is the run's digest without the shard.
func (o Output) common() string {
	whole := o
	whole.Shard = Shard{}
	return whole.run()
}

// checkDir: see Check. Files of the same run that stand there without its
// manifest are what an interrupted attempt has left; they do no harm.
func (o Output) checkDir(ctx context.Context) error {
	m, err := o.readManifest(ctx, manifestName(o.Shard.Index, o.Shard.Of))
	if err == nil && o.known() && m.Run == o.common() {
		return o.finished(ctx, m)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !o.Force {
		return err
	}
	if o.Force {
		return nil
	}
	entries, err := o.Store.List(ctx, o.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		marker, err := o.marker(ctx, e.Name)
		if err != nil {
			return err
		}
		if !o.ours(marker) {
			return fmt.Errorf("%s: %w: %s is of another run (--force replaces the files)", o.Name, ErrExists, e.Rel)
		}
	}
	return o.alone(ctx)
}

// alone returns an error that wraps ErrExists if another run has left its
// manifest, even one of no files.
func (o Output) alone(ctx context.Context) error {
	names := []string{successName, manifestName(0, 1)}
	for i := range o.Shard.Of {
		names = append(names, manifestName(i, o.Shard.Of))
	}
	for _, name := range names {
		m, err := o.readManifest(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if m.Run != o.common() || m.Of != max(o.Shard.Of, 1) {
			return fmt.Errorf("%s: %w: %s is of another run (--force replaces the files)", o.Name, ErrExists, name)
		}
	}
	return nil
}

// finished returns ErrDone if all files of the worker's manifest are there.
// Where somebody has removed one, it returns nil, and the directory is marked
// unfinished.
func (o Output) finished(ctx context.Context, m Manifest) error {
	for _, f := range m.Files {
		size, err := o.size(ctx, f.Name)
		if err != nil {
			return err
		}
		if size != f.Bytes {
			return errors.Join(o.remove(ctx, o.path(successName)), o.remove(ctx, o.path(manifestName(m.Shard, m.Of))))
		}
	}
	if s, err := o.readManifest(ctx, successName); err == nil && s.Run == m.Run {
		return ErrDone
	}
	// A worker was stopped between its manifest and _SUCCESS.
	if err := o.succeed(ctx); err != nil {
		return err
	}
	return ErrDone
}

// size returns the size of a file in the directory, -1 if there is none.
func (o Output) size(ctx context.Context, name string) (int64, error) {
	src, err := o.Store.Open(ctx, o.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	return src.Size(), src.Close()
}

// marker returns what a file says of the run that wrote it, see Output.run; ""
// if it is none of ours.
func (o Output) marker(ctx context.Context, name string) (string, error) {
	files, err := Open(ctx, []string{name}, OpenOptions{Store: o.Store, Mem: o.Mem})
	if err != nil {
		return "", ctx.Err() // whatever it is, nothing of ours
	}
	md := files[0].Schema().Metadata()
	run, _ := md.GetValue(MetaRun)
	if _, ok := md.GetValue(MetaResult); ok && run == "" {
		run = "unknown"
	}
	return run, Close(files)
}

// ours reports whether a file with the marker was written by some worker of
// this run, divided as it is now. (Divided otherwise, the same rows would
// stand there twice.)
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

// clear makes room. What marks another run as finished goes first, then, which
// Force allows, its data files. A file that is no output of ours is left alone,
// and then nothing is removed at all.
func (o Output) clear(ctx context.Context) error {
	entries, err := o.Store.List(ctx, o.Name)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err = nil, nil // no data yet
	}
	if err != nil {
		return err
	}
	if !o.Force { // what has come since Check is refused
		if err := o.alone(ctx); err != nil {
			return err
		}
	}
	numbers := map[uint32]bool{1: true, max(o.Shard.Of, 1): true} // of workers that have written here
	var stale []string
	for _, e := range entries {
		marker, err := o.marker(ctx, e.Name)
		switch {
		case err != nil:
			return err
		case o.ours(marker):
			continue
		case !o.Force:
			return fmt.Errorf("%s: %w: %s is of another run (--force replaces the files)", o.Name, ErrExists, e.Rel)
		case marker == "":
			return fmt.Errorf("%s: %w: %s is no output of bloomjoin, so that --force leaves it alone", o.Name, ErrExists, e.Rel)
		}
		if _, shard, ok := strings.Cut(marker, " "); ok {
			if s, err := ParseShard(shard); err == nil {
				numbers[s.Of] = true
			}
		}
		stale = append(stale, e.Name)
	}
	if m, err := o.readManifest(ctx, successName); err != nil || m.Run != o.common() || m.Of != max(o.Shard.Of, 1) {
		if err := o.remove(ctx, o.path(successName)); err != nil {
			return err
		}
	}
	for of := range numbers {
		for i := range of {
			if err := o.clearManifest(ctx, i, of); err != nil {
				return err
			}
		}
	}
	for _, name := range stale {
		if err := o.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// clearManifest removes a manifest unless it is of this run.
func (o Output) clearManifest(ctx context.Context, i, of uint32) error {
	m, err := o.readManifest(ctx, manifestName(i, of))
	if errors.Is(err, fs.ErrNotExist) || err == nil && o.known() && m.Run == o.common() && m.Of == max(o.Shard.Of, 1) {
		return nil
	}
	return o.remove(ctx, o.path(manifestName(i, of)))
}

func (o Output) remove(ctx context.Context, name string) error {
	if err := o.Store.Remove(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (o Output) readManifest(ctx context.Context, name string) (m Manifest, err error) {
	src, err := o.Store.Open(ctx, o.path(name))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	b, err := io.ReadAll(io.NewSectionReader(src, 0, min(src.Size(), 1<<30)))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%s: %w: %w", o.path(name), ErrCorrupt, err)
	}
	return m, nil
}

// writeDir writes each part to its own file, then the manifest.
func (o Output) writeDir(ctx context.Context, parts []Part, rows iter.Seq2[Rows, error]) (w Written, err error) {
	if !o.known() && !o.Shard.Whole() {
		return w, errors.New("a directory that several workers write needs the digest of their run")
	}
	if err := o.checkParts(parts); err != nil {
		return w, err
	}
	held := holding{out: o}
	defer func() { err = errors.Join(err, held.abort()) }()
	if !o.Hold {
		if err := o.clear(ctx); err != nil {
			return w, err
		}
	}
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
			continue // only lends its schema to a file
		}
		name := o.fileName(p)
		n, size, err := held.write(ctx, o.path(name), p, one)
		if err != nil {
			return w, err
		}
		out := WrittenFile{Name: name, Rows: n, Bytes: size}
		if p.Piece.File != nil {
			out.Input = p.Piece.File.Rel
		}
		w.Files = append(w.Files, out)
		w.Rows, w.Bytes = w.Rows+n, w.Bytes+size
	}
	if err != nil {
		return w, err
	}
	if more { // never to be lost without a word
		return w, fmt.Errorf("%s: rows of part %d of %d came out of order", o.Name, pending.Piece, len(parts))
	}
	if err := held.publish(ctx); err != nil {
		return w, err
	}
	return w, errors.Join(o.writeManifest(ctx, w), o.succeed(ctx))
}

// holding is the files of a directory that are written and wait for the rest,
// if they are to.
type holding struct {
	out   Output
	names []string
	sinks []Sink
}

// write writes a file, and makes it visible unless it is held.
func (h *holding) write(ctx context.Context, name string, p Part, rows iter.Seq2[Rows, error]) (n, size int64, err error) {
	sink, n, size, err := h.out.stage(ctx, name, p, rows)
	if err != nil {
		return 0, 0, err
	}
	if !h.out.Hold {
		return n, size, h.out.commitInto(ctx, name, sink)
	}
	h.names, h.sinks = append(h.names, name), append(h.sinks, sink)
	if f, ok := sink.(interface{ Finish() error }); ok {
		err = f.Finish()
	}
	return n, size, err
}

// publish makes the files that are held visible.
func (h *holding) publish(ctx context.Context) error {
	if !h.out.Hold {
		return nil
	}
	if err := h.out.clear(ctx); err != nil {
		return err
	}
	for len(h.sinks) > 0 {
		name, sink := h.names[0], h.sinks[0]
		h.names, h.sinks = h.names[1:], h.sinks[1:]
		if err := h.out.commitInto(ctx, name, sink); err != nil {
			return err
		}
	}
	return nil
}

// abort drops the files that are held still.
func (h *holding) abort() error {
	var errs []error
	for _, s := range h.sinks {
		errs = append(errs, s.Abort())
	}
	return errors.Join(errs...)
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
			return fmt.Errorf("%s and %s would both be written to %s in %s (name their common directory as the input, or write to two directories)", other, p.name(), name, o.Name)
		}
		names[name] = p.name()
	}
	return nil
}

// commitInto makes one file of the directory visible. It replaces what this run
// has left there, and nothing that another run has put there meanwhile.
func (o Output) commitInto(ctx context.Context, name string, sink Sink) error {
	marker, err := o.marker(ctx, name)
	if err != nil {
		return errors.Join(err, sink.Abort())
	}
	o.Force = o.ours(marker)
	return o.commit(ctx, name, sink)
}

func (o Output) writeManifest(ctx context.Context, w Written) error {
	m := Manifest{
		Version: 1, Run: o.common(), Shard: o.Shard.Index, Of: max(o.Shard.Of, 1),
		Result: o.Result, Filter: o.metadata()[MetaFilter], Written: w,
	}
	name := manifestName(o.Shard.Index, o.Shard.Of)
	if old, err := o.readManifest(ctx, name); err == nil && old.Run != m.Run {
		return fmt.Errorf("%s: %w: another run has written %s meanwhile", o.Name, ErrExists, name)
	}
	return o.writeJSON(ctx, name, m)
}

func (o Output) writeJSON(ctx context.Context, name string, v any) (err error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	sink, err := o.Store.Create(ctx, o.path(name), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Abort()) }()
	if _, err := sink.Write(append(b, '\n')); err != nil {
		return err
	}
	return sink.Commit(true)
}

// succeed writes _SUCCESS if the manifests of all workers of this run are
// there. The worker that finishes last does it; two at once write the same.
func (o Output) succeed(ctx context.Context) error {
	sum := Manifest{Version: 1, Run: o.common(), Of: max(o.Shard.Of, 1), Result: o.Result, Filter: o.metadata()[MetaFilter]}
	for i := range sum.Of {
		m, err := o.readManifest(ctx, manifestName(i, o.Shard.Of))
		if errors.Is(err, fs.ErrNotExist) || err == nil && m.Run != sum.Run {
			return nil // not all is there yet
		}
		if err != nil {
			return err
		}
		sum.Rows, sum.Bytes = sum.Rows+m.Rows, sum.Bytes+m.Bytes
		for _, f := range m.Files {
			marker, err := o.marker(ctx, o.path(f.Name))
			if err != nil {
				return err
			}
			if size, err := o.size(ctx, f.Name); err != nil || size != f.Bytes || o.known() && !o.ours(marker) {
				return errors.Join(err, fmt.Errorf("%s: %w: %s is not as this run has written it", o.Name, ErrExists, f.Name))
			}
			sum.Files = append(sum.Files, WrittenFile{Name: path.Clean(f.Name), Input: f.Input, Rows: f.Rows, Bytes: f.Bytes})
		}
	}
	return o.writeJSON(ctx, successName, sum)
}
