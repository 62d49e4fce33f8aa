package protocol

import (
	"os"
	"testing"
)

// The kinds of storage.
var (
	s3       = store{conditionalDelete: true}
	s3ETags  = store{conditionalDelete: true, etags: true}
	s3Simple = store{}
	s3Old    = store{noExclusive: true}
	azure    = store{conditionalDelete: true, blocks: true}
	copying  = store{conditionalDelete: true, copies: true}
	stale    = store{conditionalDelete: true, weakList: true}
	local    = store{}
)

// single is a run of one worker over some inputs.
func single(recipe, scope uint8) role { return role{recipe: recipe, of: 1, scope: scope} }

// shared is a run of several workers over the inputs of the same number. Its roles follow each other.
func shared(recipe, of uint8) (all []role) {
	for i := range of {
		all = append(all, role{recipe: recipe, worker: i, of: of, scope: 1<<of - 1})
	}
	return all
}

// handedOver is a run of several workers that leave the commit to another process, the last role.
func handedOver(recipe, of uint8) []role {
	all := shared(recipe, of)
	for i := range all {
		all[i].noCommit = true
	}
	return append(all, role{recipe: recipe, of: of, scope: 1<<of - 1, committer: true})
}

var (
	rivals    = []role{single(1, 1), single(2, 1)}
	rivals2   = []role{single(1, 3), single(2, 3)}
	days      = []role{single(1, 1), single(2, 2)}
	forced    = []role{{recipe: 1, of: 1, scope: 1, force: true}, single(2, 1)}
	pairs     = append(shared(1, 2), shared(2, 2)...)
	pair      = append(shared(1, 2), single(2, 3))
	versions1 = [maxInputs]uint8{1}
	versions2 = [maxInputs]uint8{1, 1}
	versions3 = [maxInputs]uint8{1, 1, 1}
	// anyChange: input 0 changes, goes away, and comes back as it was.
	anyChange = []change{{0, 1, 2}, {0, 1, 0}, {0, 0, 1}}
)

// size says which tests explore a model.
type size int

const (
	short size = iota // all
	usual             // not the short ones
	large             // with BLOOMJOIN_PROTOCOL=large
)

// config is a model in which all holds.
type config struct {
	name string
	size size
	model
}

