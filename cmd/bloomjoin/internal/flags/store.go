package flags

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

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

// CompleteStore completes the names of settings for URLs.
func CompleteStore(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	for _, f := range storeFlags() {
		names = append(names, f.name+"=")
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// StoreOptions returns the options of the store from --store-option, of which it may hold so
// many bytes of memory.
func StoreOptions(settings []string, memory int64) (o cloud.Options, err error) {
	o.Memory = memory
	all := storeFlags()
	var names []string
	for _, f := range all {
		names = append(names, f.name)
	}
	given := map[string]bool{}
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		i := slices.Index(names, name)
		switch {
		case i < 0 && words.Meant(name, names) != "":
			return o, Usagef("--store-option %s: unknown setting %s (did you mean %s?)", s, name, words.Meant(name, names))
		case i < 0:
			return o, Usagef("--store-option %s: unknown setting %s: want one of %s", s, name, strings.Join(names, ", "))
		case !ok:
			return o, Usagef("--store-option %s: want NAME=VALUE, as %s=%s", s, name, all[i].value)
		case given[name]:
			return o, Usagef("--store-option %s: %s is set twice (set it once)", s, name)
		}
		given[name] = true
		if err := all[i].set(&o, value); err != nil {
			return o, Usagef("--store-option %s: %w, as %s=%s", s, err, name, all[i].value)
		}
	}
	if o.Credentials != nil && o.Anonymous {
		return o, Usagef("--store-option credentials-url and anonymous exclude each other: give one of them")
	}
	return o, nil
}
