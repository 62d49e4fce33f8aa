"""The mistakes of a first hour: every verb with wrong inputs and wrong flags. What the texts say must help:

a flag that a text names is one of the verb, or of the verb that the text names before it; every error ends with a code
that help explains; no text has a value of a key; and a command that does what a text says works.
"""

import concurrent.futures
import os
import re
import shlex
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq

FIRST, TEXT = 90210000000, "zqkey"  # what keys begin with: 90210000000 and on, zqkey0 and on
KEYS = re.compile(r"(?i)9021\d{7}|zqkey\d")
FLAG = re.compile(r"bloomjoin( sketch query| [a-z]+)|(?<![\w-])(--[a-z0-9][a-z0-9-]*)|[;,()]")
OF_OTHERS = {"--array", "--long", "--ultra", "--help", "--help-all"}  # of Slurm and zstd, and what each verb has

KEY = ["--key", "k"]
VERBS = {  # options, and inputs
    "build": ([*KEY, "-o", "o.bjf", "--force"], ["ids.parquet"]),
    "merge": (["-o", "m.bjf", "--force"], ["ids.bjf"]),
    "scan": (["--filter", "ids.bjf", "-o", "o.parquet", "--force"], ["logs/"]),
    "join": (["--ids", "ids.parquet", "--on", "k", "-o", "o.parquet", "--force"], ["logs/"]),
    "inspect": ([], ["logs/a.parquet"]),
    "plan": (["--ids", "ids.parquet", "--on", "k"], ["logs/"]),
    "inputs": (["-o", "in.jsonl", "--force"], ["logs/"]),
    "commit": (["out/"], []),
    "probe": (["--filter", "ids.bjf"], ["x.ndjson"]),
    "size": (["--keys", "1e6"], []),
    "update": (["--add", "ids.parquet", "-o", "c.bjf", "--force"], ["counting.bjf"]),
    "find": (["--key", "1"], ["list.jsonl"]),
    "dedup": ([*KEY, "--expect", "1000", "-o", "d.csv", "--force"], ["x.csv"]),
    "sketch": ([*KEY, "-o", "s.bjs", "--force"], ["logs/"]),
    "sketch query": (["--value", "1"], ["k.bjs"]),
}
INPUTS = """nope.parquet empty bad.parquet x.csv x.txt header.txt semicolons.csv x.ndjson bad.ndjson text.csv empty.csv - part.bjf bloom.bjf
    text.bjf list.jsonl k.bjs nope*.parquet s3:// /dev/null . https://127.0.0.1:1/x.parquet ftp://host/x twice.parquet padded.parquet""".split()
FLAGS = [
    "--idz", "--key", "--on=zz", "--output=x", "--format=csv", "--format=lines", "--delimiter=;", "--sep=,", "--header", "--recursive", "-r", "-f", "-k=k",
    "--type=outer", "--how=inner", "--left-on=k", "--shard=4/4", "--shard=1", "--shard=auto", "--memory=1", "--memory=64", "--memory=10x", "--threads=0",
    "--threads=-1", "--compression=lzo", "--compression=zstd:99", "--where=k", "--where=zz = 1", "--where=k = 'x'", "--where=s > 2024-01-01", "--columns=zz",
    "--columns=k,k", "--files-from=list.txt", "--files-from=nope", "--files-from=-", "--include=*.x", "--exclude=*", "--key-type=foo", "--key-type=uuid",
    "--ids-format=xml", "--skip-bad", "--fpr=2", "--fpr=1%", "--expect=0", "--expect=1", "--kind=cuckoo", "--kind=exact", "--geometry=foo", "--missing-key=foo",
    "--hive-types=dt:foo", "--schema=foo", "--schema-from=x.csv", "--target-file-size=1GiB", "--empty=write", "--base=/tmp", "--prune", "--no-commit",
    "--ids-changed=rerun", "--require-rows=9999", "--max-kept=120%", "--require-ids-matched=200%", "--temp-dir=/nope", "--normalize=upper", "--normalize=lower",
    "--ignore-case", "--cast-errors=foo", "--strategy=hash", "--strategy=exact", "--filter=text.bjf", "--filter=part.bjf", "--filter=ids.parquet",
    "--match=k=text.bjf", "--no-match=k=bloom.bjf", "--any", "--union", "--intersect", "--difference", "--check", "--compare", "--count", "--text", "--update=nope",
    "--allow-empty", "--suffix=", "--int96=s", "--log-format=xml", "--progress=fancy", "--progress-interval=5", "--store-option=x", "--output=-", "--output=out/",
    "--output=/nope/x.parquet", "--output=.", "--output=logs/a.parquet", "--timeout=3", "--limit=5", "--dry-run", "--verbose=2", "--no-progress", "--workers=3",
    "--ids=text.csv", "--ids=x.ndjson", "--ids=semicolons.csv", "--ids=nope", "--ids=1376", "--on=s", "--on=k=zz", "--on=k::string", "--on=k::foo", "--on=a=b=c",
    "--on=s::int64=k", "--key=s", "--key=zz", "--key=k::foo", "--key=k,s", "--key=k::string", "--key=s::int64", "--add=text.csv", "--remove=logs/a.parquet",
    "--state=ids.bjf", "--value=x", "--range=1..2", "--heavy=2", "--inner=ids.bjf", "--time=zz", "--against=text.csv", "--capacity=0", "--max-size=1",
]  # fmt: skip


