package main

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/bloomjoin/bloomjoin/partition"
)

// Interval of progress lines where there is no terminal: the default, and the least of
// --progress-interval.
const (
	progressEvery = 30 * time.Second
	leastProgress = 10 * time.Millisecond
)

// progressHelp is the usage of --progress.
const progressHelp = "`MODE` progress on standard error: auto (a bar on a terminal, else lines), lines or none"

// meter counts processed rows and renders the progress. It is safe for concurrent
// use.
type meter struct {
	what  string
	total int64 // rows; 0: unknown
	start time.Time
	rows  atomic.Int64
}

// newMeter returns a meter for the rows of pieces. Its clock starts now.
func newMeter(what string, pieces []partition.Piece) *meter {
	m := &meter{what: what, start: time.Now()}
	for _, p := range pieces {
		for g := p.Lo; g < p.Hi; g++ {
			n := p.File.GroupRows(g)
			if n < 0 {
				m.total = 0
				return m
			}
			m.total += n
		}
	}
	return m
}

// String returns the progress, as "45 % (450 of 1,000 rows), 150 rows/s, 4s left".
func (m *meter) String() string { return m.after(time.Since(m.start)) }

// after returns what String returns at time d after the start.
func (m *meter) after(d time.Duration) string {
	n := m.rows.Load()
	rate := float64(n) / max(d.Seconds(), 1e-3)
	speed := fmt.Sprintf("%s rows/s", humanize.Comma(int64(rate)))
	if m.total == 0 || n > m.total { // rows that are read twice are counted twice
		return fmt.Sprintf("%s rows, %s", humanize.Comma(n), speed)
	}
	s := fmt.Sprintf("%d %% (%s of %s rows), %s", 100*n/m.total, humanize.Comma(n), humanize.Comma(m.total), speed)
	if rate > 0 {
		left := time.Duration(float64(m.total-n) / rate * float64(time.Second))
		s += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return s
}

// figures returns the progress for a log.
func (m *meter) figures() slog.Attr {
	n := m.rows.Load()
	rows := []any{slog.String("what", m.what), slog.Int64("rows", n), slog.Float64("seconds", time.Since(m.start).Seconds())}
	if m.total > 0 && n <= m.total {
		rows = append(rows, slog.Int64("rows_total", m.total))
	}
	return slog.Group("progress", rows...)
}

// progress shows the progress over the rows of pieces: as a bar on a terminal,
// otherwise as a line at intervals, and with --progress lines at the end, too, so that
// programs see how far a short run came. The caller calls add with the number of rows
// of each batch, from any goroutine, and end at least once. add is nil if nothing
// is to be shown.
func (c *cli) progress(what string, pieces []partition.Piece) (add func(int64), end func()) {
	if c.quiet || c.progressMode == "none" {
		return nil, func() {}
	}
	m := newMeter(what, pieces)
	if f, ok := c.terminal.(*os.File); ok && c.progressMode == "auto" && !c.jsonLog && term.IsTerminal(int(f.Fd())) {
		return m.bar(f)
	}
	line := func() { c.log(slog.LevelInfo, "", m.what+": "+m.String(), m.figures()) }
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(c.progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				line()
			case <-stop:
				if c.progressMode == "lines" {
					line()
				}
				return
			}
		}
	}()
	return func(n int64) { m.rows.Add(n) }, sync.OnceFunc(func() {
		close(stop)
		<-ended
	})
}

// bar shows the meter as a bar on f. Its results are those of [cli.progress].
func (m *meter) bar(f *os.File) (add func(int64), end func()) {
	p := mpb.New(mpb.WithOutput(f), mpb.WithWidth(30))
	bar := p.AddBar(m.total,
		mpb.PrependDecorators(decor.Name(m.what+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return m.String() })),
		mpb.BarRemoveOnComplete())
	return func(n int64) { m.rows.Add(n); bar.IncrInt64(n) }, sync.OnceFunc(func() {
		bar.Abort(true)
		p.Wait()
	})
}
