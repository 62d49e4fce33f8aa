package main

import (
	"fmt"
	"runtime"
)

// usualLog is the log of most joins: 20 million rows of ten columns, 1.1 GB.
var usualLog = logOf(20 * million)

// smallerLog is a quarter of it, for tables with many cells.
var smallerLog = logOf(5 * million)

func semi() *Table {
	t := &Table{Name: "semi", Title: "Semi-joins", Text: "Keep the rows of a share of the users, Parquet to Parquet: 20 million rows of ten columns, users scattered over the log."}
	for _, codec := range []string{"snappy", "zstd"} {
		for _, part := range []float64{0.0001, 0.01, 0.1} {
			log := usualLog
			if codec != "snappy" {
				log.Codec = codec
			}
			t.Cells = append(t.Cells, Cell{
				Name: percent(part) + " of the users, " + codec, Job: join("semi", log, share(usualLog, part)),
				Contenders: append(everyone(), decompress), Chief: part == 0.01 && codec == "snappy",
			})
		}
	}
	return t
}

func inner() *Table {
	t := &Table{Name: "inner", Title: "Inner joins", Text: "Rows of the same log with two columns of their users, an integer and a string of twelve bytes."}
	for _, part := range []float64{0.01, 0.1, 0.5} {
		who := everyone()
		if part == 0.5 {
			who = rivals()
		}
		t.Cells = append(t.Cells, Cell{Name: percent(part) + " of the users", Job: join("inner", usualLog, share(usualLog, part)), Contenders: who, Chief: part == 0.01})
	}
	return t
}

func types() *Table {
	t := &Table{Name: "types", Title: "Left, right, full and anti-joins", Text: "5 million rows, IDs of 1 % of the users."}
	for _, typ := range []string{"left", "right", "full", "anti"} {
		who := []Contender{ours(), duckdb, polars, datafusion, pyarrow}
		if typ == "right" || typ == "full" {
			who = who[:3] // the others have two columns for the key
		}
		t.Cells = append(t.Cells, Cell{Name: typ, Job: join(typ, smallerLog, share(smallerLog, 0.01)), Contenders: who, Chief: typ == "left"})
	}
	return t
}

// hundredMillion are IDs of which one in 500 is a user of the log.
var hundredMillion = Data{Kind: "ids", Rows: 100 * million, Users: 20 * million, Members: 200_000}

func manyIDs() *Table {
	return &Table{Name: "many-ids", Title: "100 million IDs", Text: "20 million rows, 100 million IDs, of which 200,000 are users of the log. Both sides are Parquet.", Cells: []Cell{
		{Name: "semi", Job: join("semi", usualLog, hundredMillion), Contenders: rivals(), Chief: true},
		{Name: "inner", Job: join("inner", usualLog, hundredMillion), Contenders: rivals()},
	}}
}

func stringIDs() *Table {
	log := smallerLog
	log.Key = "string"
	return &Table{Name: "string-ids", Title: "IDs that are strings", Text: "5 million rows whose users are strings of 16 to 36 bytes, and 1 % of the users.", Cells: []Cell{
		{Name: "semi", Job: join("semi", log, share(log, 0.01)), Contenders: everyone(), Chief: true},
		{Name: "inner", Job: join("inner", log, share(log, 0.01)), Contenders: everyone()},
	}}
}

func denseIDs() *Table {
	log := Data{Kind: "log", Rows: 10 * million, Users: 1000 * million, Key: "dense"}
	ids := Data{Kind: "ids", Rows: 10 * million, Users: 40 * million, Members: 10 * million, Key: "dense"}
	return &Table{Name: "dense-ids", Title: "Dense IDs", Text: "10 million IDs, one in four of a sequence, and 10 million rows, of which 1 % match. Such a filter is an exact set.", Cells: []Cell{
		{Name: "semi", Job: join("semi", log, ids), Contenders: append(rivals(), ours("--strategy", "exact"), ours("--strategy", "lookup"))},
		{Name: "inner", Job: join("inner", log, ids), Contenders: rivals()},
	}}
}

