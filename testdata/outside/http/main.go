// Http joins files on a web server. Its arguments are the URLs of the IDs and of
// the log, and the columns to join on.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

func main() {
	ctx := context.Background()
	ids, err := partition.Open(ctx, os.Args[1:2], partition.OpenOptions{Store: web{}, Text: true})
	if err != nil {
		log.Fatal(err)
	}
	logs, err := partition.Open(ctx, os.Args[2:3], partition.OpenOptions{Store: web{}})
	if err != nil {
		log.Fatal(err)
	}
	j, err := join.New(ids, logs, join.Options{On: os.Args[3]})
	if err != nil {
		log.Fatal(err)
	}
	rows, err := j.Count(ctx)
	fmt.Println(rows, "rows", err)
}
