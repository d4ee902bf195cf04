"""Prints the requirements of extras, so that CI installs them without building the package again."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
print("\n".join(text for name in sys.argv[1:] for text in project["optional-dependencies"][name]))
