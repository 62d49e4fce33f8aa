package builds

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// ruledIDs returns n IDs in their written form, and their form under the rule:
// strings, or [16]byte under uuid.
func ruledIDs(rng *rand.Rand, rule string, n int) (written []string, are any) {
	var plain []string
	var ids [][16]byte
	for range n {
		var id [16]byte
		id[0], id[15] = byte(rng.IntN(256)), byte(rng.IntN(40))
		s := fmt.Sprintf("User %x", id[:])
		if strings.Contains(rule, "uuid") {
			d := hex.EncodeToString(id[:])
			s = d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:]
			s = []string{s, d, strings.ToUpper(s), "{" + s + "}", "Urn:UUID:" + s}[rng.IntN(5)]
		} else if rng.IntN(2) == 0 {
			s = strings.ToUpper(s)
		}
		if strings.Contains(rule, "trim") {
			s = []string{"", " ", "\t"}[rng.IntN(3)] + s + []string{"", " ", "\v"}[rng.IntN(3)]
		}
		written, ids = append(written, s), append(ids, id)
		p := strings.Trim(s, "\t\v ")
		if strings.Contains(rule, "lower") {
			p = strings.ToLower(p)
		}
		plain = append(plain, p)
	}
	if strings.Contains(rule, "uuid") {
		return written, ids
	}
	return written, plain
}

// A filter built under a rule equals the one built from normalised IDs, including
// bounds and registers: from Parquet, Arrow and text, in one piece and in shards.
func TestRuleBuilds(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for _, rule := range []string{"trim", "lower", "trim,lower", "uuid", "trim,lower,uuid", "trim,lower,ascii-only"} {
		written, are := ruledIDs(rng, rule, 3000)
		s := newStore()
		putParquet(t, s, "plain.parquet", 700, record(t, column{"id", are}))
		want, _ := build(t, s, []string{"plain.parquet"}, Options{Key: "id", FPR: 0.001})
		want.Facts().Rule = rule

		putParquet(t, s, "ids.parquet", 400, record(t, column{"id", written}))
		putArrow(t, s, "ids.arrow", 400, record(t, column{"id", written}))
		s.put("ids.csv", []byte("id,x\n\""+strings.Join(written, "\",1\n\"")+"\",1\n"))
		s.put("ids.txt", []byte(strings.Join(written, "\n")))
		for _, name := range []string{"ids.parquet", "ids.arrow", "ids.csv", "ids.txt"} {
			opts := Options{Key: "id", FPR: 0.001, Normalize: rule}
			if strings.Contains(name, ".csv") || strings.Contains(name, ".txt") {
				opts.Expect = 3000
			}
			got, rep := build(t, s, []string{name}, opts)
			want.Facts().BuildID = got.Facts().BuildID
			if !bytes.Equal(encoded(t, got), encoded(t, want)) {
				t.Errorf("%s of %s: not the filter of what they are", rule, name)
			}
			if rep.Keys != 3000 || rep.KeysNull != 0 {
				t.Errorf("%s of %s: %d keys, %d NULLs", rule, name, rep.Keys, rep.KeysNull)
			}
			if parsed, err := keys.ParseRule(rule); err != nil || got.Normal() != parsed.NormalForm() {
				t.Errorf("%s of %s: normal form %s", rule, name, got.Normal())
			}
			if name != "ids.parquet" {
				continue
			}
			merged := mergeTree(t, s, buildShards(t, s, rule, []string{name}, opts, 3), rng)
			if !bytes.Equal(encoded(t, merged), encoded(t, want)) {
				t.Errorf("%s of %s: shards come to another filter", rule, name)
			}
		}
	}
}

// The order in which a rule is written does not matter. Each rule is a build of its
// own.
func TestRuleBuildID(t *testing.T) {
	s := newStore()
	putParquet(t, s, "ids", 9, record(t, column{"id", []string{"123e4567-e89b-12d3-a456-426614174000"}}))
	seen := map[[32]byte]string{}
	for _, rule := range []string{"", "trim", "lower", "uuid", "trim,lower", "trim,uuid", "lower,uuid", "trim,lower,uuid", "lower,ascii-only", "trim,ascii-only"} {
		p, err := plan(t, s, []string{"ids"}, Options{Key: "id", Normalize: rule})
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[p.BuildID]; ok {
			t.Errorf("%q and %q are one build", rule, other)
		}
		seen[p.BuildID] = rule
	}
	p, err := plan(t, s, []string{"ids"}, Options{Key: "id", Normalize: "uuid,lower,trim"})
	if err != nil || seen[p.BuildID] != "trim,lower,uuid" {
		t.Errorf("written in another order: the build of %q, error %v", seen[p.BuildID], err)
	}
}

