"""Shards that leave the last step to a commit: what is checked, published and refused."""

import json
import shutil

from common import tables
from runs import growing
from runs.growing import Grown, data, differing, dt, id_file, make_log, put, snapshot

SHARDS = 3


def shards(g, *more, of=SHARDS, out=None, which=None):
    """Runs shards of the command, all unless which says so."""
    for i in range(of) if which is None else which:
        g.t.run(*g.command(out or g.out), "--shard", f"{i}/{of}", *more, opens=False)


def committed(g, name, *more):
    g.t.run("commit", *more, f"{g.out}/", opens=False)
    g.same_rows(name)
    g.tidy(name)


def visible(root):
    """A snapshot without what is staged."""
    return {n: s for n, s in snapshot(root).items() if not (n.split("/")[-1].startswith("_") and n.endswith(".staged"))}


def unfinished(g, name):
    """Neither a state nor a mark of success that readers would trust, nor data under its name."""
    found = [n for n in visible(g.box) if n.startswith(("out/", "out.bloomjoin/manifest", "out.bloomjoin/settled"))]
    g.t.equal(f"{name}: nothing published", found, [])


def refused(g, name, words, *args):
    """A commit that fails with one of these words, and publishes nothing."""
    r = g.t.run("commit", *(args or [f"{g.out}/"]), want=None, opens=False)
    g.t.ok(f"{name}: refused", r.code in (1, 75) and any(w in r.text for w in words), f"want one of {words} in {r}")
    unfinished(g, name)


def manifests(g, out=None):
    """The manifests of shards beside an output."""
    out = out or g.out
    return sorted(p for p in (out.parent / f"{out.name}.bloomjoin").iterdir() if p.name.startswith("shard-"))


def last_shard(t):
    """The last of the shards commits by itself; with --no-commit none does."""
    log, ids = make_log(t, 6), id_file(t)
    for kind in ("semi", "left", "scan"):
        whole = Grown(t, kind, log, ids)
        whole.run()
        g = Grown(t, kind, log, ids)
        shards(g, which=[2, 0])
        unfinished(g, f"{kind}, two of three")
        shards(g, which=[1])
        g.same_rows(f"{kind}, three of three")
        g.tidy(f"{kind}, three of three")
        t.equal(f"{kind}: files as of one run", differing(data(snapshot(g.out)), data(snapshot(whole.out))), [])
        g.unchanged(f"{kind}, then as one run")
        before = snapshot(g.box)
        shards(g)
        t.equal(f"{kind}, the shards again", snapshot(g.box), before)

        g = Grown(t, kind, log, ids)
        shards(g, "--no-commit")
        unfinished(g, f"{kind}, --no-commit")
        committed(g, f"{kind}, commit")
        t.equal(f"{kind}, commit: files as of one run", differing(data(snapshot(g.out)), data(snapshot(whole.out))), [])
        before = snapshot(g.box)
        r = t.run("commit", f"{g.out}/", opens=False)
        t.ok(f"{kind}: commit again", snapshot(g.box) == before, r)
        t.run("inspect", "--check", f"{g.out}/", opens=False)

        tables.write(growing.part(210), log / dt(7) / "a.parquet")  # in one row group, which goes to one shard
        before = snapshot(g.out)
        shards(g, "--no-commit", of=5)
        t.equal(f"{kind}, grown, --no-commit", visible(g.out), before)
        committed(g, f"{kind}, grown, commit")
        t.equal(f"{kind}, grown: files as of one run", differing(data(snapshot(g.out)), g.fresh()), [])
        shutil.rmtree(log / dt(7))


def more_shards_than_inputs(t):
    """Shards without work are shards, too; large files are divided between shards."""
    log = t.path("log")
    tables.write(growing.part(1, rows=5000), log / "a.parquet", row_group_size=500)
    g = Grown(t, "semi", log, id_file(t))
    shards(g, of=16)
    g.same_rows("16 shards")
    t.equal("beside", growing.beside(g.box), growing.STATE)
    t.run("inspect", "--check", f"{g.out}/", opens=False)
    before = snapshot(g.out)
    g.run()
    t.equal("then as one run", snapshot(g.out), before)


