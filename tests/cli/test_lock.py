"""Does `forgeplan lock` write what it says, and nothing where it cannot tell what is imported?"""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Give


def test_a_lock_is_written_once_and_then_stays(give: Give, folder: Path) -> None:
    (folder / "lib.forge").write_text("forge 1\n\nlet width = 1\n")
    (folder / "mine.forge").write_text('forge 1\n\nimport "lib.forge" as lib\n')
    assert give("lock", "--check").exit_code == 10
    assert not (folder / "forge.lock").exists()
    assert give("lock").out == "  + lib.forge\nforge.lock pins 1 file\n"
    first = (folder / "forge.lock").read_bytes()
    assert give("lock").out == "forge.lock needs no change: 1 file\n"
    assert give("lock", "--check", "mine.forge").exit_code == 0
    assert (folder / "forge.lock").read_bytes() == first
    (folder / "forge.lock").write_bytes(first.replace(b"\n", b"\r\n"))
    assert give("lock", "--check").exit_code == 0, "git may have turned the ends of its lines"
    (folder / "lib.forge").write_text("forge 1\n\nlet width = 2\n")
    said = give("lock", "--check")
    assert (said.exit_code, said.out) == (10, "  ~ lib.forge (width)\n")


def test_nothing_is_pinned_where_an_import_is_not_understood(give: Give, folder: Path) -> None:
    (folder / "mine.forge").write_text('forge 1\n\nimport "missing.forge" as lib\n')
    said = give("lock", "mine.forge")
    assert said.exit_code == 1
    assert "FP0204" in said.err
    assert "nothing is pinned" in said.err
    assert not (folder / "forge.lock").exists()


def test_files_of_two_projects_are_not_locked_at_once(give: Give, folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "forge.toml").touch()
        (folder / name / "p.forge").write_text("forge 1\n")
    assert give("lock", "a/p.forge", "b/p.forge").exit_code == 2
