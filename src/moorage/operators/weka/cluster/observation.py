"""Everything that is decided on for a WekaCluster. Pure, and without secrets."""

from __future__ import annotations

import functools

import msgspec

from moorage.children import apply, parts
from moorage.operators.weka import allocation, answers, config, place
from moorage.operators.weka.container import types as container_types
from moorage.runtime import freshness

from . import types


class ContainerSeen(msgspec.Struct, frozen=True):
    """One WekaContainer of the cluster."""

    name: str
    uid: str
    role: str
    number: int
    spec: container_types.WekaContainerSpec
    status: container_types.WekaContainerStatus
    deleting: bool = False
    down: bool = False  # it says that it is not Ready
    since: float = 0.0  # epoch seconds, since when its steps stand where they do; 0: they don't
    child: apply.Child = apply.Child()  # beside what is wanted of it without a restart
    revision: str = ""  # of its spec
    wanted: str = ""  # revision of the spec that it is to get

    @property
    def runs(self) -> bool:
        """Its agent runs, so that it can be part of a cluster."""
        return self.status.status in ("Running", "DrivesAdding", "Degraded") and bool(self.status.management_ip)

    @property
    def settled(self) -> bool:
        """It came back after its last change: it is ready, and ran with the image that its spec has."""
        return self.status.status == "Running" and self.status.last_applied_image == self.spec.image


class LoginSeen(msgspec.Struct, frozen=True):
    """The Secrets with the logins; none of their values."""

    operator: str = ""  # uid
    user: str = ""  # uid


class Objects(msgspec.Struct, frozen=True):
    """What the watches have of the cluster."""

    containers: tuple[ContainerSeen, ...] = ()
    bodies: dict[str, parts.Desired] = {}  # by container: as it is to be, but for what needs a restart
    login: LoginSeen = LoginSeen()
    ranges: tuple[allocation.Span, ...] = ()  # ports of other clusters
    scripts: str = ""  # uid of the ConfigMap with what runs in pods


class Seen(place.Placed, frozen=True, kw_only=True, dict=True):
    """The observation."""

    spec: types.WekaClusterSpec
    status: types.WekaClusterStatus
    replace: config.Replace = config.Replace()
    objects: freshness.Observed[Objects]
    cluster: freshness.Observed[answers.Cluster]

    @property
    def there(self) -> Objects:
        """The objects; only for steps after they are known."""
        found = freshness.value_of(self.objects)
        if found is None:
            raise ValueError("the objects of the cluster are not known yet")
        return found

    @functools.cached_property
    def template(self) -> types.Template:
        """What the template comes to."""
        return types.template(self.spec)

    @property
    def known(self) -> answers.Cluster | None:
        """The cluster by its own word, however old; None: it was never heard."""
        found = freshness.value_of(self.cluster)
        return found if found is not None and found.guid else None

    @property
    def guid(self) -> str:
        """By which the product knows it; empty: it is not formed, as far as anybody says."""
        return self.known.guid if self.known else self.status.cluster_id

    @property
    def formed(self) -> bool:
        """Whether there is a cluster, by anybody's word: its own, its containers', or what status remembers."""
        return bool(self.guid) or any(it.status.cluster_id for it in self.there.containers)

    def of(self, role: str, *, leaving: bool = False) -> tuple[ContainerSeen, ...]:
        """The containers of that role that stay, or `leaving` all of them, by number."""
        mine = (it for it in self.there.containers if it.role == role and (leaving or not it.deleting))
        return tuple(sorted(mine, key=lambda it: it.number))

    def up(self, it: ContainerSeen) -> bool:
        """Whether the cluster lists that container as up."""
        member = self.known.member(it.status.container_id) if self.known else None
        words = self.dialect.words
        return member is not None and words.has(words.up, member.status)

    def lists(self, within: str) -> bool:
        """Whether the cluster lists as up whom it calls by that name."""
        words, members = self.dialect.words, self.known.members if self.known else ()
        return any(it.name == within and words.has(words.up, it.status) for it in members)

    def wanted(self, role: str) -> int:
        """How many containers of that role there are to be now: few until the cluster is formed."""
        count = self.template.containers[role]
        return count if self.formed else min(count, self.dialect.sizes.most_at_first)
