"""Applications come back from Parquet as they went in; a wrong table is one clear error."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from fastsim.errors import InputError
from fastsim.performance.applications.application_table import APP_SCHEMA
from fastsim.performance.applications.family import Applications

TABLE = Applications.default().table().slice(0, 2)


def test_there_and_back(tmp_path: Path) -> None:
    path, again = tmp_path / "a.parquet", tmp_path / "b.parquet"
    assert Applications.from_table(TABLE).to_parquet(path) == 2
    found = Applications.from_parquet(path)
    assert found.table().equals(TABLE) and found.table().schema == APP_SCHEMA
    found.to_parquet(again)
    assert path.read_bytes() == again.read_bytes()
    name = TABLE["application"][0].as_py()
    model = found.gpu_models[0]
    assert found[name].on(model).seconds((3, 2), 7) == Applications.default()[name].on(model).seconds((3, 2), 7)


def changed(**columns: object) -> pa.Table:
    """The table with some cells of its first row replaced."""
    rows = TABLE.to_pylist()
    return pa.Table.from_pylist([rows[0] | columns, *rows[1:]])


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (TABLE.drop_columns(["epochs"]), "epochs: found columns"),
        (changed(restart_s=None), "restart_s: found null"),
        (TABLE.set_column(3, "slowdown", [["slow", "slow"]]), "1: slowdown: found 'slow', expected a value of type do"),
        (changed(application=TABLE["application"][1].as_py()), "twice"),
        (changed(limits=TABLE["limits"][0].as_py()[:1]), "expected a GPU model of limits"),
        (changed(steps=[]), "no measured placement"),
    ],
)
def test_a_wrong_table_is_refused(table: pa.Table, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Applications.from_table(table, "sample")
