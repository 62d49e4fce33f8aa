package main

import "github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"

func failed(about, cmd string) errorCase {
	return errorCase{about: about, cmd: cmd, exit: session.ExitFailed}
}

// idErrors returns the cases about ID sets.
func idErrors() []errorGroup {
	const build, ints = "bloomjoin build --key user_id -o new.bjf ", "bloomjoin build --key user_id --key-type int64 -o new.bjf "
	return []errorGroup{{
		"ID sets",
		[]errorCase{
			failed("No such file of IDs", build+"nowhere.csv"),
			failed("Files separated by commas", build+"ids.csv,more.csv"),
			failed("No such column of IDs", "bloomjoin build --key userid -o new.bjf ids.csv"),
			failed("A value that is not an integer", ints+"bad-value.csv"),
			failed("A value that is not an integer, one ID a line", ints+"bad-value.txt"),
			failed("A value that is not a UUID", "bloomjoin build --key user_id --normalize uuid -o new.bjf no-uuid.txt"),
			failed("A value without a host", "bloomjoin build --key user_id --normalize url-host -o new.bjf no-host.txt"),
			failed("Known keys, and IDs that are read once", "bloomjoin build --against ids.csv -o new.bjf - < bad-value.txt"),
			failed("Every value is bad", ints+"all-bad.txt"),
			failed("Most lines are bad, and would be skipped", ints+"--skip-bad all-bad.txt"),
			failed("IDs at an address that is not handled", build+"ftp://example.com/ids.csv"),
			failed("A row with a field less", ints+"ragged.csv"),
			failed("A quote that is not closed", ints+"quote.csv"),
			failed("Text after a closing quote", ints+"after-quote.csv"),
			failed("A CSV file without a header", ints+"no-header.csv"),
			failed("Two columns of one name", ints+"twice.csv"),
			failed("A column without a name", ints+"unnamed.csv"),
			failed("A line that is not JSON", ints+"bad.ndjson"),
			failed("A JSON array", ints+"json-array.json"),
			failed("A file in Latin-1", build+"latin1.csv"),
			failed("A column name in Latin-1", build+"latin1-name.csv"),
			failed("NDJSON in Latin-1", build+"latin1.ndjson"),
			failed("Another encoding than the byte order mark says", ints+"--encoding latin1 utf16.csv"),
			failed("A file in UTF-16 without a byte order mark", ints+"no-mark.csv"),
			failed("UTF-16 in an order that is not known", ints+"--encoding utf-16 no-mark.csv"),
			failed("UTF-16 with half a character", build+"half.txt"),
			failed("A file in windows-1252 that is said to be Latin-1", build+"--encoding latin1 windows.txt"),
			failed("Bytes that may be UTF-16", build+"--key-type binary utf16.txt"),
			failed("Bytes that may be several lines", build+"--key-type binary cr.txt"),
			failed("A CR within the names of columns", build+"cr-lf.csv"),
			failed("A CR within the only line", build+"cr-lf.txt"),
			failed("Binary data with the name of a text file", ints+"binary.txt"),
			failed("A line that is too long", ints+"long.txt"),
			failed("A compressed file that was cut short", ints+"cut.csv.gz"),
			failed("A file that is not compressed as its name says", ints+"not-zstd.csv.zst"),
			failed("CSV on standard input", ints+"- < ids.csv"),
			failed("Parquet on standard input", build+"- < ids.parquet"),
			failed("A filter given as IDs", build+"users.bjf"),
			failed("An ID file that was cut short", build+"cut.parquet"),
			failed("An exact filter of text", "bloomjoin build --key user_id --kind exact -o new.bjf names.csv"),
			failed("An exact filter of pairs", "bloomjoin build --key user_id,country --kind exact -o new.bjf ids.parquet"),
			failed("Text and integers in one ID set", build+"ids.csv ids.parquet"),
			failed("A rule for strings on integers", "bloomjoin build --key user_id --normalize lower -o new.bjf ids.parquet"),
		},
	}}
}

