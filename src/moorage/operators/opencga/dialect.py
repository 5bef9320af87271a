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

from moorage.operators.dialect_fields import Count, Port, Word


class Images(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Where images are. The server's tag is the version of the spec."""

    server: Word = "opencb/opencga-base"
    agent: Word = "moorage.dev/opencga-agent:0.1.0"  # guess
    hook: Word = "moorage.dev/opencga-hook:0.1.0"  # guess


class Ports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where servers and agents listen."""

    rest: Port = 9090
    monitor: Port = 9092
    agent: Port = 5000


class Paths(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is asked by HTTP: of the REST server, of the MASTER's daemon (`monitor`), and of an agent (`health`)."""

    context: Word = "/opencga"
    ping: Word = "/webservices/rest/v2/meta/ping"
    monitor: Word = "/monitor/admin/test"
    about: Word = "/webservices/rest/v2/meta/about"
    status: Word = "/webservices/rest/v2/meta/status"
    health: Word = "/"  # guess: the agent's port serves its health file


class Container(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is inside the containers."""

    rest: Word = "opencga-rest"
    master: Word = "opencga-client"
    agent: Word = "opencga-agent"
    hook: Word = "opencga-posthook"
    user: Count = 1001
    home: Word = "/opt/opencga"
    people: Word = "/people"  # guess: a folder that the image does not have; where tools keep sessions of people
    tool: Word = "/opt/opencga/bin/opencga-admin.sh"
    conf: Word = "/opencga-conf"  # guess: the image's own, which they are laid over, stay to be seen
    data: Word = "/data"
    hooks: Word = "/hooks"
    agent_scripts: Word = "/opt/scripts"
    socket: Word = "control.sock"  # guess: of the hook, beside it
    hook_source: Word = "/version-upgrade-hook"  # guess: where the hook's image has it
    probe_source: Word = "/readinessprobe"  # guess
    hook_name: Word = "version-upgrade"
    probe_name: Word = "readinessprobe"
    configuration: Word = "/var/lib/automation/config"
    configuration_file: Word = "cluster-config.json"
    credentials: Word = "/var/lib/automation/credentials"  # guess
    server_health: Word = "/healthstatus"
    agent_health: Word = "/var/log/opencga-mms-automation/healthstatus"
    health_file: Word = "agent-health-status.json"
    download_base: Word = "/var/lib/opencga-automation"


class Health(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of an agent's answer beside those of the health file, which stand. The MASTER's agent tells `catalog`."""

    catalog: Word = "catalog"  # guess
    installed: Word = "installed"  # guess
    version: Word = "version"  # guess


class About(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields and words of the REST server's answers, inside responses[0].results[0]."""

    version: Word = "Version"
    failing: Word = "KO"
    checks: Word = "CatalogMongoDB Solr VariantStorage"


class Heap(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How much of a container's memory limit the JVM gets."""

    percent: Count = 70  # guess
    least_mebibytes: Count = 512  # guess


class Moves(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Moves of an agent's plan by which is told what it is doing; by these names an error is the catalog's."""

    install: Word = "CatalogInstall"  # guess
    backup: Word = "Backup"  # guess
    migrate: Word = "Migrate"  # guess
    held: Word = "Held"  # guess: a step of that: a person must decide
    stop: Word = "WaitStopped"  # guess: a step of that: REST servers are to be stopped
    stopped: Word = "WaitMigrated"  # guess: a step of that of a REST server's agent: it is stopped


class Dialect(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """All of it."""

    cluster_domain: Word = "cluster.local"
    images: Images = Images()
    ports: Ports = Ports()
    paths: Paths = Paths()
    container: Container = Container()
    health: Health = Health()
    about: About = About()
    heap: Heap = Heap()
    moves: Moves = Moves()
