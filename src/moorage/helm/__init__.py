"""Helm as moorage uses it: charts found and verified, releases made by the real helm binary, records read and compared.

Nothing here knows a resource of moorage's own. Modules, from the ground up (an upper line may import a lower one):

    causes                I/O: why a run failed, as far as helm does not say it
    preparing             I/O: what is put in order right before a run
    binary, charts        I/O: the helm process, chart folders and registries, the chart cache
    aside, child          I/O: child processes for what others may make large
    jobs                  what is done there (pure)
    health                are the children well (pure)
    diagnosis, pods       and if not, why: from an object to its pods, claims, nodes and events (pure)
    scaling, postrender   replicas that somebody has scaled, in the manifest that helm applies
    drift, records        what a release wants the cluster to hold, and helm's record of it (pure)
    manifest              rendered text -> objects, hooks, inventory, problems (pure)
    chart, values         archives and values as bytes and mappings (pure, but for a file that is read)
    schemas               where a schema's references lead (pure)
    failures, documents   helm's words -> typed failures; YAML exactly as helm reads it (pure)
"""
