"""What does a trained model write?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import torch
from attrs import define, evolve, field, frozen
from torch import Tensor

from forgeplan.diagnostics.counted import plural
from forgeplan.diagnostics.refusal import Refusal, UsageError
from forgeplan.diagnostics.refusals import CHECKSUM, GENERATION, STEP_MISSING
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import Fsdp
from forgeplan.plan.verify import read
from forgeplan.runtime.answer import Answer
from forgeplan.runtime.checkpoint import layout
from forgeplan.runtime.checkpoint.checksum import first_damage
from forgeplan.runtime.checkpoint.choose import choose
from forgeplan.runtime.checkpoint.load import load_plan, load_tensors
from forgeplan.runtime.data.tokenizer.interface import Tokenizer, load_tokenizer
from forgeplan.runtime.executor import build, named_views
from forgeplan.runtime.model.cache import Cache
from forgeplan.runtime.ranks import Ranks
from forgeplan.runtime.run_directory import project_above
from forgeplan.runtime.sampling import Sampling, next_token

# B batch, S prompt length with padding, V vocabulary

MOST_UNASKED = 128
"""New tokens of an answer whose length nobody chose."""


@frozen
class Request:
    """What to write. An answer ends before the first of the `stop` texts, or where the model ends the document.

    `new_tokens` is None for as many as fit into the model's context, 128 at most.
    """

    new_tokens: int | None = None
    sampling: Sampling = field(factory=Sampling)
    seed: int = 0
    stop: tuple[str, ...] = ()


@define
class Writer:
    """A model in one process, whatever layout it was trained and saved in."""

    plan: ExecutionPlan
    step: int
    model: torch.nn.Module
    tokenizer: Tokenizer | None
    device: torch.device

    @classmethod
    def load(
        cls,
        path: Path,
        project: Path | None = None,
        device: torch.device | None = None,
        say: Callable[[str], None] = lambda note: None,
    ) -> Writer:
        """From a checkpoint (`step-300`), or the newest good one of a run directory or its `checkpoints/`.

        `project` is the folder that the plan's relative paths start from; without it, the one above the run directory.
        `say` is told of damaged checkpoints that were passed over.
        Raises Refusal FP1012–FP1015 for what cannot be loaded.
        """
        checkpoint = find_checkpoint(path, say)
        device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        plan = _for_one_process(read(load_plan(checkpoint.path)), device)
        bundle = build(plan, device)
        weights = {f"model.{name}": tensor for name, tensor in named_views(bundle).items()}
        load_tensors(checkpoint.path, weights, Ranks(), part="model.")
        spec = plan.job.tokenizer
        project = project or project_above(checkpoint.path, plan.run_dir) or Path.cwd()
        tokenizer = load_tokenizer(spec, project) if spec is not None else None
        return cls(plan, checkpoint.step, bundle.model.eval(), tokenizer, device)

    def write(self, prompts: Sequence[str], request: Request) -> list[str]:
        """The answer to each prompt, without the prompt. Prompts of different lengths do not influence one another."""
        answers = [Answer(self._tokenizer(), request.stop) for _ in prompts]
        encoded = [self._encoded(p) for p in prompts]
        for tokens in self.tokens(encoded, request, [answer.has_ended for answer in answers]):
            for answer, token in zip(answers, tokens, strict=True):
                if token is not None:
                    answer.add(token)
        for answer in answers:
            answer.finish()
        return [answer.text for answer in answers]

    def stream(self, prompt: str, request: Request) -> Iterator[str]:
        """The answer to a prompt in pieces, as they are certain: a beginning of a stop text is held back."""
        answer = Answer(self._tokenizer(), request.stop)
        for (token,) in self.tokens([self._encoded(prompt)], request, [answer.has_ended]):
            if token is not None:
                answer.add(token)
                yield answer.take()
        answer.finish()
        yield answer.take()

    def tokens(
        self, prompts: Sequence[Sequence[int]], request: Request, ended: Sequence[Callable[[], bool]] = ()
    ) -> Iterator[list[int | None]]:
        """The next id of every prompt, step by step; None for those that have ended: by the id that ends a
        document, or because the caller says so (`ended`, one for each prompt).

        Raises Refusal FP1020 if a prompt and its answer do not fit into the model's context.
        """
        new_tokens = self._length(prompts, request.new_tokens)
        end = self.tokenizer.end_of_document if self.tokenizer is not None else None
        rows = [torch.tensor(p, dtype=torch.int64) for p in prompts]
        randoms = [torch.Generator().manual_seed(_seed_of(request.seed, row)) for row in range(len(rows))]
        open_rows = [True] * len(rows)
        tokens_BS, positions_BS, documents_BS = left_padded(rows)
        cache = Cache(total=tokens_BS.shape[1] + new_tokens)
        for _ in range(new_tokens):
            logits_BV, cache = self._forward(tokens_BS, positions_BS, documents_BS, cache)
            found: list[int | None] = []
            for row, logits_V in enumerate(logits_BV):
                token = next_token(logits_V, rows[row], request.sampling, randoms[row])
                open_rows[row] = open_rows[row] and token != end
                found.append(token if open_rows[row] else None)
                rows[row] = torch.cat([rows[row], torch.tensor([token])])
            yield found
            open_rows = [is_open and not (ended and ended[row]()) for row, is_open in enumerate(open_rows)]
            if not any(open_rows):
                return
            tokens_BS = torch.stack([row[-1:] for row in rows])
            positions_BS, documents_BS = positions_BS[:, -1:] + 1, None

    @torch.no_grad()
    def _forward(
        self, tokens_BS: Tensor, positions_BS: Tensor, documents_BS: Tensor | None, cache: Cache
    ) -> tuple[Tensor, Cache]:
        """Logits of the token after the last one of each row, on the CPU."""
        documents_BS = documents_BS.to(self.device) if documents_BS is not None else None
        output = self.model(tokens_BS.to(self.device), positions_BS.to(self.device), documents_BS, cache=cache)
        return output.logits_BSV[:, -1].float().cpu(), output.cache

    def _length(self, prompts: Sequence[Sequence[int]], asked: int | None) -> int:
        """How many tokens to write after the longest prompt."""
        context = self.plan.job.model.context
        if not prompts or any(not prompt for prompt in prompts):
            raise UsageError("a prompt has no tokens: there is nothing to go on from")
        longest = max(map(len, prompts))
        new_tokens = max(1, min(MOST_UNASKED, context - longest)) if asked is None else asked
        if longest + new_tokens > context:
            room = context - longest
            raise Refusal(
                GENERATION,
                f"a prompt of {plural(longest, 'token')} and {new_tokens:,} new ones make {longest + new_tokens:,};"
                f" the model's context is {context:,}",
                f"at most {plural(room, 'new token')} fit: `--max-new-tokens {room}`"
                if room > 0
                else f"shorten the prompt to {plural(context - 1, 'token')}",
            )
        return new_tokens

    def _tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise Refusal(GENERATION, "the plan has no tokenizer, so there is no text to generate")
        return self.tokenizer

    def _encoded(self, prompt: str) -> list[int]:
        """An empty prompt is the beginning of a document, where the tokenizer has an id for that."""
        tokenizer = self._tokenizer()
        end = tokenizer.end_of_document
        return tokenizer.encode(prompt) if prompt or end is None else [end]


def left_padded(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor | None]:
    """Ids, positions and documents (B, S) of rows of different lengths, aligned at their ends.

    Positions start at 0 with the first real id of each row; padding is document −1, which nothing attends to.
    """
    length = max(len(row) for row in rows)
    at_S = torch.arange(length)
    starts_B1 = torch.tensor([length - len(row) for row in rows])[:, None]
    tokens_BS = torch.stack([torch.nn.functional.pad(row, (length - len(row), 0)) for row in rows])
    positions_BS = (at_S - starts_B1).clamp(min=0)
    if not starts_B1.any():
        return tokens_BS, positions_BS, None
    return tokens_BS, positions_BS, torch.where(at_S < starts_B1, -1, 0)


def find_checkpoint(path: Path, say: Callable[[str], None]) -> layout.Checkpoint:
    """The checkpoint a path means, with its checksums verified; `say` is told what was passed over on the way.

    Raises Refusal FP1012 or FP1013.
    """
    alone = Ranks()
    named = layout.read_marker(path)
    if named is not None:
        damage = first_damage(path, named.files)
        if damage is not None:
            raise Refusal(CHECKSUM, f"{path} is damaged: {damage}", "name another step of the run")
        return named
    for folder in (path / "checkpoints", path):
        if not layout.list_steps(folder):
            continue
        decision = choose(folder, "auto", alone)
        for note in decision.notes:
            say(note)
        found = layout.read_marker(decision.path) if decision.path is not None else None
        if found is not None:
            return found
    raise Refusal(
        STEP_MISSING,
        f"{path} is no checkpoint and has none" if path.exists() else f"{path} does not exist",
        "name a run directory (`runs/…`), or a checkpoint in it (`runs/…/checkpoints/step-…`)",
    )


def _for_one_process(plan: ExecutionPlan, device: torch.device) -> ExecutionPlan:
    """The same model on a mesh of one rank, without what serves only many ranks or training.

    What was trained in bf16 is computed in fp32 on a CPU, which is faster.
    """
    program = tuple(
        evolve(op, compute="fp32") if isinstance(op, Fsdp) and device.type == "cpu" and op.compute == "bf16" else op
        for op in plan.program
        if op.always
    )
    return evolve(plan, mesh=Mesh(), program=program)


def _seed_of(seed: int, row: int) -> int:
    """A seed for each prompt, so that its answer does not depend on the others in the batch."""
    digest = blake2b(f"{seed} {row}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
