package output

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// dirSink writes the files of a directory.
type dirSink struct {
	out     Destination
	job     *publish.Run
	files   *publish.Writer
	bundles *bundler
}

// openDir opens a directory for the parts.
func (o Destination) openDir(ctx context.Context, parts []Part) (rowSink, error) {
	if err := o.checkParts(parts); err != nil {
		return nil, err
	}
	job, err := o.jobOf(ctx)
	if err != nil {
		return nil, err
	}
	var targets []publish.Target
	for _, p := range parts {
		if !p.onlySchema() {
			targets = append(targets, o.target(p))
		}
	}
	for _, u := range o.Unread {
		whole := u.Lo == 0 && u.Hi == len(u.Input.Groups)
		targets = append(targets, publish.Target{Name: o.nameOf(u.Input.Rel, u.Lo, u.Hi, whole), Input: u.Input.Rel})
	}
	files := job.NewWriter(targets)
	return &dirSink{o, job, files, &bundler{out: o, files: files, parts: parts, bundle: o.bundles(parts), last: -1}}, nil
}

func (d *dirSink) write(ctx context.Context, r outRows) error { return d.bundles.add(ctx, r) }

func (d *dirSink) end(ctx context.Context, w *dataset.Written, err error) error {
	if err == nil {
		err = d.bundles.finish(ctx)
	}
	if err != nil {
		err = errors.Join(err, d.bundles.abort())
	}
	d.bundles = nil // what its parts hold is not needed to publish the files
	if err == nil {
		w.Gone = d.job.Gone()
		err = d.out.finishDir(ctx, d.files, w)
	}
	return errors.Join(err, d.files.End(ctx, err))
}

// path returns the full name of a file of the directory.
func (o Destination) path(name string) string { return strings.TrimRight(o.Name, "/") + "/" + name }

// target returns the file for a part.
func (o Destination) target(p Part) publish.Target {
	t := publish.Target{Name: o.fileName(p)}
	if p.Piece.File != nil {
		t.Input = p.Piece.File.Rel()
	}
	return t
}

// targets returns the files for the pieces.
func (o Destination) targets(pieces []source.Piece) (targets []publish.Target) {
	for _, p := range pieces {
		targets = append(targets, o.target(Part{Piece: p}))
	}
	return targets
}

// fileName returns the name of a part's file below the directory: the input's path
// with the extension of the output and, if workers share the input, the range of
// row groups.
func (o Destination) fileName(p Part) string {
	if p.Piece.File == nil {
		return o.nowhere() + p.Name + o.extension()
	}
	return o.nameOf(p.Piece.File.Rel(), p.Piece.Lo, p.Piece.Hi, p.Piece.Whole())
}

// nameOf is fileName for some row groups of an input, or the whole.
func (o Destination) nameOf(rel string, lo, hi int, whole bool) string {
	stem := source.StemOf(rel)
	if !whole {
		stem += fmt.Sprintf(".groups-%05d-%05d", lo, hi-1)
	}
	return stem + o.extension()
}

// nowhere returns the directory for rows that do not come from the log: in mirrored
// name=value directories, that of NULLs.
func (o Destination) nowhere() string {
	if len(o.logs) == 0 || len(o.logs[0].Parts()) == 0 {
		return ""
	}
	return hive.Nulls(o.logs[0].Rel())
}

// extension returns the file name extension of the output's format.
func (o Destination) extension() string {
	if o.Format == dataset.ArrowFile {
		return ".arrow"
	}
	return ".parquet"
}

// checkNames refuses logs with two files that would be written to the same name,
// even by different workers.
func (o Destination) checkNames(logs []*source.File) error {
	var parts []Part
	for _, f := range logs {
		parts = append(parts, Part{Piece: source.Piece{File: f, Hi: f.NumGroups()}})
	}
	return o.checkParts(parts)
}

func (o Destination) checkParts(parts []Part) error {
	names := map[string]string{}
	for _, p := range parts {
		name := o.fileName(p)
		if other, ok := names[name]; ok {
			return o.sameName(other, p.name(), name)
		}
		names[name] = p.name()
	}
	return nil
}

// sameName returns the error for two inputs whose outputs would have the same name.
func (o Destination) sameName(one, other, name string) error {
	hint := fault.Text("name their common directory as the input or with {Base}")
	if path.Dir(one) == path.Dir(other) {
		hint = "rename one"
	}
	return cause.Mark(cause.OutputPath, faults.Errorf("%s and %s: both outputs would be %s in %s (%s, or write to two directories)", one, other, name, o.Name, hint))
}
