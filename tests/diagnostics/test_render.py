"""Does a message look on a terminal as it should, wherever its places lie?"""

from __future__ import annotations

from textwrap import dedent

from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label
from forgeplan.diagnostics.render import render
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import COMMAND_LINE, NOWHERE, Span
from tests.diagnostics.places import RULE, at, texts

PLAN = """forge 1

plan large {
  mesh  = { tp = 3 }
}
"""


def check_shown(found: Diagnostic, sources: Sources, expected: str, width: int = 80) -> None:
    assert render(found, sources, width) == dedent(expected).strip("\n")


def test_a_relation_shows_every_place_over_several_files() -> None:
    sources = texts(plan_forge=PLAN)
    sources.add("std:models", "forge 1\n" * 30 + "    heads   = self.dim / 128\n")
    found = RULE.at(
        at(sources, "plan.forge", "tp = 3", "mesh.tp = 3, and 32 % 3 = 2"),
        "tensor parallelism must divide the attention heads",
        at(sources, "std:models", "self.dim / 128", "model.heads = 32, from 4096 / 128"),
        help="legal values of mesh.tp on 4 GPUs: 1, 2, 4",
    )
    check_shown(found, sources, """
        error[FP0412]: tensor parallelism must divide the attention heads
          --> plan.forge:4:13
         4 |   mesh  = { tp = 3 }
           |             ^^^^^^ mesh.tp = 3, and 32 % 3 = 2
           |
          ::: std:models:31:15
        31 |     heads   = self.dim / 128
           |               -------------- model.heads = 32, from 4096 / 128
           = help: legal values of mesh.tp on 4 GPUs: 1, 2, 4
        """)  # fmt: skip


def test_a_key_written_twice_on_a_line_labels_both_places() -> None:
    sources = texts(plan_forge="batch = { length = 1Ki tokens, length = 256Ki tokens, micro = 1 sequences }\n")
    found = RULE.at(
        at(sources, "plan.forge", "length", "256Ki tokens", nth=1),
        "`batch.length` is set twice: 1Ki tokens and 256Ki tokens",
        at(sources, "plan.forge", "length", "1Ki tokens"),
    )
    check_shown(found, sources, """
        error[FP0412]: `batch.length` is set twice: 1Ki tokens and 256Ki tokens
          --> plan.forge:1:32
         1 | batch = { length = 1Ki tokens, length = 256Ki tokens, micro = 1 sequences }
           |           ------               ^^^^^^ 256Ki tokens
           |           |
           |           1Ki tokens
        """)  # fmt: skip


def test_lines_between_places_are_left_out_but_for_a_single_one() -> None:
    sources = texts(plan_forge="a = 1\nb = 2\nc = 3\nd = 4\ne = 5\nf = 6\n")
    labels = [at(sources, "plan.forge", part, part) for part in ("f = 6", "a = 1", "c = 3")]
    check_shown(RULE.at(labels[0], "three places", *labels[1:]), sources, """
        error[FP0412]: three places
          --> plan.forge:6:1
         1 | a = 1
           | ----- a = 1
         2 | b = 2
         3 | c = 3
           | ----- c = 3
        ...
         6 | f = 6
           | ^^^^^ f = 6
        """)  # fmt: skip


def test_tabs_are_widened_and_marks_stand_under_what_they_mark() -> None:
    sources = texts(plan_forge="optimizer = adamw {\n\t\tlearing_rate = 3e-4\n}\n")
    check_shown(RULE.at(at(sources, "plan.forge", "learing_rate"), "no such field"), sources, """
        error[FP0412]: no such field
          --> plan.forge:2:3
         2 |         learing_rate = 3e-4
           |         ^^^^^^^^^^^^
        """)  # fmt: skip


def test_wide_characters_take_two_cells_and_combining_ones_none() -> None:
    sources = texts(plan_forge='tag = "訓練e\u0301", lerning_rate = 1\n')
    check_shown(RULE.at(at(sources, "plan.forge", "lerning_rate"), "no such field"), sources, """
        error[FP0412]: no such field
          --> plan.forge:1:15
         1 | tag = "訓練e\u0301", lerning_rate = 1
           |                ^^^^^^^^^^^^
        """)  # fmt: skip


