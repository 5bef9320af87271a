"""Helm as moorage uses it: charts found and verified, releases made by the real helm binary, records read and compared.

Nothing here knows a resource of moorage's own. What a kind that is a release uses is here:

    engine            observes the releases of one kind, each by a `release_request`; `operations` is what it may do
    observation       what is seen of a release: by `release_watches`, `release_sources`, and `release_objects`, which
                      judges each object, with `live_looks` where something is wrong
    steps, deletion   what is decided, from a claimed name to ready objects, and back to nothing
    facts, reasons    conditions, and the words for all of it; `release_status` has the fields of a status

and in folders by job what they stand on:

    runs              I/O: the helm process, what is put in order before it, why it failed
    charts            I/O: chart folders, registries and the archives on disk; values
    parsing           I/O: child processes for what others may make large, and what is done there; YAML as helm reads it
    release           a release as data: claim, record, manifest, drift (pure)
"""
