"""The command line. One file a group of commands; `output.py` says how they speak, and with which exit code
they end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Annotated

import typer

from pipeline.cli import bench, db, demo, evaluation, model, patterns, review, run, site, status
from pipeline.cli.output import COULD_NOT_RUN, EXIT_CODES, USAGE, complain
from pipeline.telemetry import configure_logging
from schemas.errors import AndonError, RequestError

app = typer.Typer(
    name="andon",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"andon {metadata.version('andon')}\n")
        raise typer.Exit


# \b keeps click from filling the lines.
_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items())


@app.callback(epilog=_EPILOG)
def andon(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Turns what machines say into tickets people can act on. Offline, next to the broker."""
    # Before any command: stdout is for results, whatever a library has to say. `run` chooses its own level.
    configure_logging("error")


app.command()(run.run)
app.command()(demo.demo)
app.command()(site.check)
app.command()(site.schema)
app.command("try")(evaluation.try_)
app.command("eval")(evaluation.eval_)
app.add_typer(review.app, name="review")
app.add_typer(patterns.app, name="patterns")
app.add_typer(model.app, name="model")
app.command()(status.status)
app.command()(bench.bench)
app.add_typer(db.app, name="db")


def main() -> None:
    """Entry point of the `andon` command: errors we raise on purpose end in one line and an exit code."""
    try:
        app()
    except RequestError as error:
        complain(str(error))
        sys.exit(USAGE)
    except AndonError as error:
        complain(str(error))
        sys.exit(COULD_NOT_RUN)
    except BaseExceptionGroup as group:  # the service's lanes end together
        meant, other = group.split(AndonError)
        if meant is None or other is not None:
            raise
        for each in _leaves(meant):
            complain(str(each))
        sys.exit(COULD_NOT_RUN)
    except KeyboardInterrupt:
        sys.exit(COULD_NOT_RUN)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nothing more to say, and nobody to say it to
        sys.exit(COULD_NOT_RUN)


def _leaves(group: BaseExceptionGroup[AndonError]) -> Iterator[AndonError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
