"""Shell scripts read as bash reads them; no command is run.

A reader of our own, though parsers of bash exist: the one that ships wheels (tree-sitter with its bash grammar) is made
for editors. It accepts what bash refuses, repairs rather than complains, so that an open quote cannot be named, and
its repairs take time with the square of the text (24 kB of `A=(`: 4 seconds). What it would spare is the syntax, the
smaller half; that a test is decided, asked about or irrelevant has to be worked out all the same.
"""
