"""The admin API of a group: its names (`dialect`), what its members answer (`answers`), and how they are asked."""
