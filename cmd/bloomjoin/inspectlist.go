package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keyindex"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// listFacts describes a list of inputs.
type listFacts struct {
	Inputs  int        `json:"inputs"`
	Rows    int64      `json:"rows"` // -1: unknown
	Digest  string     `json:"digest"`
	Columns []keyFacts `json:"path_columns"` // of name=value directories, with their types
}

// list describes a list of inputs, and with check reads all of it.
func (i *inspected) list(ctx context.Context, store storage.Source, name string, check bool) (err error) {
	list, err := inputs.Read(ctx, store, name)
	if err != nil {
		return err
	}
	defer faults.Join(&err, list.Close)
	f := &listFacts{Inputs: list.Len(), Rows: list.Rows(), Digest: fmt.Sprintf("%x", list.Digest()), Columns: []keyFacts{}}
	i.say("list", "%s, %s", words.Things(f.Inputs, "input"), rowsCounted(f.Rows))
	i.say("of", "%s", strings.Join(list.Arguments(), ", "))
	for _, c := range list.Hive() {
		f.Columns = append(f.Columns, keyFacts{c.Name, keys.TypeName(c.Type)})
		i.say("path column", "%s %s", c.Name, keys.TypeName(c.Type))
	}
	i.say("digest", "%s", f.Digest)
	i.Inputs = f
	if !check {
		return nil
	}
	return i.checked(list.Check(ctx))
}

// indexFacts describes an index of a list.
type indexFacts struct {
	Inputs    int        `json:"inputs"`
	Key       []keyFacts `json:"key"`
	Normalize string     `json:"normalize,omitempty"`
	FPRAsked  float64    `json:"fpr_asked"`
	RowGroups bool       `json:"row_groups"`
	List      string     `json:"list_digest"`
}

// index describes an index of a list, and with check reads all of it.
func (i *inspected) index(ctx context.Context, store storage.Source, name string, check bool) (err error) {
	x, err := keyindex.Open(ctx, store, name)
	if err != nil {
		return err
	}
	defer faults.Join(&err, x.Close)
	f := &indexFacts{Inputs: x.Inputs, Normalize: x.Rule().String(), FPRAsked: x.FPR, RowGroups: x.RowGroups, List: x.List}
	of := "files"
	if f.RowGroups {
		of = "files and row groups"
	}
	i.say("index", "of %s, %s", words.Things(f.Inputs, "input"), of)
	columns, err := keys.ParseColumns(x.Key)
	if err != nil {
		return err
	}
	for k, c := range columns {
		f.Key = append(f.Key, keyFacts{c.String(), x.Classes[k]})
	}
	i.key(f.Key, f.Normalize)
	i.say("false positives", "%.3g asked for", f.FPRAsked)
	i.say("reveals", "membership: the file answers whether a key is in a file")
	i.say("list", "%s", f.List)
	i.Index = f
	if !check {
		return nil
	}
	return i.checked(x.Check(ctx))
}

// inspectedNames returns the names of the files to inspect.
func (c *cli) inspectedNames(cmd *cobra.Command, from *flags.Inputs, args []string) (names []string, err error) {
	if i := slices.IndexFunc(args, lake.IsName); i >= 0 {
		return nil, flags.Usagef("%s: inspect takes files; bloomjoin inputs lists those of a table", args[i])
	}
	names, list, err := c.FilesFrom(cmd, from, args)
	if err != nil || list == nil {
		return names, err
	}
	defer faults.Join(&err, list.Close)
	for in, err := range list.Each(cmd.Context()) {
		if err != nil {
			return nil, err
		}
		names = append(names, in.Name)
	}
	return names, nil
}

// dirInspected is the report about an output directory.
type dirInspected struct {
	Directory  string   `json:"directory"`
	Generation int64    `json:"generation"`
	Inputs     int      `json:"inputs"`
	Files      int      `json:"files"`
	Rows       int64    `json:"rows"`
	Bytes      int64    `json:"bytes"`
	Complete   bool     `json:"complete"`
	Checked    bool     `json:"checked"`
	Problems   []string `json:"problems,omitempty"`
}

// inspectState compares an output directory with its manifest. It returns nil if there is
// none. With check, a difference is an error.
func (c *cli) inspectState(ctx context.Context, dir, manifests string, check bool, found []inspected) (*dirInspected, error) {
	d, err := output.InspectDirectory(ctx, output.Destination{Output: output.Output{Name: dir, Store: c.Store()}, ManifestDir: manifests}, check)
	if err != nil || d == nil {
		return nil, err
	}
	complete := "complete"
	if !d.Complete {
		complete = "not complete"
	}
	var rows int64
	for _, f := range found {
		if d.Generation == 0 && f.Table != nil { // the manifest has none yet
			rows += f.Table.Rows
		}
	}
	if rows > 0 {
		complete += fmt.Sprintf(": %s so far in %s", words.Things(rows, "row"), words.Things(len(found), "file"))
	}
	c.describe("  manifest: %s, %s rows in %s, %s; %s", words.Things(d.Inputs, "input"), words.Count(d.Rows), words.Things(d.Files, "file"), words.Bytes(d.Bytes), complete)
	var failed []error
	for _, p := range d.Problems {
		if check {
			failed = append(failed, errors.New(p))
		} else {
			c.describe("  %s", p)
		}
	}
	return &dirInspected{dir, d.Generation, d.Inputs, d.Files, d.Rows, d.Bytes, d.Complete, check && len(failed) == 0, d.Problems}, errors.Join(failed...)
}

// describe prints a line about a file, unless the report is JSON.
func (c *cli) describe(format string, args ...any) {
	if !c.JSON {
		fmt.Fprintf(words.Printable{Writer: c.Stdout}, format+"\n", args...)
	}
}

// roundRobin gives files to workers in turn: file k of all that the arguments name belongs to
// worker k mod N. Files of other workers are not opened.
type roundRobin struct {
	shard dataset.Shard
	next  uint64
}

// mine reports whether the next file belongs to this worker.
func (t *roundRobin) mine() bool {
	k := t.next
	t.next++
	return t.shard.Whole() || k%uint64(t.shard.Of) == uint64(t.shard.Index)
}

// inspectDir prints a line about each file below a directory. Files of other
// formats are not errors.
func (c *cli) inspectDir(cmd *cobra.Command, dir string, check bool, all *roundRobin, lim filters.Limits) (found []inspected, err error) {
	entries, _, err := listing.List(cmd.Context(), c.Store(), dir)
	if errors.Is(err, storage.ErrNoFiles) {
		c.describe("%s: a directory without files", dir)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("%s: a directory of %s", dir, words.Things(len(entries), "file"))
	if !all.shard.Whole() {
		entries = slices.DeleteFunc(entries, func(storage.Object) bool { return !all.mine() })
		about += fmt.Sprintf(", %s of them in shard %s", words.Count(len(entries)), all.shard)
	}
	c.describe("%s", about)
	var failed []error
	for _, e := range entries {
		i, err := c.inspectOne(cmd, e.Name, check, 0, source.Opening{}, lim)
		if err != nil {
			if errors.Is(err, source.ErrNoData) {
				c.describe("  %s: not a filter, Parquet or Arrow file", e.Rel)
				continue
			}
			c.describe("  %s: cannot be read", e.Rel)
			failed = append(failed, err)
			continue
		}
		c.describe("  %s: %s, %s", e.Rel, words.Bytes(i.Bytes), i.summary())
		found = append(found, i)
	}
	return found, errors.Join(failed...)
}
