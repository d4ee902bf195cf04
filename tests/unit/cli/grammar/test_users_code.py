"""Frames in files of the user's."""

from __future__ import annotations

from pathlib import Path

from fastsim.cli.grammar.users_code import users_frames


def failed(code: str, file: str) -> BaseException:
    """What this code raised, as if it stood in a file."""
    try:
        exec(compile(code, file, "exec"), {})
    except Exception as error:
        error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
        return error
    raise AssertionError


def test_the_last_three_frames_are_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    code = "def a(): b()\ndef b(): c()\ndef c(): d()\ndef d():\n    1 / 0\na()\n"
    file.write_text(code)
    lines = users_frames(failed(code, str(file)))
    assert [line for line in lines if " in " in line] == [
        f"  {file}:2 in b", f"  {file}:3 in c", f"  {file}:5 in d",
    ]  # fmt: skip
    assert lines[-2:] == ["    1 / 0", "  ZeroDivisionError: division by zero"]


def test_what_fastsim_or_a_library_raises_is_not_the_users() -> None:
    def code_of_ours() -> BaseException:
        from fastsim.errors import short

        try:
            short(1, most="x")  # type: ignore[arg-type]
        except TypeError as error:
            return error
        raise AssertionError

    assert users_frames(code_of_ours()) == () and users_frames(None) == ()
    assert users_frames(failed("import json; json.loads('[')", "<string>")) == ()


def test_a_library_of_any_installation_is_no_code_of_the_users(tmp_path: Path) -> None:
    assert users_frames(failed("1 / 0\n", str(tmp_path / "mine.py")))
    assert not users_frames(failed("1 / 0\n", str(tmp_path / "site-packages" / "library.py")))
