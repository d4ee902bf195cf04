"""Many runs: which, where, how often; no simulation logic."""
