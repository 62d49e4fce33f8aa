package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/storetest"
	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
)

// Workers of an array are killed at random moments. What they leave is whole, is
// never marked as complete unless it is, and the workers that died, run again, leave
// what an undisturbed array leaves.
func TestArrayKilled(t *testing.T) {
	killedOften(t, folder{t, t.TempDir()}, kills(t, cases.Count(3, 6, 200)))
}

// The same at an object store.
func TestS3ArrayKilled(t *testing.T) {
	g := storetest.S3(t)
	g.Setenv(t)
	killedOften(t, inBucket{t, g}, kills(t, cases.Count(3, 6, 200)))
	// Nobody knows of an upload whose worker died before the answer that it was begun.
	var said strings.Builder
	if code := run([]string{"commit", "--sweep", "--older", "0s", "--force", g.Name("out/")}, nil, io.Discard, &said); code != session.ExitDone {
		t.Error(said.String())
	}
	if left := g.Uploads(t); len(left) > 0 {
		t.Errorf("unfinished: %q", left)
	}
}

// Requests that fail, and connections that break, change nothing.
func TestS3ArrayFaults(t *testing.T) {
	g := storetest.S3(t)
	g.Setenv(t)
	for i, a := range arrays(t, inBucket{t, g}, cases.Count(3, 3, 8)) {
		for k, f := range []slowproxy.Faults{{Fail: 0.3}, {Fail: 0.2, Cut: 0.1}}[:cases.Count(1, 1, 2)] {
			what := fmt.Sprintf("%+v", f)
			f.Seed = uint64(2*i + k)
			a.prepare()
			g.Set(f)
			codes, said := a.wait(a.all()...)
			g.Set(slowproxy.Faults{})
			if codes != nil {
				t.Errorf("%s: %s: %s", a, what, strings.Join(said, "; "))
			}
			a.finished(what)
		}
	}
}

// Two copies of each worker may run at the same time, as schedulers start them that
// have lost sight of one.
func TestArrayTwins(t *testing.T) {
	for n, a := range arrays(t, folder{t, t.TempDir()}, 3) {
		for round := range cases.Count(1, 1, 12) {
			a.prepare()
			var cmds []*exec.Cmd
			for i := range 2 * a.workers {
				cmds = append(cmds, a.start(i%a.workers))
				time.Sleep(time.Duration((n+round)%3) * time.Millisecond)
			}
			codes, said := a.wait(cmds...)
			what := fmt.Sprintf("round %d of twins", round)
			for i := range a.workers {
				_, one := codes[i]
				if _, other := codes[i+a.workers]; one && other {
					t.Errorf("%s: %s: both copies failed: %s", a, what, strings.Join(said, "; "))
				}
			}
			for _, code := range codes {
				if code != session.ExitTryAgain {
					t.Errorf("%s: %s: %s", a, what, strings.Join(said, "; "))
				}
			}
			if codes != nil { // as a scheduler does
				var failed []int
				for i := range codes {
					failed = append(failed, i%a.workers)
				}
				t.Logf("%s: %s: %s", a, what, strings.Join(said, "; "))
				a.again(what, failed...)
			}
			a.finished(what)
		}
	}
}

// An input that vanishes while workers run makes them fail, and nothing is marked as
// complete. When it is back, they carry on. The inputs are named one by one, so that all
// workers have the same list.
func TestArrayInputVanishes(t *testing.T) {
	p := folder{t, t.TempDir()}
	random := rand.New(rand.NewPCG(7, 7))
	for _, a := range arrays(t, p, cases.Count(3, 4, 8)) {
		if a.grown {
			continue
		}
		var err error
		if a.inputs, err = filepath.Glob(p.name("in/new/logs/*/*.parquet")); err != nil {
			t.Fatal(err)
		}
		a.divide(a.workers)
		failed := 0
		for round := 0; round < cases.Count(1, 1, 3) || failed == 0 && round < maxRounds; round++ {
			a.prepare()
			input := p.name("in/new/logs/dt=2024-01-05/b.parquet")
			cmds := a.all()
			time.Sleep(time.Duration(random.Int64N(int64(a.took))))
			if err := os.Rename(input, p.name("in/away")); err != nil {
				t.Fatal(err)
			}
			codes, said := a.wait(cmds...)
			what := fmt.Sprintf("round %d, an input is away: %s", round, strings.Join(said, "; "))
			for _, code := range codes {
				if failed++; code != session.ExitTryAgain && code != session.ExitFailed {
					t.Errorf("%s: %s", a, what)
				}
			}
			a.partial(what)
			if err := os.Rename(p.name("in/away"), input); err != nil {
				t.Fatal(err)
			}
			a.again(what, a.everyone()...)
			a.finished(what)
		}
		if failed == 0 {
			t.Errorf("%s: no worker has missed the input", a)
		}
	}
}

