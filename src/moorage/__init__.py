"""moorage runs stateful systems on Kubernetes."""
