"""Every command of README and docs works as written: each page's `sh` blocks are run in order, in one shell.

What is only shown there is fenced as `text`. `make demo` comes first: it is the README's own command, and brings the
operator that the pages speak of.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import tools

PAGES = (
    "docs/quickstart.md",
    "docs/collector.md",
    "docs/operations.md",
    "docs/xsld.md",
    "docs/krt.md",
    "docs/kre.md",
    "docs/kre-versions.md",
    "docs/opencga.md",
    "examples/collector/README.md",
)
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITHIN = 1500.0  # seconds for one page
TENANTS = ("acme", "globex")


def environment(cluster: tools.Cluster) -> dict[str, str]:
    """A person's shell after `make env`, on the cluster of these tests."""
    path = f"{tools.BIN}:{tools.ROOT / '.venv/bin'}:{os.environ['PATH']}"
    own = {"TESTBED_STATE": str(tools.STATE), "TESTBED_BIN": str(tools.BIN), "KUBECONFIG": str(cluster.kubeconfig)}
    return {**os.environ, **own, "PATH": path}


def shell(script: str, cluster: tools.Cluster) -> str:
    """Run it as a person would, stopping at the first command that fails; returns all that was printed."""
    command = ["bash", "-euxo", "pipefail", "-c", f"trap 'jobs -p | xargs -r kill' EXIT\n{script}"]
    done = subprocess.run(
        command,
        cwd=tools.ROOT,
        env=environment(cluster),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def demo(cluster: tools.Cluster) -> Iterator[str]:
    """What `make demo` printed."""
    if cluster.kubeconfig != tools.STATE / "kubeconfig":
        pytest.skip("the pages speak of the testbed, and these tests were given another cluster")
    yield shell("make demo", cluster)
    clear(cluster)


def clear(cluster: tools.Cluster) -> None:
    """Leave nothing of the pages to those who come after."""
    cluster.kubectl("annotate", "collectors", "--all", "-n", "default", "moorage.dev/on-delete-", check=False)
    cluster.kubectl("delete", "collectors", "--all", "-n", "default", tools.HANGS)
    cluster.kubectl("delete", "datagrids,xsldcaches", "--all", "-n", "default", tools.HANGS)
    cluster.kubectl("delete", "secret/hello-login", "-n", "default", "--ignore-not-found")
    cluster.kubectl("delete", "namespace", *TENANTS, "--ignore-not-found", tools.HANGS)
    tools.wait("nothing of other tests is left", lambda: not cluster.kubectl("get", "moorage", "-A", "-o", "name"))


def test_demo_ends_with_a_record_that_went_through_the_collector(demo: str) -> None:
    """Ready=True, telemetry seen, and what to try next."""
    assert "Ready       True" in demo
    assert re.search(r"find it in the collector's log.*hello-[0-9a-f]{8}", demo)
    assert "What to try next" in demo


@pytest.mark.parametrize("page", PAGES)
def test_the_page_s_commands_work(page: str, demo: str, cluster: tools.Cluster) -> None:
    """In the page's order, in one shell, from a cluster without Collectors."""
    clear(cluster)

    shell("\n".join(BLOCK.findall(Path(tools.ROOT, page).read_text())), cluster)


def test_every_page_of_the_docs_is_here() -> None:
    """A page with commands that nobody runs would go stale."""
    with_commands = {
        str(path.relative_to(tools.ROOT))
        for path in (*tools.ROOT.glob("docs/**/*.md"), *tools.ROOT.glob("examples/**/*.md"), tools.ROOT / "README.md")
        if BLOCK.search(path.read_text())
    }

    assert set(PAGES) == with_commands
