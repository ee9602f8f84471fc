"""`python -m tilewright`."""

from tilewright.cli import main

main()
