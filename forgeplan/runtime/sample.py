"""What is shown of a trained model at the end of its run?"""

from __future__ import annotations

from pathlib import Path

import torch
from attrs import frozen

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.verify import read
from forgeplan.runtime.checkpoint.load import load_plan
from forgeplan.runtime.data.eval_data import EvalData
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.data.tokenizer.interface import Tokenizer
from forgeplan.runtime.generate import Request, Writer
from forgeplan.runtime.sampling import Sampling

_LARGEST_PARAMETERS = 1_000_000_000
# All tokens, however unlikely: with the likeliest 95 % only, a model that writes spaces would never stop writing them.
_SAMPLING = Sampling(temperature=0.8)
_SEED = 0


@frozen
class Sample:
    """`origin` names the evaluation whose text begins with `prompt`, or is empty with it."""

    origin: str
    prompt: str
    answer: str

    def lines(self) -> tuple[str, str]:
        """A heading, and the text."""
        how = f"(temperature {_SAMPLING.temperature}, seed {_SEED})"
        if not self.prompt:
            return f"sample {how}:", self.answer
        return f"sample: how {self.origin} begins, and behind » what the model makes of it {how}:", (
            f"{self.prompt}»{self.answer}"
        )


def sample_of(checkpoint: Path, project: Path) -> Sample | None:
    """How a saved model goes on from text that it was not trained on, or from nothing where there is none.

    None for a plan without text, and for a model too large to write in one process at leisure.
    """
    plan = read(load_plan(checkpoint))
    if plan.job.tokenizer is None or plan.estimates.num_parameters > _LARGEST_PARAMETERS:
        return None
    writer = Writer.load(checkpoint, project, torch.device("cpu"))
    tokenizer = writer.tokenizer
    origin, prompt = _beginning(plan, tokenizer, project) if tokenizer is not None else ("", "")
    from_nothing = "" if tokenizer is not None and tokenizer.end_of_document is not None else "\n"
    room = plan.job.model.context - max(1, len(tokenizer.encode(prompt)) if tokenizer is not None else 1)
    request = Request(min(256, room), _SAMPLING, _SEED)
    return Sample(origin, prompt, writer.write([prompt or from_nothing], request)[0])


def _beginning(plan: ExecutionPlan, tokenizer: Tokenizer, project: Path) -> tuple[str, str]:
    """The name of the first evaluation, and as much of its text as is a quarter of the model's context."""
    for name in plan.job.eval:
        first = next(EvalData(plan, name, data_rank=0, project=project).microbatches())
        return name, _text(first, tokenizer, plan.job.model.context // 4)
    return "", ""


def _text(microbatch: Microbatch, tokenizer: Tokenizer, num_tokens: int) -> str:
    """Of the first sequence; of the last document that begins in it, if several do."""
    tokens = microbatch.tokens_BS[0, :num_tokens].tolist()
    ends = [at for at, token in enumerate(tokens) if token == tokenizer.end_of_document]
    return tokenizer.decode(tokens[ends[-1] + 1 if ends else 0 :])
