"""One question a module: what a command does, from arguments to printed answer."""
