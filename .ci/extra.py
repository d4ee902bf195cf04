"""Prints the requirements of extras, so that CI installs them without building the package again.

The name ``needed`` stands for what the package always needs, and what builds it. With ``--lowest`` each one is pinned
to the lowest version that its bounds allow.
"""

import re
import sys
import tomllib
from pathlib import Path

page = tomllib.loads(Path("pyproject.toml").read_text())
project = page["project"]
extras = project["optional-dependencies"] | {"needed": project["dependencies"] + page["build-system"]["requires"]}
names = sys.argv[1:]
texts = [text for name in names if name != "--lowest" for text in extras[name]]
print("\n".join(re.sub(r">=([^,]*).*", r"==\1", text) if "--lowest" in names else text for text in texts))
