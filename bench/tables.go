package main

import "fmt"

// Tables returns all tables, in the order of the document. They are declared in the files
// named tables_*.go.
func Tables() []*Table {
	return []*Table{
		semi(), inner(), types(), manyIDs(), stringIDs(), denseIDs(), shapes(), bothLarge(),
		conditions(), threads(), startup(),
		strategies(), budgets(), skew(),
		manyFiles(), inputLists(), growing(),
		stores(), pythonPackage(),
		build(), shards(), filterSpeed(), setSpeed(), fileSpeed(), snappySpeed(), falsePositives(), sizes(), binaries(),
		billion(), hugeJoin(),
	}
}

const million = 1_000_000

// logOf is a log of events with as many users as rows.
func logOf(rows uint64) Data { return Data{Kind: "log", Rows: rows} }

// share returns the IDs of a share of a log's users.
func share(log Data, part float64) Data {
	n := max(uint64(float64(log.users())*part), 1)
	order := ""
	if log.Order == "clustered" {
		order = log.Order
	}
	return Data{Kind: "ids", Rows: n, Users: log.users(), Members: n, Key: log.Key, Order: order}
}

// percent renders a share.
func percent(part float64) string { return fmt.Sprintf("%.4g %%", 100*part) }

// payload are the columns of IDs in the answers of joins that have them.
var payload = []string{"score", "name"}

// join returns a join of the given type. Its answer has columns of the IDs where it can.
func join(typ string, log, ids Data) Job {
	j := Job{Verb: verbJoin, Type: typ, Log: log, IDs: ids}
	if typ != "semi" && typ != "anti" {
		j.Payload = payload
	}
	return j
}

// everyone are the tools for a join of local files.
func everyone() []Contender {
	return []Contender{ours(), duckdb, polars, datafusion, pyarrow, chdb}
}

// rivals are ours and the two tools that are nearest to it.
func rivals() []Contender { return []Contender{ours(), duckdb, polars} }
