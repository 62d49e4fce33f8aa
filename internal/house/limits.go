package house

// Limit bounds a measured value.
type Limit struct {
	Of    string // the unit, then what is measured
	Max   int
	Why   string // the reason for this limit, and for each time it was raised
	Fixed bool   // a rule: it neither falls nor rises
}

// Limits start at what was measured and only fall: a change that needs a higher one
// says so here, in the line of the limit.
var Limits = []Limit{
	{Of: "files in any other package", Max: 30, Fixed: true, Why: "who looks for something reads the list of files"},
	{Of: "long files: over 600 lines", Max: 0, Fixed: true, Why: "the longest that is still read from top to bottom"},
	{Of: "lines in the longest file", Max: 553, Why: "fill.go of builds: how workers fill a filter together"},
	{Of: "long functions: over 80 lines", Max: 0, Fixed: true, Why: "more than two screens hide what depends on what"},
	{Of: "lines in the longest function", Max: 77, Why: "the row groups of a chunk, case by case"},
	{Of: "tokens of Go, without tests and what serves them", Max: 800700, Why: "what has to be understood, however it is broken into lines; the client of Google Cloud Storage, casts of keys and a progress bar are 3,300 in place of 460 packages; pages in turns, parts of pages and small files 5,000, for a third of the time; what files in turn share 2,200, for a third of the time of logs in thousands of files; zstd 5,600, for a fifth of the time of joins over it; texts to probe, sizes of filters and keys of intersections, 3,500; jobs of filters beside joins, 80,000: duplicates 21,000, frequencies 18,000, which file 14,000, counting 11,500, URLs and known keys 10,000; what newcomers look for, 23,000: rows as tables and what a run waited for 8,600, answers as text 7,000, codes of errors and hints 4,000, help and guides 3,100; wrong answers at the edges, 10,700, of which 3,500 were planned: what a check of a file compares, and a copy does not take over, 3,600, which file an output or an index means 3,300, exact duplicates 1,500, old Arrow files 1,100, wide schemas 1,200; right input that was refused and texts that misled, 3,100, of which 2,000 were planned; outputs that are staged in four kinds of storage, runs that meet, and calls of Go that are runs, 3,900; nights of 400,000 objects, 9,500, of which 4,000 were planned: lists of millions of inputs, of which a worker reads 1 MB, 3,700, requests that hang or are refused 2,100, metrics and a log of runs 2,400, sweeps of what killed ones have left 2,300, less 1,000 for one room that knows what names stand for; versions of tables as logs, 16,000 as planned: what a table says, Delta's log and deletion vectors 12,000, files of tables among the inputs 6,000, less 2,000 for options that are filled in place and flags in groups; tables of Iceberg, 23,000, of which 15,000 were planned: metadata and manifests 10,000, Avro 3,500, catalogs and what they grant 4,800, columns of wider types 2,800, positions of deleted rows 2,000, values of partitions that files lack and views by id 2,000, less 2,100 for functions with one caller and one way to word an error; rows of tables that are deleted by keys, and outputs as tables, 13,500, of which 11,000 were planned: a table of keys behind a filter 4,600, what a file needs of them 3,800, shares beyond memory 1,700, keys before deletions in joins 300, lines that add files to tables 3,000; what people ask for by flags, 8,300, of which 6,000 were planned: unions of pairs and choices of columns 3,900, conditions on IDs, scans by a condition and other names of keys 2,800, first rows and samples of keys 2,600, the last of equal rows 500, less 1,500 for what was written twice"},

	{Of: "names in all public packages", Max: 568, Why: "a program reads past each of them, and later versions keep it; 5 for limits, samples and other names of columns; 45 for duplicates, frequencies, counting and known keys; the guides, and the code of an error; IDs counted once"},
	{Of: "names in the root", Max: 16, Why: "the calls that most programs need, nothing else; options for where files are, conditions and reports"},
	{Of: "names in codec", Max: 40, Why: "a filter's facts and answers, one by one, and its file"},
	{Of: "names in codec/bloom", Max: 18, Why: "a filter of hashes, for programs that have their own"},
	{Of: "names in codec/exact", Max: 8, Why: "one type with its operations"},
	{Of: "names in dataset", Max: 59, Why: "formats, workers, matches, what was written: the words that programs and all packages share"},
	{Of: "names in dedup", Max: 14, Why: "a ring of filters, its size, and where it is kept"},
	{Of: "names in docs", Max: 1, Why: "the guides, embedded for bloomjoin help: a package can embed only what is below it"},
	{Of: "names in fault", Max: 26, Why: "an error's place and parts, for programs that branch on them"},
	{Of: "names in filterbuild", Max: 65, Why: "builds, merges and set operations, with options and a report"},
	{Of: "names in join", Max: 85, Why: "options and figures of joins and plans; IDs counted once"},
	{Of: "names in key", Max: 12, Why: "Go values and Arrow arrays as keys"},
	{Of: "names in partition", Max: 107, Why: "files, scans and outputs, with an option for each thing that a data engineer sets"},
	{Of: "names in sketch", Max: 15, Why: "options that say what is counted, and a method for each question"},
	{Of: "names in storage", Max: 55, Why: "what a program's own storage may implement, method by method; files, memory and fs.FS"},
	{Of: "names in storage/cloud", Max: 45, Why: "options of three clouds and HTTP"},
	{Of: "names in storage/storagetest", Max: 2, Why: "a test for what is read, and one for what is written, too"},
	{Of: "types of internal packages in exported names", Max: 0, Fixed: true, Why: "no program can write such a type down"},

	{Of: "imports against the order of packages", Max: 0, Fixed: true, Why: "a package is understood from what is below it"},
	{Of: "modules in the command beside this one", Max: 55, Why: "18 are what joins need; nearly all others are the SDKs of S3 and Azure; doublestar matches patterns"},
	{Of: "packages of other modules in the command", Max: 260, Why: "all are compiled and have to be audited; two thirds are the SDKs of S3 and Azure"},
	{Of: "marks in comments: TODO, FIXME, XXX", Max: 0, Fixed: true, Why: "what is worth doing is done, or an issue"},

	{Of: "words of Markdown", Max: 41760, Why: "README, guides and contributors' pages, to be read in an evening: 5,000 of figures in bench/RESULTS.md, 5,700 of flags and errors that are generated; how outputs are committed, 100; lists, requests that hang, what a run reports, and what a night costs, 400; tables as logs 900; flags for parts, columns and names 350"},
	{Of: HelpWords, Max: 5220, Why: "what help of all commands prints; rare rules are in docs/; duplicates, sketches, counting, which file; metrics, a log and a sweep 40; parts, conditions on IDs, the last of equal rows 47"},
	{Of: "words of doc comments on exported names", Max: 16470, Why: "what go doc prints of the public packages; options of what was added; three packages; 140 for limits, samples, other names and choices of columns"},
	{Of: "lines of what new users write first", Max: 406, Fixed: true, Why: "ten programs, which took 678 lines before the doors"},
	{Of: "lines of code in testdata/outside/filter/main.go", Max: 25, Why: "building and asking a filter fits on a page"},
	{Of: "lines of code in testdata/outside/http/web.go", Max: 52, Why: "implementing a storage fits on two pages"},
	{Of: "lines of code in testdata/outside/stores/main.go", Max: 19, Why: "a join over object stores needs no more than one of local files"},
}

// HelpWords is measured by a test of the command, whose functions no other package
// can call.
const HelpWords = "words of the command's help"
