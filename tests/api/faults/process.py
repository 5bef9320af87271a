"""An operator as a process of its own, with a lease, over the kinds of a scenario: what can be stopped and killed.

    python -m tests.api.faults.process SCENARIO.yaml NAMESPACE KUBECONFIG FOLDER

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

from . import scenario


async def _operate(path: Path, namespace: str, kubeconfig: Path, folder: Path) -> bool:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    access = binary.KubeAccess(kubeconfig=str(kubeconfig))
    around = system.Environment("moorage-system", folder, Path(shutil.which("helm") or "helm"), access, grace=0.5)
    made = scenario.kinds(scenario.load(path, namespace), namespace, around)
    settings = manager.Settings(
        identity=f"process-{uuid.uuid4().hex[:8]}", namespace=namespace, timing=operate.TIMING, port=0, backoff=0.05
    )
    wire = transport.HttpTransport(await credentials.from_kubeconfig(kubeconfig))
    try:
        return await manager.Manager(kube_client.Client(wire), made, settings).run(stop)
    finally:
        await wire.close()


if __name__ == "__main__":
    sys.exit(not asyncio.run(_operate(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
