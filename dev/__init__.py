"""What the Makefile calls: demo, tests, checks and generated pages. Nothing of it is part of the product."""
