" Settings of buffers with Forge plan files.

if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1

setlocal comments=b:##,b:#
setlocal commentstring=#\ %s
setlocal formatoptions-=t formatoptions+=croql
setlocal expandtab shiftwidth=2 softtabstop=2
setlocal textwidth=100
setlocal suffixesadd=.forge
" One can format with `gq` whatever lines are meant: the form of a plan file is that of the whole file.
setlocal formatprg=forgeplan\ fmt\ -
setlocal formatexpr=forge#Format()

let b:undo_ftplugin = "setlocal comments< commentstring< formatoptions< expandtab< shiftwidth< softtabstop<"
      \ . " textwidth< suffixesadd< formatprg< formatexpr<"
