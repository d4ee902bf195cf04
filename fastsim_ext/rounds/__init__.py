"""The round loop: shares and orders."""
