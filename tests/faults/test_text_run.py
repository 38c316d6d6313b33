"""What does a person see who runs a plan on text?"""

from __future__ import annotations

import re
from pathlib import Path

from attrs import evolve

from forgeplan.plan.codec import dumps
from forgeplan.plan.hashes import seal
from forgeplan.spec.source.files import TextFiles
from forgeplan.spec.tokenizer.byte import Byte
from tests.faults.processes import ROOT, finish, start
from tests.faults.small_plan import small_plan
from tests.runtime import tiny

CRASH = """
import os
if os.environ.get("RANK") == "1":
    import forgeplan.runtime.step as step
    def crash(*args):
        raise RuntimeError("a made-up crash")
    step.forward_loss = crash
"""


def test_a_run_on_text_ends_with_its_paths_and_a_sample(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for number in range(40):
        (tmp_path / "texts" / f"{number}.txt").write_text(f"the cat sat on mat {number}. " * 10)
    model = tiny.decoder(vocab=Byte.num_tokens, context=64)
    plan = small_plan(ranks=2, steps=6, eval_every=3, model=model)
    source = TextFiles(path="texts/*.txt", shuffle=True)
    evals = {"held_out": evolve(plan.job.eval["held_out"], split=tiny.share("0.3").amount, batches="all")}
    plan = seal(evolve(plan, job=evolve(plan.job, sources={"made": source}, tokenizer=Byte(), eval=evals)))
    ended = finish(dumps(plan), tmp_path)
    assert ended.exit_code == 0, ended.err
    assert ended.err == ""
    last = ended.out[ended.out.index("finished after step 6 of 6") :]
    assert re.search(r"held_out: loss \d\.\d{4} nats on [\d,]+ labels \(unigram entropy of the same labels \d\.", last)
    for name, path in (("plan", "plan.json"), ("metrics", "metrics.jsonl"), ("checkpoint", "checkpoints/step-6")):
        assert re.search(rf"^{name} +runs/small/{path}$", last, re.MULTILINE)
        assert (tmp_path / "runs/small" / path).exists()
    assert "sample: how held_out begins, and behind » what the model makes of it (temperature 0.8, seed 0):\n" in last
    prompt, answer = last.split("seed 0):\n")[1].split("»")
    assert prompt == "the cat sat on m"  # 16 bytes, a quarter of the context
    assert len(answer.encode()) >= 10


def test_a_crash_of_one_rank_is_one_message_and_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(CRASH)
    ended = start(dumps(small_plan(ranks=2)), tmp_path, environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"}).wait()
    assert ended.exit_code == 3
    assert ended.err == (
        "internal error on rank 1: RuntimeError: a made-up crash\n"
        "  this is a bug in forgeplan or in what it stands on; please report it\n"
        "  help: the traceback is in runs/small/logs/rank-1.log\n"
    )
    assert "Traceback" in (tmp_path / "runs/small/logs/rank-1.log").read_text()
