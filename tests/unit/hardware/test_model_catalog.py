"""The catalogue: published watts, watts tables, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastsim.errors import InputError
from fastsim.hardware.model_catalog import Catalog, CpuModel, GpuModel

HEADER = "kind,model,idle_w,peak_w,memory_mib,cores_per_socket\n"


def test_default_watts_are_the_published_ones() -> None:
    catalog = Catalog.default()
    assert catalog.gpu["T4"] == GpuModel(10, 70, 15109)
    assert (catalog.gpu["G2"].idle_w, catalog.gpu["G2"].peak_w) == (30, 150)
    assert (catalog.gpu["G3"].idle_w, catalog.gpu["G3"].peak_w) == (50, 400)
    assert catalog.cpu[""] == catalog.cpu["Intel-Xeon-ES-2682-V4"] == CpuModel(15, 120, 16)


@pytest.mark.parametrize(
    ("model", "peak_w", "memory_mib"),
    [
        ("L4", 72, 23034), ("L40S", 350, 46068), ("A10G", 300, 23028), ("A30", 165, 24576), ("H100-PCIe", 350, 81559),
        ("H100-80GB", 700, 81559), ("H200", 700, 143771), ("B200", 1000, 183359), ("GB200", 1200, 189471),
        ("MI250X", 560, 128 * 1024), ("MI300X", 750, 192 * 1024), ("GH200", 900, 97871), ("RTX6000Ada", 300, 49140),
        ("RTXPRO6000", 600, 97887), ("RTXPRO6000-MaxQ", 300, 97887), ("RTX8000", 260, 49152), ("P40", 250, 23040),
    ],
)  # fmt: skip
def test_later_models_have_the_limits_of_their_data_sheets(model: str, peak_w: float, memory_mib: int) -> None:
    found = Catalog.default().gpu[model]
    assert (found.peak_w, found.memory_mib) == (peak_w, memory_mib) and 0 < found.idle_w < peak_w / 4


def test_every_model_names_its_source() -> None:
    for name, model in Catalog.default().gpu.items():
        assert model.source, name
        assert any(kind in model.source for kind in ("published", "data sheet", "product brief")), name
        assert "published" in model.source or "idle is an estimate" in model.source or "shows it" in model.source, name


@pytest.mark.parametrize("model", ["GH200", "RTX6000Ada", "RTXPRO6000", "RTXPRO6000-MaxQ", "RTX8000", "P40"])
def test_idle_watts_of_boards_that_nvidia_smi_was_seen_on_are_no_estimates(model: str) -> None:
    found = Catalog.default().gpu[model]
    assert f"idle {found.idle_w:g} W as nvidia-smi shows it" in found.source and "estimate" not in found.source


def test_extended_adds_and_replaces_without_touching_the_default() -> None:
    wider = Catalog.default().extended(gpu={"H100": GpuModel(60, 700), "T4": GpuModel(1, 2)})
    assert wider.gpu["H100"].peak_w == 700 and wider.gpu["T4"].peak_w == 2
    assert "H100" not in Catalog.default().gpu and Catalog.default().gpu["T4"].peak_w == 70


def test_watts_table_extends_the_default(tmp_path: Path) -> None:
    path = tmp_path / "watts.csv"
    path.write_text(HEADER + "gpu,H100,60,700,81559,\ncpu,Epyc,90,280,,64\n")
    catalog = Catalog.from_csv(path)
    assert catalog.gpu["H100"] == GpuModel(60, 700, 81559)
    assert catalog.cpu["Epyc"] == CpuModel(90, 280, 64)
    assert catalog.gpu["T4"] == Catalog.default().gpu["T4"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("gpu,H100,60,700,1,,\n", [":2", "7 fields", "6 fields"]),
        ("tpu,v5,60,700,1,\n", [":2: kind", "'tpu'", "gpu or cpu"]),
        ("gpu,,60,700,1,\n", [":2: model", "''"]),
        ("gpu,A,1,2,,\n\ngpu,A,1,2,,\n", [":4: model", "'A'", "new"]),
        ("gpu,H100,-1,700,1,\n", [":2: idle_w", "-1", "0 to 1,000,000 watts"]),
        ("gpu,H100,nan,700,1,\n", [":2: idle_w", "nan", "0 to 1,000,000 watts"]),
        ("gpu,H100,60,30,1,\n", [":2: peak_w", "30", "idle_w (60) to 1,000,000 watts"]),
        ("gpu,H100,60,1e15,1,\n", [":2: peak_w", "1000000000000000.0", "idle_w (60) to 1,000,000 watts"]),
        ("gpu,H100,60,many,1,\n", [":2: peak_w", "'many'", "a number"]),
        ("gpu,H100,60,,1,\n", [":2: peak_w", "nothing", "watts"]),
        ("gpu,H100,60,90,-5,\n", [":2: memory_mib", "-5"]),
        ("gpu,H100,60,90,9e15,\n", [":2: memory_mib", "'9e15'"]),
        ("gpu,H100,60,90,2000000000,\n", [":2: memory_mib", "2000000000", "0 to 1,073,741,824 MiB"]),
        ("cpu,Epyc,90,280,,\n", [":2: cores_per_socket", "0", "1 to 100,000"]),
        ("cpu,Epyc,90,280,,8000000000000000\n", [":2: cores_per_socket", "8000000000000000", "1 to 100,000"]),
    ],
)
def test_broken_watts_table_is_named_to_the_cell(tmp_path: Path, row: str, words: list[str]) -> None:
    path = tmp_path / "watts.csv"
    path.write_text(HEADER + row)
    with pytest.raises(InputError) as error:
        Catalog.from_csv(path)
    assert all(word in str(error.value) for word in [str(path), *words]), str(error.value)


def test_unknown_or_missing_column_and_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "watts.csv"
    path.write_text("kind,model,idle_w,peak_w,colour\n")
    with pytest.raises(InputError, match=r":1: colour: found an unknown column"):
        Catalog.from_csv(path)
    path.write_text("kind,model\n")
    with pytest.raises(InputError, match="idle_w"):
        Catalog.from_csv(path)
    with pytest.raises(InputError, match="no such file"):
        Catalog.from_csv(tmp_path / "none.csv")


def test_extended_refuses_implausible_models() -> None:
    with pytest.raises(InputError, match=r"catalog.gpu\['X'\]: idle_w"):
        Catalog.default().extended(gpu={"X": GpuModel(float("inf"), 1)})
