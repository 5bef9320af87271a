"""The XsldCache: a group of members, each a pod with a volume."""
