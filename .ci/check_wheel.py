"""Looks into a wheel: small, complete, and without what only the build needs."""

import sys
from pathlib import Path
from zipfile import ZipFile

LIMIT_MB = 3.0
NEEDED = ("fastsim/py.typed", "fastsim_ext/py.typed", "fastsim_ext/build.pyi")
FOREIGN = (".c", ".html", ".o", ".pyc")

path = Path(sys.argv[1])
names = ZipFile(path).namelist()
size_mb = path.stat().st_size / 1e6
sources = [file.as_posix() for file in Path("fastsim").rglob("*") if file.suffix in {".py", ".csv", ".json"}]
findings = [f"{name} is missing" for name in (*NEEDED, *sources) if name not in names]
modules = [file.with_suffix("").as_posix() for file in Path("fastsim_ext").rglob("*.pyx")]
findings += [f"{name} is not compiled" for name in modules if not any(path.startswith(f"{name}.c") for path in names)]
findings += [f"{name} does not belong in a wheel" for name in names if name.endswith(FOREIGN)]
findings += [f"{name} is not of this package" for name in names if not name.startswith("fastsim")]
if size_mb > LIMIT_MB:
    findings.append(f"{size_mb:.2f} MB, limit {LIMIT_MB} MB")
print(f"{path.name}: {size_mb:.2f} MB, {len(names)} files")
sys.exit("\n".join(findings) or None)