// keyErrors returns the cases about key columns and their types.
func keyErrors() []errorGroup {
	const scan = "bloomjoin scan -o out.parquet --filter "
	const join = "bloomjoin join -o out.parquet "
	return []errorGroup{{
		"Keys",
		[]errorCase{
			failed("The log's key has another name", scan+"users.bjf later.parquet no-key.parquet"),
			failed("A value that cannot be a key of the filter", "bloomjoin probe --filter users.bjf < values.ndjson"),
			failed("A cast that a value does not fit, in NDJSON", "bloomjoin probe --filter users.bjf --key user_id::int64 < values.ndjson"),
			failed("A path into a value that is not an object", "bloomjoin probe --filter users.bjf --key user_id.id < ids.ndjson"),
			failed("A mistyped column", scan+"users.bjf --key userid logs"),
			failed("A mistyped column of a join", join+"--ids ids.csv --on userid=user_id logs"),
			failed("A mistyped column of the IDs", join+"--ids ids.csv --on user_id=userid logs"),
			failed("A filter of text and a log of integers", scan+"names.bjf logs"),
			failed("A filter of integers and a log of text", scan+"users.bjf text-keys.parquet"),
			failed("A join of text with integers", join+"--ids ids.parquet --on user_id text-keys.parquet"),
			failed("A value that a cast does not fit", join+"--ids ids.csv --on url::int64=user_id later.parquet"),
			{about: "A cast to a type of two meanings", cmd: join + "--ids ids.csv --on user_id::int8 logs", exit: session.ExitUsage},
			{about: "A cast to an unknown type", cmd: join + "--ids ids.csv --on user_id::number logs", exit: session.ExitUsage},
			failed("Two key columns for a filter of one", scan+"users.bjf --key user_id,country logs"),
			failed("One key column for a filter of two", scan+"pairs.bjf --key user_id logs"),
			failed("A key in a list", scan+"users.bjf --key users lists.parquet"),
			failed("A key that is a struct", scan+"users.bjf --key user structs.parquet"),
			failed("A field that the struct does not have", scan+"users.bjf --key user.uid structs.parquet"),
			failed("A field of a column that is not a struct", scan+"users.bjf --key url.host logs"),
			failed("An index of a column that the log lacks", "bloomjoin inputs --index userid -o inputs.jsonl logs"),
			{about: "find in a list without an index", setup: []string{"bloomjoin inputs --quiet -o inputs.jsonl logs"}, cmd: "bloomjoin find --key 7 inputs.jsonl", exit: session.ExitFailed},
			{about: "find with a key of another class", setup: []string{"bloomjoin inputs --quiet --index user_id -o inputs.jsonl logs"}, cmd: "bloomjoin find --key seven inputs.jsonl", exit: session.ExitFailed},
			failed("A filter that was normalized", scan+"lower.bjf text-keys.parquet"),
			failed("A filter of an earlier version's rules", scan+"ascii.bjf --normalize lower text-keys.parquet"),
			failed("A filter that was not normalized", scan+"names.bjf --normalize lower text-keys.parquet"),
			failed("A join that normalizes and a filter that does not", join+"--ids names.csv --filter names.bjf --normalize lower --on user_id text-keys.parquet"),
		},
	}}
}