def files(box, tool):
    os.makedirs(box / "logs")
    os.makedirs(box / "empty")
    ints = [FIRST + i for i in range(4000)]
    for i, name in enumerate("abcd"):
        pq.write_table(pa.table({"k": ints[i * 1000 :][:1000], "s": [f"{TEXT}{j}" for j in range(1000)]}), box / f"logs/{name}.parquet")
    pq.write_table(pa.table({"k": ints[::7]}), box / "ids.parquet")
    pq.write_table(pa.table([pa.array(ints[:2])] * 2, names=["k", "k"]), box / "twice.parquet")
    pq.write_table(pa.table({"k": [f"0{i}" for i in ints[::7]]}), box / "padded.parquet")
    texts = {
        "bad.parquet": f"k,s\n{FIRST},2\n", "x.csv": f"k,s\n{FIRST},2\n", "x.txt": f"{FIRST}\n{FIRST + 1}\n", "header.txt": f"k\n{FIRST}\n", "empty.csv": "",
        "semicolons.csv": f"k;s\n{FIRST};2\n", "x.ndjson": f'{{"k":{FIRST}}}\n{{"j":2}}\n', "bad.ndjson": f'{{"k":{FIRST}\n', "text.csv": f"k\n{TEXT}0\n{TEXT}1\n",
        "list.txt": "logs/a.parquet\n",
    }  # fmt: skip
    for name, text in texts.items():
        (box / name).write_text(text)
    for args in [
        [*KEY, "-o", "ids.bjf", "ids.parquet"], [*KEY, "--expect", "1000", "--shard", "0/2", "-o", "part.bjf", "ids.parquet"],
        [*KEY, "--kind", "bloom", "-o", "bloom.bjf", "ids.parquet"], ["--key", "s", "-o", "text.bjf", "logs/a.parquet"],
        [*KEY, "--kind", "counting", "--expect", "9999", "-o", "counting.bjf", "ids.parquet"],
    ]:  # fmt: skip
        subprocess.run([tool, "build", "--quiet", *args], cwd=box, check=True)
    subprocess.run([tool, "inputs", "--quiet", "--index", "k", "-o", "list.jsonl", "logs/"], cwd=box, check=True)
    subprocess.run([tool, "sketch", "--quiet", *KEY, "-o", "k.bjs", "logs/"], cwd=box, check=True)


def mistakes(t):
    box = t.path("mistakes")
    os.makedirs(box)
    files(box, t.tool)

    def run(*args):
        p = subprocess.run([t.tool, *args], cwd=box, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, env={**os.environ, "AWS_EC2_METADATA_DISABLED": "true"})
        return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")

    named = lambda text: set(re.findall(r"(?<![\w-])--[a-z0-9][a-z0-9-]*", text))  # noqa: E731
    flags = {verb: named(run(*verb.split(), "--help-all")[1]) | named(run("help", "flags")[1]) for verb in VERBS}
    codes = set()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for verb, (options, inputs) in VERBS.items():
            cases = [[], options, *([*options, i] for i in INPUTS), *([*options, f, *inputs] for f in FLAGS)]
            lacked, valued, uncoded = [], [], []
            for args, (code, _, said) in zip(cases, pool.map(lambda args: run(*verb.split(), *args), cases), strict=True):
                t.runs += 1
                line = f"{verb} {' '.join(args)}: {said.strip()[:300]}"
                if missing(said, verb, flags, named(" ".join(args)) | OF_OTHERS):
                    lacked.append(line)
                if KEYS.search(said):
                    valued.append(line)
                ends = re.findall(r"(?m) \[(E[0-9]{3})\]$", said)
                if code not in (0, 1, 2, 64, 75) or (code != 0) != (len(ends) == 1) or "E904" in ends:
                    uncoded.append(f"exit {code}: {line}")
                codes.update(ends)
            t.ok(f"{verb}: flags that texts name are there", not lacked, "\n      ".join(lacked))
            t.ok(f"{verb}: no key is in a text", not valued, "\n      ".join(valued))
            t.ok(f"{verb}: errors have exit codes and codes of causes", not uncoded, "\n      ".join(uncoded))
    t.equal("help explains each code", [c for c in sorted(codes) if run("help", c)[0] or not run("help", c.lower())[1].startswith(c)], [])
    t.ok("causes of all themes but stores", len({c[1] for c in codes}) >= 7, codes)