def test_a_short_span_of_several_lines_is_shown_whole() -> None:
    sources = texts(plan_forge="mesh = {\n  tp = 3\n}\n")
    check_shown(RULE.at(at(sources, "plan.forge", "{\n  tp = 3\n}", "this mesh"), "several lines"), sources, """
        error[FP0412]: several lines
          --> plan.forge:1:8
         1 | mesh = {
           |        ^
         2 |   tp = 3
           |   ^^^^^^
         3 | }
           | ^ this mesh
        """)  # fmt: skip


def test_of_a_long_span_the_first_and_the_last_line_are_shown() -> None:
    body = "\n".join(f"  a{n} = {n}" for n in range(20))
    sources = texts(plan_forge=f"mesh = {{\n{body}\n}}\n")
    check_shown(RULE.at(Label(Span("plan.forge", 7, 8 + len(body) + 3), "ends here"), "many lines"), sources, """
        error[FP0412]: many lines
          --> plan.forge:1:8
         1 | mesh = {
           |        ^
        ...
        22 | }
           | ^ ends here
        """)  # fmt: skip


def test_of_a_long_line_the_parts_with_places_are_shown() -> None:
    line = "seq = [" + ", ".join(str(n) for n in range(100, 200)) + "]"
    sources = texts(plan_forge=line + "\n")
    found = RULE.at(
        at(sources, "plan.forge", "180", "second"), "two numbers", at(sources, "plan.forge", "104", "first")
    )
    check_shown(found, sources, """
        error[FP0412]: two numbers
          --> plan.forge:1:408
         1 | seq = [100, 101, 102, 103, 104, 105…
           |                            --- first
         1 | …176, 177, 178, 179, 180, 181, 182, …
           |                      ^^^ second
        """, width=42)  # fmt: skip


def test_the_text_of_a_place_is_broken_below_it_if_there_is_no_room_beside_it() -> None:
    sources = texts(plan_forge="mesh = { dp_replicate = 2, dp_shard = 4 }\n")
    text = "mesh.dp_shard = 4, and 2 · 4 = 8 ranks are more than the 4 devices of the cluster"
    check_shown(RULE.at(at(sources, "plan.forge", "dp_shard", text), "too many ranks"), sources, """
        error[FP0412]: too many ranks
          --> plan.forge:1:28
         1 | mesh = { dp_replicate = 2, dp_shard = 4 }
           |                            ^^^^^^^^
           |                            mesh.dp_shard = 4, and 2 · 4 = 8 ranks
           |                            are more than the 4 devices of the
           |                            cluster
        """, width=70)  # fmt: skip


def test_the_text_of_a_place_far_to_the_right_moves_to_the_left() -> None:
    sources = texts(plan_forge="mesh = { dp_replicate = 2, dp_replicate = 200000 }\n")
    check_shown(RULE.at(at(sources, "plan.forge", "200000", "more than the 4 devices"), "too many ranks"), sources, """
        error[FP0412]: too many ranks
          --> plan.forge:1:43
         1 | mesh = { dp_replicate = 2, dp_replicate = 200000 }
           |                                           ^^^^^^
           |                                 more than the 4 devices
        """, width=60)  # fmt: skip


def test_a_place_that_no_file_wrote_is_named() -> None:
    sources = texts(plan_forge=PLAN)
    found = RULE.at(
        at(sources, "plan.forge", "tp = 3", "mesh.tp = 3"), "they disagree", Label(NOWHERE, "mesh.dp = 1 by default"),
        Label(Span("gone.forge", 3, 9)),
    )  # fmt: skip
    check_shown(found, sources, """
        error[FP0412]: they disagree
          --> plan.forge:4:13
         4 |   mesh  = { tp = 3 }
           |             ^^^^^^ mesh.tp = 3
           |
          ::: <schema>: mesh.dp = 1 by default
           |
          ::: gone.forge
        """)  # fmt: skip


def test_the_command_line_is_shown_as_it_was_typed() -> None:
    sources = Sources()
    sources.add(COMMAND_LINE, "peek_lr=1e-4")
    fault = RULE.at(at(sources, COMMAND_LINE, "peek_lr"), "there is no `peek_lr`", help="did you mean `peak_lr`?")
    check_shown(fault, sources, """
        error[FP0412]: there is no `peek_lr`
          --> <command line>:1:1
         1 | peek_lr=1e-4
           | ^^^^^^^
           = help: did you mean `peak_lr`?
        """)  # fmt: skip


