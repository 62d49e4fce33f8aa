package protocol

import (
	"strings"
	"testing"
)

// Small models in which mistakes are found.
var (
	afterARun       = model{store: s3, roles: rivals, before: true, slots: []uint8{0, 1}, was: versions1, changesLeft: 1, lateLeft: 1}
	otherNames      = model{store: s3, roles: rivals, before: true, renames: true, slots: []uint8{0, 1, 1}, was: versions1}
	deleting        = model{store: s3, roles: rivals, cleans: true, slots: []uint8{0, 0, 1}, was: versions1}
	comesBack       = model{store: s3, roles: rivals, slots: []uint8{0, 1}, was: versions1, changesLeft: 1, lateLeft: 1}
	workers         = model{store: s3, roles: pair, slots: []uint8{0, 0, 1}, was: versions2, changesLeft: 1}
	workersAndRival = model{store: s3, roles: pair, slots: []uint8{0, 0, 1, 2}, was: versions2}
	harmed          = model{store: s3, roles: shared(1, 2), before: true, harmLeft: 1, changesLeft: 1, slots: []uint8{0, 1}, was: versions2}
	harmedRivals    = model{store: s3, roles: rivals, cleans: true, harmLeft: 1, slots: []uint8{0, 1}, was: versions1}
	copied1         = model{store: copying, roles: rivals, slots: []uint8{0, 0}, was: versions1, lateLeft: 1}
	noRefusal       = model{store: s3Simple, roles: rivals, before: true, renames: true, slots: []uint8{0, 1}, was: versions1, changesLeft: 2, lateLeft: 1}
	etags           = model{store: s3ETags, roles: rivals, before: true, renames: true, slots: []uint8{0, 1}, was: versions1, changesLeft: 1, lateLeft: 1}
	powerLost       = model{store: local, power: true, plainMark: true, roles: rivals, before: true, renames: true, slots: []uint8{1}, was: versions1, changesLeft: 1}
	powerLost2      = model{store: local, power: true, roles: rivals, before: true, renames: true, slots: []uint8{0, 1}, was: versions1, changesLeft: 1}
	oneAtATime      = model{store: s3Old, fence: true, alone: true, roles: rivals, before: true, renames: true, slots: []uint8{0, 1, 0}, was: versions1, changesLeft: 1, lateLeft: 1}
	expiring        = model{store: s3, roles: rivals, before: true, renames: true, slots: []uint8{0, 1}, was: versions1, changesLeft: 1, expiryLeft: 1}
	oldLists        = model{store: stale, roles: rivals, slots: []uint8{0, 0, 1}, was: versions1}
)

