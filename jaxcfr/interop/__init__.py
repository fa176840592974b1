"""Other people's games in, our strategies out.

Nothing heavy is imported here: a module that needs an optional package
imports it inside the function that uses it.
"""

from jaxcfr.interop.gambit import EfgGame, EfgInfoset, format_efg, parse_efg, read_efg, write_efg
from jaxcfr.interop.openspiel import OpenSpielGame, from_openspiel, from_openspiel_policy, to_openspiel
from jaxcfr.interop.pgx import PgxGame, from_pgx

__all__ = [
    "EfgGame",
    "EfgInfoset",
    "OpenSpielGame",
    "PgxGame",
    "format_efg",
    "from_openspiel",
    "from_openspiel_policy",
    "from_pgx",
    "parse_efg",
    "read_efg",
    "to_openspiel",
    "write_efg",
]
