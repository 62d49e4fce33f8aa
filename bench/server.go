package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What the object store is told, and its clients.
const (
	accessKey = "bench"
	secretKey = "bench-secret"
	region    = "us-east-1"
	bucket    = "data"
)

// Networks. Requests pass a proxy, which counts them, on all of them.
var (
	loopback = &Network{Name: "loopback"}
	slow     = &Network{Name: "30 ms, 80 MB/s a connection", Delay: 30 * time.Millisecond, Rate: 80_000_000}
)

// Server is an S3 server on this machine, versitygw, whose bucket is the directory of
// data, and a proxy for each network.
type Server struct {
	endpoint string
	proxies  map[*Network]string
	stop     []func()
}

// gatewayVariable names the program.
const gatewayVariable = "BLOOMJOIN_S3GW"

// serve starts the server and the proxies.
func (h *Harness) serve() (s *Server, err error) {
	gateway := os.Getenv(gatewayVariable)
	if gateway == "" {
		return nil, fmt.Errorf("set %s to a program of versitygw, or leave out the table", gatewayVariable)
	}
	if err := h.installHTTPFS(); err != nil {
		return nil, err
	}
	s = &Server{proxies: map[*Network]string{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	root := filepath.Dir(h.bucket())
	s.endpoint, err = s.start(h.ctx, func(address string) []string {
		// Files that it has not written itself are objects with this ETag.
		return []string{gateway, "--port", address, "--region", region, "--quiet", "--keep-alive", "posix", "--default-etag", `"bench"`, root}
	})
	if err != nil {
		return s, err
	}
	proxy := filepath.Join(h.dir, "bin", "slowproxy")
	if err := h.do("go", "build", "-o", proxy, "./slowproxy"); err != nil {
		return s, err
	}
	for _, n := range []*Network{loopback, slow} {
		s.proxies[n], err = s.start(h.ctx, func(address string) []string {
			return []string{proxy, "-listen", address, "-target", s.endpoint, "-delay", n.Delay.String(), "-rate", strconv.FormatInt(n.Rate, 10)}
		})
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// start runs a server on a port of its own and waits until it listens. The shell ends it
// when its standard input does, and so when this process ends.
func (s *Server) start(ctx context.Context, argv func(address string) []string) (endpoint string, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return "", err
	}
	words, output := argv(address), strings.Builder{}
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
			s.stop = append(s.stop, stop)
			return "http://" + address, c.Close()
		}
	}
	stop()
	return "", fmt.Errorf("%s does not listen: %s", strings.Join(words, " "), output.String())
}

func (s *Server) close() {
	for _, stop := range s.stop {
		stop()
	}
}

// passed returns what has passed a network's proxy since it was last asked.
func (s *Server) passed(n *Network) (bytes int64, requests int, err error) {
	reply, err := http.Get(s.proxies[n] + "/-/requests")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	var sums map[string]struct {
		Requests int   `json:"requests"`
		Out      int64 `json:"bytes_out"`
	}
	if err := json.NewDecoder(reply.Body).Decode(&sums); err != nil {
		return 0, 0, err
	}
	for _, s := range sums {
		bytes, requests = bytes+s.Out, requests+s.Requests
	}
	return bytes, requests, nil
}

// remote turns the log of an attempt into objects, and starts the server if it is not there.
func (r *race) remote(a Attempt) (Attempt, error) {
	if r.server == nil {
		server, err := r.serve()
		if err != nil {
			return a, err
		}
		r.Harness.server = server
	}
	name, err := filepath.Rel(r.bucket(), a.LogPath)
	if err != nil {
		return a, err
	}
	a.LogPath, a.Endpoint = "s3://"+bucket+"/"+filepath.ToSlash(name), r.server.proxies[a.Network]
	_, _, err = r.server.passed(a.Network)
	return a, err
}

// local returns an attempt whose log is a file.
func (h *Harness) local(a Attempt) Attempt {
	if name, ok := strings.CutPrefix(a.LogPath, "s3://"+bucket+"/"); ok {
		a.LogPath = filepath.Join(h.bucket(), name)
	}
	return a
}

// storeEnvironment tells programs about the object store.
func storeEnvironment(a Attempt) []string {
	if a.Endpoint == "" {
		return nil
	}
	return []string{
		"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_REGION=" + region,
		"AWS_ENDPOINT_URL=" + a.Endpoint, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull, // not the user's own
	}
}
