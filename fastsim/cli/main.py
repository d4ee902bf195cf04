"""The command line: the list of verbs, and errors and signals as exit codes with one line each."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

from fastsim.cli.audit import audit, fairness, tenants
from fastsim.cli.data import profile, synth
from fastsim.cli.experiments import plan, reproduce, sweep
from fastsim.cli.grammar.messages import Messages, with_messages
from fastsim.cli.grammar.option_defaults import defaults_of
from fastsim.cli.grammar.sections import Sections, with_examples
from fastsim.cli.grammar.users_code import users_frames
from fastsim.cli.guide import guide
from fastsim.cli.importers import import_
from fastsim.cli.kubernetes import consolidate, export, mig, serve_extender
from fastsim.cli.list import describe, list_, new_policy
from fastsim.cli.monitor import monitor
from fastsim.cli.process_streams import prepare
from fastsim.cli.report import plot, report
from fastsim.cli.run import compare, demo, explain, fork, resume, run
from fastsim.cli.strict import notice_key
from fastsim.cli.trace import trace
from fastsim.errors import FastsimError, ScenarioError, short
from fastsim.foundation import interrupts
from fastsim.foundation.durable_file import is_utf8
from fastsim.foundation.limits import work_budget
from fastsim.foundation.limits.environment import refuse_little_room, refuse_odd_numbers

BROKEN_PIPE = 141
MOST_CHARACTERS = 1000
"""Longest message about the use of a command, or of the system."""
COMPLETION = "_FASTSIM_COMPLETE"
"""The environment variable by which click recognises a shell's request for completions, or for their function."""
SAFE_PATH = "PYTHONSAFEPATH"
"""The environment variable with which Python adds no folder of its own to the places of modules."""

LIGHT = {"list", "describe", "guide", "new-policy", "-h", "--help", "--version"}
"""Words of commands that load no large library, and need little memory."""

VERBS: list[click.Command] = [
    run, resume, fork, sweep, reproduce, demo, compare, report, plot, explain, audit, fairness, tenants, import_,
    synth, trace, profile, monitor, plan, consolidate, mig, export, serve_extender, list_, describe,
    new_policy, guide,
]  # fmt: skip
with_examples(VERBS)


@click.group(
    cls=Sections,
    commands=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="fastsim-gpu", prog_name="fastsim")
def commands() -> None:
    """Simulate GPU-cluster schedulers: published policies, one fast engine, every metric.

    Start with: fastsim demo. Every verb has -h, -q, -v and --debug; fastsim.toml, or [tool.fastsim] of pyproject.toml,
    holds defaults of their options.
    """


with_messages([commands])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    interrupts.own_process()
    prepare()
    os.environ.setdefault(SAFE_PATH, "1")  # workers load no modules from the current folder, either
    code = exit_code(sys.argv[1:] if arguments is None else arguments)
    interrupts.ignore()
    sys.exit(code)


def exit_code(arguments: Sequence[str]) -> int:
    """Run one command: 0 done, 1 failed run, 2 bad input, 130 interrupted, 143 terminated."""
    done, messages = False, Messages()
    try:
        with interrupts.deferred(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _shown_once(messages)
            code = _invoke(list(arguments), messages)
            sys.stdout.flush()
            done = True
            if messages.verbose:
                print(f"fastsim: {messages.effort()}", file=sys.stderr)
        return code
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except interrupts.STOPPED as stopped:
        state = "; all was done" if done else ", nothing written"
        return _fail(f"interrupted{state}", interrupts.exit_code(stopped))
    except click.ClickException as error:
        return _fail(_cut(messages.named(error.format_message())), error.exit_code)
    except FastsimError as error:
        if messages.debug and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        return _fail(messages.named(str(error)), error.exit_code, users_frames(error.__cause__))
    except OSError as error:
        _drop_output()
        return _fail(_cut(messages.named(_os_error(error))), 1)
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of polars is no Exception
        if messages.debug:
            raise
        if frames := users_frames(error):
            text = "a policy or function that is not part of fastsim failed; --debug shows all of its traceback"
            return _fail(text, 2, frames)
        message = f"internal error: {type(error).__name__}: {error} (--debug shows where)"
        return _fail(message, 1)


def _invoke(arguments: list[str], messages: Messages) -> int:
    # Not commands.main(): it writes an empty line on Ctrl-C and usage lines on errors.
    if completion := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        return shell_complete(commands, {}, "fastsim", COMPLETION, completion)
    refuse_odd_numbers()
    if LIGHT.isdisjoint(arguments):
        refuse_little_room()
    work_budget.factor()  # which refuses one that is no factor
    _refuse_other_bytes(arguments)
    try:
        defaults, messages.defaults = defaults_of(commands)
        with commands.make_context("fastsim", arguments, obj=messages, default_map=defaults) as context:
            commands.invoke(context)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        return 2
    except click.exceptions.Exit as done:
        return done.exit_code
    return 0


def _refuse_other_bytes(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if not is_utf8(argument):
            remedy = "set PYTHONUTF8=1 if it is" if sys.getfilesystemencoding() != "utf-8" else ""
            raise ScenarioError("argument", short(argument), "text in UTF-8", remedy)


def _fail(text: str, code: int, frames: Sequence[str] = ()) -> int:
    line = " ".join(text.split())
    print(f"fastsim: {line}", *frames, sep="\n", file=sys.stderr)
    return code


def _cut(text: str) -> str:
    """The text without the middle of it if an argument makes it very long."""
    return (
        text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS // 2]} ... {text[-MOST_CHARACTERS // 2 :]}"
    )


def _os_error(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else "" if _has_working_folder() else "the working folder: "
    return f"{place}{error.strerror or error}"


def _has_working_folder() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:  # it was removed
        return False


def _drop_output() -> None:
    # The buffered rest cannot be written either; without this, Python would print an error at exit.
    with suppress(OSError):  # an output that is no file has no rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shown_once(messages: Messages) -> Callable[..., None]:
    """A function that prints each warning once: several runs, or cluster and workload of one file, repeat its text."""
    shown: dict[str, object] = {}

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text, entry = messages.named(" ".join(str(message).split())), object()
        notice = category.__name__ == "NotHonoured"  # by name: most commands need not load its module
        if shown.setdefault(notice_key(message) if notice else text, entry) is entry:  # one step: threads warn too
            print(f"fastsim: warning: {text}", file=sys.stderr)

    return show


if __name__ == "__main__":
    main()
