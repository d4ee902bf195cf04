"""GPU models by the names of labels, and instances packed on devices."""

from __future__ import annotations

import pytest

from fastsim.errors import InputError
from fastsim.hardware import mig
from fastsim.hardware.gpu_products import Product, layouts, models_called, models_spelled, product, with_products
from fastsim.hardware.model_catalog import Catalog, GpuModel


def test_products_have_catalogue_names() -> None:
    assert product("Tesla-V100-SXM2-32GB") == Product("V100M32", 32510, "V100M32")
    assert product("nvidia-a100-sxm4-80gb-MIG-1g.10gb").gpu_model == "A100-80GB"
    assert product("Tesla-T4-SHARED").gpu_model == "T4"
    assert product("Made-Up") == Product("Made-Up")


@pytest.mark.parametrize(
    ("label", "model"),
    [
        ("NVIDIA-L4", "L4"), ("NVIDIA-L40S", "L40S"), ("NVIDIA-A10G", "A10G"), ("NVIDIA-A30", "A30"),
        ("NVIDIA-H100-PCIe", "H100-PCIe"), ("NVIDIA-H100-80GB-HBM3", "H100-80GB"), ("NVIDIA-H200", "H200"),
        ("NVIDIA-H200-MIG-1g.18gb", "H200"), ("NVIDIA-B200", "B200"), ("NVIDIA-GB200", "GB200"),
        ("AMD_Instinct_MI250X", "MI250X/2"), ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("NVIDIA-GH200-480GB", "GH200"), ("NVIDIA-RTX-6000-Ada-Generation", "RTX6000Ada"), ("Tesla-P40", "P40"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "RTXPRO6000"), ("Quadro-RTX-8000", "RTX8000"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition", "RTXPRO6000-MaxQ"), ("nvidia-tesla-t4", "T4"),
        ("nvidia-tesla-a100", "A100-40GB"), ("nvidia-h100-80gb", "H100-80GB"),
        ("nvidia-h200-141gb", "H200"), ("nvidia-l4", "L4"),
        ("nvidia-tesla-p4", "P4"), ("nvidia-tesla-k80", "k80"), ("Tesla-P4", "P4"), ("Tesla-K80", "k80"),
    ],
)  # fmt: skip
def test_labels_of_later_boards(label: str, model: str) -> None:
    known = product(label)
    assert known.gpu_model == model
    catalog, unknown = with_products(Catalog.default(), [model])
    assert not unknown and catalog.gpu[model].memory_mib == known.memory_mib


def test_a_die_of_a_board_draws_half_its_watts() -> None:
    catalog, _ = with_products(Catalog.default(), ["MI250X/2"])
    board, die = catalog.gpu["MI250X"], catalog.gpu["MI250X/2"]
    assert (2 * die.idle_w, 2 * die.peak_w, die.memory_mib) == (board.idle_w, board.peak_w, 65536)


def test_models_are_added_with_the_watts_of_their_like() -> None:
    catalog, unknown = with_products(Catalog.default(), ["T4", "V100", "2080", "Made-Up"])
    assert unknown == ["2080", "Made-Up"]
    assert (catalog.gpu["V100"].idle_w, catalog.gpu["V100"].peak_w) == (30, 300)
    assert catalog.gpu["2080"] == GpuModel(0, 0, 11019)
    assert with_products(Catalog.default(), ["T4"])[0] is Catalog.default()


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"mig-1g.10gb": 14}, ["7*1g.10gb", "7*1g.10gb"]),
        ({"mig-3g.40gb": 2, "mig-1g.10gb": 1}, ["2*3g.40gb", "1g.10gb"]),
        ({"mig-3g.40gb": 1, "mig-2g.20gb": 2}, ["3g.40gb+2*2g.20gb"]),
        ({}, []),
    ],
)
def test_instances_are_packed(counts: dict[str, int], expected: list[str]) -> None:
    packed = layouts("n1", "A100-80GB", counts)
    assert packed == expected
    if packed:
        mig.refuse("n1", ";".join(packed), len(packed), "A100-80GB")


def test_instances_that_a_model_does_not_have() -> None:
    with pytest.raises(InputError, match=r"n1: mig-9g\.90gb: found 1 on A100-80GB"):
        layouts("n1", "A100-80GB", {"mig-9g.90gb": 1})
    with pytest.raises(InputError, match="a model that can be partitioned"):
        layouts("n1", "T4", {"mig-1g.10gb": 1})


SPELLED = {
    "A100": "a100 A-100 nvidia-a100 A100-SXM4", "A100-80GB": "a100-80gb A100-SXM4-80GB NVIDIA_A100_80GB_PCIe",
    "H100-80GB": "H100 h100-sxm H100-SXM5-80GB h-100", "H100-PCIe": "h100-pcie", "H100-94GB": "h100-nvl H100-94gb",
    "H200": "h200 H-200 nvidia-h200-sxm", "RTX4090": "RTX4090 rtx-4090 NVIDIA-GeForce-RTX-4090 4090",
    "RTX3090": "rtx3090", "RTXA6000": "A6000 RTX-A6000", "V100M16": "V100-16GB v100m16", "V100M32": "v100-32gb",
    "T4": "t4 Tesla-T4 NVIDIA-T4", "P100": "P-100 Tesla-P100-PCIe-16GB", "L40S": "l40s", "MI300X": "mi300x",
    "B200": "b200",
}  # fmt: skip
"""Models, and names that people write for them."""


def test_models_are_found_by_any_usual_spelling() -> None:
    known = Catalog.default().gpu
    for model, names in SPELLED.items():
        for name in names.split():
            assert (name, models_spelled(name, known)) == (name, [model]) and model in models_called(name)
    assert all(models_spelled(name, known) == [name] for name in known)
    assert models_spelled("V100", known) == ["V100M16", "V100M32"] and models_spelled("Z9000", known) == []


def test_every_model_of_the_catalogue_has_its_own_spelling() -> None:
    """Without a model's own capital letters it is this model still, except for the three of Gavel's tables."""
    known = Catalog.default().gpu
    for name in known.keys() - {"k80", "p100", "v100"}:
        assert models_spelled(f"nvidia {name.lower()}", known) == [name]
