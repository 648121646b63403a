"""Results as files: rows in a file or a folder of files, an agent's answer with its charts.

`format_and_options` says which files a task writes, `save` writes the rows of one query, and
`answer` the files of a chat. `atomic` writes each file whole or not at all, on a disk and in an
object store.
"""
