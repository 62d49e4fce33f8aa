// Command replay fetches ranges of objects from an S3 server and discards them, which
// is the least time that any program needs to fetch them:
//
//	replay -endpoint http://127.0.0.1:7071 [-flight N] LOG
//
// LOG is what slowproxy prints for GET /-/log. Of the requests in it, those that got
// bytes of objects are repeated in their order, at most N at a time. It takes
// credentials and the region from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_REGION.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	endpoint := flags.String("endpoint", "", "the server, http://HOST:PORT")
	flight := flags.Int("flight", 32, "requests at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *flight < 1 || !strings.HasPrefix(*endpoint, "http://") {
		return fmt.Errorf("want one log, an endpoint, and a request at a time or more; got %q", args)
	}
	requests, err := load(flags.Arg(0))
	if err != nil {
		return err
	}
	n, err := replay(ctx, *endpoint, *flight, requests)
	if err == nil {
		fmt.Fprintf(os.Stdout, "%d requests, %d bytes\n", len(requests), n)
	}
	return err
}

// load returns the requests of a log that got bytes of objects.
func load(path string) (requests []slowproxy.Request, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []slowproxy.Request
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, r := range all {
		if fetched(r) {
			requests = append(requests, r)
		}
	}
	if len(requests) == 0 {
		return nil, fmt.Errorf("%s: %d requests, none of which got bytes of objects", path, len(all))
	}
	return requests, nil
}

// fetched reports whether a request got bytes of an object. The path is /BUCKET/KEY;
// a listing has no key.
func fetched(r slowproxy.Request) bool {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.Path, "/"), "/")
	return r.Method == http.MethodGet && r.Status/100 == 2 && r.Out > 0 && key != ""
}

// replay repeats the requests and returns how many bytes came.
func replay(ctx context.Context, endpoint string, flight int, requests []slowproxy.Request) (int64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: flight, DisableCompression: true}}
	var next atomic.Int64
	var total atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range flight {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(requests) {
					return nil
				}
				n, err := fetch(ctx, client, endpoint, requests[i])
				if err != nil {
					return err
				}
				total.Add(n)
			}
		})
	}
	err := group.Wait()
	return total.Load(), err
}

func fetch(ctx context.Context, client *http.Client, endpoint string, r slowproxy.Request) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return 0, err
	}
	req.URL.Path = r.Path
	if r.Range != "" {
		req.Header.Set("Range", r.Range)
	}
	sign(req)
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (resp.StatusCode != r.Status || n != r.Out) {
		err = fmt.Errorf("status %d, %d bytes; want %d, %d", resp.StatusCode, n, r.Status, r.Out)
	}
	if err != nil {
		return n, fmt.Errorf("%s %s: %w", r.Path, r.Range, err)
	}
	return n, nil
}
