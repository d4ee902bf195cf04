"""The package's own names: complete, lazy, and the same for people and type checkers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fastsim as fs
from fastsim.cluster import cluster
from fastsim.workload import pod_rows


def test_every_public_name_can_be_used() -> None:
    for name in fs.__all__:
        assert getattr(fs, name) is not None
    assert set(dir(fs)) == set(fs.__all__)
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = fs.simulat


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(fs.__file__).read_text())
    typed = {alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(fs.__all__) - {"__version__"} <= typed


def test_importing_the_package_loads_no_table_library() -> None:
    code = "import sys, fastsim; assert not {'numpy', 'polars', 'pyarrow', 'altair'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_scenario_made_through_the_package_knows_what_texts_mean() -> None:
    code = (
        "import fastsim as fs; found = fs.Scenario('opneb', 'none', 'fdg', queue='lifo').problems();"
        "assert [p.path for p in found] == ['cluster', 'workload', 'policy', 'queue'], found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_completion_offers_what_people_use() -> None:
    """Members that completion leaves out are there and public members of the class; those of guides are offered."""
    pages = "".join(path.read_text() for path in (Path(fs.__file__).parent / "guides").glob("*.md"))
    for shown, hidden in (
        (fs.Workload.synth("openb", pods=1), pod_rows.FOR_ENGINES | {"of"}),
        (fs.Cluster.preset("openb:2"), cluster.FOR_ENGINES),
    ):
        assert all(hasattr(shown, name) for name in hidden) and not hidden & set(dir(shown))
        assert not hidden & set(dir(type(shown))) and {"for_engines", "from_text"} & set(dir(type(shown))) == {
            "from_text"
        }
        assert {"frame", "checksum", "from_text"} & set(dir(type(shown))) <= set(dir(shown))
        assert [name for name in hidden if f".{name}(" in pages] == []


def test_a_plain_run_of_pods_loads_nothing_of_kubernetes_telemetry_or_jobs() -> None:
    code = (
        "import sys, fastsim as fs; fs.simulate('openb:20', 'synth:openb?pods=9', policy='fgd');"
        "rooms = {name.split('.')[1] for name in sys.modules if name.startswith('fastsim.')};"
        "assert not rooms & {'kubernetes', 'telemetry', 'performance', 'reports', 'cli'}, rooms;"
        "assert not {'pyarrow.fs', 'ssl', 'altair', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
