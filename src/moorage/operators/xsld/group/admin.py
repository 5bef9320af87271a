"""The admin API of a member: HTTPS with Basic authentication, JSON both ways. The only place that knows HTTP to it.

Nothing here retries or decides. What can go wrong is `AdminError`, which says what kind of fault it was and whether the
request may have been carried out. Credentials never appear in an error or a log.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
import msgspec

from . import answers, dialect

REQUEST_LIMIT = 5.0
"""Seconds that one request to one member may take."""

ANSWER_LIMIT = 4 * 2**20
"""Bytes of one answer. A member is whatever image its owner runs, and must not fill this process's memory."""

_STATUS_FAULTS = {
    401: answers.Fault.UNAUTHORIZED,
    403: answers.Fault.UNAUTHORIZED,
    502: answers.Fault.UNAVAILABLE,
    503: answers.Fault.UNAVAILABLE,
    504: answers.Fault.UNAVAILABLE,
}


class Credentials(msgspec.Struct, frozen=True):
    """The administrator's password and the group's secret key. Never part of an observation."""

    admin_pwd: str
    secret_key: str

    def __repr__(self) -> str:
        return "Credentials(...)"


class Target(msgspec.Struct, frozen=True):
    """One member to be asked."""

    pod: str
    uid: str
    address: str  # IP
    host: str  # the name that its certificate should bear


class AdminError(Exception):
    """A request failed. `status` is HTTP's, 0 without an answer; `maybe` when it may have been carried out."""

    def __init__(self, fault: answers.Fault | None, words: str, *, status: int = 0, maybe: bool = False) -> None:
        super().__init__(words)
        self.fault, self.words, self.status, self.maybe = fault, words, status, maybe


