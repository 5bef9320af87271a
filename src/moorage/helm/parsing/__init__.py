"""Texts that others may make large, read within limits: in place if they are small, else in a child process."""