func shapes() *Table {
	t := &Table{Name: "shapes", Title: "Other logs", Text: "Semi-joins of 5 million rows with 1 % of the users. A wide log has 200 columns and 500,000 rows, and three columns are kept."}
	for _, s := range []struct {
		text    string
		log     Data
		columns []string
	}{
		{"clustered: neighbours of a log in the order of its users", Data{Order: "clustered", Key: "ascending"}, nil},
		{"the same, with a page index", Data{Order: "clustered", Key: "ascending", Index: true}, nil},
		{"sorted by user", Data{Order: "sorted", Key: "ascending"}, nil},
		{"100 k users, dictionary-encoded", Data{Users: 100_000}, nil},
		{"few users have most of the rows", Data{Order: "zipf"}, nil},
		{"row groups of 122,880 rows, zstd", Data{Group: 122_880, Codec: "zstd"}, nil},
		{"wide", Data{Rows: 500_000, Wide: 190, Group: 100_000}, []string{keyColumn, "url", "amount"}},
	} {
		log := s.log
		log.Kind = "log"
		if log.Rows == 0 {
			log.Rows = 5 * million
		}
		job := join("semi", log, share(log, 0.01))
		job.Columns = s.columns
		t.Cells = append(t.Cells, Cell{Name: s.text, Job: job, Contenders: append(rivals(), decompress)})
	}
	return t
}

func bothLarge() *Table {
	ids := Data{Kind: "ids", Rows: 20 * million, Users: 20 * million, Members: 2 * million}
	return &Table{Name: "both-large", Title: "Both sides large", Text: "20 million rows and 20 million IDs, of which 2 million are users of the log.", Cells: []Cell{
		{Name: "inner", Job: join("inner", usualLog, ids), Contenders: append(rivals(), ours("--memory", "256MiB"))},
		{Name: "left", Job: join("left", usualLog, ids), Contenders: append(rivals(), ours("--memory", "256MiB"))},
	}}
}

func conditions() *Table {
	log := Data{Kind: "log", Rows: 10 * million, Order: "year", Group: 27_398, Index: true}
	t := &Table{Name: "where", Title: "Conditions", Text: "Semi-joins with `--where` and a tenth of the users. The log is sorted by time, with a row group for each day of a year, and a page index."}
	between := func(from, to string) (sql, polars string) {
		return fmt.Sprintf("event_time >= TIMESTAMP '%s' AND event_time < TIMESTAMP '%s'", from, to),
			fmt.Sprintf("pl.col('event_time').is_between(datetime.fromisoformat('%s'), datetime.fromisoformat('%s'), closed='left')", from, to)
	}
	add := func(name, sql, polars string) {
		job := join("semi", log, share(log, 0.1))
		job.Where, job.Polars = sql, polars
		t.Cells = append(t.Cells, Cell{Name: name, Job: job, Contenders: rivals(), Chief: name == "a month"})
	}
	sql, polars := between("2024-06-10", "2024-06-11")
	add("a day", sql, polars)
	sql, polars = between("2024-05-01", "2024-06-01")
	add("a month", sql, polars)
	add("`country = 'DE'`", "country = 'DE'", "pl.col('country') == 'DE'")
	add("`url LIKE 'https://shop.example.com/s%'`", "url LIKE 'https://shop.example.com/s%'", "pl.col('url').str.starts_with('https://shop.example.com/s')")
	add("`duration_ms < 300`, half of the rows", "duration_ms < 300", "pl.col('duration_ms') < 300")
	add("none", "", "")
	return t
}

func threads() *Table {
	t := &Table{Name: "threads", Title: "Threads", Text: "The semi-join with 1 % of the users of 20 million rows, by number of threads. Polars has twice as many."}
	for n := 1; n <= runtime.GOMAXPROCS(0); n *= 2 {
		job := join("semi", usualLog, share(usualLog, 0.01))
		job.Threads = n
		t.Cells = append(t.Cells, Cell{Name: fmt.Sprint(n), Job: job, Contenders: []Contender{ours(), duckdb, polars, datafusion}})
	}
	return t
}