// logErrors returns the cases about the files of a log.
func logErrors() []errorGroup {
	const scan, join = "bloomjoin scan --filter users.bjf ", "bloomjoin join --ids ids.csv --on user_id "
	return []errorGroup{{
		"Logs",
		[]errorCase{
			failed("No such log", scan+"-o out.parquet nowhere.parquet"),
			failed("No such directory", scan+"-o out.parquet log/"),
			failed("A pattern that matches nothing", scan+"-o out.parquet 'logs/*.pq'"),
			failed("A directory without files", scan+"-o out.parquet empty"),
			failed("A directory without data", scan+"-o out.parquet no-data"),
			failed("A file among the data that is not data", scan+"-o out.parquet mixed"),
			failed("A Delta Lake table", scan+"-o out.parquet delta"),
			failed("A version that a table does not have", scan+"-o out.parquet delta:delta@v7"),
			failed("A time before a table", scan+"-o out.parquet delta:delta@1999-01-01T00:00:00Z"),
			failed("A time without a zone", scan+"-o out.parquet delta:delta@2026-01-01"),
			failed("A directory that is no table", scan+"-o out.parquet delta:log"),
			failed("A table in a catalog", scan+"-o out.parquet uc:main.logs"),
			failed("A table whose current metadata is not known", scan+"-o out.parquet iceberg:iceberg"),
			failed("A snapshot that a table does not have", scan+"-o out.parquet iceberg:iceberg/metadata/v1.metadata.json@snapshot=7"),
			failed("A tag that a table does not have", scan+"-o out.parquet iceberg:iceberg/metadata/v1.metadata.json@tag=audited"),
			failed("A version in the form of another format", scan+"-o out.parquet iceberg:iceberg@v7"),
			failed("A name of a catalog without a table", scan+"-o out.parquet rest:https://catalog.example.com"),
			failed("Files of an Iceberg table", scan+"-o out/ --base iceberg 'iceberg/data/*.parquet'"),
			failed("A log in CSV", scan+"-o out.parquet ids.csv"),
			failed("A log in CSV on standard input", scan+"-o out.parquet - < ids.csv"),
			failed("A Parquet log on standard input", scan+"-o out.parquet - < ids.parquet"),
			failed("CSV on standard input of probe", "bloomjoin probe --filter users.bjf < ids.csv"),
			failed("Parquet on standard input of probe", "bloomjoin probe --filter users.bjf < ids.parquet"),
			failed("Nothing on standard input of probe", "bloomjoin probe --filter users.bjf"),
			failed("A line to probe that is not JSON", "bloomjoin probe --filter users.bjf < bad.ndjson"),
			failed("A file to inspect that is not there", "bloomjoin inspect user.bjf"),
			failed("A file of another kind to inspect", "bloomjoin inspect no-data/README.md"),
			failed("An address in HDFS", scan+"-o out.parquet hdfs://host/logs/"),
			failed("An empty file", scan+"-o out.parquet empty.parquet"),
			failed("A Parquet file that was cut short", scan+"-o out.parquet logs cut.parquet"),
			failed("A Parquet file with a changed byte", scan+"-o out.parquet logs flipped.parquet"),
			failed("A changed byte found by inspect", "bloomjoin inspect --check flipped.parquet"),
			failed("False statistics found by inspect", "bloomjoin inspect --check untrue.parquet"),
			failed("A changed byte of an Arrow file", scan+"-o out.parquet flipped.arrow"),
			failed("A changed byte of an Arrow file found by inspect", "bloomjoin inspect --check flipped.arrow"),
			failed("A Feather V1 file", scan+"-o out.parquet v1.feather"),
			failed("An encrypted Parquet file", scan+"-o out.parquet encrypted.parquet"),
			failed("Files without the key", scan+"-o out/ logs no-key.parquet"),
			failed("No file has the key", scan+"--missing-key skip-file -o out/ no-key.parquet"),
			failed("Files of different columns", scan+"-o out.parquet logs later.parquet"),
			failed("A column of two types", scan+"--columns user_id --schema union -o out.parquet --match url=names.bjf logs text-keys.parquet"),
			failed("A column that is not there", scan+"--columns user_id,uri -o out.parquet logs"),
			failed("A chosen field of a column that is not a struct", scan+"--columns user_id.day -o out.parquet logs"),
			failed("A chosen field that the struct does not have", scan+"--key user.id --columns user.uid -o out.parquet structs.parquet"),
			failed("Fields of structs in files of one schema", scan+"--columns user_id.day --schema strict -o out.parquet logs"),
			failed("Fields of structs in Arrow", scan+"--columns user_id.day -o out.arrow logs"),
			failed("A condition on a column that is not there", scan+"--where \"uri LIKE '/a%'\" -o out.parquet logs"),
			failed("A condition with a value of another type", scan+"--where \"user_id = 'u100'\" -o out.parquet logs"),
			failed("Two columns that are one key", "bloomjoin join --ids ids.csv --on 'user_id|country=user_id' -o out.parquet logs"),
			failed("A condition on text with a number", "bloomjoin build --key user_id -o new.bjf --ids-where 'user_id = 5' ids.csv"),
			failed("A condition on text whose key gets the log's type", "bloomjoin join --ids ids.csv --on user_id --ids-where \"user_id = '5'\" -o out.parquet logs"),
			failed("A schema without a column of the log", scan+"--schema-from logs/monday.parquet -o out.parquet later.parquet"),
			failed("A schema that is not from a Parquet file", scan+"--schema-from ids.csv -o out.parquet logs"),
			failed("A log that is not below --base", scan+"--base mixed -o out/ logs"),
			{about: "Right join of a log without files", cmd: join + "--type right --allow-empty -o out/ empty", exit: session.ExitFailed},
			failed("A file for a log without files", scan+"--allow-empty -o out.parquet empty"),
			failed("Different columns of the IDs", join+"--type inner --ids ids.ndjson --on user_id -o out.parquet logs"),
		},
	}}
}

