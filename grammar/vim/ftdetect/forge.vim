autocmd BufRead,BufNewFile *.forge setfiletype forge
