"""Prints the requirements of extras, so that CI installs them without building the package again.

The name ``needed`` stands for what the package always needs, and what builds it.
"""

import sys
import tomllib
from pathlib import Path

page = tomllib.loads(Path("pyproject.toml").read_text())
project = page["project"]
extras = project["optional-dependencies"] | {"needed": project["dependencies"] + page["build-system"]["requires"]}
print("\n".join(text for name in sys.argv[1:] for text in extras[name]))