def missing(said, verb, flags, given):
    """The flags that a text names and neither the verb nor the one that the text names before them has."""
    of, found = verb, []
    for m in FLAG.finditer(said):
        if m[2]:
            found += [m[2]] if m[2] not in flags[of] | given else []
        elif m[1]:
            of = m[1].strip() if m[1].strip() in flags else of
        else:
            of = verb
    return found


JOIN = "join --ids ids.parquet --on k --count"
HINTS = f"""
    joni --ids ids.parquet --on k --count logs/
    join --idz ids.parquet --on k --count logs/
    join --ids idz.parquet --on k --count logs/
    join --ids ids.parquet --on kk=k --count logs/
    join --ids ids.parquet --on k --tpye anti --count logs/
    {JOIN} losg
    {JOIN} lgos/
    {JOIN} 'we b/it "s.parquet'
    scan --filter idz.bjf --count logs/
    probe --filter ids.bjf x.ndjosn
    build --key k -o h1.bjf semicolons.csv
    build --key k -o h2.bjf bars.csv
    build --key k -o h3.bjf tabs.csv
    probe --filter ids.bjf --key k semicolons.csv
    probe --filter ids.bjf --key k bars.csv
    dedup --key k semicolons.csv
    dedup --key k tabs.csv
    join --ids semicolons.csv --on k --count logs/
    build --key k -o h5.csv ids.parquet
    inputs -o h6.parquet logs/
    sketch --key k -o h7.bjf logs/
    build --key k --kind bloom -o ids.bjf ids.parquet
    {JOIN.replace("--count", "-o x.csv")} logs/
    {JOIN.replace("--count", "-o h8.xlsx")} logs/
    {JOIN.replace("--count", "-o h9")} logs/
    {JOIN.replace("--count", "-o h10.bjf")} logs/
    dedup --key k -o h11.dat x.csv
    dedup --key k -o h12.parquet x.csv
    {JOIN} ice/data
    {JOIN} mixed
    {JOIN} 'mixed too'
    join --ids dim.parquet --on hour=h --count hive
    join --ids hours.parquet --on hour --count hive
    scan --filter hours.bjf --count hive
    join --ids padded.parquet --on k --count logs/
    join --ids ids.parquet --on k=k --count padded.parquet
    scan --filter ids.bjf --count padded.parquet
    join --ids dotted.csv --on s=user.email --count logs/
    find --key 5 logs
    find --key 5 'lo gs'
    find --key 5 "it's $x"
    size --keys 1e6 --fpr 1e-3 --max-size 1MiB
    dedup --key k --windw 1d --time k --time-unit s x.csv
    {JOIN} --compression zstd logs/
"""


def hinted(box):
    """The files of the table besides those of all verbs."""
    texts = {"bars.csv": f"k|s\n{FIRST}|2\n", "tabs.csv": f"k\ts\n{FIRST}\t2\n", "dotted.csv": f"user.email,n\n{TEXT}0,1\n", "mixed/rest.dat": "x", "mixed too/a b.dat": "x", "ice/metadata/v1.metadata.json": "{}"}
    for name in ("we b/it's.parquet", "lo gs/a.parquet", "it's $x/a.parquet", "mixed/a.parquet", "mixed too/a.parquet", "ice/data/a.parquet"):
        os.makedirs((box / name).parent, exist_ok=True)
        (box / name).write_bytes((box / "logs/a.parquet").read_bytes())
    for name, text in texts.items():
        os.makedirs((box / name).parent, exist_ok=True)
        (box / name).write_text(text)
    for hour in ("00", "08"):
        os.makedirs(box / f"hive/hour={hour}")
        pq.write_table(pa.table({"u": [1]}), box / f"hive/hour={hour}/a.parquet")
    pq.write_table(pa.table({"h": pa.array([0, 8], pa.int32())}), box / "dim.parquet")
    pq.write_table(pa.table({"hour": pa.array([0, 8], pa.int32())}), box / "hours.parquet")


