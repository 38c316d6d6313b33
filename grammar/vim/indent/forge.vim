" Indentation of Forge plan files.

if exists("b:did_indent")
  finish
endif
let b:did_indent = 1

setlocal autoindent
setlocal indentexpr=forge#Indent(v:lnum)
setlocal indentkeys=0{,0},0),0],!^F,o,O,e,=then,=and,=or
let b:undo_indent = "setlocal autoindent< indentexpr< indentkeys<"
