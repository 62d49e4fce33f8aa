package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// store returns where inputs and outputs are.
func (c *cli) store() storage.Storage {
	if c.stored == nil {
		s := cloud.New(c.storeOptions)
		c.stored, c.closeStore = s, s.Close
	}
	return c.stored
}

// Bounds of what the store may hold of the memory in flight, if the command names
// URLs: a quarter, within these bytes.
const (
	leastFetched = 16 << 20
	mostFetched  = 256 << 20
)

// fetched returns the memory in bytes for fetching ahead and for uploads; 0: the store's
// default.
func fetched(inFlight int64) int64 {
	if inFlight == 0 {
		return 0
	}
	return min(max(inFlight/4, leastFetched), mostFetched)
}

// storeFlag is a setting of --store-option.
type storeFlag struct {
	name, value string // value is an example
	set         func(o *cloud.Options, value string) error
}

// storeFlags returns all settings of --store-option.
func storeFlags() []storeFlag {
	text := func(of func(*cloud.Options) *string) func(*cloud.Options, string) error {
		return func(o *cloud.Options, value string) error {
			if value == "" {
				return fmt.Errorf("want a value")
			}
			*of(o) = value
			return nil
		}
	}
	flag := func(of func(*cloud.Options) *bool) func(*cloud.Options, string) error {
		return func(o *cloud.Options, value string) (err error) {
			if *of(o), err = strconv.ParseBool(value); err != nil {
				return fmt.Errorf("want true or false")
			}
			return nil
		}
	}
	number := func(least int, of func(o *cloud.Options, n int)) func(*cloud.Options, string) error {
		return func(o *cloud.Options, value string) error {
			n, err := strconv.Atoi(value)
			if err != nil || n < least || n > 10_000 {
				return fmt.Errorf("want a whole number from %d to 10000", least)
			}
			of(o, n)
			return nil
		}
	}
	return []storeFlag{
		{"region", "eu-central-1", text(func(o *cloud.Options) *string { return &o.Region })},
		{"endpoint", "https://s3.example.com", text(func(o *cloud.Options) *string { return &o.Endpoint })},
		{"profile", "logs", text(func(o *cloud.Options) *string { return &o.Profile })},
		{"anonymous", "true", flag(func(o *cloud.Options) *bool { return &o.Anonymous })},
		{"credentials-url", "http://127.0.0.1:8080/", setCredentials},
		{"path-style", "true", flag(func(o *cloud.Options) *bool { return &o.PathStyle })},
		{"requester-pays", "true", flag(func(o *cloud.Options) *bool { return &o.RequesterPays })},
		{"sse", "aws:kms", text(func(o *cloud.Options) *string { return &o.SSE })},
		{"kms-key", "alias/logs", text(func(o *cloud.Options) *string { return &o.KMSKey })},
		{"requests", "64", number(1, func(o *cloud.Options, n int) { o.Requests = n })},
		{"retries", "12", number(0, func(o *cloud.Options, n int) {
			if o.Retries = n; n == 0 {
				o.Retries = -1 // 0 stands for the default
			}
		})},
	}
}

// addStore adds the flag for object stores.
func (c *cli) addStore(f *pflag.FlagSet) {
	f.StringArrayVar(&c.storeSettings, "store-option", nil, "`NAME=VALUE` setting for URLs, as region=eu-central-1 (docs/stores.md); may be repeated")
}

// checkStore sets the options of the store from the flags.
func (c *cli) checkStore() error {
	o := cloud.Options{Memory: fetched(c.allInFlight())}
	all := storeFlags()
	var names []string
	for _, f := range all {
		names = append(names, f.name)
	}
	given := map[string]bool{}
	for _, s := range c.storeSettings {
		name, value, ok := strings.Cut(s, "=")
		i := slices.Index(names, name)
		switch {
		case i < 0 && meant(name, names) != "":
			return usagef("--store-option %s: unknown setting %s (did you mean %s?)", s, name, meant(name, names))
		case i < 0:
			return usagef("--store-option %s: unknown setting %s: want one of %s", s, name, strings.Join(names, ", "))
		case !ok:
			return usagef("--store-option %s: want NAME=VALUE, as %s=%s", s, name, all[i].value)
		case given[name]:
			return usagef("--store-option %s: %s is set twice (set it once)", s, name)
		}
		given[name] = true
		if err := all[i].set(&o, value); err != nil {
			return usagef("--store-option %s: %w, as %s=%s", s, err, name, all[i].value)
		}
	}
	if o.Credentials != nil && o.Anonymous {
		return usagef("--store-option credentials-url and anonymous exclude each other: give one of them")
	}
	c.storeOptions = o
	return nil
}

