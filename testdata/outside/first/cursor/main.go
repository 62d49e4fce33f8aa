// A cursor over a database becomes a filter of normalized strings, without an array.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/filterbuild"
)

// emails stands in for the loop over *sql.Rows.
func emails(yield func(string) bool) {
	for n := range 100_000 {
		if !yield(fmt.Sprintf("User%d@Example.com", n)) {
			return
		}
	}
}

func main() {
	f, err := bloomjoin.BuildSeq(context.Background(), filterbuild.Options{Key: "email::string", Normalize: "lower"}, emails)
	if err != nil {
		log.Fatal(err)
	}
	in, err := f.ContainsString("user1@example.COM")
	fmt.Println(in, err, f.Added())
}
