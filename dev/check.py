"""`make check`: all that can be said about the source without running it. Each check is told, also after a failure."""

from __future__ import annotations

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import grimp

from . import docs, stage, values

ROOT = stage.ROOT
BIN = Path(sys.executable).parent
PLACES = ("testbed/go/*/go.mod", "images/*/go.mod", "images/kre/*/go.mod", "benchmarks/operators/*/go.mod")
CRATES = tuple(sorted(ROOT.glob("benchmarks/operators/*/Cargo.toml")))
MODULES = tuple(module for place in PLACES for module in sorted(ROOT.glob(place)))
VET = ("go", "vet", "-trimpath", "-mod=readonly", "./...")
FOREIGN = (
    r"(pypi|pythonhosted|golang|npmjs|debian|docker|quay|ghcr|github)\.(org|io|com)/(simple|packages|debian|v2)\b"
    r"|crates\.io-index|(index|static)\.crates\.io|proxy\.golang\.org|deb\.debian\.org|files\.pythonhosted\.org|registry\.npmjs\.org|--index-url"
)
SIDE_BY_SIDE = 18
"""How many modules a newcomer can take in at once in one folder."""

MACHINE = r"(^|[^A-Za-z0-9_.-])/((work|root)/|home/[a-z])"


def _tool(*words: str) -> Callable[[stage.Stage], None]:
    def run(it: stage.Stage) -> None:
        it.run(BIN / words[0], *words[1:])

    return run


def definitions(it: stage.Stage) -> None:
    """The chart's CRDs, and the dialects in its schema, are those of the code."""
    with tempfile.TemporaryDirectory() as fresh:
        it.run(BIN / "moorage", "crds", "--into", fresh)
        _same(
            {path.name: path.read_text() for path in Path(fresh).iterdir()}, ROOT / "charts/moorage/files/crds", "crds"
        )
    _same({values.SCHEMA.name: values.written()}, values.SCHEMA.parent, "crds", only=True)


def pages(it: stage.Stage) -> None:
    """The generated pages are those of the code."""
    it.hint("docs")
    _same(docs.pages(), ROOT / "docs", "docs", only=True)


def _same(fresh: dict[str, str], folder: Path, target: str, *, only: bool = False) -> None:
    there = {path.name for path in folder.glob("*")} if folder.exists() else set()
    stale = [name for name, text in fresh.items() if name not in there or (folder / name).read_text() != text]
    if not only:
        stale += sorted(there - fresh.keys())
    if stale:
        raise stage.Failed(
            f"{folder.relative_to(ROOT)}: {', '.join(stale)} is not as the code says; run `make {target}`"
        )


def shell(it: stage.Stage) -> None:
    """shellcheck over every shell script."""
    scripts = [path for path in _tracked() if path.suffix == ".sh" or _is_shell(path)]
    it.run(BIN / "shellcheck", *scripts)


def _is_shell(path: Path) -> bool:
    if path.suffix or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline(64).rstrip() in (
            b"#!/bin/sh",
            b"#!/bin/bash",
            b"#!/usr/bin/env bash",
            b"#!/usr/bin/env sh",
        )


def links(it: stage.Stage) -> None:
    """Relative links of every page lead somewhere."""
    broken = []
    for page in (path for path in _tracked() if path.suffix == ".md"):
        targets = re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", page.read_text())
        broken += [f"{page.relative_to(ROOT)} -> {target}" for target in targets if not (page.parent / target).exists()]
    it.hint("")
    if broken:
        raise stage.Failed("links that lead nowhere: " + ", ".join(broken))


def portable(it: stage.Stage) -> None:
    """No registry's host and no path of one machine is written down anywhere."""
    found = []
    for path in _tracked():
        if path == Path(__file__).resolve() or path.suffix == ".sum" or not path.is_file():
            continue
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(lines, 1)
            if re.search(FOREIGN, line) or re.search(MACHINE, line)
        ]
    it.hint("")
    if found:
        raise stage.Failed("a registry's host or a path of one machine: " + ", ".join(found[:20]))


