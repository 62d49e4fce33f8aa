package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// ownReports are the flags of files with metrics and events, and how such a file begins. Others are
// not touched.
var ownReports = map[string]*regexp.Regexp{
	"metrics": regexp.MustCompile(`^# TYPE bloomjoin_`),
	"log":     regexp.MustCompile(`^\{"time":"[^"]+","level":"[A-Z]+","msg":.*"(verb|exit_code)":`),
}

// openReports checks the files of --metrics and --log, and opens the latter.
func (c *Session) openReports() (err error) {
	for flag, own := range ownReports {
		name, ok := given(c.args, "--"+flag)
		if !ok || c.shell {
			continue
		}
		if err := checkReport(name, c.args, own); err != nil {
			return flags.Usagef("--%s %s: %w", flag, name, err)
		}
		if flag == "metrics" {
			c.metrics = name
		} else if c.journal, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
			return flags.Usagef("--log: %w", err)
		}
	}
	return nil
}

// reports reports whether there are metrics or a log.
func (c *Session) reports() bool { return c.metrics != "" || c.journal != nil }

// checkReport returns an error if a file is named twice, or is neither new nor of its kind.
func checkReport(name string, args []string, own *regexp.Regexp) error {
	info, err := os.Stat(name)
	if name == "" || name == "-" || address.IsURL(name) || err == nil && !info.Mode().IsRegular() {
		return errors.New("want a local file")
	}
	times := 0
	for _, a := range args {
		if _, a = flags.CutLast(a, "="); objects.Resolve(storage.Local(), a) == objects.Resolve(storage.Local(), name) {
			times++
		}
	}
	if times > 1 {
		return errors.New("the run uses this file (name another one)")
	}
	if err != nil {
		return nil // it is new, or cannot be written
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	head := make([]byte, 4<<10)
	n, _ := f.Read(head) // an empty file is as good as a new one
	if err = f.Close(); err == nil && n > 0 && !own.Match(head[:n]) {
		err = errors.New("it has other content, which stays (name a new file)")
	}
	return err
}

// startReports writes the first event and metrics, and then these at intervals.
func (c *Session) startReports(version, shard string) error {
	c.event("start", slog.String("version", version), slog.String("args", c.argsShown()))
	if c.metrics == "" {
		return nil
	}
	_, _ = c.ShardOf(shard) // the verb reports an error
	c.Store()               // so that no goroutine makes it
	if err := errors.Join(objects.Sweep(context.Background(), storage.Local(), c.metrics), c.writeMetrics(c.figures(nil))); err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	c.rest = every(max(c.progressEvery, time.Second), func(last bool) {
		if !last {
			_ = c.writeMetrics(c.figures(nil)) // endReports returns an error
		}
	})
	return nil
}

// argsShown returns the arguments without what may be a secret or a key.
func (c *Session) argsShown() string {
	flags := "value|where"
	if c.verb == "find" {
		flags = "key"
	}
	shown := regexp.MustCompile("(\x00--("+flags+")[=\x00])[^\x00]*").ReplaceAllString(strings.Join(c.args, "\x00"), "${1}"+address.Redacted)
	return address.Redact(strings.ReplaceAll(shown, "\x00", " "))
}

// endReports writes the last metrics and event. A run that succeeded has no failure.
func (c *Session) endReports(f Failure) {
	if c.rest != nil {
		c.rest()
	}
	if !c.reports() {
		return
	}
	now := c.figures(c.final)
	if now["exit_code"] = f.ExitCode; f.Code != "" {
		now["class"], now["code"] = f.Class, string(f.Code)
	}
	if c.metrics != "" {
		if err := c.writeMetrics(now); err != nil {
			c.Warn("--metrics: %v", err)
		}
	}
	if err := c.record(c.journal, slog.LevelInfo, "end", slog.Any("report", now)); err != nil && c.journal != nil {
		c.Warn("--log: %v", err)
	}
	_ = c.journal.Close() // nil: there is none
}

// event records what is not printed.
func (c *Session) event(text string, attrs ...slog.Attr) {
	_ = c.record(c.journal, slog.LevelInfo, text, attrs...)
}

// begin records that a stage begins.
func (c *Session) begin(m *meter) {
	c.staging.Lock()
	defer c.staging.Unlock()
	c.stages = append(c.stages, m)
	c.event("stage begun", m.figures())
}

// stage are the figures of a stage.
type stage struct {
	Rows     int64   `json:"rows"`
	Seconds  float64 `json:"seconds"`
	Expected int64   `json:"expected_rows,omitempty"`
}

// figures returns a report as JSON has it, without lists, and the stages; nil: what is known now.
func (c *Session) figures(report any) map[string]any {
	if report == nil {
		report = c.headNow(c.verb, c.started)
	}
	stages := map[string]stage{}
	c.staging.Lock()
	for _, m := range c.stages {
		s := stages[m.what]
		stages[m.what] = stage{s.Rows + m.rows.Load(), s.Seconds + m.elapsed().Seconds(), s.Expected + m.total}
	}
	c.staging.Unlock()
	var all []map[string]any
	b, _ := redacted([]any{report, stages}) // an error leaves it empty
	now := map[string]any{}
	if json.Unmarshal(b, &all) == nil {
		now = all[0]
		now["stage"] = all[1]
	}
	delete(now, "error")
	maps.DeleteFunc(now, func(_ string, v any) bool { _, list := v.([]any); return list })
	return now
}

// writeMetrics replaces the file of --metrics.
func (c *Session) writeMetrics(figures map[string]any) (err error) {
	if err := checkReport(c.metrics, nil, ownReports["metrics"]); err != nil { // the output has replaced it
		return err
	}
	w, err := storage.Local().Create(context.Background(), c.metrics, storage.CreateOptions{})
	if err != nil {
		return err
	}
	defer faults.Join(&err, w.Abort)
	if _, err := w.Write(openMetrics(figures)); err != nil {
		return err
	}
	return w.Commit(true)
}

// Figures whose parts are values of a label, by name, and texts that are labels of bloomjoin_run:
// others may be names or keys.
var (
	labelOf = map[string]string{"stage": "stage", "storage_requests": "kind"}
	enums   = []string{"kind", "geometry", "strategy", "sharing", "type", "result", "class", "code"}
)

// openMetrics renders figures.
func openMetrics(figures map[string]any) []byte {
	labels := fmt.Sprintf("verb=%q", figures["verb"])
	if shard := figures["shard"]; shard != nil {
		labels += fmt.Sprintf(",shard=%q", shard)
	}
	run := labels
	for _, k := range enums {
		if v := figures[k]; v != nil {
			run += fmt.Sprintf(",%s=%q", k, v)
		}
	}
	all := families{}
	all.add("run", run, true)
	all.add("", labels, figures)
	text := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text += all[name]
	}
	return []byte(text + "# EOF\n")
}

