package words

import (
	"strings"
	"unicode"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/wording"
)

// Error returns the text of an error for a user of the command: the options
// that the libraries name as flags, and with a name that does not exist the one
// that was probably meant.
func Error(err error) string { return ErrorOf(err, func(string) string { return "" }) }

// ErrorOf is [Error] for a command that may lack a flag of the text: such a flag is printed after
// the command that owner returns for it.
func ErrorOf(err error, owner func(flag string) string) string {
	option := func(o wording.Option) string {
		flag := Flag(o)
		name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), " ")
		if cmd := owner(name); cmd != "" {
			return cmd + " " + flag
		}
		return flag
	}
	return faults.Words{Option: option, Error: suggest}.Text(err)
}

// Flag renders an option of the libraries as the flag that sets it. Most
// flags are spelled like the option: MaxSize is --max-size.
func Flag(o wording.Option) string {
	if flag, ok := flags[o.String()]; ok {
		return flag
	}
	if flag, ok := flags[o.Name]; ok {
		return o.As(flag)
	}
	return o.As(flagName(o.Name))
}

// flags are the options whose flags are spelled differently, some only with one
// value.
var flags = map[string]string{
	"Expect+Room":      "--capacity",
	"Hive":             "--hive-partitioning",
	"Int96Nanos false": "--int96 us",
	"Known":            "--against",
	"Int96Nanos true":  "--int96 ns",
	"MergePartial":     "--partial",
	"OtherNames":       "--on",
	"NullMisfits":      "--cast-errors null",
	"Output":           "-o",
	"Plain":            "--from",
	"Pinned":           "--schema-from",
	"Text":             "--ids",
	"TextFormat":       "--ids-format",
	"Types":            "--key-type",
	"IDs":              "--ids",
	"IDsChanged":       "--ids-changed",

	"Anonymous true":     "--store-option anonymous=true",
	"Anonymous":          "--store-option anonymous",
	"Credentials":        "--store-option credentials-url",
	"Endpoint":           "--store-option endpoint",
	"KMSKey":             "--store-option kms-key",
	"PathStyle true":     "--store-option path-style=true",
	"PathStyle":          "--store-option path-style",
	"Profile":            "--store-option profile",
	"Region":             "--store-option region",
	"Requests":           "--store-option requests",
	"RequesterPays true": "--store-option requester-pays=true",
	"RequesterPays":      "--store-option requester-pays",
	"Retries":            "--store-option retries",
	"SSE":                "--store-option sse",
}

// flagName spells the name of an option as a flag: a hyphen before each word,
// where capitals in a row are one word.
func flagName(option string) string {
	var b strings.Builder
	b.WriteByte('-')
	upper := false // the letter before
	for _, r := range option {
		if unicode.IsUpper(r) && !upper {
			b.WriteByte('-')
		}
		upper = unicode.IsUpper(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
