"""`forgeplan generate`: let a trained model write."""

from __future__ import annotations

from pathlib import Path

import click

from forgeplan.cli.terminal import Command, write


@click.command("generate", cls=Command, short_help="Let a trained model write.")
@click.argument("checkpoint", metavar="RUN_OR_CHECKPOINT")
@click.option(
    "--prompt", metavar="TEXT", default="", help="What the model goes on from.  [default: the beginning of a document]"
)
@click.option(
    "--max-new-tokens",
    metavar="N",
    type=click.IntRange(1),
    help="Stop after so many.  [default: what fits into the context, 128 at most]",
)
@click.option(
    "--temperature",
    metavar="T",
    type=click.FloatRange(0),
    default=0.8,
    show_default=True,
    help="0: the likeliest token.",
)
@click.option(
    "--top-k", metavar="K", type=click.IntRange(0), default=0, help="Only the K likeliest tokens.  [default: all]"
)
@click.option(
    "--top-p",
    metavar="SHARE",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    help="Only the likeliest tokens that have this share together.  [default: all]",
)
@click.option(
    "--repetition-penalty",
    metavar="FACTOR",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    help="Above 1: what stands there already is less likely.",
)
@click.option("--stop", multiple=True, metavar="TEXT", help="End before this text; may be repeated.")
@click.option(
    "--seed", metavar="N", type=click.IntRange(0), default=0, show_default=True, help="The same seed writes the same."
)
@click.option(
    "--project",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where relative paths of the plan start.  [default: above the run directory]",
)
def command(
    checkpoint: str,
    prompt: str,
    max_new_tokens: int | None,
    temperature: float,
    top_k: int,
    top_p: float,
    repetition_penalty: float,
    stop: tuple[str, ...],
    seed: int,
    project: Path | None,
) -> None:
    """Write on from a prompt with a model that was trained: a run directory (its newest checkpoint) or a checkpoint."""
    from forgeplan.runtime.generate import Request, Writer
    from forgeplan.runtime.sampling import Sampling

    sampling = Sampling(temperature, top_k, top_p, repetition_penalty)
    writer = Writer.load(Path(checkpoint), project, say=lambda note: click.echo(note, err=True))
    pieces = writer.stream(prompt, Request(max_new_tokens, sampling, seed, stop))
    write(prompt + next(pieces, ""), end="")  # a refusal comes with the first piece, and nothing stands before it
    for piece in pieces:
        write(piece, end="")
    write("")
