"""Objects that a kind owns, whatever the system: what is applied, whether it is well, and what is done to it, in order.

Plain functions over parts (`parts`), which `reading` makes of live objects. A system hands in what it alone knows: who
is in use, who may go, what it is to be called. What comes back is a verdict, under a reason of the system's own.

    objects          they exist and are right; those that end are awaited; what nobody asks for goes
    stateful_set     a StatefulSet: made, right, made anew around its pods when a fixed field changes
    pod_replacement  pods: dead ones, and those of an old template, one after another behind the system's gate
    volumes          claims grow, are reclaimed, are cleared out of the way
    removal          the way out, which ends
    waits            what lies behind a wait
    readiness        whether all objects are ready, and the one that most needs somebody

And what an object is by itself, wherever it comes from:

    apply            by server-side apply: what is there beside what is wanted, and the one write that mends
    health           is an object what its spec says, by kstatus
    diagnosis        and if not, why: from an object to its pods, and on to their claims, nodes and events
    pod_trouble      why a pod is not ready, or does not end
    reasons          the words for all of that, with what comes next

All of it is pure but for `live`, which asks the API server.
"""
