// Package docs has the guides that bloomjoin help prints.
package docs

import "embed"

// Pages are Markdown.
//
//go:embed *.md
var Pages embed.FS
