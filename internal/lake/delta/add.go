package delta

import (
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/scalar"
)

// Add returns a file as a line of the log.
func Add(f *lake.Added) ([]byte, error) {
	stats, _ := json.Marshal(statsOf(f)) // maps, texts and numbers
	// A colon in the first name would be the end of a scheme.
	path := strings.ReplaceAll((&url.URL{Path: f.Name}).EscapedPath(), ":", "%3A")
	a := add{path, map[string]*string{}, f.Size, f.Modified, string(stats), nil}
	for _, p := range f.Parts {
		a.Partition[p.Name] = p.Text
	}
	type action struct {
		add
		DataChange bool `json:"dataChange"`
	}
	return json.Marshal(map[string]action{"add": {a, true}})
}

// statsOf returns the statistics of a file, those of structs nested.
func statsOf(f *lake.Added) map[string]any {
	least, most, nulls := map[string]any{}, map[string]any{}, map[string]any{}
	put := func(at map[string]any, path []string, v any) {
		if v == nil {
			return
		}
		for _, name := range path[:len(path)-1] {
			within, ok := at[name].(map[string]any)
			if !ok {
				within = map[string]any{}
				at[name] = within
			}
			at = within
		}
		at[path[len(path)-1]] = v
	}
	for _, s := range lake.StatsOf(f.File) {
		put(least, s.Path, form(s.Type, s.Least))
		put(most, s.Path, form(s.Type, s.Most))
		if s.Nulls >= 0 {
			put(nulls, s.Path, s.Nulls)
		}
	}
	return map[string]any{"numRecords": f.Metadata.NumRows, "minValues": least, "maxValues": most, "nullCount": nulls}
}

// form returns a bound in JSON; nil: there is none, or JSON has no such number.
func form(typ string, b []byte) any {
	typ = strings.TrimSuffix(typ, "_ns")
	v, ok := lake.ValueOf(typ, b)
	text, fine := v.Text(typ)
	switch {
	case b == nil || !ok || !fine || typ == "time" || math.IsInf(v.Float, 0):
		return nil
	case typ == "string" || typ == "date" || strings.HasPrefix(typ, "timestamp"):
		return text
	case strings.HasPrefix(typ, "decimal"): // readers take it for a float first
		f, _ := strconv.ParseFloat(text, 64)
		digits, exp, _, _ := scalar.SplitDecimal(text)
		if d, e, _, _ := scalar.SplitDecimal(strconv.FormatFloat(f, 'g', -1, 64)); d != digits || e != exp && d != "" {
			return nil
		}
	}
	return json.RawMessage(text)
}
