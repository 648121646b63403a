"""Rows of results in files, in XCom and in frames.

`types` decides the type of each column and reads values, `spool` keeps all rows until the types are
known, `options` says which files a task writes, `write` writes a format or several files, `store`
writes each file whole or not at all, `save` does all of this for one query, and `answer` for a
chat. Nothing here knows Airflow or HTTP; where to write is a path object that the caller hands in.
"""
