"""Which microbatches does a data rank train on, from any point of the run on?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from forgeplan.diagnostics.counted import plural
from forgeplan.diagnostics.data_codes import DATA_CHANGED, TOO_FEW_SAMPLES
from forgeplan.diagnostics.refusal import InternalError, Refusal
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.assemble import microbatch
from forgeplan.runtime.data.assignment import Assignment
from forgeplan.runtime.data.hashing import I64, key_of
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.data.mixture import Mixture
from forgeplan.runtime.data.opening import Barrier, alone, open_sources
from forgeplan.runtime.data.order import in_epochs
from forgeplan.runtime.data.reading import Reader
from forgeplan.runtime.data.samples import Samples
from forgeplan.runtime.data.split import split_source
from forgeplan.spec.plan import Plan


class TrainData:
    """The training order of a plan, as one data rank sees it.

    The order is one line of sequences: a function of the seed and the place in the line, the same for any number of
    ranks, any accumulation and any microbatch size. A source that is used up starts over in another order; a step may
    cross that point. While a step trains, a thread reads the next one.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        *,
        data_rank: int,
        project: Path,
        barrier: Barrier = alone,
        cache: Path | None = None,
    ) -> None:
        """Opens the sources; calls `barrier` once. Raises Refusal FP0606, FP0609, FP0611–FP0613, FP0616 or FP0618."""
        job, batch = plan.job, plan.job.batch
        self._job = job
        self._data_rank = data_rank
        self._assignment = Assignment(batch.accumulation, plan.mesh.data_ranks, batch.micro)
        self._mixture = Mixture.of(_weights(job))
        self._sources, self._tokenizer = open_sources(
            plan, self._mixture.names, data_rank=data_rank, project=project, barrier=barrier, cache=cache
        )
        self._parts = [self._sources[name].part(split_source(name, job.eval)[0]) for name in self._mixture.names]
        for name, samples in zip(self._mixture.names, self._parts, strict=True):
            self._refuse_too_few(name, samples)
        self._keys = [key_of("order", job.seed, name) for name in self._mixture.names]
        ends = [self._sources[name].end_of_document for name in self._mixture.names]
        self._reader = Reader(list(zip(self._parts, ends, strict=True)), batch.length, job.model.vocab)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="data")
        self._ahead: tuple[int, Future[list[Microbatch]]] | None = None

    @property
    def num_samples(self) -> int | None:
        """Sequences in one epoch of every source together; None where a source is endless."""
        counts = [samples.num_samples for samples in self._parts]
        return None if None in counts else sum(c for c in counts if c is not None)

    def microbatches(self, first_sample: int) -> list[Microbatch]:
        """This rank's microbatches of the step that starts at a global sample index; as many as `batch.accumulation`.

        Raises Refusal FP1017 if an id is not below the vocabulary.
        """
        if self._ahead is not None and self._ahead[0] == first_sample:
            found = self._ahead[1].result()
        else:
            found = self._read(first_sample)
        following = first_sample + self._assignment.samples_per_step
        self._ahead = (following, self._thread.submit(self._read, following))
        return found

    def close(self) -> None:
        """End the reading thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._ahead = None

    def record(self) -> dict[str, Any]:
        """All that the order depends on, for a checkpoint: settings, and facts about the content of each source."""
        job = self._job
        return {
            "seed": job.seed,
            "length": job.batch.length,
            "pack": job.batch.pack,
            "mixture": dict(zip(self._mixture.names, self._mixture.parts, strict=True)),
            "shuffle": {name: self._sources[name].shuffle for name in self._mixture.names},
            "held_out": {name: _held_out(name, job) for name in self._mixture.names},
            "tokenizer": None if self._tokenizer is None else self._tokenizer.fingerprint(),
            "content": {name: dict(self._sources[name].facts()) for name in self._mixture.names},
        }

    def fingerprint(self) -> str:
        """A hash of `record()`: runs with equal ones see the same sequences at the same places."""
        return blake2b(json.dumps(self.record(), sort_keys=True).encode(), digest_size=16).hexdigest()

    def check_unchanged(self, recorded: Mapping[str, Any]) -> None:
        """Compare with the `record()` of a checkpoint.

        Raises Refusal FP1018 if the content of a source is another now, or what else the order depends on.
        """
        here = self.record()
        content = here.pop("content")
        for name, before in recorded.get("content", {}).items():
            now = content.get(name, before)
            for item in sorted({*before, *now}):
                if before.get(item) != now.get(item):
                    raise _changed(
                        f"source `{name}`, {item}", before.get(item, "no such file"), now.get(item, "no such file")
                    )
        for name, now in here.items():
            if recorded.get(name) != now:
                raise _changed(f"{name} of the training data", json.dumps(recorded.get(name)), json.dumps(now))

    def describe(self) -> str:
        """What there is to train on, one source a line."""
        total = sum(self._mixture.parts)
        lines = []
        for name, part, samples in zip(self._mixture.names, self._mixture.parts, self._parts, strict=True):
            line = f"{name}: {self._sources[name].describe()}"
            if samples.num_samples is not None:
                line += f"; {plural(samples.num_samples, 'sequence')} of {self._job.batch.length:,} to train on"
            lines.append(line if len(self._parts) == 1 else f"{line}; {100 * part / total:.4g} % of the mixture")
        return "\n".join(lines)

    def _read(self, first_sample: int) -> list[Microbatch]:
        samples = self._assignment.samples(first_sample, self._data_rank)
        sources, numbers = self._locate(samples.reshape(-1))
        rows = self._reader.read(sources, numbers)
        micro = self._assignment.micro
        return [
            microbatch(
                rows.tokens[at : at + micro],
                rows.foreign[at : at + micro],
                rows.end_of_document[at : at + micro],
                pack=self._job.batch.pack,
                sample=int(samples[number, 0]),
            )
            for number, at in enumerate(range(0, len(rows.tokens), micro))
        ]

    def _locate(self, samples: I64) -> tuple[I64, I64]:
        """For global sample indices: which source, and which of its sequences."""
        sources, draws = self._mixture.draw(samples)
        numbers = np.empty_like(draws)
        for place, (name, part) in enumerate(zip(self._mixture.names, self._parts, strict=True)):
            mine = sources == place
            if part.num_samples is None:
                numbers[mine] = draws[mine]
            else:
                shuffle = self._sources[name].shuffle
                numbers[mine] = in_epochs(draws[mine], part.num_samples, self._keys[place], shuffle)
        return sources, numbers

    def _refuse_too_few(self, name: str, samples: Samples) -> None:
        ranks, micro = self._assignment.data_ranks, self._assignment.micro
        found = samples.num_samples
        if found is None or found >= ranks * micro:
            return
        help = "take more text, a shorter batch.length, or a smaller batch.micro"
        if found >= micro:
            help = f"at most {plural(found // micro, 'data rank')}, or {help}"
        raise Refusal(
            TOO_FEW_SAMPLES,
            f"source `{name}` has {plural(found, 'sequence')} of length {self._job.batch.length:,} to train on; one "
            f"microbatch on each of {plural(ranks, 'data rank')} needs {ranks * micro:,}",
            help,
        )


def _held_out(source: str, job: Plan) -> str:
    """The share that training leaves to evaluations: it begins behind them."""
    kept = split_source(source, job.eval)[0]
    return f"{kept.low}/{kept.of}"


def _changed(what: str, before: str, now: str) -> Refusal:
    return Refusal(
        DATA_CHANGED,
        f"{what}: the checkpoint was trained on {before}, and now there is {now}",
        "restore the data, or start a new run: give it another name or another `checkpoint.path`",
    )


def _weights(job: Plan) -> dict[str, Fraction]:
    if job.mixture is not None:
        return {name: Fraction(weight.amount) for name, weight in job.mixture.items()}
    if len(job.sources) != 1:
        raise InternalError(f"a plan with {len(job.sources)} sources and no mixture was compiled")
    return dict.fromkeys(job.sources, Fraction(1))
