"""What goes wrong in a command, for people: one sentence on stderr and an exit code, never a traceback.

A bug is one line and the path of a file that holds the traceback.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from penstock.model.errors import PenstockError

_WRONG_VALUE = re.compile(r"^Invalid value for '?([^':]+)'?: Input should be (.+?)(?:, unable to .*)?$")
BUG_CODE, USAGE_CODE, STOPPED_CODE = 70, 2, 130


class SentenceGroup(TyperGroup):
    """A group of commands whose errors end as sentences."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, SystemExit):
            raise
        except PenstockError as error:
            _end(str(error), error.exit_code)
        except (KeyboardInterrupt, typer.Abort, EOFError):
            _end("Stopped.", STOPPED_CODE)
        except BrokenPipeError:
            # Whoever read our output has gone (`| head`); the interpreter must not complain when it flushes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except Exception as error:  # noqa: BLE001 - the last place where a bug can become a sentence
            usage = getattr(error, "format_message", None)
            if callable(usage):
                _end(_usage(str(usage()), getattr(error, "ctx", None)), USAGE_CODE)
            _end(describe_bug(error), BUG_CODE)


def _usage(message: str, ctx: Any) -> str:
    """A wrong option or argument, and where to look."""
    command = getattr(ctx, "command_path", "penstock")
    text = " ".join(message.split()).rstrip(".")
    wrong = _WRONG_VALUE.match(text)
    if wrong is not None:
        wanted = re.sub(r"^(greater|less)", r"a value \1", wrong.group(2))
        text = f"{wrong.group(1)} needs {wanted}"
    return f"{text}; see `{command} --help`."


def describe_bug(error: BaseException) -> str:
    """One line, after the traceback was written to a file."""
    with tempfile.NamedTemporaryFile("w", prefix="penstock-crash-", suffix=".txt", delete=False) as file:
        file.write(f"{' '.join(sys.argv)}\n\n")
        file.writelines(traceback.format_exception(error))
    what = (str(error).strip().splitlines() or [""])[0]
    return f"A bug in penstock: {type(error).__name__}: {what}; the whole of it is in {Path(file.name)}."


def _end(sentence: str, code: int) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(code) from None
