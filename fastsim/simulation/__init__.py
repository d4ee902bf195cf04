"""A scenario becomes a result: texts to objects, engine, provenance, resume and fork."""
