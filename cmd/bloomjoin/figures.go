package main

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

// count formats a number with commas.
func count[T int64 | uint64 | int](n T) string { return humanize.Comma(int64(n)) }

// percent formats a share.
func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(whole))
}

// bytesOf formats a size in bytes.
func bytesOf[T int64 | uint64](n T) string { return humanize.IBytes(uint64(n)) }

// things returns a number with its noun.
func things[T int | int64](n T, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(int64(n)) + " " + thing
}
