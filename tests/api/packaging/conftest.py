"""Installs the operator's chart into a real API server, under names of its own, and acts there as its account.

The Deployment gets no replicas and the CRDs are left out: what is looked at are rights and admission, and another test
may be using the CRDs.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 90  # seconds until what is new must be in force: a policy, a definition, somebody's rights

OFF = ("kre", "opencga", "weka")
"""Systems that are off by default."""

Row = tuple[tuple[str, ...], str, str, str]
"""(verbs, resource, where, name): a row stands for each of its verbs."""


def _binary(name: str) -> str:
    own = ROOT / ".testbed/bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"no {name} in .testbed/bin nor on the PATH; `testbed/testbed up` builds it")
    return found


class Cluster:
    """The API server, by kubectl and helm, as the administrator or as somebody else."""

    def __init__(self, kubeconfig: str, home: Path) -> None:
        self._env = {"KUBECONFIG": kubeconfig, "HOME": str(home), "PATH": os.environ["PATH"]}

    def kubectl(
        self, *args: str, user: str = "", body: dict[str, Any] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One kubectl call; the body, where one is given, is its `-f -`."""
        command = [_binary("kubectl"), *([f"--as={user}"] if user else []), *args, *(["-f", "-"] if body else [])]
        return self._run(command, json.dumps(body) if body else None)

    def helm(self, *args: str) -> subprocess.CompletedProcess[str]:
        """One helm call as the administrator."""
        return self._run([_binary("helm"), *args], None)

    def _run(self, command: list[str], stdin: str | None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self._env, input=stdin, capture_output=True, text=True, timeout=180, check=False
        )

    @staticmethod
    def namespace(name: str, admits: str | None = None, **labels: str) -> dict[str, Any]:
        """A Namespace's body; `admits` is the value of its annotation."""
        annotations = {} if admits is None else {"moorage.dev/collectors-from": admits}
        metadata = {"name": name, "annotations": annotations, "labels": labels}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    def must(self, done: subprocess.CompletedProcess[str]) -> str:
        """Its output; fails the test with its error when it failed."""
        assert done.returncode == 0, done.stderr
        return done.stdout


