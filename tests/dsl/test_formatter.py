"""Is there one canonical form, which keeps meaning and comments and is its own form?"""

from __future__ import annotations

import pytest

from forgeplan.dsl.formatter import CannotFormat, format_text
from tests.dsl.reading import read

UNTIDY = """# file head
forge 1
let x=1
let long_name=2   # trailing
plan empty { # after brace
  # alone
    # in an

  # empty body
}
plan q{seed=1,path="a } b # c"

# between

lr=2
# adjacent
epsilon=3
betas=[0.9, # first
 0.95 # second
 # dangling
]
assert a <= b # before else
  # own line
  else "no"
wide="名前", total=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbb * ccccccccccccccccccccc + ddddddddddd
nested = aaa { bbb = bbbbbbbbbbbbbbbb { ccc = cccccccccccccccc { ddddddddddd = [1,2,3], eee = 5 }, f = 5 }, g = "xx" }
eval e {every=1 steps,
 batches=2}
batch.micro = 1 sequences
empty = { }
  # last entry
}
# end"""

TIDY = """# file head
forge 1

let x         = 1
let long_name = 2  # trailing

plan empty {  # after brace
  # alone
  # in an

  # empty body
}

plan q {
  seed = 1
  path = "a } b # c"

  # between

  lr      = 2
  # adjacent
  epsilon = 3
  betas   = [
    0.9,  # first
    0.95,  # second
    # dangling
  ]
  assert a <= b  # before else
      # own line
      else "no"
  wide  = "名前"
  total = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa +
      bbbbbbbbbbbbbbbbbbbbbbbbbb * ccccccccccccccccccccc +
      ddddddddddd
  nested = aaa {
    bbb = bbbbbbbbbbbbbbbb { ccc = cccccccccccccccc { ddddddddddd = [1, 2, 3], eee = 5 }, f = 5 }
    g   = "xx"
  }
  eval e { every = 1 step, batches = 2 }
  batch.micro = 1 sequence
  empty       = {}
  # last entry
}
# end
"""


def test_the_canonical_form_of_an_untidy_text() -> None:  # C007, C008
    assert format_text(UNTIDY) == TIDY


def test_comments_of_every_kind_are_kept_in_order() -> None:  # C007
    assert [c.text for c in read(TIDY).comments] == [c.text for c in read(UNTIDY).comments]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("x=[1,2]", "x = [1, 2]"),
        ("x=[1,2,]", "x = [\n    1,\n    2,\n  ]"),
        ("x={a=1}", "x = { a = 1 }"),
        ("x={\na=1}", "x = {\n    a = 1\n  }"),
        ("x=-a**2", "x = -a ** 2"),
        ("x=not a", "x = not a"),
        ("x=f( a,b )[ 0 ].c", "x = f(a, b)[0].c"),
        ("x=(a+b)*c", "x = (a + b) * c"),
        ("x=[for y in ys if y>1:y]", "x = [for y in ys if y > 1: y]"),
        ("x=0..2", "x = 0 .. 2"),
        ("x=85%", "x = 85%"),
        ("x+=[1]", "x += [1]"),
        ("let n:Int?=3", "let n: Int? = 3"),
        ("phase b after a,c{until=90%}", "phase b after a, c { until = 90% }"),
        ("x = 1 sequences", "x = 1 sequence"),
        ("x = 1 steps", "x = 1 step"),
        ("x = (1\n steps)", "x = (1 step)"),
        ("x = 1\nsteps = 2", "x     = 1\n  steps = 2"),
        ("x = 2 steps", "x = 2 steps"),
        ("x = base{a=1}", "x = base { a = 1 }"),
        ("x = 1 # behind  ", "x = 1  # behind"),
        ("x = [ # opened \n1, # item \n# alone\t\n]", "x = [  # opened\n    1,  # item\n    # alone\n  ]"),
        ("x = [1 # a\n, # b\n2]", "x = [\n    1,  # a\n    # b\n    2,\n  ]"),
        ("x = 1 # a\n, # b\ny = 2", "x = 1  # a\n  # b\n  y = 2"),
        ("x = 1\n## of y\n, y = 2", "x = 1\n  ## of y\n  y = 2"),
        ("x = 1\n## no doc\n,\ny = 2", "x = 1\n  ## no doc\n\n  y = 2"),
        ("x = 1\n## of y\n, # too\ny = 2", "x = 1\n  ## of y\n  # too\n  y = 2"),
        ("# above \t\nx = 1", "# above\n  x = 1"),
        ("x = { a = 1 # a\n# b\n, b = 2 }", "x = {\n    a = 1  # a\n    # b\n    b = 2\n  }"),
        ("x = [1 # a\n# b\n, 2]", "x = [\n    1,  # a\n    # b\n    2,\n  ]"),
        ("x = f(1 # a\n# b\n, 2)", "x = f(\n    1,  # a\n    # b\n    2\n  )"),
    ],
)
def test_the_canonical_form_of_a_statement(text: str, canonical: str) -> None:
    assert format_text(f"forge 1\nplan p {{\n{text}\n}}\n") == f"forge 1\n\nplan p {{\n  {canonical}\n}}\n"


def test_neighbouring_signs_are_aligned_and_an_empty_line_parts_them() -> None:
    text = "forge 1\nplan p {\na = 1\nlong = 2\n\nlonger = 3\nb = [\n1,\n]\nc = 4\nlongest = 5\n}\n"
    assert format_text(text) == (
        "forge 1\n\nplan p {\n  a    = 1\n  long = 2\n\n  longer = 3\n  b      = [\n    1,\n  ]\n"
        "  c       = 4\n  longest = 5\n}\n"
    )


def test_a_text_with_faults_is_left_alone() -> None:
    with pytest.raises(CannotFormat) as caught:
        format_text("forge 1\nplan p {\n  x = = 3\n}\n")
    assert [fault.code for fault in caught.value.diagnostics] == ["FP0103"]


def test_an_empty_line_parts_a_comment_from_the_statement_below() -> None:
    text = "forge 1\n\n# about the file\n\n## about p\nplan p {}\n"
    assert format_text(text) == text
