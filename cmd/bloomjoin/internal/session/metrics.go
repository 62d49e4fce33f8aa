package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	"log":     regexp.MustCompile(`^\{"time":"[^"]+","level":"[A-Z]+","msg":("start"|.*"verb":")`),
}

// openReports opens the file of --log, and writes that of --metrics from now on.
func (c *Session) openReports(cmd *cobra.Command) error {
	names, shown, used := map[string]string{}, map[string]string{}, cmd.Flags().Args()
	flags.Given(cmd, func(f *pflag.Flag, value string) {
		if ownReports[f.Name] != nil {
			names[f.Name] = value
		} else if f.Value.Type() != "bool" {
			_, name := flags.CutLast(value, "=")
			used = append(used, name)
		}
		if f.Name == "store-option" {
			value, _, _ = strings.Cut(value, "=")
		}
		shown[f.Name] = address.Redact(strings.TrimSpace(shown[f.Name] + " " + value))
	})
	if len(names) == 0 {
		return nil
	}
	c.Store() // no goroutine makes it later
	if shard := cmd.Flag("shard"); shard != nil {
		_, _ = c.ShardOf(shard.Value.String()) // the verb reports an error
	}
	for flag, name := range names {
		same, is := c.SameAs(name), objects.Resolve(c.Store(), name)
		for _, other := range used {
			if same(other) || objects.Resolve(c.Store(), other) == is {
				return flags.Usagef("--%s %s: the run uses this file (name another one)", flag, name)
			}
		}
		used = append(used, name)
	}
	if err := c.startReports(names, slog.String("version", cmd.Root().Version), slog.Any("flags", shown)); err != nil {
		return err
	}
	if names["metrics"] != "" {
		c.rest = every(max(c.progressEvery, time.Second), func(last bool) {
			if !last {
				_ = c.writeMetrics(c.figures(nil)) // endReports returns an error
			}
		})
	}
	return nil
}

// startReports writes the first metrics and events.
func (c *Session) startReports(names map[string]string, of ...slog.Attr) (err error) {
	for flag, name := range names {
		if err := checkReport(name, ownReports[flag]); err != nil {
			return flags.Usagef("--%s %s: %w", flag, name, err)
		}
	}
	c.reports = names
	if name := names["log"]; name != "" {
		if c.journal, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
			return flags.Usagef("--log: %w", err)
		}
		c.event("start", of...)
	}
	if name := names["metrics"]; name != "" {
		if err := cmp.Or(objects.Sweep(context.Background(), storage.Local(), name), c.writeMetrics(c.figures(nil))); err != nil {
			return flags.Usagef("--metrics: %w", err)
		}
	}
	return nil
}

