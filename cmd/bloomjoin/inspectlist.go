package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keyindex"
	"github.com/bloomjoin/bloomjoin/internal/keys"
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
	defer func() { err = errors.Join(err, list.Close()) }()
	f := &listFacts{Inputs: list.Len(), Rows: list.Rows(), Digest: fmt.Sprintf("%x", list.Digest()), Columns: []keyFacts{}}
	rows := words.Count(f.Rows) + " rows"
	if f.Rows < 0 {
		rows = "rows not counted"
	}
	i.say("list", "%s, %s", words.Things(f.Inputs, "input"), rows)
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
	for _, err := range list.Each(ctx) {
		if err != nil {
			return err
		}
	}
	return i.checked(nil)
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
	defer func() { err = errors.Join(err, x.Close()) }()
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
		i.say("key", "%s, class %s", c, x.Classes[k])
	}
	if f.Normalize != "" {
		i.say("normalized by", "%s", f.Normalize)
	}
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
	names, list, err := c.FilesFrom(cmd, from, args)
	if err != nil || list == nil {
		return names, err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	for in, err := range list.Each(cmd.Context()) {
		if err != nil {
			return nil, err
		}
		names = append(names, in.Name)
	}
	return names, nil
}
