package main

import "github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"

// outputErrors returns the cases about outputs.
func outputErrors() []errorGroup {
	const join = "bloomjoin join --ids ids.csv --on user_id "
	const scan = "bloomjoin scan --filter users.bjf "
	earlier := []string{"bloomjoin scan --filter users.bjf -o out/ logs"}
	return []errorGroup{{
		"Outputs",
		[]errorCase{
			{about: "An output of another run", cmd: join + "--type anti -o out.parquet logs", setup: []string{join + "-o out.parquet logs"}, exit: session.ExitFailed},
			{about: "A filter of another run", cmd: "bloomjoin build --key user_id -o users.bjf ids.parquet", exit: session.ExitFailed},
			{about: "A directory of another run", cmd: scan + "--columns user_id -o out/ logs", setup: earlier, exit: session.ExitFailed},
			{about: "Other IDs for finished outputs", cmd: join + "-o out/ logs", setup: []string{"bloomjoin join --ids ids.parquet --on user_id -o out/ logs"}, exit: session.ExitFailed},
			{about: "One file under two names", cmd: join + "-o out/ --base . logs", setup: []string{join + "-o out/ logs"}, exit: session.ExitFailed},
			{about: "A commit before all workers are done", cmd: "bloomjoin commit out/", setup: []string{join + "--shard 0/3 -o out/ logs"}, exit: session.ExitFailed},
			{about: "What a worker has written is gone", cmd: scan + "--shard 1/2 -o out/ logs", setup: []string{scan + "--shard 0/2 -o out/ logs", "remove out/*.staged"}, exit: session.ExitFailed},
			{about: "A list for a table of files that are not Parquet", cmd: "bloomjoin commit --as delta out/", setup: []string{scan + "--format arrow -o out/ logs"}, exit: session.ExitFailed},
			{about: "A table of an unknown format", cmd: "bloomjoin commit --as hudi out/", setup: earlier, exit: session.ExitUsage},
			{about: "A commit where no worker has written", cmd: "bloomjoin commit no-data/", exit: session.ExitFailed},
			{about: "Files that are not ours in the output directory", cmd: scan + "-o no-data/ logs", exit: session.ExitFailed},
			{about: "The output is an input", cmd: scan + "--force -o logs/monday.parquet logs/monday.parquet", exit: session.ExitFailed},
			{about: "The output is the filter", cmd: "bloomjoin scan --filter users.filter --force --format parquet -o users.filter logs", setup: []string{"bloomjoin build --key user_id -o users.filter ids.csv"}, exit: session.ExitFailed},
			{about: "The output is a file of a list", cmd: scan + "--files-from inputs.jsonl --force -o logs/monday.parquet", setup: []string{"bloomjoin inputs -o inputs.jsonl logs"}, exit: session.ExitFailed},
			{about: "The input is not finished", cmd: scan + "-o rest.parquet out/", setup: []string{join + "--shard 0/3 -o out/ logs"}, exit: session.ExitFailed},
			{about: "The output is the directory that is read", cmd: scan + "--force -o logs/ logs", exit: session.ExitFailed},
			{about: "The output is the ID file", cmd: "bloomjoin join --force --ids ids.parquet --on user_id -o ids.parquet logs", exit: session.ExitFailed},
			{about: "The output's directory is a file", cmd: scan + "-o ids.csv/out.parquet logs", exit: session.ExitFailed},
			{about: "A filter where a directory is", cmd: "bloomjoin build --key user_id -o logs ids.csv", exit: session.ExitFailed},
			{about: "Two inputs of one name", cmd: scan + "-o out/ logs/monday.parquet mixed/monday.parquet", exit: session.ExitFailed},
			{about: "An output in HDFS", cmd: scan + "-o hdfs://host/out/ logs", exit: session.ExitFailed},
			{about: "An output that is a device", cmd: scan + "-o /dev/full logs", exit: session.ExitUsage},
			{about: "A key of two types in one column", cmd: "bloomjoin join --ids ids.csv --key-type string --on user_id --type full -o out.parquet logs", exit: session.ExitFailed},
			{about: "A value that TSV cannot have", cmd: join + "--type left --columns ids.name -o out.tsv logs", exit: session.ExitFailed},
			{about: "The disk is full", cmd: join + "-o - logs > FULL-DISK", exit: session.ExitTryAgain},
			failed("A state of another kind", "bloomjoin dedup --key user_id --expect 100 --state users.bjf -o unique.csv ids.csv"),
			{about: "A name of another format than that of the rows", cmd: "bloomjoin dedup --key user_id -o unique.ndjson ids.csv", exit: session.ExitUsage},
			{about: "A state of an earlier version's rules", cmd: "bloomjoin dedup --key name --normalize lower --expect 100 --state ascii.state -o unique.csv ids.csv", setup: []string{"bloomjoin dedup --key name --normalize lower,ascii-only --expect 100 --state ascii.state -o unique.csv ids.csv"}, exit: session.ExitFailed},
			{about: "A state of other options", cmd: "bloomjoin dedup --key name --expect 100 --state seen.state -o unique.csv ids.csv", setup: []string{"bloomjoin dedup --key user_id --expect 100 --state seen.state -o unique.csv ids.csv"}, exit: session.ExitFailed},
		},
	}}
}

// limitErrors returns the cases about memory limits.
func limitErrors() []errorGroup {
	return []errorGroup{{
		"Memory",
		[]errorCase{
			failed("A filter that is too large", "bloomjoin build --key user_id --kind bloom --expect 1000000000 --fpr 0.001 --shard 0/1 --memory 64MiB -o big.bjf ids.csv"),
			failed("A filter file that is too large", "bloomjoin scan --filter large.bjf --memory 16MiB -o out.parquet logs"),
			failed("Text with more columns than fit the memory", "bloomjoin join --ids many.csv --key-type int64 --on user_id --type inner --memory 16MiB -o out.parquet logs"),
			failed("A rate that no filter has", "bloomjoin build --key user_id --kind bloom --fpr 1e-30 --expect 1000000 --shard 0/1 -o new.bjf ids.csv"),
		},
	}}
}