// mountFull is a script that has all workers of an array write to a disk of size
// $1 on directory $2, copies what they leave to $3, makes the disk larger, and has
// them do it again. $4 is the number of workers, and the other arguments are the
// command. Its last lines are the exit codes.
const mountFull = `
size=$1 dir=$2 left=$3 workers=$4; shift 4
mount -t tmpfs -o size=64m tmpfs "$dir" 2>/dev/null || exit 99
cd "$dir" || exit 98
if [ -d "$left/old" ]; then cp -a "$left/old/." . || exit 98; fi
mount -o remount,size=$size "$dir" || exit 99
each() {
  i=0
  while [ $i -lt $workers ]; do
    bloomjoin "$@" --shard $i/$workers -o out/ >>"$left/said" 2>&1; echo $?
    i=$((i + 1))
  done
}
first=$(each "$@")
mkdir "$left/full" "$left/done"
cp -a . "$left/full" || exit 98
mount -o remount,size=64m "$dir" || exit 99
again=$(each "$@")
cp -a . "$left/done" || exit 98
echo $first / $again`

// Workers whose disk is full fail with 75. When there is room, they carry on.
func TestArrayOnFullDisk(t *testing.T) {
	p := folder{t, t.TempDir()}
	for n, a := range arrays(t, p, 3) {
		all := 0
		for _, content := range a.want {
			all += len(content)
		}
		full := 0
		shares := []int{0, 50, 90}
		if !cases.All() { // one each; outputs that grow fit sooner
			shares = [][]int{{50}, {0}, {90}, {0}}[n]
		}
		for _, share := range shares {
			a.prepare()
			left := t.TempDir()
			if a.grown {
				if err := os.Mkdir(left+"/old", 0o777); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command("cp", "-a", p.name("out"), p.name("out.bloomjoin"), left+"/old/").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			size := all * share / 100
			if a.grown {
				for _, content := range a.old {
					size += (len(content) + 4095) / 4096 * 4096
				}
			}
			args := append([]string{"-c", mountFull, "sh", fmt.Sprint(max(size, 4096)), t.TempDir(), left, fmt.Sprint(a.workers)}, a.verb...)
			cmd := exec.CommandContext(t.Context(), "sh", append(args, "--quiet", p.name("in/new/logs/"))...)
			inNewNamespace(cmd)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code == 99 || errors.Is(err, os.ErrPermission) || code < 0 {
				t.Skipf("a disk of its own cannot be mounted here: %v", err)
			}
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			first, again, _ := strings.Cut(strings.TrimSpace(string(out)), " / ")
			what := fmt.Sprintf("a disk of %d bytes: exit codes %s, then %s: %s", size, first, again, lastLines(string(read(t, left+"/said"))))
			for _, code := range strings.Fields(first) {
				switch code {
				case "75":
					full++
				case "0":
				default:
					t.Errorf("%s: %s", a, what)
				}
			}
			if strings.Trim(again, "0 ") != "" {
				t.Errorf("%s: %s", a, what)
			}
			b := *a
			b.place = folder{t, left + "/full"}
			if strings.Contains(first, "75") {
				b.partial(what)
			}
			b.place = folder{t, left + "/done"}
			b.finished(what)
		}
		if full == 0 {
			t.Errorf("%s: no disk was full", a)
		}
	}
}

func lastLines(s string) string { return s[max(0, len(s)-600):] }

// Outputs that are lost or cut after _SUCCESS are found, and written again by the same
// workers, as they were; if other runs wrote them, they may be cut elsewhere.
func TestArrayHealed(t *testing.T) {
	p := folder{t, t.TempDir()}
	for _, a := range arrays(t, p, cases.Count(3, 3, 8)) {
		want, n := a.rowsOf(a.want), cases.Count(2, 2, 4)
		for i := range n {
			a.prepare()
			a.again("at first", a.everyone()...)
			victims := slices.DeleteFunc(slices.Sorted(maps.Keys(dataOf(a.files()))), func(name string) bool {
				return strings.Contains(name, "dt=2024-01-04") // its input is gone
			})
			name := victims[i*len(victims)/n]
			what := name
			if i%2 == 0 {
				p.remove(name)
				what += " is removed"
			} else {
				if err := os.Truncate(p.name(name), int64(len(a.want[name])/2)); err != nil {
					t.Fatal(err)
				}
				what += " is cut"
			}
			if err := exec.Command("bloomjoin", "inspect", "--check", p.name("out/")).Run(); err == nil {
				t.Errorf("%s: %s: inspect --check finds nothing", a, what)
			}
			a.again(what, a.everyone()...)
			if !a.grown {
				a.finished(what)
			}
			now := a.files()
			if got := a.rowsOf(now); !slices.Equal(got, want) || !has(now, "out/_SUCCESS") {
				t.Errorf("%s: %s: %d rows, want %d; _SUCCESS: %v", a, what, len(got), len(want), has(now, "out/_SUCCESS"))
			}
			if out, err := exec.Command("bloomjoin", "inspect", "--check", p.name("out/")).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: inspect --check: %v: %s", a, what, err, out)
			}
		}
	}
}

