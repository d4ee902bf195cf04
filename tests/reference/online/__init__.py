"""Twin of engine/online."""