// checkReport returns an error if a file is not new, empty or of its kind.
func checkReport(name string, own *regexp.Regexp) error {
	if name == "" || name == "-" || address.IsURL(name) {
		return errors.New("want a local file")
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil || info.Size() == 0 && info.Mode().IsRegular() {
		return nil
	}
	if !info.Mode().IsRegular() {
		return errors.New("want a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 4<<10)
	if n, _ := io.ReadFull(f, head); !own.Match(head[:n]) {
		return errors.New("it has other content, which stays (name a new file)")
	}
	return nil
}

// lateReports starts the reports of a command line that cannot be parsed.
func (c *Session) lateReports(args []string) {
	if c.verb != "" {
		return
	}
	names := map[string]string{}
	for flag := range ownReports {
		if name := given(args, "--"+flag); name != "" {
			names[flag] = name
		}
	}
	_ = c.startReports(names) // the other error is reported
}

// endReports writes the last metrics and events. A run that succeeded has no failure.
func (c *Session) endReports(f Failure) {
	if c.rest != nil {
		c.rest()
	}
	if len(c.reports) == 0 {
		return
	}
	now := c.figures(c.final)
	delete(now, "error")
	if now["exit_code"] = f.ExitCode; f.ExitCode != ExitDone {
		now["class"], now["code"] = f.Class, string(f.Code)
	}
	if c.reports["metrics"] != "" {
		if err := c.writeMetrics(now); err != nil {
			c.Warn("--metrics: %v", err)
		}
	}
	c.event("end", slog.Any("report", now))
	_ = c.journal.Close() // nil: there is none
}

// event records what is not printed.
func (c *Session) event(text string, attrs ...slog.Attr) {
	c.record(c.journal, slog.LevelInfo, text, attrs...)
}

// begin records that a stage begins.
func (c *Session) begin(m *meter) {
	c.staging.Lock()
	defer c.staging.Unlock()
	if !slices.Contains(c.stages, m) {
		c.stages = append(c.stages, m)
		c.event("stage begun", m.figures())
	}
}

// ended records that stages have ended.
func (c *Session) ended(of []*meter) {
	c.staging.Lock()
	defer c.staging.Unlock()
	for _, m := range of {
		if slices.Contains(c.stages, m) {
			c.event("stage ended", m.figures())
		}
	}
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
	var all map[string]any
	b, err := redacted([]any{report, stages})
	if err == nil {
		d, parts := json.NewDecoder(bytes.NewReader(b)), []map[string]any{}
		d.UseNumber()
		if err = d.Decode(&parts); err == nil {
			all = parts[0]
			all["stage"] = parts[1]
		}
	}
	if err != nil {
		all = map[string]any{"message": err.Error()}
	}
	maps.DeleteFunc(all, func(_ string, v any) bool { _, list := v.([]any); return list })
	return all
}

// writeMetrics replaces the file of --metrics.
func (c *Session) writeMetrics(figures map[string]any) (err error) {
	w, err := storage.Local().Create(context.Background(), c.reports["metrics"], storage.CreateOptions{})
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

// families are metrics by name: the samples, after what describes them.
type families map[string][]string

// openMetrics renders figures.
func openMetrics(figures map[string]any) []byte {
	all, labels := families{}, fmt.Sprintf("verb=%q", figures["verb"])
	if shard := figures["shard"]; shard != nil {
		labels += fmt.Sprintf(",shard=%q", shard)
	}
	run := labels
	for _, k := range enums {
		if v := figures[k]; v != nil {
			run += fmt.Sprintf(",%s=%q", k, v)
		}
	}
	all.add("run", run, 1)
	all.add("", labels, figures)
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, line := range all[name] {
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("# EOF\n")
	return b.Bytes()
}

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
	case json.Number, int:
		name, unit, kind := named(path)
		if all[name] == nil {
			all[name] = []string{"# TYPE " + name + " " + kind, "# HELP " + name + " as in the report of --json"}
			if unit != "" {
				all[name] = append(all[name], "# UNIT "+name+" "+unit)
			}
		}
		if kind == "counter" {
			all[name] = append(all[name], fmt.Sprintf("%s_total{%s} %v", name, labels, v))
		} else {
			all[name] = append(all[name], fmt.Sprintf("%s{%s} %v", name, labels, v))
		}
	}
}

// named returns the name of a metric, in which the unit comes last, its unit and its type: what the
// report says while it grows is a counter.
func named(path string) (name, unit, kind string) {
	words := slices.DeleteFunc(strings.Split(path, "_"), func(w string) bool { return w == "" || w == "total" })
	kind = "gauge"
	if slices.Contains([]string{"stage", "storage", "usage"}, words[0]) && !slices.Contains(words, "memory") && !slices.Contains(words, "expected") {
		kind = "counter"
	}
	if i := slices.IndexFunc(words, func(w string) bool { return w == "bytes" || w == "seconds" }); i >= 0 && !slices.Contains(words, "per") {
		unit = words[i]
		words = append(slices.Delete(words, i, i+1), unit)
	}
	return "bloomjoin_" + strings.Join(words, "_"), unit, kind
}
