"""Verbs, grouped as the packages below; each parses, calls one public function, prints."""
