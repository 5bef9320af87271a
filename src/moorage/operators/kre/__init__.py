"""KRE: what a runtime's versions are made of: what a `.krt` file is (`krt/`), and what all of a version is called.

Nothing here is run by the operator yet; `moorage krt check` uses it.
"""
