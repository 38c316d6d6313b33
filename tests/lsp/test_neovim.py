"""Does a real editor show what the server finds? Neovim without a screen, with the files that are shipped for it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.editors.editor import run_script

SESSION = """
local server = vim.fn.json_decode(%r)
require("forgeplan").setup({ path = server })
vim.cmd("edit faulty.forge")
local seen = {}

local function wait_for(what, ready)
  if not vim.wait(30000, ready, 20) then
    error("no " .. what .. " in 30 seconds")
  end
end

local function lines()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n")
end

local function ask(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, 30000)
  for _, answer in pairs(answers or {}) do
    return answer.result
  end
end

wait_for("problems", function() return #vim.diagnostic.get(0) > 0 end)
for _, one in ipairs(vim.diagnostic.get(0)) do
  table.insert(seen, { line = one.lnum, column = one.col, code = one.code, message = one.message })
end

vim.api.nvim_win_set_cursor(0, { 11, 23 })
local hover = ask("textDocument/hover", vim.lsp.util.make_position_params())

vim.api.nvim_win_set_cursor(0, { 11, 23 })
local params = vim.lsp.util.make_range_params()
params.context = { diagnostics = {} }
local actions = ask("textDocument/codeAction", params)
vim.lsp.util.apply_workspace_edit(actions[1].edit, "utf-16")
local mended = lines()
wait_for("mended problems", function() return #vim.diagnostic.get(0) == 0 end)

local optimizer = ask("textDocument/hover", {
  textDocument = vim.lsp.util.make_text_document_params(), position = { line = 10, character = 5 },
})

vim.api.nvim_buf_set_lines(0, 10, 11, false, { "    optimizer=adamw {lr=1e-3}" })
if vim.lsp.buf.format then vim.lsp.buf.format({ timeout_ms = 30000 }) else vim.lsp.buf.formatting_sync(nil, 30000) end

local file = io.open("seen.json", "w")
file:write(vim.fn.json_encode({
  problems = seen, title = actions[1].title, mended = mended, formatted = lines(),
  hover = optimizer.contents.value,
}))
file:close()
vim.cmd("qall!")
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, plan: str) -> dict[str, Any]:
    """What one session with a faulty plan saw."""
    folder = tmp_path_factory.mktemp("editor")
    (folder / "forge.toml").touch()
    (folder / "faulty.forge").write_text(plan.replace("lr = 1e-3", "lrr = 1e-3"))
    program = folder / "forgeplan"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forgeplan "$@"\n')
    program.chmod(0o755)
    (folder / "session.lua").write_text(SESSION % json.dumps(str(program)))
    run_script("nvim", folder, "luafile session.lua")
    return dict(json.loads((folder / "seen.json").read_text()))


def test_neovim_marks_the_fault(seen: dict[str, Any]) -> None:
    (found,) = [one for one in seen["problems"] if one["code"] == "FP0301"]
    assert (found["line"], found["column"]) == (10, 22)
    assert "did you mean `lr`?" in found["message"]


def test_neovim_mends_it_by_the_action_that_is_offered(seen: dict[str, Any], plan: str) -> None:
    assert seen["title"] == "write `lr`"
    assert seen["mended"] + "\n" == plan


def test_neovim_explains_a_field(seen: dict[str, Any]) -> None:
    assert seen["hover"].startswith("**optimizer**")
    assert "decided" not in seen["hover"]
    assert "optimizer" in seen["hover"]


def test_neovim_brings_the_text_into_form(seen: dict[str, Any], plan: str) -> None:
    assert seen["formatted"] + "\n" == plan
