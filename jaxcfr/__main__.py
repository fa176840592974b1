"""`python -m jaxcfr` is the command `jaxcfr`."""

import sys

from jaxcfr.cli import main

if __name__ == "__main__":
    sys.exit(main())
