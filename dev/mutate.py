"""How much of a pure module its tests hold: each small change of it (a mutant) should fail one of them.

    python -m dev.mutate [--every N] [--jobs N] [--tests GLOB] MODULE.py ...

A mutant is compared operators, `and` and `or`, numbers one up and down, `not`, a branch or a filter left out, `DONE`
instead of a verdict and the reverse. Texts are left alone: what people read is no behaviour. Each mutant is run in a
fork of this process, first by the test file that bears its module's name, then by all others. Prints each survivor.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.machinery
import io
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
LIMIT = 90
"""Seconds of processor time after which a mutant counts as killed: it goes round for ever."""

HANGS = 1800
"""Seconds by the clock after which it does too: it waits for what never comes. Many, as others may need the machine."""

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div}
STRANGE = ast.parse('Wait("Mutant", "", on="mutant", within=1.0)', mode="eval").body


class Mutant:
    """One change: a node's place in the tree, what is put there, and how that is called."""

    def __init__(self, path: Path, line: int, said: str, source: str) -> None:
        self.path, self.line, self.said, self.source = path, line, said, source

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.said}"


def mutants(path: Path) -> Iterator[Mutant]:
    """All of them, from top to bottom."""
    tree = ast.parse(path.read_text())
    for node in list(ast.walk(tree)):
        for change, said in list(_changes(node)):
            with change.made(node):
                source = ast.unparse(tree)
            yield Mutant(path, getattr(node, "lineno", 0), said, source)


def _changes(node: ast.AST) -> Iterator[tuple[_Change, str]]:
    match node:
        case ast.Compare():
            for index, op in enumerate(node.ops):
                for other in COMPARED[type(op)]:
                    yield _Put("ops", index, other()), f"{ast.unparse(node)}: {type(op).__name__} -> {other.__name__}"
        case ast.BoolOp():
            other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _Put("op", None, other_op), f"{ast.unparse(node)}: -> {type(other_op).__name__}"
        case ast.BinOp() if type(node.op) in ARITHMETIC and not _is_text(node):
            swapped = ARITHMETIC[type(node.op)]()
            yield _Put("op", None, swapped), f"{ast.unparse(node)}: -> {type(swapped).__name__}"
        case ast.If() | ast.IfExp():
            said = ast.unparse(node.test)
            yield _Put("test", None, ast.Constant(False)), f"if {said}: never"
            yield _Put("test", None, ast.Constant(True)), f"if {said}: always"
        case ast.comprehension():
            for index, test in enumerate(node.ifs):
                yield _Put("ifs", index, ast.Constant(True)), f"filter {ast.unparse(test)}: left out"
        case ast.match_case() if node.guard is not None:
            yield _Put("guard", None, ast.Constant(True)), f"case guard {ast.unparse(node.guard)}: always"
            yield _Put("guard", None, ast.Constant(False)), f"case guard {ast.unparse(node.guard)}: never"
        case ast.Return(value=ast.Name(id="DONE")):
            yield _Put("value", None, STRANGE), "return DONE: -> a strange Wait"
        case ast.Return(value=ast.Call(func=ast.Name(id="Act" | "Wait" | "Blocked") as func)):
            yield _Put("value", None, ast.Name("DONE", ast.Load())), f"return {func.id}(...): -> DONE"
    yield from _values(node)


def _values(node: ast.AST) -> Iterator[tuple[_Change, str]]:
    """Numbers, truths and `not` where they stand as a value."""
    if isinstance(node, ast.JoinedStr | ast.FormattedValue | ast.arg | ast.AnnAssign):
        return
    for field, held in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for index, item in enumerate(held) if isinstance(held, list) else [(None, held)]:
            match item:
                case ast.Constant(value=bool() as truth):
                    yield _Put(field, index, ast.Constant(not truth)), f"{_around(node)}: {truth} -> {not truth}"
                case ast.Constant(value=int() | float() as number):
                    for other in (number + 1, number - 1):
                        yield _Put(field, index, ast.Constant(other)), f"{_around(node)}: {number} -> {other}"
                case ast.UnaryOp(op=ast.Not()):
                    yield _Put(field, index, item.operand), f"{ast.unparse(item)}: without not"


def _around(node: ast.AST) -> str:
    return ast.unparse(node)[:70].replace("\n", " ") if not isinstance(node, ast.Module | ast.FunctionDef) else "…"


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


