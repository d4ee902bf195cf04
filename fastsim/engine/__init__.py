"""What all engines have: loop protocol, result tables, summary row, checkpoint folder, sampler."""
