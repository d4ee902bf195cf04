"""Packed files are read like plain ones, up to a size that can be chosen; damaged ones are an OSError."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from fastsim.errors import InputError
from fastsim.foundation.csv_table import read_csv
from fastsim.foundation.limits.environment import UNPACKED_MIB
from fastsim.foundation.limits.packed_file import MOST_MIB, Unpacked, most_bytes, opened_bytes, opened_text


def packed(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content, mtime=0))
    return path


def test_packed_and_plain_texts_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("ä,b\r\n1\n".encode())
    packed(tmp_path / "a.csv.gz", "ä,b\r\n1\n".encode())
    for name in ("a.csv", "a.csv.gz"):
        with opened_text(tmp_path / name) as text:
            assert text.read() == "ä,b\n1\n"
        with opened_text(tmp_path / name, newline="") as text:
            assert text.read() == "ä,b\r\n1\n"
        with opened_bytes(tmp_path / name) as source:
            assert source.read(3) == "ä,".encode()


def test_more_than_the_limit_is_refused_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UNPACKED_MIB, "1")
    with opened_bytes(packed(tmp_path / "fits.gz", bytes(1 << 20))) as source:
        assert len(source.read()) == 1 << 20
    bomb = Unpacked(packed(tmp_path / "bomb.csv.gz", b"a\n" + bytes(64 << 20)))
    read = 0
    with pytest.raises(InputError, match=r"bomb\.csv\.gz: found more than 1 MiB when unpacked, expected at most 1 MiB"):
        while piece := bomb.read(1 << 16):
            read += len(piece)
    assert read <= 1 << 20
    bomb.close()
    packed(tmp_path / "rows.csv.gz", b"a\n" + b"1\n" * (1 << 20))
    with pytest.raises(InputError, match=rf"unpack it, or set {UNPACKED_MIB}"):
        read_csv(tmp_path / "rows.csv.gz", {"a": pa.int64()}, ("a",))


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_choice_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UNPACKED_MIB, text)
    assert most_bytes() == MOST_MIB << 20


@pytest.mark.parametrize("name", ["a\0.csv", "a\0.csv.gz"])
def test_a_path_that_no_file_can_have_is_an_error_of_the_file(name: str) -> None:
    with pytest.raises(OSError, match="null byte"):
        opened_bytes(name)
    with pytest.raises(InputError, match=r"a\\x00.*: found embedded null byte, expected a CSV file"):
        read_csv(name, {"a": pa.int64()}, ("a",))


def test_damaged_data_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.csv.gz", b"a\n" + b"123\n" * 1000)
    content = bytearray(path.read_bytes())
    content[12] ^= 0xFF  # in the compressed data, after the header of ten bytes
    path.write_bytes(bytes(content))
    with pytest.raises(OSError, match=r"gzip|CRC|damaged"), opened_text(path) as text:
        text.read()
    with pytest.raises(InputError, match=r"a\.csv\.gz: found"):
        read_csv(path, {"a": pa.int64()}, ("a",))


def archive(path: Path, **files: bytes) -> Path:
    if path.suffix != ".zip":
        with tarfile.open(path, "w:gz") as packed_tar:
            packed_tar.add(path.parent, "folder", recursive=False)
            for name, content in files.items():
                entry = tarfile.TarInfo(f"./folder/{name}.csv")
                entry.size = len(content)
                packed_tar.addfile(entry, io.BytesIO(content))
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed_files:
        packed_files.writestr("folder/", "")
        for name, content in files.items():
            packed_files.writestr(f"folder/{name}.csv", content)
    return path


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tgz"])
def test_a_file_of_an_archive_reads_like_a_plain_one(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = archive(tmp_path / f"two.{ending}", a="ä,b\n".encode(), b=bytes(2 << 20))
    with opened_text(f"{two}/folder/a.csv") as text:
        assert text.read() == "ä,b\n"
    with opened_bytes(archive(tmp_path / f"one.{ending}", only=b"1\n")) as source:
        assert source.read() == b"1\n"
    for path in (two, f"{two}/a.csv"):
        with pytest.raises(InputError, match=r"archive of 2 files .* one of: \S+/two\.\S+/folder/a\.csv, \S+b\.csv"):
            opened_bytes(path)
    monkeypatch.setenv(UNPACKED_MIB, "1")
    with (
        opened_bytes(f"{two}/folder/b.csv") as source,
        pytest.raises(InputError, match="more than 1 MiB when unpacked"),
    ):
        source.read()


def test_a_folder_may_have_a_name_like_an_archive(tmp_path: Path) -> None:
    (tmp_path / "v.zip").mkdir()  # a folder whose name has the ending of archives
    (tmp_path / "v.zip" / "a.csv").write_text("1")
    with opened_text(tmp_path / "v.zip" / "a.csv") as text:
        assert text.read() == "1"


def test_a_damaged_archive_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", a=b"a\n" + b"123\n" * 1000)
    whole = path.read_bytes()
    place = whole.index(b"a.csv") + len("a.csv") + 4
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    with pytest.raises(InputError, match=r"a\.zip: found"):
        read_csv(path, {"a": pa.int64()}, ("a",))
    path.write_bytes(whole[:-30])
    with pytest.raises(OSError, match="damaged zip archive: File is not a zip file"):
        opened_bytes(path)


def test_a_damaged_tar_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", a=b"a\n" + b"123\n" * 5000)
    whole, tar = path.read_bytes(), gzip.decompress(path.read_bytes())
    for content, message in (
        (whole[:-30], "damaged"),  # cut while packed
        (gzip.compress(tar[:9000], mtime=0), "damaged packed data: unexpected end of data"),
        (gzip.compress(b"a,b\n" * 300, mtime=0), "damaged tar archive"),  # no tar
        (b"a,b\n", "Not a gzipped file"),
    ):
        path.write_bytes(content)
        with pytest.raises(OSError, match=message), opened_bytes(f"{path}/folder/a.csv") as source:
            source.read()


def test_long_names_in_a_tar_count_as_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UNPACKED_MIB, "1")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz", format=tarfile.GNU_FORMAT) as files:
        files.addfile(tarfile.TarInfo("n" * (2 << 20)))
    with pytest.raises(InputError, match=r"a\.tar\.gz: found more than 1 MiB when unpacked"):
        opened_bytes(tmp_path / "a.tar.gz")


def test_what_could_not_be_opened_is_closed_like_the_rest(tmp_path: Path) -> None:
    two = archive(tmp_path / "two.zip", a=b"1", b=b"2")
    lost = Unpacked.__new__(Unpacked)
    with pytest.raises(InputError):
        lost.__init__(two)  # type: ignore[misc]
    lost.close()  # as Python does at the end of its life
    assert lost.closed
