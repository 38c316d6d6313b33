"""Which microbatches does a data rank evaluate on?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from forgeplan.diagnostics.counted import plural
from forgeplan.diagnostics.data_codes import SPLIT
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.assemble import microbatch
from forgeplan.runtime.data.documents import DocumentSamples
from forgeplan.runtime.data.entropy import entropy_of_counts
from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch
from forgeplan.runtime.data.opening import Barrier, alone, open_sources
from forgeplan.runtime.data.reading import Reader
from forgeplan.runtime.data.split import WHOLE, split_source


class EvalData:
    """The sequences of one evaluation, always the same ones in the order of the source.

    `num_batches` microbatches are dealt to the data ranks in turn. Every rank gets equally many: what is missing, in
    the last microbatch or after it, is filled with sequences of which no label counts.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        name: str,
        *,
        data_rank: int,
        project: Path,
        barrier: Barrier = alone,
        cache: Path | None = None,
    ) -> None:
        """Opens the source; calls `barrier` once.

        Raises Refusal as TrainData does, FP0618 if there is too little to evaluate on.
        """
        self._block = plan.job.eval[name]
        self._batch = plan.job.batch
        self._vocab: int = plan.job.model.vocab
        self._data_rank, self._data_ranks = data_rank, plan.mesh.data_ranks
        source_name = self._block.source
        sources, _ = open_sources(
            plan, (source_name,), data_rank=data_rank, project=project, barrier=barrier, cache=cache
        )
        source = sources[source_name]
        part = split_source(source_name, plan.job.eval)[1].get(name, WHOLE)
        self._samples = source.part(part)
        self._origin = source.describe()
        self._reader = Reader([(self._samples, source.end_of_document)], self._batch.length, self._vocab)
        self.num_batches = self._count_batches(name)
        """Microbatches over all data ranks."""

    def microbatches(self) -> Iterator[Microbatch]:
        """This rank's microbatches; equally many on every rank."""
        for number in range(self._data_rank, self._per_rank * self._data_ranks, self._data_ranks):
            yield self._microbatch(number)

    def unigram_entropy(self) -> float:
        """Entropy in nats of the counted labels of this evaluation (of all ranks), each label taken by itself."""
        counts = np.zeros(self._vocab, np.int64)
        for number in range(self.num_batches):
            labels = self._microbatch(number).labels_BS.numpy()
            counts += np.bincount(labels[labels != NOT_COUNTED], minlength=self._vocab)
        return entropy_of_counts(counts)

    def describe(self) -> str:
        """What is evaluated on, in one line."""
        split = f"{100 * float(self._block.split):.4g}% held out of " if self._block.split else ""
        return (
            f"{plural(self.num_batches, 'microbatch')} of {self._batch.micro:,} × {self._batch.length:,} tokens, "
            f"{split}{self._block.source}: {self._origin}"
        )

    @property
    def _per_rank(self) -> int:
        return -(-self.num_batches // self._data_ranks)

    def _microbatch(self, number: int) -> Microbatch:
        micro = self._batch.micro
        first = number * micro
        available = self.num_batches * micro
        if self._samples.num_samples is not None:
            available = min(available, self._samples.num_samples)
        num_there = max(0, min(micro, available - first))
        rows = self._reader.read(np.zeros(num_there, np.int64), np.arange(first, first + num_there, dtype=np.int64))
        tokens, foreign, closing = rows.tokens, rows.foreign, rows.end_of_document
        if num_there < micro:
            missing = micro - num_there
            tokens = np.concatenate((tokens, np.zeros((missing, tokens.shape[1]), np.int64)))
            foreign = np.concatenate((foreign, np.zeros(missing, np.bool_)))
            closing = np.concatenate((closing, np.full(missing, -1, np.int64)))
        found = microbatch(tokens, foreign, closing, pack=self._batch.pack, sample=first)
        found.labels_BS[num_there:] = NOT_COUNTED
        return found

    def _count_batches(self, name: str) -> int:
        wanted, there = self._block.batches, self._samples.num_samples
        where = f"eval {name}: source `{self._block.source}`"
        if there is None:
            if isinstance(wanted, str):
                raise Refusal(SPLIT, f"{where} is endless, and batches = all", "write batches = 50")
            return wanted
        found = -(-there // self._batch.micro)
        if found == 0:
            share = f"its split of {100 * float(self._block.split):.4g}%" if self._block.split else "it"
            helps = ["take a larger split, or a shorter batch.length"]
            if self._block.split and isinstance(self._samples, DocumentSamples):
                helps.insert(0, "documents are held out whole: give it more of them (files, or lines of jsonl)")
            raise Refusal(SPLIT, f"{where}: {share} holds no sequence of length {self._batch.length:,}", helps)
        if isinstance(wanted, str):
            return found
        if wanted > found:
            raise Refusal(
                SPLIT,
                f"{where} gives {plural(found, 'microbatch')} of {plural(self._batch.micro, 'sequence')}; "
                f"batches = {wanted:,}",
                f"batches = {found} at most, or batches = all",
            )
        return wanted
