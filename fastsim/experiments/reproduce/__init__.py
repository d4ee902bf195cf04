"""The papers again: one module per paper or pair, protocol, result."""
