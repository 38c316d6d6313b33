"""Which rules about data need the files, and are checked when a run starts or reads?

FP0609 and FP0618 are also checked by the compiler, as far as they can be without a file.
"""

from __future__ import annotations

from forgeplan.diagnostics.codes import code

TOKEN_DTYPE = code("FP0606", "a token file holds whole ids of the integer type that is written or in its header")
VOCABULARY = code("FP0609", "the tokenizer's ids, added tokens included, fit into the model's vocabulary")
END_OF_DOCUMENT = code("FP0611", "a packed source knows the id that ends a document")
FILES = code("FP0612", "each path names readable files, and no file is read twice by one mixture")
TOO_FEW_SAMPLES = code("FP0613", "a source fills at least one microbatch on each data rank")
COLUMNS = code("FP0616", "every record is readable text, in the column that the plan names")
SPLIT = code("FP0618", "splits of one source leave something to train on, and enough to evaluate on")
TOKEN_RANGE = code("FP1017", "every token id in the data is below the model's vocabulary")
DATA_CHANGED = code("FP1018", "the data is what the checkpoint recorded")