// mistakes are changes to the protocol that break it.
var mistakes = []struct {
	name string
	in   model
	set  func(*model)
	want string
}{
	{"_SUCCESS is put before the publish", afterARun, func(m *model) { m.fault.markFirst = true }, "S5: _SUCCESS is of generation"},
	{"removals come after _SUCCESS", afterARun, func(m *model) { m.fault.removeAfterMark = true }, "S5: the root is settled, but file"},
	{"removals come after the publishes", otherNames, func(m *model) { m.fault.removeLast = true }, "S1: input 0 has two outputs"},
	{"the swap replaces a generation", deleting, func(m *model) { m.fault.swapNotExclusive = true }, "S3: a swap replaces"},
	{"no check for a higher generation after the swap", deleting, func(m *model) { m.fault.noHigherCheck = true }, "S5: the root is settled, but output"},
	{"no check for conflicts", otherNames, func(m *model) { m.fault.noConflict = true }, "S3: a swap replaces"},
	{"the root is read once, at the begin", otherNames, func(m *model) { m.fault.rootReadOnce = true }, "S3: a swap replaces"},
	{"a swap does not finish the publish of another", otherNames, func(m *model) { m.fault.swapOnHalf = true }, "S3: a run exits 0"},
	{"a begin does not finish the publish of another", workersAndRival, func(m *model) { m.fault.beginInHalf = true }, "S4: all are killed"},
	{"publishes are plain puts", afterARun, func(m *model) { m.fault.publishAgain = true }, "S5: the root is settled, but output"},
	{"identities come from a listing", afterARun, func(m *model) { m.fault.listedIdentities = true }, "S5: the root is settled, but output"},
	{"identities are the answers of copies", copied1, func(m *model) { m.fault.copyAnswers = true }, "S5: the root is settled, but output"},
	{"a second attempt replaces the part of the first", workers, func(m *model) { m.fault.partReplaced = true }, "is damaged, and no delete did it"},
	{"the RUN is of recipe and inputs only", workersAndRival, func(m *model) { m.fault.runWithoutBase = true }, "it does not exit 0 in three tries"},
	{"the root forgets removed outputs", comesBack, func(m *model) { m.fault.noTombstone = true }, "is damaged, and no delete did it"},
	{"a plan file decides what is to do", harmed, func(m *model) { m.planFile = true }, "S4: all are killed, then recipe 1 runs alone: output 1 is not there"},
	{"an input that has changed is read", comesBack, func(m *model) { m.fault.readsChanged = true }, "S2: a reader finds"},
	{"a run with a damaged output exits 0", noRefusal, func(m *model) { m.fault.doneThoughDamaged = true }, "S3: a run exits 0"},
	{"a process drops its staged files though its swap may take effect", afterARun, func(m *model) { m.fault.dropsUnanswered = true }, "is damaged, and no delete did it"},
	{"a damaged output is not removed", expiring, func(m *model) { m.fault.badForgets = true }, "S1: input 0 has two outputs"},
	{"a run without work leaves _SUCCESS as it is", afterARun, func(m *model) { m.fault.markOnce = true }, "_SUCCESS is of generation 0"},
	{"a process leaves without a look at root and _SUCCESS", afterARun, func(m *model) { m.fault.leavesAtOnce = true }, "S6: all processes have ended"},
	{"a process takes a settled generation that it has created for the root", harmedRivals, func(m *model) { m.fault.trustsSettled = true }, "S3: a run exits 0"},
	{"generations are not synced", powerLost2, func(m *model) { m.fault.noSyncRoot = true }, "S5: "},
	{"the deletion of _SUCCESS is not synced", powerLost, func(m *model) { m.fault.noSyncMark = true }, "S5: after a power loss _SUCCESS is there"},
	{"removals are not synced", powerLost, func(m *model) { m.fault.noSyncRemovals = true }, "S1: input 0 has two outputs"},
	{"names are not synced", powerLost, func(m *model) { m.fault.noSyncNames = true }, "S5: the root is settled, but"},
	{"creates overwrite, and there is no fence", oneAtATime, func(m *model) { m.fence = false }, "S1: input 0 has two outputs"},
	{"listings are weak, and generations are deleted", oldLists, func(m *model) { m.cleans = true }, "S5: the root is settled, but output"},
	// These are no mistakes: readers get an error, and the next run makes the output again.
	{"late deletes take effect whatever is there", noRefusal, func(m *model) { m.strict = true }, "S5: the root is settled, but output"},
	{"late deletes take effect as the output has the same ETag", etags, func(m *model) { m.strict = true }, "S5: the root is settled, but output"},
}

func TestMistakes(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			m := c.in
			m.changes = anyChange
			c.set(&m)
			res := m.explore()
			switch report(t, "", res); {
			case res.bad == nil:
				t.Error("not found")
			case !strings.Contains(res.bad.what, c.want):
				t.Errorf("want %s, got %v", c.want, res.bad)
			case testing.Verbose():
				t.Log(res.bad)
			}
		})
	}
}

// A plan file need not be created exclusively.
func TestPlanReplaced(t *testing.T) {
	for _, m := range []model{
		{coarse: true, store: s3, roles: pair, slots: []uint8{0, 0, 1}, was: versions2, changesLeft: 1},
		{store: s3, roles: handedOver(1, 2), slots: []uint8{0, 1, 2, 2}, was: versions2, lateLeft: 1, cleans: true},
	} {
		m.changes, m.planFile, m.fault.planReplaced = anyChange, true, true
		res := m.explore()
		if report(t, "", res); res.bad != nil {
			t.Error(res.bad)
		}
	}
}
