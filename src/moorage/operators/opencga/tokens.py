"""The token of an installation's agents: made once, in a Secret beside its document; it leaves only for questions.

Who may read Secrets in the namespace has it, as has the agent's container, and not the server's, in which users' jobs
run. A token that somebody deletes or spoils is made anew; the kubelet brings it into pods, where it is read each time.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import builtin, meta, proof
from moorage.children import apply, bodies, owners
from moorage.kube import client as kube_client
from moorage.kube import errors
from moorage.operators import named_data
from moorage.runtime import decision, kind

from . import names, types

BYTES = 32
"""Of randomness in a token."""

Object = dict[str, Any]


def of(held: Object | None, owner: meta.ObjectMeta) -> str:
    """The token that is there; empty where there is none, or one of somebody else."""
    if held is None or not owners.is_of(held, names.LABEL, owner.name, owner.uid):
        return ""
    text = named_data.texts(builtin.SECRET, held).get(names.AGENT_TOKEN_KEY, "")
    return text if proof.sound(text) else ""


def seen(held: Object | None, owner: meta.ObjectMeta) -> apply.Child:
    """The Secret, without what it holds. One of somebody else is none: its name is not free."""
    if held is None or not owners.is_of(held, names.LABEL, owner.name, owner.uid):
        return apply.Child()
    wrong = () if of(held, owner) else (f"data.{names.AGENT_TOKEN_KEY}",)
    return apply.Child(held["metadata"]["uid"], "deletionTimestamp" in held["metadata"], wrong)


class Tokens:
    """How one is made. `within` gives what acts in a namespace and nowhere else."""

    def __init__(self, world: kind.World, within: Callable[[str], kube_client.Client]) -> None:
        self._world, self._within = world, within

    async def make(self, obj: types.Community, _: dict[str, Any]) -> decision.Outcome:
        """What is there and sound stays as it is, whatever a cache has said of it."""
        namespace, name = obj.metadata.namespace, names.agent_token(obj.metadata.name)
        client = self._within(namespace)
        live = await named_data.read(client, builtin.SECRET, namespace, name)
        if live is not None and not seen(live, obj.metadata).uid:
            return decision.Conflict(f"Secret {name} is somebody else's")
        text = base64.b64encode(secrets.token_urlsafe(BYTES).encode()).decode()
        timeout = self._world.gate.timeout(15.0)
        try:
            async with self._world.own_write(builtin.SECRET, namespace, name) as own:
                if live is None:
                    made = await client.create(
                        builtin.SECRET,
                        namespace,
                        _body(obj, name, text),
                        field_manager=decision.FIELD_MANAGER,
                        as_=msgspec.Raw,
                        timeout=timeout,
                    )
                else:
                    # one that is sound was not seen, as somebody took the label away by which it is watched
                    data = {} if of(live, obj.metadata) else {names.AGENT_TOKEN_KEY: text}
                    patch = {"metadata": {"uid": live["metadata"]["uid"], "labels": _labels(obj)}, "data": data}
                    made = await client.patch_merge(
                        builtin.SECRET,
                        namespace,
                        name,
                        patch,
                        field_manager=decision.FIELD_MANAGER,
                        as_=msgspec.Raw,
                        timeout=timeout,
                    )
                own.took(made)
        except (errors.AlreadyExists, errors.Conflict, errors.NotFound):
            return decision.Conflict(f"Secret {name} has changed meanwhile")
        return decision.Ok()


def _labels(obj: types.Community) -> dict[str, str]:
    return {
        names.APP: names.headless(obj.metadata.name),
        names.LABEL: obj.metadata.name,
        names.CONFIGURATION: obj.metadata.name,
        "app.kubernetes.io/name": "opencga",
        "app.kubernetes.io/managed-by": "moorage",
    }


def _body(obj: types.Community, name: str, text: str) -> Object:
    owner = names.COMMUNITY.ref(*obj.metadata.key, obj.metadata.uid)
    rest = {"type": "Opaque", "data": {names.AGENT_TOKEN_KEY: text}}
    body = bodies.owned(builtin.SECRET, name, owner, rest, labels=_labels(obj))
    del body["metadata"]["annotations"][apply.STAMP]  # of a body that is secret it would tell something
    return body
