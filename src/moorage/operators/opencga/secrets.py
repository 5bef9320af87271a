"""The Secrets and the authority that a spec names: read by the clock, as they are the user's own. No value leaves here.

What comes out is what is wrong with them, and by what it is known that one has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from moorage.api import builtin, meta
from moorage.kube import client as kube_client
from moorage.operators import named_data
from moorage.runtime import freshness, kind, source

from . import types
from .observation import SecretsSeen
from .wanted import automation

EVERY = 30.0
"""Seconds between two looks."""

BEGINS, ENDS = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
PLAIN_KEYS = tuple(f"-----BEGIN {kind}PRIVATE KEY-----" for kind in ("", "RSA ", "EC "))

_LEFT_OUT = "spec.admin.passwordSecretRef, left out,"

Object = dict[str, Any]
Place = tuple[str, str]


class Asked(msgspec.Struct, frozen=True):
    """One object that a field of the spec names, with the keys that it should have."""

    resource: meta.Resource
    name: str
    keys: tuple[str, ...]
    field: str
    administrator: bool = False  # it is OpenCGA's own password, which has a rule
    authority: bool = False  # it is a certificate
    pair: bool = False  # it is a certificate and its key
    called: str = ""  # among all that the spec names; empty: by its name


class Given(msgspec.Struct, frozen=True):
    """All that a spec names. Another spec is another: nothing that was read for it holds here."""

    place: Place
    asked: tuple[Asked, ...]


def given(obj: types.Community) -> Given:
    """What `Secrets` are asked by."""
    spec, admin = obj.spec, automation.admin_secret(obj.metadata.name, obj.spec)
    field = "spec.admin.passwordSecretRef" if spec.admin.password_secret_ref else _LEFT_OUT
    asked = [Asked(builtin.SECRET, admin.name, (admin.key,), field, administrator=True)]
    if ref := spec.database.credentials_secret_ref:
        keys = (ref.user_key, ref.password_key)
        asked.append(Asked(builtin.SECRET, ref.name, keys, "spec.database.credentialsSecretRef"))
    if found := automation.authority(spec):
        key = (automation.AUTHORITY_KEY,)
        asked.append(Asked(found.resource, found.name, key, found.field, authority=True, called=found.key))
    if name := automation.shown(spec):
        field = "spec.security.tls.certificateKeySecretRef"
        asked.append(Asked(builtin.SECRET, name, automation.CERTIFICATE_KEYS, field, pair=True))
    return Given(obj.metadata.key, tuple(asked))


class Secrets:
    """Those of all installations. `within` gives what acts in a namespace and nowhere else."""

    def __init__(self, world: kind.World, within: Callable[[str], kube_client.Client]) -> None:
        self._within = within
        self.source: source.Source[Given, SecretsSeen] = source.Source(
            "secrets", self._look, world.enqueue, every=EVERY, concurrency=32
        )

    def seen(self, asked: Given, reader: kind.Key) -> freshness.Observed[SecretsSeen]:
        """What there is to be known of them."""
        return self.source.follow(asked, reader)

    def forget(self, reader: kind.Key) -> None:
        """The installation is gone."""
        self.source.forget(reader)

    async def stop(self) -> None:
        """End all looking."""
        await self.source.stop()

    async def _look(self, asked: Given) -> SecretsSeen:
        revisions = {}
        for each in asked.asked:
            namespace, kind_ = asked.place[0], each.resource.kind
            found = await named_data.read(self._within(namespace), each.resource, namespace, each.name)
            if found is None:
                said = f"there is no {kind_} {each.name}, which {each.field} names"
                return SecretsSeen(said, f"make it with the key {' and '.join(each.keys)}, or correct {each.field}")
            if fault := _fault(each, found):
                return SecretsSeen(f"{kind_} {each.name} of {each.field}: {fault}", f"correct the {kind_}")
            revisions[each.called or each.name] = revision(found)
        return SecretsSeen(revisions=revisions)


def revision(found: Mapping[str, Any]) -> str:
    """By what it is known that what it holds has changed, or that it was made anew."""
    metadata = found["metadata"]
    return f"{metadata['uid']}/{named_data.changed(found) or metadata['resourceVersion']}"


def _fault(each: Asked, found: Object) -> str:
    texts = named_data.texts(each.resource, found)
    for key in each.keys:
        if wrong := named_data.fault(each.resource, found, key):
            return wrong
        text = texts[key]
        if not text.strip():
            return f"its key {key} is empty"
        if each.administrator and (fault := types.password_fault(text)):
            return f"{key}: {fault}"
        if each.pair and key.endswith(".key"):
            if not any(begin in text for begin in PLAIN_KEYS):
                return f"its key {key} has no private key that can be read without a password, in the form PEM"
        elif each.authority or each.pair:
            if not (BEGINS in text and ENDS in text):
                return f"its key {key} has no certificate: it must be of the form PEM, which begins with {BEGINS}"
        elif each.resource == builtin.SECRET and text != text.strip("\r\n"):
            return f"{key} ends with a line break, which would be taken for a part of it"
    return ""
