"""What runs beside each server of OpenCGA: it has the server be what a document says, and tells how far it is.

    observe     the document, the files, the hook, the server's ping, others' agents; the MASTER's the catalog too
    decide      pure (`plan`): one act, or what is waited for, or an error that needs a person
    act         through the hook, which is the server's parent and outlives the agent

One thing at a time, looked at anew after each: a kill between any two leaves nothing half done that is not seen again.
What can't be seen is noted before it is done (`notes`): which command was begun at the catalog.

| module | what |
|---|---|
| `document` | the configuration, as it is published by the operator |
| `files` | the product's files: the image's own, what the document says over them, and the passwords |
| `truststore`, `keystore` | whom the server's JVM trusts, and what it shows the database |
| `plan` | what is to be done |
| `notes` | what is kept in the data volume |
| `health` | what is told: the health file |
| `metrics` | the same for Prometheus, without a secret |
| `serving` | the ports at which both are told |
| `answers` | what the product's commands print, read |
| `hook`, `outside` | the hook's socket; the server's ping, and others' agents |
| `main` | the loop |

It imports `moorage.api` alone, and of others' libraries msgspec and yaml: it starts in each pod, and is small.
"""
