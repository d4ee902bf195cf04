"""The policies of ``rounds`` at work: what they remember in a run, and the shares they answer with."""
