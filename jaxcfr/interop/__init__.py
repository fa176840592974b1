"""Other people's games in, our strategies out.

Nothing heavy is imported here: a module that needs an optional package
imports it inside the function that uses it.
"""

from jaxcfr.interop.convert import read_game, write_game
from jaxcfr.interop.gambit import EfgGame, EfgInfoset, format_efg, parse_efg, read_efg, write_efg
from jaxcfr.interop.json_game import JsonGame, format_json, parse_json, read_json, write_json
from jaxcfr.interop.nfg import format_nfg, parse_nfg, read_nfg, write_nfg
from jaxcfr.interop.openspiel import OpenSpielGame, from_openspiel, from_openspiel_policy, to_openspiel
from jaxcfr.interop.pgx import PgxGame, from_pgx

__all__ = [
    "EfgGame",
    "EfgInfoset",
    "JsonGame",
    "OpenSpielGame",
    "PgxGame",
    "format_efg",
    "format_json",
    "format_nfg",
    "from_openspiel",
    "from_openspiel_policy",
    "from_pgx",
    "parse_efg",
    "parse_json",
    "parse_nfg",
    "read_efg",
    "read_game",
    "read_json",
    "read_nfg",
    "to_openspiel",
    "write_efg",
    "write_game",
    "write_json",
    "write_nfg",
]
