"""The text of a krt.yml -> a version in one form, with all that is wrong with it. Pure.

Both versions of the format are read. What one does not have is told of by the name of the other, as most such mistakes
are a forgotten `krtVersion`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from moorage.helm.parsing import helm_yaml

from . import fields, files, graph, located, model, problems

MAX_TEXT = 1 << 20  # bytes
MAX_WORKFLOWS = 20
MAX_NODES = 100
"""Of a workflow, or of a text of version 1."""
MAX_SUBSCRIPTIONS = 50
MAX_CONFIG = 200
MAX_REPLICAS = 100
MAX_STORE = 63
"""Characters of an object store's name, which stands in no object of Kubernetes."""
ACTIVE = "active"
"""By this name goes the Service of what is published, so no version may bear it."""

_TOP = ("krtVersion", "version", "description", "entrypoint", "config", "workflows")
_NODE = ("name", "image", "src", "gpu")
_ONLY_V2 = ("replicas", "subscriptions", "objectStore")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_METHOD = re.compile(r"\brpc\s+(\w+)\s*\(")


class Read:
    """What was read: the version, where there was no error, and all problems in the order of the text."""

    def __init__(self, krt: model.Krt | None, found: Sequence[problems.Problem]) -> None:
        self.krt, self.problems = krt, tuple(sorted(found, key=lambda each: (each.line, each.column)))


def read(data: bytes, file: str = "", around: files.Files | None = None) -> Read:
    """Read the text, together with the files around it where they are known. Never raises for what is in it.

    `file` is the name of the text among those files, for the problems.
    """
    try:
        text = _text(data)
    except helm_yaml.DocumentError as error:
        fix = "correct it as YAML: indentation by spaces, each key once, one document"
        return Read(None, [problems.Problem("error", error.reason, fix, file, error.line, error.column)])
    names = None if around is None else around.sizes
    reading = _Reading(fields.Fields(text, file, names), {} if around is None else around.texts)
    krt = reading.whole(text.value)
    return Read(None if reading.to.errors else krt, reading.to.problems)


