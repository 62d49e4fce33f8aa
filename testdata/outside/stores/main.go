// Stores joins files in object stores and on web servers. Its arguments are the
// names of the IDs, the log and the output, each a URL or a path, and the columns
// to join on.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

func main() {
	ctx := context.Background()
	s := cloud.New(cloud.Options{Region: "eu-central-1"})
	defer s.Close()
	ids, err := partition.Open(ctx, os.Args[1:2], partition.OpenOptions{Store: s, Text: true})
	if err != nil {
		log.Fatal(err)
	}
	logs, err := partition.Open(ctx, os.Args[2:3], partition.OpenOptions{Store: s})
	if err != nil {
		log.Fatal(err)
	}
	j, err := join.New(ids, logs, join.Options{On: os.Args[4]})
	if err != nil {
		log.Fatal(err)
	}
	written, err := j.Write(ctx, partition.Output{Name: os.Args[3], Store: s})
	fmt.Println(written.Rows, "rows;", s.Stats().Requests.Get > 0, err)
}
