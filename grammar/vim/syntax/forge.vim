" Syntax of Forge plan files. Made by python -m forgeplan.editors from the words of the language.

if exists("b:current_syntax")
  finish
endif

syntax case match
syntax sync minlines=200

syntax match forgeIllegal /\v[^[:space:][:alnum:]_"{}]/
syntax match forgeOperator /\v\.\.|\*\*|\/\/|[=!<>]\=|[-*\/%<>]|\+\=@!/
syntax match forgeAssignment /\v\+?\=\=@!/
syntax match forgeDot /\v\.@1<!\.\.@!/
syntax match forgeSeparator /[,:?]/
syntax match forgeBracket /[][(){}]/

syntax match forgeName /\v<\h\w*/
syntax match forgeMember /\v\.@1<=%(\.\.)@2<!\h\w*/
syntax match forgeTag /\v<\h\w*\ze\s*\{/
syntax match forgeType /\v%(%(\.\.)@2<=|\.@1<!)<%(Sequences|Duration|Number|Tokens|Bytes|OneOf|Share|Steps|Bool|List|Path|Rate|Text|Int)>/
syntax match forgeFunction /\v%(%(\.\.)@2<=|\.@1<!)<%(floor|round|ceil|log2|sqrt|len|max|min|sum)\ze\s*\(/
syntax match forgeBranch /\v%(%(\.\.)@2<=|\.@1<!)<%(else|then|for|if)>/
syntax match forgeWordOperator /\v%(%(\.\.)@2<=|\.@1<!)<%(and|not|in|or)>/
syntax match forgeSelf /\v%(%(\.\.)@2<=|\.@1<!)<self>/
syntax match forgeConstant /\v%(%(\.\.)@2<=|\.@1<!)<%(false|auto|none|true)>%(\s*[({])@!/

syntax match forgeIllegal /\v\w@1<!%(\.@1<!\.\d@=)?\d%(\w|\.\.@!|%([0-9_][eE])@2<=[+-]\d@=)*\%?/
syntax match forgeNumber /\v\w@1<!%(0|[1-9]\d*%(_\d+)*)%(\.\d+%(_\d+)*)?%([eE][+-]?\d+)?\ze%(\%|%(sequences|EFLOP\/s|GFLOP\/s|MFLOP\/s|PFLOP\/s|TFLOP\/s|kFLOP\/s|sequence|FLOP\/s|GiB\/s|KiB\/s|MiB\/s|PiB\/s|TiB\/s|tokens|EB\/s|EFLOP|GB\/s|GFLOP|MB\/s|MFLOP|PB\/s|PFLOP|TB\/s|TFLOP|bytes|kB\/s|kFLOP|steps|token|FLOP|byte|runs|step|GiB|KiB|MiB|PiB|TiB|min|run|EB|GB|Gi|Ki|MB|Mi|PB|TB|Ti|kB|ms|us|B|M|T|d|h|k|s))?%(\w|\.\.@!)@!/ nextgroup=forgeUnit,forgeUnit_word skipwhite
syntax match forgeUnit /\v\w@1<=%(\%|%(sequences|EFLOP\/s|GFLOP\/s|MFLOP\/s|PFLOP\/s|TFLOP\/s|kFLOP\/s|sequence|FLOP\/s|GiB\/s|KiB\/s|MiB\/s|PiB\/s|TiB\/s|tokens|EB\/s|EFLOP|GB\/s|GFLOP|MB\/s|MFLOP|PB\/s|PFLOP|TB\/s|TFLOP|bytes|kB\/s|kFLOP|steps|token|FLOP|byte|runs|step|GiB|KiB|MiB|PiB|TiB|min|run|EB|GB|Gi|Ki|MB|Mi|PB|TB|Ti|kB|ms|us|B|M|T|d|h|k|s))/ contained nextgroup=forgeUnit_word skipwhite
syntax match forgeUnit_word /\v<%(sequences|sequence|tokens|EFLOP|GFLOP|MFLOP|PFLOP|TFLOP|bytes|kFLOP|steps|token|FLOP|byte|runs|step|GiB|KiB|MiB|PiB|TiB|min|run|EB|GB|MB|PB|TB|kB|ms|us|d|h|s)>/ contained

syntax match forgeKey /\v<\h\w*\ze%(\.\h\w*)*\s*%(\+\=|\=\=@!)/

syntax match forgeKind /\v%(^|[{,]@1<=)\s*\zs%(%(else|then|and|for|not|if|in|or)>)@!\h\w*\ze\s+%(%(else|then|and|for|not|if|in|or)>)@!\h\w*%(\s*\{|\s+after>)/
    \ nextgroup=forgeDeclared skipwhite
syntax match forgeKeyword /\v%(^|[{,]@1<=)\s*\zs%(partial|profile|delete|param|sweep|axis|plan|let)\ze\s+\h/
syntax match forgeKeyword /\v%(^|[{,]@1<=)\s*\zs%(import|from|test)\ze\s*"/
syntax match forgeKeyword /\v%(^|[{,]@1<=)\s*\zs%(forge)\ze\s+\d/
syntax match forgeKeyword /\v%(^|[{,]@1<=)\s*\zs%(zip)\ze\s*\{/
syntax match forgeKeyword /\v%(^|[{,]@1<=)\s*\zs%(exclude|assert|expect|warn)\ze\s*%([[:alnum:]_({"\[]|[+-]\=@!)/

syntax match forgeKeyword /\v%(^|[{,]@1<=)\s*\zs%(plan|profile|sweep)\ze\s+\h/ nextgroup=forgeDeclared skipwhite
syntax match forgeKeyword /\v%(^|[{,]@1<=)\s*\zspartial\ze\s+\h/ nextgroup=forgeKeyword_plan skipwhite
syntax match forgeKeyword_plan /\v<plan\ze\s+\h/ contained nextgroup=forgeDeclared skipwhite
syntax match forgeDeclared /\h\w*/ contained nextgroup=forgeKeyword_base skipwhite
syntax match forgeKeyword_base /\v<%(extends|over|after)\ze\s+\h/ contained nextgroup=forgeBase skipwhite
syntax match forgeBase /\h\w*/ contained nextgroup=forgeDot_base,forgeSeparator_base skipwhite
syntax match forgeDot_base /\./ contained nextgroup=forgeBase
syntax match forgeSeparator_base /,/ contained nextgroup=forgeBase skipwhite
syntax match forgeBranch /\v"@1<=\s*\zsfor\ze\s+\h\w*%(\.\h\w*)*\s*\{/ nextgroup=forgeBase skipwhite

syntax match forgeKeyword /\v%(^|[{,]@1<=)\s*\zs%(let|param)\ze\s+\h/ nextgroup=forgeVariable skipwhite
syntax match forgeVariable /\h\w*/ contained nextgroup=forgeSeparator_type skipwhite
syntax match forgeSeparator_type /:/ contained nextgroup=forgeType_declared skipwhite
syntax match forgeType_declared /\h\w*/ contained
syntax match forgeKeyword /\v"@1<=\s*\zsas\ze\s+\h/ nextgroup=forgeVariable_imported skipwhite
syntax match forgeKeyword /\v"@1<=\s*\zsimport\ze\s+\h/ nextgroup=forgeVariable_imported skipwhite
syntax match forgeVariable_imported /\h\w*/ contained nextgroup=forgeSeparator_imported skipwhite
syntax match forgeSeparator_imported /,/ contained nextgroup=forgeVariable_imported skipwhite skipnl

syntax match forgeKeyword /\v%(^|[{,]@1<=)\s*\zsexpect\ze\s+error\s+\h/ nextgroup=forgeKeyword_error skipwhite
syntax match forgeKeyword_error /error/ contained nextgroup=forgeCode skipwhite
syntax match forgeCode /\h\w*/ contained nextgroup=forgeKeyword_with skipwhite
syntax match forgeKeyword_with /\v<with>/ contained

syntax match forgeComment /#.*$/ contains=@Spell
syntax match forgeDoc /##.*$/ contains=@Spell
syntax match forgeComment /\v#\s*forge:\s*allow>.*$/ contains=forgeDirective
syntax match forgeDirective /\vforge:\s*allow/ contained nextgroup=forgeLint
syntax match forgeLint /.*$/ contained

syntax match forgeIllegal_escape /\\./ contained
syntax match forgeEscape /\v\\%([ntr"\\$]|u\{\x{1,6}\})/ contained
syntax region forgeString matchgroup=forgeString start=/"/ end=/"/ end=/$/
    \ contains=forgeIllegal_escape,forgeEscape,forgeEmbedded_line,@Spell
syntax region forgeString matchgroup=forgeString start=/\"""/ end=/\"""/
    \ contains=forgeIllegal_escape,forgeEscape,forgeEmbedded_block,@Spell

" Code in strings: braces in it are counted, and code in a string of one line ends with the line.
syntax region forgeEmbedded_line matchgroup=forgeEmbedded start=/\${/ end=/}/ end=/$/ contained
    \ contains=@forgeCode,forgeRecord_line
syntax region forgeEmbedded_block matchgroup=forgeEmbedded start=/\${/ end=/}/ contained
    \ contains=@forgeCode,forgeRecord_block
syntax region forgeRecord_line matchgroup=forgeBracket start=/{/ end=/}/ end=/$/ contained
    \ contains=@forgeCode,forgeRecord_line
syntax region forgeRecord_block matchgroup=forgeBracket start=/{/ end=/}/ contained
    \ contains=@forgeCode,forgeRecord_block

syntax cluster forgeCode contains=forgeIllegal,forgeOperator,forgeAssignment,forgeDot,forgeSeparator,forgeBracket,forgeName,forgeMember,forgeTag,forgeType,forgeFunction,forgeBranch,forgeWordOperator,forgeSelf,forgeConstant,forgeNumber,forgeKey,forgeKind,forgeKeyword,forgeComment,forgeDoc,forgeString

highlight default link forgeComment Comment
highlight default link forgeDoc SpecialComment
highlight default link forgeDirective PreProc
highlight default link forgeLint Tag
highlight default link forgeString String
highlight default link forgeEscape SpecialChar
highlight default link forgeEmbedded Delimiter
highlight default link forgeNumber Number
highlight default link forgeUnit Type
highlight default link forgeKeyword Keyword
highlight default link forgeBranch Conditional
highlight default link forgeWordOperator Operator
highlight default link forgeConstant Constant
highlight default link forgeSelf Special
highlight default link forgeKind StorageClass
highlight default link forgeDeclared Function
highlight default link forgeVariable Identifier
highlight default link forgeBase Include
highlight default link forgeKey Identifier
highlight default link forgeTag Structure
highlight default link forgeType Type
highlight default link forgeFunction Function
highlight default link forgeCode Constant
highlight default link forgeAssignment Operator
highlight default link forgeOperator Operator
highlight default link forgeDot Delimiter
highlight default link forgeSeparator Delimiter
highlight default link forgeBracket Delimiter
highlight default link forgeIllegal Error
highlight default link forgeUnit_word forgeUnit
highlight default link forgeKeyword_plan forgeKeyword
highlight default link forgeKeyword_base forgeKeyword
highlight default link forgeDot_base forgeDot
highlight default link forgeSeparator_base forgeSeparator
highlight default link forgeSeparator_type forgeSeparator
highlight default link forgeType_declared forgeType
highlight default link forgeVariable_imported forgeVariable
highlight default link forgeSeparator_imported forgeSeparator
highlight default link forgeKeyword_error forgeKeyword
highlight default link forgeKeyword_with forgeKeyword
highlight default link forgeIllegal_escape forgeIllegal
highlight default link forgeEmbedded_line forgeEmbedded
highlight default link forgeEmbedded_block forgeEmbedded
highlight default link forgeRecord_line forgeRecord
highlight default link forgeRecord_block forgeRecord

let b:current_syntax = "forge"
