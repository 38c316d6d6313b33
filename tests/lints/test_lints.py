"""Are lints told at the level of the project, silenced where the text says so, and mended as they say?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from forgeplan.analysis import Analysis, analyse
from forgeplan.diagnostics.diagnostic import Safety, Severity
from forgeplan.diagnostics.edits import apply
from forgeplan.diagnostics.formats import render_all
from forgeplan.lints.levels import MAX_BYTES

PLAN = """forge 1

from "std:clusters" import cpu_host

plan small {
  cluster   = cpu_host { devices_per_node = 1 }
  model     = decoder { layers = 2, dim = 64, heads = 4, vocab = 257, context = 64 tokens }
  tokenizer = byte
  sources   = { py = python_source }
  batch     = { global = 8 sequences, micro = 2 sequences, length = 64 tokens }
  optimizer = adamw { lr = 1e-3 }
  budget    = { steps = 20 steps }

  eval held { source = py, split = 1%, every = 1k steps }
}
"""
EVERY = "every = 1k steps"
QUIET = PLAN.replace(EVERY, "every = 5 steps")
"""Without a fault."""


def found(folder: Path, text: str, settings: str = "") -> Analysis:
    (folder / "forge.toml").write_text(settings, encoding="utf-8")
    return analyse(str(folder / "a.forge"), text=text)


def codes(analysis: Analysis) -> list[tuple[str, str]]:
    return [(one.code, one.severity.value) for one in analysis.diagnostics]


def allowing(names: str, above: str) -> str:
    indent = above[: len(above) - len(above.lstrip())]
    return PLAN.replace(above, f"{indent}# forge: allow {names}\n{above}")


def test_a_lint_is_a_warning_unless_the_project_says_otherwise(tmp_path: Path) -> None:
    assert codes(found(tmp_path, PLAN)) == [("never-fires", "warning")]
    assert codes(found(tmp_path, PLAN, '[lints]\nnever-fires = "deny"\n')) == [("never-fires", "error")]
    assert codes(found(tmp_path, PLAN, '[lints]\nnever-fires = "warn"\n')) == [("never-fires", "warning")]
    assert codes(found(tmp_path, PLAN, '[lints]\nnever-fires = "allow"\n')) == []


def test_a_plan_that_breaks_a_denied_lint_has_errors(tmp_path: Path) -> None:
    analysis = found(tmp_path, PLAN, '[lints]\nnever-fires = "deny"\n')
    (fault,) = analysis.concerning(analysis.job("small"))
    assert fault.severity is Severity.ERROR
    assert fault.notes[-1] == '`never-fires = "deny"` in forge.toml makes it an error'
    assert analysis.errors == (fault,)


@pytest.mark.parametrize("above", ["  eval held {", "plan small {", "forge 1\n"], ids=["statement", "plan", "file"])
def test_an_allowance_is_about_all_of_the_statement_below_it(tmp_path: Path, above: str) -> None:
    analysis = found(tmp_path, allowing("never-fires", above))
    assert codes(analysis) == []
    assert analysis.concerning(analysis.job("small")) == ()


def test_an_allowance_elsewhere_allows_nothing_and_is_told(tmp_path: Path) -> None:
    analysis = found(tmp_path, allowing("never-fires", "  budget "))
    assert codes(analysis) == [("unneeded-allow", "warning"), ("never-fires", "warning")]
    unneeded, fires = analysis.diagnostics
    assert unneeded.labels[1].span == fires.span


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("never-fire", "there is no lint `never-fire`"),
        ("FP0412", "FP0412 is an error, and errors cannot be allowed"),
        ("no-checkpoint", "`no-checkpoint` has nothing to say here"),
    ],
)
def test_an_allowance_that_silences_nothing_is_told_and_deleted(tmp_path: Path, name: str, message: str) -> None:
    text = allowing(name, "  eval held {").replace(EVERY, "every = 5 steps")
    (fault,) = found(tmp_path, text).diagnostics
    assert (fault.code, fault.message) == ("unneeded-allow", message)
    assert [fix.safety for fix in fault.fixes] == [Safety.SAFE]
    (mended,) = apply(fault.fixes, dict.fromkeys([fault.span.file], text) if fault.span else {}).texts.values()
    assert mended == PLAN.replace(EVERY, "every = 5 steps")


def test_of_several_names_only_the_unneeded_one_goes(tmp_path: Path) -> None:
    for names, rest in (("no-checkpoint, never-fires", "never-fires"), ("never-fires, no-checkpoint", "never-fires")):
        text = allowing(names, "  eval held {")
        (fault,) = found(tmp_path, text).diagnostics
        assert fault.span is not None
        (mended,) = apply(fault.fixes, {fault.span.file: text}).texts.values()
        assert mended == allowing(rest, "  eval held {")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (QUIET + "# forge: allow never-fires\n", "no statement is directly below"),
        (QUIET.replace("\nplan", "\n# forge: allow never-fires\n\nplan"), "no statement is directly below"),
        (QUIET.replace("}\n\n  eval", "}  # forge: allow never-fires\n\n  eval"), "no statement is directly below"),
        (QUIET.replace("  eval", "  # forge: allow\n  eval"), "no lint is named"),
        (QUIET.replace("  eval", "  # forge: deny never-fires\n  eval"), "`# forge: deny` is nothing that"),
    ],
    ids=["end", "gap", "behind", "nameless", "deny"],
)
def test_a_comment_that_allows_nothing_is_told(tmp_path: Path, text: str, message: str) -> None:
    (fault,) = found(tmp_path, text).diagnostics
    assert fault.code == "unneeded-allow"
    assert fault.message.startswith(message)
    assert fault.help
    assert fault.fixes == ()


def test_what_other_plans_need_is_not_told_as_unneeded(tmp_path: Path) -> None:
    other = "\n# forge: allow never-fires\nplan other extends small {\n  eval.held.every = 2k steps\n}\n"
    text = PLAN.replace(EVERY, "every = 5 steps") + other
    assert codes(found(tmp_path, text)) == []
    name = str(tmp_path / "a.forge")
    assert codes(analyse(name, text=text, plan="small")) == []
    assert codes(analyse(name, text=text, overrides=["eval.held.every=5 steps"])) == []
    library = "forge 1\n\n# forge: allow never-fires\npartial plan base {\n  budget = { steps = 20 steps }\n}\n"
    assert codes(found(tmp_path, library)) == []


def test_errors_cannot_be_allowed(tmp_path: Path) -> None:
    text = PLAN.replace("plan small", "# forge: allow FP0301\nplan small").replace("lr = 1e-3", "lrr = 1e-3")
    assert ("FP0301", "error") in codes(found(tmp_path, text))
    settings = '[lints]\nFP0301 = "allow"\n'
    assert ("FP0301", "error") in codes(found(tmp_path, PLAN.replace("lr = 1e-3", "lrr = 1e-3"), settings))


@pytest.mark.parametrize(
    ("settings", "line", "message"),
    [
        ('[lints]\nnever-fire = "deny"\n', 2, "there is no lint `never-fire`"),
        ('[lints]\nnever-fires = "error"\n', 2, "the level of `never-fires` is `allow`, `warn` or `deny`, not `error`"),
        (
            "[lints]\nnever-fires = 3\n",
            2,
            "the level of `never-fires` is `allow`, `warn` or `deny`, not a value of another type",
        ),
        ('[lints]\nFP0412 = "allow"\n', 2, "FP0412 is an error, and errors have no level"),
        ("[lints]\n# never-firez\nnever-firez = 'warn'\n", 3, "there is no lint `never-firez`"),
        ("[lint]\nnever-fires = 'warn'\n", 1, "there is no table `lint`"),
        (
            "lints = { never-fires = [1] }\n",
            1,
            "the level of `never-fires` is `allow`, `warn` or `deny`, not a value of",
        ),
        ("x = " + "[" * 3000 + "]" * 3000, 1, "forge.toml is no TOML: it is nested too deep"),
        ("\x0b\n[lints\n", 1, "forge.toml is no TOML"),
        ("lints = 3\n", 1, "`lints` is a table of names and levels"),
        ("[lints\n", 1, "forge.toml is no TOML"),
        ("x = = 3\n", 1, "forge.toml is no TOML"),
    ],
)
def test_a_faulty_forge_toml_is_shown_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, line: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    analysis = found(tmp_path, PLAN, settings)
    fault = next(one for one in analysis.diagnostics if one.code == "FP0214")
    assert message in fault.message
    assert analysis.sources.place(fault.span).startswith(f"forge.toml:{line}:") if fault.span else False


UNUSED = [
    ("forge 1\n\nlet spare = 3\n\nplan", "forge 1\n\nplan"),
    ("forge 1\n\n## What is left.\nlet spare = 3\nplan", "forge 1\n\nplan"),
    ("forge 1\n\nparam spare: Int = 3\nplan", "forge 1\n\nplan"),
    ('forge 1\n\nimport "std:models" as models\nplan', "forge 1\n\nplan"),
    ('forge 1\n\nfrom "std:models" import llama3_8b\nplan', "forge 1\n\nplan"),
]


@pytest.mark.parametrize(("head", "mended"), UNUSED, ids=["let", "doc", "param", "import", "name"])
def test_a_name_that_nobody_reads_is_told_and_deleted(tmp_path: Path, head: str, mended: str) -> None:
    rest = PLAN[PLAN.index("plan small") + 4 :].replace(EVERY, "every = 5 steps")
    rest = rest.replace("cpu_host {", "{ arch = cpu, ")
    (fault,) = found(tmp_path, head + rest).diagnostics
    assert fault.code == "unused-name"
    assert fault.span is not None
    (text,) = apply(fault.fixes, {fault.span.file: head + rest}).texts.values()
    assert text == mended + rest
    assert codes(found(tmp_path, text)) == []


@pytest.mark.parametrize("names", ["llama3_8b, llama2_7b", "llama2_7b, llama3_8b"])
def test_one_of_several_imported_names_goes_alone(tmp_path: Path, names: str) -> None:
    text = PLAN.replace("plan small", f'from "std:models" import {names}\nlet wide = llama2_7b\n\nplan small')
    text = text.replace(EVERY, "every = 5 steps").replace("  batch", "  # forge: allow unused-name\n  batch")
    text = text.replace("let wide = llama2_7b\n", "").replace("decoder {", "llama2_7b { ffn = none,")
    text = text.replace("  # forge: allow unused-name\n", "").replace("ffn = none,", "ffn = 128, kv_heads = 4,")
    (fault,) = found(tmp_path, text).diagnostics
    assert fault.span is not None
    assert fault.message == "nobody reads the import `llama3_8b`"
    (mended,) = apply(fault.fixes, {fault.span.file: text}).texts.values()
    assert 'from "std:models" import llama2_7b\n' in mended


def test_a_chain_of_names_that_ends_nowhere_is_told_as_a_whole(tmp_path: Path) -> None:
    text = QUIET.replace("plan small", "let a = 1\nlet b = a\nlet c = a + b\n\nplan small")
    told = found(tmp_path, text).diagnostics
    assert [one.message for one in told] == [
        "only `b`, which nobody reads, reads the `let` `a`",
        "only `c`, which nobody reads, reads the `let` `b`",
        "nobody reads the `let` `c`",
    ]
    assert [len(one.fixes) for one in told] == [0, 0, 1]
    assert codes(found(tmp_path, text.replace("  eval", "  seed = c\n\n  eval"))) == []


def test_what_others_may_read_is_deleted_only_on_request(tmp_path: Path) -> None:
    text = QUIET.replace("plan small", 'import "std:models" as models\nlet a = 1\n\nplan small').replace(
        "  eval", "  let inner = 3\n\n  eval"
    )
    safety = {one.message.split("`")[-2]: one.fixes[0].safety for one in found(tmp_path, text).diagnostics}
    assert safety == {"models": Safety.SAFE, "a": Safety.ASK, "inner": Safety.SAFE}


def test_a_statement_between_others_of_its_line_goes_with_its_comma(tmp_path: Path) -> None:
    text = QUIET.replace("lr = 1e-3", "let a = 1, lr = 1e-3, let b = 2")
    told = found(tmp_path, text).diagnostics
    assert [one.code for one in told] == ["unused-name", "unused-name"]
    (mended,) = apply([fix for one in told for fix in one.fixes], {str(one.span.file): text for one in told if one.span}
                      ).texts.values()  # fmt: skip
    assert mended == QUIET


def test_a_file_that_is_there_to_be_imported_may_declare_what_it_likes(tmp_path: Path) -> None:
    assert codes(found(tmp_path, "forge 1\n\nlet a = 1\nlet b = 2\n\npartial plan base {}\n")) == []


def saying(text: str) -> str:
    plan = PLAN.replace(EVERY, "every = 5 steps")
    return plan.replace("plan small {", f'plan small {{\n  checkpoint.path = "{text}"')


KEYS = [
    "hf_" + "aB3" * 12,
    "sk-" + "x1Y" * 9,
    "AKIA" + "Z9" * 8,
    "ghp_" + "k2" * 18,
    "https://me:hunter22@example.org/x",
]
ORDINARY = ["runs/sk-3b", "https://example.org/a:b@c", "hf_dataset", "a" * 40, "${plan.name}:x@y"]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_refused_and_never_shown(tmp_path: Path, key: str) -> None:
    analysis = found(tmp_path, saying(key))
    secret = [one for one in analysis.diagnostics if one.code == "looks-like-secret"]
    assert [one.severity for one in secret] == [Severity.ERROR]
    hidden = key.removeprefix("https://").partition("@")[0]
    for form in ("full", "concise", "json", "sarif", "github", "junit"):
        assert hidden not in render_all(secret, analysis.sources, format=form)
    assert "•" * 8 in render_all(secret, analysis.sources)


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_is_no_key(tmp_path: Path, text: str) -> None:
    assert [one for one in found(tmp_path, saying(text)).diagnostics if one.code == "looks-like-secret"] == []


def test_levels_hold_in_a_process_that_has_checked_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "forge.toml").write_text('[lints]\nnever-fires = "deny"\n', encoding="utf-8")
    (tmp_path / "a.forge").write_text(PLAN, encoding="utf-8")
    command = [sys.executable, "-m", "forgeplan", "lint", "a.forge", "--format", "concise"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "error[never-fires]" in done.stdout
    assert "FP0214" not in done.stdout


def test_an_editor_shows_the_levels_that_are_not_saved_yet(tmp_path: Path) -> None:
    (tmp_path / "forge.toml").write_text('[lints]\nnever-fires = "deny"\n', encoding="utf-8")
    unsaved = {str((tmp_path / "forge.toml").resolve()): '[lints]\nnever-fires = "allow"\n'}
    assert codes(analyse(str(tmp_path / "a.forge"), text=PLAN, unsaved=unsaved)) == []


def test_a_forge_toml_too_long_to_be_one_is_told(tmp_path: Path) -> None:
    (fault, _) = found(tmp_path, PLAN, "# " + "x" * MAX_BYTES).diagnostics
    assert (fault.code, fault.severity) == ("FP0214", Severity.ERROR)
    assert "more than 1,048,576 bytes" in fault.message


TOLD = '[lints]\nrestates-value = "warn"\n'


def restated(folder: Path, text: str) -> tuple[list[str], str]:
    """What is told to be restated, and the text without it."""
    name = str(folder / "a.forge")
    told = [one for one in found(folder, text, TOLD).diagnostics if one.code == "restates-value"]
    (mended,) = apply([fix for one in told for fix in one.fixes], {one.span.file: text for one in told if one.span}
                      ).texts.values() if told else (text,)  # fmt: skip
    left = analyse(name, text=mended)
    assert codes(left) == []
    assert [job.plan for job in left.jobs] == [job.plan for job in analyse(name, text=text).jobs]
    return [one.message for one in told], mended


def test_by_default_a_value_may_be_said_twice(tmp_path: Path) -> None:
    assert codes(found(tmp_path, QUIET.replace("lr = 1e-3", "lr = 1e-3, eps = 1e-8"))) == []


@pytest.mark.parametrize(
    ("old", "new", "mended", "message"),
    [
        ("lr = 1e-3", "lr = 1e-3, eps = 1e-8", "lr = 1e-3", "`eps = 1e-8` repeats the default"),
        ("lr = 1e-3", "eps = 0.00000001, lr = 1e-3", "lr = 1e-3", "`eps = 0.00000001` repeats the default"),
        ("  eval", "  mesh.dp_shard = auto\n  eval", "  eval", "`mesh.dp_shard = auto` repeats the default"),
        (
            "  eval",
            "  profile p {\n    mesh.tp = 1\n  }\n  eval",
            "  profile p {\n  }\n  eval",
            "`mesh.tp = 1` repeats ",
        ),
    ],
)
def test_a_value_that_changes_nothing_is_told_and_deleted(
    tmp_path: Path, old: str, new: str, mended: str, message: str
) -> None:
    (told,), text = restated(tmp_path, QUIET.replace(old, new))
    assert told.startswith(message)
    assert text == QUIET.replace(old, mended)


@pytest.mark.parametrize(
    "text",
    [
        QUIET.replace("plan small", "param s: Int = 0\n\nplan small").replace("  eval", "  seed = s\n\n  eval"),
        QUIET.replace("heads = 4", "heads = 4, kv_heads = 4"),  # The default reads `heads`.
        QUIET.replace("  eval", "  seed = 3\n  profile p { seed = 0 }\n\n  eval"),
        QUIET + "\nplan other extends small {\n  seed = 7\n  optimizer.eps = 1e-9\n}\n",
    ],
    ids=["param", "default of another", "profile", "base"],
)
def test_a_value_that_does_something_somewhere_is_not_restated(tmp_path: Path, text: str) -> None:
    assert restated(tmp_path, text)[0] == []


def test_a_shared_value_is_restated_only_if_it_is_so_everywhere(tmp_path: Path) -> None:
    adam = "let adam = adamw { lr = 1e-3, betas = [0.9, 0.95] }\n\nplan small"
    shared = QUIET.replace("adamw { lr = 1e-3 }", "adam").replace("plan small", adam)
    other = "\nplan other extends small {\n  optimizer.betas = [0.9, 0.95]\n}\n"
    told, _ = restated(tmp_path, shared + other)
    assert told == [
        "`betas = [0.9, 0.95]` repeats the default",
        "`optimizer.betas = [0.9, 0.95]` repeats plan small",
    ]
    assert restated(tmp_path, (shared + other).replace("0.9, 0.95]\n}", "0.9, 0.99]\n}"))[0] == told[:1]