class _Put:
    """Puts a node into a field of another."""

    def __init__(self, field: str, index: int | None, new: ast.AST) -> None:
        self.field, self.index, self.new = field, index, new

    @contextlib.contextmanager
    def made(self, node: ast.AST) -> Iterator[None]:
        """With it in place."""
        if self.index is None:
            old = getattr(node, self.field)
            setattr(node, self.field, self.new)
            yield
            setattr(node, self.field, old)
        else:
            held = getattr(node, self.field)
            old, held[self.index] = held[self.index], self.new
            yield
            held[self.index] = old


_Change = _Put


# --- running ---------------------------------------------------------------------------------------------------------


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves one module's source as it was changed."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant, self._name = mutant, module_name(mutant.path)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The changed one, or leave it to others."""
        if name != self._name:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=str(self._mutant.path))

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed source."""
        module.__file__ = str(self._mutant.path)
        exec(compile(self._mutant.source, str(self._mutant.path), "exec"), module.__dict__)


def module_name(path: Path) -> str:
    """As it is imported."""
    return ".".join(path.resolve().relative_to(ROOT / "src").with_suffix("").parts)


def _forget(package: str) -> None:
    """What was imported of the package and of the tests is imported anew."""
    tests = str(ROOT / "tests")
    for name, module in list(sys.modules.items()):  # test folders without a package have modules of any name
        if name.startswith(package) or str(getattr(module, "__file__", "")).startswith(tests):
            del sys.modules[name]


def _passes(files: Sequence[Path]) -> bool:
    words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return pytest.main([*words, *map(str, files)]) == pytest.ExitCode.OK


def _ordered(files: Sequence[Path], path: Path) -> list[list[Path]]:
    """The tests that bear the module's name first."""
    named = [file for file in files if path.stem in file.stem]
    return [part for part in (named, [file for file in files if file not in named]) if part]


def _in_child(mutant: Mutant, files: Sequence[Path], package: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    signal.alarm(HANGS)
    survived = True
    try:
        for part in _ordered(files, mutant.path):
            _forget(package)
            sys.meta_path.insert(0, _Finder(mutant))
            survived = _passes(part)
            sys.meta_path.pop(0)
            if not survived:
                break
    except BaseException:
        survived = False
    os._exit(0 if survived else 1)


def main() -> int:
    """Run all mutants; 1 when the tests fail by themselves."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("modules", nargs="+", type=Path)
    options.add_argument("--tests", default="tests/unit/xsld/cache/test_cache_*.py", help="pattern of test files")
    options.add_argument("--package", default="moorage.operators.xsld", help="what is imported anew for each mutant")
    options.add_argument("--every", type=int, default=1, help="only each so manyth mutant")
    options.add_argument("--jobs", type=int, default=1)
    given = options.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    sys.dont_write_bytecode = True
    files = sorted(ROOT.glob(given.tests))
    begun = time.monotonic()
    if not _passes(files):
        print("the tests fail without any mutant")
        return 1
    print(f"{len(files)} test files pass in {time.monotonic() - begun:.1f} s", flush=True)
    alive = run(
        [it for path in given.modules for it in mutants(path.resolve())][:: given.every],
        files,
        given.package,
        given.jobs,
    )
    for mutant in alive:
        print(f"survived {mutant}")
    return 0


def run(all_: Sequence[Mutant], files: Sequence[Path], package: str, jobs: int) -> list[Mutant]:
    """Those that no test kills."""
    alive: list[Mutant] = []
    running: dict[int, Mutant] = {}
    waiting, done, begun = list(reversed(all_)), 0, time.monotonic()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[_in_child(mutant, files, package)] = mutant
        pid, status = os.wait()
        mutant, done = running.pop(pid), done + 1
        if status == 0:
            alive.append(mutant)
            print(f"alive {mutant}", flush=True)
        if done % 50 == 0 or done == len(all_):
            print(
                f"{done} of {len(all_)} mutants, {done - len(alive)} killed, {time.monotonic() - begun:.0f} s",
                flush=True,
            )
    score = 100 * (len(all_) - len(alive)) / max(1, len(all_))
    print(f"{len(all_)} mutants, {len(all_) - len(alive)} killed, score {score:.1f} %")
    return alive


if __name__ == "__main__":
    sys.exit(main())
