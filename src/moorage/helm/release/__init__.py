"""A release as data: its claim, its record, its objects, and in what they differ from what is live."""
