// An exact join into a file, and what it reports.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/join"
)

func main() {
	dir := os.Args[1]
	r, err := bloomjoin.JoinFiles(context.Background(), []string{dir + "/airports-tx.csv"}, []string{dir + "/logs"},
		os.Args[2]+"/texas.parquet", join.Options{On: "origin=iata", Type: join.Inner})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r, r.Warnings)
}
