// Command simstore is an S3 server in memory whose answers come as late as those of a large
// store, and which refuses what is too much, so that the real command can be watched at a size
// for which there is no room:
//
//	simstore -objects 400000 -file part.parquet
//
// Bucket "lake" has a log, logs/dt=DATE/part-NNNNNN.parquet: -objects objects in -days directories,
// all with the content of -file, each with an identity of its own. What programs write is kept.
//
// The model of a store:
//
//   - The first byte of an answer comes after a time that is distributed log-normally, with the
//     median and the 99th percentile of its kind of request. Which time, depends on -seed, on the
//     request, and on how often it came before.
//   - A connection carries -rate bytes a second in each direction, all of them together -nic.
//   - A partition of the keys takes -reads requests a second that read, and -writes others, with
//     a burst of a second. What exceeds that is refused with 503 SlowDown. There are -partitions,
//     and keys belong to one by their hash, as after a store has divided a busy prefix.
//
// GET /-/requests prints what has come since the last such request, as JSON.
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
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7072", "`address` to listen on")
	file := flag.String("file", "", "content of each object of the log")
	objects := flag.Int("objects", 0, "objects of the log")
	days := flag.Int("days", 365, "directories of the log")
	m := newModel()
	for _, k := range []kind{listing, reading, writing} {
		flag.DurationVar(&m.median[k], k.String(), m.median[k], "median time to the first byte of such a request")
		flag.DurationVar(&m.late[k], k.String()+"-p99", m.late[k], "its 99th percentile")
	}
	flag.Float64Var(&m.rate, "rate", m.rate, "bytes a second of a connection; 0: no limit")
	flag.Float64Var(&m.nic, "nic", m.nic, "bytes a second of all connections; 0: no limit")
	flag.Float64Var(&m.perSecond[reading], "reads", m.perSecond[reading], "requests a second of a partition that read; 0: no limit")
	flag.Float64Var(&m.perSecond[writing], "writes", m.perSecond[writing], "other requests a second of a partition; 0: no limit")
	flag.IntVar(&m.partitions, "partitions", m.partitions, "partitions of the keys")
	flag.Uint64Var(&m.seed, "seed", m.seed, "seed of the times")
	flag.Parse()
	if err := run(*listen, *file, *objects, *days, m); err != nil {
		fmt.Fprintln(os.Stderr, "simstore:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

func run(listen, file string, objects, days int, m *model) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := newStore()
	if objects > 0 {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		s.log(content, objects, days)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(s, m), ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves a bucket and the counts of its requests.
func handler(s *store, m *model) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/-/requests" {
			_ = json.NewEncoder(w).Encode(m.counts())
			return
		}
		m.serve(w, r, s)
	})
}
