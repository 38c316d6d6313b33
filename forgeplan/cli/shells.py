"""How do bash, zsh and fish ask what can be written next, and how is it answered?

A script in the shell runs forgeplan with `_FORGEPLAN_COMPLETE` set and the line up to the cursor in `COMP_WORDS`; the
answer is a line for each candidate, its help behind a tab. Behind `=`, `/` and `.` a word goes on, so that no space
follows it. Where there is no candidate, the shell offers files.
"""

from __future__ import annotations

import os
from typing import ClassVar

from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

VARIABLE = "_FORGEPLAN_COMPLETE"

_BASH = """\
%(complete_func)s() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%%%%$'\\t'*}")
  done < <(COMP_WORDS="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete "$1" 2> /dev/null)
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/.] ]]; then
    compopt -o nospace 2> /dev/null
  fi
}
complete -o default -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s
%(complete_func)s() {
  local line value typed="${(j: :)words[1,CURRENT]}"
  local -a whole begun
  for line in "${(@f)$(COMP_WORDS=$typed %(complete_var)s=zsh_complete $words[1] 2> /dev/null)}"; do
    value="${${line%%%%$'\\t'*}//:/\\\\:}"
    case $value in
      '') ;;
      *[=/.]) begun+=("$value:${line#*$'\\t'}") ;;
      *) whole+=("$value:${line#*$'\\t'}") ;;
    esac
  done
  (( $#begun )) && _describe -V '%(prog_name)s' begun -S ''
  (( $#whole )) && _describe -V '%(prog_name)s' whole
  (( $#begun + $#whole )) || _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  %(complete_func)s "$@"
else
  compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = """\
function %(complete_func)s
  set -l line (commandline --current-process --cut-at-cursor)
  set -l words (commandline --current-process --tokenize)
  set -lx COMP_WORDS "$line"
  set -l found (env %(complete_var)s=fish_complete $words[1] 2> /dev/null | string match --regex '.+')
  if set -q found[1]
    printf '%%s\n' $found
  else
    __fish_complete_path (commandline --current-token --cut-at-cursor)
  end
end
complete --command %(prog_name)s --no-files --arguments '(%(complete_func)s)'
"""


class _Shell(ShellComplete):
    incomplete = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)[1:]
        self.incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words, self.incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.value}\t{item.help or ''}"


class Bash(_Shell):
    name: ClassVar[str] = "bash"
    source_template: ClassVar[str] = _BASH

    def format_completion(self, item: CompletionItem[str]) -> str:
        """For bash a word begins anew behind `=`: what stands before is not repeated."""
        return super().format_completion(item)[self.incomplete.rfind("=") + 1 :]


class Zsh(_Shell):
    name: ClassVar[str] = "zsh"
    source_template: ClassVar[str] = _ZSH


class Fish(_Shell):
    name: ClassVar[str] = "fish"
    source_template: ClassVar[str] = _FISH


SHELLS = {shell.name: shell for shell in (Bash, Zsh, Fish)}


def use() -> None:
    """Answer in the way that the scripts of this file ask."""
    for shell in SHELLS.values():
        add_completion_class(shell)