def circles(it: stage.Stage) -> None:
    """No module imports itself by way of others."""
    graph = grimp.build_graph("moorage")
    left = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while free := {module for module, needed in left.items() if not needed & left.keys()}:
        left = {module: needed for module, needed in left.items() if module not in free}
    it.hint(f"{len(graph.modules)} modules")
    if left:
        raise stage.Failed("in import circles, or above one: " + ", ".join(sorted(left)))


def sizes(it: stage.Stage) -> None:
    """Median and 90th percentile of the source files' lengths (ours: at most 150 and 400), and modules per folder."""
    lengths = sorted(len(path.read_text().splitlines()) for path in (ROOT / "src").rglob("*.py"))
    lengths = [length for length in lengths if length > 1]
    median, p90 = lengths[len(lengths) // 2], lengths[int(len(lengths) * 0.9)]
    modules = (path for path in (ROOT / "src").rglob("*.py") if path.name != "__init__.py")
    folders = collections.Counter(path.parent for path in modules)
    (fullest, most), *_ = folders.most_common(1)
    it.hint(f"{len(lengths)} files, median {median}, p90 {p90}, longest {lengths[-1]}; at most {most} in a folder")
    if most > SIDE_BY_SIDE:
        raise stage.Failed(f"{most} modules lie side by side in {fullest.relative_to(ROOT)}; give them folders by job")
    if median > 150 or p90 > 400:
        raise stage.Failed("source files grow too long; split the longest by what they are about")


def go_format(it: stage.Stage) -> None:
    """gofmt over every Go file."""
    gofmt = shutil.which("gofmt")
    if not gofmt:
        it.skip("no gofmt here")
        return
    if unformatted := it.run(gofmt, "-l", *(module.parent for module in MODULES)).split():
        raise stage.Failed(f"not as gofmt writes it: {', '.join(unformatted)}")


def rust_format(it: stage.Stage) -> None:
    """rustfmt over every crate."""
    rustfmt = shutil.which("rustfmt", path=os.pathsep.join([os.environ["PATH"], str(Path.home() / ".cargo/bin")]))
    if not rustfmt:
        it.skip("no rustfmt here")
        return
    for crate in CRATES:
        it.run(rustfmt, "--check", "--edition", "2024", crate.parent / "src/main.rs")


def whole_vet(it: stage.Stage) -> None:
    """go vet over all modules; it builds what they depend on, which takes minutes."""
    _vet(it, [module.parent for module in MODULES])


def _vet(it: stage.Stage, modules: list[Path]) -> None:
    for module in modules:
        if any(module.glob("*.go")):
            it.run(*VET, folder=module, environment={"CGO_ENABLED": "0"})


def _tracked() -> list[Path]:
    """Every file of the tree that is, or is to be, under version control."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, check=True)
    found = (ROOT / os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
    return [path for path in found if path.is_file()]


CHECKS: tuple[tuple[str, Callable[[stage.Stage], None]], ...] = (
    ("ruff format", _tool("ruff", "format", "--check", ".")),
    ("ruff check", _tool("ruff", "check", "--output-format=concise", ".")),
    ("mypy --strict", _tool("mypy")),
    ("import directions", _tool("lint-imports")),
    ("no import circle", circles),
    ("CRDs as the code says", definitions),
    ("pages as the code says", pages),
    ("shellcheck", shell),
    ("yamllint", _tool("yamllint", "--strict", ".")),
    ("links", links),
    ("no host, no machine's path", portable),
    ("file sizes", sizes),
    ("gofmt", go_format),
    ("rustfmt", rust_format),
)


def work() -> int:
    """All checks; the exit code tells whether one failed."""
    chosen = CHECKS if sys.argv[1:] != ["vet"] else (("go vet, all modules", whole_vet),)
    failures = []
    for title, check in chosen:
        try:
            with stage.stage(title) as it:
                check(it)
        except stage.Failed as error:
            failures.append(title)
            print(error)
    if failures:
        print(f"\nfailed: {', '.join(failures)}")
    return len(failures)


if __name__ == "__main__":
    sys.exit(stage.main(["make check"], work))
