// Package logs has the logs that several programs measure.
package logs

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// Make returns the directory of a log of bench/scan and its IDs, which its script
// generates below data if it does not exist. scan is the program bench/scan, flag the
// one that gives this shape its number of rows: -rows for base, -scale for others.
func Make(ctx context.Context, scan, data, shape, flag string, rows uint64) (dir string, err error) {
	count := strconv.FormatUint(rows, 10)
	argv := []string{scan, "-generate", "-data", data, "-cell", shape + "/snappy/1%", "-contenders", "duckdb", flag, count}
	if _, err := race.Execute(ctx, race.Step{Argv: argv}); err != nil {
		return "", err
	}
	dirs, err := filepath.Glob(filepath.Join(data, shape+"-"+count+".v*"))
	if err != nil || len(dirs) == 0 {
		return "", fmt.Errorf("%q made no log of %d rows: %w", argv, rows, err)
	}
	return dirs[len(dirs)-1], nil
}
