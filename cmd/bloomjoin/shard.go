package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/partition"
)

const shardHelp = "`I/N` read part I of N, from 0; auto/N: I from Kubernetes, AWS Batch or Slurm"

// indexVariables returns the environment variables in which batch systems put the
// number of an array task, from 0: Kubernetes indexed jobs, AWS Batch array jobs
// and Slurm array jobs.
func indexVariables() []string {
	return []string{"JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX", slurmIndex}
}

const slurmIndex = "SLURM_ARRAY_TASK_ID"

// shardOf parses --shard and stores it for the report.
func (c *cli) shardOf(s string) (partition.Shard, error) {
	if s == "" {
		return partition.Shard{}, nil
	}
	if n, ok := strings.CutPrefix(s, "auto"); ok {
		index, err := shardIndex(s, n)
		if err != nil {
			return partition.Shard{}, err
		}
		s = index + n
	}
	shard, err := partition.ParseShard(s)
	if err != nil {
		return shard, usagef("--%w", err)
	}
	c.shard = shard.String()
	return shard, nil
}

// shardIndex returns the index for --shard auto/N from the environment. Indexes
// must start at 0. They cannot be shifted, since a task that is rerun alone does not
// know the lowest index of its array.
func shardIndex(flag, slashN string) (string, error) {
	of, err := partition.ParseShard("0" + slashN)
	if err != nil {
		return "", usagef("--shard %s: want auto/N with 1 ≤ N ≤ %d, as in auto/16", flag, partition.MaxShards)
	}
	var set []string // as NAME="VALUE"
	var index, hint string
	for _, name := range indexVariables() {
		v := os.Getenv(name)
		if v == "" {
			continue
		}
		set = append(set, fmt.Sprintf("%s=%q", name, v))
		if name == slurmIndex {
			hint = fmt.Sprintf(" (a Slurm array must start at 0: --array=0-%d)", of.Of-1)
		}
		i, err := strconv.ParseUint(v, 10, 32)
		if err != nil || i >= uint64(of.Of) {
			return "", usagef("--shard %s: %s=%q: want a number from 0 to %d%s", flag, name, v, of.Of-1, hint)
		}
		v = strconv.FormatUint(i, 10)
		if index != "" && v != index {
			return "", usagef("--shard %s: %s differ (unset the one that does not number the workers of this job)", flag, strings.Join(set, " and "))
		}
		index = v
	}
	if index == "" {
		return "", usagef("--shard %s: none of %s is set, so this is not a task of an array job (give the number: --shard I/%d)", flag, strings.Join(indexVariables(), ", "), of.Of)
	}
	return index, nil
}
