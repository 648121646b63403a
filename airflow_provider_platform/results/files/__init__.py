"""Results as files: rows in a file or a folder of files, an agent's answer with its charts.

`output` says which files are wanted, `save` writes the rows of one query, and `answer` the files of
a chat. A file is whole or not there (`atomic`), on a disk as in an object store.
"""
