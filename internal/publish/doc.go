// Package publish makes the outputs of runs visible: single files ([Owner]), and directories that
// several runs and workers share ([Dir]). It knows names, sizes, checksums and markers, but not
// what files hold.
//
// A directory holds data under plain names, and beside it stands what is known of them:
//
//	OUT/                                   data, mirroring the inputs' tree
//	OUT/_SUCCESS                           empty; removed while files are being published
//	OUT/dt=2024-05-01/_SUCCESS             the same for one name=value directory
//	OUT/_NAME.….staged                     a file that no committed run has yet
//	OUT.bloomjoin/manifest-00000007.json   the [State]: the highest generation counts
//	OUT.bloomjoin/settled-00000007.json    its files are published
//	OUT.bloomjoin/manifest.json            a copy of the state for other programs
//	OUT.bloomjoin/plan-RUN.json            what the workers of a run do
//	OUT.bloomjoin/shard-RUN-00003-of-00016.json  the [Part] of one worker
//	OUT.bloomjoin/add-delta.jsonl          lines that add the state's files to a table
//
// # A run
//
// Nothing that a reader sees changes before the state does.
//
//  1. Begin (begin.go, compare.go, plan.go): the state is compared with the inputs, by name, version
//     and recipe. What is to be done is the same for all workers: the first one writes the plan.
//  2. Stage (writer.go): each worker writes its files whole and durably, but without their names.
//     Package objects says how; a staged file can be given its name only once.
//  3. Part: a worker whose files are all staged creates its part, exclusively. Of two attempts
//     at one part, the first counts, and the other drops what it has staged.
//  4. Swap (commit.go, united.go): who finds the parts of all workers unites them, and creates
//     the next generation of the state, exclusively. This is the commit.
//  5. Publish (publish.go, remove.go): _SUCCESS is removed, files that the state no longer has
//     are removed, and the staged ones get their names. Then the generation is settled. Any process
//     that finds one that is not does so first, whatever it came for; several may do so at once.
//  6. Mark (mark.go): what is left of the run and of older generations is removed, and _SUCCESS
//     written.
//
// # When two runs meet
//
// Two runs over different inputs commit one after the other: the slower one finds that the
// next generation exists, reads it, and adds to that. Of two runs over the same inputs the first
// commits. Each [Entry] has the generation that it was made in, so the other one finds an entry
// that is newer than the state with which it began, and fails with an error that says so; run again,
// it compares anew. So does a run that finds an input which it kept removed or made otherwise, or
// its part dropped. Two attempts at one run have one key, and the state lists the keys of its last
// runs: the slower one finds that it is done.
//
// The plan of a run over a list refers to it by its digest, so that no worker reads it all. What a
// killed run of another list would have done is not known then: its plan stays until one of its
// parts, or the run itself, shows that it is outdated.
//
// Parts that were written beside other directories know nothing of the state: they add to it, and
// replace outputs only with Force. Of copied files the bytes are compared.
//
// A killed run leaves a plan, parts, and staged files. The same run, started again, goes on with
// them, unless it would do something else by now. They are removed once they can no longer be
// committed, as an entry of theirs is newer; a run that does all that a killed one would have done
// sees to that with a state that only has new generations for these entries (fence). Staged files
// that no part has say whose they are, and are removed by a later run with the same manifests; those
// of others over the same tree stay.
//
// # When requests arrive late
//
// On object stores, a request of a killed process may take effect at any time. To publish a
// staged file a second time is impossible, to create a generation, part or plan that exists, too. An
// old generation that was removed may come back: it is not the highest, and its writer looks. A
// late _SUCCESS may stand beside files that are being published: bloomjoin asks the state, not
// it. A file is removed only in the version that the state had, where the store can do so;
// elsewhere it may be missing, which is an error for readers, and is made again by the next run.
package publish