// dayOf returns a run over one day of the new log.
func (a *jobArray) dayOf(day string, more ...string) *exec.Cmd {
	args := append(append(slices.Clone(a.verb), "--quiet", "-o", a.name("out/")), more...)
	cmd := exec.CommandContext(a.Context(), "bloomjoin", append(args, a.name("in/new/logs/"+day))...)
	cmd.Stderr = &strings.Builder{}
	if err := cmd.Start(); err != nil {
		a.Fatal(err)
	}
	return cmd
}

// Runs over different days fill one directory at the same time. Their state covers
// all of them.
func TestDaysAtOnce(t *testing.T) {
	p := folder{t, t.TempDir()}
	days := []string{"dt=2024-01-01", "dt=2024-01-02", "dt=2024-01-03", "dt=2024-01-05"}
	for _, a := range arrays(t, p, 1) {
		for round := range cases.Count(1, 2, 40) {
			a.prepare()
			var cmds []*exec.Cmd
			for _, day := range days {
				cmds = append(cmds, a.dayOf(day))
			}
			for i, cmd := range cmds {
				if err := cmd.Wait(); err != nil {
					t.Errorf("%s: round %d: %s: %v: %s", a, round, days[i], err, cmd.Stderr)
				}
			}
			a.finished(fmt.Sprintf("round %d of days at once", round))
		}
	}
}

// Of two runs over the same day with other options, at most one succeeds, or one
// after the other does with --force; the day's files are of one of them.
func TestSameDayAtOnce(t *testing.T) {
	p := folder{t, t.TempDir()}
	const day = "dt=2024-01-01"
	for _, a := range arrays(t, p, 1) {
		if a.grown {
			continue
		}
		more := [2][]string{{"--compression", "zstd:1"}, {"--compression", "zstd:3"}}
		var whole [2]map[string]string
		for i := range more {
			a.prepare()
			if err := a.dayOf(day, more[i]...).Wait(); err != nil {
				t.Fatal(err)
			}
			whole[i] = dataOf(a.files())
		}
		for round := range cases.Count(2, 4, 40) {
			a.prepare()
			force := []string{"--force"}[:round%2]
			var cmds [2]*exec.Cmd
			for i := range cmds {
				cmds[i] = a.dayOf(day, append(slices.Clone(more[i]), force...)...)
			}
			var codes [2]int
			for i, cmd := range cmds {
				_ = cmd.Wait()
				codes[i] = cmd.ProcessState.ExitCode()
			}
			what := fmt.Sprintf("%s: round %d: exit codes %v: %s%s", a, round, codes, cmds[0].Stderr, cmds[1].Stderr)
			if len(force) == 0 && codes == [2]int{} {
				t.Errorf("%s: both have succeeded", what)
			}
			// The one that has succeeded may have to be run again if the other failed later.
			for i, code := range codes {
				if code != session.ExitDone || len(force) > 0 {
					continue
				}
				if again := a.dayOf(day, more[i]...); again.Wait() != nil {
					t.Errorf("%s: again: %s", what, again.Stderr)
				}
				if !has(a.files(), "out/_SUCCESS") {
					t.Errorf("%s: no _SUCCESS, also when it is run again", what)
				}
			}
			now := a.files()
			if !has(now, "out/"+day+"/_SUCCESS") && !has(now, "out/_SUCCESS") {
				continue
			}
			got := dataOf(now)
			if !maps.Equal(got, whole[0]) && !maps.Equal(got, whole[1]) {
				t.Errorf("%s: _SUCCESS beside files of both runs, or of none", what)
			}
		}
	}
}
