"""`python -m bench` is the command `bench`."""

from bench.cli import main

main()