def tls(ca: bytes | None, *, verify: bool) -> ssl.SSLContext:
    """The context for one cache. Raises ValueError for a certificate that is none."""
    try:
        context = ssl.create_default_context(cadata=ca.decode() if ca else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError("ca.crt holds no certificate in PEM form") from error
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Admin:
    """Requests to the members of one cache."""

    def __init__(self, said: dialect.Dialect, credentials: Credentials, context: ssl.SSLContext) -> None:
        self._said = said
        self._credentials, self._context = credentials, context
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise AdminError(answers.Fault.UNREACHABLE, "the credentials have changed, or the cache is gone")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # a member that was replaced must not be spoken to through the connection of its predecessor
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60, ssl=self._context),
                headers={
                    "Accept-Encoding": "identity",
                    "Authorization": aiohttp.encode_basic_auth(self._said.user, self._credentials.admin_pwd, "utf-8"),
                },
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # nobody asks for it, and a little can hide much
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=REQUEST_LIMIT),
            )
        return self._session

    @property
    def secret_key(self) -> str:
        """For the one request that needs it."""
        return self._credentials.secret_key

    async def call(self, target: Target, method: str, path: str, body: Any = None) -> Any:
        """One request; the decoded answer, None for an empty one. Raises AdminError."""
        where = f"[{target.address}]" if ":" in target.address else target.address
        url = f"https://{where}:{self._said.ports.admin}{self._said.paths.base}{path}"
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if data is not None else {}
        try:
            async with self._open().request(
                method, url, data=data, headers=headers, server_hostname=target.host, allow_redirects=False
            ) as answer:
                text = await _read(answer.content)
        except TimeoutError as error:
            raise AdminError(answers.Fault.TIMEOUT, f"no answer within {REQUEST_LIMIT:g} s", maybe=True) from error
        except aiohttp.ClientConnectorCertificateError as error:
            said = f"its certificate is not one that spec.tls asks for: {_why(error.certificate_error)}"
            raise AdminError(answers.Fault.UNREACHABLE, said) from error
        except (aiohttp.ClientConnectorError, aiohttp.ClientConnectorSSLError) as error:
            raise AdminError(answers.Fault.UNREACHABLE, f"no connection: {_why(error)}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise AdminError(answers.Fault.UNREACHABLE, f"the connection broke: {_why(error)}", maybe=True) from error
        if answer.status >= 300:
            fault = _STATUS_FAULTS.get(answer.status)
            words = f"{method} {path}: {answer.status} {_words(text)}"
            # a gateway between may have passed the request on before it gave up
            raise AdminError(fault, words, status=answer.status, maybe=answer.status in (502, 504))
        if not text.strip():
            return None
        try:
            return msgspec.json.decode(text)
        except (ValueError, RecursionError):  # not JSON, not UTF-8, or too deep
            return text.decode(errors="replace")

    async def close(self) -> None:
        """Close all connections; who still asks is refused."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    # --- what is asked again and again ---------------------------------------------------------------------------

    async def answer(self, target: Target) -> answers.Answer:
        """What this member says of its group and its tasks. Never raises but when cancelled."""

        def failed(fault: answers.Fault, words: str) -> answers.Answer:
            return answers.Answer(target.pod, target.uid, target.address, fault, words)

        paths = self._said.paths
        try:
            tasks = await self.call(target, "GET", paths.tasks)
            group = await self.call(target, "GET", paths.group)
        except AdminError as error:
            return failed(error.fault or answers.Fault.MALFORMED, error.words)
        try:
            members = answers.members(group, self._said.member)
        except ValueError as error:
            return failed(answers.Fault.MALFORMED, str(error))
        listed = answers.tasks(tasks, self._said.task)
        return answers.Answer(target.pod, target.uid, target.address, members=members, tasks=listed)

    async def followed(self, target: Target, answer: answers.Answer, number: int) -> answers.Answer:
        """The answer with the one task as its own status call tells of it, which is the vendor's word on the matter.

        While replication starts that call fails for a moment; then the list's word stands.
        """
        try:
            said = await self.call(target, "GET", self._said.paths.task_status.format(id=number))
        except AdminError:
            return answer
        text = said if isinstance(said, str) else msgspec.json.encode(said).decode()
        phase = answers.task_phase(text, self._said)
        if phase is None:
            return answer
        known = next((task for task in answer.tasks if task.id == number), answers.Task(number, "", "", phase))
        others = tuple(task for task in answer.tasks if task.id != number)
        percent = answers.progress(said, self._said.task)
        told = msgspec.structs.replace(known, phase=phase, progress=known.progress if percent is None else percent)
        return msgspec.structs.replace(answer, tasks=(*others, told))

    async def polled(
        self, targets: list[Target], *, follow: tuple[str, int] | None, remembered: list[str], primary: str
    ) -> answers.Polled:
        """Ask everybody at once, then the group's primary for grids and templates.

        `follow` is a task by its member and id, whose own status is asked too.
        """

        async def one(target: Target) -> answers.Answer:
            answer = await self.answer(target)
            if follow is not None and follow[0] == target.pod and answer.fault is None:
                return await self.followed(target, answer, follow[1])
            return answer

        told = tuple(await asyncio.gather(*(one(target) for target in targets)))
        polled = answers.Polled(told)
        group = answers.group(polled, remembered=remembered, primary=primary)
        if group is None:
            return polled
        chief = group.primary
        asked = next((t for t in targets if chief and t.pod == chief.name and polled.answer(t.pod)), None)
        asked = asked or next(t for t in targets if t.pod == group.teller)
        said = self._said
        try:
            grids = answers.grids(await self.call(asked, "GET", said.paths.grids), said.grid)
            templates = answers.template_names(await self.call(asked, "GET", said.paths.templates), said.template)
        except (AdminError, ValueError):
            return polled
        return msgspec.structs.replace(polled, primary=asked.pod, grids=grids, templates=templates)


async def _read(content: aiohttp.StreamReader) -> bytes:
    """The whole answer. Raises AdminError when it is too long."""
    text = bytearray()
    async for part in content.iter_any():
        text += part
        if len(text) > ANSWER_LIMIT:
            raise AdminError(answers.Fault.MALFORMED, f"an answer of more than {ANSWER_LIMIT >> 20} MiB", maybe=True)
    return bytes(text)


def _why(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__


def _words(text: bytes) -> str:
    try:
        said = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and "error" in said:
        return str(said["error"])[:500]
    return " ".join(text.decode(errors="replace").split())[:200]
