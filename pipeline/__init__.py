"""andon: turns what machines say into tickets people can act on."""

__version__ = "0.1.0"