func startup() *Table {
	log := logOf(150_000)
	return &Table{Name: "startup", Title: "Small joins", Text: "150,000 rows and 1 % of their users: most of the time is that of the start. Those in Python import it, as in their users' scripts.", Rounds: 7, Cells: []Cell{
		{Name: "semi", Job: join("semi", log, share(log, 0.01)), Contenders: everyone()},
		{Name: "inner", Job: join("inner", log, share(log, 0.01)), Contenders: everyone()},
	}}
}

func strategies() *Table {
	all := func(names ...string) (who []Contender) {
		who = []Contender{ours()}
		for _, name := range names {
			who = append(who, ours("--strategy", name))
		}
		return who
	}
	return &Table{Name: "strategies", Title: "Strategies", Text: "bloomjoin's choice, first, beside each strategy that can be forced.", Cells: []Cell{
		{Name: "semi, 1 % of the users", Job: join("semi", usualLog, share(usualLog, 0.01)), Contenders: all("lookup", "broadcast", "reverse", "shuffle")},
		{Name: "inner, 1 % of the users", Job: join("inner", usualLog, share(usualLog, 0.01)), Contenders: all("lookup", "broadcast", "reverse", "shuffle")},
		{Name: "semi, 100 million IDs", Job: join("semi", usualLog, hundredMillion), Contenders: all("lookup", "broadcast", "reverse", "shuffle")},
	}}
}

func budgets() *Table {
	within := func(budgets ...string) (who []Contender) {
		for _, b := range budgets {
			who = append(who, ours("--memory", b))
		}
		return who
	}
	ids := Data{Kind: "ids", Rows: 20 * million, Plain: true, Members: 20 * million}
	return &Table{Name: "budgets", Title: "Peaks beside `--memory`", Text: "Below about 128 MiB the program itself and its buffers leave little room.", Cells: []Cell{
		{Name: "inner, 100 million IDs", Job: join("inner", usualLog, hundredMillion), Contenders: within("2GiB", "512MiB", "256MiB", "128MiB", "64MiB")},
		{Name: "semi, half of the users", Job: join("semi", smallerLog, share(smallerLog, 0.5)), Contenders: within("512MiB", "256MiB", "128MiB", "64MiB")},
		{Name: "full, half of the users", Job: join("full", smallerLog, share(smallerLog, 0.5)), Contenders: within("512MiB", "256MiB", "128MiB", "64MiB")},
		{Name: "build, 20 million IDs", Job: Job{Verb: verbBuild, IDs: ids}, Contenders: within("512MiB", "256MiB", "128MiB")},
	}}
}

func skew() *Table {
	t := &Table{Name: "skew", Title: "Skew", Text: "Inner joins of 10 million rows with half of the users, by how the rows fall on users. `shuffle` has too little memory for the IDs."}
	for _, s := range []struct{ text, order string }{{"even", ""}, {"one user has 30 %", "heavy"}, {"Zipf's law, exponent 1.2", "zipf"}} {
		log := logOf(10 * million)
		log.Order = s.order
		t.Cells = append(t.Cells, Cell{Name: s.text, Job: join("inner", log, share(log, 0.5)), Contenders: []Contender{
			ours(), ours("--strategy", "reverse"), ours("--strategy", "shuffle", "--memory", "128MiB"), duckdb,
		}})
	}
	return t
}

func hugeJoin() *Table {
	log := logOf(200 * million)
	ids := Data{Kind: "ids", Rows: 200 * million, Users: 200 * million, Members: 20 * million}
	return &Table{Name: "join-200m", Title: "200 million rows on each side", Text: "An inner join in 2 GiB, of which the answer is 10 % of the rows.", Large: true, Rounds: 1, Cells: []Cell{
		{Name: "inner", Job: join("inner", log, ids), Contenders: []Contender{ours("--memory", "2GiB"), duckdb}},
	}}
}
