"""The files that a version's containers find: what the log shipper, the web server and the entrypoint read. Pure."""

from __future__ import annotations

import json
import textwrap

from moorage.operators.kre import config, kinds, names
from moorage.operators.kre.krt import model

from . import types

NATS_HOST, NATS_PORT = kinds.workload("nats"), 4222
PROTO = "public_input.proto"
"""The file under which the service is found, where it does not come from elsewhere under a name of its own."""

_WEB = """\
server {
  listen 8080;
  location / {
    root /proto;
    autoindex on;
  }
}
"""
_PARSERS = """\
[PARSER]
    Name    multiline
    Format  regex
    Regex   ^(?<time>\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\S*) (?<level>\\w+) (?<message>.*)
"""


def texts(of: names.Names, spec: types.RuntimeVersionSpec, images: config.Images) -> dict[str, str]:
    """By the names of the files."""
    found = {"default.conf": _WEB, "nats_subject.json": subjects(of, spec.graph)}
    if images.fluent_bit:
        found |= {"parsers.conf": _PARSERS, "fluent-bit.conf": _shipper(of)}
    if spec.entrypoint.proto.inline is not None:
        found[PROTO] = spec.entrypoint.proto.inline
    return found


def subjects(of: names.Names, graph: tuple[model.Workflow, ...]) -> str:
    """By each method: where the entrypoint writes calls to, and where it reads the answers."""
    found = {
        each.entrypoint: {
            "stream": of.stream(each.entrypoint),
            "input_subject": of.subject(each.entrypoint, each.exitpoint),
            "output_subject": of.subject(each.entrypoint, model.ENTRYPOINT),
        }
        for each in graph
    }
    return json.dumps(found, indent=2, sort_keys=True) + "\n"


def _shipper(of: names.Names) -> str:
    tag = f"mongo_writer_logs.{of.runtime}"
    added = {
        "versionId": "KRT_VERSION_ID",
        "versionName": "KRT_VERSION",
        "nodeName": "KRT_NODE_NAME",
        "nodeId": "KRT_NODE_ID",
        "workflowId": "KRT_WORKFLOW_ID",
        "workflowName": "KRT_WORKFLOW_NAME",
    }
    records = "\n".join(f"    Record  {name} ${{{variable}}}" for name, variable in added.items())
    text = textwrap.dedent(
        f"""\
        [SERVICE]
            Flush         1
            Parsers_File  /fluent-bit/etc/parsers.conf
        [INPUT]
            Name              tail
            Path              /var/log/app/*.log
            Tag               {tag}
            Multiline         On
            Parser_Firstline  multiline
            Mem_Buf_Limit     5MB
        [FILTER]
            Name    record_modifier
            Match   *
        @records
        [OUTPUT]
            Name   stdout
            Match  *
        [OUTPUT]
            Name   nats
            Match  *
            Host   {NATS_HOST}
            Port   {NATS_PORT}
        """
    )
    return text.replace("@records", records)
