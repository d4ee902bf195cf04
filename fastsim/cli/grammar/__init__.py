"""What all verbs share: groups with a verb that may be left out, standard streams, defaults in files, sections of help.

Open ``verbs`` first.
"""
