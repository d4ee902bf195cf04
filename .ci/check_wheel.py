"""Looks into a wheel: small, complete, and without what only the build needs."""

import sys
from pathlib import Path
from zipfile import ZipFile

LIMIT_MB = 3.0
PUBLISHED, PUBLISHED_MB = "fastsim/experiments/published/", 0.4
"""The numbers that papers print have room of their own."""
NEEDED = ("fastsim/py.typed", "fastsim_ext/py.typed", "fastsim_ext/build.pyi")
KINDS = {".py", ".csv", ".json", ".parquet"}
FOREIGN = (".c", ".html", ".o", ".pxd", ".pyc")

path = Path(sys.argv[1])
entries = ZipFile(path).infolist()
names = [entry.filename for entry in entries]
published_mb = sum(entry.compress_size for entry in entries if entry.filename.startswith(PUBLISHED)) / 1e6
size_mb = path.stat().st_size / 1e6 - published_mb
sources = [file.as_posix() for file in Path("fastsim").rglob("*") if file.suffix in KINDS]
findings = [f"{name} is missing" for name in (*NEEDED, *sources) if name not in names]
modules = [file.with_suffix("").as_posix() for file in Path("fastsim_ext").rglob("*.pyx")]
findings += [f"{name} is not compiled" for name in modules if not any(path.startswith(f"{name}.c") for path in names)]
findings += [f"{name} does not belong in a wheel" for name in names if name.endswith(FOREIGN)]
findings += [f"{name} is not of this package" for name in names if not name.startswith("fastsim")]
for what, found_mb, limit_mb in (("code", size_mb, LIMIT_MB), ("published numbers", published_mb, PUBLISHED_MB)):
    if found_mb > limit_mb:
        findings.append(f"{what}: {found_mb:.2f} MB, limit {limit_mb} MB")
print(f"{path.name}: {size_mb:.2f} MB and {published_mb:.2f} MB of published numbers, {len(names)} files")
sys.exit("\n".join(findings) or None)
