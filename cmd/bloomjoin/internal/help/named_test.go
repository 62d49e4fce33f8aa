package help

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/docs"
)

var (
	pagePath = regexp.MustCompile(`(\S*)docs/([a-z]+)\.md`)
	helpOf   = regexp.MustCompile(`bloomjoin help (guide )?([a-z-]+)`)
)

// TestNamed checks how texts name guides: as topics of help or full addresses that exist. A path
// of a checkout is of no use with the program alone.
func TestNamed(t *testing.T) {
	root := os.DirFS("../../../..")
	found := 0
	check := func(file, text string) {
		for _, m := range pagePath.FindAllStringSubmatch(text, -1) {
			found++
			if _, err := docs.Pages.Open(m[2] + ".md"); err != nil || !strings.HasSuffix(m[1], repository+"/") {
				t.Errorf("%s: %s: want bloomjoin help TOPIC, or %s/docs/PAGE.md of a page that exists", file, m[0], repository)
			}
		}
		for _, m := range helpOf.FindAllStringSubmatch(text, -1) {
			found++
			others := []string{"flags", "topics", "lists", "guide"} // "lists": of a sentence
			if !slices.Contains(topicNames(), m[2]) && (m[1] != "" || !slices.Contains(others, m[2])) {
				t.Errorf("%s: %s: there is no such guide", file, m[0])
			}
		}
	}
	for _, dir := range []string{"cmd", "internal", "codec", "dataset", "dedup", "fault", "filterbuild", "join", "key", "partition", "sketch", "storage", "python/src"} {
		err := fs.WalkDir(root, dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, name)
			switch path.Ext(name) {
			case ".py":
				check(name, string(text))
			case ".go":
				for _, part := range printed(text, !strings.Contains(name, "internal/") && dir != "cmd") {
					check(name, part)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 5 {
		t.Errorf("only %d names were found", found)
	}
}

// printed returns the strings of Go source and, of a public package, the comments.
func printed(source []byte, public bool) (parts []string) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), source, nil, scanner.ScanComments)
	for {
		switch _, tok, text := s.Scan(); {
		case tok == token.EOF:
			return parts
		case tok == token.STRING, tok == token.COMMENT && public:
			parts = append(parts, text)
		}
	}
}
