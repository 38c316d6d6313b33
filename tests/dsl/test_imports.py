"""Which files can a plan bring in?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forgeplan.dsl.load import Loaded
from tests.dsl.plans import CONTEXT, at, codes, described, only, read, values


def files(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.forge"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("forge 1\n" + text, encoding="utf-8")


def main(folder: Path, text: str) -> Loaded:
    return read(text, path=folder / "main.forge")


def test_names_come_by_from_and_under_a_name(tmp_path: Path) -> None:
    files(
        tmp_path,
        lib__sizes="let width = 512\nlet tall = decoder { layers = 2, dim = width, heads = self.dim / 64, vocab = 9, "
        "context = 4Ki tokens }",
    )
    loaded = main(
        tmp_path,
        CONTEXT + 'import "lib/sizes.forge" as sizes\nfrom "lib/sizes.forge" import width\n'
        "plan a extends context { model = sizes.tall { dim = 2 * width }, seed = sizes.width }\n",
    )
    assert codes(loaded) == []
    assert values(loaded.job("a"), "model.heads", "seed") == [16, 512]
    assert set(loaded.job("a").sources) == {
        str(tmp_path / "main.forge"),
        str(tmp_path / "lib/sizes.forge"),
        "std:clusters",
        "std:models",
    }


def test_a_plan_of_another_file_can_be_extended(tmp_path: Path) -> None:
    files(tmp_path, base=CONTEXT.removeprefix("forge 1\n") + "plan p extends context { seed = 4 }\n")
    loaded = main(tmp_path, 'forge 1\nimport "base.forge" as base\nplan a extends base.p { model.layers = 3 }\n')
    assert codes(loaded) == []
    assert loaded.plans == ("a",)
    assert values(loaded.job("a"), "seed", "model.layers") == [4, 3]
    loaded = main(tmp_path, 'forge 1\nfrom "base.forge" import p\nplan a extends p { model.layers = 3 }\n')
    assert loaded.plans == ("a",)


def test_paths_are_relative_to_the_file_that_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "forge.toml").write_text("")
    files(tmp_path, lib__data='let web = text { path = "texts/*.txt" }\nlet folder = "texts"')
    (tmp_path / "plans").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    text = CONTEXT + (
        'import "../lib/data.forge" as data\nplan a extends context {\n'
        '  sources = { web = data.web, own = text { path = "o.txt" }, up = text { path = "../u.txt" }, '
        'abs = text { path = "/x/y.txt" }, lib = text { path = "${data.folder}/z.txt" }, cl = text { path = "x" } }\n'
        "  mixture = { web = 1, own = 1, up = 1, abs = 1, lib = 1, cl = 1 }\n  checkpoint = { every = 1h }\n}\n"
    )
    loaded = read(text, "sources.cl.path=here.txt", path=tmp_path / "plans" / "main.forge")
    job = loaded.job("a")
    assert codes(loaded) == []
    found = {name: job.leaves[f"sources.{name}.path"].value for name in ("web", "own", "up", "abs", "lib", "cl")}
    assert found == {
        "web": "lib/texts/*.txt",
        "own": "plans/o.txt",
        "up": "u.txt",
        "abs": "/x/y.txt",
        "lib": "lib/texts/z.txt",
        "cl": "elsewhere/here.txt",
    }
    assert job.leaves["checkpoint.path"].value == "runs/a"
    assert job.project == str(tmp_path)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("/etc/x.forge", "FP0205"),
        ("../outside.forge", "FP0205"),
        ("https://example.org/x.forge", "FP0205"),
        ("~/x.forge", "FP0205"),
        ("C:x.forge", "FP0205"),
        ("linked.forge", "FP0205"),
        ("${1}.forge", "FP0205"),
        ("", "FP0205"),
        ("missing.forge", "FP0204"),
        ("folder.forge", "FP0204"),
        ("latin.forge", "FP0204"),
        ("circle.forge", "FP0204"),
        ("a\\u{0}.forge", "FP0205"),
        ("std:modles", "FP0204"),
    ],
)
def test_what_may_not_or_cannot_be_read_is_an_error(tmp_path: Path, source: str, code: str) -> None:
    inside = tmp_path / "project"
    inside.mkdir()
    (tmp_path / "outside.forge").write_text("forge 1\nlet a = 1\n")
    (inside / "linked.forge").symlink_to(tmp_path / "outside.forge")
    (inside / "circle.forge").symlink_to(inside / "circle.forge")
    (inside / "folder.forge").mkdir()
    (inside / "latin.forge").write_bytes(b'forge 1\nlet a = "\xff"\n')
    loaded = main(inside, CONTEXT + f'import "{source}" as x\nplan a extends context {{ seed = x.a }}\n')
    fault = only(loaded)
    assert (fault.code, at(loaded, fault)) == (code, f'"{source}"')


def test_near_file_names_and_exported_names_are_offered(tmp_path: Path) -> None:
    files(tmp_path, models="let small = 1")
    loaded = main(
        tmp_path,
        CONTEXT + 'import "model.forge" as m\nfrom "models.forge" import smal\nfrom "std:models" import lama3_8b\n',
    )
    assert [d.help[0] for d in loaded.diagnostics] == [
        "did you mean `models.forge`?",
        "did you mean `small`?",
        "did you mean `llama3_8b`?",
    ]
    assert codes(loaded) == ["FP0204"] * 3
    loaded = main(tmp_path, CONTEXT + 'import "models.forge" as m\nplan a extends context { seed = m.smal }\n')
    assert only(loaded).help == ("did you mean `m.small`?",)


def test_a_name_that_is_imported_and_missing_on_the_way_is_offered_once(tmp_path: Path) -> None:
    files(tmp_path, a='from "b.forge" import y', b='from "a.forge" import wide')
    loaded = main(tmp_path, CONTEXT + 'from "a.forge" import wide\n')
    found = [d.help for d in loaded.diagnostics if d.code == "FP0204"]
    assert found == [("it has `wide`",), ("it has `y`",)]


def test_a_cycle_of_imports_is_named_with_every_edge(tmp_path: Path) -> None:
    files(tmp_path, a='import "b.forge" as b', b='import "a.forge" as a')
    loaded = main(tmp_path, CONTEXT + 'import "a.forge" as a\n')
    fault = only(loaded)
    assert fault.code == "FP0203"
    assert len(fault.labels) == 2


def test_imports_are_bounded_in_depth_and_number(tmp_path: Path) -> None:
    files(tmp_path, **{f"deep{i}": f'import "deep{i + 1}.forge" as next' for i in range(40)}, deep40="let a = 1")
    assert codes(main(tmp_path, CONTEXT + 'import "deep0.forge" as deep\n')) == ["FP0206"]
    files(tmp_path, **{f"wide{i}": "let a = 1" for i in range(300)})
    lines = "".join(f'import "wide{i}.forge" as w{i}\n' for i in range(300))
    found = codes(main(tmp_path, CONTEXT + lines))
    assert set(found) == {"FP0206"}


def test_a_file_is_read_once_and_its_faults_are_told_once(tmp_path: Path) -> None:
    files(
        tmp_path,
        c="let a = 1 / 0\nlet b = 2",
        a='import "c.forge" as c\nlet x = c.b',
        b='import "c.forge" as c\nlet y = c.a',
    )
    text = CONTEXT + 'import "a.forge" as a\nimport "b.forge" as b\nplan p extends context { seed = a.x + b.y }\n'
    loaded = main(tmp_path, text)
    assert described(loaded.diagnostics) == ["FP0313: `1 / 0` divides by zero"]
    assert only(loaded).span is not None
    assert os.path.basename(only(loaded).span.file) == "c.forge"


def test_a_text_in_an_editor_stands_for_the_file(tmp_path: Path) -> None:
    from forgeplan.compiler import derived_values
    from forgeplan.dsl.load import load

    files(tmp_path, lib="let a = 1")
    text = CONTEXT + 'import "lib.forge" as lib\nplan p extends context { seed = lib.a }\n'
    unsaved = {str((tmp_path / "lib.forge").resolve()): "forge 1\nlet a = 5\n"}
    loaded = load(str(tmp_path / "main.forge"), text, derived=derived_values(), unsaved=unsaved)
    assert values(loaded.job("p"), "seed") == [5]


def test_a_name_that_an_import_misspells_is_one_fault_wherever_it_is_used() -> None:
    loaded = read(f"{CONTEXT}plan p extends context {{}}\n".replace("import llama3_8b", "import lama3_8b"))
    assert only(loaded).help == ("did you mean `llama3_8b`?",)


@pytest.mark.parametrize(("name", "module"), [("llama3_8b", "models"), ("h200_node", "clusters")])
def test_a_name_of_the_library_that_is_not_imported_comes_with_its_import(name: str, module: str) -> None:
    text = f"{CONTEXT}plan p extends context {{}}\n".replace(f'from "std:{module}" import {name}\n', "")
    fault = only(read(text))
    assert (fault.code, fault.help[0]) == ("FP0201", f'it is one of the library: `from "std:{module}" import {name}`')
