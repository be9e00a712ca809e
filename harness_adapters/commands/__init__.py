"""The commands of `agent-channel`, a module each; `harness_adapters/cli.py` lists them.

A module has `run(database, arguments)`, which returns the exit status, and `parser()`, from which the help and the
shell completion are made. `database` is what `--db` named, or None.
"""
