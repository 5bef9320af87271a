"""Objects that a kind owns, whatever owns them: what is applied, and whether and why not it is well.

Nothing here knows helm or any system. All of it is pure: plain data in, a judgement out.

    apply           one object by server-side apply: what is there beside what is wanted, and the one write that mends
    health          is an object what its spec says, by kstatus
    diagnosis       and if not, why: from an object to its pods, and on to their claims, nodes and events
    pod_trouble     why a pod is not ready, or does not end
    object_events   what events tell about an object
    reasons         the words for all of that, with what comes next
"""
