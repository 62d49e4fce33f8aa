"""The wheel that BLOOMJOIN_WHEEL names, installed by pip in a clean environment.

Nothing of the checkout is used, and no package is there but those that the
wheel asks for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

WHEEL = os.environ.get("BLOOMJOIN_WHEEL", "")
VERSION = Path(WHEEL).name.split("-")[1] if WHEEL else ""
BIN = "Scripts" if os.name == "nt" else "bin"


def runs(python: str) -> bool:
    path = shutil.which(python)
    return (
        path is not None and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0
    )


PYTHONS = [name for name in (f"python3.{minor}" for minor in range(10, 20)) if runs(name)]

pytestmark = pytest.mark.skipif(not WHEEL, reason="BLOOMJOIN_WHEEL names no wheel")

# Prints what the library answers, and what pyarrow does.
SESSION = """
import json
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import bloomjoin

logs = pa.table({"user_id": pa.array(range(100_000)), "text": [f"row {i}" for i in range(100_000)]})
pq.write_table(logs, "logs.parquet", row_group_size=10_000)
ids = pa.array(range(50_000, 200_000, 1000))
filter = bloomjoin.build(ids, fpr=1e-6)
filter.save("users.bjf")
loaded = bloomjoin.Filter.load("users.bjf")
want = logs.filter(pc.is_in(logs["user_id"], ids))
mask = loaded.probe(logs["user_id"])
rows = bloomjoin.scan(loaded, "logs.parquet", "user_id").read_all()
joined = bloomjoin.join("logs.parquet", ids, "user_id=key").read_all()
print(json.dumps({
    "missed": pc.sum(pc.and_not(pc.is_in(logs["user_id"], ids), mask)).as_py(),
    "passed": pc.sum(mask).as_py(),
    "scanned": rows.num_rows,
    "joined": joined.select(want.column_names).equals(want),
    "want": want.num_rows,
    "file": bloomjoin.__file__,
}))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("clean")
    venv.create(directory / "venv", with_pip=True, symlinks=os.name != "nt")
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(directory, "python", *pip, str(Path(WHEEL).resolve()))
    return directory


def run(home: Path, command: str, *args: str) -> str:
    """Return the output of a command of the environment."""
    done = start(home, command, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(home: Path, command: str, *args: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "BLOOMJOIN"))}
    path = str(home / "venv" / BIN / command)
    return subprocess.run([path, *args], cwd=home, env=env, capture_output=True, text=True)


def test_dependencies(home: Path) -> None:
    listed = json.loads(run(home, "python", "-m", "pip", "list", "--format=json"))
    names = {package["name"] for package in listed} - {"pip", "setuptools"}
    assert names == {"bloomjoin", "pyarrow"}


def test_command(home: Path) -> None:
    version = run(home, "bloomjoin", "version")
    assert version.startswith(f"bloomjoin v{VERSION} (go")
    assert run(home, "python", "-m", "bloomjoin", "version") == version


def test_exit_code(home: Path) -> None:
    done = start(home, "bloomjoin", "scan", "--no-such-flag")
    assert done.returncode == 64
    assert "no-such-flag" in done.stderr


def test_session(home: Path) -> None:
    answer = json.loads(run(home, "python", "-c", SESSION).splitlines()[-1])
    assert answer["missed"] == 0
    assert answer["passed"] == answer["scanned"] >= answer["want"] == 50
    assert answer["joined"]
    assert Path(answer["file"]).is_relative_to(home.resolve())


def test_licences(home: Path) -> None:
    found = {path.name for path in (home / "venv").rglob("bloomjoin-*.dist-info/licenses/*")}
    assert found == {"LICENSE"}


@pytest.mark.parametrize("name", PYTHONS)
def test_every_python_loads_the_extension(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(WHEEL) as archive:
        (file,) = [
            n for n in archive.namelist() if n.startswith("bloomjoin/_native.") and n[-1] != "i"
        ]
        archive.extract(file, tmp_path)
    script = """if True:
        import sys
        from importlib import util
        spec = util.spec_from_file_location("bloomjoin._native", sys.argv[1])
        native = util.module_from_spec(spec)
        spec.loader.exec_module(native)
        print(format(native.xxh3(0, 0), "x"))
    """
    done = subprocess.run(
        [name, "-I", "-c", script, str(tmp_path / file)], capture_output=True, text=True
    )
    assert done.stdout.strip() == "2d06800538d394c2", done.stderr  # codec/FORMAT.md
