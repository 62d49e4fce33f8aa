package partition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/publish"
)

// writeDir writes the parts to files in a directory.
func (o Output) writeDir(ctx context.Context, w *Written, parts []Part, rows iter.Seq2[Rows, error]) (err error) {
	if err := o.checkParts(parts); err != nil {
		return err
	}
	job, err := o.jobOf(ctx)
	if err != nil {
		return err
	}
	var targets []publish.Target
	for _, p := range parts {
		if !p.onlySchema() {
			targets = append(targets, o.target(p))
		}
	}
	files := job.NewWriter(targets, o.Hold)
	defer func() { err = errors.Join(err, files.End(ctx, err)) }()
	b := o.newBundler(files, parts)
	if err := b.writeAll(ctx, rows); err != nil {
		return err
	}
	w.Gone = job.Gone()
	return o.finishDir(ctx, files, w)
}

// path returns the full name of a file of the directory.
func (o Output) path(name string) string { return strings.TrimRight(o.Name, "/") + "/" + name }

// target returns the file for a part.
func (o Output) target(p Part) publish.Target {
	t := publish.Target{Name: o.fileName(p)}
	if p.Piece.File != nil {
		t.Input = p.Piece.File.Rel
	}
	return t
}

// targets returns the files for the pieces.
func (o Output) targets(pieces []Piece) (targets []publish.Target) {
	for _, p := range pieces {
		targets = append(targets, o.target(Part{Piece: p}))
	}
	return targets
}

// fileName returns the name of a part's file below the directory: the input's path
// with the extension of the output and, if workers share the input, the range of
// row groups.
func (o Output) fileName(p Part) string {
	if p.Piece.File == nil {
		return o.nowhere() + p.Name + o.extension()
	}
	stem := stemOf(p.Piece.File.Rel)
	if !p.Piece.whole() {
		stem += fmt.Sprintf(".groups-%05d-%05d", p.Piece.Lo, p.Piece.Hi-1)
	}
	return stem + o.extension()
}

// nowhere returns the directory for rows that do not come from the log: in mirrored
// name=value directories, that of NULLs.
func (o Output) nowhere() string {
	if len(o.logs) == 0 || len(o.logs[0].parts) == 0 {
		return ""
	}
	return hive.Nulls(o.logs[0].Rel)
}

// extension returns the file name extension of the output's format.
func (o Output) extension() string {
	if o.Format == ArrowFile {
		return ".arrow"
	}
	return ".parquet"
}

// checkNames refuses logs with two files that would be written to the same name,
// even by different workers.
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
			return o.sameName(other, p.name(), name)
		}
		names[name] = p.name()
	}
	return nil
}

// sameName returns the error for two inputs whose outputs would have the same name.
func (o Output) sameName(one, other, name string) error {
	return fault.Errorf("%s and %s: both outputs would be %s in %s (name their common directory as the input or with {Base}, or write to two directories)", one, other, name, o.Name)
}

// stemOf returns the name of an input's output without its extension.
func stemOf(rel string) string {
	if ext := path.Ext(rel); byName(ext) != "" { // not the .2001 of log.2001
		return strings.TrimSuffix(rel, ext)
	}
	return rel
}