var configs = []config{
	{"rivals and twins, an input changes", usual, model{coarse: true, store: s3, roles: rivals, slots: []uint8{0, 0, 1}, was: versions1, changes: []change{{0, 1, 2}}, changesLeft: 1}},
	{"rivals and twins, an input goes", large, model{coarse: true, store: s3, roles: rivals, slots: []uint8{0, 0, 1}, was: versions1, changes: anyChange, changesLeft: 1}},
	{"rivals, late writes, an input changes", short, model{store: s3, roles: rivals, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"rivals, two late writes", usual, model{store: s3, roles: rivals, slots: []uint8{0, 1}, was: versions1, lateLeft: 2}},
	{"rivals after a run, late writes, names change", usual, model{store: s3, roles: rivals, before: true, renames: true, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"rival twins after a run, names change", usual, model{coarse: true, store: s3, roles: rivals, before: true, renames: true, slots: []uint8{0, 1, 1}, was: versions1}},
	{"rivals and twins, generations are deleted", usual, model{coarse: true, store: s3, roles: rivals, cleans: true, slots: []uint8{0, 0, 1}, was: versions1}},
	{"rivals and twins, late writes, generations are deleted", large, model{coarse: true, store: s3, roles: rivals, cleans: true, slots: []uint8{0, 0, 1}, was: versions1, lateLeft: 1}},
	{"twins after a run, an input changes twice, late writes, generations are deleted", short, model{store: s3, roles: rivals, before: true, cleans: true, slots: []uint8{0, 0}, was: versions1, changes: anyChange, changesLeft: 2, lateLeft: 1}},
	{"rivals after a run, late writes, an input changes, generations are deleted", usual, model{store: s3, roles: rivals, before: true, cleans: true, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"rivals after a run, two late writes, an input changes twice, names change, generations are deleted", large, model{coarse: true, store: s3, roles: rivals, before: true, renames: true, cleans: true, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 2, lateLeft: 2}},
	{"rivals after a run, names change, a staged file expires", short, model{store: s3, roles: rivals, before: true, renames: true, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 1, expiryLeft: 1}},
	{"rivals, a user deletes an output, generations are deleted", short, model{store: s3, roles: rivals, cleans: true, harmLeft: 1, slots: []uint8{0, 1}, was: versions1}},
	{"rivals over two inputs, late writes, an input changes", usual, model{store: s3, roles: rivals2, slots: []uint8{0, 1}, was: versions2, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"three of a run over two inputs, an input changes", usual, model{coarse: true, store: s3, roles: rivals2, before: true, slots: []uint8{0, 0, 0}, was: versions2, changes: anyChange, changesLeft: 1}},
	{"days, late writes, an input changes, generations are deleted", usual, model{store: s3, roles: days, before: true, cleans: true, slots: []uint8{0, 1}, was: versions2, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"days and twins, generations are deleted, an input changes", large, model{coarse: true, store: s3, roles: days, before: true, cleans: true, slots: []uint8{0, 0, 1}, was: versions2, changes: anyChange, changesLeft: 1}},
	{"forced rivals, late writes", short, model{store: s3, roles: forced, before: true, slots: []uint8{0, 1}, was: versions1, lateLeft: 1}},
	{"forced rivals and twins", large, model{coarse: true, store: s3, roles: forced, before: true, slots: []uint8{0, 0, 1}, was: versions1}},

	{"three workers and a twin", usual, model{coarse: true, store: s3, roles: shared(1, 3), slots: []uint8{0, 0, 1, 2}, was: versions3}},
	{"three workers, late writes, an input changes", large, model{coarse: true, store: s3, roles: shared(1, 3), slots: []uint8{0, 1, 2}, was: versions3, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"two workers and a twin, an input changes", usual, model{coarse: true, store: s3, roles: pair, slots: []uint8{0, 0, 1}, was: versions2, changes: anyChange, changesLeft: 1}},
	{"two workers, late writes, an input changes, a staged file expires", short, model{store: s3, roles: pair, slots: []uint8{0, 1}, was: versions2, changes: anyChange, changesLeft: 1, lateLeft: 1, expiryLeft: 1}},
	{"two workers and a rival, an input changes", usual, model{coarse: true, store: s3, roles: pair, slots: []uint8{0, 1, 2}, was: versions2, changes: anyChange, changesLeft: 1}},
	{"two workers and a rival, late writes", large, model{coarse: true, store: s3, roles: pair, slots: []uint8{0, 1, 2}, was: versions2, lateLeft: 1}},
	{"two workers, a twin and a rival", large, model{coarse: true, store: s3, roles: pair, slots: []uint8{0, 0, 1, 2}, was: versions2}},
	{"two runs of two workers", large, model{coarse: true, store: s3, roles: pairs, slots: []uint8{0, 1, 2, 3}, was: versions2}},
	{"two workers, two committers, late writes, an input changes, all is deleted", short, model{store: s3, roles: handedOver(1, 2), slots: []uint8{0, 1, 2, 2}, was: versions2, changes: anyChange, changesLeft: 1, lateLeft: 1, cleans: true}},
	{"two workers and a twin after a run, a user deletes an output", usual, model{coarse: true, store: s3, roles: shared(1, 2), before: true, harmLeft: 1, slots: []uint8{0, 1, 1}, was: versions2}},
	{"two workers after a run, an input changes, a user deletes an output", short, model{store: s3, roles: shared(1, 2), before: true, harmLeft: 1, changes: anyChange, changesLeft: 1, slots: []uint8{0, 1}, was: versions2}},

	{"S3 with ETags: rivals after a run, late writes, names change", usual, model{store: s3ETags, roles: rivals, before: true, renames: true, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"S3 without conditional deletes: rivals after a run, late writes, names change", usual, model{store: s3Simple, roles: rivals, before: true, renames: true, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 2, lateLeft: 1}},
	{"S3 without conditional deletes: rivals and twins after a run, names change, generations are deleted", large, model{coarse: true, store: s3Simple, roles: rivals, before: true, renames: true, cleans: true, slots: []uint8{0, 1, 1}, was: versions1, changes: anyChange, changesLeft: 1}},
	{"S3 without conditional creates: one at a time, late writes, fences", short, model{store: s3Old, fence: true, alone: true, roles: rivals, before: true, renames: true, slots: []uint8{0, 1, 0}, was: versions1, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"S3 without conditional creates: one at a time, two late writes, fences", large, model{store: s3Old, fence: true, alone: true, roles: rivals, before: true, renames: true, slots: []uint8{0, 1, 0}, was: versions1, changes: anyChange, changesLeft: 1, lateLeft: 2}},
	{"Azure: rivals and twins", usual, model{coarse: true, store: azure, roles: rivals, before: true, slots: []uint8{0, 0, 1}, was: versions1}},
	{"Azure: rivals, late writes, an input changes", short, model{store: azure, roles: rivals, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"GCS: rivals, late writes", short, model{store: copying, roles: rivals, slots: []uint8{0, 1}, was: versions1, lateLeft: 1}},
	{"GCS: twins after a run, an input changes, late writes", short, model{store: copying, roles: rivals, before: true, slots: []uint8{0, 0}, was: versions1, changes: anyChange, changesLeft: 1, lateLeft: 1}},
	{"GCS: rivals after a run, names change, late writes, a staged file expires", large, model{coarse: true, store: copying, roles: rivals, before: true, renames: true, cleans: true, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 1, lateLeft: 1, expiryLeft: 1}},
	{"weak listings: rivals and twins", usual, model{coarse: true, store: stale, roles: rivals, slots: []uint8{0, 0, 1}, was: versions1}},
	{"local: rivals after a run, power is lost, names change, an input changes", short, model{store: local, power: true, roles: rivals, before: true, renames: true, slots: []uint8{0, 1}, was: versions1, changes: anyChange, changesLeft: 1}},
	{"local: rivals and twins after a run, power is lost, names change, generations are deleted", large, model{store: local, power: true, roles: rivals, before: true, renames: true, cleans: true, slots: []uint8{0, 0, 1}, was: versions1}},
	{"local: a run after another, power is lost, names change", short, model{store: local, power: true, plainMark: true, roles: rivals, before: true, renames: true, slots: []uint8{1}, was: versions1, changes: anyChange, changesLeft: 1}},
	{"local: a run after itself, power is lost, an input changes", short, model{store: local, power: true, plainMark: true, roles: rivals2, before: true, slots: []uint8{0}, was: versions2, changes: anyChange, changesLeft: 1}},

	{"plan files: two workers and a twin, an input changes", usual, model{coarse: true, store: s3, planFile: true, roles: pair, slots: []uint8{0, 0, 1}, was: versions2, changes: anyChange, changesLeft: 1}},
	{"plan files: two workers, two committers, late writes, all is deleted", usual, model{store: s3, planFile: true, roles: handedOver(1, 2), slots: []uint8{0, 1, 2, 2}, was: versions2, lateLeft: 1, cleans: true}},
	{"list of runs: rivals, late writes", usual, model{store: s3, committedList: true, roles: rivals, slots: []uint8{0, 1}, was: versions1, lateLeft: 1}},
}

// In every state, what package protocol says holds. Everything that can happen happens somewhere.
func TestHolds(t *testing.T) {
	var all covered
	var sum result
	most := usual
	if testing.Short() {
		most = short
	}
	if os.Getenv("BLOOMJOIN_PROTOCOL") == "large" {
		most = large
	}
	for _, c := range configs {
		if c.size > most {
			continue
		}
		res := c.explore()
		report(t, c.name, res)
		if res.bad != nil {
			t.Errorf("%s: %v", c.name, res.bad)
		}
		if most := 1 + int(c.expiryLeft); res.tries > most {
			t.Errorf("%s: a run that is alone exits 0 at the try %d, want %d", c.name, res.tries, most)
		}
		sum.add(res)
		all.add(&c.covered)
	}
	report(t, "all", sum)
	if most == short {
		return
	}
	for i, is := range all.actions {
		if pc(i) != idle && !is {
			t.Errorf("no process ever did: %s", actions[i].name)
		}
	}
	for i, is := range all.endings {
		if !is {
			t.Errorf("no process ended as %d", i)
		}
	}
	for i, is := range all.late {
		if op(i) != none && !is {
			t.Errorf("never late: %s", opNames[i])
		}
	}
}
