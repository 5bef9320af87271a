"""The API server: the only place that knows how to talk to it.

informers    what is there, kept by watches, never behind one's own writes     <- what most code reads
client       the verbs                                                         <- what writes, and what looks live
discovery    which kinds are served, under which names
codec        bytes to objects, in one pass (pure)
http         bytes there and back; `http.transport` is the seam where faults are injected
credentials, kubeconfig            ways in
errors       all that can go wrong, drawn as a tree
"""
