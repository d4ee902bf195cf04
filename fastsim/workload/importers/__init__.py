"""One file per public trace, and pods of a Kubernetes snapshot."""
