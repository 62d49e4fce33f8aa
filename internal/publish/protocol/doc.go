// Package protocol is a model of how runs share an output directory, and of what readers of it may
// rely on. It has tests only: they visit every state that a few processes can reach on each kind of
// storage, and say what holds there (holds_test.go), which mistakes would break it (faults_test.go), and
// why outputs are staged (inplace_test.go). With BLOOMJOIN_PROTOCOL=large they take minutes, not seconds.
//
// Package publish carries out the protocol, and random walks (walk_test.go there) take its code through
// the events below. It does so in other terms at three places: what is to do is agreed on in a file, so
// all files are compared before _SUCCESS is written, and a run whose output is gone then fails; that a part no longer fits
// is told by the generation of an entry, not by its token; and the root lists the last runs, so that a
// run that is overtaken after its swap knows that it has won.
//
// # The protocol
//
//	OUT/                                  data under plain names, and _SUCCESS with a generation
//	OUT.bloomjoin/manifest-00000007.json  the root: the highest generation counts; created exclusively
//	OUT.bloomjoin/shard-RUN-…             the part of one worker of several; created exclusively
//
// A generation is publishing or settled. A RUN is the digest of a recipe, of the
// inputs with their identities, of what the root says of each of them when the run begins, and of
// what is to do. So a part that an earlier run has left never fits a later one.
//
//	Begin    List the inputs. Read the root; if it is publishing, finish that first (Publish) and read
//	         again. Compare: to do are inputs without an entry, or with one of another version or recipe,
//	         or whose output is damaged; to remove are outputs whose input is gone. Nothing to do:
//	         Leave, exit 0.
//	Stage    Write each output as a token: a file that nobody sees and that can be published once, by
//	         a rename or the completion of an upload. Fail if an input is not as it was listed.
//	Part     A worker of several creates its part, with its tokens. If another attempt has created it,
//	         that one counts. A worker that finds all parts swaps; the others exit 0.
//	Swap     Read the root; if it is publishing, finish that first and read again. An entry that is not
//	         as it was at Begin: if it is just what this run would make, leave it; otherwise another run
//	         has won, exit 75. Nothing left: exit 0. Otherwise create the next generation, publishing.
//	         If it exists, or if there is a higher one now, swap again.
//	Publish  Delete _SUCCESS. Remove files that go, by their identity. Publish each token; if it is gone
//	         and the file under its name is not the one, the entry is damaged. Create the next
//	         generation, settled, with the identities of all files. Leave. Any process may do this,
//	         several at once, any number of times.
//	Leave    Read the root; if it is publishing, finish that first. Unless something is damaged, read
//	         _SUCCESS; if it is not of this generation, put it, and leave again. A run that has settled
//	         its own swap, and finds that generation to be the root, exits: 0, or 75 if an output of its
//	         own is damaged. All others go on where they wanted to publish.
//	Clean    Delete older generations, oldest first, and the parts of the own run.
//
// An entry of a removed output stays in the root, with its token and without a file. A process whose
// swap has no answer keeps its tokens, as the swap may take effect later.
//
// # States and events
//
// A state (world in world_test.go) is the versions of the inputs, what is stored, the writes that
// may still take effect, and what each process remembers. Events (model_test.go):
//
//	begins    a process of a role starts; twins are two processes of a role
//	steps     a process does its next action (the table in process_test.go)
//	delays    the answer to a write does not come, and it may take effect at any later time; the
//	          process tries again, or does nothing more
//	lands     such a write takes effect
//	changes   an input changes, goes away, or comes back as it was
//	harms     a user deletes an output
//	expires   storage drops a staged file
//	kills     a process ends where it is
//	loses     power is lost: changes of names that were not synced are undone, or not
//
// A process that does nothing more is one that was killed, so kills matter only where processes must
// not overlap. Writes that take effect late are those of a killed process with a request under way.
//
// # What holds
//
//	S1  A plain reader finds at most one output of each input, and only published files.
//	S2  If the root is settled and a file has the identity that it says, its rows are those of the
//	    recipe and version that it says.
//	S3  A run that exits 0: since it began, a settled root had its recipe and the versions that it saw
//	    of all its inputs. A swap never replaces an entry that came after its run began.
//	S4  From every state: if all processes are killed, late writes take effect or not, and one run is
//	    started alone, it exits 0 (at the second try if a staged file expired). Then the root is settled
//	    and by its recipe and the current versions, all files are there, and _SUCCESS has the root's
//	    generation. What is left besides are old generations, parts, and staged files that no root lists.
//	S5  If the root is settled, with _SUCCESS or without, the files are those that it lists. The
//	    exceptions are losses that bloomjoin finds by identities, and that the next run makes good: a
//	    user's deletion; a removal by a slow process or a late write, if storage cannot refuse it (no
//	    conditional deletes, or identities that depend on the content only) and a later run has made
//	    the output again; and a staged file that expired. _SUCCESS is never of a later generation than
//	    the root. It may be of an older one while files change: a plain reader that looks only whether
//	    it exists has to be kept apart from runs.
//
//	S6  If all processes end by themselves, and nothing has disturbed them, the root is settled and as
//	    one of the runs wants, and _SUCCESS has its generation.
//
// # What storage has to do
//
//	Creates are exclusive.         Otherwise one process at a time, and each begins with a fence: a copy
//	                               of the root under a number that no earlier one has used.
//	Tokens are published once.     A copy and the deletion of its source will do, if the identity is read
//	                               after the deletion.
//	Listings of generations are    Otherwise a process goes on from the maximum by name, and generations
//	current.                       are not deleted while processes run.
//	Local disks: synced are        the generations before Publish acts on one, the deletion of _SUCCESS
//	                               before files change, removals before the first publish, files before
//	                               the settled generation, and this one before _SUCCESS.
package protocol
