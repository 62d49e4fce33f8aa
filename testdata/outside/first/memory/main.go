// A storage of one's own is the source and the sink of a join.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

func put(ctx context.Context, s storage.Storage, name, content string) error {
	w, err := s.Create(ctx, name, storage.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, content); err != nil {
		return err
	}
	return w.Commit(false)
}

func main() {
	ctx, mine := context.Background(), storage.Memory()
	if err := put(ctx, mine, "ids.csv", "iata\nDFW\n"); err != nil {
		log.Fatal(err)
	}
	ids, err := partition.Open(ctx, []string{"ids.csv"}, partition.OpenOptions{Store: mine, Text: true})
	if err != nil {
		log.Fatal(err)
	}
	logs, err := partition.Open(ctx, []string{"logs"}, partition.OpenOptions{Store: storage.FS(os.DirFS(os.Args[1]))})
	if err != nil {
		log.Fatal(err)
	}
	j, err := join.New(ids, logs, join.Options{On: "origin=iata"})
	if err != nil {
		log.Fatal(err)
	}
	written, err := j.Write(ctx, partition.Output{Name: "out/", Store: mine})
	fmt.Println(written.Rows, "rows in", len(written.Files), "files", err)
	_, err = mine.Stat(ctx, "out/_SUCCESS")
	fmt.Println(err == nil, err)
}
