package main

import (
	"context"
	"fmt"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// buildReport is the JSON report of build and merge.
type buildReport struct {
	session.Head
	*session.BadLines
	Inputs       int     `json:"inputs,omitempty"` // number of filter files, of merge
	Rows         int64   `json:"rows"`
	Keys         uint64  `json:"keys"`
	KeysNull     int64   `json:"keys_null"`
	Distinct     uint64  `json:"distinct"`
	Estimated    bool    `json:"distinct_estimated"`
	Capacity     uint64  `json:"capacity,omitempty"` // distinct keys that fit
	Kind         string  `json:"kind"`
	Multiset     bool    `json:"multiset,omitempty"`
	Saturated    *uint64 `json:"saturated,omitempty"` // counters of a counting filter that never fall again
	Geometry     string  `json:"geometry,omitempty"`  // of Bloom filters
	Sealed       bool    `json:"sealed"`
	BitsPerKey   float64 `json:"bits_per_key"`
	MemoryBytes  uint64  `json:"memory_bytes"`
	FileBytes    int64   `json:"file_bytes"`
	FPRAsked     float64 `json:"fpr_asked"`
	FPRPredicted float64 `json:"fpr_predicted"`        // of an intersection: of keys in none of the sets
	FPRInOne     float64 `json:"fpr_in_one,omitempty"` // of an intersection: of keys in some of the sets, at most
	BytesRead    int64   `json:"bytes_read"`
	// Workers, how they shared the filter, passes over the IDs, and bytes spilled to
	// disk, of build.
	Threads      int            `json:"threads,omitempty"`
	Sharing      builds.Sharing `json:"sharing,omitempty"`
	Passes       int            `json:"passes,omitempty"`
	SpilledBytes int64          `json:"spilled_bytes,omitempty"`
	Against      *knownFacts    `json:"against,omitempty"` // with --against
	Digest       string         `json:"digest"`
}

// Read implements what [session.Session.Report] asks for.
func (r buildReport) Read() int64 { return r.BytesRead }

// saveFilter writes a filter, and returns what is reported about it.
func (c *cli) saveFilter(ctx context.Context, verb string, start time.Time, o filterOut, f *filters.Filter, rep builds.Report) (buildReport, error) {
	size, err := filters.Save(ctx, c.Store(), o.name, f, filters.Options{Uncompressed: o.uncompressed, Replace: c.Force})
	if err != nil {
		return buildReport{}, err
	}
	facts := f.Facts()
	digest, err := f.Digest()
	if err != nil {
		return buildReport{}, err
	}
	r := buildReport{
		Head: c.NewHead(verb, start),
		Rows: rep.Rows, Keys: facts.Keys, KeysNull: rep.KeysNull, Distinct: rep.Distinct, Estimated: rep.Estimated,
		Capacity: facts.Capacity.Keys, Kind: f.Kind().String(), Sealed: f.Sealed(), FileBytes: size,
		FPRAsked: facts.FPRAsked, FPRPredicted: f.FPR(), FPRInOne: rep.InOne, Digest: fmt.Sprintf("%x", digest),
	}
	r.MemoryBytes = f.Bytes()
	if c := facts.Counting; c != nil {
		r.Multiset, r.Saturated, r.MemoryBytes = c.Multiset, &c.Saturated, counting.Bytes(facts.Params)
	}
	if f.Kind() != filters.KindExact {
		r.Geometry = facts.Params.Geometry.String()
	}
	if r.Distinct > 0 {
		r.BitsPerKey = 8 * float64(r.MemoryBytes) / float64(r.Distinct)
	}
	return r, nil
}

// sayFilter prints a summary of a filter, and a warning if it falls short of what was
// asked for.
func (c *cli) sayFilter(name string, f *filters.Filter, r buildReport, short error) {
	about := ""
	if r.Estimated {
		about = "about "
	}
	state := "finished"
	if p := f.Facts().Partial; p != nil {
		state = fmt.Sprintf("partial, %d of %d shards", len(p.Held), p.Of)
	}
	size := words.Bytes(r.FileBytes)
	if r.Geometry != "" {
		size += " in " + r.Geometry
	}
	full := ""
	if r.Capacity > 0 && f.Sealed() {
		full = fmt.Sprintf(", %s of the room for %s", words.Percent(int64(r.Distinct), int64(r.Capacity)), words.Count(r.Capacity))
	}
	rate := fmt.Sprintf("%.2g", r.FPRPredicted)
	if r.FPRInOne > 0 {
		rate = fmt.Sprintf("%.2g of keys in none of the sets, up to %.2g of keys in some", r.FPRPredicted, r.FPRInOne)
	}
	counters := ""
	if r.Saturated != nil {
		counters = fmt.Sprintf(", %s saturated", words.Things(int(*r.Saturated), "counter"))
	}
	c.Say("%s: %s filter, %s: %s %s (%s%s distinct%s), %s, false positives %s (asked: %.2g)%s, in %.2f s",
		name, r.Kind, state, words.Count(r.Keys), words.Number(r.Keys, "key", "keys"), about, words.Count(r.Distinct), full, size, rate, r.FPRAsked, counters, r.Seconds)
	if short != nil {
		c.Warn("%s: %s", name, words.Error(short))
	}
}
