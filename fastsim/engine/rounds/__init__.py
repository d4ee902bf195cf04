"""What all kinds of rounds have: batches, options, driver, outcome, metrics, tables, checkpoints."""
