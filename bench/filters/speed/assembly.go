//go:build !purego

package main

// purego reports that this program was built without assembly.
const purego = false
