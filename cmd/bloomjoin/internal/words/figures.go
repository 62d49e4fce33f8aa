package words

import (
	"fmt"
	"math/big"

	"github.com/dustin/go-humanize"
)

// Count formats a number with commas.
func Count[T int64 | uint64 | int](n T) string {
	if n > 0 {
		return humanize.BigComma(new(big.Int).SetUint64(uint64(n))) // Comma ends at 2^63-1
	}
	return humanize.Comma(int64(n))
}

// Percent formats a share.
func Percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(whole))
}

// Bytes formats a size in bytes.
func Bytes[T int64 | uint64](n T) string { return humanize.IBytes(uint64(n)) }

// Things returns a number with its noun.
func Things[T int | int64](n T, thing string) string {
	return Count(int64(n)) + " " + Number(n, thing, thing+"s")
}

// Number returns the word for one thing, or the word for several.
func Number[T int | int64 | uint64](n T, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}
