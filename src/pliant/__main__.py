"""`python -m pliant` is the same as `pliant`."""

from pliant.app.cli import main

if __name__ == "__main__":
    main()
