"""From an installation's spec to the document that its agents apply. Pure.

It holds no password: it says in which file of the pod an agent finds one, and by `revision` that the Secret behind it
has changed. Its `version` counts contents: another one is another content, and the same content keeps it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.children import ordinals
from moorage.operators.opencga import dialect as dialects
from moorage.operators.opencga import names, types

from . import trees

MOST_BYTES = 64 * 1024
"""Of what a user writes freely, and of the product's files: every agent reads them whole, and moorage compares them."""

MOST_VERSION = 2**53 - 1

Document = dict[str, Any]


class Placed(msgspec.Struct, frozen=True):
    """Who has a place in the document, and of which version."""

    members: int
    rest: str
    master: str
    stopped: bool = False  # REST servers, for a migration that forbids the old version


def document(
    namespace: str,
    name: str,
    spec: types.CommunitySpec,
    said: dialects.Dialect,
    placed: Placed,
    revisions: Mapping[str, str],
    args: Mapping[str, trees.Tree],
) -> Document:
    """All but its version. `revisions` names, by Secret, what it holds now; `args` are those of `arguments`."""
    processes = [_process(namespace, name, spec, said, names.MASTER, 0, placed.master)]
    processes += [
        _process(namespace, name, spec, said, names.REST, each, placed.rest) for each in range(placed.members)
    ]
    members = [{"_id": each, "host": ordinals.pod(names.rest(name), each)} for each in range(placed.members)]
    made: Document = {
        "options": {"downloadBase": said.container.download_base},
        "auth": _auth(name, spec, said, revisions),
        "args": dict(args),
        "processes": processes,
        "upgrade": _upgrade(spec, placed),
        "deployments": [{"_id": name, "members": members, "master": ordinals.pod(names.master(name), 0)}],
    }
    if spec.security.tls.enabled:
        made["tls"] = _tls(spec, said, revisions)
    return made


def _upgrade(spec: types.CommunitySpec, placed: Placed) -> dict[str, Any]:
    told: dict[str, Any] = {"migration": spec.upgrade.migration, "stopped": placed.stopped}
    return told | ({"backup": list(spec.upgrade.backup.command)} if spec.upgrade.backup else {})


class Authority(msgspec.Struct, frozen=True):
    """Where the certificate is by which the database is known."""

    resource: meta.Resource
    name: str
    field: str

    @property
    def key(self) -> str:
        """Names it among what a spec names: a Secret by its name, anything else beside them."""
        return self.name if self.resource == builtin.SECRET else f"{self.resource.kind}/{self.name}"


AUTHORITY_KEY = "ca.crt"
CERTIFICATE_KEYS = "tls.crt", "tls.key"


def shown(spec: types.CommunitySpec) -> str:
    """The Secret with the certificate that servers show the database; empty where they show none."""
    tls = spec.security.tls
    return tls.certificate_key_secret_ref.name if tls.enabled and tls.certificate_key_secret_ref else ""


def authority(spec: types.CommunitySpec) -> Authority | None:
    """That which the spec names; None without TLS, or where it names none."""
    tls = spec.security.tls
    if not tls.enabled:
        return None
    if tls.ca_certificate_secret_ref:
        name = tls.ca_certificate_secret_ref.name
        return Authority(builtin.SECRET, name, "spec.security.tls.caCertificateSecretRef")
    if tls.ca_config_map_ref:
        return Authority(builtin.CONFIG_MAP, tls.ca_config_map_ref.name, "spec.security.tls.caConfigMapRef")
    return None


def _tls(spec: types.CommunitySpec, said: dialects.Dialect, revisions: Mapping[str, str]) -> dict[str, str]:
    folder = said.container.credentials
    made: dict[str, str] = {}
    if (found := authority(spec)) is not None:
        made |= {"CAFilePath": f"{folder}/ca/{AUTHORITY_KEY}", "revision": revisions.get(found.key, "")}
    if name := shown(spec):
        certificate, key = (f"{folder}/client/{each}" for each in CERTIFICATE_KEYS)
        made |= {"certificateFile": certificate, "keyFile": key, "certificateRevision": revisions.get(name, "")}
    return made


