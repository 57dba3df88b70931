"""Shell scripts read as bash reads them; no command is run.

A text becomes statements (`syntax`) in `text_reader`, `dollar_reader`, `word_reader`, `command_reader`,
`compound_reader` and `statement_reader`, each built on the one before. `interpreter` follows them, with `branches`,
`loops`, `simple_commands` and a file for each group of builtins; `expansion` and `parameters` make words of their
parts. What is known of a variable is a value (`values`, `lists`) in a layer of `scope`; what is not carries a mark
that says what would decide.

What launch scripts have no use for is asked about where a flag depends on it: lists with gaps, braces within braces,
printf beyond `%s` and `%d`, other than whole numbers in `declare -i`. `select`, `coproc`, `declare -n` and a
`case` that falls through (`;&`) are refused.

A reader of our own, though parsers of bash exist: the one that ships wheels (tree-sitter with its bash grammar) is made
for editors. It accepts what bash refuses, repairs rather than complains, so that an open quote cannot be named, and
its repairs take time with the square of the text (24 kB of `A=(`: 4 seconds). What it would spare is the syntax, the
smaller half; that a test is decided, asked about or irrelevant has to be worked out all the same.
"""
