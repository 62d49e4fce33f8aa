package storetest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// serve starts a server, and waits until it listens. It ends with the test: the
// shell kills it when its standard input ends, also if the test was killed.
func serve(t testing.TB, network, address string, env []string, program string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	cmd := exec.Command("sh", append([]string{"-c", `"$0" "$@" </dev/null & cat >/dev/null; kill -9 $!; wait`, program}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &output, &output
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial(network, address); err == nil {
			_ = c.Close()
			return
		}
	}
	stop()
	t.Fatalf("%s does not listen:\n%s", program, output.Bytes())
}

// port returns a port of this machine that is free now.
func port(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