class Operator:
    """An installed release of the chart, and its service account's hands."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name  # of the release, its namespace, its account
        self.user = f"system:serviceaccount:{name}:{name}"
        self.accounts = f"{name}-accounts"
        self.roles = {
            "collector": f"{name}-collector-tenant",
            "xsld": f"{name}-xsld-namespace",
            "kre": f"{name}-kre-namespace",
            "opencga": f"{name}-opencga-namespace",
            "weka": f"{name}-weka-namespace",
        }

    def account(self, namespace: str, system: str = "collector") -> str:
        """By whom that namespace is reached."""
        return f"system:serviceaccount:{self.accounts}:{system}.{namespace}"

    def binding(self, namespace: str, system: str = "collector", **changes: Any) -> dict[str, Any]:
        """The RoleBinding that the operator makes for that system in a namespace, with changes."""
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.roles[system]}
        body: dict[str, Any] = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"moorage-{system}", "namespace": namespace},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", "name": f"{system}.{namespace}", "namespace": self.accounts}],
        }
        return body | changes

    def bind(self, namespace: str, system: str, verb: str, resource: str) -> None:
        """Bind the account of a namespace, as for its first resource, and once more; return when it has that right."""
        for _ in range(2):
            self.cluster.must(self.apply(self.binding(namespace, system)))
        self.until_may(verb, resource, namespace, self.account(namespace, system))

    def create(self, body: dict[str, Any], *args: str, user: str = "") -> subprocess.CompletedProcess[str]:
        """Create an object as the operator, or as one of its accounts."""
        return self.cluster.kubectl("create", *args, user=user or self.user, body=body)

    def apply(self, body: dict[str, Any], user: str = "") -> subprocess.CompletedProcess[str]:
        """Server-side apply as the operator, or as one of its accounts: how it writes its children."""
        return self.cluster.kubectl("apply", "--server-side", "--force-conflicts", user=user or self.user, body=body)

    def refused(self, body: dict[str, Any], user: str = "") -> str:
        """What the API server says when the operator, or that account, may not create this."""
        done = self.create(body, "--dry-run=server", user=user)
        assert done.returncode != 0, f"allowed: {body}"
        assert "orbidden" in done.stderr, done.stderr
        return done.stderr

    def reviews(self, rows: Sequence[Row], words: dict[str, str], user: str = "") -> dict[str, bool]:
        """Each row's questions as `kubectl auth can-i` would ask them -> the API server's answers. All in one call.

        `words` are put in for places and names of rows; `user` is asked about, or else the operator.
        """
        asked = user or self.user
        items: list[dict[str, Any]] = []
        for verbs, resource, where, name in rows:
            path, _, subresource = resource.partition("/")
            plural, _, group = path.partition(".")
            for verb in verbs:
                attributes = {
                    "verb": verb,
                    "group": group,
                    "resource": plural,
                    "subresource": subresource,
                    "namespace": words.get(where, where),
                    "name": words.get(name, name),
                }
                spec = {"user": asked, "groups": _groups(asked), "resourceAttributes": attributes}
                items.append({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
        body = {"apiVersion": "v1", "kind": "List", "items": items}
        answers = ("create", "-o", 'jsonpath={.status.allowed}{"\\n"}')
        said = self.cluster.must(self.cluster.kubectl(*answers, body=body)).split()
        questions = [_question(each["spec"]["resourceAttributes"]) for each in items]
        return {question: answer == "true" for question, answer in zip(questions, said, strict=True)}

    def until_may(self, verb: str, resource: str, where: str, user: str = "") -> None:
        """Return when the server knows that the operator, or that account, may do it, by its own watch."""
        deadline = time.monotonic() + PATIENCE
        while not all(self.reviews([((verb,), resource, where, "")], {}, user).values()):
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def until_almighty(self, user: str = "") -> None:
        """Return when the server knows that the operator, or that account, may do all."""
        self.until_may("delete", "nodes", "", user)


def _groups(user: str) -> list[str]:
    """What the server puts an account in."""
    if not user.startswith("system:serviceaccount:"):
        return ["system:authenticated"]
    return ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}", "system:authenticated"]


def _question(asked: dict[str, str]) -> str:
    kind = ".".join(filter(None, (asked["resource"], asked.get("group", ""))))
    what = "/".join(filter(None, (kind, asked.get("subresource", ""), asked.get("name", ""))))
    return f"{asked['verb']} {what} in {asked.get('namespace') or 'all namespaces'}"


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    kubeconfig = os.environ.get("MOORAGE_TEST_KUBECONFIG") or str(ROOT / ".testbed/kubeconfig")
    if not Path(kubeconfig).exists():
        pytest.skip(f"no API server: {kubeconfig} is not there; `testbed/testbed up --level api` starts one")
    made = Cluster(kubeconfig, tmp_path_factory.mktemp("home"))
    if (asked := made.kubectl("version", "--request-timeout=5s")).returncode != 0:
        pytest.skip(f"no API server answers at {kubeconfig}: {asked.stderr.strip()}")
    return made


@pytest.fixture(scope="module")
def tag() -> str:
    """Part of every name that a test module makes, so that two runs can share one cluster."""
    return f"pk{secrets.token_hex(3)}"


def namespace(cluster: Cluster, name: str, **labels: str) -> Iterator[str]:
    """A namespace of a test's own; it is deleted at the end."""
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name, **labels)))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def listed(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that the operator of the module lists."""
    yield from namespace(cluster, f"listed-{tag}")


@pytest.fixture(scope="module")
def unlisted(cluster: Cluster, tag: str) -> Iterator[str]:
    """A namespace that it does not list."""
    yield from namespace(cluster, f"unlisted-{tag}")


@contextlib.contextmanager
def installed(cluster: Cluster, folder: Path, name: str, values: dict[str, Any]) -> Iterator[Operator]:
    """The chart with these values, as the release NAME in a namespace of that name, with its policies in force."""
    made = Operator(cluster, name)
    cluster.must(cluster.kubectl("create", body=cluster.namespace(name)))
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"replicas": 0, "crds": {"enabled": False}} | values))
    chart = str(ROOT / "charts/moorage")
    cluster.must(cluster.helm("install", name, chart, "--namespace", name, "--values", str(file)))
    try:
        _wait_until_in_force(made, values["systems"])
        yield made
    finally:
        cluster.helm("uninstall", name, "--namespace", name)
        cluster.kubectl("delete", "namespace", name, made.accounts, "--wait=false")


@contextlib.contextmanager
def alone(cluster: Cluster, folder: Path, name: str, system: str, section: dict[str, Any]) -> Iterator[Operator]:
    """The chart with that system and no other, as the release NAME; `section` are further values of the system's."""
    off = {each: {"enabled": False} for each in ("collector", "xsld")}
    with installed(cluster, folder, name, {"systems": {**off, system: {"enabled": True, **section}}}) as made:
        yield made


def people(
    operator: Operator, system: str, place: str, roles: dict[str, tuple[str, str]], rows: Sequence[Row]
) -> dict[str, list[str]]:
    """What each of a system's roles for people lets do of these rows, bound in that namespace.

    With each role stands a verb and a resource: once the server allows it, it knows of the role.
    """
    may = {}
    for role, known_by in roles.items():
        bind = ("create", "rolebinding", f"{role}-trial", f"--clusterrole={operator.name}-{system}-{role}")
        operator.cluster.must(operator.cluster.kubectl("-n", place, *bind, f"--user={role}"))
        operator.until_may(*known_by, place, role)
        answers = operator.reviews(rows, {}, role)
        may[role] = [question.partition(" in ")[0] for question, allowed in answers.items() if allowed]
    return may


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tag: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The chart with the systems that are on by default, as moorage-TAG."""
    source = {"oci": "oci://registry.example/x", "secretRef": "registry"}
    values = {"systems": {"collector": {"charts": {"default": source}}}}
    with installed(cluster, tmp_path_factory.mktemp("values"), f"moorage-{tag}", values) as made:
        yield made


@pytest.fixture
def almighty(operator: Operator) -> Iterator[None]:
    """The operator with all rights, by somebody's mistake: then admission alone stands."""
    cluster, name = operator.cluster, f"{operator.name}-mistake"
    account = f"--serviceaccount={operator.name}:{operator.name}"
    cluster.must(cluster.kubectl("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", account))
    operator.until_almighty()
    yield
    cluster.must(cluster.kubectl("delete", "clusterrolebinding", name))


def defined(cluster: Cluster, system: str) -> None:
    """Have the kinds of a system served. They stay: other tests may use them too."""
    file = str(ROOT / f"charts/moorage/files/crds/{system}.yaml")
    cluster.must(cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", file))
    cluster.must(cluster.kubectl("wait", "--for=condition=Established", f"--timeout={PATIENCE}s", "-f", file))


def emptied(cluster: Cluster, tag: str, plurals: str, **labels: str) -> Iterator[str]:
    """A namespace of a test's own; what of these kinds is in it is deleted with it."""
    for name in namespace(cluster, f"{tag}-{secrets.token_hex(3)}", **labels):
        yield name
        cluster.kubectl("-n", name, "delete", plurals, "--all", "--wait=false")


def restricted(cluster: Cluster, tag: str, plurals: str) -> Iterator[str]:
    """The same, where it takes only restricted pods."""
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    yield from emptied(cluster, tag, plurals, **levels)


def _wait_until_in_force(operator: Operator, systems: dict[str, dict[str, Any]]) -> None:
    """The API server learns of a new policy by its own watch, within seconds."""
    on = [system for system in operator.roles if systems.get(system, {}).get("enabled", system not in OFF)]
    another = {"name": "another", "namespace": "default"}
    probes = [operator.binding("kube-system", system) for system in on]
    probes += [operator.binding("default", system, metadata=another) for system in on]
    if "collector" in on:
        probes.append(operator.cluster.namespace(f"{operator.name}-probe"))
    deadline = time.monotonic() + PATIENCE
    for probe in probes:  # until the server knows the operator's rights, it is refused for want of them
        while "ValidatingAdmissionPolicy" not in (done := operator.create(probe, "--dry-run=server")).stderr:
            assert time.monotonic() < deadline, f"not refused by a policy for {PATIENCE} s: {probe} {done.stderr}"
            time.sleep(0.2)
