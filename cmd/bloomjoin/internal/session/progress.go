package session

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/term"

	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Interval of progress lines where there is no terminal: the default, and the least of
// --progress-interval.
const (
	progressEvery = 30 * time.Second
	minProgress   = 10 * time.Millisecond
)

// progressHelp is the usage of --progress.
const progressHelp = "`MODE` auto (a bar on a terminal, else lines), lines or none"

// meter counts the rows of one phase of a run and renders the progress. It is safe for
// concurrent use.
type meter struct {
	what  string
	total int64 // rows; 0: unknown
	rows  atomic.Int64
	all   atomic.Int64 // ns that all rows took; 0: not all are read

	mu      sync.Mutex
	begun   time.Time     // the current part; zero: another phase is shown
	before  time.Duration // the earlier parts
	guesses [2]guess      // at growing times, the later one at twice the earlier or more
}

// guess is the estimated duration of a whole phase.
type guess struct{ at, whole time.Duration }

// NewMeter returns a meter for the rows of pieces.
func NewMeter(what string, pieces []source.Piece) *meter {
	m := &meter{what: what}
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
func (m *meter) String() string { return m.after(m.elapsed()) }

// elapsed returns how long the phase has taken.
func (m *meter) elapsed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun.IsZero() {
		return m.before
	}
	return m.before + time.Since(m.begun)
}

// run starts or stops the clock.
func (m *meter) run(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begun.IsZero() {
		m.before += time.Since(m.begun)
	}
	if m.begun = (time.Time{}); on {
		m.begun = time.Now()
	}
}

