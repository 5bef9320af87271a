"""The definition of a Runtime, what its spec comes to, and the chart's values that are made of it."""

from __future__ import annotations

import pathlib

import msgspec
import pytest
import yaml

from moorage.helm.runs import redaction
from moorage.operators.kre import kinds
from moorage.operators.kre.runtime import build
from moorage.operators.kre.runtime import types as runtime_types

from . import schemas

EXAMPLE = pathlib.Path(__file__).resolve().parents[4] / "examples/kre/runtime.yaml"
SAMPLE = yaml.safe_dump(yaml.safe_load(EXAMPLE.read_text())["spec"])
CHART = """\
developmentMode: false
entrypointTLS: true
runtime: {host: local}
sharedStorageClass: shared
nats_streaming: {replicas: 1, storage: {className: standard, size: 1Gi}}
mongo:
  replicas: 3
  replicaSetName: rs0
  image: {tag: "4.2"}
  installImage: {tag: "0.8"}
  securityContext: {enabled: false}
  persistentVolume: {enabled: true, storageClass: fast, size: 5Gi}
  auth: {enabled: true, key: k, adminUser: admin, adminPassword: "123456"}
  extraLabels: {kre-app: kre-mongo}
minio:
  image: {repository: tetrash/minio-multiarch, tag: latest}
  credentials: {accessKey: admin, secretKey: "12345678"}
  storage: {size: 1Gi}
chronograf:
  persistence: {enabled: false, storageClass: standard, accessMode: ReadWriteOnce, size: 2Gi}
influxdb:
  image: {tag: 1.8.1}
  config: {http: {enabled: true, flux-enabled: true, auth-enabled: false}}
  persistence: {enabled: true, storageClass: standard, accessMode: ReadWriteOnce, size: 10Gi}
  initScripts: {enabled: true, scripts: {init.iql: CREATE DATABASE "kre"}}
"""


def runtime(text: str) -> runtime_types.Settings:
    spec = msgspec.convert(yaml.safe_load(text), runtime_types.RuntimeSpec)
    return runtime_types.settings(spec, "demo")


@pytest.mark.parametrize("text", [SAMPLE, CHART], ids=["sample", "chart"])
def test_both_spellings_are_taken_whole(text: str) -> None:
    """The shipped sample's, which the original ignored silently, and those of the original's chart."""
    assert [] == schemas.unknown(yaml.safe_load(text), schemas.of(runtime_types.definition()))


def test_both_spellings_come_to_the_same_settings() -> None:
    """Whichever the author knew."""
    sample, chart = runtime(SAMPLE), runtime(CHART)

    assert ("runtime.local", 2) == (sample.host, sample.nats)
    assert ("local", 1) == (chart.host, chart.nats)
    kept = runtime_types.Kept
    assert kept("2Gi", "standard") == sample.volumes["mongo"]
    assert kept("1Gi", "standard") == sample.volumes["chronograf"]
    assert kept("5Gi", "fast") == chart.volumes["mongo"]
    assert kept("1Gi", "shared") == chart.volumes["minio"]
    assert kept("2Gi", "standard", enabled=False) == chart.volumes["chronograf"]


def test_what_is_not_said_has_a_default() -> None:
    """A Runtime without a spec is one."""
    found = runtime("{}")

    assert ("", 1, ()) == (found.host, found.nats, found.plain)
    assert {server: size for server, (_, size) in runtime_types.VOLUMES.items()} == {
        server: each.size for server, each in found.volumes.items()
    }
    assert "demo.example.com" == runtime("domain: example.com").host


def test_plain_passwords_are_told_by_their_fields() -> None:
    """They work, and a Secret is better."""
    assert ("spec.mongo.credentials", "spec.minio.credentials") == runtime(SAMPLE).plain
    assert ("spec.mongo.auth.adminPassword", "spec.minio.credentials") == runtime(CHART).plain


def spec_of(text: str) -> runtime_types.RuntimeSpec:
    return msgspec.convert(yaml.safe_load(text), runtime_types.RuntimeSpec)


@pytest.mark.parametrize("text", [SAMPLE, CHART], ids=["sample", "chart"])
def test_no_password_is_among_the_values(text: str) -> None:
    """They are in a Secret, which the chart names: a release's record is read by more people."""
    spec = spec_of(text)
    given = build.chart_values("demo", spec, {}, {})

    assert {"mongoUser", "mongoPassword", "minioAccessKey", "minioSecretKey"} == runtime_types.in_clear(spec).keys()
    assert b"123456" not in given.text
    assert {"secretName": kinds.IN_USE} == given["credentials"]


def test_names_of_secrets_are_told_as_they_are() -> None:
    """What looks like a secret among the values is taken out of helm's words, and with it what is missing."""
    digests = {"minio": "0123456789abcdef", "mongoExpress": "fedcba9876543210"}
    given = build.chart_values("demo", spec_of("{ingress: {tlsSecret: my-certificate}}"), {}, {}, digests=digests)

    assert {} == redaction.of_values(given)


def test_fields_are_over_further_values_and_those_over_what_holds_for_all() -> None:
    """So that how many NATS servers there are can't be said past the steps that watch over it."""
    further = {
        "nats": {"maxPayload": "2Mi", "replicas": 5, "volume": {"size": "9Gi"}},
        "influxdb": {"enabled": False},
        "chronograf": {"enabled": True},
    }
    spec = spec_of(yaml.safe_dump({"influxdb": {"enabled": True}, "values": further}))
    known = {"influxdb": {"enabled": False}, "chronograf": {"enabled": False}, "imagePrefix": "team"}
    given = build.chart_values("demo", spec, known, {})

    assert (True, True, "team") == (given["influxdb"]["enabled"], given["chronograf"]["enabled"], given["imagePrefix"])
    assert {"replicas": 1, "maxPayload": "2Mi"} == {key: given["nats"][key] for key in ("replicas", "maxPayload")}
    assert "1Gi" == given["nats"]["volume"]["size"]
    assert given["nats"] == build.chart_values("demo", spec_of("{values: {nats: {maxPayload: 2Mi}}}"), {}, {})["nats"]
    assert False is build.chart_values("demo", spec_of("{}"), known, {})["influxdb"]["enabled"]


def test_a_template_keeps_the_size_that_it_was_made_with() -> None:
    """It can't be changed; the volume grows by its claim."""
    given = build.chart_values("demo", spec_of(SAMPLE), {}, {"mongo": "1Gi"})

    assert ("1Gi", "2Gi") == (given["mongo"]["volume"]["size"], given["nats"]["volume"]["size"])


def test_a_host_makes_an_ingress() -> None:
    """And none does not."""
    tls = build.chart_values("demo", spec_of("{entrypointTLS: true, domain: example.com}"), {}, {})["ingress"]

    assert (True, "demo.example.com", True) == (tls["enabled"], tls["host"], tls["tls"]["enabled"])
    assert False is build.chart_values("demo", spec_of("{}"), {}, {})["ingress"]["enabled"]


@pytest.mark.parametrize("service", ["", "demo-active-entrypoint"])
def test_the_ingress_leads_to_what_is_published(service: str) -> None:
    """Whatever further values say; without a host there is no Ingress that could."""
    further = "{domain: example.com, values: {ingress: {published: another}}}"
    led = build.chart_values("demo", spec_of(further), {}, {}, service)["ingress"]

    assert service == led["published"]
    assert build.chart_values("demo", spec_of("{}"), {}, {}) == build.chart_values(
        "demo", spec_of("{}"), {}, {}, service
    )
