"""The ``fairseq-rope`` command: one file for each subcommand."""
