"""Builds the images, brings them to the cluster, and installs the chart; what is there already is left alone.

An image is built again when the hash of what goes into it changed, loaded when this cluster has not got that one, and
the chart is installed again when an image or the chart itself changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from . import place as places
from . import stage

ROOT = stage.ROOT
IMAGES = ROOT / "build" / "images"
STAMPS = ROOT / "build" / "stamps"
INPUTS = {
    "collector": ("images/build", "images/collector", "testbed/tb/images"),
    "operator": (
        "images/build",
        "images/operator",
        "testbed/tb/images",
        "testbed/go/helm",
        "requirements/runtime.txt",
        "src/moorage",
        "charts/collector",
        "charts/kre-runtime",
    ),
    "opencga-agent": (
        "images/build",
        "images/opencga-agent",
        "testbed/tb/images",
        "requirements/agent.txt",
        "src/moorage/agent",
        "src/moorage/api",
    ),
    "opencga-hook": ("images/build", "images/opencga-hook", "testbed/tb/images"),
    "opencga": ("images/build", "images/opencga", "testbed/tb/images"),
    "opencga-501": ("images/build", "images/opencga", "testbed/tb/images"),
    "xsld": ("images/build", "images/xsld", "testbed/tb/images"),
    "xsld-8614": ("images/build", "images/xsld", "testbed/tb/images"),
    **{
        f"kre-{server}": ("images/build", f"images/kre/{server}", "testbed/tb/images")
        for server in ("mongo", "nats", "minio", "influxdb", "nginx", "entrypoint", "fetcher")
    },
    "kre-runner": ("images/build", "images/kre/runner", "testbed/tb/images", "requirements/runner.txt"),
    "weka": ("images/build", "images/weka", "testbed/tb/images"),
    "weka-442": ("images/build", "images/weka", "testbed/tb/images"),
}
PRODUCT = ("collector", "operator")
"""The images of a deployment; the others are for tests."""

SERVERS = tuple(name for name in INPUTS if name.startswith(("kre-", "opencga", "weka")))
"""Those that only tests with running pods take, of the systems that bear their names: they take minutes to build."""
BUILD = "moorage.dev/build"
"""Annotation of the operator's pods: the hash of what was installed."""


def images(place: places.Place, names: Iterable[str] = PRODUCT) -> dict[str, str]:
    """Build and load; returns the hash of each image's inputs."""
    digests = build(names)
    load(place, digests)
    return digests


def build(names: Iterable[str]) -> dict[str, str]:
    """The archives in build/images; returns the hash of each image's inputs."""
    digests = {name: digest(*INPUTS[name]) for name in names}
    for name, wanted in digests.items():
        with stage.stage(f"image {name}") as it:
            stamp = STAMPS / f"image-{name}"
            if (IMAGES / f"{name}.tar").exists() and _read(stamp) == wanted:
                it.skip()
                continue
            it.run("images/build", name, environment={"TESTBED_BIN": str(places.BIN)})
            _write(stamp, wanted)
    return digests


def load(place: places.Place, digests: Mapping[str, str]) -> None:
    """Bring the archives of these images to the cluster."""
    cluster = place.get("namespace", "kube-system")["metadata"]["uid"]
    for name, wanted in digests.items():
        with stage.stage(f"load {name} into {place.name}") as it:
            stamp = STAMPS / f"loaded-{cluster}-{name}"
            if _read(stamp) == wanted:
                it.skip()
                continue
            it.run(*_loader(place, IMAGES / f"{name}.tar"), environment=place.environment)
            _write(stamp, wanted)


