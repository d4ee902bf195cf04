"""The command line: verbs in modules named after the packages that they call.

A verb parses arguments, calls one public function, and prints or writes its result; it decides nothing. Packages are
imported inside verbs, so that ``--help`` loads none of them. Open ``main`` first: it lists the verbs and turns errors
into exit codes.
"""
