// Four joins of the same open files run at the same time.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

func main() {
	ctx := context.Background()
	ids, err := partition.Open(ctx, []string{os.Args[1] + "/airports-tx.csv"}, partition.OpenOptions{Text: true})
	if err != nil {
		log.Fatal(err)
	}
	logs, err := partition.Open(ctx, []string{os.Args[1] + "/logs"}, partition.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			j, err := join.New(ids, logs, join.Options{On: "origin=iata"})
			if err != nil {
				log.Fatal(err)
			}
			n, err := j.Count(ctx)
			fmt.Println(n, err)
		})
	}
	wait.Wait()
}
