"""The linear programs behind policies that share time: what is alike becomes one column. One program per file."""