// after returns what String returns at time d after the start.
func (m *meter) after(d time.Duration) string {
	n := m.rows.Load()
	rate := float64(n) / max(d.Seconds(), 1e-3)
	speed := fmt.Sprintf("%s rows/s", humanize.Comma(int64(rate)))
	if m.total == 0 || n > m.total { // rows that are read twice are counted twice
		return fmt.Sprintf("%s rows, %s", humanize.Comma(n), speed)
	}
	s := fmt.Sprintf("%d %% (%s of %s rows), %s", 100*n/m.total, humanize.Comma(n), humanize.Comma(m.total), speed)
	if left, ok := m.left(n, d); ok {
		s += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return s
}

// An estimate is shown from minShare of the rows and minTime on, if the one that was
// made in half the time or less agrees within a factor of two.
const (
	minShare = 0.01
	minTime  = time.Second
)

// left estimates the time that the remaining rows take. ok is false as long as it may be
// wrong by a large factor.
func (m *meter) left(n int64, d time.Duration) (left time.Duration, ok bool) {
	share := float64(n) / float64(m.total)
	if n == m.total || share < minShare || d < minTime {
		return 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	whole := time.Duration(float64(d) / share)
	if g := &m.guesses; d >= 2*g[1].at {
		g[0], g[1] = g[1], guess{d, whole}
	}
	was := m.guesses[0].whole
	return whole - d, was > 0 && was <= 2*whole && whole <= 2*was
}

// figures returns the progress for a log.
func (m *meter) figures() slog.Attr {
	n := m.rows.Load()
	rows := []any{slog.String("what", m.what), slog.Int64("rows", n), slog.Float64("seconds", m.elapsed().Seconds())}
	if m.total > 0 && n <= m.total {
		rows = append(rows, slog.Int64("rows_total", m.total))
	}
	return slog.Group("progress", rows...)
}

// phases shows the phase of a run that was last added to. Each has a clock of its own,
// which stops while another one is shown.
type phases struct {
	begin func(*meter)
	mu    sync.Mutex // of changes
	now   atomic.Pointer[meter]
}

// add counts rows of a phase.
func (p *phases) add(m *meter, n int64) {
	if p.now.Load() != m {
		p.show(m)
	}
	if m.rows.Add(n) == m.total {
		m.all.Store(int64(m.elapsed()))
	}
}

func (p *phases) show(m *meter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.now.Load()
	if before == m {
		return
	}
	if before != nil {
		before.run(false)
	}
	if m.elapsed() == 0 {
		p.begin(m)
	}
	m.run(true)
	p.now.Store(m)
}

// finishingFrom is how long all rows must have been read before a line says so.
const finishingFrom = time.Second

// line returns what is being done, and the progress. When all rows are read, what is made
// of them may still be merged, encoded and written.
func (p *phases) line() (what, progress string) {
	m := p.now.Load()
	all := time.Duration(m.all.Load())
	if d := m.elapsed(); all > 0 && m.rows.Load() == m.total && d-all >= finishingFrom {
		rate := float64(m.total) / max(all.Seconds(), 1e-3)
		return "finishing", fmt.Sprintf("%s rows read, %s rows/s, then %s", humanize.Comma(m.total), humanize.Comma(int64(rate)), (d - all).Round(time.Second))
	}
	return m.what, m.String()
}

// Progress shows the progress over the rows of pieces: as a bar on a terminal,
// otherwise as a line at intervals, and with --progress lines at the end, too, so that
// programs see how far a short run came. The caller calls add with the number of rows
// of each batch, from any goroutine, and end at least once. add is nil if nothing
// is to be shown.
func (c *Session) Progress(what string, pieces []source.Piece) (add func(int64), end func()) {
	adds, end := c.ProgressIn(NewMeter(what, pieces))
	return adds[0], end
}

// ProgressIn is progress over several phases, in the order in which they usually come. It
// returns one function for each.
func (c *Session) ProgressIn(of ...*meter) (adds []func(int64), end func()) {
	adds = make([]func(int64), len(of))
	shown := !c.quiet && c.progressMode != "none"
	if !shown && !c.reports() {
		return adds, func() {}
	}
	p := &phases{begin: c.begin}
	for i, m := range of {
		adds[i] = func(n int64) { p.add(m, n) }
	}
	p.show(of[0])
	interval, show := c.progressEvery, func(last bool) {
		if shown && (!last || c.progressMode == "lines") {
			what, progress := p.line()
			c.log(slog.LevelInfo, "", what+": "+progress, p.now.Load().figures())
		}
	}
	if f, ok := c.terminal.(*os.File); ok && shown && c.progressMode == "auto" && !c.jsonLog && term.IsTerminal(int(f.Fd())) {
		interval, show = drawEvery, p.drawer(f)
	}
	return adds, every(interval, func(last bool) {
		show(last)
		for _, m := range of {
			if last && m.elapsed() > 0 {
				m.run(false)
				c.event("stage ended", m.figures())
			}
		}
	})
}

// every calls a function at intervals, and a last time at the end.
func every(d time.Duration, f func(last bool)) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f(false)
			case <-stop:
				f(true)
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-ended
	})
}

const (
	drawEvery = 150 * time.Millisecond
	longBar   = 30
	shortBar  = 5 // a shorter one says nothing
)

// drawer returns a function that draws the phase as a bar on a line of f, and clears the line at
// the end.
func (p *phases) drawer(f *os.File) func(last bool) {
	shown := 0 // columns
	return func(last bool) {
		width := widthOf(f, plainWidth)
		text := ""
		if !last {
			text = p.bar(width - 1)
			text = text[:min(len(text), max(width-1, 0))] // a longer one would begin a new line
		}
		// Messages are written over it. A terminal that is gone misses nothing.
		_, _ = fmt.Fprintf(f, "\r%-*s\r", min(shown, max(width-1, 0)), text)
		shown = len(text)
	}
}

// bar returns the line of a terminal, in ASCII. The figures come first: the bar takes what room
// they leave.
func (p *phases) bar(room int) string {
	what, progress := p.line()
	m := p.now.Load()
	n := m.rows.Load()
	size := min(longBar, room-len(what)-len(progress)-len(" [] "))
	if m.total == 0 || n > m.total || size < shortBar {
		return what + " " + progress
	}
	full := int(int64(size) * n / m.total)
	return fmt.Sprintf("%s [%s%s] %s", what, strings.Repeat("=", full), strings.Repeat("-", size-full), progress)
}
