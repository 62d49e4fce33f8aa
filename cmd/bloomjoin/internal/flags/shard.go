package flags

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/options"
)

// ShardHelp describes --shard.
const ShardHelp = "`I/N` part I of N, from 0; auto[/N]: by the batch system"

// scheduler names the environment variables in which a batch system describes the
// tasks of an array job.
type scheduler struct {
	index string // the task's number, from 0
	count string // the number of tasks; "": not told
}

// schedulers returns the batch systems that --shard auto knows: Kubernetes indexed
// jobs, AWS Batch array jobs, Slurm array jobs, Cloud Run jobs and Google Batch.
func schedulers() []scheduler {
	return []scheduler{
		{"JOB_COMPLETION_INDEX", ""},
		{"AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"},
		{slurmIndex, "SLURM_ARRAY_TASK_COUNT"},
		{"CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT"},
		{"BATCH_TASK_INDEX", "BATCH_TASK_COUNT"},
	}
}

const slurmIndex = "SLURM_ARRAY_TASK_ID"

// autoShard returns the shard for --shard auto or auto/N from the environment. Indexes
// must start at 0. They cannot be shifted, since a task that is rerun alone does not
// know the lowest index of its array.
func autoShard(flag, slashN string) (none dataset.Shard, err error) {
	var n uint32 // 0: the batch system tells it
	if slashN != "" {
		of, err := dataset.ParseShard("0" + slashN)
		if err != nil {
			return none, Usagef("--shard %s: want auto, or auto/N with 1 ≤ N ≤ %d, as in auto/16", flag, options.MaxShards)
		}
		n = of.Of
	}
	var set []scheduler // those of which this is a task
	for _, s := range schedulers() {
		if os.Getenv(s.index) != "" {
			set = append(set, s)
		}
	}
	if len(set) == 0 {
		return none, Usagef("--shard %s: none of %s is set, so this is not a task of an array job (give the number: --shard I%s)", flag, indexVariables(), orN(n))
	}
	if n, err = workers(flag, n, set); err != nil {
		return none, err
	}
	index, err := taskIndex(flag, n, set)
	return dataset.Shard{Index: index, Of: n}, err
}

// indexVariables lists the environment variables with the number of a task.
func indexVariables() string {
	var names []string
	for _, s := range schedulers() {
		names = append(names, s.index)
	}
	return strings.Join(names, ", ")
}

// orN returns "/n", or "/N" for an unknown number of workers.
func orN(n uint32) string {
	if n == 0 {
		return "/N"
	}
	return fmt.Sprintf("/%d", n)
}

// workers returns the number of workers: n, or what the batch systems say if n is 0.
// Only Slurm can run single tasks of an array again, with --array=3,7; they know the
// number of the tasks in that list, not the number of workers. So its count is used
// only if the array is complete, and is never compared with n.
func workers(flag string, n uint32, set []scheduler) (uint32, error) {
	given, from := n > 0, ""
	for _, s := range set {
		v := os.Getenv(s.count)
		if v == "" || given && s.index == slurmIndex {
			continue
		}
		of, err := dataset.ParseShard("0/" + v)
		if err != nil {
			return 0, Usagef("--shard %s: %s=%q: want a number from 1 to %d", flag, s.count, v, options.MaxShards)
		}
		if s.index == slurmIndex {
			if err := wholeArray(flag, of.Of); err != nil {
				return 0, err
			}
		}
		switch {
		case n == 0:
			n, from = of.Of, s.count
		case n == of.Of:
		case given:
			return 0, Usagef("--shard %s: %s=%q: want %d, the number of workers (--shard auto takes it from the batch system)", flag, s.count, v, n)
		default:
			return 0, Usagef("--shard %s: %s=\"%d\" and %s=%q differ (give the number of workers: --shard auto/N)", flag, from, n, s.count, v)
		}
	}
	if n == 0 {
		return 0, Usagef("--shard %s: %s is set, but the batch system does not tell the number of workers (give it: --shard auto/N)", flag, set[0].index)
	}
	return n, nil
}

// wholeArray checks that the tasks of a Slurm array are 0 to n-1.
func wholeArray(flag string, n uint32) error {
	lowest, highest := os.Getenv("SLURM_ARRAY_TASK_MIN"), os.Getenv("SLURM_ARRAY_TASK_MAX")
	if lowest == "0" && highest == strconv.FormatUint(uint64(n-1), 10) {
		return nil
	}
	return Usagef("--shard %s: want a Slurm array from 0 without gaps, as --array=0-%d, got %d tasks from SLURM_ARRAY_TASK_MIN=%q to SLURM_ARRAY_TASK_MAX=%q (to run some tasks again, give the number of workers: --shard auto/N)",
		flag, n-1, n, lowest, highest)
}

// taskIndex returns the number of this task, which must be below n.
func taskIndex(flag string, n uint32, set []scheduler) (index uint32, err error) {
	var names []string // as NAME="VALUE"
	for i, s := range set {
		v := os.Getenv(s.index)
		names = append(names, fmt.Sprintf("%s=%q", s.index, v))
		at, err := strconv.ParseUint(v, 10, 32)
		if err != nil || at >= uint64(n) {
			hint := ""
			if s.index == slurmIndex {
				hint = fmt.Sprintf(" (a Slurm array must start at 0: --array=0-%d)", n-1)
			}
			return 0, Usagef("--shard %s: %s=%q: want a number from 0 to %d%s", flag, s.index, v, n-1, hint)
		}
		if i > 0 && uint32(at) != index {
			return 0, Usagef("--shard %s: %s differ (unset the one that does not number the workers of this job)", flag, strings.Join(names, " and "))
		}
		index = uint32(at)
	}
	return index, nil
}

// ParseShard parses --shard.
func ParseShard(s string) (dataset.Shard, error) {
	if rest, ok := strings.CutPrefix(s, "auto"); ok {
		shard, err := autoShard(s, rest)
		if err != nil {
			err = cause.Mark(cause.ArrayJob, err)
		}
		return shard, err
	}
	shard, err := dataset.ParseShard(s)
	if err != nil {
		err = Usagef("--%w", err)
	}
	return shard, err
}