def chart(place: places.Place, digests: dict[str, str], *, force: bool = False) -> None:
    """Install the chart and wait until the operator is available."""
    prefix = os.environ.get("IMAGES", "")
    wanted = hashlib.sha256(f"{digests} {prefix} {digest('charts/moorage')}".encode()).hexdigest()[:16]
    with stage.stage("chart moorage") as it:
        there = place.get("deployment", "moorage", "-n", places.NAMESPACE)
        if there and not force and _installed(there) == wanted and there["status"].get("availableReplicas"):
            it.skip()
            return
        key = BUILD.replace(".", r"\.")
        values = ["--set-string", f"podAnnotations.{key}={wanted}"]
        if prefix:
            values += ["--set", f"image.repository={prefix}/moorage,systems.collector.imageRepository={prefix}"]
        if not place.context:  # there, definitions are left over from tests, and are nobody's
            values += ["--take-ownership", "--force-conflicts"]
        where = ["charts/moorage", "-n", places.NAMESPACE, "--create-namespace"]
        it.hint("helm upgrade --install moorage charts/moorage -n moorage-system --create-namespace")
        place.helm("upgrade", "--install", "moorage", *where, *values)
        it.hint("waiting for the operator's pod")
        try:
            place.kubectl("rollout", "status", "deployment/moorage", "-n", places.NAMESPACE, "--timeout=300s")
        except stage.Failed as error:
            raise stage.Failed(f"{error}\n{trouble(place)}") from error


def trouble(place: places.Place) -> str:
    """What a person would look at first: the operator's pods and the end of its log."""
    words = []
    for command in (
        ("get", "pods", "-A", "-o", "wide"),
        ("get", "events", "-n", places.NAMESPACE, "--sort-by=.lastTimestamp"),
        ("logs", "deployment/moorage", "-n", places.NAMESPACE, "--tail=30"),
        ("get", "collectors", "-A", "-o", "wide"),
        ("get", "xsldcaches,datagrids,gridtemplates", "-A", "-o", "wide"),
        ("get", "runtimes,runtimeversions", "-A", "-o", "wide"),
        ("get", "opencgacommunity", "-A", "-o", "wide"),
        ("get", "wekaclusters,wekacontainers", "-A", "-o", "wide"),
    ):
        try:
            said = place.kubectl(*command)
        except stage.Failed as error:
            said = str(error)
        words.append(f"  kubectl {' '.join(command)}\n{stage.tail(said, 30)}")
    return "\n".join(words)


def digest(*paths: str) -> str:
    """One hash over the content of files and folders of this tree; what is generated by running it is left out."""
    whole = hashlib.sha256()
    for path in paths:
        start = ROOT / path
        files = sorted(start.rglob("*")) if start.is_dir() else [start]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                whole.update(f"{file.relative_to(ROOT)}\0{os.access(file, os.X_OK)}\0".encode() + file.read_bytes())
    return whole.hexdigest()


def _loader(place: places.Place, archive: Path) -> list[str | Path]:
    """The command that brings an image archive to the cluster's nodes."""
    if not place.context:
        return place.testbed("load", str(archive))
    for pattern, tool, words in (
        (r"kind-(.+)", "kind", ("load", "image-archive", "--name", "{}")),
        (r"k3d-(.+)", "k3d", ("image", "import", "--cluster", "{}")),
        (r"(minikube.*)", "minikube", ("image", "load", "--profile", "{}")),
    ):
        if (match := re.fullmatch(pattern, place.context)) and shutil.which(tool):
            return [tool, *(word.format(match[1]) for word in words), archive]
    if os.environ.get("IMAGES"):
        return ["true"]
    raise stage.Failed(
        f"there is no known way to load images into {place.context}. Push {IMAGES}/*.tar to a registry that it pulls "
        "from, as PREFIX/moorage and PREFIX/collector, and give the prefix: make demo CONTEXT=... IMAGES=PREFIX"
    )


def _installed(deployment: dict[str, object]) -> str:
    spec: dict[str, dict[str, dict[str, dict[str, str]]]] = deployment["spec"]  # type: ignore[assignment]
    return spec["template"]["metadata"].get("annotations", {}).get(BUILD, "")


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def work() -> None:
    """Cluster, images, chart."""
    place = places.find()
    places.up(place)
    chart(place, images(place))


def only_images() -> None:
    """The archives, without a cluster."""
    with stage.stage("helm for the image") as it:
        it.run(places.TESTBED, "build", "--level", "api")
    for name in sys.argv[2:] or INPUTS:
        with stage.stage(f"image {name}") as it:
            it.run("images/build", name, environment={"TESTBED_BIN": str(places.BIN)})
            _write(STAMPS / f"image-{name}", digest(*INPUTS[name]))
    print(f"in {IMAGES}")


if __name__ == "__main__":
    jobs = {"images": only_images, "all": work}
    sys.exit(stage.main(["make", *sys.argv[1:]], jobs[sys.argv[1] if len(sys.argv) > 1 else "all"]))
