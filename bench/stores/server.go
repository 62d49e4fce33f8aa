package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
)

// What the server is told, and its clients.
const (
	accessKey = "bench"
	secretKey = "bench-secret"
	region    = "us-east-1"
	bucket    = "bench"
)

// network is a way to the server.
type network struct {
	name, text string
	delay      time.Duration
	rate       int64 // bytes a second of a connection
}

// Networks that are measured. On loopback, clients talk to the server directly.
var (
	loopback = network{name: "loopback", text: "on loopback"}
	slow     = network{name: "slow", text: "30 ms to the first byte, 80 MB/s a connection", delay: 30 * time.Millisecond, rate: 80_000_000}
)

// server is an S3 server on this machine whose bucket is a directory. Clients can also
// reach it through two proxies: one counts requests, the other also delays them like a
// slow network.
type server struct {
	endpoint string // the server itself
	counting string // endpoint of the proxy that only counts
	slow     string // endpoint of the proxy that is [slow]
	dir      string // the bucket's objects as files
	stop     []func()
	shells   []int // processes whose children are the server and the proxies
}

// serve starts versitygw, which must take files for objects that were not put there by
// it, and the proxies. root holds the bucket.
func serve(ctx context.Context, gateway, proxy, root string) (s *server, err error) {
	s = &server{dir: filepath.Join(root, bucket)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return s, err
	}
	s.endpoint, err = s.start(ctx, func(address string) []string {
		return []string{gateway, "--port", address, "--region", region, "--quiet", "--keep-alive", "posix", "--default-etag", `"bench"`, root}
	})
	if err != nil {
		return s, err
	}
	for _, p := range []struct {
		endpoint *string
		network
	}{{&s.counting, network{}}, {&s.slow, slow}} {
		*p.endpoint, err = s.start(ctx, func(address string) []string {
			return []string{proxy, "-listen", address, "-target", s.endpoint, "-delay", p.delay.String(), "-rate", fmt.Sprint(p.rate)}
		})
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// start runs a server on a port of its own and waits until it listens. The shell ends
// it when its standard input does, so that it also ends with this process.
func (s *server) start(ctx context.Context, argv func(address string) []string) (endpoint string, err error) {
	address, err := freePort(ctx)
	if err != nil {
		return "", err
	}
	words, output := argv(address), bytes.Buffer{}
	cmd := exec.Command("sh", append([]string{"-c", `"$0" "$@" </dev/null & cat >/dev/null; kill $!; wait`}, words...)...)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+accessKey, "ROOT_SECRET_ACCESS_KEY="+secretKey)
	cmd.Stdout, cmd.Stderr = &output, &output
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			s.stop, s.shells = append(s.stop, stop), append(s.shells, cmd.Process.Pid)
			return "http://" + address, nil
		}
	}
	stop()
	return "", fmt.Errorf("%s does not listen: %s", strings.Join(words, " "), output.Bytes())
}

// ticks is the unit of processor time in /proc, in 1/s.
const ticks = 100

// cpu returns the processor time that the server and the proxies have taken, in
// seconds.
func (s *server) cpu() (seconds float64) {
	for _, shell := range s.shells {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", shell, shell))
		if err != nil {
			return nan
		}
		for _, child := range strings.Fields(string(children)) {
			stat, err := os.ReadFile("/proc/" + child + "/stat")
			if err != nil {
				return nan
			}
			// After the name, which is in parentheses, comes the state, field 3.
			fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
			for _, field := range fields[14-3 : 16-3] { // user and system time
				n, err := strconv.Atoi(field)
				if err != nil {
					return nan
				}
				seconds += float64(n) / ticks
			}
		}
	}
	return seconds
}

// freePort returns an address of this machine at which nothing listens.
func freePort(ctx context.Context) (address string, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (s *server) close() {
	for _, stop := range s.stop {
		stop()
	}
}

// at returns the endpoint of a network.
func (s *server) at(n network) string {
	if n == slow {
		return s.slow
	}
	return s.endpoint
}

// environment returns variables that lead clients to the server at an endpoint, and that
// override the user's own settings.
func environment(endpoint string) []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_REGION=" + region, "AWS_ENDPOINT_URL=" + endpoint,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
	}
}

// url returns the URL of an object or directory, given its path below the bucket.
func (s *server) url(file string) (string, error) {
	relative, err := filepath.Rel(s.dir, file)
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(relative) {
		return "", fmt.Errorf("%s is not below %s", file, s.dir)
	}
	return "s3://" + path.Join(bucket, filepath.ToSlash(relative)), nil
}

// traffic is what passed a proxy.
type traffic []slowproxy.Request

// passed returns what has passed the proxy at an endpoint since the last call.
func passed(ctx context.Context, endpoint string) (t traffic, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/-/log", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&t)
	return t, err
}

// bytes returns the bytes of the answers, requests their number.
func (t traffic) bytes() (n int64) {
	for _, r := range t {
		n += r.Out
	}
	return n
}

func (t traffic) requests() int { return len(t) }

// kinds returns the number of requests by kind.
func (t traffic) kinds() string {
	count := map[string]int{}
	for _, r := range t {
		kind := r.Method
		if _, key, _ := strings.Cut(strings.TrimPrefix(r.Path, "/"), "/"); r.Method == http.MethodGet && key == "" {
			kind = "LIST"
		}
		count[kind]++
	}
	var all []string
	for _, kind := range []string{"LIST", "HEAD", "GET", "PUT", "POST", "DELETE"} {
		if count[kind] > 0 {
			all = append(all, fmt.Sprintf("%d %s", count[kind], kind))
		}
	}
	return strings.Join(all, ", ")
}