// filterErrors returns the cases about filter files.
func filterErrors() []errorGroup {
	const scan = "bloomjoin scan -o out.parquet --filter "
	return []errorGroup{{
		"Filters",
		[]errorCase{
			failed("No such filter", scan+"nowhere.bjf logs"),
			failed("A log given as a filter", scan+"logs/monday.parquet logs"),
			failed("IDs given as a filter", scan+"ids.csv logs"),
			failed("A directory given as a filter", scan+"logs logs"),
			failed("A filter that was cut short", scan+"cut.bjf logs"),
			failed("A filter with a changed byte", scan+"flipped.bjf logs"),
			failed("A damaged filter found by inspect", "bloomjoin inspect --check flipped.bjf"),
			failed("A Bloom filter that is to drop rows", "bloomjoin scan --no-match user_id=users.bjf -o out.parquet logs"),
			failed("A filter of other IDs", "bloomjoin join --ids ids.parquet --ids ids.csv --key-type int64 --on user_id --filter lower.bjf -o out.parquet logs"),
			failed("A filter without some of the IDs", "bloomjoin join --ids logs/monday.parquet --on user_id --filter users.bjf -o out.parquet logs"),
			failed("Strategy exact with a Bloom filter", "bloomjoin join --strategy exact --ids ids.parquet --on user_id --filter users.bjf -o out.parquet logs"),
			failed("A union of two geometries", "bloomjoin merge --union -o both.bjf split-256.bjf split-512.bjf"),
			failed("A union of integers and text", "bloomjoin merge --union -o both.bjf users.bjf names.bjf"),
			failed("A union of unlike rules", "bloomjoin merge --union -o both.bjf names.bjf lower.bjf"),
			failed("A union with a partial filter", "bloomjoin merge --union -o both.bjf users.bjf part-0.bjf"),
			failed("A union of unlike rooms", "bloomjoin merge --union -o both.bjf room.bjf users.bjf"),
			failed("A difference of Bloom filters", "bloomjoin merge --difference -o rest.bjf exact.bjf users.bjf"),
			{about: "A key to remove that is not in", setup: []string{"bloomjoin build --key user_id --kind counting --expect 2000 -o counting.bjf logs/monday.parquet"},
				cmd: "bloomjoin update --remove logs/tuesday.parquet -o new.bjf counting.bjf", exit: session.ExitFailed},
			failed("Parts that are not filters", "bloomjoin merge -o all.bjf part-0.bjf part-1.bjf ids.csv"),
			failed("No parts", "bloomjoin merge -o all.bjf empty"),
			failed("Filters that cannot be compared", "bloomjoin inspect --compare users.bjf names.bjf"),
			failed("More false positives than asked for", "bloomjoin build --strict --key user_id --max-size 64B --expect 10 --kind bloom -o small.bjf logs"),
			{about: "A sketch given as a filter", setup: []string{"bloomjoin sketch --key user_id -o users.bjs logs"}, cmd: scan + "users.bjs logs", exit: session.ExitFailed},
			{about: "A filter given as a sketch", cmd: "bloomjoin sketch query --value 1 users.bjf", exit: session.ExitFailed},
			{about: "An intersection of sketches", setup: []string{"bloomjoin sketch --key user_id -o users.bjs logs"}, cmd: "bloomjoin merge --intersect -o both.bjs users.bjs users.bjs", exit: session.ExitFailed},
			{about: "A partial sketch is asked", setup: []string{"bloomjoin sketch --key user_id --shard 0/2 -o part-0.bjs logs"}, cmd: "bloomjoin sketch query --value 1 part-0.bjs", exit: session.ExitFailed},
			{about: "Ranges of a sketch without", setup: []string{"bloomjoin sketch --key user_id -o users.bjs logs"}, cmd: "bloomjoin sketch query --range 1..9 users.bjs", exit: session.ExitFailed},
			{about: "More keys than there is room for", setup: []string{"bloomjoin build --key user_id --kind bloom --capacity 1500 -o monday.bjf logs/monday.parquet", "bloomjoin build --key user_id --kind bloom --capacity 1500 -o tuesday.bjf logs/tuesday.parquet"},
				cmd: "bloomjoin merge --union --strict -o both.bjf monday.bjf tuesday.bjf", exit: session.ExitFailed},
		},
	}}
}
