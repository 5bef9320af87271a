"""An operator as a process of its own, with a lease, over the kinds of a scenario: what can be stopped and killed.

    python -m tests.api.faults.process SCENARIO.yaml NAMESPACE KUBECONFIG FOLDER [SOCKET]

SOCKET: who answers what it runs in pods, in place of their kubelets; see `pod_exec`.
Ends with 1 when it has lost its lease.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import uuid
from pathlib import Path

from moorage.helm.runs import binary
from moorage.kube import client as kube_client
from moorage.kube import credentials
from moorage.kube.http import transport
from moorage.operators import system
from moorage.runtime import manager
from tests.api.runtime import operate

from . import faulty, pod_exec, scenario


async def _operate(path: Path, namespace: str, kubeconfig: Path, folder: Path, socket: Path | None = None) -> bool:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    access = binary.KubeAccess(kubeconfig=str(kubeconfig))
    around = system.Environment("moorage-system", folder, Path(shutil.which("helm") or "helm"), access, grace=0.5)
    made = scenario.kinds(scenario.load(path, namespace), namespace, around)
    settings = manager.Settings(
        identity=f"process-{uuid.uuid4().hex[:8]}", namespace=namespace, timing=operate.TIMING, port=0, backoff=0.05
    )
    wire = transport.HttpTransport(await credentials.from_kubeconfig(kubeconfig))
    asked: transport.Transport = wire
    if socket is not None:
        asked = played = faulty.Wire(wire)
        played.execs = pod_exec.Elsewhere(socket)
    try:
        return await manager.Manager(kube_client.Client(asked), made, settings).run(stop)
    finally:
        await wire.close()


if __name__ == "__main__":
    sys.exit(not asyncio.run(_operate(Path(sys.argv[1]), sys.argv[2], *map(Path, sys.argv[3:]))))