// families are metrics by name.
type families map[string]string

// add adds the figures under a path.
func (all families) add(path, labels string, figures any) {
	switch v := figures.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if label := labelOf[path]; label != "" {
				all.add(path+"_", fmt.Sprintf("%s,%s=%q", labels, label, k), v[k])
			} else {
				all.add(strings.TrimPrefix(path+"_"+k, "_"), labels, v[k])
			}
		}
	case bool:
		all.add(path, labels, map[bool]int{true: 1}[v])
	case float64, int:
		name, unit, total := named(path)
		if all[name] == "" {
			all[name] = fmt.Sprintf("# TYPE %s %s\n# HELP %[1]s as in the report of --json\n", name, map[string]string{"": "gauge", "_total": "counter"}[total])
			if unit != "" {
				all[name] += fmt.Sprintf("# UNIT %s %s\n", name, unit)
			}
		}
		all[name] += fmt.Sprintf("%s%s{%s} %v\n", name, total, labels, v)
	}
}

var grows = regexp.MustCompile(`^(storage|usage|stage)_`)

// named returns the name of a metric, in which the unit comes last, the unit, and the ending of a
// counter: of what grows during a run.
func named(path string) (name, unit, total string) {
	if grows.MatchString(path) && !strings.Contains(path, "memory") && !strings.Contains(path, "expected") {
		total = "_total"
	}
	words := slices.DeleteFunc(strings.Split("bloomjoin_"+path, "_"), func(w string) bool { return w == "" || w == "total" && w != path })
	if i := slices.IndexFunc(words, func(w string) bool { return w == "bytes" || w == "seconds" }); i >= 0 && !slices.Contains(words, "per") {
		unit = words[i]
		words = append(slices.Delete(words, i, i+1), unit)
	}
	return strings.Join(words, "_"), unit, total
}
