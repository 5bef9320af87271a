"""Objects that a kind owns: made, kept right, replaced one after another, and removed, whatever the system.

Plain functions over parts (`parts`), which `reading` makes of live objects. A system hands in what it alone knows: who
is in use, who may go, what it is to be called. What comes back is a verdict, under a reason of the system's own.

    objects       exist and are right; those that end are awaited; what nobody asks for goes
    workload      a StatefulSet: made, right, made anew around its pods when a fixed field changes
    replacement   pods: dead ones, and those of an old template, one after another behind the system's gate
    volumes       claims grow, are reclaimed, are cleared out of the way
    removal       the way out, which ends
    waits         what lies behind a wait
    readiness     whether all objects are ready, and the one that most needs somebody

`views`, `surroundings` and `guards` do I/O; everything else is pure.
"""
