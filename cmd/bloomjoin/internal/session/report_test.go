package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
)

// Nothing that is printed or written has the credentials of a URL.
func TestRedactedReports(t *testing.T) {
	const name = "https://user:pass@host/a.parquet?X-Amz-Credential=AKIA&X-Amz-Signature=abc"
	var out, said bytes.Buffer
	c := &Session{JSON: true, Stdout: &out, Stderr: words.Printable{Writer: &said}}
	type figures struct {
		Head
		Rows int64      `json:"rows"`
		Path []ReadPath `json:"path"`
	}
	report := figures{Path: []ReadPath{{File: name, Reason: "from " + name}}, Rows: 3}
	if err := c.Report(report, ""); err != nil {
		t.Fatal(err)
	}
	c.Say("%s", name)
	c.Warn("%s: bad", name)
	for _, text := range []string{out.String(), said.String()} {
		for _, word := range []string{"pass", "AKIA", "abc"} {
			if strings.Contains(text, word) {
				t.Errorf("%s is in %s", word, text)
			}
		}
		if !strings.Contains(text, "host/a.parquet") {
			t.Errorf("no file in %s", text)
		}
	}
	var back figures
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Rows != 3 || len(back.Path) != 1 {
		t.Errorf("%s: %v", &out, err)
	}
}
