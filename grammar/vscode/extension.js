// What does VS Code do with plan files? It starts `forgeplan lsp`, and runs forgeplan in its terminal for the lenses.
"use strict";

const fs = require("fs");
const path = require("path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { findProgram, wordsOf } = require("./program");

const RUN_IN_TERMINAL = ["compile", "explain", "run"];

/** A client that leaves the commands to this extension: it would define those that the server has a second time. */
class Client extends LanguageClient {
  registerFeature(feature) {
    const type = feature.registrationType;
    if (!type || type.method !== "workspace/executeCommand") super.registerFeature(feature);
  }
}

let client;

function program() {
  return findProgram({
    setting: vscode.workspace.getConfiguration("forgeplan").get("path"),
    folders: (vscode.workspace.workspaceFolders || []).map((folder) => folder.uri.fsPath),
    isTrusted: vscode.workspace.isTrusted,
    exists: fs.existsSync,
    isWindows: process.platform === "win32",
  });
}

async function start() {
  const server = { command: program(), args: ["lsp"] };
  const watched = ["**/*.forge", "**/forge.toml", "**/forge.lock"];
  client = new Client("forgeplan", "Forge plans", server, {
    documentSelector: [{ language: "forge", scheme: "file" }, { language: "forge", scheme: "untitled" }],
    synchronize: { fileEvents: watched.map((pattern) => vscode.workspace.createFileSystemWatcher(pattern)) },
  });
  try {
    await client.start();
  } catch (reason) {
    client = undefined;
    await tellThatNothingStarted(server.command, reason);
  }
}

async function tellThatNothingStarted(command, reason) {
  const settings = "Open settings";
  const chosen = await vscode.window.showErrorMessage(
    `\`${command} lsp\` did not start (${reason.message || reason}). Install it with ` +
      "`pip install 'forgeplan-torch[lsp]'`, or name the program in the setting forgeplan.path.",
    settings,
  );
  if (chosen === settings) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "forgeplan.path");
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running) await running.stop();
}

/** Run forgeplan on a plan file in the terminal; without a URI, on the file of the active editor. */
async function runInTerminal(command, uri, plan) {
  const editor = vscode.window.activeTextEditor;
  const target = uri ? vscode.Uri.parse(uri) : editor && editor.document.uri;
  if (!target || target.scheme !== "file") {
    await vscode.window.showErrorMessage("There is no plan file to " + command + ": save it first.");
    return;
  }
  const document = vscode.workspace.textDocuments.find((open) => open.uri.toString() === target.toString());
  if (document && document.isDirty) await document.save();
  const folder = vscode.workspace.getWorkspaceFolder(target);
  const cwd = folder ? folder.uri.fsPath : path.dirname(target.fsPath);
  const file = path.relative(cwd, target.fsPath);
  const task = new vscode.Task(
    { type: "forgeplan", command, file, plan },
    folder || vscode.TaskScope.Workspace,
    plan ? `${command} ${plan}` : `${command} ${file}`,
    "forgeplan",
    new vscode.ProcessExecution(program(), wordsOf(command, file, plan), { cwd }),
  );
  task.presentationOptions = { clear: true, showReuseMessage: false };
  await vscode.tasks.executeTask(task);
}

async function activate(context) {
  const restart = async () => {
    await stop();
    await start();
  };
  for (const command of RUN_IN_TERMINAL) {
    const run = (uri, plan) => runInTerminal(command, typeof uri === "string" ? uri : undefined, plan);
    context.subscriptions.push(vscode.commands.registerCommand(`forgeplan.${command}`, run));
  }
  context.subscriptions.push(
    vscode.commands.registerCommand("forgeplan.restart", restart),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("forgeplan.path") && restart()),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
