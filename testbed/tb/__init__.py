"""The parts of the `testbed` command.

A testbed is a set of ordinary processes in a network namespace of its own, described by `settings` and listed in
`components`; `cluster` brings them up and takes them away again.
"""
