"""The examples run as they are, and their notebook as a user would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from s3gateway import gateway

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("with_*.py"))


def test_there_is_an_example_of_each_integration() -> None:
    names = {path.stem.removeprefix("with_") for path in SCRIPTS}
    assert names == {"dask", "duckdb", "pandas", "polars", "pyarrow_dataset"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script: Path, tmp_path: Path) -> None:
    """Each script compares its result with DuckDB's."""
    for module in ("duckdb", script.stem.removeprefix("with_")):
        pytest.importorskip(module.replace("_", "."))
    run = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout
    assert "Warning" not in run.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif("BLOOMJOIN_S3GW" not in os.environ, reason="BLOOMJOIN_S3GW names no versitygw")
def test_notebook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """IDs in pandas, logs in an object store, answer into Polars."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLES / "flights.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "strip the outputs"

    with gateway() as server:
        server.copy_in(EXAMPLES.parents[1] / "testdata" / "flights" / "logs", "flights/logs")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HOME", str(tmp_path))
        nbclient.NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": str(EXAMPLES)}}
        ).execute()

    _save_page(notebook)
    shown = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    assert "100%" in _text(shown["join"])  # the progress bar
    for cell in ("filter", "report", "plan"):
        (output,) = shown[cell]
        assert "<table" in output.data["text/html"]
    assert "Houston" in _text(shown["answer"])


def _text(outputs: list[dict[str, object]]) -> str:
    return "\n".join(str(output) for output in outputs)


def _save_page(notebook: object) -> None:
    """Write the page that a reader sees, if BLOOMJOIN_NOTEBOOK_HTML names a file for it."""
    path = os.environ.get("BLOOMJOIN_NOTEBOOK_HTML")
    if path:
        nbconvert = pytest.importorskip("nbconvert")
        page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
        Path(path).write_text(page, encoding="utf-8")
