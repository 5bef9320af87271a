"""WekaCluster: containers, what they are formed into, and how it grows, shrinks, is upgraded and goes."""
