"""Every importer on its sample, on files as they are found, and on broken ones: one error, nothing written."""

from __future__ import annotations

import gzip
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import polars as pl
import pytest

from fastsim.cli.data import import_ as verbs
from fastsim.cli.main import exit_code
from tests.objects import pod
from tests.unit.workload.published_traces import test_published_traces as traces


class Sample(NamedTuple):
    """A text, and what makes a column of it missing and a cell of it of a wrong type; both name what was found."""

    text: str
    missing: tuple[str, str]
    wrong: tuple[str, str]
    ending: str = ".csv"
    options: tuple[str, ...] = ()


OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-0,14000,0,1,1000,T4,LS,Running,50,12902960,60
pod-1,8000,16384,0,0,,BE,Succeeded,60,134,70
"""
SIA = "name,time,application,num_replicas,batch_size\ncifar10-0,107.0,cifar10,6,2048\nbert-1,110.5,bert,1,12\n"
SYNERGY = "7,res18,20,30,1\n3,gnmt,25,40,16\n"
GAVEL = "".join(f"LM (batch size 5)\tpython main.py\t--steps\t1\t900\t{at_s}\t2\n" for at_s in (0.5, 1))
ATTEMPT = {
    "start_time": "2017-10-09 07:00:10",
    "end_time": "2017-10-09 08:00:10",
    "detail": [{"ip": "m", "gpus": ["g"]}],
}
JOB = {"status": "Pass", "vc": "v", "jobid": "j", "submitted_time": "2017-10-09 07:00:00", "attempts": [ATTEMPT]}
PHILLY = json.dumps([JOB])
REDUCED = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:00:10,66,1,66,a\n2017-10-09 07:00:00,5,2,10,b\n"
RATES = json.dumps(
    {"v100": {"('LM (batch size 5)', 1)": {"null": 12.5}}, "k80": {"('LM (batch size 5)', 1)": {"null": 2.5}}}
)
PODS = json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod("a", {"cpu": "2", "nvidia.com/gpu": 1})]})
OWN = "at,gpus\n0,1\n5,2\n"

SAMPLES = {
    "openb": Sample(OPENB, ("cpu_milli,", "cpus,"), ("14000", "many")),
    "gavel": Sample(GAVEL, ("\t900", ""), ("900", "many"), ".trace"),
    "synergy": Sample(SYNERGY, (",30,1", ",30"), (",30", ",many")),
    "philly": Sample(PHILLY, ('"submitted_time"', '"time"'), ("2017-10-09 07:00:10", "soon"), ".json"),
    "philly reduced": Sample(REDUCED, ("duration", "seconds"), (",66,1", ",many,1")),
    "sia": Sample(SIA, ("num_replicas", "gpus"), (",6,", ",many,")),
    "pollux": Sample(SIA, ("num_replicas", "gpus"), (",6,", ",many,")),
    "gavel-rates": Sample(RATES, ('"null"', '"none"'), ("12.5", '"many"'), ".json"),
    "kubernetes": Sample(PODS, ('"kind": "Pod"', '"sort": "Pod"'), ('"2"', '"many"'), ".json"),
    "csv": Sample(OWN, ("gpus", "cards"), (",2", ",many"), ".csv", ("--map", "submit_s=at,num_gpu=gpus")),
    **{
        kind: Sample(text, traces.MISSING[kind][:2], traces.WRONG[kind][:2])
        for kind, text in traces.TEXTS.items()
    },
}  # fmt: skip
AS_FOUND: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "BOM": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "gz": lambda text: gzip.compress(text.encode()),
    "zip": str.encode,
    "tar.gz": str.encode,
    "no last line end": lambda text: text.rstrip("\n").encode(),
}


def imported(kind: str, source: object, output: Path) -> int:
    """The exit code of an import."""
    return exit_code(["import", kind.split()[0], str(source), *SAMPLES[kind].options, "-o", str(output)])


def test_every_verb_has_a_sample() -> None:
    known = set(verbs.list_commands(click.Context(verbs))) - {
        "opendc",
        "simon",
    }  # Parquet and YAML: in tests of their own
    assert {kind.split()[0] for kind in SAMPLES} == known


@pytest.mark.spread(30)
@pytest.mark.parametrize("change", AS_FOUND)
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_file_as_it_is_found_says_the_same(kind: str, change: str, tmp_path: Path) -> None:
    sample, content = SAMPLES[kind], AS_FOUND[change](SAMPLES[kind].text)
    plain, path = tmp_path / f"plain{sample.ending}", tmp_path / f"found{sample.ending}{'.gz' * (change == 'gz')}"
    plain.write_text(sample.text)
    source = path
    if change == "zip":
        with zipfile.ZipFile(tmp_path / "found.zip", "w") as packed:
            packed.writestr(path.name, content)
        source = tmp_path / "found.zip" / path.name
    else:
        path.write_bytes(content)
    if change == "tar.gz":
        with tarfile.open(tmp_path / "found.tar.gz", "w:gz") as packed_tar:
            packed_tar.add(path, path.name)
        path.unlink()
        source = tmp_path / "found.tar.gz" / path.name
    for one, output in ((plain, "a.parquet"), (source, "b.parquet")):
        assert imported(kind, one, tmp_path / output) == 0
    assert pl.read_parquet(tmp_path / "b.parquet").equals(pl.read_parquet(tmp_path / "a.parquet"))


def broken(sample: Sample, fault: str) -> bytes:
    """The text with a fault."""
    if fault in ("a missing column", "a wrong type"):
        old, new = sample.missing if fault == "a missing column" else sample.wrong
        assert old in sample.text
        return sample.text.replace(old, new, 1).encode()
    if fault == "cut":
        return sample.text.encode()[:-12]
    return {"empty": b"", "binary": b"\xff\xfe\x00\xff\n" * 9, "cut gz": gzip.compress(sample.text.encode())[:-9]}[
        fault
    ]


@pytest.mark.parametrize("fault", ["a missing column", "a wrong type", "cut", "cut gz", "empty", "binary", "no file"])
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_broken_file_is_one_error_and_nothing_is_written(
    kind: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = SAMPLES[kind]
    path = tmp_path / f"t{sample.ending}{'.gz' * (fault == 'cut gz')}"
    if fault != "no file":
        path.write_bytes(broken(sample, fault))
    assert imported(kind, path, tmp_path / "out.parquet") == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1 and str(path) in told and "found" in told and "expected" in told, told
    assert "Traceback" not in told and not (tmp_path / "out.parquet").exists()
