"""WekaClient and WekaPolicy: taken as the original's manifests have them, and told that nothing follows yet."""
