"""What the operator may do, asked of the API server in the installed state, and what admission forbids it."""

from __future__ import annotations

import pytest

from . import conftest, tools

TENANT, OTHER, OWN, ACCOUNTS = "TENANT", "OTHER", "OWN", "ACCOUNTS"
RIGHTS = [
    # verb, resource, where, allowed
    ("watch", "collectors.example.com", "", True),
    ("patch", "collectors.example.com", "", True),
    ("patch", "collectors.example.com/status", "", True),
    ("create", "collectors.example.com", "", False),
    ("delete", "collectors.example.com", "", False),
    ("create", "namespaces", "", True),  # which: admission says
    ("patch", "namespaces", "", False),
    ("delete", "namespaces", "", False),
    ("create", "rolebindings", "", True),  # where and to whom: admission says
    ("delete", "rolebindings", OTHER, False),
    ("delete", "rolebindings/moorage-collector", OTHER, True),
    ("create", "clusterrolebindings", "", False),
    ("create", "clusterroles", "", False),
    ("patch", "clusterroles", "", False),
    ("escalate", "clusterroles", "", False),
    ("bind", "clusterroles", "", False),
    ("bind", "clusterroles/cluster-admin", "", False),
    ("bind", "clusterroles/TENANT-ROLE", "", True),
    ("impersonate", "users", "", False),
    ("get", "nodes", "", False),
    ("patch", "customresourcedefinitions", "", False),
    ("patch", "validatingadmissionpolicies", "", False),
    ("get", "secrets", "", False),
    ("list", "secrets", "", False),
    ("get", "secrets", OTHER, False),
    ("get", "secrets", "kube-system", False),
    ("list", "secrets", OWN, False),
    ("get", "secrets/some-other", OWN, False),
    ("update", "leases/moorage", OWN, True),
    ("update", "leases/other", OWN, False),
    ("update", "deployments", OWN, False),
    ("impersonate", "serviceaccounts", "", False),
    ("impersonate", "serviceaccounts", ACCOUNTS, True),
    ("create", "serviceaccounts/token", ACCOUNTS, False),
    ("get", "secrets", TENANT, False),
    ("create", "deployments", TENANT, False),
    ("get", "pods", TENANT, False),
    ("create", "pods", TENANT, False),
    ("create", "pods/exec", TENANT, False),
    ("delete", "pods", TENANT, False),
    ("create", "roles", TENANT, False),
    ("create", "serviceaccounts/token", TENANT, False),
    ("create", "deployments", OTHER, False),
    ("get", "pods", OTHER, False),
]
RIGHTS_OF_THE_TENANT_S_ACCOUNT = [
    ("get", "secrets", TENANT, True),
    ("create", "deployments", TENANT, True),
    ("delete", "persistentvolumeclaims", TENANT, True),
    ("get", "pods/log", TENANT, True),
    ("create", "pods", TENANT, False),
    ("create", "pods/exec", TENANT, False),
    ("delete", "pods", TENANT, False),
    ("create", "roles", TENANT, False),
    ("create", "serviceaccounts/token", TENANT, False),
    ("get", "secrets", OTHER, False),
    ("get", "secrets", OWN, False),
    ("create", "deployments", OTHER, False),
    ("get", "pods", OTHER, False),
    ("get", "configmaps", "", False),
    ("get", "namespaces", "", False),
    ("get", "collectors.example.com", "", False),
    ("create", "rolebindings", TENANT, False),
    ("impersonate", "serviceaccounts", ACCOUNTS, False),
]


class Operator:
    """The operator's own account and those of namespaces, used through impersonation."""

    def __init__(self, cluster: tools.Cluster, account: str) -> None:
        self._cluster, self.account = cluster, account
        self.accounts = "moorage-accounts"

    def of(self, namespace: str) -> str:
        """The account by which it reaches a tenant's namespace."""
        return f"system:serviceaccount:{self.accounts}:collector.{namespace}"

    def can(self, verb: str, resource: str, namespace: str = "", *, user: str = "") -> bool:
        """`kubectl auth can-i`; without a namespace: in all of them; of the operator itself unless a user is given."""
        kind, _, name = resource.partition("/")
        what = [kind, f"--subresource={name}"] if name in ("status", "log", "exec", "token") else [resource]
        where = ["-n", namespace] if namespace else ["--all-namespaces"]
        out = self._cluster.kubectl("auth", "can-i", verb, *what, *where, f"--as={user or self.account}", check=False)
        return out.split()[-1] == "yes" if "yes" in out else False

    def try_to(self, *command: str) -> str:
        """Try a kubectl command that must be refused; returns the words."""
        try:
            self._cluster.kubectl(*command, f"--as={self.account}")
        except tools.Failed as error:
            return str(error)
        raise AssertionError(f"allowed: {' '.join(command)}")


