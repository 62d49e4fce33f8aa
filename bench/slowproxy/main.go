// Command slowproxy passes requests on to an S3 server as a slow network would, so
// that programs are compared over the same network:
//
//	slowproxy -listen 127.0.0.1:7071 -target http://127.0.0.1:7070 -delay 30ms -rate 80000000
//
// Programs use http://127.0.0.1:7071 as their endpoint. On SIGINT and SIGTERM it
// prints what has passed, by method, as JSON. GET /-/requests prints the same,
// and starts from 0 again. GET /-/log prints each request instead.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7071", "`address` to listen on")
	target := flag.String("target", "http://127.0.0.1:7070", "the server, http://HOST:PORT or unix:/PATH")
	var f slowproxy.Faults
	flag.DurationVar(&f.Delay, "delay", 0, "time to the first byte of an answer")
	flag.Int64Var(&f.Rate, "rate", 0, "bytes a second of a connection in each direction; 0: no limit")
	flag.Float64Var(&f.Fail, "fail", 0, "share of requests that are refused with 500, 503 or 503 SlowDown")
	flag.Float64Var(&f.Cut, "cut", 0, "share of requests whose connection breaks")
	flag.Float64Var(&f.Hang, "hang", 0, "share of requests that are never answered")
	flag.Uint64Var(&f.Seed, "seed", 1, "seed of -fail, -cut and -hang")
	flag.Parse()
	if err := run(*listen, *target, f); err != nil {
		fmt.Fprintln(os.Stderr, "slowproxy:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

func run(listen, target string, f slowproxy.Faults) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := slowproxy.New(target)
	if err != nil {
		return err
	}
	p.Set(f)
	server := p.Server()
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/-/requests":
			defer p.Reset()
			_ = json.NewEncoder(w).Encode(sums(p.Requests()))
		case "/-/log":
			defer p.Reset()
			_ = json.NewEncoder(w).Encode(p.Requests())
		default:
			p.ServeHTTP(w, r)
		}
	})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(sums(p.Requests()))
}

// sum describes the requests of one method.
type sum struct {
	Requests int   `json:"requests"`
	In       int64 `json:"bytes_in"`
	Out      int64 `json:"bytes_out"`
	Faults   int   `json:"faults,omitempty"`
}

func sums(requests []slowproxy.Request) map[string]*sum {
	all := map[string]*sum{}
	for _, r := range requests {
		s := all[r.Method]
		if s == nil {
			s = new(sum)
			all[r.Method] = s
		}
		s.Requests, s.In, s.Out = s.Requests+1, s.In+r.In, s.Out+r.Out
		if r.Fault != "" {
			s.Faults++
		}
	}
	return all
}
