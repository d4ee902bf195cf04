"""Both sides of HTTP: a small service with bounded requests, time and connections, and complete answers of servers.

A service listens on this machine only, unless another address is given; one function answers each path, and a reply
never shows a traceback. Passwords and encryption are the task of a proxy in front of it.
Open ``service`` first.
"""
