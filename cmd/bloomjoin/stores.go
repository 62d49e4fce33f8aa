package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/bloomjoin/bloomjoin/storage"
)

// store returns where inputs and outputs are.
func (c *cli) store() storage.Storage {
	if c.stored == nil {
		c.stored = storage.Local{}
	}
	return c.stored
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

// sameAs returns a function that reports whether another name stands for the same file
// or object. Files are compared, not only their paths: one file may have several.
func (c *cli) sameAs(name string) func(other string) bool {
	if isURL(name) {
		one := storage.Resolve(c.store(), name)
		return func(other string) bool { return isURL(other) && storage.Resolve(c.store(), other) == one }
	}
	file, err := os.Stat(name)
	return func(other string) bool {
		if err != nil || isURL(other) {
			return false
		}
		info, err := os.Stat(other)
		return err == nil && os.SameFile(info, file)
	}
}

// isURL reports whether a name is an address of an object.
func isURL(name string) bool { return strings.Contains(name, "://") }
