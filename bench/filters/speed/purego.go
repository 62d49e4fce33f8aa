//go:build purego

package main

// purego says that this program was built without assembly.
const purego = true
