"""How are the sources of a plan opened, on every rank, when only one may do the work of tokenising?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from forgeplan.diagnostics.data_codes import END_OF_DOCUMENT, FILES, VOCABULARY
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.cache import cache_folders
from forgeplan.runtime.data.samples import Setting, Source
from forgeplan.runtime.data.tokenizer.interface import Tokenizer, load_tokenizer
from forgeplan.runtime.registry import implementation

Barrier = Callable[[], None]


def alone() -> None:
    """The barrier of a run with one rank."""


def open_sources(
    plan: ExecutionPlan,
    names: Iterable[str],
    *,
    data_rank: int,
    project: Path,
    barrier: Barrier,
    cache: Path | None = None,
) -> tuple[dict[str, Source], Tokenizer | None]:
    """The named sources, and the plan's tokenizer. Data rank 0 goes first, the others find its work in the cache.

    Calls `barrier` exactly once on each rank, whatever happens, so that no rank waits in it for one that has failed.
    Ranks that do not share a file system with rank 0 do the work again.
    """

    def open_all() -> tuple[dict[str, Source], Tokenizer | None]:
        tokenizer = _tokenizer(plan, project)
        caches = cache_folders(project) if cache is None else (cache,)
        settings = [
            Setting(name, project, plan.job.batch.length, plan.job.seed, tokenizer, caches) for name in sorted(names)
        ]
        opened = {setting.name: _open(plan, setting) for setting in settings}
        _refuse_files_read_twice(opened, settings)
        return opened, tokenizer

    if data_rank != 0:
        barrier()
        return open_all()
    try:
        return open_all()
    finally:
        barrier()


def _tokenizer(plan: ExecutionPlan, project: Path) -> Tokenizer | None:
    spec, vocab = plan.job.tokenizer, plan.job.model.vocab
    if spec is None:
        return None
    tokenizer = load_tokenizer(spec, project)
    if tokenizer.num_tokens > vocab:
        raise Refusal(
            VOCABULARY,
            f"the tokenizer has {tokenizer.num_tokens:,} ids, and model.vocab is {vocab:,}",
            f"model.vocab = {tokenizer.num_tokens} is the smallest that fits",
        )
    return tokenizer


def _open(plan: ExecutionPlan, setting: Setting) -> Source:
    spec = plan.job.sources[setting.name]
    source: Source = implementation("source", spec)(spec, setting)
    if plan.job.batch.pack and source.end_of_document is None:
        looked = "the plan has no tokenizer"
        if setting.tokenizer is not None:
            looked = "neither `eos_token` of a tokenizer_config.json beside the tokenizer nor a special token says it"
        raise Refusal(
            END_OF_DOCUMENT,
            f"batch.pack needs to know which id ends a document of source `{setting.name}`: {looked}",
            "add the token to the tokenizer, or set batch.pack = false",
        )
    return source


def _refuse_files_read_twice(sources: dict[str, Source], settings: list[Setting]) -> None:
    reader: dict[Path, tuple[str, str]] = {}
    for setting in settings:
        for path in sources[setting.name].files:
            here = (setting.name, setting.shown(path))
            other = reader.setdefault(path.resolve(), here)
            if other == here:
                continue
            if other[0] == setting.name:
                message = f"source `{setting.name}` reads one file twice, as {other[1]} and as {here[1]}"
            else:
                message = f"sources `{other[0]}` and `{setting.name}` both read {here[1]}"
            raise Refusal(FILES, message, "what is read twice is trained on twice as often as the mixture says")
