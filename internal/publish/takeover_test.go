package publish

import (
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/teststore"
)

// TestTakeOver: a run that reads inputs again takes their outputs from a run that never
// finishes, also if these have other names or were made with other options. Otherwise their
// rows would be there twice.
func TestTakeOver(t *testing.T) {
	log := map[string]string{"a": "aaa", "b": "bb", "c": "c"}
	for _, force := range []bool{false, true} {
		s := teststore.NewMemory()
		first := newRunner(s, log)
		first.Of, first.shares = 2, map[string][]string{"ac.out": {"a", "c"}} // the other worker would write b.out
		if did, _, _, err := first.do(t.Context()); err != nil || len(did) != 2 {
			t.Fatalf("%v, %v", did, err)
		}
		if got, want := data(s), "ac.out:aaac"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		second := newRunner(s, log)
		if second.Force = force; force {
			second.Recipe.Options = "o2"
		}
		if _, _, notes, err := second.do(t.Context()); err != nil || len(notes) > 0 {
			t.Errorf("force %t: %v, %v", force, notes, err)
		}
		if got, want := data(s), "_SUCCESS a.out:aaa b.out:bb c.out:c"; got != want || manifests(s) != settled {
			t.Errorf("force %t: got %s, %s, want %s", force, got, manifests(s), want)
		}
	}
}