def _text(data: bytes) -> located.Located:
    if len(data) > MAX_TEXT:
        raise helm_yaml.TooLarge(f"it has {len(data)} bytes; at most {MAX_TEXT} are read")
    try:
        text = located.Located(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise helm_yaml.DocumentError("it is not UTF-8 text from here on", line, 1) from None
    if text.value is None:
        raise helm_yaml.DocumentError("there is nothing in it", 1, 1)
    return text


class _Reading:
    def __init__(self, to: fields.Fields, texts: Mapping[str, bytes]) -> None:
        self.to, self._texts = to, texts
        self._served: frozenset[str] | None = None  # methods of the proto, where that can be read

    def whole(self, value: Any) -> model.Krt:
        second = self._is_second(value)
        known = _TOP if second else (*_TOP, "nodes")
        if second and isinstance(value, dict) and "nodes" in value:
            self.to.error(("nodes",), "version v2 has no nodes here", "move each into its workflow's nodes", key=True)
            value = {key: item for key, item in value.items() if key != "nodes"}
        top = self.to.mapping(value, (), "krt.yml", known)
        return model.Krt(
            "v2" if second else "v1",
            self._version(top),
            self.to.text(top, "description", (), "say in a sentence what this version is for", 1000),
            self._entrypoint(top),
            self._config(top.get("config")),
            self._workflows(top) if second else self._sequential(top),
        )

    def _is_second(self, value: Any) -> bool:
        """Whether it is of version 2; one that says nothing is of version 1, unless it is written as version 2."""
        top = value if isinstance(value, dict) else {}
        unknown = [name for name in list(top)[:20] if name not in _TOP]
        said = top.get("krtVersion") or top.get(problems.nearest("krtVersion", unknown))
        if said in ("v1", "v2"):
            return bool(said == "v2")
        looks = isinstance(value, dict) and _looks_second(value.get("workflows"))
        fix = f"write krtVersion: {'v2' if looks else 'v1'}"
        if said not in (None, ""):
            self.to.error(("krtVersion",), f"krtVersion {str(said)[:80]!r} is unknown; there are v1 and v2", fix)
        elif looks:
            told = "krtVersion is missing, which means v1, but the workflows are written as in v2"
            self.to.error((), told, "add a line krtVersion: v2")
        return looks

    def _version(self, top: dict[str, Any]) -> str:
        found = self.to.name(top, (), "the version", "version")
        if found == ACTIVE:
            told = f"the version can't be called {ACTIVE!r}: the Service of what is published has that name"
            self.to.error(("version",), told, "choose another name")
        return found

    def _entrypoint(self, top: dict[str, Any]) -> model.Entrypoint:
        if top and top.get("entrypoint") is None:
            self.to.error(("entrypoint",), "entrypoint is missing", "name what serves the version: its proto and image")
            return model.Entrypoint("", "")
        path = ("entrypoint",)
        found = self.to.mapping(top.get("entrypoint", {}), path, "entrypoint", ("proto", "image"))
        fix = "name the .proto file with the service that the version offers"
        proto = self.to.path_inside(found, "proto", path, fix)
        if proto and not proto.endswith(".proto"):
            self.to.error((*path, "proto"), f"proto {proto[:80]!r} does not end in .proto", fix)
        if proto in self._texts:
            code = _COMMENT.sub(" ", self._texts[proto].decode("utf-8", "replace"))
            self._served = frozenset(_METHOD.findall(code))
        return model.Entrypoint(proto, self.to.image(found, path))

    def _config(self, value: Any) -> model.Config:
        found = {} if value is None else self.to.mapping(value, ("config",), "config", ("variables", "files"))
        seen: dict[str, str] = {}
        lists: dict[str, tuple[str, ...]] = {}
        for field in ("variables", "files"):
            path = ("config", field)
            names = self.to.items(found.get(field), path, field, MAX_CONFIG)
            kept = [self._variable(name, (*path, at), field, seen) for at, name in enumerate(names)]
            lists[field] = tuple(name for name in kept if name)
        return model.Config(lists["variables"], lists["files"])

    def _variable(self, value: Any, path: problems.Path, field: str, seen: dict[str, str]) -> str:
        name = self.to.is_text(value, path, "the name of a config key", fields.VARIABLE_LENGTH)
        if not name:
            return ""
        if not fields.VARIABLE.fullmatch(name):
            told = f"config key {name[:80]!r} can't be the name of an environment variable of a version"
            self.to.error(path, told, "use upper-case letters, digits and '_', beginning and ending without '_'")
        elif name in seen:
            self.to.error(path, f"config key {name} is given twice, first in {seen[name]}", "take one out")
        elif name.startswith("KRT_"):
            told = (
                f"config key {name} begins with KRT_, as what a runtime tells its nodes does, and may be hidden by it"
            )
            self.to.tell("warning", path, told, "choose another name")
        seen.setdefault(name, field)
        return name

    def _workflows(self, top: dict[str, Any]) -> tuple[model.Workflow, ...]:
        found = []
        for at, each in enumerate(self._listed(top)):
            path, before = ("workflows", at), self.to.errors
            known = ("name", "entrypoint", "exitpoint", "nodes")
            if isinstance(each, dict) and "sequential" in each:
                fix = "list the nodes in nodes, each with its subscriptions"
                self.to.error((*path, "sequential"), "version v2 has no sequential", fix, key=True)
                each = {key: item for key, item in each.items() if key != "sequential"}
            of = self.to.mapping(each, path, "a workflow", known)
            name, method = self.to.name(of, path, "the workflow"), self._method(of, path)
            exitpoint = self.to.text(of, "exitpoint", path, "name the node whose messages are the answer")
            nodes = self.to.items(of.get("nodes"), (*path, "nodes"), "nodes", MAX_NODES)
            read = tuple(self._node(node, (*path, "nodes", number), second=True) for number, node in enumerate(nodes))
            if of and not nodes:
                self.to.error((*path, "nodes"), "the workflow has no nodes", "list at least one in nodes")
            workflow = model.Workflow(name, method, exitpoint, read)
            graph.check(workflow, path, self.to, sound=self.to.errors == before)
            found.append(workflow)
        self._are_told_apart(found)
        return tuple(found)

    def _sequential(self, top: dict[str, Any]) -> tuple[model.Workflow, ...]:
        """Workflows of version 1: of each the nodes in a row, the first behind the entrypoint."""
        nodes: dict[str, model.Node] = {}
        for at, each in enumerate(self.to.items(top.get("nodes"), ("nodes",), "nodes", MAX_NODES)):
            node = self._node(each, ("nodes", at), second=False)
            if node.name in nodes:
                self.to.error(("nodes", at, "name"), f"two nodes are called {node.name!r}", "rename one of them")
            elif node.name:
                nodes[node.name] = node
        if top and not top.get("nodes"):
            self.to.error(("nodes",), "there are no nodes", "list at least one in nodes")
        found, used = [], set[str]()
        for at, each in enumerate(self._listed(top)):
            path = ("workflows", at)
            of = self.to.mapping(each, path, "a workflow", ("name", "entrypoint", "sequential"))
            name, method = self.to.name(of, path, "the workflow"), self._method(of, path)
            row = self._row(of, (*path, "sequential"), nodes)
            used.update(row)
            before = (model.ENTRYPOINT, *row)
            chained = (
                msgspec.structs.replace(nodes[one], subscriptions=(before[number],)) for number, one in enumerate(row)
            )
            found.append(model.Workflow(name, method, row[-1] if row else "", tuple(chained)))
        self._are_told_apart(found)
        for at, name in enumerate(nodes):
            if name not in used and not self.to.errors:
                self.to.tell(
                    "warning", ("nodes", at), f"node {name!r} is in no workflow's sequential, so it never runs"
                )
        return tuple(found)

    def _row(self, of: dict[str, Any], path: problems.Path, nodes: dict[str, model.Node]) -> list[str]:
        row: list[str] = []
        listed = self.to.items(of.get("sequential"), path, "sequential", MAX_NODES)
        if of and not listed:
            self.to.error(path, "the workflow has no nodes", "list at least one node's name in sequential")
        for at, value in enumerate(listed):
            name = self.to.is_text(value, (*path, at), "a node's name")
            if name in row:
                told = f"node {name!r} is in the row twice, and would get its own messages"
                self.to.error((*path, at), told, "declare a second node with the same src, and name that")
            elif name in nodes:
                row.append(name)
            elif name:
                self.to.error((*path, at), f"there is no node {name[:80]!r} in nodes", problems.meant(name, nodes))
        return row

    def _listed(self, top: dict[str, Any]) -> list[Any]:
        found = self.to.items(top.get("workflows"), ("workflows",), "workflows", MAX_WORKFLOWS)
        if top and not found:
            self.to.error(("workflows",), "there are no workflows", "list at least one in workflows")
        return found

    def _method(self, of: dict[str, Any], path: problems.Path) -> str:
        fix = "name the method of the entrypoint's service that this workflow answers"
        found = self.to.text(of, "entrypoint", path, fix)
        if found and (len(found) > fields.METHOD_LENGTH or not fields.METHOD.fullmatch(found)):
            told = f"entrypoint {found[:80]!r} can't be the name of a method"
            self.to.error(
                (*path, "entrypoint"), told, f"{fix}: letters, digits and '_', at most {fields.METHOD_LENGTH}"
            )
        elif found and self._served is not None and found not in self._served:
            told = f"the proto has no method {found}, so nobody can call this workflow"
            self.to.tell("warning", (*path, "entrypoint"), told, problems.meant(found, self._served))
        return found

    def _node(self, value: Any, path: problems.Path, *, second: bool) -> model.Node:
        known = (*_NODE, *_ONLY_V2) if second else _NODE
        early = [] if second or not isinstance(value, dict) else [name for name in _ONLY_V2 if name in value]
        for name in early:
            fix = "write krtVersion: v2 and the nodes in their workflows, or take it out"
            self.to.error((*path, name), f"{name} is a field of version v2 alone", fix, key=True)
        if early:
            value = {key: item for key, item in value.items() if key not in early}
        of = self.to.mapping(value, path, "a node", known)
        name = self.to.name(of, path, "the node")
        if name == model.ENTRYPOINT:
            told = f"a node can't be called {model.ENTRYPOINT!r}: by that name nodes subscribe to what comes in"
            self.to.error((*path, "name"), told, "choose another name")
        return model.Node(
            name,
            self.to.image(of, path),
            self.to.path_inside(of, "src", path, "name the file that the node runs, relative to krt.yml"),
            self.to.boolean(of, "gpu", path),
            self.to.whole(of, "replicas", path, 1, MAX_REPLICAS),
            self._subscriptions(of, path, name) if second else (),
            self._store(of.get("objectStore"), (*path, "objectStore")),
        )

    def _subscriptions(self, of: dict[str, Any], path: problems.Path, node: str) -> tuple[str, ...]:
        path = (*path, "subscriptions")
        listed = self.to.items(of.get("subscriptions"), path, "subscriptions", MAX_SUBSCRIPTIONS)
        if of and not listed:
            fix = f"list whose messages it gets: other nodes, or {model.ENTRYPOINT}"
            self.to.error(path, f"node {node!r} subscribes to nobody, so it never gets a message", fix)
        return tuple(self.to.is_text(each, (*path, at), "a subscription") for at, each in enumerate(listed))

    def _store(self, value: Any, path: problems.Path) -> model.ObjectStore | None:
        if value is None:
            return None
        of = self.to.mapping(value, path, "objectStore", ("name", "scope"))
        name, scope = self.to.name(of, path, "the object store", most=MAX_STORE), of.get("scope")
        match scope:
            case None | "workflow":
                return model.ObjectStore(name)
            case "project":
                return model.ObjectStore(name, "project")
        fix = "write workflow, for the nodes of this workflow, or project, for those of all"
        self.to.error((*path, "scope"), f"scope {str(scope)[:80]!r} is unknown", fix)
        return None

    def _are_told_apart(self, workflows: Sequence[model.Workflow]) -> None:
        """No two workflows have one name, or one method and with it one stream."""
        names: set[str] = set()
        methods: dict[str, str] = {}
        for at, each in enumerate(workflows):
            if each.name and each.name in names:
                fix = "rename one of them"
                self.to.error(("workflows", at, "name"), f"two workflows are called {each.name!r}", fix)
            if each.entrypoint and each.entrypoint in methods:
                told = f"workflow {methods[each.entrypoint]!r} has the entrypoint {each.entrypoint} already"
                fix = "give each workflow a method of its own: messages of both would go through one stream"
                self.to.error(("workflows", at, "entrypoint"), told, fix)
            names.add(each.name)
            methods.setdefault(each.entrypoint, each.name)


def _looks_second(workflows: Any) -> bool:
    listed = workflows if isinstance(workflows, list) else []
    return any(isinstance(each, dict) and ("nodes" in each or "exitpoint" in each) for each in listed)
