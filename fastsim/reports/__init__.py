"""Results as tables, HTML page, text, Kubernetes objects."""
