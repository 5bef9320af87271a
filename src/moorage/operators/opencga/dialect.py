"""How the product, its images and the agents are spoken to: every guess in one table that a user can override.

The original published no agent, hook or reconciler, so what these say to each other is taken from the operator that it
was derived from, and from the product itself. A field marked "guess" is in neither. The override is the mapping
`dialect` of the system's configuration (`systems.opencga.dialect` of the chart), with the names below in camel case
and only what differs:

    dialect:
      images: {server: registry.example/opencga, agent: "registry.example/agent:2"}
      ports: {rest: 8080}

Where a field of an answer is named several names may stand, with spaces between: the first that the answer has counts.
"""

from __future__ import annotations

import msgspec


class Images(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Where images are. The server's tag is the version of the spec."""

    server: str = "opencb/opencga-base"
    agent: str = "moorage.dev/opencga-agent:0.1.0"  # guess
    hook: str = "moorage.dev/opencga-hook:0.1.0"  # guess


class Ports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where servers and agents listen."""

    rest: int = 9090
    monitor: int = 9092
    agent: int = 5000


class Paths(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is asked by HTTP: of the REST server, of the MASTER's daemon (`monitor`), and of an agent (`health`)."""

    context: str = "/opencga"
    ping: str = "/webservices/rest/v2/meta/ping"
    monitor: str = "/monitor/admin/test"
    about: str = "/webservices/rest/v2/meta/about"
    status: str = "/webservices/rest/v2/meta/status"
    health: str = "/"  # guess: the agent's port serves its health file


class Container(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is inside the containers."""

    rest: str = "opencga-rest"
    master: str = "opencga-client"
    agent: str = "opencga-agent"
    hook: str = "opencga-posthook"
    user: int = 1001
    home: str = "/opt/opencga"
    tool: str = "/opt/opencga/bin/opencga-admin.sh"
    conf: str = "/opencga-conf"  # guess: the image's own, which they are laid over, stay to be seen
    data: str = "/data"
    hooks: str = "/hooks"
    agent_scripts: str = "/opt/scripts"
    socket: str = "control.sock"  # guess: of the hook, beside it
    hook_source: str = "/version-upgrade-hook"  # guess: where the hook's image has it
    probe_source: str = "/readinessprobe"  # guess
    hook_name: str = "version-upgrade"
    probe_name: str = "readinessprobe"
    configuration: str = "/var/lib/automation/config"
    configuration_file: str = "cluster-config.json"
    credentials: str = "/var/lib/automation/credentials"  # guess
    server_health: str = "/healthstatus"
    agent_health: str = "/var/log/opencga-mms-automation/healthstatus"
    health_file: str = "agent-health-status.json"
    download_base: str = "/var/lib/opencga-automation"


class Health(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of an agent's answer beside those of the health file, which stand. The MASTER's agent tells `catalog`."""

    catalog: str = "catalog"  # guess
    installed: str = "installed"  # guess
    version: str = "version"  # guess


class About(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields and words of the REST server's answers, inside responses[0].results[0]."""

    version: str = "Version"
    failing: str = "KO"
    checks: str = "CatalogMongoDB Solr VariantStorage"


class Heap(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How much of a container's memory limit the JVM gets."""

    percent: int = 70  # guess
    least_mebibytes: int = 512  # guess


class Moves(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Moves of an agent's plan by which is told what it is doing; by these names an error is the catalog's."""

    install: str = "CatalogInstall"  # guess
    backup: str = "Backup"  # guess
    migrate: str = "Migrate"  # guess
    held: str = "Held"  # guess: a step of that: a person must decide
    stop: str = "WaitStopped"  # guess: a step of that: REST servers are to be stopped
    stopped: str = "WaitMigrated"  # guess: a step of that of a REST server's agent: it is stopped


class Dialect(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """All of it."""

    cluster_domain: str = "cluster.local"
    images: Images = Images()
    ports: Ports = Ports()
    paths: Paths = Paths()
    container: Container = Container()
    health: Health = Health()
    about: About = About()
    heap: Heap = Heap()
    moves: Moves = Moves()