@pytest.fixture
def operator(moorage: tools.Cluster, account: str) -> Operator:
    """Who is asked about."""
    return Operator(moorage, account)


@pytest.fixture
def tenant_role(moorage: tools.Cluster) -> str:
    """The ClusterRole that holds in tenants' namespaces."""
    names = moorage.kubectl("get", "clusterroles", "-o", "name").split()
    return next(name.partition("/")[2] for name in names if "moorage" in name and "tenant" in name)


def test_it_may_do_what_it_needs_and_no_more(
    collector: conftest.Make, operator: Operator, tenant_role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of rights, as `kubectl auth can-i` says it."""
    one = collector(chart="plain", cluster="registry")
    one.wait_ready()
    places = {TENANT: one.tenant, OTHER: "default", OWN: tools.NAMESPACE, ACCOUNTS: operator.accounts}
    wrong, table = [], []
    for user, rows in ((operator.account, RIGHTS), (operator.of(one.tenant), RIGHTS_OF_THE_TENANT_S_ACCOUNT)):
        table.append(user)
        for verb, resource, where, allowed in rows:
            what = resource.replace("TENANT-ROLE", tenant_role)
            found = operator.can(verb, what, places.get(where, where), user=user)
            table.append(f"{'yes' if found else 'no ':3} {verb:12} {resource:40} {where or 'everywhere'}")
            if found != allowed:
                wrong.append(f"{user}: {table[-1]}")
    with capsys.disabled():
        print("\n" + "\n".join(table))
    assert [] == wrong


def test_secrets_are_readable_by_the_accounts_of_admitted_namespaces_alone(
    collector: conftest.Make, operator: Operator, moorage: tools.Cluster
) -> None:
    """And after the last Collector of a tenant, in its namespace no more."""
    first, second = collector(chart="plain", cluster="registry"), collector(chart="plain", cluster="registry")
    first.wait_ready()
    second.wait_ready()
    everywhere = [each["metadata"]["name"] for each in moorage.items("namespaces")]

    readable = {name for name in everywhere if operator.can("get", "secrets", name, user=operator.of(name))}
    crossed = [name for name in everywhere if operator.can("get", "secrets", name, user=operator.of(f"{name}-b"))]
    bound = {
        each["metadata"]["namespace"]
        for each in moorage.items("rolebindings", "-A", "--field-selector=metadata.name=moorage-collector")
    }

    assert readable == bound
    assert {first.tenant, second.tenant} <= readable
    assert [] == crossed
    assert not operator.can("get", "secrets", second.tenant, user=operator.of(first.tenant))
    assert not any(operator.can("get", "secrets", name) for name in readable)
    assert "forbidden" in operator.try_to("get", "secrets", "-A").lower()

    first.delete()

    assert not moorage.get("rolebinding", "moorage-collector", "-n", first.tenant)

    def first_reads() -> bool:
        return operator.can("get", "secrets", first.tenant, user=operator.of(first.tenant))

    tools.wait("its rights end, as the API server's authorizer hears a moment later", lambda: not first_reads())
    assert operator.can("get", "secrets", second.tenant, user=operator.of(second.tenant))


def test_admission_confines_what_rbac_can_not(
    operator: Operator, moorage: tools.Cluster, tenant_role: str, collector: conftest.Make
) -> None:
    """Rights in kube-system or in a namespace that admits nobody, of another role, or for anybody else."""
    one = collector(chart="plain", cluster="registry")
    one.wait_ready()
    role = f"--clusterrole={tenant_role}"
    bind = ["create", "rolebinding", "moorage-collector"]

    def account(namespace: str) -> list[str]:
        return [f"--serviceaccount={operator.accounts}:collector.{namespace}", "-n", namespace]

    into_kube_system = operator.try_to(*bind, role, *account("kube-system"))
    assert "moorage may have no rights in namespace kube-system" in into_kube_system
    assert "moorage may have no rights" in operator.try_to(*bind, role, *account(tools.NAMESPACE))
    assert "admits no Collectors" in operator.try_to(*bind, role, *account("default"))
    other_name = operator.try_to("create", "rolebinding", "another", role, *account(one.tenant))
    assert "no RoleBinding but moorage-collector" in other_name
    assert "forbidden" in operator.try_to(*bind, "--clusterrole=cluster-admin", *account(one.tenant)).lower()
    for other in ("default:default", f"{operator.accounts}:collector.default", f"{tools.NAMESPACE}:moorage"):
        refused = operator.try_to(*bind, role, f"--serviceaccount={other}", "-n", one.tenant)
        assert "moorage may bind nobody" in refused
    assert "the name belongs to the cluster" in operator.try_to("create", "namespace", "kube-mine")
    assert (
        "forbidden"
        in operator.try_to("annotate", "namespace", "default", "moorage.dev/collectors-from=default").lower()
    )
    print("\n" + into_kube_system)
    one.wait_ready()