def test_help_and_notes_are_wrapped_and_the_view_is_named() -> None:
    found = RULE.at(None, "nothing bounds the run, and it would train until somebody stops it, at 3 o'clock or so",
                    help="write `budget.tokens`, `budget.steps` or `budget.wall`: a run ends at the first that is met",
                    notes="a schedule needs an end", view="large@smoke")  # fmt: skip
    check_shown(found, Sources(), """
        error[FP0412]: nothing bounds the run, and it would train
            until somebody stops it, at 3 o'clock or so
           = help: write `budget.tokens`, `budget.steps` or
                   `budget.wall`: a run ends at the first that is
                   met
           = note: a schedule needs an end
           = in: `large@smoke`
        """, width=60)  # fmt: skip


def test_a_fix_stands_for_help_where_there_is_none() -> None:
    fix = Fix("insert `}`", (Edit(Span("plan.forge", 0, 0), "}"),))
    assert "   = help: insert `}`" in render(RULE.at(None, "no end", fixes=fix), Sources())


def test_the_end_of_a_file_and_an_empty_file_have_a_place() -> None:
    sources = texts(plan_forge="mesh = {", empty_forge="")
    found = RULE.at(Label(Span("plan.forge", 8, 8), "`}`"), "no end", Label(Span("empty.forge", 0, 0), "nothing here"))
    check_shown(found, sources, """
        error[FP0412]: no end
          --> plan.forge:1:9
         1 | mesh = {
           |         ^ `}`
           |
          ::: empty.forge:1:1
         1 |
           | - nothing here
        """)  # fmt: skip


def test_a_span_that_ends_in_a_line_break_ends_on_its_line() -> None:
    sources = texts(plan_forge="seed = 1\r\nlr = 2\r\n")
    check_shown(RULE.at(Label(Span("plan.forge", 0, 10)), "whole line"), sources, """
        error[FP0412]: whole line
          --> plan.forge:1:1
         1 | seed = 1
           | ^^^^^^^^
        """)  # fmt: skip


def test_a_place_beyond_the_text_is_its_end() -> None:
    assert "^" in render(RULE.at(Span("plan.forge", 900, 950), "far"), texts(plan_forge=PLAN))


def test_places_inside_one_another_are_both_seen() -> None:
    sources = texts(plan_forge="mesh = { tp = 3 }\n")
    found = RULE.at(at(sources, "plan.forge", "3", "three"), "nested", at(sources, "plan.forge", "tp = 3", "the field"))
    check_shown(found, sources, """
        error[FP0412]: nested
          --> plan.forge:1:15
         1 | mesh = { tp = 3 }
           |          -----^ three
           |          |
           |          the field
        """)  # fmt: skip


def test_nothing_in_a_text_reaches_the_terminal_as_a_command() -> None:
    sources = texts(plan_forge='seed = "\x1b[2J\x00\u202e\x9b"\n')
    found = RULE.at(at(sources, "plan.forge", "seed", "is \x1b[31m red"), "what \x07 is \u200b this \ud800",
                    help="\x1b]0;title\x07", notes="\x7f")  # fmt: skip
    check_shown(found, sources, """
        error[FP0412]: what ␇ is ⟨U+200B⟩ this ⟨U+D800⟩
          --> plan.forge:1:1
         1 | seed = "␛[2J␀⟨U+202E⟩⟨U+009B⟩"
           | ^^^^ is ␛[31m red
           = help: ␛]0;title␇
           = note: ␡
        """)  # fmt: skip


def test_colours_are_there_only_when_asked() -> None:
    sources = texts(plan_forge=PLAN)
    found = RULE.at(at(sources, "plan.forge", "tp = 3", "three"), "a fault", help="a way out")
    assert "\x1b" not in render(found, sources)
    assert render(found, sources, color=True).splitlines() == [
        "\x1b[1;31merror[FP0412]\x1b[0m\x1b[1m: a fault\x1b[0m",
        "\x1b[1;34m  --> \x1b[0mplan.forge:4:13",
        "\x1b[1;34m 4 |\x1b[0m   mesh  = { tp = 3 }",
        "\x1b[1;34m   |\x1b[0m             \x1b[1;31m^^^^^^\x1b[0m \x1b[1;31mthree\x1b[0m",
        "\x1b[1;34m   =\x1b[0m\x1b[1m help\x1b[0m: a way out",
    ]
