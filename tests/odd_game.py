"""A small game with names that break careless pictures, pages and terminals."""

import jaxcfr

SCRIPT = "<script>alert('x')</script>"
KEYS = (
    SCRIPT,
    '"quoted" & <b>',
    "two\nlines\tand a tab",
    "$x^2$ and $y$",
    "\x1b[31mred",
    "_hidden",
    "日本語 ♠",
    "\u202eright to left",
    "</script><!-- -->",
    "k" * 200,
    ("a", 1, None),
    "",
)
"""One for each card that chance deals to player 0."""

LABELS = ("</td>", "_pass", "$b$")


class OddGame(jaxcfr.Game):
    """Chance deals one of the keys, player 0 picks one of three actions, player 1, who sees nothing, one of two."""

    name = "odd <game> & $co$"
    num_players = 2

    def __init__(self, path=()):
        self.path = path

    def is_terminal(self):
        return len(self.path) == 3

    def is_chance(self):
        return not self.path

    def chance_outcomes(self):
        return [(card, 1 / len(KEYS)) for card in range(len(KEYS))]

    def player_to_act(self):
        return len(self.path) - 1

    def legal_actions(self):
        return (0, 1, 2) if len(self.path) == 1 else (0, 1)

    def action_label(self, action):
        return LABELS[action] if self.path else f"card {action}"

    def step(self, action):
        return OddGame((*self.path, action))

    def terminal_returns(self):
        card, mine, theirs = self.path
        win = 1.0 if (card + mine) % 2 == theirs else -0.5 * mine
        return (win, -win)

    def infoset_key(self, player):
        return KEYS[self.path[0]] if player == 0 else "?"
