"""Folders of the original simulators become applications; a wrong file is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastsim.errors import InputError
from fastsim.performance.applications.sia_folders import (
    ESTIMATED_RESTART_S,
    RESTART_S,
    USUAL_RESTART_S,
    as_in_pollux,
    import_pollux,
    import_sia,
)

STEPS = "placement,local_bsz,step_time,sync_time\n"
FILES = {
    "placements-aws.csv": STEPS + "1,16,0.5,0.0\n1,32,0.9,0.0\n14,16,0.6,0.1\n",
    "placements.csv": STEPS + "1,16,0.7,0.0\n",
    "scalability-aws.csv": "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,16,16,0.8,0.3\n",
    "validation-64.csv": "progress,iteration,metric,grad_sqr,grad_var\n10,10,0.5,1,2\n20,20,0.7,1,3\n",
    "validation-128.csv": "iteration,progress,metric,grad_sqr,grad_var,more\n6,10,0.5,1,2,x\n12,20,0.6,1,3,y\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for app in ("cifar10", "own"):
        (tmp_path / app).mkdir()
        for name, text in FILES.items():
            (tmp_path / app / name).write_text(text)
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_sia_folders(folder: Path) -> None:
    apps = import_sia(folder)
    assert list(apps) == ["cifar10", "own"] and apps.gpu_models == ("aws",)
    app = apps["cifar10"]
    assert (app.init_batch, app.max_batch, app.curve.epochs) == (64, 128, 2)
    assert app.on("aws").seconds((1,), 24).step_s == pytest.approx(0.7)
    assert app.on("aws").largest((4, 4, 4)) == 16
    assert (app.restart_s, apps["own"].restart_s, app.slowdown) == (RESTART_S["cifar10"], 30.0, 1.8)


def test_pollux_folders_know_one_machine(folder: Path) -> None:
    apps = import_pollux(folder)
    assert apps["own"].on("aws").seconds((1,), 16).step_s == 0.7
    assert (apps["cifar10"].restart_s, apps["cifar10"].believed_restart_s, apps["cifar10"].slowdown) == (
        30.0,
        30.0,
        1.0,
    )


def test_pollux_takes_smaller_steps_of_one_application(folder: Path) -> None:
    (folder / "own").rename(folder / "yolov3")
    (folder / "yolov3" / "placements-aws.csv").write_text(STEPS + "1,4,0.2,0.0\n1,8,0.3,0.0\n1,16,0.5,0.0\n")
    apps = as_in_pollux(import_sia(folder))
    assert (apps["yolov3"].on("aws").high, apps["cifar10"].on("aws").high) == (8, 32)


def test_pollux_knows_applications_of_its_machine_only(folder: Path) -> None:
    (folder / "own" / "placements-aws.csv").rename(folder / "own" / "placements-rtx.csv")
    assert list(as_in_pollux(import_sia(folder))) == ["cifar10"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "placements-aws.csv",
            "placement,local_bsz\n1,2\n",
            "placements-aws.csv:1: found columns placement, local_bsz",
        ),
        ("placements-aws.csv", STEPS + "1,16,fast,0\n", "placements-aws.csv:2: step_time: found 'fast'"),
        ("placements-aws.csv", STEPS + "x,16,0.5,0\n", "placement: found 'x'"),
        (
            "validation-64.csv",
            "progress,iteration,metric,grad_sqr,grad_var\n1,1,1,1\n",
            "validation-64.csv:2: grad_var",
        ),
        ("validation-64.csv", "progress,iteration,metric,grad_sqr,grad_var\n1,1,1,1,1\n", "found 2 epochs, expected 1"),
    ],
)
def test_a_wrong_file_is_one_clear_error(name: str, text: str, message: str, folder: Path) -> None:
    (folder / "own" / name).write_text(text)
    with pytest.raises(InputError, match=message):
        import_sia(folder)


def test_a_folder_without_applications_is_refused(folder: Path) -> None:
    for path in (folder / "empty", folder / "nothing"):
        with pytest.raises(InputError):
            import_sia(path)


def test_restarts_take_the_published_seconds() -> None:
    every = ("cifar10", "deepspeech2", "bert", "yolov3", "imagenet", "ncf")
    assert [RESTART_S[name] for name in every] == [50.0, 25.0, 120.0, 80.0, 250.0, 15.0]
    # The published scheduler has a table of its own, and takes 30 s for what is not in it.
    estimated = [ESTIMATED_RESTART_S.get(name, USUAL_RESTART_S) for name in every]
    assert estimated == [30.0, 25.0, 120.0, 45.0, 250.0, 30.0]
