"""What the API server has, kept in memory: an informer for each collection that somebody reads.

informer            the objects of one collection, as they are read                <- begin here
reflector           lists and watches for ever, healing whatever breaks; tells a `Sink`
replica             the rules by which what was told stays true (pure)
store               objects with their indexes; `cached_object` is what all of them have, `selectors` which belong
compressed          the cold tier: objects that are rarely read, as compressed bytes
time_slices, garbage_collector     how long the event loop is held, and what the garbage collector looks at
"""