def follow(args, said):
    """The commands that do what an error says: each flag, name and command is taken from the text."""
    text = said.strip().splitlines()[-1]
    swap = lambda old, new: [[a.replace(old, new) if a == old or a.startswith(old + "=") or a.endswith("=" + old) else a for a in args]]  # noqa: E731
    at = lambda flag: args.index(flag) + 1  # noqa: E731
    if m := re.search(r"unknown (?:command|flag) (\S+) \(did you mean (\S+)\?\)", text):
        return swap(m[1], m[2])
    if m := re.search(r"bloomjoin: (.+): no such file or directory \(did you mean (.+)\?\)", text):
        return swap(m[1], m[2])
    if m := re.search(r'no column "(.+)" \(did you mean (.+?)\? ', text):
        return [[re.sub(rf"^{re.escape(m[1])}\b", m[2], a) for a in args]]
    if m := re.search(r"the column of that very name is written '(.+)'\)", text):
        return [[a.replace(m[1].strip('"'), m[1]) for a in args]]
    if m := re.search(r": bloomjoin (inputs --index COL -o (\S+) .+?) \[E", text):
        return [shlex.split(m[1].replace("COL", "k")), [*args[:-1], m[2]]]
    if m := re.search(r"cast the (?:log's column|IDs): (\S+?)(?:, or (\S+) for numbers with leading zeros)?\)", text):
        pair = m[1]
        for kind in [p for p in [re.search(r"::\w+", m[1]), m[2]] if p][-1:]:
            pair = re.sub(r"::\w+", kind if isinstance(kind, str) else kind[0], m[1])
        return [[*args[: at("--on")], pair, *args[at("--on") + 1 :]]]
    if m := re.search(r"cast the key of the log, as (\w+)(\S+?)(?:, or (\S+) for numbers with leading zeros)?\)", text):
        return [[*args, "--key", m[1] + (m[3] or m[2])]]
    if m := re.search(r"(?:name the file|want a file as|name one, as -o) (\S+?)[, ]", text + " "):
        out = args[at("-o")]
        name = out.rsplit(".", 1)[0] + m[1] if m[1].startswith(".") else m[1]
        return [[*args[: at("-o")], name, *args[at("-o") + 1 :]]]
    if m := re.search(r"(?:leave (?:out )?|remove )(--[a-z-]+)|(--[a-z-]+) and .* exclude each other", text):
        drop = m[1] or m[2]
        return [[*args[: args.index(drop)], *args[args.index(drop) + 2 :]]]
    hint = text[text.rfind("(") + 1 :] if "(" in text else text
    if m := re.search(r"""(?<![\w-])(--[a-z0-9][a-z0-9-]*)(?: ('[^']*'|tab|csv|skip-file|[\w.]+:\w+|\S+\.\w+\b))?""", hint):
        return [[*args, m[1], *(shlex.split(m[2]) if m[2] else [])]]
    return []


def hints(t):
    box = t.path("hints")
    os.makedirs(box)
    files(box, t.tool)
    hinted(box)
    run = lambda args: subprocess.run([t.tool, *args], cwd=box, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)  # noqa: E731
    assert not run(["build", *"--quiet --key hour -o hours.bjf hours.parquet".split()]).returncode
    for line in filter(None, map(str.strip, HINTS.splitlines())):
        t.runs += 1
        (box / "inputs.jsonl").unlink(missing_ok=True)
        args = shlex.split(line)
        first = run(args)
        said = first.stderr.decode()
        then, codes = follow(args, said), []
        for args in then:
            p = run(args)
            codes.append(p.returncode)
            said += f"$ {shlex.join(args)}\n{p.stderr.decode()}"
        t.ok(f"what {line} says works", first.returncode and codes and not any(codes), f"exit {first.returncode}, then {codes}: {said}")


def run(t, _repository):
    t.group("mistakes", mistakes)
    t.group("hints", hints)