def _process(
    namespace: str, name: str, spec: types.CommunitySpec, said: dialects.Dialect, role: str, ordinal: int, version: str
) -> dict[str, Any]:
    pod = ordinals.pod(names.rest(name) if role == names.REST else names.master(name), ordinal)
    return {
        "name": pod,
        "hostname": f"{pod}.{names.headless(name)}.{namespace}.svc.{said.cluster_domain}",
        "processType": role,
        "version": version,
        "disabled": spec.is_disabled(pod),
        "args": {},
    }


def _auth(name: str, spec: types.CommunitySpec, said: dialects.Dialect, revisions: Mapping[str, str]) -> dict[str, Any]:
    folder, admin = said.container.credentials, admin_secret(name, spec)
    made: dict[str, Any] = {
        "disabled": spec.database.credentials_secret_ref is None,
        "admin": {
            "email": spec.admin.email,
            "passwordFile": f"{folder}/admin/{admin.key}",
            "revision": revisions.get(admin.name, ""),
        },
    }
    if ref := spec.database.credentials_secret_ref:
        made["database"] = {
            "userFile": f"{folder}/database/{ref.user_key}",
            "passwordFile": f"{folder}/database/{ref.password_key}",
            "revision": revisions.get(ref.name, ""),
        }
    return made


def admin_secret(name: str, spec: types.CommunitySpec) -> types.PasswordRef:
    """Where the administrator's password is."""
    return spec.admin.password_secret_ref or types.PasswordRef(names.admin_password(name))


def mechanism(spec: types.CommunitySpec) -> str:
    """How the database is logged in to."""
    modes = spec.security.authentication.modes
    return {"SCRAM": "SCRAM-SHA-256"}.get(modes[0], modes[0]) if modes else "SCRAM-SHA-256"


def arguments(namespace: str, name: str, spec: types.CommunitySpec, said: dialects.Dialect) -> dict[str, trees.Tree]:
    """The three files of the product: what fields of the spec say, and what the user says beside. Raises TreeError."""
    _are_bounded(spec)
    own = _own(namespace, name, spec, said)
    given = {
        "configuration": _twice(spec),
        "storage": trees.expanded(spec.storage),
        "client": trees.expanded(spec.client_configuration),
    }
    fields = {"configuration": "additionalOpenCGAConfig", "storage": "storage", "client": "clientConfiguration"}
    made = {}
    for file, tree in given.items():
        if found := trees.secret_key(tree):
            raise trees.TreeError(
                f"spec.{fields[file]} has a value at {found}, where all who may read this resource read it; "
                "name a Secret in spec.database or spec.admin"
            )
        mine = dict(trees.leaves(own[file]))
        for path, value in trees.leaves(tree):
            if path in mine and mine[path] != value:
                raise trees.TreeError(f"spec.{fields[file]} sets {path}, which follows from other fields of the spec")
        try:
            made[file] = trees.joined(own[file], tree)
        except trees.TreeError as error:
            raise trees.TreeError(f"spec.{fields[file]}: {error}") from error
    return made


def _are_bounded(spec: types.CommunitySpec) -> None:
    """Before anything is made of it: what one user makes large is nobody else's to wait for."""
    given = (spec.additional_config, spec.configuration, spec.storage, spec.client_configuration)
    size = len(msgspec.json.encode(given))
    if size > MOST_BYTES:
        raise trees.TreeError(
            f"additionalOpenCGAConfig, configuration, storage and clientConfiguration of the spec have {size} bytes "
            f"together, and may have {MOST_BYTES}"
        )