def refusals(t):
    """A commit of fewer than all shards, or of shards that are not whole or not of one run."""
    log, ids = make_log(t, 4), id_file(t)
    g = Grown(t, "semi", log, ids)
    shards(g, "--no-commit", which=[0, 2])
    refused(g, "a shard is missing", ["1/3", "shard 1", "2 of 3", "2 of the 3"])
    shards(g, "--no-commit", which=[1])
    marks = manifests(g)
    t.equal("manifests of shards", len(marks), SHARDS)

    (victim,) = (g.out / dt(2)).glob("_b.parquet.*.staged")
    whole = victim.read_bytes()
    for name, content in {"a file cut": whole[:-1], "a file of zeros": bytes(len(whole)), "a file gone": None}.items():
        victim.unlink(missing_ok=True)
        if content is not None:
            victim.write_bytes(content)
        refused(g, name, [f"{dt(2)}/b.parquet"])
    victim.write_bytes(whole)

    other = Grown(t, "semi", log, ids, "--columns", "row,user_id")
    shards(other, "--no-commit")
    given = [marks[0], marks[1], manifests(other)[2]]
    refused(g, "a manifest of another run", [given[2].name, "2 of 3"], f"{g.out}/", *given)
    refused(g, "two of three manifests", ["2/3", "shard 2", "2 of 3", "2 of the 3"], f"{g.out}/", *marks[:2])
    refused(g, "a manifest of something else", ["ids.parquet"], f"{g.out}/", *marks[:2], ids)
    good = marks[1].read_bytes()
    for name, bad in {"cut": good[: len(good) // 2], "empty": b"", "another version": good.replace(b'"version":', b'"version":9')}.items():
        marks[1].write_bytes(bad)
        refused(g, f"a manifest, {name}", [marks[1].name])
    marks[1].write_bytes(good)
    committed(g, "mended")

    nothing = t.path("nothing")
    r = t.run("commit", f"{nothing}/", want=None, opens=False)
    t.ok("no such directory", r.code == 1 and not nothing.exists(), r)


def apart(t):
    """Workers without a shared file system: each has a directory of its own, and all is copied together."""
    log, ids = make_log(t, 5), id_file(t)
    for kind in ("semi", "inner", "scan"):
        g = Grown(t, kind, log, ids)
        staged = t.path("staged")
        staged.mkdir()
        for i in range(SHARDS):
            alone = t.path("alone") / "out"
            shards(g, "--no-commit", which=[i], out=alone)
            shutil.copytree(alone, g.out, dirs_exist_ok=True)
            for m in manifests(g, alone):
                shutil.copy(m, staged)
        marks = sorted(staged.iterdir())
        t.equal(f"{kind}: manifests", len(marks), SHARDS)
        t.run("commit", f"{g.out}/", *marks, opens=False)
        g.same_rows(kind)
        g.tidy(kind)
        t.run("inspect", "--check", f"{g.out}/", opens=False)
        t.equal(f"{kind}: as from nothing", differing(data(snapshot(g.out)), g.fresh()), [])
        g.unchanged(f"{kind}: then as one run")


def elsewhere(t):
    """--manifest-dir: manifests in a directory of their own."""
    log, ids = make_log(t, 4), id_file(t)
    state = t.path("state")
    g = Grown(t, "semi", log, ids, "--manifest-dir", f"{state}/")
    g.fresh = lambda: data(snapshot(fresh.out))
    g.run()
    t.equal("only OUT/", sorted(p.name for p in g.box.iterdir()), ["out"])
    t.ok("the state", "manifest.json" in snapshot(state), sorted(snapshot(state)))
    before = snapshot(g.out)
    r = g.run()
    t.ok("again", "already done" in r.text and snapshot(g.out) == before, r)
    put(log, 5, "a")
    g.run()
    fresh = Grown(t, "semi", log, ids)
    fresh.run()
    t.equal("grown", differing(data(snapshot(g.out)), data(snapshot(fresh.out))), [])
    t.equal("untouched", [n for n in before if n != "_SUCCESS" and snapshot(g.out)[n] != before[n]], [])
    t.run("inspect", "--check", "--manifest-dir", f"{state}/", f"{g.out}/", opens=False)
    put(log, 6, "a")
    shards(g, "--no-commit")
    t.run("commit", "--manifest-dir", f"{state}/", f"{g.out}/", opens=False)
    g.same_rows("commit")
    t.ok("commit: _SUCCESS", (g.out / "_SUCCESS").exists())


def requirements(t):
    """What is required of the answer is summed over all shards."""
    log, ids = make_log(t, 4), id_file(t)
    total = len(growing.answer(growing.wanted("semi", [log], ids))[0])
    for more, code in (0, 0), (1, 2):
        for way in ("commit", "last"):
            g = Grown(t, "semi", log, ids, "--require-rows", str(total + more))
            codes = [t.run(*g.command(g.out), "--shard", f"{i}/3", *(["--no-commit"] if way == "commit" else []), want=None, opens=False) for i in range(3)]
            if way == "commit":
                codes.append(t.run("commit", f"{g.out}/", want=None, opens=False))
            name = f"{way}, {total + more} rows"
            t.equal(f"{name}: exit codes", [r.code for r in codes], [0] * (len(codes) - 1) + [code])
            if code:
                unfinished(g, name)
                t.ok(f"{name}: says", str(total + more) in codes[-1].text, codes[-1])
            else:
                g.tidy(name)


def report(t):
    """The report of a commit: rows and files of all shards."""
    g = Grown(t, "semi", make_log(t, 3), id_file(t))
    shards(g, "--no-commit")
    r = t.run("commit", "--json", f"{g.out}/", opens=False)
    t.equal("rows", r.json["rows_out"], len(growing.answer(growing.got(g.out))[0]))
    t.ok("is JSON", json.loads(r.out.decode()[r.out.decode().index("{") :])["verb"] == "commit", r)


def run(t, repository):
    del repository
    for function in (last_shard, more_shards_than_inputs, refusals, apart, elsewhere, requirements, report):
        t.group(f"commits: {function.__name__.replace('_', ' ')}", function)
