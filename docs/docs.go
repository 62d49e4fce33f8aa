// Package docs holds the guides, which the command prints: bloomjoin help TOPIC.
package docs

import "embed"

// Pages are the guides, in Markdown.
//
//go:embed *.md
var Pages embed.FS
