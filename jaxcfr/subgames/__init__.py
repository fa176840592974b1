"""Parts of games, solved again."""
