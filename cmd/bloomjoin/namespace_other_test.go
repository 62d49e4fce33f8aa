//go:build !linux

package main

import "os/exec"

// inNewNamespace does nothing: only Linux has mount namespaces.
func inNewNamespace(*exec.Cmd) {}
