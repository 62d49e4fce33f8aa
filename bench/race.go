package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// rounds iterates over n rounds, from 0, of all contenders in turn. Each round starts
// with a different one.
func rounds[C any](n int, contenders []C) iter.Seq2[int, C] {
	return func(yield func(int, C) bool) {
		for round := range n {
			for i := range contenders {
				if !yield(round, contenders[(i+round)%len(contenders)]) {
					return
				}
			}
		}
	}
}

// race is the measurement of a cell.
type race struct {
	*Harness
	table   *Table
	cell    Cell
	attempt Attempt // with the files of the cell
	files   []string
	want    Answer // DuckDB's, once it is needed
	results []Result
}

// Race measures a cell and verifies the answer of each contender's first run.
func (h *Harness) Race(t *Table, c Cell) ([]Result, error) {
	r := &race{Harness: h, table: t, cell: c}
	contenders := h.admitted(t, c)
	for _, who := range contenders {
		r.results = append(r.results, Result{Name: who.Name, Kind: who.Kind, Facts: map[string]string{}})
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	indexes := make([]int, len(contenders))
	for i := range indexes {
		indexes[i] = i
	}
	for round, i := range rounds(h.roundsOf(t), indexes) {
		say("%s, %s: %s, round %d", t.Name, c.Name, contenders[i].Name, round+1)
		if err := r.once(round, contenders[i], &r.results[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", contenders[i].Name, err)
		}
	}
	return r.results, nil
}

// prepare makes the cell's files.
func (r *race) prepare() (err error) {
	job := r.cell.Job
	if job.Threads == 0 {
		job.Threads = r.threads
	}
	if job.Payload == nil {
		job.Payload = []string{}
	}
	if job.Columns == nil {
		job.Columns = []string{}
	}
	r.attempt = Attempt{Job: job, Key: keyColumn, Codec: job.Log.codec()}
	if job.Log.Kind != "" {
		if r.attempt.LogPath, err = r.Make(job.Log); err != nil {
			return err
		}
		r.files = append(r.files, r.attempt.LogPath)
	}
	if job.IDs.Kind != "" {
		if r.attempt.IDsPath, err = r.Make(job.IDs); err != nil {
			return err
		}
		r.files = append(r.files, r.attempt.IDsPath)
	}
	return nil
}

// once runs a contender in an empty directory, and verifies its answer in the first round.
func (r *race) once(round int, who Contender, res *Result) error {
	return r.within(func(dir, scratch string) (err error) {
		a := r.place(dir, scratch)
		if who.Threads > 1 {
			a.Threads *= who.Threads
		}
		if a.Network != nil {
			if a, err = r.remote(a); err != nil {
				return err
			}
		}
		for _, change := range a.Steps {
			if err := change(r.Harness, &a); err != nil {
				return err
			}
		}
		if err := warm(append(r.files, a.LogPath)...); err != nil {
			return err
		}
		command := who.Command(r.Harness, a)
		command.Env = append(append(command.Env, "TMPDIR="+a.Scratch), storeEnvironment(a)...)
		run, output, err := command.Execute(r.ctx)
		if err != nil {
			return err
		}
		answer := a.Out
		if who.Kind == Peer {
			answer = r.forPeers(a).Out
		}
		if run.Output, err = sizeOf(answer); err != nil {
			return err
		}
		if a.Network != nil {
			if run.Received, run.Requests, err = r.server.passed(a.Network); err != nil {
				return err
			}
		}
		if round == 0 {
			if who.Kind == Ours {
				if err := reported(output, res.Facts); err != nil {
					return err
				}
			}
			if err := r.verify(who, a, res); err != nil {
				return fmt.Errorf("the answer: %w", err)
			}
		}
		res.Runs = append(res.Runs, run)
		return nil
	})
}

// place chooses the place of the answer.
func (r *race) place(dir, scratch string) Attempt {
	a := r.attempt
	a.Scratch, a.Out = scratch, filepath.Join(dir, "out.parquet")
	switch {
	case a.Verb == verbBuild:
		a.Out = filepath.Join(dir, "out.bjf")
	case a.Verb == verbInputs:
		a.Out = filepath.Join(dir, "out.jsonl")
	case a.Log.Files > 0 && a.Network == nil:
		a.Out = filepath.Join(dir, "out") + "/"
	}
	return a
}

// within calls a function with two empty directories, which it removes: one for the
// answer, and one on disk for what is spilled, where users have it. Pending writes are
// flushed before it returns, so that the next process does not wait for them.
func (r *race) within(do func(dir, scratch string) error) (err error) {
	var dirs [2]string
	for i, parent := range []string{r.out(r.files), r.dir} {
		if dirs[i], err = os.MkdirTemp(parent, "bloomjoin-bench-"); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, os.RemoveAll(dirs[i]))
			unix.Sync()
		}()
	}
	return do(dirs[0], dirs[1])
}

// sharedMemory is a file system in memory.
const sharedMemory = "/dev/shm"

// out returns the file system for answers: memory, unless the inputs are so large that
// an answer and the processes might not fit.
func (h *Harness) out(inputs []string) string {
	var size int64
	for _, path := range inputs {
		n, err := sizeOf(path)
		if err != nil {
			return h.dir
		}
		size += n
	}
	var free unix.Statfs_t
	if unix.Statfs(sharedMemory, &free) != nil || size > int64(free.Bavail)*free.Bsize/4 {
		return h.dir
	}
	return sharedMemory
}

// sizeOf returns the size of a file, or of the files below a directory; 0 if there is
// none.
func sizeOf(root string) (n int64, err error) {
	err = filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// warm reads files, or all files below directories, into the page cache.
func warm(roots ...string) error {
	buffer := make([]byte, 1<<18)
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // an object's URL
				return nil
			}
			if err != nil || entry.IsDir() {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buffer)
			return errors.Join(err, f.Close())
		})
		if err != nil {
			return err
		}
	}
	return nil
}
