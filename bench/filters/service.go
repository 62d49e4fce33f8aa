package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/bloomjoin/bloomjoin/bench/internal/child"
)

// services are the functions of this program as its own child process, "-child NAME".
func services() map[string]func(words []string) (any, error) {
	var open cores
	return map[string]func(words []string) (any, error){
		"cores": open.answer,
		"large": answerLarge,
		"codec": answerCodec,
		"merge": answerMerge,
	}
}

func serve(name string) error {
	answer, ok := services()[name]
	if !ok {
		return fmt.Errorf("no service %q", name)
	}
	return child.Serve(os.Stdin, os.Stdout, answer)
}

const (
	childFlag           = "-child"
	childSmallPagesFlag = "-child-small-pages" // like -child, without huge pages
)

// startSelf starts this program as a child process.
func startSelf(mode, service string) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return child.Start(self, mode, service)
}

// once starts this program as a child process for one command.
func once(service string, answer any, words ...any) (err error) {
	c, err := startSelf(childFlag, service)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.Call(answer, words...)
}
