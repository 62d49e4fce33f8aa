// A server answers which keys are in a filter, to many clients at once.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
)

func main() {
	f, err := bloomjoin.BuildFiles(context.Background(), []string{os.Args[1] + "/airports-tx.csv"}, filterbuild.Options{Key: "iata"})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := f.Contains(key.Strings(strings.Split(r.URL.Query().Get("ids"), ",")), nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(in)
	}))
	defer server.Close()
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for range 50 {
				resp, err := http.Get(server.URL + "?ids=DFW,JFK,IAH")
				if err != nil {
					log.Fatal(err)
				}
				var in []bool
				if err := json.NewDecoder(resp.Body).Decode(&in); err != nil || fmt.Sprint(in) != "[true false true]" {
					log.Fatal(in, err)
				}
				resp.Body.Close()
			}
		})
	}
	clients.Wait()
	fmt.Println("ok")
}
