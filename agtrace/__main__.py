"""`python -m agtrace` is `agtrace`."""

from agtrace.cli import main

if __name__ == "__main__":
    main()
