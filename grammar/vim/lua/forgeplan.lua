-- Starts `forgeplan lsp` for plan files, and runs forgeplan in a terminal for the lenses. Neovim 0.7 and newer.
--
--   require("forgeplan").setup()                       the program of the project's .venv, else the one on the PATH
--   require("forgeplan").setup({ path = "…", on_attach = function(client, buffer) … end, capabilities = … })

local M = {}

local options = {}
local clients = {} -- by root folder, for editors that do not share clients themselves

local function exists(file)
  return vim.fn.executable(file) == 1
end

--- The folder of forge.toml above a file, else that of the file.
function M.root(file)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  local marker = vim.fn.findfile("forge.toml", vim.fn.escape(folder, " ,") .. ";")
  return marker ~= "" and vim.fn.fnamemodify(marker, ":p:h") or folder
end

--- The program for a project: the one that was given, that of its virtual environment, or the one on the PATH.
function M.program(root)
  if options.path then
    return options.path
  end
  for _, inside in ipairs({ ".venv/bin/forgeplan", "venv/bin/forgeplan" }) do
    if exists(root .. "/" .. inside) then
      return root .. "/" .. inside
    end
  end
  return "forgeplan"
end

local function configuration(root)
  return {
    name = "forgeplan",
    cmd = { M.program(root), "lsp" },
    root_dir = root,
    workspace_folders = { { uri = vim.uri_from_fname(root), name = root } },
    capabilities = options.capabilities,
    on_attach = options.on_attach,
    on_exit = function()
      clients[root] = nil
    end,
  }
end

--- Start the server for a buffer, or attach to the one that its project has.
function M.attach(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  if file == "" or vim.bo[buffer].buftype ~= "" then
    return
  end
  local root = M.root(file)
  if not exists(M.program(root)) then
    if not M.has_told then
      M.has_told = true
      vim.notify("forgeplan: there is no " .. M.program(root) .. "; install it, or set `path`", vim.log.levels.WARN)
    end
    return
  end
  if vim.lsp.start then
    vim.lsp.start(configuration(root), { bufnr = buffer })
    return
  end
  clients[root] = clients[root] or vim.lsp.start_client(configuration(root))
  if clients[root] then
    vim.lsp.buf_attach_client(buffer, clients[root])
  end
end

--- Run `forgeplan COMMAND FILE` in a terminal below.
function M.run(command, file, plan)
  local root = M.root(file)
  local words = { M.program(root), command, file }
  if plan then
    vim.list_extend(words, { "--plan", plan })
  end
  vim.cmd("botright 15new")
  if vim.fn.has("nvim-0.11") == 1 then
    vim.fn.jobstart(words, { cwd = root, term = true })
  else
    vim.fn.termopen(words, { cwd = root })
  end
end

local function define_commands()
  for _, name in ipairs({ "compile", "explain", "run" }) do
    vim.lsp.commands["forgeplan." .. name] = function(command)
      local uri, plan = unpack(command.arguments or {})
      M.run(name, vim.uri_to_fname(uri), plan ~= vim.NIL and plan or nil)
    end
  end
end

--- Serve plan files from now on. `path` names the program; `on_attach` and `capabilities` are those of Neovim's client.
function M.setup(given)
  options = given or {}
  define_commands()
  local group = vim.api.nvim_create_augroup("forgeplan", { clear = true })
  vim.api.nvim_create_autocmd("FileType", {
    group = group,
    pattern = "forge",
    callback = function(event)
      M.attach(event.buf)
    end,
  })
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].filetype == "forge" then
      M.attach(buffer)
    end
  end
end

return M
