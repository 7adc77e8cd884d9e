"""Editors change the files of a working copy as a prompt asks; a setting chooses one."""