// storageFacts returns the requests and bytes of URLs; nil without any.
func (c *cli) storageFacts() *cloud.Stats {
	s, ok := c.stored.(interface{ Stats() cloud.Stats })
	if !ok {
		return nil
	}
	facts := s.Stats()
	if facts.Requests.Total() == 0 {
		return nil
	}
	return &facts
}

// sayStorage prints a line about the requests to object stores, if there were any.
func (c *cli) sayStorage() {
	s := c.storageFacts()
	if s == nil {
		return
	}
	var kinds []string
	for _, k := range []struct {
		n    int64
		name string
	}{
		{s.Requests.List, "list"}, {s.Requests.Head, "head"}, {s.Requests.Get, "get"}, {s.Requests.Put, "put"},
		{s.Requests.Part, "part"}, {s.Requests.Delete, "delete"}, {s.Requests.Other, "other"},
	} {
		if k.n > 0 {
			kinds = append(kinds, count(k.n)+" "+k.name)
		}
	}
	again := ""
	if s.Retries > 0 {
		again = fmt.Sprintf("; %s sent again, %s answers asked for fewer", count(s.Retries), count(s.Throttles))
	}
	c.say("storage: %s (%s); %s received, %s sent%s", things(s.Requests.Total(), "request"), strings.Join(kinds, ", "),
		bytesOf(s.BytesRead), bytesOf(s.BytesWritten), again)
}

// spare returns an error if the output is one of the inputs.
func (c *cli) spare(output string, inputs ...string) error {
	same := c.sameAs(output)
	for _, name := range inputs {
		if same(name) {
			return fmt.Errorf("%s: the output would replace the input %s (give -o another name)", output, name)
		}
	}
	return nil
}

// spareList is spare for the file of --files-from itself.
func (c *cli) spareList(output string, o *inputFlags) error {
	if o.filesFrom == "" || o.filesFrom == "-" || output == "" || output == "-" {
		return nil
	}
	return c.spare(output, o.filesFrom)
}

// spareListed is spare for a list of inputs. It reads the list only if the output exists.
func (c *cli) spareListed(ctx context.Context, output string, list *inputs.List) error {
	if _, err := c.store().Stat(ctx, output); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	same := c.sameAs(output)
	for in, err := range list.Each(ctx) {
		if err != nil {
			return err
		}
		if same(in.Name) {
			return fmt.Errorf("%s: the output would replace the input %s (give -o another name)", output, in.Name)
		}
	}
	return nil
}

// sameAs returns a function that reports whether another name stands for the same file
// or object. Files are compared, not only their paths: one file may have several.
func (c *cli) sameAs(name string) func(other string) bool {
	if address.IsURL(name) {
		one := objects.Resolve(c.store(), name)
		return func(other string) bool { return objects.Resolve(c.store(), other) == one }
	}
	file, err := os.Stat(name)
	return func(other string) bool {
		if err != nil {
			return false
		}
		if address.IsURL(other) {
			return objects.Resolve(c.store(), other) == objects.Resolve(c.store(), name)
		}
		info, err := os.Stat(other)
		return err == nil && os.SameFile(info, file)
	}
}

// readOnly returns an error if an output is at an address that can only be read.
func readOnly(output string) error {
	if address.IsWeb(output) {
		shown, _, _ := strings.Cut(output, "?") // what follows may be a signature
		return usagef("-o %s: web servers are only read (write to a file or an object store, as s3://bucket/key)", shown)
	}
	return nil
}
