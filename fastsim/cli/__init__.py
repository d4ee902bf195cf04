"""The command line: verbs in modules named after the packages that they open.

In come arguments and files, out go text, tables and files. A verb parses, calls one public function and prints; it
decides nothing. Packages are imported inside verbs, so that ``--help`` loads none of them.
Open ``main`` first: it lists the verbs and turns errors into exit codes.
"""
