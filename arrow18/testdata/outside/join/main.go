// Join joins two tables of arrow-go v18 in memory.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/bloomjoin/bloomjoin/arrow18"
	"github.com/bloomjoin/bloomjoin/join"
)

func main() {
	ids := table("plan", `[{"user": 2, "plan": "basic"}, {"user": 5, "plan": "gold"}]`)
	clicks := table("page", `[{"user": 5, "page": "/"}, {"user": 1, "page": "/pay"}, {"user": 2, "page": "/cart"}]`)
	opts := join.Options{On: "user", Type: join.Inner}
	for rec, err := range arrow18.Join(context.Background(), arrow18.Of(ids), arrow18.Of(clicks), opts) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rec.Column(0), rec.Column(1), rec.Column(2))
	}
}

func table(column, json string) arrow.RecordBatch {
	fields := []arrow.Field{{Name: "user", Type: arrow.PrimitiveTypes.Int64}, {Name: column, Type: arrow.BinaryTypes.String}}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(json))
	if err != nil {
		log.Fatal(err)
	}
	return rec
}