def _twice(spec: types.CommunitySpec) -> trees.Tree:
    """The same file by either name; they may not contradict each other."""
    one, other = trees.expanded(spec.additional_config), trees.expanded(spec.configuration)
    try:
        found: trees.Tree = trees.joined(one, other)
    except trees.TreeError as error:
        raise trees.TreeError(f"spec.configuration and spec.additionalOpenCGAConfig: {error}") from error
    return found


def _own(namespace: str, name: str, spec: types.CommunitySpec, said: dialects.Dialect) -> dict[str, trees.Tree]:
    database, ports = spec.database, said.ports
    options: trees.Tree = {
        "authenticationDatabase": database.authentication_database,
        "authenticationMechanism": mechanism(spec),
        "replicaSet": database.replica_set,
        "sslEnabled": spec.security.tls.enabled,
    }
    if authority(spec) is not None or shown(spec):  # who trusts everybody shows nobody a certificate
        options["sslInvalidCertificatesAllowed"] = False
    if database.credentials_secret_ref is None:
        del options["authenticationDatabase"], options["authenticationMechanism"]
    storage: trees.Tree = {}
    if spec.search.hosts:
        storage["search"] = {"hosts": list(spec.search.hosts)}
    if cellbase := {key: value for key, value in msgspec.to_builtins(spec.cellbase).items() if value}:
        storage["cellbase"] = cellbase
    return {
        "configuration": {
            "databasePrefix": database.prefix,
            "catalog": {"database": {"hosts": list(database.hosts), "options": options}},
            "server": {"rest": {"port": ports.rest}},
            "monitor": {"port": ports.monitor},
        },
        "storage": storage,
        "client": {"rest": {"hosts": [{"name": name, "url": endpoint(namespace, name, said)}], "defaultHostIndex": 0}},
    }


def endpoint(namespace: str, name: str, said: dialects.Dialect) -> str:
    """Where clients reach the REST servers, inside the cluster."""
    host = f"{names.endpoint(name)}.{namespace}.svc.{said.cluster_domain}"
    return f"http://{host}:{said.ports.rest}{said.paths.context}"


# --- versions of documents ----------------------------------------------------------------------------------------


class Published(msgspec.Struct, frozen=True):
    """A document that is there, by what names it. A version below 0 is of none that can be read."""

    version: int = -1
    digest: str = ""


def digest(made: Document) -> str:
    """Names a content, its version aside."""
    plain = {key: value for key, value in made.items() if key != "version"}
    return hashlib.blake2b(msgspec.json.encode(plain, order="deterministic"), digest_size=16).hexdigest()


def published(data: Mapping[str, Any], file: str) -> Published:
    """What a Secret's data holds. Anybody who may write Secrets there may have written it."""
    try:
        found = msgspec.json.decode(base64.b64decode(str(data.get(file, "")), validate=True))
    except (ValueError, binascii.Error, RecursionError):
        return Published()
    version = found.get("version") if isinstance(found, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or not 0 < version <= MOST_VERSION:
        return Published()
    return Published(version, digest(found))


def next_version(wanted: str, live: Published | None, remembered: Published) -> int:
    """The version of the content that is named `wanted`: that which it has, else one more than any that was given.

    What is live counts before what is remembered; without either it is the first.
    """
    for known in (live, remembered):
        if known is not None and known.version > 0 and known.digest == wanted:
            return known.version
    last = max(live.version if live else 0, remembered.version, 0)
    return last % MOST_VERSION + 1


def text(made: Document, version: int) -> bytes:
    """The document as it is published."""
    return msgspec.json.encode({"version": version, **made}, order="deterministic")


def has_place(data: Mapping[str, Any], file: str, pod: str) -> bool | None:
    """Whether the document gives that pod a place; None where it can't be read."""
    try:
        found = msgspec.json.decode(base64.b64decode(str(data.get(file, "")), validate=True))
        return any(each["name"] == pod for each in found["processes"])
    except (ValueError, binascii.Error, RecursionError, KeyError, TypeError):
        return None
