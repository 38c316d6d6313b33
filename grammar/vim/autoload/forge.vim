" What the buffers of Forge plan files call.

" Bring the whole buffer into its form with 'formatprg'; on a fault leave it as it is and show what is wrong.
function! forge#Format() abort
  if mode() =~# '[iR]'
    return 1
  endif
  let l:before = getline(1, '$')
  let l:errors = tempname()
  let l:after = systemlist(&l:formatprg . ' 2> ' . shellescape(l:errors), l:before)
  let l:said = filereadable(l:errors) ? readfile(l:errors) : []
  call delete(l:errors)
  if v:shell_error
    echohl ErrorMsg
    echomsg 'forgeplan fmt: ' . get(filter(l:said, 'v:val =~# "\\S"'), 0, 'exit code ' . v:shell_error)
    echohl None
  elseif l:after != l:before
    let l:view = winsaveview()
    call setline(1, l:after)
    if len(l:before) > len(l:after)
      call deletebufline('%', len(l:after) + 1, '$')
    endif
    call winrestview(l:view)
  endif
  return 0
endfunction

" The indent of a line: that of the statement before it, one step more in its brackets and where a statement goes on.
function! forge#Indent(line) abort
  if s:InText(a:line)
    return -1
  endif
  let l:above = prevnonblank(a:line - 1)
  if l:above == 0
    return 0
  endif
  let l:indent = indent(l:above) - (s:GoesOn(l:above) ? shiftwidth() : 0)
  let l:open = s:Balance(s:Code(l:above))
  let l:indent += (l:open > 0 ? shiftwidth() : 0)
  if s:Code(a:line) =~# '^\s*[]})]'
    let l:indent -= shiftwidth()
  elseif s:GoesOn(a:line)
    let l:indent += shiftwidth()
  endif
  return max([l:indent, 0])
endfunction

" Brackets that a line leaves open, or closes without having opened them. What it closes first is in its own indent.
function! s:Balance(code) abort
  let l:rest = substitute(a:code, '^\s*[]})]\+', '', '')
  return len(substitute(l:rest, '[^[({]', '', 'g')) - len(substitute(l:rest, '[^])}]', '', 'g'))
endfunction

function! s:GoesOn(line) abort
  return s:Code(a:line) =~# '\v^\s*%(%(else|then|and|or|in)>|[-+*/.=<>])'
endfunction

" A line without its strings and its comment.
function! s:Code(line) abort
  let l:text = substitute(getline(a:line), '"\%([^"\\]\|\\.\)*"', '', 'g')
  return substitute(l:text, '#.*$', '', '')
endfunction

" Whether a line begins inside a block of text, whose spaces count.
function! s:InText(line) abort
  return a:line > 1 && synIDattr(synID(a:line, 1, 0), 'name') ==# 'forgeString'
        \ && synIDattr(synID(a:line - 1, col([a:line - 1, '$']) - 1, 0), 'name') ==# 'forgeString'
endfunction
