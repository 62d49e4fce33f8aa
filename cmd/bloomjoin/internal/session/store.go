package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// Store returns where inputs and outputs are.
func (c *Session) Store() storage.Storage {
	if c.Stored == nil {
		s := cloud.New(c.storeOptions)
		c.Stored, c.closeStore = s, s.Close
	}
	return c.Stored
}

// CheckStore sets the options of the store from the flags.
func (c *Session) CheckStore() (err error) {
	c.storeOptions, err = flags.StoreOptions(c.storeSettings, fetched(c.allInFlight()))
	return err
}

// storageFacts returns the requests and bytes of URLs; nil without any.
func (c *Session) storageFacts() *cloud.Stats {
	s, ok := c.Stored.(interface{ Stats() cloud.Stats })
	if !ok {
		return nil
	}
	facts := s.Stats()
	if facts.Requests == (cloud.Requests{}) {
		return nil
	}
	return &facts
}

// sayStorage prints a line about the requests to object stores, if there were any.
func (c *Session) sayStorage() {
	s := c.storageFacts()
	if s == nil {
		return
	}
	var kinds []string
	var all int64
	for _, k := range []struct {
		n    int64
		name string
	}{
		{s.Requests.List, "list"}, {s.Requests.Head, "head"}, {s.Requests.Get, "get"}, {s.Requests.Put, "put"},
		{s.Requests.Part, "part"}, {s.Requests.Delete, "delete"}, {s.Requests.Other, "other"},
	} {
		if all += k.n; k.n > 0 {
			kinds = append(kinds, words.Count(k.n)+" "+k.name)
		}
	}
	again := ""
	if s.Retries > 0 {
		again = fmt.Sprintf("; %s sent again, %s answers asked for fewer", words.Count(s.Retries), words.Count(s.Throttles))
	}
	c.Say("storage: %s (%s); %s received, %s sent%s", words.Things(all, "request"), strings.Join(kinds, ", "),
		words.Bytes(s.BytesRead), words.Bytes(s.BytesWritten), again)
}

// Spare returns an error if the output is one of the inputs.
func (c *Session) Spare(output string, inputs ...string) error {
	same := c.SameAs(output)
	for _, name := range inputs {
		if same(name) {
			return cause.Mark(cause.IsInput, fmt.Errorf("%s: the output would replace the input %s (give -o another name)", output, name))
		}
	}
	return nil
}

// SpareList is spare for the file of --files-from itself.
func (c *Session) SpareList(output string, o *flags.Inputs) error {
	if o.FilesFrom == "" || o.FilesFrom == "-" || output == "" || output == "-" {
		return nil
	}
	return c.Spare(output, o.FilesFrom)
}

// SpareListed is spare for a list of inputs. It reads the list only if the output exists
// where inputs are.
func (c *Session) SpareListed(ctx context.Context, output string, list *inputs.List) error {
	if _, err := c.Store().Stat(ctx, output); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	roots, known := list.Roots()
	if known && !slices.ContainsFunc(roots, func(r inputs.Root) bool { return source.NewPlace(c.Store(), r.Dir).Holds(output) }) {
		return nil
	}
	same := c.SameAs(output)
	for in, err := range list.Each(ctx) {
		if err != nil {
			return err
		}
		if same(in.Name) {
			return cause.Mark(cause.IsInput, fmt.Errorf("%s: the output would replace the input %s (give -o another name)", output, in.Name))
		}
	}
	return nil
}

// SameAs returns a function that reports whether another name stands for the same file
// or object. Files are compared, not only their paths: one file may have several.
func (c *Session) SameAs(name string) func(other string) bool {
	if address.IsURL(name) {
		one := objects.Resolve(c.Store(), name)
		return func(other string) bool { return objects.Resolve(c.Store(), other) == one }
	}
	file, err := os.Stat(name)
	return func(other string) bool {
		if err != nil {
			return false
		}
		if address.IsURL(other) {
			return objects.Resolve(c.Store(), other) == objects.Resolve(c.Store(), name)
		}
		info, err := os.Stat(other)
		return err == nil && os.SameFile(info, file)
	}
}
