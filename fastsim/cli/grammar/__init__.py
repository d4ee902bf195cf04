"""Parts that all verbs share: groups with a usual verb, messages, defaults in files, sections of help.

Open ``verbs`` first.
"""