func TestRuleRefusals(t *testing.T) {
	s := newStore()
	id := "123e4567-e89b-12d3-a456-426614174000"
	putParquet(t, s, "strings.parquet", 2, record(t, column{"id", []string{id, id, "secret", id}}, column{"n", []int64{1, 2, 3, 4}}))
	s.put("strings.txt", []byte(id+"\n\nsecret\n"))
	for _, c := range []struct {
		name, key, rule string
		kind            error
		words           []string
	}{
		{"strings.parquet", "n", "lower", fault.ErrUnsupported, []string{"strings.parquet: column n: ", "Normalize lower of a key of class integer"}},
		{"strings.parquet", "id", "uuid", fault.ErrMismatch, []string{"strings.parquet: row group 2: column id: ", "a value that is no UUID"}},
		{"strings.parquet", "n,id", "uuid", fault.ErrMismatch, []string{"strings.parquet: row group 2: column n,id: "}},
		{"strings.txt", "id", "trim,uuid", fault.ErrMismatch, []string{"strings.txt: line 3: column id: ", "want a UUID"}},
	} {
		p, err := plan(t, s, []string{c.name}, Options{Key: c.key, Normalize: c.rule, Expect: 10})
		if err == nil {
			_, _, err = p.Build(t.Context())
		}
		refused(t, c.name, err, c.kind, c.words...)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
	for _, rule := range []string{"upper", "trim,trim", "Trim"} {
		if _, err := plan(t, s, []string{"strings.parquet"}, Options{Key: "id", Normalize: rule}); err == nil {
			t.Errorf("rule %q", rule)
		}
	}
	// Under uuid, files of strings and of UUIDs are one ID set.
	putParquet(t, s, "uuids.parquet", 2, record(t, column{"id", [][16]byte{{1}, {2}}}))
	putParquet(t, s, "good.parquet", 2, record(t, column{"id", []string{id, "{" + id + "}"}}))
	f, rep := build(t, s, []string{"uuids.parquet", "good.parquet"}, Options{Key: "id", Normalize: "uuid"})
	if rep.Keys != 4 || f.KeyClasses()[0] != "fixed[16]" {
		t.Errorf("%d keys of class %s", rep.Keys, f.KeyClasses())
	}
	_, err := plan(t, s, []string{"uuids.parquet", "good.parquet"}, Options{Key: "id", Normalize: "lower"})
	refused(t, "UUIDs in lower case", err, fault.ErrUnsupported, "uuids.parquet: ", "class fixed[16]")
}

// Filters with different rules cannot be parts of one build, combined or compared.
func TestRuleTellsFiltersApart(t *testing.T) {
	s := newStore()
	values := []string{"Anna", "anna", " anna"}
	putParquet(t, s, "ids", 9, record(t, column{"id", values}))
	for _, rule := range []string{"", "lower", "trim,lower", "lower,ascii-only"} {
		f, _ := build(t, s, []string{"ids"}, Options{Key: "id", Normalize: rule, Expect: 3})
		part, _ := build(t, s, []string{"ids"}, Options{Key: "id", Normalize: rule, Expect: 3, Shard: dataset.Shard{Index: uint32(len(rule) % 2), Of: 2}})
		for name, f := range map[string]*filters.Filter{"filter " + rule: f, "part " + rule: part} {
			if _, err := filters.Save(t.Context(), s, name, f, filters.Options{Replace: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := MergeFiles(t.Context(), s, []string{"part ", "part lower"}, false, filters.Limits{})
	refused(t, "merge", err, fault.ErrMismatch, "build", "part lower")
	for _, op := range []SetOp{Union, Intersect} {
		_, err := CombineFiles(t.Context(), s, op, []string{"filter lower", "filter trim,lower"}, filters.Limits{})
		refused(t, string(op), err, fault.ErrMismatch, "filter trim,lower: ", "want lower as in filter lower, got trim,lower")
		_, err = CombineFiles(t.Context(), s, op, []string{"filter ", "filter lower"}, filters.Limits{})
		refused(t, string(op), err, fault.ErrMismatch, "filter lower: ", "want none as in filter , got lower")
		_, err = CombineFiles(t.Context(), s, op, []string{"filter lower,ascii-only", "filter lower"}, filters.Limits{})
		refused(t, string(op), err, fault.ErrMismatch, "filter lower: ", "want lower,ascii-only as in filter lower,ascii-only, got lower")
		f, err := CombineFiles(t.Context(), s, op, []string{"filter lower", "filter lower"}, filters.Limits{})
		if err != nil || f.Facts().Rule != "lower" || again(t, f).Facts().Rule != "lower" {
			t.Errorf("%s: %+v, error %v", op, f, err)
		}
	}
	_, _, err = Compare(t.Context(), s, "filter lower", "filter ", filters.Limits{})
	refused(t, "compare", err, fault.ErrMismatch, "filter : ", "want lower as in filter lower, got none")
	if _, _, err := Compare(t.Context(), s, "filter lower", "filter lower", filters.Limits{}); err != nil {
		t.Error(err)
	}
}
