"""Corpus steps that never lose or gain a line; none of them needs torch or fairseq.

A step on one side of a corpus is a function from a line to a line (``normalise``, ``tokenise``,
``segment``), run over a file by ``filter.filter_file``. A step on both sides (``clean``, ``dedup``,
``check``) reads the two files side by side.
"""
