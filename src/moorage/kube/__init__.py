"""The API server: the only place that knows how to talk to it.

cache        what is there, kept by watches, never behind one's own writes     <- what most code reads
client       the verbs                                                         <- what writes, and what looks live
discovery    which kinds are served, under which names
watch        list and watch for ever, healing whatever breaks
replica      the rules by which a cache stays true (pure)
store, packed, views, selectors, codec     data structures and decoding (pure)
slices, heap    how long the event loop is held, and what the garbage collector looks at
transport    bytes there and back; the seam where faults are injected
credentials, kubeconfig            ways in
errors       all that can go wrong, drawn as a tree
"""
